//! Time: clocks, and deadlines that saturate.
//!
//! Take a [`ManualClock`] for tests: an hour passes when you say so.
//!
//! ```
//! use millpond::preset;
//! use millpond::schedule::ScheduledPool;
//! use millpond::time::ManualClock;
//! use std::time::Duration;
//!
//! let hand = ManualClock::new();
//! let workers = preset::single("mill").clock(hand.clock()).build()?;
//! let timers = ScheduledPool::owning(workers).build();
//! let flour = timers.schedule(Duration::from_secs(3600), || "flour")?;
//! hand.advance(Duration::from_secs(3600));
//! assert_eq!(flour.join()?, "flour");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All of millpond asks a [`Clock`], never the operating system: on a manual clock
//! tests of time-outs are exact and take no time, and a simulation runs at its own speed.

// | file | what |
// |---|---|
// | `clock` | the Time seam: the system's clock and the manual one |
// | `wall` | the time of day, and steps of it |
// | `deadline` | a point in time, or never |
// | `timestamp_clock` | cheap readings for metrics, and 48-bit timestamps |
// | `alarm` | calling a waker at a time, by any clock |
// | `timer` | the alarms of a clock and the thread that fires them |
// | `min_sleep` | the shortest sleep of a thread that waits for due times |
// | `wheel` | entries that wait for a time: a timing wheel in front of a heap |
// | `deferred` | work that is moved off the timer's thread |
// | `thread_hold` | the threads that something depends on which waits for its time |

mod alarm;
mod clock;
mod deadline;
mod deferred;
#[cfg(test)]
mod measure;
mod min_sleep;
mod thread_hold;
mod timer;
mod timestamp_clock;
mod wall;
mod wheel;

pub(crate) use alarm::{Alarm, NoTimerThread};
pub use clock::{Clock, ManualClock};
pub use deadline::Deadline;
pub(crate) use deferred::{Owner, ReserveHold, Work, drop_off_timer, hold_reserve, run_off_timer};
pub(crate) use thread_hold::ThreadHold;
pub(crate) use timer::{TimerHold, is_timer_thread};
pub(crate) use timestamp_clock::{ShortTimestamp, TimestampClock};
pub(crate) use wheel::{Key, ReservedEntry, Wheel, due_since};
