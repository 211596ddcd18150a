//! What the handles of a scheduled pool share: its books, and how what is due comes to the executor.
//! The protocol and its invariants are in the [module](super).

use super::busy::Bodies;
use super::courier::{Bag, Parcel};
use super::desk::Desk;
use super::failure::RunOutcome;
use super::notice::{ScheduleNotice, Then, to_nobody_in_particular};
use super::plan::Now;
use super::sentry::Guard;
use super::series::Series;
use super::ward::Ward;
use crate::executor::{Executor, Lifecycle, NotTaken, RejectReason, Rejected, Watched};
use crate::manage::RunState;
use crate::task::{CancelReason, Task, Witness};
use crate::thread::ThreadFactory;
use crate::time::{
    Alarm, Clock, Deadline, Hold, Key, Owner, Reserved, Wheel, Work, aside, due_since,
    is_timer_thread, let_go,
};
use millpond_raw::fork;
use millpond_raw::quiet;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use millpond_raw::sync::{Mutex, MutexGuard, chaos};
use millpond_raw::user_code::{self, Kind};
use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// So many are taken out of the wheel at a time, under one lock.
const BATCH: usize = 64;

/// So many batches are handed over before others have their turn.
const BATCHES: usize = 16;

/// How long others have their turn, if something is due again as soon as it was handed over.
const BREATH: Duration = Duration::from_micros(100);

/// What is around every run.
pub(super) type Decorator = dyn Fn(&super::RunInfo, &mut dyn FnMut()) + Send + Sync;

/// Who hears notices.
pub(super) type Listener = dyn Fn(&ScheduleNotice) + Send + Sync;

/// Who is ended with the pool.
pub(super) type Below = dyn Lifecycle + Send + Sync;

/// What its handles and its runs share.
pub(super) struct Core {
    pub(super) name: Cow<'static, str>,
    pub(super) clock: Clock,
    pub(super) executor: Arc<dyn Executor>,
    /// The executor again, if it ends with the pool.
    pub(super) below: Option<Arc<Below>>,
    /// Where its books are.
    pub(super) desk: &'static Desk,
    pub(super) bag: Bag,
    pub(super) couriers: Box<dyn ThreadFactory>,
    pub(super) end: Watched<()>,
    pub(super) bodies: Bodies,
    pub(super) counts: Counts,
    /// Whether the executor has said that it is shut down.
    pub(super) is_alone: AtomicBool,
    pub(super) away: Mutex<Away>,
    pub(super) decorator: Option<Box<Decorator>>,
    pub(super) listener: Option<Box<Listener>>,
    /// What instants are counted from where they must be small: the base of the wheel.
    base: Instant,
    /// The generation of the process that it was built in.
    born: u32,
}

/// Tasks that are with an executor that is not ours to stop.
pub(super) struct Away {
    pub(super) tasks: Vec<Witness>,
    /// Whether they have been told to stop: nothing more goes there.
    pub(super) is_stopped: bool,
    /// Whether somebody who has found the pool over lets go of them.
    pub(super) is_let_go: bool,
}

/// How often things happened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) series: AtomicUsize,
    pub(super) failed: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) cancelled: AtomicU64,
}

