//! What a pool does, one step after the other, without threads: the reference of `pool_model.rs`.
//!
//! It knows a pool at rest: nobody runs but tasks that wait at their gates, so each idle worker has
//! found the queue empty. Where a task goes is not written here a second time: it asks
//! [`millpond::pool::decide`], as the pool does. The rest is book-keeping.

use millpond::manage::{Growth, RunState};
use millpond::pool::{Situation, Step, decide};
use millpond::task::CancelReason;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    Plain,
    HandOff,
    /// A plain queue that the pool does not know: it is the user's.
    Own,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Abort,
    CallerRuns,
    Discard,
    DiscardOldest,
    BlockForNothing,
    NewThread(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Saturated,
    ShutDown,
    NoThread,
}

/// What the handle of a task says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Ran,
    Panicked,
    Cancelled(CancelReason),
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: usize,
    is_gone: bool,
    deadline: Option<u64>,
}

/// What a pool counts, and in the same words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) workers: usize,
    pub(crate) active: usize,
    pub(crate) largest: usize,
    pub(crate) extra_threads: usize,
    pub(crate) queued: usize,
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) cancelled: u64,
    pub(crate) expired: u64,
    pub(crate) rejected: u64,
    pub(crate) blocked: u64,
    pub(crate) discarded: u64,
    pub(crate) caller_ran: u64,
    pub(crate) handed_back: u64,
    pub(crate) threads_started: u64,
    pub(crate) thread_failures: u64,
}

pub(crate) struct Model {
    pub(crate) flavor: Flavor,
    pub(crate) core: usize,
    pub(crate) max: usize,
    pub(crate) keep_alive: u64,
    pub(crate) core_may_time_out: bool,
    pub(crate) growth: Growth,
    pub(crate) capacity: Option<usize>,
    pub(crate) policy: Policy,
    pub(crate) threads_fail: bool,
    pub(crate) state: RunState,
    pub(crate) fates: Vec<Fate>,
    panics: Vec<bool>,
    queue: VecDeque<Waiting>,
    /// When each idle worker leaves, if it may; the one that has rested longest first.
    idle: Vec<Option<u64>>,
    running: Vec<usize>,
    extras: Vec<usize>,
    extras_done: u64,
    pub(crate) accepted: u64,
    now: u64,
    counts: Figures,
}

impl Model {
    pub(crate) fn new(flavor: Flavor, core: usize, max: usize, capacity: Option<usize>) -> Self {
        Model {
            flavor,
            core,
            max,
            keep_alive: 10,
            core_may_time_out: false,
            growth: Growth::QueueFirst,
            capacity: if flavor == Flavor::HandOff {
                Some(0)
            } else {
                capacity
            },
            policy: Policy::Abort,
            threads_fail: false,
            state: RunState::Running,
            fates: Vec::new(),
            panics: Vec::new(),
            queue: VecDeque::new(),
            idle: Vec::new(),
            running: Vec::new(),
            extras: Vec::new(),
            extras_done: 0,
            accepted: 0,
            now: 0,
            counts: Figures::default(),
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            workers: self.workers(),
            active: self.running.len(),
            extra_threads: self.extras.len(),
            queued: self.queue.len(),
            ..self.counts
        }
    }

    /// What must hold whatever was done.
    pub(crate) fn check(&self) {
        let now = self.figures();
        let ended = now.completed + now.cancelled + now.discarded + now.expired;
        let elsewhere = now.handed_back + now.caller_ran + self.extras_done;
        let here = now.queued + now.active + now.extra_threads;
        assert_eq!(self.accepted, ended + elsewhere + here as u64, "{now:?}");
        assert!(self.idle.is_empty() || self.queue.is_empty(), "{now:?}");
    }

    fn workers(&self) -> usize {
        self.idle.len() + self.running.len()
    }

    /// The tasks that run, in workers and outside.
    pub(crate) fn at_their_gates(&self) -> Vec<usize> {
        self.running.iter().chain(&self.extras).copied().collect()
    }

    /// Brings a task. The error says why it was refused.
    pub(crate) fn submit(&mut self, deadline: Option<u64>, panics: bool) -> Result<(), Why> {
        let id = self.fates.len();
        self.fates.push(Fate::Open);
        self.panics.push(panics);
        let waiting = Waiting {
            id,
            is_gone: false,
            deadline: deadline.map(|after| self.now + after),
        };
        let taken = self.admit(waiting).or_else(|why| self.refuse(waiting, why));
        match taken {
            Ok(()) => self.accepted += 1,
            Err(_) => self.fates[id] = Fate::Refused,
        }
        taken
    }

