//! Scopes: jobs that borrow, spawned one by one, all over before the scope ends.

use super::context::Context;
use super::deque::Inner;
use super::engine::ForkJoinEngine;
use millpond_raw::forkjoin::{PendingJobs, SpawnScope};
use millpond_raw::park::{self, Site};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Where jobs are spawned that may borrow what lives longer than the scope: see [`ForkJoinPool::scope`](super::ForkJoinPool::scope).
pub struct ForkScope<'scope, 'env: 'scope> {
    jobs: SpawnScope<'scope>,
    engine: Arc<ForkJoinEngine>,
    /// Invariant, as in [`std::thread::scope`].
    _env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env> ForkScope<'scope, 'env> {
    /// Spawns a job, which may spawn further ones.
    ///
    /// It runs on a worker of the pool, at the latest when the scope ends. On a thread that is no worker of the pool it
    /// runs at once.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").build()?;
    /// let (mut left, mut right) = (0, 0);
    /// pool.scope(|scope| {
    ///     scope.spawn(|_| left = 3);
    ///     scope.spawn(|_| right = 4);
    /// });
    /// assert_eq!(left + right, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn(&'scope self, f: impl FnOnce(&'scope Self) + Send + 'scope) {
        let job = self.jobs.job(move || f(self));
        let Ok(job) = job else {
            unreachable!("a scope is borrowed no longer than it is open");
        };
        Context::with_current(|here| match here {
            Some(here) if Arc::ptr_eq(&here.engine, &self.engine) => here.spawn(job),
            _ => job.run(),
        });
    }
}

impl fmt::Debug for ForkScope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForkScope").field(&self.jobs).finish()
    }
}

impl ForkJoinEngine {
    /// Runs `f` with a scope, on this thread, and waits for its jobs.
    pub(super) fn enter_scope<'env, R>(
        self: &Arc<Self>,
        f: impl for<'scope> FnOnce(&'scope ForkScope<'scope, 'env>) -> R,
    ) -> R {
        let scope = ForkScope {
            jobs: SpawnScope::new(),
            engine: Arc::clone(self),
            _env: PhantomData,
        };
        let since = Context::with_current(|here| match here {
            Some(here) if Arc::ptr_eq(&here.engine, self) => here.slot().deque.next_number(),
            _ => u64::MAX,
        });
        scope
            .jobs
            .enter(|| f(&scope), |jobs| wait(jobs, self, since))
    }
}

/// Waits for the jobs of a scope. A worker runs its own meanwhile.
fn wait(jobs: &PendingJobs<'_, '_>, engine: &Arc<ForkJoinEngine>, since: u64) {
    Context::with_current(|here| match here {
        Some(here) if Arc::ptr_eq(&here.engine, engine) => {
            let register = |waker: &_| jobs.register(waker);
            here.wait_until(Inner::Scope(since), &|| jobs.is_over(), &register, &|| None);
        }
        _ => {
            let here = park::current();
            if jobs.register(&here.waker()) {
                here.park(Site::new("forkjoin.scope").on(&**engine));
            }
        }
    });
}