impl Counts {
    /// A run of a series was no success.
    pub(super) fn note(&self, outcome: &RunOutcome) {
        let count = match outcome {
            RunOutcome::Refused => &self.refused,
            _ => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// What is waiting, and where the pool is in its life. One lock (K1).
pub(super) struct Books {
    pub(super) wheel: Wheel<Entry>,
    pub(super) state: RunState,
    /// `None` from the shutdown on (K2).
    pub(super) ward: Option<Arc<Ward>>,
    /// How many tasks that run once have come in and have not gone unrun: see [`super::ward`].
    pub(super) wards: u64,
    /// For the wards to come (N3).
    pub(super) kept: Vec<Arc<Core>>,
    /// That of the core, for handles, which have no core.
    pub(super) executor: Option<Arc<dyn Executor>>,
    pub(super) is_over: bool,
    pub(super) runs_delayed: bool,
    pub(super) runs_periodic: bool,
    pub(super) most: Option<usize>,
    /// When somebody looks what is due: the alarm rings, or the sentry gets up. Never, if nobody does.
    pub(super) armed: Deadline,
    pub(super) alarm: Option<Alarm>,
    /// When the alarm rings; never, if there is none.
    pub(super) alarm_at: Deadline,
    /// When to look again after a courier; never, mostly.
    pub(super) retry: Deadline,
    /// K9: keeps the timer's thread, from the first task on that needs it.
    pub(super) hold: Option<Hold>,
    /// Who waits for what is due, if it is not the alarm.
    pub(super) guard: Guard,
    /// K3: whether somebody rings, and must look again before it stops.
    pub(super) rings: bool,
    pub(super) again: bool,
    /// How many tasks were cancelled through their handles. Those of all others are in [`Counts`].
    pub(super) cancelled: u64,
    /// The time at the last look.
    pub(super) now: Instant,
    /// Memory for those that are taken out.
    spare: Vec<(Instant, Entry)>,
}

/// What was in the books of a pool that is gone, to be dropped without their lock.
pub(super) struct Closed {
    _wheel: Wheel<Entry>,
    _executor: Option<Arc<dyn Executor>>,
    _alarm: Option<Alarm>,
    _hold: Option<Hold>,
    _spare: Vec<(Instant, Entry)>,
}

/// What waits for its time.
pub(super) enum Entry {
    Once(Task),
    Series(Arc<Series>),
}

/// What a pool is made of.
pub(super) struct Parts {
    pub(super) name: Cow<'static, str>,
    pub(super) clock: Clock,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) below: Option<Arc<Below>>,
    pub(super) couriers: Box<dyn ThreadFactory>,
    pub(super) decorator: Option<Box<Decorator>>,
    pub(super) listener: Option<Box<Listener>>,
    pub(super) most: Option<usize>,
    pub(super) runs_delayed: bool,
    pub(super) runs_periodic: bool,
}

impl Core {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        fork::watch();
        let now = parts.clock.now();
        let desk = Desk::take(|former| Books {
            wheel: match former {
                Some(former) => former.wheel.begin(now),
                None => Wheel::new(now),
            },
            state: RunState::Running,
            ward: None,
            wards: 0,
            kept: Vec::new(),
            executor: Some(Arc::clone(&parts.executor)),
            is_over: false,
            runs_delayed: parts.runs_delayed,
            runs_periodic: parts.runs_periodic,
            most: parts.most,
            armed: Deadline::NEVER,
            alarm: None,
            alarm_at: Deadline::NEVER,
            retry: Deadline::NEVER,
            hold: None,
            guard: Guard::default(),
            rings: false,
            again: false,
            cancelled: 0,
            now,
            spare: Vec::new(),
        });
        let base = desk.books().wheel.base();
        let core = Arc::new(Core {
            name: parts.name,
            clock: parts.clock,
            executor: parts.executor,
            below: parts.below,
            desk,
            bag: Bag::new(),
            couriers: parts.couriers,
            end: Watched::new(()),
            bodies: Bodies::new(),
            counts: Counts::default(),
            is_alone: AtomicBool::new(false),
            away: Mutex::new(Away {
                tasks: Vec::new(),
                is_stopped: false,
                is_let_go: false,
            }),
            decorator: parts.decorator,
            listener: parts.listener,
            base,
            born: fork::generation(),
        });
        let ward = Arc::new(Ward(Arc::clone(&core)));
        core.books().ward = Some(ward);
        core
    }

    #[inline]
    pub(super) fn books(&self) -> MutexGuard<'static, Books> {
        self.desk.books()
    }

