//! Code of the user's that a pool calls, and that calls the pool.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{Executor, ExecutorExt, Lifecycle, TerminationError, ThreadPerTask};
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::{Growth, Managed, Patch};
use millpond::pool::{
    Ended, Hooks, PoolBuilder, Queue, RejectionContext, RejectionPolicy, TaskInfo, ThreadPool,
};
use millpond::preset;
use millpond::queue::{
    BlockingQueue, CapacityError, DelayQueue, FifoQueue, OfferError, Offered, Taken, WaitSlot,
};
use millpond::schedule::ScheduledPool;
use millpond::task::{Task, TaskHandle, TaskLocal};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, ManualClock};
use millpond_testkit::watch;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::task::Waker;
use std::time::Duration;

fn mill(capacity: usize) -> PoolBuilder {
    let mill = ThreadPool::builder("mill").core(1).max(1);
    mill.queue(Queue::bounded(capacity))
}

/// Keeps the only worker busy until the sender is dropped.
fn hold(pool: &ThreadPool) -> mpsc::Sender<()> {
    let (go, may_go) = mpsc::channel::<()>();
    let busy = pool.submit(move || may_go.recv().is_err()).unwrap();
    while !busy.is_started() {
        std::thread::yield_now();
    }
    go
}

/// Calls a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

type Submits = Arc<OnDrop<Box<dyn FnMut() + Send + Sync>>>;

#[test]
fn what_a_cancelled_task_carried_may_submit_to_the_pool_that_clears_it_out() {
    let _watch = watch();
    static CARRIED: TaskLocal<Submits> = TaskLocal::new();
    let pool = mill(2).build().unwrap();
    let go = hold(&pool);
    let (tell, told) = mpsc::channel();
    let submits: Submits = {
        let pool = pool.clone();
        Arc::new(OnDrop(Box::new(move || {
            // More than there is room for.
            let taken = [(); 3].map(|()| pool.execute(|| ()).is_ok());
            let _ = tell.send(taken);
        })))
    };
    let cancelled = CARRIED.scope(submits, || pool.submit(|| ()).unwrap());
    assert!(cancelled.cancel());
    drop(cancelled);
    pool.execute(|| ()).unwrap();
    // Full: the shell makes room, and what it carried is dropped by that. Which task gets the room is open.
    let taken = pool.execute(|| ()).is_ok();
    let inside = told.recv().unwrap();
    let all = inside.into_iter().chain([taken]);
    assert_eq!(
        all.filter(|taken| *taken).count(),
        1,
        "there was room for one"
    );
    // And the pool takes tasks as ever.
    drop(go);
    while pool.snapshot().queued > 0 {
        std::thread::yield_now();
    }
    pool.submit(|| ()).unwrap().join().unwrap();
    pool.shutdown();
    pool.await_termination().unwrap();
}

#[test]
fn a_handler_that_brings_the_task_to_its_own_pool_again_is_asked_once() {
    let _watch = watch();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let again = move |task: Task, context: RejectionContext<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        context.pool.execute_task(task)
    };
    let pool = mill(1)
        .rejection(RejectionPolicy::custom(again))
        .build()
        .unwrap();
    let go = hold(&pool);
    pool.execute(|| ()).unwrap();
    let rejected = pool.submit(|| "flour").unwrap_err();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(rejected.reason.is_saturated(), "{}", rejected.reason);
    assert_eq!((rejected.task)(), "flour");
    drop(go);
}

