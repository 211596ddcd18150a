//! How do I ask several at once, and go on without the one that is late?
//!
//! ```sh
//! cargo run -p examples --example 34_fan_out_with_fallback
//! ```
//!
//! ```text
//! north: 7 sacks
//! south: the last price was 5 sacks (no wind)
//! west: the last price was 4 sacks (late)
//! together: 16 sacks
//! ```

#![forbid(unsafe_code)]

use millpond::executor::Lifecycle;
use millpond::future::{self, Completable, CompletionError};
use millpond::preset;
use std::error::Error;
use std::time::Duration;

struct Answer {
    text: String,
    sacks: u32,
}

/// What is known of a mill when it does not answer.
fn fallback(name: &str, sacks: u32, failure: &CompletionError<&'static str>) -> Answer {
    let why = if failure.is_timed_out() {
        "late"
    } else {
        failure.error().unwrap_or(&"?")
    };
    Answer {
        text: format!("{name}: the last price was {sacks} sacks ({why})"),
        sacks,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let callers = preset::single("callers").build()?;
    // The west mill never answers: nobody completes its promise.
    let (_never, west) = future::promise();
    let north = Completable::try_supply_on(&callers, || Ok(7))?;
    let south = Completable::try_supply_on(&callers, || Err("no wind"))?;

    let mills = [("north", north, 6), ("south", south, 5), ("west", west, 4)];
    let answers = mills.map(|(name, answer, last)| {
        // Each has its own limit, and its own fallback.
        let late = if name == "west" {
            Duration::from_millis(20)
        } else {
            Duration::from_secs(60)
        };
        answer
            .or_timeout(late)
            .map(move |sacks: u32| Answer {
                text: format!("{name}: {sacks} sacks"),
                sacks,
            })
            .recover(move |failure| fallback(name, last, &failure))
    });

    // Complete when all are; none of them can fail any more.
    let answers = future::all_of(answers).join()?;
    for answer in &answers {
        println!("{}", answer.text);
    }
    let sum: u32 = answers.iter().map(|answer| answer.sacks).sum();
    println!("together: {sum} sacks");
    callers.close()?;
    Ok(())
}
