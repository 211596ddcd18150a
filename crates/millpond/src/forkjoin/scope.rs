//! Scopes: jobs that borrow, spawned one by one, all over before the scope ends.

use super::context::Context;
use super::deque::{Inner, ScopeTag};
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
    /// The stolen job inside of which it was entered; 0 outside of any.
    root: usize,
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
            Some(here) if Arc::ptr_eq(&here.engine, &self.engine) => here.spawn(job, self.tag()),
            _ => job.run(),
        });
    }

    fn tag(&self) -> ScopeTag {
        ScopeTag {
            id: std::ptr::from_ref(self).addr(),
            root: self.root,
        }
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
        let root = Context::with_current(|here| match here {
            Some(here) if Arc::ptr_eq(&here.engine, self) => here.root(),
            _ => 0,
        });
        let scope = ForkScope {
            jobs: SpawnScope::new(),
            engine: Arc::clone(self),
            root,
            _env: PhantomData,
        };
        scope.jobs.enter(|| f(&scope), |jobs| scope.wait(jobs))
    }
}

impl ForkScope<'_, '_> {
    /// Waits for its jobs. A worker runs its own meanwhile.
    fn wait(&self, jobs: &PendingJobs<'_, '_>) {
        Context::with_current(|here| match here {
            Some(here) if Arc::ptr_eq(&here.engine, &self.engine) => {
                let (own, register) = (Inner::Scope(self.tag().id), |waker: &_| {
                    jobs.register(waker)
                });
                here.wait_until(own, &|| jobs.is_over(), &register, &|| None);
            }
            _ => {
                let here = park::current();
                if jobs.register(&here.waker()) {
                    here.park(Site::new("forkjoin.scope").on(&*self.engine));
                }
            }
        });
    }
}
