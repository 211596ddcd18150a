//! How does my pool survive overload?
//!
//! ```sh
//! cargo run -p examples --example 19_overload
//! ```
//!
//! ```text
//! one worker at 150 % load, for two seconds
//! no protection:           300 answers in time, 2699 too late,   0 dropped; half within 500ms
//! deadlines:              2099 answers in time,    0 too late, 900 dropped; half within 100ms
//! deadlines and shedding: 2010 answers in time,    0 too late, 989 dropped; half within 11ms
//! and newest first:       2003 answers in time,    0 too late, 996 dropped; half within 1ms
//! max_queue_wait cannot be 0s: write a duration with its unit (as 20ms, 5s, 1m), at least 1ns, or none (every task that has to wait would be dropped)
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::manage::{CoDel, OverloadOrder};
use millpond::pool::{PoolBuilder, Queue, ThreadPool};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::TaskSpec;
use millpond::time::{Deadline, ManualClock};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long callers wait for an answer before they give up.
const TIMEOUT: Duration = Duration::from_millis(100);
/// How long a request takes.
const WORK: Duration = Duration::from_millis(1);
/// For how long requests arrive.
const LOAD_TIME: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    println!("one worker at 150 % load, for two seconds");
    play("no protection:", false, |pool| pool)?;
    play("deadlines:", true, |pool| pool)?;
    play("deadlines and shedding:", true, |pool| {
        pool.shedding(CoDel::default())
    })?;
    play("and newest first:", true, |pool| {
        pool.shedding(CoDel::default())
            .overload_order(OverloadOrder::NewestFirst)
    })?;

    // The protection is a parameter like any other.
    let pool = ThreadPool::builder("mill").max(1).build()?;
    pool.set_max_queue_wait(TIMEOUT)?;
    let error = pool.set_max_queue_wait(Duration::ZERO).unwrap_err();
    println!("{error}");
    Ok(())
}

/// A pool by a clock that only its tasks move, so that it is the same each time and takes no time.
struct World {
    hand: ManualClock,
    over: Instant,
    has_deadlines: bool,
    /// How long the answers took.
    answers: FifoQueue<Duration>,
}

fn play(
    title: &str,
    has_deadlines: bool,
    shape: impl FnOnce(PoolBuilder) -> PoolBuilder,
) -> Result<(), Box<dyn Error>> {
    let hand = ManualClock::new();
    let pool = ThreadPool::builder("mill").max(1);
    let pool = pool.queue(Queue::bounded(10_000)).clock(hand.clock());
    let pool = shape(pool).build()?;
    let world = Arc::new(World {
        over: hand.clock().now() + LOAD_TIME,
        hand,
        has_deadlines,
        answers: FifoQueue::unbounded(),
    });
    submit(&pool, &world);
    while pool.snapshot().active + pool.snapshot().queued > 0 {
        interrupt::sleep(Duration::from_millis(1))?;
    }
    pool.close()?;
    let last = pool.snapshot();
    let mut answers: Vec<Duration> = std::iter::from_fn(|| world.answers.poll()).collect();
    answers.sort_unstable();
    let in_time = answers.partition_point(|time| *time <= TIMEOUT);
    println!(
        "{title:<23} {in_time:>4} answers in time, {:>4} too late, {:>3} dropped; half within {:?}",
        answers.len() - in_time,
        last.shed + last.expired,
        answers[answers.len() / 2],
    );
    Ok(())
}

/// A request arrives. While it is served the next ones arrive, one or two by turns.
fn submit(pool: &ThreadPool, world: &Arc<World>) {
    let (came, clock) = (world.hand.clock().now(), world.hand.clock());
    let deadline = if world.has_deadlines {
        Deadline::after(came, TIMEOUT)
    } else {
        Deadline::NEVER
    };
    let spec = TaskSpec::new().deadline(deadline).clock(clock.clone());
    let (inside, next) = (Arc::clone(world), pool.clone());
    let body = move || {
        inside.hand.advance(WORK);
        // It has room for all of them.
        let _ = inside.answers.offer(clock.now() - came);
        if clock.now() < inside.over {
            (0..=(inside.answers.len() + 1) % 2).for_each(|_| submit(&next, &inside));
        }
    };
    // The handle is dropped; with one, `join` says why there is no answer.
    drop(pool.submit_with(spec, body));
}
