//! The courier: a thread that brings tasks to an executor that may let it wait.
//!
//! Whoever rings must not wait and must not run tasks: other pools' timers are behind it. If the
//! executor cannot take a task at once, because it would let its bringer wait for room or run the
//! task, the task goes into the bag, and the courier brings it. From then on everything that becomes
//! due goes through the bag until it is empty, so that the order stays.
//!
//! It also tells of what was refused, because hooks are the user's.
//!
//! The courier is started when it is first needed and stays until the pool is over. If its thread cannot
//! be started, what is in the bag stays there, and whoever rings next tries again, soon
//! ([`RETRY`]): nothing is lost.
//!
//! # Stopping it
//!
//! A stop seals the bag, takes out what is in it, and has to have what the courier carries, too:
//!
//! - The courier brings under an interrupt token of its own, which the stop sets when the bag is sealed. So an
//!   executor's wait for room ends, and the task comes back as refused.
//! - What comes back after the seal was not refused, but stopped: it goes to the stop, which waits for it.
//! - The stop does not wait for a body: an executor may run the task in the courier's thread. A task that has
//!   begun says so ([`begins`](Core::begins)), and is past handing back.
//! - An executor that ignores interrupts cannot hold the stop for longer than [`PATIENCE`]. Then the stop goes
//!   without the task, which is cancelled if it comes back later. A stop that is called by the courier's own
//!   thread, by a handler that the executor asks, does not wait at all.

