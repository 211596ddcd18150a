//! Panics while a scope ends: in every case no job is left running (SCOPE-1, SCOPE-7).

use super::*;
use crate::park::{Block, ThreadBlock, Woken, with_block};
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

/// Panics when it is dropped, and counts that.
struct Grenade(Arc<AtomicU32>);

impl Drop for Grenade {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        resume_unwind(Box::new("the destructor's panic"));
    }
}

/// What a job borrows. It is a static, so that a scope which ends too early fails a test instead of
/// corrupting it; `is_at_work` is true while the job runs.
struct Borrowed {
    is_at_work: AtomicBool,
    may_end: AtomicBool,
}

impl Borrowed {
    const fn new() -> Self {
        Borrowed {
            is_at_work: AtomicBool::new(false),
            may_end: AtomicBool::new(false),
        }
    }

    /// The body of a job. It goes on for a while after it may end, so that a missing wait is noticed.
    fn work(&self) {
        self.is_at_work.store(true, Ordering::Release);
        while !self.may_end.load(Ordering::Acquire) {
            thread::yield_now();
        }
        (0..1_000).for_each(|_| thread::yield_now());
        self.is_at_work.store(false, Ordering::Release);
    }

    /// Runs the job on another thread, and returns once it has started.
    fn start<M: Send + 'static>(&self, job: &JobRef<M>) -> thread::JoinHandle<()> {
        let claimed = job.claim().expect("it is unclaimed");
        let runner = thread::spawn(move || claimed.run(&|| ()));
        while !self.is_at_work.load(Ordering::Acquire) {
            thread::yield_now();
        }
        runner
    }

    fn has_ended(&self) -> bool {
        !self.is_at_work.load(Ordering::Acquire)
    }
}

#[test]
fn a_destructor_of_metadata_that_panics_does_not_end_a_scope_before_its_jobs() {
    static BORROWED: Borrowed = Borrowed::new();
    let dropped = Arc::new(AtomicU32::new(0));
    let scope = Scope::<Grenade>::new();
    let (mut runner, mut handle) = (None, None);
    let left = catch_unwind(AssertUnwindSafe(|| {
        scope.enter(|| {
            // These are dropped unrun by the end of the scope, with their metadata.
            for _ in 0..3 {
                let unrun = scope.job(|| ()).unwrap();
                unrun.publish(Grenade(Arc::clone(&dropped)));
                unrun.detach();
            }
            let ended = scope.job(|| 7).unwrap();
            ended.publish(Grenade(Arc::clone(&dropped)));
            ended.job().claim().unwrap().run(&|| ());
            handle = Some(ended.handle());

            let running = scope.job(|| BORROWED.work()).unwrap();
            runner = Some(BORROWED.start(running.job()));
            running.detach();
            BORROWED.may_end.store(true, Ordering::Release);
        });
    }));
    assert!(BORROWED.has_ended(), "the scope ended before its job");
    assert!(left.is_ok(), "a destructor costs nothing but itself");
    assert!(scope.scope_ref().is_empty());
    runner.unwrap().join().unwrap();
    assert_eq!(dropped.load(Ordering::Relaxed), 3);
    drop(handle);
    assert_eq!(dropped.load(Ordering::Relaxed), 4);
}

/// Lets the job end and panics, instead of parking.
#[derive(Debug)]
struct Broken {
    own: Arc<ThreadBlock>,
    /// Set before the panic.
    may_end: &'static AtomicBool,
    parks: AtomicU32,
    /// Whether to panic in `waker`, and not in `park`.
    in_waker: bool,
}

impl Broken {
    fn new(borrowed: &'static Borrowed, in_waker: bool) -> Arc<Self> {
        Arc::new(Broken {
            own: Arc::new(ThreadBlock::new()),
            may_end: &borrowed.may_end,
            parks: AtomicU32::new(0),
            in_waker,
        })
    }

    fn fail(&self) -> ! {
        self.parks.fetch_add(1, Ordering::Relaxed);
        self.may_end.store(true, Ordering::Release);
        resume_unwind(Box::new("the block's panic"))
    }
}

impl Block for Broken {
    fn park(&self, _: Option<Instant>) -> Woken {
        self.fail()
    }

