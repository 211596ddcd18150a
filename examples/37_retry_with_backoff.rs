//! How do I try again, later and later, without a thread that waits?
//!
//! ```sh
//! cargo run -p examples --example 37_retry_with_backoff
//! ```
//!
//! ```text
//! attempt 1: no wind, again in 10ms
//! attempt 2: no wind, again in 20ms
//! attempt 3: no wind, again in 40ms
//! attempt 4: 7 sacks
//! given up: no water
//! ```

#![forbid(unsafe_code)]

use millpond::future::{self, Completable, DefaultExecutor};
use std::time::Duration;

type Attempt = fn(u32) -> Result<u32, &'static str>;

/// Tries, and after a failure tries again. Between two attempts there is an alarm and nothing else.
fn retry(attempt: Attempt, number: u32, pause: Duration) -> Completable<u32, &'static str> {
    // The first pause is none.
    let wait = if number == 1 { Duration::ZERO } else { pause };
    let later = future::delayed(&DefaultExecutor, wait);
    let tried = match Completable::try_supply_on(&later, move || attempt(number)) {
        Ok(tried) => tried,
        Err(_) => return Completable::failed("the process is out of threads"),
    };
    tried.or_else(move |failure| {
        let next = if number == 1 { pause } else { pause * 2 };
        match failure.error() {
            // Only what may pass is worth another attempt.
            Some(&"no wind") if number < 5 => {
                println!("attempt {number}: no wind, again in {next:?}");
                retry(attempt, number + 1, next)
            }
            Some(error) => Completable::failed(*error),
            None => Completable::failed("it has panicked"),
        }
    })
}

fn main() {
    let windy: Attempt = |number| if number < 4 { Err("no wind") } else { Ok(7) };
    let flour = retry(windy, 1, Duration::from_millis(10));
    // One limit for all attempts together.
    match flour.or_timeout(Duration::from_secs(60)).join() {
        Ok(sacks) => println!("attempt 4: {sacks} sacks"),
        Err(failure) => println!("no flour: {failure}"),
    }

    let dry = retry(|_| Err("no water"), 1, Duration::from_millis(10));
    match dry.join() {
        Ok(sacks) => println!("{sacks} sacks"),
        Err(failure) => println!("given up: {}", failure.error().unwrap_or(&"?")),
    }
}