/// Two pools whose handlers submit to each other what was rejected.
#[test]
fn handlers_that_bring_tasks_to_each_others_pools_are_asked_once_each() {
    let _watch = watch();
    let other: Arc<OnceLock<ThreadPool>> = Arc::default();
    let to_other = Arc::clone(&other);
    let handler = move |task: Task, context: RejectionContext<'_>| match to_other.get() {
        Some(other) => other.execute_task(task),
        None => context.give_back(task),
    };
    let one = mill(1)
        .rejection(RejectionPolicy::custom(handler))
        .build()
        .unwrap();
    let back = one.clone();
    let handler = move |task: Task, _: RejectionContext<'_>| back.execute_task(task);
    let two = mill(1)
        .rejection(RejectionPolicy::custom(handler))
        .build()
        .unwrap();
    let held = (hold(&one), hold(&two));
    one.execute(|| ()).unwrap();
    two.execute(|| ()).unwrap();
    assert!(other.set(two.clone()).is_ok());
    let rejected = one.submit(|| "flour").unwrap_err();
    assert_eq!((rejected.task)(), "flour");
    drop(held);
    one.shutdown();
    two.shutdown();
}

/// What runs then is no longer the handler.
#[test]
fn a_handler_that_runs_the_task_is_asked_about_what_its_body_brings() {
    let _watch = watch();
    let runs = |task: Task, _: RejectionContext<'_>| {
        let _ = task.run();
        Ok(())
    };
    let pool = mill(1)
        .rejection(RejectionPolicy::custom(runs))
        .build()
        .unwrap();
    let go = hold(&pool);
    pool.execute(|| ()).unwrap();
    let inner = pool.clone();
    let outer = pool.submit(move || inner.submit(|| "flour").unwrap().join());
    assert_eq!(outer.unwrap().join().unwrap().unwrap(), "flour");
    drop(go);
}

/// Submits the rejected task twice, and is asked about neither.
#[test]
fn a_handler_that_brings_the_task_twice_gets_it_back_twice() {
    let _watch = watch();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let twice = move |task: Task, context: RejectionContext<'_>| {
        if count.fetch_add(1, Ordering::Relaxed) > 0 {
            return context.give_back(task);
        }
        match context.pool.execute_task(task) {
            Ok(()) => Ok(()),
            Err(back) => context.pool.execute_task(back.task),
        }
    };
    let pool = mill(1)
        .rejection(RejectionPolicy::custom(twice))
        .build()
        .unwrap();
    let go = hold(&pool);
    pool.execute(|| ()).unwrap();
    let rejected = pool.submit(|| "flour").unwrap_err();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!((rejected.task)(), "flour");
    drop(go);
}

/// The line for the log is another task: it comes back, too, and leaves the mark of the handler alone.
#[test]
fn a_handler_that_brings_a_line_for_a_log_and_then_the_task_gets_both_back() {
    let _watch = watch();
    let asked = Arc::new(AtomicUsize::new(0));
    let lines_back = Arc::new(AtomicUsize::new(0));
    let (count, back) = (Arc::clone(&asked), Arc::clone(&lines_back));
    let logs = move |task: Task, context: RejectionContext<'_>| {
        if count.fetch_add(1, Ordering::Relaxed) > 0 {
            return context.give_back(task);
        }
        for _ in 0..2 {
            let line = context.pool.execute(|| println!("a task was rejected"));
            back.fetch_add(usize::from(line.is_err()), Ordering::Relaxed);
        }
        context.pool.execute_task(task)
    };
    let pool = mill(1)
        .rejection(RejectionPolicy::custom(logs))
        .build()
        .unwrap();
    let go = hold(&pool);
    pool.execute(|| ()).unwrap();
    let rejected = pool.submit(|| "flour").unwrap_err();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(lines_back.load(Ordering::Relaxed), 2);
    assert_eq!((rejected.task)(), "flour");
    // The task and the two lines: what the handler brought again is no further task.
    assert_eq!(pool.snapshot().left_to_policy, 3);
    drop(go);
}

#[test]
fn a_task_that_its_handler_brings_again_is_counted_as_rejected_once() {
    let _watch = watch();
    let again = |task: Task, context: RejectionContext<'_>| context.pool.execute_task(task);
    let pool = mill(1)
        .rejection(RejectionPolicy::custom(again))
        .build()
        .unwrap();
    let go = hold(&pool);
    let taken = (0..3).filter(|_| pool.execute(|| ()).is_ok()).count();
    assert_eq!((taken, pool.snapshot().left_to_policy), (1, 2));
    drop(go);
}

