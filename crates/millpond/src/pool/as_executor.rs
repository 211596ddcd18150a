//! What a pool is to others: an executor that ends and is managed.

use super::{Rejection, ThreadPool};
use crate::executor::{
    DroppedTask, Executor, Inside, Lifecycle, NotTaken, PostOffer, RejectReason, Rejected,
    TerminationError, TurnedBack, ended,
};
use crate::interrupt;
use crate::manage::{Managed, Patch, PatchError, PoolSnapshot, RunState};
use crate::task::Task;
use crate::time::{Clock, Deadline, is_timer_thread};
use millpond_raw::park::Site;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

impl Executor for ThreadPool {
    #[inline]
    fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.execute_until(task, Deadline::NEVER)
    }

    #[inline]
    fn execute_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        if self.engine.is_forked() {
            return Err(Rejected::new(task, RejectReason::Forked));
        }
        if self.engine.caller_is_to_run() {
            self.engine.run_here(task);
            return Ok(());
        }
        match self.engine.admit(task) {
            Ok(()) => Ok(()),
            Err(refused) => self.refuse_until(refused, deadline),
        }
    }

    fn try_execute(&self, task: Task) -> Result<(), NotTaken> {
        let engine = &self.engine;
        if engine.is_forked() {
            let refused = Rejected::new(task, RejectReason::Forked);
            return Err(NotTaken::Refused(refused));
        }
        if is_timer_thread() {
            return engine.admit_from_timer(task).map_err(NotTaken::NotAtOnce);
        }
        match engine.admit(task) {
            Ok(()) => Ok(()),
            Err(refused) => {
                let not_at_once = match engine.knobs().rejection() {
                    // Waiting is no help against a thread that cannot be started.
                    Rejection::Block(_) => refused.reason.is_saturated(),
                    // A handler of the user's may do anything.
                    Rejection::CallerRuns | Rejection::Custom(_) => true,
                    _ => false,
                };
                if not_at_once && !engine.is_shut_down() {
                    refused.task.leave_home();
                    return Err(NotTaken::NotAtOnce(refused.task));
                }
                self.refuse(refused).map_err(NotTaken::Refused)
            }
        }
    }

    fn is_worker_here(&self) -> bool {
        self.engine.home.is_here()
    }

    fn offer_post(&self, post: PostOffer) {
        self.engine.accept_post(post);
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.engine) as usize
    }

    fn take_back(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        self.engine.take_back_where(wanted)
    }

    #[inline]
    fn turn_back(&self, made_at: &'static Location<'static>) -> Option<TurnedBack<'_>> {
        // The rest is elsewhere, so that it is not in the code of every closure.
        match self.engine.knobs().caller_runs() {
            false => None,
            true => self.engine.turn_back(made_at),
        }
    }

    fn report_dropped(&self, dropped: DroppedTask) {
        self.engine.dropped_detached(dropped);
    }

    fn clock(&self) -> Clock {
        self.engine.clock.clone()
    }

    fn may_run_in_place(&self) -> bool {
        !self.engine.line.holds_back()
    }
}

impl Managed for ThreadPool {
    fn snapshot(&self) -> PoolSnapshot {
        ThreadPool::snapshot(self)
    }

    fn apply(&self, patch: &Patch) -> Result<(), PatchError> {
        ThreadPool::apply(self, patch)
    }
}

impl Lifecycle for ThreadPool {
    fn shutdown(&self) {
        self.engine.shut_down();
    }

    fn shutdown_now(&self) -> Vec<Task> {
        self.engine.stop()
    }

    fn is_shutdown(&self) -> bool {
        self.engine.is_shut_down()
    }

    fn is_terminated(&self) -> bool {
        self.engine.is_forked() || self.engine.ctl().read().state() == RunState::Terminated
    }

    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        interrupt::check()?;
        let engine = &self.engine;
        if engine.is_forked() {
            return Ok(true);
        }
        Inside::check(&**engine, deadline)?;
        let site = Site::new("pool.await_termination");
        let over =
            |(): &mut ()| (engine.ctl().read().state() == RunState::Terminated).then_some(());
        ended(engine.end.wait(site, &engine.clock, deadline, over))
    }

    fn await_termination_timeout(&self, patience: Duration) -> Result<bool, TerminationError> {
        self.await_termination_until(self.engine.clock.deadline(patience))
    }

    fn is_caller_inside(&self) -> bool {
        !self.engine.is_forked() && Inside::is(&*self.engine)
    }
}
