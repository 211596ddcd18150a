//! How a scheduled pool ends: by a shutdown, with two policies, or by a stop. The protocol is in the
//! [module](super).

use super::core::{Core, Entry};
use super::courier::Emptied;
use crate::executor::{Inside, TerminationError, ended};
use crate::interrupt;
use crate::manage::RunState;
use crate::task::{CancelReason, Task, Witness};
use crate::time::{Deadline, Owner, Work, aside};
use millpond_raw::park::Site;
use millpond_raw::quiet;
use millpond_raw::sync::atomic::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

impl Core {
    /// Takes no more tasks. What becomes of those that wait is up to the two policies.
    pub(super) fn shut_down(self: &Arc<Self>) {
        if self.is_forked() {
            return;
        }
        let ward = {
            let mut books = self.books();
            books.state = books.state.max(RunState::ShutDown);
            books.take_wards()
        };
        self.sweep();
        drop(ward);
    }

    /// After a shutdown: cancels what may not run any more, by the policies as they are now.
    ///
    /// A task that is due is not delayed any more, so it runs whatever the policies are. It may still be in
    /// the wheel, because somebody else is handing over (K3). Series have no such right: they end.
    pub(super) fn sweep(self: &Arc<Self>) {
        let unwanted = {
            let mut books = self.books();
            let (once, series) = (books.runs_delayed, books.runs_periodic);
            if books.state == RunState::Running || (once && series) {
                return;
            }
            // Read when the shutdown is known, so not before the due time of a task of no delay that was taken
            // before it.
            let now = self.nanos(Deadline::at(self.clock.now()));
            books.wheel.take_by_due(|due, entry| match entry {
                Entry::Once(_) => !once && due > now,
                Entry::Series(_) => !series,
            })
        };
        for entry in unwanted {
            match entry {
                Entry::Once(task) => {
                    if task.cancel(CancelReason::ShutDown) {
                        self.counts.cancelled.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Entry::Series(series) => series.end(CancelReason::ShutDown),
            }
        }
        // For what is due, and for an alarm that nobody needs any more.
        self.ring();
    }

    /// Takes no more tasks, asks what runs to stop, and hands back what has not begun.
    pub(super) fn stop(self: &Arc<Self>) -> Vec<Task> {
        if self.is_forked() {
            return Vec::new();
        }
        let (ward, entries, hold) = {
            let mut books = self.books();
            books.state = books.state.max(RunState::Stopped);
            let entries = books.wheel.take_where(|_| true);
            // K9: nothing will wait for its time any more.
            (books.take_wards(), entries, books.hold.take())
        };
        let Emptied { parcels, awaited } = self.bag.empty();
        let mut unstarted: Vec<Task> = parcels.into_iter().map(|parcel| parcel.task).collect();
        unstarted.extend(entries.into_iter().filter_map(|entry| match entry {
            Entry::Once(task) => Some(task),
            Entry::Series(series) => series.last_run(),
        }));
        let mut carried = Vec::new();
        match &self.below {
            Some(below) => unstarted.extend(below.shutdown_now()),
            None => {
                let away = {
                    let mut away = self.away.lock();
                    away.is_stopped = true;
                    std::mem::take(&mut away.tasks)
                };
                let is_carried = |task: &Witness| Some(task.address()) == awaited;
                let (on_its_way, there) = away.into_iter().partition(is_carried);
                carried = on_its_way;
                unstarted.extend(self.take_back(there));
            }
        }
        if awaited.is_some() {
            let returned = self.await_courier();
            carried.retain(|carried| !returned.iter().any(|task| carried.is_of(task)));
            // Otherwise the executor has it by now, or keeps it.
            unstarted.extend(self.take_back(carried));
            unstarted.splice(0..0, returned);
        }
        unstarted.retain(|task| !task.is_gone());
        self.ring();
        drop(hold);
        drop(ward);
        self.stops_waiting();
        unstarted
    }

    /// Takes back what an executor of others has of ours, as far as it has not begun and the executor can find
    /// it. What else has not begun is cancelled, and what runs is asked to stop.
    fn take_back(&self, away: Vec<Witness>) -> Vec<Task> {
        if away.is_empty() {
            return Vec::new();
        }
        // The witnesses keep the tasks where they are, so nobody else has their addresses.
        let mut left: HashMap<usize, Witness> = away
            .into_iter()
            .map(|task| (task.address(), task))
            .collect();
        let mut wanted = |task: &Task| left.contains_key(&task.address());
        let back = quiet::call(|| self.executor.take_back(&mut wanted)).unwrap_or_default();
        for task in &back {
            left.remove(&task.address());
        }
        for task in left.into_values() {
            task.stop(CancelReason::ShutDown);
        }
        back
    }

    /// Nothing waits, and nothing that it has handed over runs: the last ward is gone, or it was stopped
    /// and nobody is busy. After a stop that may be found out more than once.
    pub(super) fn is_over_now(&self) {
        if self.is_forked() || !self.lets_go_of_tasks() {
            return;
        }
        if let Some(below) = &self.below {
            below.shutdown();
        }
        let (alarm, hold) = {
            let mut books = self.books();
            books.is_over = true;
            // Who rings sees that nothing is left; nobody waits for the alarm of what was cancelled.
            books.again = books.rings;
            let alarm = match books.rings {
                true => None,
                false => {
                    (books.armed, books.alarm_at) = (Deadline::NEVER, Deadline::NEVER);
                    books.alarm.take()
                }
            };
            (alarm, books.hold.take())
        };
        drop(alarm);
        // K9: after the alarm, so that the timer's thread does not sleep until that.
        drop(hold);
        self.bag.close();
        self.end.change(|()| ());
    }

    /// Drops the values of tasks that nobody has a handle of, so that none is left when the pool is over. Returns
    /// false if somebody else is at it, who has found the pool over, too.
    fn lets_go_of_tasks(&self) -> bool {
        let tasks = {
            let mut away = self.away.lock();
            if away.is_let_go {
                return false;
            }
            away.is_let_go = !away.tasks.is_empty();
            std::mem::take(&mut away.tasks)
        };
        if !tasks.is_empty() {
            // A destructor must not wait for the end, which waits for it.
            let _inside = Inside::of(self);
            aside(Owner::of(self, Work::Drop), move || drop(tasks));
            self.away.lock().is_let_go = false;
        }
        true
    }

    pub(super) fn is_terminated(&self) -> bool {
        let is_over = self.is_forked() || self.books().is_over;
        is_over
            && self
                .below
                .as_ref()
                .is_none_or(|below| below.is_terminated())
    }

    /// Waits until it is over, and the executor if that ends with it.
    pub(super) fn await_end(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        interrupt::check()?;
        if self.is_forked() {
            return Ok(true);
        }
        if deadline == Deadline::NEVER && self.is_caller_inside() {
            return Err(TerminationError::OwnTask);
        }
        let site = Site::new("schedule.await_termination");
        let over = |(): &mut ()| self.books().is_over.then_some(());
        if !ended(self.end.wait(site, &self.clock, deadline, over))? {
            return Ok(false);
        }
        match &self.below {
            None => Ok(true),
            Some(below) => below.await_termination_until(deadline),
        }
    }

    /// Whether what runs here is one of its tasks, or one of the executor that ends with it.
    pub(super) fn is_caller_inside(&self) -> bool {
        let is_inside = !self.is_forked() && Inside::is(self);
        let below = self.below.as_ref();
        is_inside || below.is_some_and(|below| below.is_caller_inside())
    }
}