/// A handler that drops the task and brings another, whose memory may be that of the first.
#[test]
fn another_task_that_a_handler_brings_instead_is_counted_as_rejected() {
    let _watch = watch();
    let instead = |task: Task, context: RejectionContext<'_>| {
        drop(task);
        let _ = context.pool.execute(|| ());
        Ok(())
    };
    let pool = mill(1).rejection(RejectionPolicy::custom(instead));
    let pool = pool.build().unwrap();
    let go = hold(&pool);
    pool.execute(|| ()).unwrap();
    pool.execute(|| ()).unwrap();
    assert_eq!(pool.snapshot().left_to_policy, 2);
    drop(go);
}

/// Submits a task whose closure takes its time to be dropped, and lets `drop_it` do that on a thread of its own. Meanwhile the
/// pool is shut down, and its only worker leaves (END-4).
fn ends_after_a_queued_task_is_dropped(
    policy: RejectionPolicy,
    drop_it: impl FnOnce(&ThreadPool, TaskHandle<()>) + Send,
) {
    let _watch = watch();
    let pool = mill(1).rejection(policy).build().unwrap();
    let go = hold(&pool);
    let ((begin, begun), (let_go, go_on)) = (mpsc::channel(), mpsc::channel::<()>());
    let is_dropped = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&is_dropped);
    let slow = OnDrop(move || {
        begin.send(()).unwrap();
        go_on.recv().ok();
        note.store(true, Ordering::SeqCst);
    });
    let slow = pool.submit(move || drop(slow)).unwrap();
    std::thread::scope(|threads| {
        let let_go = let_go;
        threads.spawn(|| drop_it(&pool, slow));
        begun.recv().unwrap();
        pool.shutdown();
        drop(go);
        let soon = pool.await_termination_timeout(Duration::from_millis(20));
        assert!(!soon.unwrap(), "the closure is still being dropped");
        assert!(!pool.is_terminated());
        let_go.send(()).unwrap();
        pool.await_termination().unwrap();
        assert!(is_dropped.load(Ordering::SeqCst));
        let books = pool.engine_snapshot();
        assert_eq!(books.submitted, books.completed + books.cancelled);
    });
}

#[test]
fn a_pool_ends_after_a_task_that_is_removed_has_been_dropped() {
    ends_after_a_queued_task_is_dropped(RejectionPolicy::Abort, |pool, slow| {
        assert!(pool.remove(&slow));
    });
}

#[test]
fn a_pool_ends_after_a_task_that_makes_room_has_been_dropped() {
    ends_after_a_queued_task_is_dropped(RejectionPolicy::DiscardOldest, |pool, slow| {
        let newer = pool.submit(|| "flour").unwrap();
        assert!(slow.is_cancelled() && newer.is_cancelled());
    });
}

/// When a queue does something of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Offer,
    /// After it.
    Offered,
    Take,
    Len,
    SetCapacity,
}

type Once = Box<dyn FnOnce() + Send>;

/// A queue that does something, once, when it is called.
#[derive(Clone)]
struct Busy {
    queue: Arc<FifoQueue<Task>>,
    once: Arc<Mutex<Vec<(Call, Once)>>>,
}

impl Busy {
    fn new() -> Self {
        Busy {
            queue: Arc::new(FifoQueue::bounded_growing(8).unwrap()),
            once: Arc::default(),
        }
    }

    fn once(&self, call: Call, f: impl FnOnce() + Send + 'static) {
        self.once.lock().unwrap().push((call, Box::new(f)));
    }

