//! Waiting for jobs that other workers run: what the waiting worker does meanwhile.
//!
//! A worker that runs *anything* while it waits may meet, on its own stack, a job that wants a lock which the waiting one
//! holds, and stacks may grow without end; rayon's users know both. So:
//!
//! - **HELP-1** A worker that waits runs its own jobs that are younger than what it waits for ([`Inner`]): jobs of scopes
//!   that were spawned inside, whoever did that. Nobody else may be there to run them. A job of an outer join that was
//!   published late is not younger.
//! - **HELP-2** Then it *leapfrogs*: it runs jobs that were published inside of the job that it waits for, by the worker
//!   that runs that one. They are part of what it waits for.
//! - **HELP-3** Otherwise it parks, and a spare may take its place ([`super::spares`]). Tasks ([`execute`](crate::executor::ExecutorExt::execute)) are not part of anything that
//!   is waited for, and are never run by a waiting worker.
//! - **HELP-4** It helps only while enough of its stack is left ([`MIN_STACK`]). Beyond that it parks, and others run its
//!   jobs. How deep it went is in the snapshot (`max_help_depth`).
//!
//! # Why that suffices
//!
//! What a worker waits for is running, or was published on a deque. A published job that nobody has taken is in the deque
//! of its owner or of the worker that spawned it. If that worker runs something, it comes to it in the end; if it waits,
//! the job is younger than what it waits for, and HELP-1 makes it run it, or it is older: then its owner is an outer frame
//! of the same worker or another worker, which waits for it only after the younger ones are over. So of all jobs that are
//! not over, a youngest one is always run by somebody.

use super::blocking::Parks;
use super::config::HelpPolicy;
use super::context::Context;
use super::deque::{Inner, Item};
use super::slot::URGENT;
use crate::interrupt;
use millpond_raw::forkjoin::JobRef;
use millpond_raw::park::{self, Site};
use millpond_raw::stack_space;
use std::task::Waker;

/// The stack that must be left for a waiting worker to run another job, in bytes (HELP-4).
const MIN_STACK: usize = 128 * 1024;

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
        while !is_over() {
            if let Some(job) = self.find_help(inner, thief) {
                self.run_inside(|| self.run_job(job));
                continue;
            }
            if self.engine.config.help == HelpPolicy::Any {
                if let Some(item) = self.steal_any() {
                    self.run_inside(|| self.run_any(item));
                    continue;
                }
            }
            let thief = match self.engine.config.help {
                HelpPolicy::Never => None,
                HelpPolicy::Any | HelpPolicy::Descendants => thief(),
            };
            if let Some((thief, _)) = thief {
                self.engine.slots.get(thief).ask(URGENT);
            }
            let is_ready = || is_over() || self.has_help(inner, thief);
            if interrupt::poll_tight(is_ready, || Some(())).is_some() {
                continue;
            }
            self.park_until(&is_ready, register, thief);
        }
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

    /// HELP-1, HELP-2
    fn find_help(&self, inner: Inner, thief: &dyn Fn() -> Option<Thief>) -> Option<JobRef> {
        if !has_stack() {
            return None;
        }
        if let Some(job) = self.slot().deque.pop_inner(inner) {
            job.set_runner(self.index);
            return Some(job);
        }
        if self.engine.config.help == HelpPolicy::Never {
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
        let own = self.slot().deque.has_inner(inner);
        let of_thief = |(thief, root)| self.engine.slots.get(thief).deque.has_job_of(root);
        (own || thief.is_some_and(of_thief)) && has_stack()
    }

    pub(super) fn run_any(&self, item: Item) {
        match item {
            Item::Job(job) => self.run_job(job),
            Item::Task(task) => self.run_task_inside(task),
        }
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