    /// The books; `None` in a forked process, where their lock may be held by nobody.
    pub(super) fn live_books(&self) -> Option<MutexGuard<'static, Books>> {
        (!self.is_forked()).then(|| self.books())
    }

    /// Whether the timer and the executor's threads are in the parent of this process.
    pub(super) fn is_forked(&self) -> bool {
        self.born != fork::generation()
    }

    pub(super) fn now(&self) -> Now {
        Now {
            instant: self.clock.now(),
            wall: self.clock.wall(),
        }
    }

    /// A due time in one word; the largest is never.
    pub(super) fn nanos(&self, due: Deadline) -> u64 {
        due_since(self.base, due)
    }

    pub(super) fn instant(&self, nanos: u64) -> Instant {
        let due = self.base.checked_add(Duration::from_nanos(nanos));
        due.unwrap_or(self.base)
    }

    /// K3: hands over what is due, and sets the alarm for what is due next.
    ///
    /// If somebody is at it already, that one looks again.
    pub(super) fn ring(self: &Arc<Self>) {
        // A flood of ours must not keep the timer from others: what is left has an alarm that is due.
        self.ring_for(BATCHES, BATCH, None);
    }

    /// The same: hands over at most so many batches of so many tasks, and sets no alarm that rings earlier
    /// than this. Returns false if somebody else is at it.
    ///
    /// What is handed over may be due again at once, or call for another look (a series of microseconds that is
    /// refused), so the looks that others ask for have the same bound, all together. Then the rest is left to
    /// the alarm, in a [moment](BREATH). A manual clock stands still meanwhile, so there it ends by itself.
    ///
    /// If nobody can be had to ring the alarm (R4 in `time/timer.rs`; K9: only if the timer's thread has died),
    /// what waits is left to whoever rings next: a sentry, a caller, or the timer's thread as soon as there is
    /// one.
    pub(super) fn ring_for(
        self: &Arc<Self>,
        batches: usize,
        batch: usize,
        not_before: Option<Deadline>,
    ) -> bool {
        let mut called = None;
        {
            let mut books = self.books();
            if books.rings {
                books.again = true;
                return false;
            }
            books.rings = true;
        }
        let (mut left, mut early) = (batches * batch, not_before);
        loop {
            for _ in 0..batches {
                if left == 0 {
                    break;
                }
                let handed_over = self.hand_over_some(batch);
                left = left.saturating_sub(handed_over.max(1));
                if handed_over < batch {
                    break;
                }
            }
            let retry = self.courier_looks();
            let mut books = self.books();
            books.retry = retry;
            let due = books.wheel.next().min(retry);
            let next = early.map_or(due, |early| due.max(early));
            // One that rang when it was being replaced has said that none is set; but another is.
            let is_idle = next == Deadline::NEVER && books.alarm.is_some();
            if books.guard.is_manned() {
                // K7
                books.armed = due;
                called = books.guard.call(due).or(called);
                if is_idle {
                    books.alarm_at = Deadline::NEVER;
                    let former = books.alarm.take();
                    drop(books);
                    drop(former);
                    books = self.books();
                }
            } else if !books.again && (books.alarm_at != next || is_idle) {
                // Who comes while it is being set does not count on it: it may be refused.
                (books.armed, books.alarm_at) = (Deadline::NEVER, next);
                let former = books.alarm.take();
                drop(books);
                drop(former);
                chaos::point("schedule.arm");
                // It may ring before this returns.
                let alarm = self.clock.alarm(next, &Waker::from(Arc::clone(self)));
                let is_attended = alarm.is_ok();
                let alarm = alarm.unwrap_or_else(|unattended| unattended.alarm);
                books = self.books();
                books.alarm = (next != Deadline::NEVER).then_some(alarm);
                if !is_attended {
                    books.alarm_at = Deadline::NEVER;
                }
                if !books.guard.is_manned() {
                    // Never, if it has rung meanwhile.
                    books.armed = books.alarm_at;
                }
            }
            if !std::mem::take(&mut books.again) {
                books.rings = false;
                drop(books);
                called.into_iter().for_each(Waker::wake);
                return true;
            }
            drop(books);
            if left == 0 && self.clock.is_manual() {
                left = batches * batch;
            } else if left == 0 && batches > 0 {
                early = early.max(Some(self.clock.deadline(BREATH)));
            }
        }
    }

    /// Takes out at most so many that are due. Returns how many there were.
    fn hand_over_some(self: &Arc<Self>, most: usize) -> usize {
        let now = self.clock.now();
        let (mut batch, _busy) = {
            let mut books = self.books();
            books.again = false;
            books.now = now;
            let mut batch = std::mem::take(&mut books.spare);
            while batch.len() < most {
                let Some(due) = books.wheel.pop_due(now) else {
                    break;
                };
                batch.push(due);
            }
            let busy = (!batch.is_empty()).then(|| self.busy());
            (batch, busy)
        };
        let taken = batch.len();
        for (_, entry) in batch.drain(..) {
            let parcel = match entry {
                Entry::Once(task) => Some(Parcel::once(task)),
                Entry::Series(series) => {
                    let parcel = series.comes_due();
                    // It may be over, and the last of it.
                    let_go(Owner::of(&**self, Work::Drop), series);
                    parcel
                }
            };
            if let Some(parcel) = parcel {
                self.hand_over(parcel);
            }
        }
        self.books().spare = batch;
        taken
    }

    /// Brings a task to the executor, without waiting and without running it here; the courier does what
    /// cannot be done so, and what comes while it has something (K4).
    fn hand_over(self: &Arc<Self>, parcel: Parcel) {
        if parcel.task.is_gone() {
            return aside(Owner::of(&**self, Work::Drop), move || drop(parcel));
        }
        let Some(Parcel { task, is_run }) = self.bag.add_if_busy(parcel) else {
            return;
        };
        if !self.note_away(&task) {
            return self.cancel_late(task);
        }
        let task = match quiet::call(|| self.executor.try_execute(task)) {
            // If it panicked, it has dropped the task.
            None | Some(Ok(())) => return,
            Some(Err(NotTaken::NotAtOnce(task))) => task,
            Some(Err(NotTaken::Refused(refused))) => match is_timer_thread() {
                false => return self.not_taken(refused, is_run),
                // K6: to drop it is the courier's, who asks once more.
                true => refused.task,
            },
        };
        self.note_back(&task);
        if let Some(late) = self.bag.add(Parcel { task, is_run }) {
            self.cancel_late(late.task);
        }
    }

    /// The executor refused a task that was due, and that was not because of a stop.
    pub(super) fn refused(&self, refused: Rejected<Task>, is_run: bool) {
        let Rejected { task, reason, .. } = refused;
        if reason.is_shut_down() || reason.is_forked() {
            self.is_alone.store(true, Ordering::Relaxed);
        }
        let label = label_of(task.name(), task.made_at());
        // The run of a series counts and tells for itself, when it is dropped.
        if task.cancel(CancelReason::Refused) && !is_run {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            self.bag.add_notice(ScheduleNotice {
                pool: self.name.to_string(),
                label,
                outcome: RunOutcome::Refused,
                runs: 0,
                then: Then::Nothing,
            });
        }
    }

    /// Tells who listens, here and now: never on the thread of the timer (K6).
    pub(super) fn tell(&self, notice: &ScheduleNotice) {
        user_code::check(Kind::Listener);
        let _ = quiet::call(|| match &self.listener {
            Some(listener) => listener(notice),
            None => to_nobody_in_particular(notice),
        });
    }

    /// Whether it [remembers](Core::note_away) the tasks that the executor has.
    pub(super) fn has_witnesses(&self) -> bool {
        self.below.is_none()
    }

    /// Remembers a task that an executor has which is not ours to stop. Returns false if the pool has been
    /// stopped: a task that comes after that would not hear of it.
    pub(super) fn note_away(&self, task: &Task) -> bool {
        if self.below.is_some() {
            return true;
        }
        let mut over = Vec::new();
        let mut away = self.away.lock();
        if away.is_stopped {
            return false;
        }
        if away.tasks.len() == away.tasks.capacity() {
            let (gone, there) = away.tasks.drain(..).partition(Witness::is_over);
            (over, away.tasks) = (gone, there);
        }
        away.tasks.push(task.witness());
        drop(away);
        // Not under the lock, and not on the timer's thread: what they have may be the last of a task.
        if !over.is_empty() {
            aside(Owner::of(self, Work::Drop), move || drop(over));
        }
        true
    }
}

