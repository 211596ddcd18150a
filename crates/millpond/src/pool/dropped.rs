//! Tasks without a handle that the pool had accepted and has dropped: it counts them, and says so.
//!
//! A task that is dropped when its turn comes, because its deadline has passed or because it has waited for
//! too long, tells its handle. If it has none, nobody would ever know. So each is counted
//! (`dropped_detached` in the snapshot), and the pool gives notice: of the first at once, and of those that
//! follow at most once in [`PAUSE`], with their number. Dropping happens in crowds, under overload, and a
//! notice for each would be a load of its own.

use super::engine::Engine;
use super::figures::Label;
use super::notice::Notice;
use crate::executor::DroppedTask;
use crate::task::CancelReason;
use millpond_raw::sync::Mutex;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// How long it is quiet after a notice.
const PAUSE: Duration = Duration::from_secs(10);

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
        let DroppedDetached {
            pool,
            label,
            reason,
            dropped,
            ..
        } = self;
        write!(
            f,
            "{pool}: {label} was accepted without a handle and dropped: {reason}"
        )?;
        match dropped {
            0 | 1 => Ok(()),
            many => write!(f, " ({many} of that kind since the last notice)"),
        }
    }
}

/// How many were dropped since the last notice, and when that was.
#[derive(Debug, Default)]
pub(super) struct DroppedReports {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The tick of the last notice.
    last: Option<u64>,
    dropped: u64,
}

impl Engine {
    /// A task without a handle was dropped unrun.
    #[cold]
    pub(super) fn dropped_detached(self: &Arc<Self>, task: DroppedTask) {
        self.rare.dropped_detached.happened(1);
        let now = self.ticker.now().count();
        let dropped = {
            let mut state = self.dropped.state.lock();
            state.dropped += 1;
            let pause = self.ticker.ticks(PAUSE);
            if state
                .last
                .is_some_and(|last| now.saturating_sub(last) < pause)
            {
                return;
            }
            state.last = Some(now);
            std::mem::take(&mut state.dropped)
        };
        let DroppedTask {
            name,
            made_at,
            reason,
        } = task;
        let label = name.map_or(Label::Place(made_at), |name| {
            Label::Name(name.as_str().into())
        });
        let report = DroppedDetached {
            pool: self.name.to_string(),
            label,
            made_at,
            reason,
            dropped,
        };
        self.tell(move |_| Notice::DroppedDetached(Box::new(report)));
    }
}