    fn admit(&mut self, task: Waiting) -> Result<(), Why> {
        let mut has_room = true;
        loop {
            let now = Situation {
                is_running: self.state == RunState::Running,
                workers: self.workers(),
                core: self.core,
                max: self.max,
                growth: self.growth,
                one_is_free: self.idle.len() > self.queue.len(),
                has_room,
            };
            match decide(&now) {
                Step::ShutDown => return Err(Why::ShutDown),
                Step::Reject => return Err(Why::Saturated),
                Step::Start { .. } if self.start(Some(task)) => return Ok(()),
                Step::Start { .. } if !has_room || self.workers() == 0 => {
                    return Err(Why::NoThread);
                }
                // Without a thread it waits for those who are there.
                Step::Start { .. } => match self.enqueue(task) {
                    Some(done) => return done,
                    None if self.purge() > 0 => {}
                    None => return Err(Why::NoThread),
                },
                Step::Enqueue => match self.enqueue(task) {
                    Some(done) => return done,
                    None => has_room = self.purge() > 0,
                },
            }
        }
    }

    /// Puts it into the queue; `None` if there is no room.
    fn enqueue(&mut self, task: Waiting) -> Option<Result<(), Why>> {
        let has_room = match self.flavor {
            Flavor::HandOff => !self.idle.is_empty(),
            _ => self.capacity.is_none_or(|most| self.queue.len() < most),
        };
        if !has_room {
            return None;
        }
        self.queue.push_back(task);
        if self.workers() == 0 && !self.start(None) {
            self.queue.pop_back();
            return Some(Err(Why::NoThread));
        }
        if !self.idle.is_empty() {
            // Ours call the one that has rested least, others the one that has rested most.
            match self.flavor {
                Flavor::Own => drop(self.idle.remove(0)),
                _ => drop(self.idle.pop()),
            }
            self.look_for_work();
        }
        Some(Ok(()))
    }

    fn refuse(&mut self, task: Waiting, why: Why) -> Result<(), Why> {
        match self.policy {
            Policy::BlockForNothing => {
                self.counts.blocked += 1;
                self.counts.rejected += 1;
                return Err(why);
            }
            _ => self.counts.rejected += 1,
        }
        let is_shut = self.state != RunState::Running;
        match self.policy {
            Policy::Abort | Policy::BlockForNothing => Err(why),
            Policy::CallerRuns if is_shut => Err(Why::ShutDown),
            Policy::CallerRuns => {
                self.counts.caller_ran += 1;
                self.fates[task.id] = self.how_it_ends(task.id);
                Ok(())
            }
            Policy::Discard => {
                self.discard(task);
                Ok(())
            }
            Policy::DiscardOldest => self.replace_oldest(task),
            Policy::NewThread(most) if !is_shut && self.extras.len() < most => {
                if self.threads_fail {
                    self.counts.thread_failures += 1;
                    return Err(Why::NoThread);
                }
                self.counts.threads_started += 1;
                self.extras.push(task.id);
                Ok(())
            }
            Policy::NewThread(_) => Err(why),
        }
    }

    fn replace_oldest(&mut self, task: Waiting) -> Result<(), Why> {
        loop {
            if self.state != RunState::Running {
                self.discard(task);
                return Ok(());
            }
            let oldest = self.queue.pop_front();
            if let Some(oldest) = oldest {
                self.discard(oldest);
            }
            match self.admit(task) {
                Err(_) if oldest.is_some() => {}
                done => return done,
            }
        }
    }

    fn discard(&mut self, task: Waiting) {
        if task.is_gone {
            self.counts.cancelled += 1;
            return;
        }
        self.counts.discarded += 1;
        self.fates[task.id] = Fate::Cancelled(match self.state {
            RunState::Running => CancelReason::Discarded,
            _ => CancelReason::ShutDown,
        });
    }

    fn how_it_ends(&self, id: usize) -> Fate {
        match self.panics[id] {
            true => Fate::Panicked,
            false => Fate::Ran,
        }
    }

    /// Starts a worker; false if no thread can be had.
    fn start(&mut self, first: Option<Waiting>) -> bool {
        if self.threads_fail {
            self.counts.thread_failures += 1;
            return false;
        }
        self.counts.threads_started += 1;
        self.counts.largest = self.counts.largest.max(self.workers() + 1);
        if !first.is_some_and(|first| self.take(first)) {
            self.look_for_work();
        }
        true
    }

    /// A worker takes this task; false if there was nothing to run.
    fn take(&mut self, task: Waiting) -> bool {
        if task.is_gone {
            self.counts.cancelled += 1;
            return false;
        }
        if task.deadline.is_some_and(|deadline| deadline <= self.now) {
            self.counts.expired += 1;
            self.fates[task.id] = Fate::Cancelled(CancelReason::Expired);
            return false;
        }
        self.running.push(task.id);
        true
    }

    /// A worker that has nothing to do, and is in no list: it takes a task, rests, or leaves.
    fn look_for_work(&mut self) {
        loop {
            let is_surplus = self.workers() + 1 > self.max;
            if self.state > RunState::ShutDown || is_surplus {
                return;
            }
            match self.queue.pop_front() {
                Some(task) if self.take(task) => return,
                Some(_) => {}
                None => break,
            }
        }
        if self.state == RunState::Running {
            self.idle.push(None);
            let last = self.idle.len() - 1;
            self.idle[last] = self.leaves_at();
            self.expire();
        }
    }