impl Core {
    /// A task that was noted is not with the executor: a stop hands it back instead of cancelling it.
    fn note_back(&self, task: &Task) {
        if self.below.is_some() {
            return;
        }
        let mut away = self.away.lock();
        let noted = away.tasks.iter().rposition(|other| other.is_of(task));
        let witness = noted.map(|place| away.tasks.swap_remove(place));
        drop(away);
        drop(witness);
    }
}

/// What a task is called, or where it was made.
pub(super) fn label_of(name: Option<&str>, made_at: &Location<'_>) -> String {
    name.map_or_else(|| format!("the task made at {made_at}"), str::to_owned)
}

/// The alarm rings.
impl Wake for Core {
    fn wake(self: Arc<Self>) {
        // K3: it has rung, so the next one is to be set, whatever it was set for.
        let expected = {
            let mut books = self.books();
            books.alarm_at = Deadline::NEVER;
            if books.guard.is_manned() {
                // K7: it is the sentry's to ring, and to set the next one when it leaves.
                return;
            }
            books.armed = Deadline::NEVER;
            books.guard.expected(&self.clock)
        };
        match expected {
            None => self.ring(),
            Some(back) => {
                self.ring_for(0, 0, Some(back));
            }
        }
        // K6: it may be the last, with all that it has of the user's.
        let_go(Owner::of(&*self, Work::Drop), self);
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Its listener, its decorator and its factory are the user's.
        user_code::check(Kind::Destructor);
        self.desk.give_back();
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Books {
    /// Why nothing more is taken, if so.
    pub(super) fn objection(&self, carried: usize) -> Option<RejectReason> {
        if self.ward.is_none() {
            return Some(RejectReason::ShutDown);
        }
        let (pending, most) = (self.wheel.len() + carried, self.most?);
        (pending >= most).then_some(RejectReason::ScheduleFull { pending, most })
    }

    /// Takes an entry in. Returns whether somebody must [ring](Core::ring) for it.
    pub(super) fn insert(&mut self, due: Deadline, entry: Entry) -> (Key, bool) {
        let nanos = due_since(self.wheel.base(), due);
        let place = self.reserve();
        let key = place.key();
        (key, self.fill(place, due, nanos, entry))
    }

    /// A place for an entry that has to know its key.
    #[inline]
    pub(super) fn reserve(&mut self) -> Reserved {
        self.wheel.reserve(self.now)
    }

    /// Takes an entry in, at a place that was reserved under the same lock; `nanos` is
    /// [how many nanoseconds](Core::nanos) its due time is. Returns whether somebody must ring for it.
    #[inline]
    pub(super) fn fill(
        &mut self,
        place: Reserved,
        due: Deadline,
        nanos: u64,
        entry: Entry,
    ) -> bool {
        self.wheel.fill(place, nanos, entry);
        due < self.armed
    }

    /// The core is being dropped: takes out all that is not gone.
    pub(super) fn close(&mut self) -> Closed {
        Closed {
            _wheel: self.wheel.let_go(),
            _executor: self.executor.take(),
            _alarm: self.alarm.take(),
            _hold: self.hold.take(),
            _spare: std::mem::take(&mut self.spare),
        }
    }

    /// Whether series may go on.
    pub(super) fn lets_series_run(&self) -> bool {
        match self.state {
            RunState::Running => true,
            RunState::ShutDown => self.runs_periodic,
            _ => false,
        }
    }
}
