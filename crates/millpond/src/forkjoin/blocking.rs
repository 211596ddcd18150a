//! Workers that block: what they do before, so that others go on meanwhile. The arithmetic is in [`super::spares`].
//!
//! A worker waits through a [`Block`] of its own, so every wait of ours on its thread is noticed at its last moment, when
//! the thread is about to sleep. Nothing is paid before that.

use super::context::Context;
use super::sleep::Wait;
use super::slot::PUBLISH_LATER;
use millpond_raw::forkjoin as raw;
use millpond_raw::park::{self, Block, ThreadBlock, Woken};
use std::cell::Cell;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// Runs a closure that blocks the thread in a way that millpond cannot see: reading a file, a lock of another library, a
/// child process. If the caller is a worker of a [`ForkJoinPool`](super::ForkJoinPool), a spare worker takes its place for
/// that time, if there is something to do. On any other thread it just calls the closure.
///
/// Calls of millpond that wait need not be wrapped: queues, handles, sleeps and the like are noticed by themselves, as soon
/// as the thread really sleeps.
///
/// The number of spares is bounded ([`max_spares`](super::ForkJoinBuilder::max_spares)). At the bound the worker blocks
/// without being replaced, and the pool says so in an event
/// ([`SparesExhausted`](super::ForkJoinEvent::SparesExhausted)).
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::forkjoin::{self, ForkJoinPool};
/// use std::sync::mpsc;
///
/// let pool = ForkJoinPool::builder("mill").parallelism(1).build()?;
/// let (sacks, arrived) = mpsc::channel();
/// // The only worker waits for what the second task sends.
/// let waits = pool.submit(move || forkjoin::blocking(|| arrived.recv()))?;
/// pool.execute(move || _ = sacks.send("wheat"))?;
/// assert_eq!(waits.join()?, Ok("wheat"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ManagedBlocker")]
#[doc(alias = "managedBlock")]
#[doc(alias = "block_in_place")]
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    Context::with_current(|here| {
        let _blocked = here.and_then(|here| here.begin_wait(Wait::Blocked));
        f()
    })
}

/// What the parks of a worker mean at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Parks {
    /// A task blocks.
    #[default]
    Blocked,
    /// The worker waits for jobs that others run.
    Joining,
    /// It has nothing to run.
    Idle,
}

/// How a worker waits at the moment.
#[derive(Debug, Default)]
pub(super) struct WaitState {
    parks: Cell<Parks>,
    /// It is counted as waiting. Waits inside of that are not counted.
    is_counted: Cell<bool>,
    /// How many jobs it runs inside of each other, because it helps.
    help_depth: Cell<u64>,
}

impl WaitState {
    pub(super) fn is_counted(&self) -> bool {
        self.is_counted.get()
    }
}

/// How the thread of a worker waits.
#[derive(Debug)]
pub(super) struct WorkerBlock {
    thread: Arc<ThreadBlock>,
}

impl WorkerBlock {
    pub(super) fn new() -> Self {
        WorkerBlock {
            thread: Arc::new(ThreadBlock::new()),
        }
    }
}

impl Block for WorkerBlock {
    fn park(&self, deadline: Option<Instant>) -> Woken {
        if self.thread.take_token() {
            return Woken::Maybe;
        }
        Context::with_current(|here| {
            let _waiting = here.and_then(Context::before_park);
            self.thread.park(deadline)
        })
    }

    fn waker(self: Arc<Self>) -> Waker {
        Arc::clone(&self.thread).waker()
    }
}

/// A worker that is counted as waiting.
pub(super) struct Waiting<'a> {
    context: &'a Context,
    wait: Wait,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.context.waits.is_counted.set(false);
        self.context.worker.waits.set(None);
        self.context.engine.sleep.end_wait(self.wait);
    }
}

impl Context {
    /// Calls `f`, whose parks have this meaning.
    pub(super) fn with_parks<R>(&self, parks: Parks, f: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a Cell<Parks>, Parks);

        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }

        let _restore = Restore(&self.waits.parks, self.waits.parks.replace(parks));
        f()
    }

    fn before_park(&self) -> Option<Waiting<'_>> {
        match self.waits.parks.get() {
            Parks::Blocked => self.begin_wait(Wait::Blocked),
            Parks::Joining => self.begin_wait(Wait::Joining),
            Parks::Idle => None,
        }
    }

    /// The worker will wait, until what this returns is dropped; `None` if it waits inside of another wait.
    fn begin_wait(&self, wait: Wait) -> Option<Waiting<'_>> {
        let has_published = self.publish_all();
        if self.waits.is_counted.replace(true) {
            if has_published {
                self.signal_job(true);
            }
            return None;
        }
        let engine = &self.engine;
        self.worker.waits.set(Some(wait));
        // SPARE-2
        let idle = engine.sleep.begin_wait(wait);
        // QUIET-3
        engine.quiescence.wake_all();
        // [S-help]: the fence is that of `begin_wait`
        let coming = if has_published {
            self.wake_helpers()
        } else {
            0
        };
        if idle.searching() == 0 && engine.finds_work() {
            // SPARE-5
            let apart = Arc::new(ThreadBlock::new());
            // Without a thread the work waits (SPARE-3).
            let _ = park::with_block(apart, || engine.rouse(coming));
        }
        if engine.has_room(engine.sleep.read()) {
            engine.ask_others(self.index, PUBLISH_LATER);
        }
        Some(Waiting {
            context: self,
            wait,
        })
    }

    /// SPARE-4. Returns whether there was anything to publish. The caller tells others.
    pub(super) fn publish_all(&self) -> bool {
        raw::with_current(|local| {
            let Some(local) = local else {
                return false;
            };
            let mut has_published = false;
            while let Some(job) = local.publish_oldest() {
                self.push_published(job);
                has_published = true;
            }
            has_published
        })
    }

    /// Runs something inside of a job that waits, and notes how deep that goes.
    pub(super) fn run_inside(&self, run: impl FnOnce()) {
        // SPARE-4
        if self.publish_all() {
            self.signal_job(true);
        }
        let outer = self.waits.help_depth.get();
        self.waits.help_depth.set(outer + 1);
        self.worker.waits.set_helping(true);
        self.worker.forks.max_help_depth.raise_to(outer + 1);
        // What runs inside of a join may block.
        self.with_parks(Parks::Blocked, run);
        self.waits.help_depth.set(outer);
        self.worker.waits.set_helping(outer > 0);
    }
}