    fn may_time_out(&self) -> bool {
        self.core_may_time_out || self.workers() > self.core
    }

    fn leaves_at(&self) -> Option<u64> {
        self.may_time_out().then(|| self.now + self.keep_alive)
    }

    fn expire(&mut self) {
        while let Some(place) = self
            .idle
            .iter()
            .position(|at| at.is_some_and(|at| at <= self.now))
        {
            match self.may_time_out() {
                true => drop(self.idle.remove(place)),
                false => self.idle[place] = None,
            }
        }
    }

    fn nudge(&mut self) {
        if self.state != RunState::Running {
            self.idle.clear();
            return;
        }
        while self.workers() > self.max && self.idle.pop().is_some() {}
        let at = self.leaves_at();
        self.idle.iter_mut().for_each(|leaves| *leaves = at);
        self.expire();
    }

    fn try_terminate(&mut self) {
        let is_empty = self.state == RunState::Stopped || self.queue.is_empty();
        let is_left = self.workers() + self.extras.len() > 0;
        if matches!(self.state, RunState::ShutDown | RunState::Stopped) && is_empty && !is_left {
            self.state = RunState::Terminated;
        }
    }

    /// A task that runs goes through its gate.
    pub(crate) fn release(&mut self, id: usize) {
        if self.fates[id] == Fate::Open {
            self.fates[id] = self.how_it_ends(id);
        }
        if let Some(place) = self.extras.iter().position(|extra| *extra == id) {
            self.extras.remove(place);
            self.extras_done += 1;
        } else {
            self.running.retain(|runs| *runs != id);
            self.counts.completed += 1;
            self.counts.panicked += u64::from(self.panics[id]);
            self.look_for_work();
        }
        self.try_terminate();
    }

    pub(crate) fn cancel(&mut self, id: usize) -> bool {
        if self.fates[id] != Fate::Open {
            return false;
        }
        self.fates[id] = Fate::Cancelled(CancelReason::Requested);
        let waiting = self.queue.iter_mut().find(|task| task.id == id);
        waiting.into_iter().for_each(|task| task.is_gone = true);
        true
    }

    pub(crate) fn remove(&mut self, id: usize) -> bool {
        let Some(place) = self.queue.iter().position(|task| task.id == id) else {
            return false;
        };
        let removed = self.queue.remove(place).expect("it is there");
        self.counts.cancelled += 1;
        if !removed.is_gone {
            self.fates[id] = Fate::Cancelled(CancelReason::Removed);
        }
        self.try_terminate();
        !removed.is_gone
    }

    pub(crate) fn purge(&mut self) -> usize {
        let before = self.queue.len();
        self.queue.retain(|task| !task.is_gone);
        let purged = before - self.queue.len();
        self.counts.cancelled += purged as u64;
        self.try_terminate();
        purged
    }

    /// New limits are written: what follows from them.
    pub(crate) fn limits_changed(&mut self, eager_before: usize) {
        self.nudge();
        let more = self.eager().saturating_sub(eager_before);
        if more > 0 {
            self.purge();
        }
        for _ in 0..more.min(self.queue.len()) {
            if self.start_below(self.eager()) != Ok(true) || self.queue.is_empty() {
                break;
            }
        }
    }

    /// Up to how many workers a task gets one of its own, if none is free.
    pub(crate) fn eager(&self) -> usize {
        match self.growth {
            Growth::QueueFirst => self.core.max(1),
            Growth::ThreadsFirst => self.max,
        }
    }

    pub(crate) fn prestart(&mut self) -> Result<bool, Why> {
        self.start_below(self.core)
    }

    fn start_below(&mut self, below: usize) -> Result<bool, Why> {
        let may = match self.state {
            RunState::Running => true,
            RunState::ShutDown => !self.queue.is_empty(),
            _ => false,
        };
        match may && self.workers() < below {
            false => Ok(false),
            true if self.start(None) => Ok(true),
            true => Err(Why::NoThread),
        }
    }

    pub(crate) fn pass(&mut self, time: u64) {
        self.now += time;
        self.expire();
    }

    pub(crate) fn shut_down(&mut self) {
        if self.state == RunState::Running {
            self.state = RunState::ShutDown;
            self.nudge();
            self.try_terminate();
        }
    }

    /// The tasks that are handed back.
    pub(crate) fn stop(&mut self) -> Vec<usize> {
        if self.state < RunState::Stopped {
            self.state = RunState::Stopped;
        }
        let (gone, back): (Vec<Waiting>, Vec<Waiting>) =
            self.queue.drain(..).partition(|task| task.is_gone);
        self.counts.cancelled += gone.len() as u64;
        self.counts.handed_back += back.len() as u64;
        for task in &back {
            self.fates[task.id] = Fate::Cancelled(CancelReason::Dropped);
        }
        self.nudge();
        self.try_terminate();
        back.into_iter().map(|task| task.id).collect()
    }
}
