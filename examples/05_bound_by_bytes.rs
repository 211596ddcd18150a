//! How do I bound a queue by bytes?
//!
//! ```sh
//! cargo run -p examples --example 05_bound_by_bytes
//! ```
//!
//! ```text
//! 3 requests, 10 bytes of 10
//! "cake" comes back: the queue has no room now
//! after one is taken: 4 bytes free
//! "pumpernickel" comes back: an element of weight 12 can never fit into a queue bounded by 10: split it or raise the bound
//! ```

#![forbid(unsafe_code)]

use millpond::queue::{BlockingQueue, OfferError, WeightedQueue};
use std::error::Error;

fn report(rejected: OfferError<String>) {
    println!("{:?} comes back: {}", rejected.element, rejected.reason);
}

fn main() -> Result<(), Box<dyn Error>> {
    let requests = WeightedQueue::bounded(10, |request: &String| request.len() as u64)?;
    for request in ["rye!", "oats", "ok"] {
        requests.put(request.to_owned())?;
    }
    let (count, weight, bound) = (requests.len(), requests.weight(), requests.bound());
    println!("{count} requests, {weight} bytes of {bound}");

    if let Err(rejected) = requests.offer("cake".to_owned()) {
        report(rejected);
    }
    requests.take()?;
    println!(
        "after one is taken: {} bytes free",
        requests.remaining_capacity()
    );

    // An element that can never fit is not waited for, not even by `put`.
    if let Err(rejected) = requests.put("pumpernickel".to_owned()) {
        report(rejected);
    }
    Ok(())
}
