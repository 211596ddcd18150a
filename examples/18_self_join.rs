//! May a task wait for another task of the same pool?
//!
//! ```sh
//! cargo run -p examples --example 18_self_join
//! ```
//!
//! ```text
//! one worker, and a task that waits for two behind it: 20
//! run inline: 2
//! the baker found a wait cycle: bread, flour
//! the miller got through: no bread, no flour
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::ThreadPool;
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::{self, SharedHandle, TaskError, TaskLabel, TaskSpec};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

type Goods = SharedHandle<String>;

fn main() -> Result<(), Box<dyn Error>> {
    // Yes. The one worker would wait for ever for tasks that only it could run; so it runs what it joins.
    let mill = ThreadPool::builder("mill").core(1).max(1).build()?;
    let own = mill.clone();
    let sum = mill.submit(move || {
        let grind = |sacks: u32| own.submit(move || sacks * 2).expect("there is room");
        let (rye, oats) = (grind(3), grind(7));
        rye.join().unwrap_or(0) + oats.join().unwrap_or(0)
    })?;
    let sum = sum.join()?;
    println!("one worker, and a task that waits for two behind it: {sum}");
    println!("run inline: {}", mill.snapshot().self_joined);
    mill.close()?;

    // But not for a task that waits for it. No pool can help there; the last one to wait gets an error.
    let village = ThreadPool::builder("village").core(2).max(2).build()?;
    let posts = [(), ()].map(|()| Arc::new(FifoQueue::<Goods>::unbounded()));
    let [for_miller, for_baker] = posts.clone();
    let miller = village.submit_with(TaskSpec::new().name("flour"), move || {
        let goods = for_miller.take().expect("it is not interrupted");
        let goods = goods
            .join()
            .map_or_else(|error| error.to_string(), String::clone);
        format!("{goods}, no flour")
    })?;
    let baker = village.submit_with(TaskSpec::new().name("bread"), move || {
        let goods = for_baker.take().expect("it is not interrupted");
        // The miller waits for the bread by now.
        while task::blocked_joins().is_empty() {
            interrupt::sleep(Duration::from_millis(1)).expect("it is not interrupted");
        }
        match goods.join() {
            Err(TaskError::Deadlock(cycle)) => {
                let names = cycle.tasks().iter().filter_map(TaskLabel::name);
                let names: Vec<&str> = names.collect();
                println!("the baker found a wait cycle: {}", names.join(", "));
                String::from("no bread")
            }
            _ => String::from("bread"),
        }
    })?;
    let (miller, baker) = (miller.shared(), baker.shared());
    posts[0].put(baker)?;
    posts[1].put(miller.clone())?;
    println!("the miller got through: {}", miller.join()?);
    village.close()?;
    Ok(())
}
