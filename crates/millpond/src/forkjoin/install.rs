//! Running a closure inside of a pool, and `join` and `scope` from anywhere.

use super::context::Context;
use super::engine::ForkJoinEngine;
use super::{ForkJoinPool, ForkScope};
use crate::engine::WorkerEngine;
use crate::interrupt;
use millpond_raw::forkjoin::{self as raw, Awaited, HandedOver};
use millpond_raw::once_box::OnceBox;
use millpond_raw::park::{self, Site};
use millpond_raw::sync::{global, local};
use std::cell::RefCell;
use std::sync::Arc;

global! {
    static COMMON: OnceBox<ForkJoinPool> = OnceBox::new();
}

local! {
    /// The pool whose closure this thread runs as its caller. Joins inside of the closure belong to that pool.
    static LEFT_TO_CALLER: RefCell<Option<Arc<ForkJoinEngine>>> = RefCell::new(None);
}

/// Runs `f` in the pool that serves this thread, which is no worker: the pool that has left a closure to it, or the common
/// pool.
pub(super) fn install_outside<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    match left_to_caller() {
        Some(engine) => engine.install(f),
        None => ForkJoinPool::common().engine.install(f),
    }
}

fn left_to_caller() -> Option<Arc<ForkJoinEngine>> {
    LEFT_TO_CALLER
        .try_with(|left| left.borrow().clone())
        .ok()
        .flatten()
}

/// Restores the former pool of this thread.
struct Leave(Option<Arc<ForkJoinEngine>>);

impl Leave {
    fn new(engine: &Arc<ForkJoinEngine>) -> Self {
        let inner = Some(Arc::clone(engine));
        let outer = LEFT_TO_CALLER.try_with(|left| left.replace(inner));
        Leave(outer.ok().flatten())
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        let outer = self.0.take();
        // What it replaces is dropped here, and borrows nothing.
        drop(LEFT_TO_CALLER.try_with(|left| left.replace(outer)));
    }
}

/// Runs both closures, perhaps at the same time, and returns both results.
///
/// The first closure runs on the calling worker. So does the second, unless an idle worker has taken it. On a thread that is
/// no worker of a pool both run in [`ForkJoinPool::common`].
///
/// The closures must not wait for each other: both may run on one thread, one after the other.
///
/// # Panics
///
/// If one of the closures panics, as soon as the other has ended or will never begin. If both panic, with the panic of the
/// first.
///
/// ```
/// use millpond::forkjoin;
///
/// fn sum(of: &[u64]) -> u64 {
///     if of.len() <= 1_000 {
///         return of.iter().sum();
///     }
///     let (left, right) = of.split_at(of.len() / 2);
///     let (left, right) = forkjoin::join(|| sum(left), || sum(right));
///     left + right
/// }
/// let all: Vec<u64> = (1..=100_000).collect();
/// assert_eq!(sum(&all), 5_000_050_000);
/// ```
#[doc(alias = "fork")]
#[doc(alias = "invokeAll")]
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    raw::with_current(|here| match here {
        Some(here) => here.join(a, b),
        None => join_outside(a, b),
    })
}

#[cold]
fn join_outside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    install_outside(move || join_here(a, b))
}

/// Joins on a worker; on any other thread, one after the other.
fn join_here<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    raw::with_current(|here| match here {
        Some(here) => here.join(a, b),
        None => {
            let left = a();
            (left, b())
        }
    })
}

/// Runs `f` with a scope, in which it can spawn jobs that borrow, and returns when all of them have ended.
///
/// On a thread that is no worker of a pool, `f` and its jobs run in [`ForkJoinPool::common`].
///
/// # Panics
///
/// If `f` or one of the jobs panics, when all have ended.
///
/// ```
/// use millpond::forkjoin;
///
/// let mut sacks = vec![1, 2, 3];
/// forkjoin::scope(|scope| {
///     for sack in &mut sacks {
///         scope.spawn(move |_| *sack *= 10);
///     }
/// });
/// assert_eq!(sacks, [10, 20, 30]);
/// ```
pub fn scope<'env, R: Send>(
    f: impl for<'scope> FnOnce(&'scope ForkScope<'scope, 'env>) -> R + Send,
) -> R {
    let current = Context::with_current(|here| here.map(|here| Arc::clone(&here.engine)));
    match current {
        Some(engine) => engine.enter_scope(f),
        None => match left_to_caller() {
            Some(engine) => engine.install(|| engine.enter_scope(f)),
            None => ForkJoinPool::common().scope(f),
        },
    }
}

