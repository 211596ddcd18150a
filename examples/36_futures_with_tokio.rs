//! How do I mix completables with async code, both ways?
//!
//! ```sh
//! cargo run -p examples --example 36_futures_with_tokio
//! ```
//!
//! ```text
//! awaited: 280 loaves
//! composed: 7 sacks from a channel
//! one deadline for both: late
//! ```

#![forbid(unsafe_code)]

use millpond::future::{self, Completable};
use std::error::Error;
use std::time::Duration;
use tokio::sync::oneshot;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        // A completable is a future. The runtime's thread is free while a pool computes.
        let loaves = Completable::supply_async(|| 7).map(|sacks| sacks * 40);
        println!("awaited: {} loaves", loaves.await?);

        // And a future becomes a completable: it is polled on the thread that wakes it.
        let (send, receive) = oneshot::channel();
        let flour = Completable::<_>::from_future(receive);
        let text = flour.map(|sacks| match sacks {
            Ok(sacks) => format!("{sacks} sacks from a channel"),
            Err(closed) => closed.to_string(),
        });
        send.send(7).map_err(|_| "nobody listens")?;
        println!("composed: {}", text.await?);

        // `select!`, `timeout` and the like take it as any other future. Dropping it cancels nothing.
        let (_promise, never) = future::promise::<u32, ()>();
        let late = tokio::time::timeout(Duration::from_millis(10), never).await;
        println!(
            "one deadline for both: {}",
            if late.is_err() { "late" } else { "in time" }
        );
        Ok::<_, Box<dyn Error>>(())
    })
}