    fn waker(self: Arc<Self>) -> Waker {
        if self.in_waker {
            self.fail();
        }
        Arc::clone(&self.own).waker()
    }
}

/// Ends a scope with a running job on a thread that waits through `block`. Returns how.
fn end_through(block: Arc<dyn Block>, borrowed: &'static Borrowed) -> Result<(), &'static str> {
    // Freed soon after the scope: AddressSanitizer sees a later use.
    let grain = Box::new([3, 4, 5]);
    let scope = Scope::<()>::new();
    let mut runner = None;
    let left = catch_unwind(AssertUnwindSafe(|| {
        with_block(block, || {
            scope.enter(|| {
                let work = || {
                    borrowed.work();
                    assert_eq!(grain.iter().sum::<u32>(), 12);
                };
                let running = scope.job(work).unwrap();
                runner = Some(borrowed.start(running.job()));
                running.detach();
            });
        });
    }));
    assert!(borrowed.has_ended(), "the scope ended before its job");
    assert!(scope.scope_ref().is_empty());
    runner.unwrap().join().unwrap();
    left.map_err(|payload| *payload.downcast::<&str>().unwrap())
}

#[test]
fn a_block_that_panics_does_not_end_a_scope_before_its_jobs_and_its_panic_comes_out() {
    static BORROWED: [Borrowed; 2] = [Borrowed::new(), Borrowed::new()];
    for (borrowed, in_waker) in BORROWED.iter().zip([false, true]) {
        let block = Broken::new(borrowed, in_waker);
        let left = end_through(block.clone(), borrowed);
        assert_eq!(left, Err("the block's panic"));
        let parks = block.parks.load(Ordering::Relaxed);
        assert_eq!(parks, 1, "a block that has panicked is not used again");
    }
}

#[test]
fn a_block_that_panics_while_a_panic_is_on_its_way_does_not_replace_it() {
    static BORROWED: Borrowed = Borrowed::new();
    let block = Broken::new(&BORROWED, false);
    let scope = Scope::<()>::new();
    let mut runner = None;
    let left = catch_unwind(AssertUnwindSafe(|| {
        with_block(block, || {
            scope.enter(|| {
                let running = scope.job(|| BORROWED.work()).unwrap();
                runner = Some(BORROWED.start(running.job()));
                running.detach();
                resume_unwind(Box::new("the body's panic"));
            });
        });
    }));
    assert!(BORROWED.has_ended(), "the scope ended before its job");
    runner.unwrap().join().unwrap();
    let payload = left.unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"the body's panic"));
}

/// A waker whose destructor panics.
struct PanicsOnDrop(Grenade, Arc<ThreadBlock>);

impl Wake for PanicsOnDrop {
    fn wake(self: Arc<Self>) {
        let _its_own = &self.0;
        self.1.unpark();
    }
}

/// Its wakers panic when they are dropped.
#[derive(Debug)]
struct WithPanickingWakers(Arc<ThreadBlock>, Arc<AtomicU32>, &'static AtomicBool);

impl Block for WithPanickingWakers {
    fn park(&self, deadline: Option<Instant>) -> Woken {
        self.2.store(true, Ordering::Release);
        self.0.park(deadline)
    }

    fn waker(self: Arc<Self>) -> Waker {
        let grenade = Grenade(Arc::clone(&self.1));
        Waker::from(Arc::new(PanicsOnDrop(grenade, Arc::clone(&self.0))))
    }
}

#[test]
fn a_waker_whose_destructor_panics_does_not_end_a_scope_before_its_jobs() {
    static BORROWED: Borrowed = Borrowed::new();
    let dropped = Arc::new(AtomicU32::new(0));
    let block = Arc::new(ThreadBlock::new());
    let block = WithPanickingWakers(block, Arc::clone(&dropped), &BORROWED.may_end);
    let left = end_through(Arc::new(block), &BORROWED);
    assert!(dropped.load(Ordering::Relaxed) >= 1);
    // Whether the owner or the job's runner drops the last clone of the waker is a matter of timing.
    assert!(matches!(left, Ok(()) | Err("the destructor's panic")));
}
