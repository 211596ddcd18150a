//! Waiting for jobs that other workers run: what the waiting worker does meanwhile.
//!
//! A worker that runs *anything* while it waits may meet, on its own stack, a job that wants a lock which the waiting one
//! holds, and stacks may grow without end; rayon's users know both. So:
//!
//! - **HELP-1** A worker that waits runs jobs of its own deque that the end of the wait depends on ([`Inner`]). While it
//!   waits for a scope, these are the jobs of that scope. While it waits for the job of a join, they are jobs of scopes
//!   that were entered inside of that job, which it has spawned there when it leapfrogged. Nobody else may be there to run
//!   them, so in the end it does that however little stack is left (HELP-5). A job that was spawned meanwhile in an
//!   outer scope is a stranger, and so is a job of an outer join.
//! - **HELP-2** Then it *leapfrogs*: it runs jobs that were published inside of the job that it waits for, by the worker
//!   that runs that one: of joins, and of scopes that were entered there. They are part of what it waits for.
//! - **HELP-3** Otherwise it parks, and a spare may take its place ([`super::spares`]). Tasks
//!   ([`execute`](crate::executor::ExecutorExt::execute)) are not part of anything that is waited for, and are never run by
//!   a waiting worker.
//! - **HELP-4** It takes jobs from others only while enough of its stack is left ([`MIN_STACK`]). Beyond that it parks, and
//!   others run them. How deep it went is in the snapshot (`max_help_depth`).
//! - **HELP-5** With less stack than that it leaves jobs of its own deque to a worker that is idle or can be started, for
//!   [`GRACE`] at most. If it cannot be had, or has not come by then, the worker runs the job itself, as if it had called
//!   it. So the wait does not depend on the other one.
//! - **HELP-6** With [`HelpPolicy::Any`] it runs whatever is queued, its own first, while HELP-4 allows that. Once it sleeps
//!   it is woken only for what HELP-1 to HELP-3 say; what comes later is for other workers, spares among them.
//!
//! # Why no lock is met twice on one stack
//!
//! Whatever is above a wait on the stack of a worker is something that the wait cannot end without: HELP-1 and HELP-2
//! choose nothing else, and what these run waits by the same rules. If it wants a lock that is held below, the program
//! waits for itself, whichever thread runs what. Two things are excepted, and say so: [`HelpPolicy::Any`], and a task that
//! asks its worker to run everything there is
//! ([`help_quiesce`](super::ForkJoinPool::help_quiesce), [`await_quiescence`](super::ForkJoinPool::await_quiescence)).
//!
//! The marks for that are ids of jobs ([`ScopeTag`](super::deque::ScopeTag)). A scope and what was published for a join end
//! before the job inside of which they began, and the id of an awaited job is an address in the stack of the worker that
//! waits. So a mark that equals it is that job's, and not that of an earlier one.
//!
//! # Why that suffices
//!
//! Spares are not needed for this; they only keep cores busy. Suppose that all workers of a pool wait in joins and scopes.
//! Look at the one that waits for what was forked or entered *last*.
//!
//! - It waits for the job of a join. If that were queued its owner would have taken it back, so it is on the stack of a
//!   worker. What is above it there is part of it. So that worker waits for something that was forked or entered inside
//!   of it, which is later: a contradiction.
//! - It waits for a scope, and a job of that runs: the same.
//! - It waits for a scope whose jobs are all queued. Those of its own deque it runs (HELP-1). So there is one in the deque
//!   of another worker V, which spawned it, in a frame F inside of the scope. V waits as well:
//!   - F is still on its stack. Then V waits for something that began inside of F, and so later than the scope.
//!   - F ran at the bottom of its stack, and V has begun something else since. What V waits for began later.
//!   - F ran above a wait of V for a job, and V still waits for it. F was part of that job. If the scope was entered inside
//!     of it, then by the worker that ran it, not further inside (HELP-2), and V runs the queued job (HELP-1). Otherwise
//!     the job was forked inside of the scope, and so later.
//!   - F ran above a wait of V for a scope, as a job of that. A job cannot name a scope that was entered inside of its
//!     own. So that is the very scope, and V runs the queued job; or an inner one, which was entered later.
//!
//! So one of them goes on. With [`HelpPolicy::Any`] strangers are above waits, and the scope of a queued job may be later
//! than what its worker waits for; but there a worker that waits with enough stack leaves nothing in its deque (HELP-6).
//!
//! What is not covered is a job that waits by other means: for a lock, a channel, another pool
//! ([`install`](super::ForkJoinPool::install)). Such a worker is replaced, as long as there are spares (SPARE-3). Pools that
//! install into each other use up a worker of each at every level; at the bound of both they wait for each other for ever.

use super::blocking::Parks;
use super::config::HelpPolicy;
use super::context::{Context, give_share_back};
use super::deque::{Inner, Item};
use super::slot::PUBLISH_NOW;
use crate::engine::dropped::DropSource;
use crate::interrupt;
use crate::task::Task;
use crate::time::Clock;
use millpond_raw::forkjoin::JobRef;
use millpond_raw::park::{self, Site};
use millpond_raw::stack_space;
use millpond_raw::sync::spins;
use std::task::Waker;
use std::time::Duration;

/// The stack that must be left for a waiting worker to take a job from another one, in bytes (HELP-4).
const MIN_STACK: usize = 128 * 1024;

/// How long a worker with little stack leaves its jobs to others (HELP-5). Many times what it takes to start a thread.
const GRACE: Duration = Duration::from_millis(10);

