//! What happens to a series when a run takes too long, or fails?
//!
//! ```sh
//! cargo run -p examples --example 23_schedule_series
//! ```
//!
//! ```text
//! # The first run takes longer than five periods
//! Catchup::All: the next ones are for periods 1, 2, 3
//! Catchup::Skip: the next one is for period 6 or later, and on the beat
//! Catchup::Delay: the next one is for period 6 or later, and off the beat
//! # The first run takes until five others are skipped
//! Overlap::Skip: the next one is for period 6 or later
//! # A run fails
//! event: mill: run 1 of pump failed: no water; it is tried again in 2ms
//! event: mill: run 2 of pump failed: no water; it is tried again in 4ms
//! join: it works, at try 3
//! event: mill: run 1 of dam panicked: it broke; the series has ended
//! join: the task panicked: it broke
//! ```

#![forbid(unsafe_code)]

use millpond::interrupt::{self, Interrupted};
use millpond::pool::ThreadPool;
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::schedule::{Backoff, Catchup, Every, OnFailure, Overlap, ScheduledPool};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    println!("# The first run takes longer than five periods");
    let all = due_times(Overlap::Queue, Catchup::All, takes_long)?;
    let periods: Vec<_> = all.iter().map(|due| due.as_millis() / 10).collect();
    println!(
        "Catchup::All: the next ones are for periods {}, {}, {}",
        periods[0], periods[1], periods[2]
    );
    for catchup in [Catchup::Skip, Catchup::Delay] {
        let next = due_times(Overlap::Queue, catchup, takes_long)?[0];
        assert!(next >= 6 * PERIOD);
        let is_on_beat = next.as_nanos() % PERIOD.as_nanos() == 0;
        let beat = if is_on_beat { "on" } else { "off" };
        println!(
            "Catchup::{catchup:?}: the next one is for period 6 or later, and {beat} the beat"
        );
    }

    println!("# The first run takes until five others are skipped");
    let next = due_times(Overlap::Skip, Catchup::All, |timers| {
        while timers.snapshot().skipped < 5 {
            interrupt::sleep(PERIOD / 2)?;
        }
        Ok(())
    })?[0];
    assert!(next >= 6 * PERIOD);
    println!("Overlap::Skip: the next one is for period 6 or later");

    println!("# A run fails");
    failures()
}

type Timers = ScheduledPool<ThreadPool>;
type DueTimes = Arc<FifoQueue<Instant>>;

fn takes_long(_: &Timers) -> Result<(), Interrupted> {
    interrupt::sleep(5 * PERIOD + PERIOD / 2)
}

/// A series whose first run takes its time: for when the next three runs were due, counted from the first.
fn due_times(
    overlap: Overlap,
    catchup: Catchup,
    first_run: fn(&Timers) -> Result<(), Interrupted>,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    let (timers, due) = pool_that_records()?;
    let own = timers.clone();
    let mut run = 0;
    let series = timers
        .series(Every::rate(PERIOD))
        .overlap(overlap)
        .catchup(catchup)
        .start(move || {
            run += 1;
            match run {
                1 => first_run(&own).map(ControlFlow::Continue),
                4 => Ok(ControlFlow::Break(())),
                _ => Ok(ControlFlow::Continue(())),
            }
        })?;
    let first = due.take()?;
    series.join()?;
    let next = std::iter::from_fn(|| due.poll());
    Ok(next.map(|due| due - first).collect())
}

/// A pool with a decorator: something that is around every run.
fn pool_that_records() -> Result<(Timers, DueTimes), Box<dyn Error>> {
    let due_times = Arc::new(FifoQueue::unbounded());
    let record = Arc::clone(&due_times);
    let timers = ScheduledPool::owning(ThreadPool::builder("mill").core(1).build()?)
        .decorator(move |info, run| {
            let _ = record.offer(info.due);
            run();
        })
        .build();
    Ok((timers, due_times))
}

fn failures() -> Result<(), Box<dyn Error>> {
    // Events come on a thread of their own.
    let (tell, told) = mpsc::channel();
    let timers = ScheduledPool::owning(ThreadPool::builder("mill").core(1).max(1).build()?)
        .name("mill")
        .on_event(move |event| drop(tell.send(event.to_string())))
        .build();

    let backoff = Backoff::starting_at(Duration::from_millis(2)).tries(5);
    let mut tries = 0;
    let pump = timers
        .series(Every::rate(PERIOD))
        .name("pump")
        .on_failure(OnFailure::Retry(backoff))
        .start(move || {
            tries += 1;
            match tries {
                3 => Ok(ControlFlow::Break(tries)),
                _ => Err("no water"),
            }
        })?;
    println!("event: {}", told.recv()?);
    println!("event: {}", told.recv()?);
    println!("join: it works, at try {}", pump.join()?);

    // By default the first failure ends the series; but not silently.
    // (The usual message of a panic is not wanted here.)
    std::panic::set_hook(Box::new(|_| {}));
    let dam = timers
        .series(Every::delay(PERIOD))
        .name("dam")
        .start(|| -> () { panic!("it broke") })?;
    println!("event: {}", told.recv()?);
    println!("join: {}", dam.join().unwrap_err());
    Ok(())
}
