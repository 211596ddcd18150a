//! Interrupting a task that runs too long, with all its parts.
//!
//! The watchdog interrupts one task of a worker by a stop of its own ([`InterruptTarget`]), which is on the stack of that
//! worker. Parts that others run are on other stacks, so a job that others may take carries the stop, and what it
//! publishes in turn carries it as well. Nothing of it is paid by a pool without a limit that interrupts, and nothing by a
//! join.

use super::context::Context;
use crate::engine::dropped::DropSource;
use crate::engine::watchdog::InterruptTarget;
use crate::executor::TaskOutcome;
use crate::task::{self, Task};
use millpond_raw::forkjoin::{JobRef, Surround};
use millpond_raw::task::Stop;
use std::cell::Cell;
use std::sync::Arc;

/// What interrupts the task that a worker runs, or a part of, if that takes too long.
#[derive(Default)]
pub(super) struct RunStop(Cell<Option<Arc<Stop>>>);

impl RunStop {
    fn get(&self) -> Option<Arc<Stop>> {
        let stop = self.0.take();
        self.0.set(stop.clone());
        stop
    }
}

impl Context {
    /// Calls `f`, what runs inside of which is interrupted by this.
    pub(super) fn with_run_stop<R>(&self, stop: Option<Arc<Stop>>, f: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a RunStop, Option<Arc<Stop>>);

        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.0.set(self.1.take());
            }
        }

        let outer = self.run_stop.0.replace(stop);
        let _restore = Restore(&self.run_stop, outer);
        f()
    }

    /// Runs a task so that the watchdog can interrupt it and its parts, and no other.
    #[cold]
    pub(super) fn run_interruptible(&self, task: Task) -> TaskOutcome {
        let (engine, worker) = (&self.engine, &self.worker);
        let on_drop = |dropped| engine.report_dropped(dropped);
        let stop = InterruptTarget::begin(&worker.interrupt_target, worker.metrics.turn());
        let run = || engine.runner.run_with(task, on_drop, |_| ());
        let fate = self.with_run_stop(Some(Arc::clone(&stop)), || stop.enter(run));
        InterruptTarget::clear(&worker.interrupt_target);
        fate
    }
}

/// Lets a job that others may take run in the context of the task that has made it, and be interrupted with it.
pub(super) fn surround(job: &mut JobRef, here: Option<&Context>) {
    let inner = task::carried();
    let surround = match here.and_then(|here| here.run_stop.get()) {
        None => inner,
        Some(stop) => Some(Box::new(Part { stop, inner }) as Box<dyn Surround>),
    };
    if let Some(surround) = surround {
        job.surround(surround);
    }
}

/// A part of a task that is interrupted if it takes too long.
struct Part {
    stop: Arc<Stop>,
    inner: Option<Box<dyn Surround>>,
}

impl Surround for Part {
    fn enclose(self: Box<Self>, body: &mut dyn FnMut()) {
        let Part { stop, inner } = *self;
        let run = || match inner {
            Some(inner) => inner.enclose(body),
            None => task::outside(body),
        };
        Context::with_current(|here| match here {
            Some(here) => here.with_run_stop(Some(Arc::clone(&stop)), || stop.enter(run)),
            None => stop.enter(run),
        });
    }
}
