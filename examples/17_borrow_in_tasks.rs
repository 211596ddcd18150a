//! How do tasks borrow what I have, without a copy or an `Arc`?
//!
//! ```sh
//! cargo run -p examples --example 17_borrow_in_tasks
//! ```
//!
//! ```text
//! the heaviest sack: barley, 31 kg
//! after drying, in place: [27, 22, 30]
//! the first leak found: sluice; the search ends
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ScopeError, ThreadPerTask};
use millpond::interrupt;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let threads = ThreadPerTask::builder("mill", 8).build()?;
    let names = ["rye", "oats", "barley"];
    let mut weights = vec![28, 23, 31];

    // Two tasks read what is ours. Values may borrow, too: this one is a piece of `names`.
    let (name, weight) = threads
        .scope(|s| {
            let heaviest = s.submit(|| {
                let sacks = names.iter().zip(&weights);
                sacks.max_by_key(|(_, weight)| **weight)
            })?;
            let total = s.submit(|| weights.iter().sum::<u32>())?;
            assert_eq!(total.join()?, 82);
            Ok::<_, ScopeError>(heaviest.join()?)
        })?
        .ok_or("no sacks")?;
    println!("the heaviest sack: {name}, {weight} kg");

    // Each changes its own part. When the scope returns, all of them have ended.
    threads.scope(|s| {
        for weight in &mut weights {
            s.execute(|| *weight -= 1)?;
        }
        Ok::<_, ScopeError>(())
    })?;
    println!("after drying, in place: {weights:?}");

    // Tasks of one search: the one that finds something cancels the rest.
    let places = ["roof", "sluice", "wheel"];
    let found = threads.scope(|s| {
        let search = |place| match place {
            "sluice" => {
                s.cancel_rest();
                Some(place)
            }
            // An hour, unless another task has found it.
            _ => interrupt::sleep(Duration::from_secs(3600))
                .map(|()| place)
                .ok(),
        };
        let searches = places.map(|place| s.submit(move || search(place)));
        let mut found = Vec::new();
        for search in searches {
            // Rejected, if it came after the leak was found.
            let Ok(search) = search else { continue };
            found.extend(search.join().ok().flatten());
        }
        found
    });
    println!(
        "the first leak found: {}; the search ends",
        found.join(", ")
    );

    threads.close()?;
    Ok(())
}