    fn run_hook(&self, call: Call) {
        let once = {
            let mut once = self.once.lock().unwrap();
            let first = once.iter().position(|(when, _)| *when == call);
            first.map(|first| once.remove(first))
        };
        if let Some((_, f)) = once {
            f();
        }
    }

    fn is_done(&self) -> bool {
        self.once.lock().unwrap().is_empty()
    }
}

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

impl BlockingQueue<Task> for Busy {
    fn offer(&self, element: Task) -> Result<(), OfferError<Task>> {
        self.run_hook(Call::Offer);
        let offered = self.queue.offer(element);
        self.run_hook(Call::Offered);
        offered
    }

    fn poll(&self) -> Option<Task> {
        self.queue.poll()
    }

    fn poll_offer(
        &self,
        element: &mut Option<Task>,
        place: &mut WaitSlot,
        waker: &Waker,
    ) -> Offered {
        self.queue.poll_offer(element, place, waker)
    }

    fn poll_take(&self, place: &mut WaitSlot, waker: &Waker) -> Taken<Task> {
        self.run_hook(Call::Take);
        self.queue.poll_take(place, waker)
    }

    fn leave_offer(&self, element: &mut Option<Task>, place: &mut WaitSlot) {
        self.queue.leave_offer(element, place);
    }

    fn leave_take(&self, place: &mut WaitSlot) -> Option<Task> {
        self.queue.leave_take(place)
    }

    fn len(&self) -> usize {
        self.run_hook(Call::Len);
        self.queue.len()
    }

    fn capacity(&self) -> Option<usize> {
        self.queue.capacity()
    }

    fn set_capacity(&self, capacity: usize) -> Result<(), CapacityError> {
        self.run_hook(Call::SetCapacity);
        self.queue.set_capacity(capacity)
    }

    fn visit(&self, see: &mut dyn FnMut(&Task) -> ControlFlow<()>) {
        self.queue.visit(see);
    }

    fn remove_where(&self, limit: usize, unwanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        self.queue.remove_where(limit, unwanted)
    }

    fn clock(&self) -> &Clock {
        self.queue.clock()
    }
}

#[test]
fn a_queue_of_the_users_may_submit_to_its_pool_while_a_task_comes_in() {
    let _watch = watch();
    for call in [Call::Offer, Call::Len] {
        let queue = Busy::new();
        let mill = ThreadPool::builder("mill").core(1).max(4);
        let mill = mill.growth(Growth::ThreadsFirst);
        let pool = mill.queue(Queue::custom(queue.clone())).build().unwrap();
        // A worker that is free, so that the next task goes into the queue.
        pool.submit(|| ()).unwrap().join().unwrap();
        let inner = pool.clone();
        queue.once(call, move || drop(inner.submit(|| ()).unwrap()));
        while !queue.is_done() {
            pool.submit(|| ()).unwrap().join().unwrap();
        }
        pool.shutdown();
        pool.await_termination().unwrap();
    }
}

/// How long idle workers stay, by a clock that a test moves.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

/// A pool that starts threads first, with one worker, which is free: it waits for its time to leave.
fn with_one_that_is_free(queue: &Busy) -> (ThreadPool, ManualClock) {
    let hand = ManualClock::new();
    let mill = ThreadPool::builder("mill").core(0).max(3);
    let mill = mill.growth(Growth::ThreadsFirst).keep_alive(KEEP_ALIVE);
    let mill = mill.queue(Queue::custom(queue.clone())).clock(hand.clock());
    let pool = mill.build().unwrap();
    pool.submit(|| ()).unwrap().join().unwrap();
    wait_until(|| hand.sleepers() == 1);
    (pool, hand)
}

