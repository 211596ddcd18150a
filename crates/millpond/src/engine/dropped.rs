//! Events about detached tasks that an engine accepted and dropped before they ran. (The reports: `executor/dropped`.)
//!
//! A task that is dropped when its turn comes, because its deadline has passed or because it has waited for too long,
//! tells its handle. If it has none, no caller would learn of it. So the engine counts it and emits an event: of the first
//! at once, and of those that follow together, when ten seconds are over or the engine terminates (`executor/dropped`).
//! The numbers in the events add up to the count.
//!
//! The same goes for an accepted task for which no thread could be started after all, and for what a wrapper of the
//! engine, such as a serial executor, drops.

use super::events::EventSource;
use super::metrics::{Counter, Label};
use crate::executor::{DropReports, DroppedTask, ReportDrops, why};
use crate::task::CancelReason;
use crate::time::{Alarm, NoTimerThread, Owner, Work, drop_off_timer};
use millpond_raw::sync::Mutex;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// Detached tasks that a pool accepted and dropped before they ran.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{PoolEvent, ThreadPool};
/// use millpond::task::{CancelReason, TaskSpec};
/// use millpond::time::ManualClock;
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (hand, second) = (ManualClock::new(), Duration::from_secs(1));
/// let (tell, told) = mpsc::channel();
/// let pool = ThreadPool::builder("mill").max(1).clock(hand.clock());
/// let pool = pool.on_event(move |event| drop(tell.send(event.clone()))).build()?;
/// let (go, wait) = mpsc::channel::<()>();
/// pool.execute(move || for () in wait {})?;
/// let hint = TaskSpec::new().name("hint").deadline(hand.clock().deadline(second));
/// pool.execute_with(hint, || println!("of no use in a second"))?;
/// hand.advance(second);
/// drop(go);
/// let PoolEvent::DroppedDetached(report) = told.recv()? else { panic!("nothing else has happened") };
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
    /// The name of the last task, or the place where it was made.
    pub label: Label,
    /// Where the last task was made.
    pub location: &'static Location<'static>,
    /// Why the last task was dropped.
    pub reason: CancelReason,
    /// The number dropped since the last event, this one included.
    pub dropped: u64,
}

impl fmt::Display for DroppedDetached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.pool)?;
        match &self.label {
            Label::Name(name) => write!(f, "`{name}`")?,
            Label::Place(_) | Label::Others => write!(f, "a task made at {}", self.location)?,
        }
        let why = why(self.reason);
        write!(
            f,
            " was dropped before it ran ({why}) and nobody holds its handle"
        )?;
        match self.dropped {
            0 | 1 => Ok(()),
            many => write!(f, "; {many} such tasks since the last event"),
        }
    }
}

/// The detached tasks that an engine has dropped.
pub(crate) struct Drops {
    /// Those that have not been reported.
    reports: Mutex<DropReports>,
    count: Counter,
}

impl Drops {
    pub(crate) fn new() -> Self {
        Drops {
            reports: Mutex::new(DropReports::new()),
            count: Counter::default(),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }
}

/// An engine that reports dropped detached tasks by events.
pub(crate) trait DropSource: EventSource {
    /// Its name.
    fn name(&self) -> &str;

    fn drops(&self) -> &Drops;

    /// The event that reports them.
    fn dropped_detached(report: DroppedDetached) -> Self::Event;

    /// A detached task was dropped before it ran.
    #[cold]
    fn report_dropped(&self, task: DroppedTask) {
        self.drops().count.add(1);
        self.add_dropped(task);
    }
}

impl<S: DropSource> ReportDrops for S {
    fn with_drops<R>(&self, f: impl FnOnce(&mut DropReports) -> R) -> R {
        f(&mut self.drops().reports.lock())
    }

    fn now(&self) -> Instant {
        self.clock().now()
    }

    fn alarm_after(&self, pause: Duration) -> Result<Alarm, NoTimerThread> {
        let bell = Waker::from(Arc::new(Bell(Weak::clone(self.this()))));
        self.clock().alarm(self.clock().deadline(pause), &bell)
    }

    /// The count is taken when the event is made, so an event that waits covers all tasks dropped meanwhile, and no two
    /// of them wait (EVENTS-2).
    fn report(&self) {
        self.emit_always(|source| {
            let taken = source.with_drops(DropReports::take);
            let (task, dropped) = taken.expect("it is counted before it is reported");
            let DroppedTask {
                name,
                location,
                reason,
            } = task;
            let label = name.map_or(Label::Place(location), |name| {
                Label::Name(name.as_str().into())
            });
            S::dropped_detached(DroppedDetached {
                pool: source.name().to_owned(),
                label,
                location,
                reason,
                dropped,
            })
        });
    }
}

/// Rings when the pause after a report is over.
struct Bell<S>(Weak<S>);

impl<S: DropSource> Wake for Bell<S> {
    fn wake(self: Arc<Self>) {
        if let Some(source) = self.0.upgrade() {
            source.pause_is_over();
            drop_off_timer(Owner::of(&*source, Work::Drop), source);
        }
    }
}
