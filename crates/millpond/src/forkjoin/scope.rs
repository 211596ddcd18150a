//! Scopes: jobs that borrow, spawned one by one. All of them have ended when the scope returns.
//!
//! A worker of the pool pushes a job that it spawns on its own deque, where all workers find it. Any other thread has no
//! deque. Such a thread may be the owner of a scope whose pool was closed, has no threads or is in a forked child, or it was
//! started inside of the scope. Its jobs are *set aside* in the scope, and the owner runs them, one after the other:
//!
//! - **ASIDE-1** `spawn` does not run a job that is set aside. So the job never waits for a lock that its spawner holds, and
//!   a chain of jobs needs no more stack than one job. The owner runs it when the body of the scope has returned.
//! - **ASIDE-2** The owner sleeps only after it has left its waker under the lock of an empty list. A thread that adds a
//!   job takes the waker under the same lock. The scope outlives both, because a job can be spawned only inside of it.

use super::context::{Context, run_in_own_context};
use super::deque::{Inner, ScopeTag};
use super::engine::ForkJoinEngine;
use super::run_stop;
use millpond_raw::forkjoin::{JobRef, PendingJobs, SpawnScope};
use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

/// Where jobs are spawned that may borrow what lives longer than the scope: see [`ForkJoinPool::scope`](super::ForkJoinPool::scope).
pub struct ForkScope<'scope, 'env: 'scope> {
    jobs: SpawnScope<'scope>,
    engine: Arc<ForkJoinEngine>,
    /// The stolen job in which the scope was entered; 0 if none.
    root: usize,
    aside: Mutex<Aside>,
    /// Whether there may be jobs aside. Written under the lock; read without, as a hint.
    has_aside: AtomicBool,
    /// Invariant, as in [`std::thread::scope`].
    _env: PhantomData<&'env mut &'env ()>,
}

/// Jobs that are in no deque, and the waker of the owner (ASIDE-2).
#[derive(Default)]
struct Aside {
    jobs: Vec<JobRef>,
    owner: Option<Waker>,
}

impl<'scope, 'env> ForkScope<'scope, 'env> {
    /// Spawns a job, which may spawn further ones.
    ///
    /// The job runs on a worker of the pool, at the latest when the scope ends. If a thread spawns it that is no worker of the
    /// pool, it runs on the thread that has entered the scope, after the body of the scope has returned.
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
            _ => self.set_aside(job),
        });
    }

    /// ASIDE-1
    #[cold]
    fn set_aside(&self, mut job: JobRef) {
        Context::with_current(|here| run_stop::surround(&mut job, here));
        let owner = {
            let mut aside = self.aside.lock();
            aside.jobs.push(job);
            self.has_aside.store(true, Ordering::Relaxed);
            aside.owner.take()
        };
        if let Some(owner) = owner {
            owner.wake();
        }
    }

    fn tag(&self) -> ScopeTag {
        ScopeTag {
            id: NonNull::from(self).addr(),
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
            aside: Mutex::default(),
            has_aside: AtomicBool::new(false),
            _env: PhantomData,
        };
        scope.jobs.enter(|| f(&scope), |jobs| scope.wait(jobs))
    }
}

impl ForkScope<'_, '_> {
    /// Waits for its jobs, and runs those that are set aside. A worker runs its own meanwhile.
    fn wait(&self, jobs: &PendingJobs<'_, '_>) {
        let is_over = || jobs.is_over() || self.has_aside();
        let register = |waker: &Waker| jobs.register(waker) && self.leave_waker(waker);
        Context::with_current(|here| {
            let here = here.filter(|here| Arc::ptr_eq(&here.engine, &self.engine));
            match (here, self.take_aside()) {
                (Some(here), Some(job)) => here.run_inside(|| here.run_job(job)),
                (Some(here), None) => {
                    here.wait_until(Inner::Scope(self.tag().id), &is_over, &register, &|| None);
                }
                (None, Some(job)) => run_in_own_context(job),
                (None, None) => {
                    let here = park::current();
                    if register(&here.waker()) {
                        here.park(Site::new("forkjoin.scope").on(&*self.engine));
                    }
                }
            }
        });
    }

    #[inline]
    fn has_aside(&self) -> bool {
        self.has_aside.load(Ordering::Relaxed)
    }

    /// Takes the youngest job that is set aside.
    fn take_aside(&self) -> Option<JobRef> {
        if !self.has_aside() {
            return None;
        }
        let mut aside = self.aside.lock();
        let job = aside.jobs.pop();
        let is_left = !aside.jobs.is_empty();
        self.has_aside.store(is_left, Ordering::Relaxed);
        job
    }

    /// Lets the next job that is set aside wake its owner. False if there is one already (ASIDE-2).
    fn leave_waker(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut aside = self.aside.lock();
        let is_empty = aside.jobs.is_empty();
        let former = if is_empty {
            aside.owner.replace(waker)
        } else {
            Some(waker)
        };
        drop(aside);
        drop(former);
        is_empty
    }
}