/// While it takes the task out it is no longer free, and the task still waits.
#[test]
fn a_free_worker_that_is_slow_to_take_its_task_is_waited_for() {
    let _watch = watch();
    let queue = Busy::new();
    let (pool, _hand) = with_one_that_is_free(&queue);
    let (arrive, arrived) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    queue.once(Call::Take, move || {
        arrive.send(()).unwrap();
        let _ = may_go.recv();
    });
    queue.once(Call::Offered, move || arrived.recv().unwrap());
    let task = pool.submit(|| ()).unwrap();
    assert!(queue.is_done());
    assert_eq!(pool.snapshot().threads_started, 1);
    drop(go);
    task.join().unwrap();
    assert_eq!(pool.snapshot().threads_started, 1);
    pool.close().unwrap();
}

/// The second comes while the first is on its way into the queue.
#[test]
fn two_tasks_do_not_count_on_one_free_worker_of_a_queue_of_the_users() {
    let _watch = watch();
    let queue = Busy::new();
    let (pool, _hand) = with_one_that_is_free(&queue);
    let both = Arc::new(Barrier::new(2));
    let (inner, other) = (pool.clone(), Arc::clone(&both));
    let (tell, told) = mpsc::channel();
    queue.once(Call::Offer, move || {
        let second = inner.submit(move || other.wait().is_leader());
        tell.send(second.unwrap()).unwrap();
    });
    let first = pool.submit(move || both.wait().is_leader()).unwrap();
    let second = told.recv().unwrap();
    assert_ne!(first.join().unwrap(), second.join().unwrap());
    assert_eq!(pool.snapshot().threads_started, 2);
    pool.close().unwrap();
}

/// The only worker that is left is busy; the queue may panic when the task is in.
#[test]
fn a_task_whose_free_worker_leaves_before_it_is_in_gets_another_one() {
    let _watch = watch();
    for panics in [false, true] {
        let queue = Busy::new();
        let (pool, hand) = with_one_that_is_free(&queue);
        let go = hold(&pool);
        // The held one is the first worker, and this starts another one, which is free then.
        pool.submit(|| ()).unwrap().join().unwrap();
        wait_until(|| hand.sleepers() == 1);
        let inner = pool.clone();
        queue.once(Call::Offer, move || {
            hand.advance(KEEP_ALIVE);
            wait_until(|| inner.snapshot().workers == 1);
        });
        if panics {
            queue.once(Call::Offered, || resume_unwind(Box::new("no grain")));
        }
        let (tell, told) = mpsc::channel();
        let brought = catch_unwind(AssertUnwindSafe(|| {
            pool.execute(move || tell.send(()).unwrap()).unwrap();
        }));
        assert_eq!(brought.is_err(), panics);
        told.recv().unwrap();
        assert_eq!(pool.snapshot().threads_started, 3);
        drop(go);
        pool.close().unwrap();
    }
}

thread_local! {
    static SUBMITS: Cell<bool> = const { Cell::new(false) };
}

/// Submits a task whenever this thread asks how long the queue is, except for that task itself.
fn submits_when_asked(queue: &Busy, pool: &ThreadPool) {
    let (again, inner) = (queue.clone(), pool.clone());
    queue.once(Call::Len, move || {
        submits_when_asked(&again, &inner);
        if SUBMITS.replace(false) {
            let _ = inner.submit(|| ());
            SUBMITS.set(true);
        }
    });
}

/// Whoever reads how many tasks wait finds each time that another one has come meanwhile.
#[test]
fn a_queue_that_submits_a_task_whenever_it_is_asked_for_its_length_keeps_no_task_out() {
    let _watch = watch();
    let queue = Busy::new();
    let (pool, _hand) = with_one_that_is_free(&queue);
    submits_when_asked(&queue, &pool);
    for _ in 0..20 {
        SUBMITS.set(true);
        let task = pool.submit(|| ());
        SUBMITS.set(false);
        if let Ok(task) = task {
            task.join().unwrap();
        }
    }
    queue.once.lock().unwrap().clear();
    pool.close().unwrap();
}

