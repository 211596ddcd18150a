//! How do I test a job that runs once a month?
//!
//! ```sh
//! cargo run -p examples --example 25_schedule_test_time
//! ```
//!
//! ```text
//! # A year of invoices
//! days between them: [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
//! # The machine was off for ten weeks
//! runs: 13, the last one 39 days late
//! next in 20 days
//! # Somebody sets the clock back by a day
//! next in 21 days
//! all of this took less than ten seconds: true
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "it shows how little of the real time has passed"
)]

use millpond::executor::{Executor, Rejected, TryExecuteError};
use millpond::schedule::{Cron, Scheduled, ScheduledPool};
use millpond::task::Task;
use millpond::time::{Clock, ManualClock};
use std::convert::Infallible;
use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);

/// Runs tasks in the submitting thread, which is the one that advances the clock. So nothing happens beside the
/// test, and what is due has run when `advance` returns.
#[derive(Debug)]
struct InPlace(Clock);

impl Executor for InPlace {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        task.run();
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }

    fn clock(&self) -> Clock {
        self.0.clone()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let really = Instant::now();
    let hand = ManualClock::new();
    let clock = hand.clock();
    // 31 December 2025, a minute before midnight.
    hand.set_wall(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600 - 60));

    let timers = ScheduledPool::on(InPlace(clock.clone())).build();
    let mut invoices = timers.schedule_cron(Cron::parse("@monthly")?, || ())?;
    hand.advance(Duration::from_secs(60));
    assert_eq!(invoices.runs(), 1);

    println!("# A year of invoices");
    let mut days = Vec::new();
    while invoices.runs() < 12 {
        days.push(days_to_next(&invoices, &clock)?);
        hand.advance(DAY * days[days.len() - 1]);
        assert_eq!(invoices.lateness(), Some(Duration::ZERO));
    }
    days.push(days_to_next(&invoices, &clock)?);
    println!("days between them: {days:?}");

    println!("# The machine was off for ten weeks");
    hand.advance(10 * 7 * DAY);
    let late = invoices.lateness().ok_or("it has run")?;
    println!(
        "runs: {}, the last one {} days late",
        invoices.runs(),
        late.as_secs() / DAY.as_secs()
    );
    println!("next in {} days", days_to_next(&invoices, &clock)?);

    println!("# Somebody sets the clock back by a day");
    hand.set_wall(clock.wall() - DAY);
    // The calendar is looked at once a minute.
    let before = clock.now();
    hand.advance(Duration::from_secs(60));
    let next = invoices.next_run().instant().ok_or("there is a next one")?;
    println!("next in {} days", (next - before).as_secs() / DAY.as_secs());

    let is_fast = really.elapsed() < Duration::from_secs(10);
    println!("all of this took less than ten seconds: {is_fast}");
    Ok(())
}

fn days_to_next(series: &Scheduled<Infallible>, clock: &Clock) -> Result<u32, Box<dyn Error>> {
    let next = series.next_run().instant().ok_or("there is a next one")?;
    Ok(((next - clock.now()).as_secs() / DAY.as_secs()) as u32)
}