/// The worker that runs a job, and the job.
pub(super) type Thief = (u32, usize);

impl Context {
    /// Waits until `is_over`, and helps meanwhile. `inner` says which jobs of its own may be run;
    /// `register` registers a waker, and says no if it is over.
    pub(super) fn wait_until(
        &self,
        inner: Inner,
        is_over: &dyn Fn() -> bool,
        register: &dyn Fn(&Waker) -> bool,
        thief: &dyn Fn() -> Option<Thief>,
    ) {
        let mut has_left_own = false;
        while !is_over() {
            if !has_left_own && self.may_leave_own(inner) {
                has_left_own = true;
                self.leave_own(inner, register);
                continue;
            }
            if let Some(job) = self.find_help(inner, thief) {
                self.run_inside(|| self.run_job(job));
                has_left_own = false;
                continue;
            }
            // The share that was given back may have been the last of it.
            if is_over() {
                break;
            }
            if self.may_run_any() {
                if let Some(item) = self.pop_any() {
                    self.run_inside(|| self.run_any(item));
                    continue;
                }
            }
            let thief = match self.engine.config.help {
                HelpPolicy::Never => None,
                HelpPolicy::Any | HelpPolicy::Descendants => thief(),
            };
            if let Some((thief, _)) = thief {
                self.engine.slots.get(thief).ask(PUBLISH_NOW);
            }
            let has_any = || self.may_run_any() && self.engine.has_visible_work();
            let is_ready = || is_over() || self.has_help(inner, thief) || has_any();
            if interrupt::poll_tight(is_ready, || Some(())).is_some() {
                continue;
            }
            self.park_until(&is_ready, register, thief);
        }
        // JOB-10: what comes next may be outside of a scope whose jobs were run here.
        give_share_back();
    }

    fn park_until(
        &self,
        is_ready: &dyn Fn() -> bool,
        register: &dyn Fn(&Waker) -> bool,
        thief: Option<Thief>,
    ) {
        let here = park::current();
        if !register(&here.waker()) {
            return;
        }
        let _helper = thief.map(|(thief, _)| Helper::new(self, thief));
        if is_ready() {
            return;
        }
        self.worker.forks.parks.add(1);
        let site = Site::new("forkjoin.join").on(self.worker.as_ref());
        self.with_parks(Parks::Joining, || here.park(site));
    }

    /// HELP-6
    fn may_run_any(&self) -> bool {
        self.engine.config.help == HelpPolicy::Any && has_stack()
    }

    /// HELP-5
    fn may_leave_own(&self, inner: Inner) -> bool {
        // Models measure nothing.
        spins() > 0 && !has_stack() && self.has_inner(inner) && self.engine.has_successor()
    }

    /// Waits until the wait is over, or for the grace. A worker is woken or started for the jobs (SPARE-2).
    fn leave_own(&self, inner: Inner, register: &dyn Fn(&Waker) -> bool) {
        give_share_back();
        let here = park::current();
        if !register(&here.waker()) || !self.has_inner(inner) {
            return;
        }
        self.worker.forks.parks.add(1);
        let site = Site::new("forkjoin.deep").on(self.worker.as_ref());
        let clock = Clock::system();
        let park = || clock.park_until(&here, site, clock.deadline(GRACE));
        // The caller looks again in any case.
        let _ = self.with_parks(Parks::Joining, park);
    }

    /// HELP-1, HELP-2
    fn find_help(&self, inner: Inner, thief: &dyn Fn() -> Option<Thief>) -> Option<JobRef> {
        if let Some(job) = self.pop_inner(inner) {
            return Some(job);
        }
        if self.engine.config.help == HelpPolicy::Never || !has_stack() {
            return None;
        }
        let (thief, root) = thief()?;
        let deque = &self.engine.slots.get(thief).deque;
        let job = deque.steal_from_root(root, self.index)?;
        self.worker.forks.leaps.add(1);
        Some(job)
    }

    /// Whether [`find_help`](Context::find_help) may find something. A hint.
    fn has_help(&self, inner: Inner, thief: Option<Thief>) -> bool {
        let of_thief = |(thief, root)| self.engine.slots.get(thief).deque.has_job_of(root);
        self.has_inner(inner) || thief.is_some_and(of_thief) && has_stack()
    }

    pub(super) fn run_any(&self, item: Item) {
        match item {
            Item::Job(job) => self.run_job(job),
            Item::Task(task) => self.run_task_inside(task),
        }
    }

    /// Runs a task inside of a job that waits, which the policy allows. It is counted, and not measured.
    fn run_task_inside(&self, task: Task) {
        give_share_back();
        let (engine, worker) = (&self.engine, &self.worker);
        let on_drop = |dropped| engine.report_dropped(dropped);
        worker.stats.begin_inside();
        let run = || engine.runner.run_with(task, on_drop, |_| ());
        let outcome = self.with_run_stop(None, run);
        worker.stats.end_inside(outcome);
    }
}

pub(super) fn has_stack() -> bool {
    stack_space::current().is_none_or(|space| space.left >= MIN_STACK.min(space.size / 2))
}

/// A worker that sleeps until another one publishes a job.
struct Helper<'a> {
    context: &'a Context,
    thief: u32,
}

impl<'a> Helper<'a> {
    fn new(context: &'a Context, thief: u32) -> Self {
        context.ask_thief(thief);
        Helper { context, thief }
    }
}

impl Drop for Helper<'_> {
    fn drop(&mut self) {
        let slot = self.context.engine.slots.get(self.thief);
        slot.remove_helper(self.context.index);
    }
}
