//! Tasks without a handle that the pool had accepted and has dropped: it counts them, and says so.
//!
//! A task that is dropped when its turn comes, because its deadline has passed or because it has waited for
//! too long, tells its handle. If it has none, nobody would ever know. So each is counted
//! (`dropped_detached` in the snapshot), and the pool gives notice: of the first at once, and of those that
//! follow together, when ten seconds are over or the pool terminates ([`DropTally`]). What the notices tell adds
//! up to the count.
//!
//! The same goes for a task that was accepted and for which no thread could be started after all, and for
//! what a wrapper of the pool, such as a serial executor, drops.

use super::engine::Engine;
use super::figures::Label;
use super::notice::Notice;
use crate::executor::{DropTally, DroppedTask, Step, why};
use crate::task::CancelReason;
use crate::time::Alarm;
use millpond_raw::sync::Mutex;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

/// Tasks that a pool had accepted without a handle, and has dropped unrun.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Notice, ThreadPool};
/// use millpond::task::{CancelReason, TaskSpec};
/// use millpond::time::ManualClock;
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (hand, second) = (ManualClock::new(), Duration::from_secs(1));
/// let (tell, told) = mpsc::channel();
/// let pool = ThreadPool::builder("mill").max(1).clock(hand.clock());
/// let pool = pool.on_notice(move |notice| drop(tell.send(notice.clone()))).build()?;
/// let (go, wait) = mpsc::channel::<()>();
/// pool.run(move || for () in wait {})?;
/// let hint = TaskSpec::new().name("hint").deadline(hand.clock().deadline(second));
/// pool.run_spec(hint, || println!("of no use in a second"))?;
/// hand.advance(second);
/// drop(go);
/// let Notice::DroppedDetached(report) = told.recv()? else { panic!("nothing else has happened") };
/// assert_eq!((report.label.to_string().as_str(), report.dropped), ("hint", 1));
/// assert_eq!(report.reason, CancelReason::Expired);
/// pool.close()?;
/// assert_eq!(pool.snapshot().dropped_detached, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DroppedDetached {
    /// The name of the pool.
    pub pool: String,
    /// The name of the last one, or the place where it was made.
    pub label: Label,
    /// Where the last one was made.
    pub made_at: &'static Location<'static>,
    /// Why the last one was dropped.
    pub reason: CancelReason,
    /// How many were dropped since the last notice, this one included.
    pub dropped: u64,
}

impl fmt::Display for DroppedDetached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.pool)?;
        match &self.label {
            Label::Name(name) => write!(f, "`{name}`")?,
            Label::Place(_) | Label::Others => write!(f, "a task made at {}", self.made_at)?,
        }
        let why = why(self.reason);
        write!(
            f,
            " was dropped before it ran ({why}) and nobody holds its handle"
        )?;
        match self.dropped {
            0 | 1 => Ok(()),
            many => write!(f, "; {many} such tasks since the last notice"),
        }
    }
}

/// Those of which no notice has been given yet.
#[derive(Debug)]
pub(super) struct DroppedReports {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tally: DropTally,
    alarm: Option<Alarm>,
}

impl Default for DroppedReports {
    fn default() -> Self {
        DroppedReports {
            state: Mutex::new(State {
                tally: DropTally::new(),
                alarm: None,
            }),
        }
    }
}

impl Engine {
    /// A task without a handle was dropped unrun.
    #[cold]
    pub(super) fn dropped_detached(&self, task: DroppedTask) {
        self.rare.dropped_detached.happened(1);
        let now = self.clock.now();
        let step = self.dropped.state.lock().tally.add(task, now);
        self.go_on_telling(step);
    }

    fn go_on_telling(&self, step: Step) {
        match step {
            Step::Wait => {}
            Step::SetAlarm(left) => self.tell_of_dropped_in(left),
            Step::Tell => self.tell_of_dropped(),
        }
    }

    /// The pause may be over: tells of those that were dropped in it.
    pub(super) fn tell_the_rest_of_dropped(&self) {
        let now = self.clock.now();
        let step = self.dropped.state.lock().tally.flush(now);
        self.go_on_telling(step);
    }

    /// The pool ends: what was dropped before is told now, and what is dropped later at once.
    pub(super) fn tell_the_last_of_dropped(&self) {
        let now = self.clock.now();
        let (is_due, alarm) = {
            let mut state = self.dropped.state.lock();
            (state.tally.end(now), state.alarm.take())
        };
        drop(alarm);
        if is_due {
            self.tell_of_dropped();
        }
    }

    fn tell_of_dropped_in(&self, left: Duration) {
        let alarm = self.notice_alarm(left).unwrap_or_else(|unattended| {
            self.dropped.state.lock().tally.alarm_failed();
            unattended.alarm
        });
        let former = self.dropped.state.lock().alarm.replace(alarm);
        drop(former);
    }

    /// The count is taken when the notice is made, so one that waits to be told tells of all that come
    /// meanwhile; and there is never more than one that waits.
    fn tell_of_dropped(&self) {
        self.tell_in_any_case(|engine| {
            let taken = engine.dropped.state.lock().tally.take();
            let (task, dropped) = taken.expect("it is counted before it is told");
            let DroppedTask {
                name,
                made_at,
                reason,
            } = task;
            let label = name.map_or(Label::Place(made_at), |name| {
                Label::Name(name.as_str().into())
            });
            Notice::DroppedDetached(Box::new(DroppedDetached {
                pool: engine.name.to_string(),
                label,
                made_at,
                reason,
                dropped,
            }))
        });
    }
}