use super::core::Core;
use super::notice::ScheduleNotice;
use crate::executor::{Rejected, Watched};
use crate::interrupt;
use crate::task::{CancelReason, Task, Witness};
use crate::time::{Deadline, Owner, Work, aside, is_timer_thread};
use millpond_raw::park::{self, Site};
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::{self, ThreadId};
use millpond_raw::task::Token;
use millpond_raw::user_code::{self, Kind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// When to try again to start a courier.
const RETRY: Duration = Duration::from_millis(100);

/// How long a stop waits for an executor to give back what the courier is bringing.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many notices may wait for the courier.
const MOST_NOTICES: usize = 1_000;

/// A task on its way to the executor.
pub(super) struct Parcel {
    pub(super) task: Task,
    /// Whether it is a run of a series.
    pub(super) is_run: bool,
}

impl Parcel {
    pub(super) fn once(task: Task) -> Self {
        Parcel {
            task,
            is_run: false,
        }
    }
}

/// What the courier has to bring.
pub(super) struct Bag {
    inside: Mutex<Inside>,
    /// How many are in it; for those who only want to know.
    len: AtomicUsize,
    /// Under which the courier brings tasks; a stop sets it.
    token: Token,
    /// Where a stop waits for what the courier carries.
    returns: Watched<()>,
}

struct Inside {
    parcels: VecDeque<Parcel>,
    /// What is to be told: who rings must not call a hook of the user's.
    notices: VecDeque<ScheduleNotice>,
    /// What it is on its way with.
    carries: Option<Carried>,
    /// Whether a stop waits for that.
    is_awaited: bool,
    /// What has come back for that stop.
    returned: Vec<Task>,
    courier: OnDuty,
    /// Whether somebody asks the factory for a thread, and will see what came of it.
    is_asked_for: bool,
    /// The pool was stopped, or is over: nothing more comes in.
    is_sealed: bool,
    /// The pool is over, and the courier may go.
    is_closed: bool,
}

/// A task that the courier is bringing to the executor.
struct Carried {
    witness: Witness,
    /// The courier's.
    thread: ThreadId,
}

/// What a stop takes out of the bag.
pub(super) struct Emptied {
    pub(super) parcels: VecDeque<Parcel>,
    /// Where the task is that the courier carries, if the caller is to [wait](Core::await_courier) for it.
    pub(super) awaited: Option<usize>,
}

enum OnDuty {
    Nobody,
    /// Its thread is being started.
    Expected,
    Works,
    /// It has nothing to do; what wakes it.
    Rests(Waker),
}

impl Bag {
    pub(super) fn new() -> Self {
        Bag {
            inside: Mutex::new(Inside {
                parcels: VecDeque::new(),
                notices: VecDeque::new(),
                carries: None,
                is_awaited: false,
                returned: Vec::new(),
                courier: OnDuty::Nobody,
                is_asked_for: false,
                is_sealed: false,
                is_closed: false,
            }),
            len: AtomicUsize::new(0),
            token: Token::new(),
            returns: Watched::new(()),
        }
    }

    /// How many wait in it.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Puts it in; if nothing more comes in, gives it back.
    pub(super) fn add(&self, parcel: Parcel) -> Option<Parcel> {
        let mut inside = self.inside.lock();
        if inside.is_sealed {
            return Some(parcel);
        }
        self.put(&mut inside, parcel);
        None
    }

    fn put(&self, inside: &mut Inside, parcel: Parcel) {
        inside.parcels.push_back(parcel);
        self.len.store(inside.parcels.len(), Ordering::Relaxed);
    }

    fn take(&self, inside: &mut Inside) -> Option<Parcel> {
        let parcel = inside.parcels.pop_front();
        self.len.store(inside.parcels.len(), Ordering::Relaxed);
        parcel
    }

    /// Lets the courier tell this. If it is far behind, what is refused is only counted.
    pub(super) fn add_notice(&self, notice: ScheduleNotice) {
        let mut inside = self.inside.lock();
        if inside.notices.len() < MOST_NOTICES {
            inside.notices.push_back(notice);
        }
    }

    /// Takes the parcel if others are before it; otherwise gives it back.
    pub(super) fn add_if_busy(&self, parcel: Parcel) -> Option<Parcel> {
        let mut inside = self.inside.lock();
        if inside.is_sealed || (inside.parcels.is_empty() && inside.carries.is_none()) {
            return Some(parcel);
        }
        self.put(&mut inside, parcel);
        None
    }

    /// A stop takes everything out, and nothing more comes in. The courier, if it is on its way, is told to come
    /// back.
    pub(super) fn empty(&self) -> Emptied {
        let mut inside = self.inside.lock();
        inside.is_sealed = true;
        self.len.store(0, Ordering::Relaxed);
        let parcels = std::mem::take(&mut inside.parcels);
        let carried = inside.carries.as_ref();
        let carries = carried.is_some();
        // If another stop waits for it already, it is that one's.
        let awaited = carried
            .filter(|carried| !inside.is_awaited && carried.thread != thread::current().id())
            .map(|carried| carried.witness.address());
        inside.is_awaited |= awaited.is_some();
        drop(inside);
        if carries {
            self.token.set();
        }
        Emptied { parcels, awaited }
    }

    /// Whether the pool was stopped, or is over.
    fn is_sealed(&self) -> bool {
        self.inside.lock().is_sealed
    }

    /// Gives a task to the stop that waits for the courier; if there is none, gives it back.
    fn return_to_stop(&self, task: Task) -> Option<Task> {
        let mut inside = self.inside.lock();
        if !inside.is_awaited {
            return Some(task);
        }
        inside.returned.push(task);
        None
    }

    /// Whether nothing that the courier carries can still come back unbegun.
    fn has_no_more_to_return(&self) -> bool {
        let inside = self.inside.lock();
        let carried = inside.carries.as_ref();
        carried.is_none_or(|carried| carried.witness.is_claimed())
    }

    /// The courier carries nothing any more.
    fn lay_down(&self) {
        let mut inside = self.inside.lock();
        let carried = inside.carries.take();
        let is_awaited = inside.is_awaited;
        drop(inside);
        if is_awaited {
            self.look_again();
        }
        // Not under the lock: it may be the last of a task.
        drop(carried);
    }

    /// Lets a stop that waits look again.
    #[cold]
    pub(super) fn look_again(&self) {
        self.returns.change(|()| ());
    }

    /// The pool is over. What is left of tasks that were cancelled in here goes, too (K2: nothing else is).
    pub(super) fn close(&self) {
        let mut inside = self.inside.lock();
        (inside.is_closed, inside.is_sealed) = (true, true);
        self.len.store(0, Ordering::Relaxed);
        let gone = std::mem::take(&mut inside.parcels);
        let rests = inside.rouse();
        drop(inside);
        debug_assert!(gone.iter().all(|parcel| parcel.task.is_gone()));
        drop(gone);
        rests.into_iter().for_each(Waker::wake);
    }
}

impl Inside {
    /// Who is to be woken, if the courier rests.
    fn rouse(&mut self) -> Option<Waker> {
        match std::mem::replace(&mut self.courier, OnDuty::Works) {
            OnDuty::Rests(waker) => Some(waker),
            other => {
                self.courier = other;
                None
            }
        }
    }
}

impl Core {
    /// Sees to it that somebody brings what is in the bag. Returns when to look again because nobody could
    /// be had.
    pub(super) fn courier_looks(self: &Arc<Self>) -> Deadline {
        {
            let mut inside = self.bag.inside.lock();
            if inside.parcels.is_empty() && inside.notices.is_empty() {
                return Deadline::NEVER;
            }
            if let Some(rests) = inside.rouse() {
                drop(inside);
                rests.wake();
                return Deadline::NEVER;
            }
            match inside.courier {
                OnDuty::Nobody => inside.courier = OnDuty::Expected,
                _ => return Deadline::NEVER,
            }
            inside.is_asked_for = true;
        }
        let duty = Duty {
            core: Arc::clone(self),
            is_over: false,
        };
        if !is_timer_thread() {
            return self.start_courier(duty);
        }
        // K6: the factory is the user's.
        let core = Arc::clone(self);
        aside(Owner::of(&**self, Work::Start), move || {
            if core.start_courier(duty) != Deadline::NEVER {
                core.ring();
            }
        });
        Deadline::NEVER
    }

    /// For a stop that the bag told to wait: what has come back of what the courier carried.
    pub(super) fn await_courier(&self) -> Vec<Task> {
        self.bodies.tell_who_begins();
        let bag = &self.bag;
        let site = Site::new("schedule.shutdown_now");
        let deadline = self.clock.deadline(PATIENCE);
        let returned = |(): &mut ()| bag.has_no_more_to_return().then_some(());
        // A task that stops a pool and is interrupted meanwhile has what is handed back all the same. When time
        // is up it goes on without.
        let _ =
            interrupt::uninterruptible(|| bag.returns.wait(site, &self.clock, deadline, returned));
        let mut inside = bag.inside.lock();
        inside.is_awaited = false;
        std::mem::take(&mut inside.returned)
    }

    /// A task did not get to the executor, because the pool was stopped: it is the stop's, if that still waits.
    fn comes_back(&self, task: Task) {
        if let Some(late) = self.bag.return_to_stop(task) {
            late.cancel(CancelReason::ShutDown);
        }
    }

    /// The executor would not have a task that was due.
    pub(super) fn not_taken(&self, refused: Rejected<Task>, is_run: bool) {
        match self.bag.is_sealed() {
            true => self.comes_back(refused.task),
            false => self.refused(refused, is_run),
        }
    }

    /// Returns when to look again because it could not be had.
    fn start_courier(&self, duty: Duty) -> Deadline {
        // A refusal drops the body, and with it the duty; so does a panic of the factory.
        user_code::check(Kind::Factory);
        let _ = quiet::call(|| self.couriers.start(Box::new(move || duty.carry())));
        let mut inside = self.bag.inside.lock();
        inside.is_asked_for = false;
        // One that has come, done its work and gone, because the pool is over, is nobody, too.
        let is_needed = !inside.parcels.is_empty() || !inside.notices.is_empty();
        match inside.courier {
            OnDuty::Nobody if is_needed => self.clock.deadline(RETRY),
            _ => Deadline::NEVER,
        }
    }
}

/// Being the courier, or about to become it.
struct Duty {
    core: Arc<Core>,
    is_over: bool,
}

impl Duty {
    fn carry(mut self) {
        let here = park::current();
        self.core.bag.inside.lock().courier = OnDuty::Works;
        loop {
            let mut inside = self.core.bag.inside.lock();
            if let Some(parcel) = self.core.bag.take(&mut inside) {
                inside.carries = Some(Carried {
                    witness: parcel.task.witness(),
                    thread: thread::current().id(),
                });
                inside.courier = OnDuty::Works;
                let _busy = self.core.busy();
                drop(inside);
                self.bring(parcel);
                self.core.bag.lay_down();
                continue;
            }
            if let Some(notice) = inside.notices.pop_front() {
                inside.courier = OnDuty::Works;
                drop(inside);
                self.core.tell(&notice);
                continue;
            }
            if inside.is_closed {
                inside.courier = OnDuty::Nobody;
                self.is_over = true;
                return;
            }
            inside.courier = OnDuty::Rests(here.waker());
            drop(inside);
            here.park(Site::new("schedule.courier"));
        }
    }

    fn bring(&self, parcel: Parcel) {
        let Parcel { task, is_run } = parcel;
        if !self.core.note_away(&task) {
            return self.core.comes_back(task);
        }
        user_code::check(Kind::Executor);
        let Core { bag, executor, .. } = &*self.core;
        let taken = quiet::call(|| bag.token.enter(|| executor.execute(task)));
        if let Some(Err(refused)) = taken {
            self.core.not_taken(refused, is_run);
        }
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // It never began: whoever asked for it sees that, or whoever rings next tries again.
        self.core.bag.lay_down();
        let mut inside = self.core.bag.inside.lock();
        inside.courier = OnDuty::Nobody;
        let is_seen = inside.is_asked_for;
        drop(inside);
        if !is_seen {
            self.core.ring();
        }
    }
}