#[test]
fn a_queue_of_the_users_may_change_its_pool_while_its_capacity_changes() {
    let _watch = watch();
    let queue = Busy::new();
    let pool = ThreadPool::builder("mill").core(1).max(4);
    let pool = pool.queue(Queue::custom(queue.clone())).build().unwrap();
    let inner = pool.clone();
    queue.once(Call::SetCapacity, move || inner.set_max(3).unwrap());
    pool.apply(&Patch::new().core(2).capacity(5)).unwrap();
    assert_eq!((pool.core(), pool.max(), pool.capacity()), (2, 3, Some(5)));
    // What was fine when it was judged is not any more: nothing has changed but that.
    let inner = pool.clone();
    queue.once(Call::SetCapacity, move || inner.set_max(2).unwrap());
    assert!(pool.apply(&Patch::new().core(3).capacity(7)).is_err());
    assert_eq!((pool.core(), pool.max(), pool.capacity()), (2, 2, Some(5)));
}

/// Waits for the end of its own executor in every way that has no time-out.
fn waits_for_itself(own: &impl Lifecycle) -> [Result<(), TerminationError>; 3] {
    own.shutdown();
    [
        own.await_termination(),
        own.await_termination_timeout(Duration::MAX).map(drop),
        own.close(),
    ]
}

const OWN_TASK: [Result<(), TerminationError>; 3] = [Err(TerminationError::OwnTask); 3];

#[test]
fn a_task_that_waits_for_the_end_of_its_own_pool_is_told() {
    let _watch = watch();
    let pool = mill(8).build().unwrap();
    let own = pool.clone();
    let waited = pool.submit(move || waits_for_itself(&own)).unwrap();
    assert_eq!(waited.join().unwrap(), OWN_TASK);
    assert!(pool.is_shutdown(), "that much `close` has done");
    pool.close().unwrap();
}

#[test]
fn a_task_that_is_run_in_place_is_told_too() {
    let _watch = watch();
    let pool = mill(8).build().unwrap();
    let (outer, inner) = (pool.clone(), pool.clone());
    let waited = pool.submit(move || {
        let inside = outer.submit(move || waits_for_itself(&inner));
        inside.unwrap().join().unwrap()
    });
    assert_eq!(waited.unwrap().join().unwrap(), OWN_TASK);
    pool.close().unwrap();
}

#[test]
fn a_task_on_an_extra_thread_and_one_of_a_queue_that_holds_back_are_told_too() {
    let _watch = watch();
    let extra = mill(1).rejection(RejectionPolicy::NewThread { at_most: 1 });
    let pool = extra.build().unwrap();
    let go = hold(&pool);
    pool.execute(|| ()).unwrap();
    let own = pool.clone();
    let waited = pool.submit(move || waits_for_itself(&own)).unwrap();
    assert_eq!(waited.join().unwrap(), OWN_TASK);
    drop(go);
    pool.close().unwrap();

    let late = DelayQueue::due_by(|_: &Task| Clock::system().now());
    let late = ThreadPool::builder("late")
        .core(1)
        .queue(Queue::custom(late));
    let pool = late.build().unwrap();
    let own = pool.clone();
    let waited = pool.submit(move || waits_for_itself(&own)).unwrap();
    assert_eq!(waited.join().unwrap(), OWN_TASK);
    pool.close().unwrap();
}

/// Waits when a task has ended, and when all has.
struct Waits {
    pool: Arc<OnceLock<ThreadPool>>,
    told: mpsc::Sender<[Result<(), TerminationError>; 3]>,
}

impl Hooks for Waits {
    fn after(&self, _: &TaskInfo, _: Ended) {
        let _ = self.told.send(waits_for_itself(self.pool.get().unwrap()));
    }

    fn terminated(&self) {
        let _ = self.told.send(waits_for_itself(self.pool.get().unwrap()));
    }
}

