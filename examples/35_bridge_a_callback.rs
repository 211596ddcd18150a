//! How do I turn an API with callbacks into results that can be composed?
//!
//! ```sh
//! cargo run -p examples --example 35_bridge_a_callback
//! ```
//!
//! ```text
//! 7 sacks of rye make 280 loaves
//! oats: the mill has no oats
//! a callback that was dropped: abandoned
//! ```

#![forbid(unsafe_code)]

use millpond::future::{self, Completable};
use std::thread;

type Callback = Box<dyn FnOnce(Result<u32, String>) + Send>;

/// An API as they are: it calls back from a thread of its own, or never.
#[expect(
    clippy::disallowed_methods,
    reason = "it stands for an API that is not ours"
)]
fn grind(grain: &'static str, callback: Callback) {
    thread::spawn(move || match grain {
        "rye" => callback(Ok(7)),
        "oats" => callback(Err("the mill has no oats".to_owned())),
        _ => drop(callback),
    });
}

/// The bridge: the callback owns the promise. If it is dropped without a call, the result is abandoned and nobody hangs.
fn flour(grain: &'static str) -> Completable<u32, String> {
    let (promise, flour) = future::promise();
    grind(
        grain,
        Box::new(move |answer| {
            // An error here means that somebody else was faster: a timeout, or a cancel.
            let _ = promise.complete_with(answer);
        }),
    );
    flour.named(grain)
}

fn main() {
    let loaves = flour("rye").map(|sacks| (sacks, sacks * 40));
    if let Ok((sacks, loaves)) = loaves.join() {
        println!("{sacks} sacks of rye make {loaves} loaves");
    }

    if let Err(failure) = flour("oats").join() {
        let name = failure.origin().name().unwrap_or("a stage").to_owned();
        println!("{name}: {}", failure.error().map_or("?", String::as_str));
    }

    if let Err(failure) = flour("sand").join() {
        let what = if failure.is_abandoned() {
            "abandoned"
        } else {
            "something else"
        };
        println!("a callback that was dropped: {what}");
    }
}