impl ForkJoinPool {
    /// The pool of the whole process, for computations that have no pool of their own. It is built at its first use, with one
    /// worker for each CPU that the process may use. It is never shut down: `shutdown`, `shutdown_now` and `close` do
    /// nothing.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let common = ForkJoinPool::common();
    /// common.close()?;
    /// assert!(!common.is_shutdown());
    /// assert_eq!(common.install(|| 7), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "commonPool")]
    pub fn common() -> &'static ForkJoinPool {
        COMMON.get_or_init(|| {
            let common = ForkJoinPool::builder("common").common().build();
            common.expect("the parameters are in range")
        })
    }

    /// Runs `f` in this pool, and returns its result. A worker of the pool calls `f` directly. On any other thread the caller
    /// waits while a worker calls `f`. If no thread can be started, or the pool was shut down, the caller runs `f` itself, with
    /// the joins, scopes and loops inside of it.
    ///
    /// # Panics
    ///
    /// If `f` panics.
    ///
    /// ```
    /// use millpond::forkjoin::{self, ForkJoinPool};
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
    /// let name = pool.install(|| std::thread::current().name().map(String::from));
    /// assert_eq!(name.as_deref(), Some("mill-1"));
    /// assert_eq!(pool.install(|| forkjoin::join(|| 3, || 4)), (3, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "invoke")]
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.engine.install(f)
    }

    /// [`install`](ForkJoinPool::install), by Java's name.
    ///
    /// # Panics
    ///
    /// If `f` panics.
    pub fn invoke<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.engine.install(f)
    }

    /// Runs both closures in this pool, perhaps at the same time, and returns both results: see [`join`].
    ///
    /// # Panics
    ///
    /// If one of the closures panics.
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.engine.install(move || join_here(a, b))
    }

    /// Runs `f` in this pool, with a scope in which it can spawn jobs that borrow, and returns when all of them have ended.
    ///
    /// # Panics
    ///
    /// If `f` or one of the jobs panics, when all have ended.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").build()?;
    /// let mut sacks = vec![1, 2, 3];
    /// pool.scope(|scope| {
    ///     for sack in &mut sacks {
    ///         scope.spawn(move |_| *sack *= 10);
    ///     }
    /// });
    /// assert_eq!(sacks, [10, 20, 30]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, R: Send>(
        &self,
        f: impl for<'scope> FnOnce(&'scope ForkScope<'scope, 'env>) -> R + Send,
    ) -> R {
        self.engine.install(|| self.engine.enter_scope(f))
    }
}

impl ForkJoinEngine {
    pub(super) fn install<R: Send>(self: &Arc<Self>, f: impl FnOnce() -> R + Send) -> R {
        if self.is_worker_here() {
            return f();
        }
        if self.is_forked() || !self.ctl().read().is_running() {
            let _left = Leave::new(self);
            return f();
        }
        let give = |job| self.inject(job);
        let wait = |job: &Awaited<'_>| {
            if interrupt::poll_tight(|| job.is_over(), || Some(())).is_some() {
                return;
            }
            let here = park::current();
            if job.register(&here.waker()) {
                here.park(Site::new("forkjoin.install").on(&**self));
            }
        };
        match raw::hand_over(f, give, wait) {
            HandedOver::Ran(value) => value,
            HandedOver::Returned(f) => {
                let _left = Leave::new(self);
                f()
            }
        }
    }

    /// Whether the current thread is a worker of this pool.
    pub(super) fn is_worker_here(self: &Arc<Self>) -> bool {
        Context::with_current(|here| here.is_some_and(|here| Arc::ptr_eq(&here.engine, self)))
    }
}