#[test]
fn a_hook_that_waits_for_the_end_of_its_pool_is_told() {
    let _watch = watch();
    let (told, tells) = mpsc::channel();
    let own = Arc::new(OnceLock::new());
    let waits = Waits {
        pool: Arc::clone(&own),
        told,
    };
    let pool = mill(8).hooks(waits).build().unwrap();
    assert!(own.set(pool.clone()).is_ok());
    pool.execute(|| ()).unwrap();
    assert_eq!(tells.recv().unwrap(), OWN_TASK, "after a task");
    assert_eq!(tells.recv().unwrap(), OWN_TASK, "after all");
    pool.close().unwrap();
}

#[test]
fn a_task_of_a_thread_per_task_that_waits_for_its_end_is_told() {
    let _watch = watch();
    let threads = Arc::new(ThreadPerTask::builder("mill", 2).build().unwrap());
    let own = Arc::clone(&threads);
    let waited = threads.submit(move || waits_for_itself(&*own)).unwrap();
    assert_eq!(waited.join().unwrap(), OWN_TASK);
    threads.close().unwrap();
}

#[test]
fn a_task_of_a_scheduled_pool_that_waits_for_its_end_is_told() {
    let _watch = watch();
    let timers = preset::scheduled("mill", 1).unwrap();
    let own = timers.clone();
    let waited = timers.submit(move || waits_for_itself(&own)).unwrap();
    assert_eq!(waited.join().unwrap(), OWN_TASK);
    timers.close().unwrap();
    // One that shares its executor: what it has handed over is its own task.
    let pool = mill(8).build().unwrap();
    let timers = ScheduledPool::on(pool.clone()).build();
    let own = timers.clone();
    let now = Duration::ZERO;
    let waited = timers
        .schedule(now, move || waits_for_itself(&own))
        .unwrap();
    assert_eq!(waited.join().unwrap(), OWN_TASK);
    timers.close().unwrap();
    pool.close().unwrap();
}

/// A task of one executor may wait for the end of another, and with a time-out for that of its own.
#[test]
fn waits_that_end_are_left_alone() {
    let _watch = watch();
    let (one, other) = (mill(8).build().unwrap(), mill(8).build().unwrap());
    other.execute(|| ()).unwrap();
    let own = one.clone();
    let waited = one.submit(move || {
        other.close().unwrap();
        own.await_termination_timeout(Duration::from_millis(1))
    });
    assert_eq!(waited.unwrap().join().unwrap(), Ok(false));
    one.close().unwrap();
}

/// Before it starts the first thread it waits for the end of its own pool.
struct WaitsFirst<P> {
    pool: Arc<OnceLock<P>>,
    told: Mutex<mpsc::Sender<[Result<(), TerminationError>; 3]>>,
}

impl<P> fmt::Debug for WaitsFirst<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitsFirst")
    }
}

impl<P: Lifecycle + Send + Sync + 'static> ThreadFactory for WaitsFirst<P> {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let waited = waits_for_itself(self.pool.get().unwrap());
        let _ = self.told.lock().unwrap().send(waited);
        Threads::named("late").start(body)
    }
}

fn tells_a_factory_that_waits<P>(build: impl FnOnce(WaitsFirst<P>) -> P)
where
    P: Executor + Lifecycle + Clone + 'static,
{
    let _watch = watch();
    let (told, tells) = mpsc::channel();
    let own = Arc::new(OnceLock::new());
    let pool = build(WaitsFirst {
        pool: Arc::clone(&own),
        told: Mutex::new(told),
    });
    assert!(own.set(pool.clone()).is_ok());
    let _ = pool.execute(|| ());
    assert_eq!(tells.recv().unwrap(), OWN_TASK);
    pool.close().unwrap();
}

#[test]
fn a_thread_factory_that_waits_for_the_end_of_its_pool_is_told() {
    tells_a_factory_that_waits(|threads| mill(8).threads(threads).build().unwrap());
    tells_a_factory_that_waits(|threads| {
        let mill = ForkJoinPool::builder("mill").parallelism(1);
        mill.threads(threads).build().unwrap()
    });
}
