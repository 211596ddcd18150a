//! A child process that touches a pool of its parent gets an error, and never hangs.
//!
//! The children are killed if they hang; a test sees that. They print nothing, for the locks of the
//! standard streams may be with a thread that they do not have.

#![cfg(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle))))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{
    Executor, ExecutorExt, Lifecycle, RejectReason, SerialExecutor, ThreadPerTask,
};
use millpond::forkjoin::ForkJoinPool;
use millpond::interrupt;
use millpond::manage::{EngineSnapshot, Managed, Parameter, Patch, RunState};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::preset;
use millpond::queue::{AsyncQueue, DelayQueue};
use millpond::schedule::ScheduledPool;
use millpond::task::{self, TaskHandle};
use millpond::thread::Threads;
use millpond::time::{Clock, Deadline};
use millpond_raw::fork::{Child, run_in_child};
use millpond_testkit::watch;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

const TIMEOUT: u32 = 30;

/// One test at a time. While other threads are being started or end, a fork may catch the C library in
/// the middle of it, and then no thread can be started in the child: nothing that a pool could help.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs `f` in a child. It must return true, and in time.
#[track_caller]
fn in_child(f: impl FnOnce() -> bool) {
    let child = run_in_child(TIMEOUT, || if f() { 0 } else { 1 });
    assert_eq!(child.unwrap(), Child::Exited(0));
}

fn pool(workers: usize) -> ThreadPool {
    let pool = ThreadPool::builder("parent").core(workers).max(workers);
    pool.queue(Queue::bounded(64)).build().unwrap()
}

/// A task that runs until it is released, and its pool.
fn busy() -> (ThreadPool, TaskHandle<()>) {
    let pool = pool(1);
    let handle = pool
        .submit(|| {
            let _ = interrupt::sleep(Duration::MAX);
        })
        .unwrap();
    while !handle.is_started() {
        thread::yield_now();
    }
    (pool, handle)
}

#[test]
fn a_task_is_rejected_in_the_child_and_returned_whatever_the_policy() {
    let _alone = alone();
    let _watch = watch();
    for policy in [
        RejectionPolicy::Abort,
        RejectionPolicy::CallerRuns,
        RejectionPolicy::Block(Duration::MAX),
        RejectionPolicy::Discard,
    ] {
        let pool = pool(2);
        pool.set_rejection(policy);
        pool.submit(|| ()).unwrap().join().unwrap();
        in_child(|| {
            let water = String::from("water");
            let rejected = pool.submit(move || water).unwrap_err();
            let text = rejected.to_string();
            text.ends_with("build a new one after fork()")
                && rejected.reason.is_forked()
                && (rejected.task)() == "water"
        });
        assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
    }
}

#[test]
fn a_child_does_not_run_what_the_full_pool_of_its_parent_would_leave_to_it() {
    let _alone = alone();
    let _watch = watch();
    let (pool, running) = busy();
    pool.set_rejection(RejectionPolicy::CallerRuns);
    let ran = Arc::new(AtomicBool::new(false));
    // The last one finds the queue full.
    for _ in 0..=64 {
        let ran = Arc::clone(&ran);
        pool.execute(move || ran.store(true, Ordering::SeqCst))
            .unwrap();
    }
    assert_eq!(pool.snapshot().caller_ran, 1);
    assert!(ran.swap(false, Ordering::SeqCst));
    in_child(|| {
        let ran = Arc::clone(&ran);
        let own = Arc::clone(&ran);
        let rejected = pool.execute(move || own.store(true, Ordering::SeqCst));
        let Err(rejected) = rejected else {
            return false;
        };
        let unrun = !ran.load(Ordering::SeqCst);
        (rejected.task)();
        unrun && rejected.reason.is_forked() && ran.load(Ordering::SeqCst)
    });
    assert!(running.interrupt());
}

#[test]
fn an_unfinished_task_of_the_parent_is_an_error_in_the_child_and_a_finished_one_is_not() {
    let _alone = alone();
    let _watch = watch();
    let (pool, running) = busy();
    let queued = pool.submit(|| 7).unwrap();
    let (_task, by_hand) = task::new(|| 7);
    let shared = by_hand.shared();
    let (ended, mut handle) = task::new(|| 7);
    ended.run();
    let mut running = Some(running);
    let mut queued = Some(queued);
    in_child(|| {
        let Some(mut running) = running.take() else {
            return false;
        };
        let Some(mut queued) = queued.take() else {
            return false;
        };
        let mut context = Context::from_waker(Waker::noop());
        let polled = Pin::new(&mut queued).poll(&mut context);
        matches!(polled, Poll::Ready(Err(error)) if error.is_forked())
            && running.wait().is_err_and(|error| error.is_forked())
            && running
                .join_timeout(Duration::MAX)
                .is_err_and(|error| error.is_forked())
            && shared.join().is_err_and(|error| error.is_forked())
            && queued.run_or_join().is_err_and(|error| error.is_forked())
            && handle.wait().is_ok()
            && handle.try_join().is_some_and(|value| value.is_ok())
            // It is cancelled here, which no other thread notices.
            && running.interrupt()
            && running.join().is_err_and(|error| error.is_cancelled())
    });
    let (running, queued) = (running.unwrap(), queued.unwrap());
    assert!(running.interrupt());
    assert_eq!(queued.join().unwrap(), 7);
}

#[test]
fn whatever_else_is_done_to_a_pool_in_the_child_returns() {
    let _alone = alone();
    let _watch = watch();
    let (pool, running) = busy();
    let queued = pool.submit(|| 7).unwrap();
    let own = pool.clone();
    let mut copy = Some(own);
    in_child(|| {
        let Some(pool) = copy.take() else {
            return false;
        };
        let now = pool.snapshot();
        pool.set_rejection(RejectionPolicy::Discard);
        pool.set_thread_factory(pool.thread_factory());
        let quiet = matches!(pool.rejection(), RejectionPolicy::Abort)
            && !pool.remove(&queued)
            && pool.purge() == 0
            && pool.queued_tasks().is_empty()
            && pool.health().is_healthy();
        let rejected = pool.apply(&Patch::new().max(9)).is_err()
            && pool.set_core(0).is_err()
            && pool.prestart_core().is_err();
        pool.shutdown();
        let ended = pool.is_shutdown()
            && pool.is_terminated()
            && pool.shutdown_now().is_empty()
            && pool.await_termination_timeout(Duration::MAX) == Ok(true);
        pool.close().unwrap();
        let shown = format!("{pool:?}").contains("0 of 0 workers busy");
        drop(pool);
        (now.workers, now.queued) == (0, 0) && quiet && rejected && ended && shown
    });
    drop(copy);
    assert!(!pool.is_shutdown(), "the child's pool is another one");
    running.interrupt();
    assert_eq!(queued.join().unwrap(), 7);
    pool.close().unwrap();
}

#[test]
fn a_pool_that_is_built_in_the_child_works_and_so_does_one_in_its_child() {
    let _alone = alone();
    let _watch = watch();
    let parents = pool(2);
    parents.submit(|| ()).unwrap().join().unwrap();
    in_child(|| {
        let childs = pool(2);
        let own = childs.clone();
        let sum = childs.submit(move || own.submit(|| 3).unwrap().join().unwrap() + 4);
        let works = sum.unwrap().join().unwrap() == 7;
        let grand = run_in_child(TIMEOUT, || {
            let rejected = |pool: &ThreadPool| pool.submit(|| ()).is_err();
            let own = pool(1);
            let both = rejected(&parents) && rejected(&childs);
            i32::from(!(both && own.submit(|| 7).unwrap().join().unwrap() == 7))
        });
        childs.close().unwrap();
        works && grand.unwrap() == Child::Exited(0)
    });
}

#[test]
fn a_scheduled_pool_rejects_in_the_child_and_one_that_is_built_there_works() {
    let _alone = alone();
    let _watch = watch();
    let hour = Duration::from_secs(3600);
    // One that is gone, and has left behind what the next one takes.
    preset::scheduled("before", 1).unwrap().close().unwrap();
    let timers = preset::scheduled("parent", 1).unwrap();
    let mut task = timers.schedule(hour, || 7).unwrap();
    let other = timers.schedule(hour, || 8).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let busy = thread::spawn({
        let (timers, over) = (timers.clone(), Arc::clone(&over));
        move || {
            while !over.load(Ordering::Relaxed) {
                assert!(timers.schedule(hour, || ()).unwrap().cancel());
            }
        }
    });
    for _ in 0..10 {
        in_child(|| {
            let rejected = timers.schedule(hour, || 9).unwrap_err();
            let is_rejected = matches!(rejected.reason, RejectReason::Forked);
            let is_error = task.join_timeout(hour).is_err();
            let is_never = task.next_run() == Deadline::NEVER;
            let is_cancelled = task.cancel() && timers.snapshot().pending == 0;
            timers.shutdown();
            let is_cancelled = is_cancelled && other.interrupt();
            drop(timers.clone());
            let own = preset::scheduled("child", 1).unwrap();
            let value = own.schedule(Duration::from_millis(1), || 7).unwrap();
            let works = value.join().unwrap() == 7 && own.schedule(hour, || ()).unwrap().cancel();
            own.close().unwrap();
            is_rejected && is_error && is_never && is_cancelled && works
        });
    }
    over.store(true, Ordering::Relaxed);
    busy.join().unwrap();
    assert!(task.cancel() && other.cancel());
    timers.close().unwrap();
}

#[test]
fn other_executors_reject_in_the_child_as_well() {
    let _alone = alone();
    let _watch = watch();
    let threads = ThreadPerTask::builder("parent", 4).build().unwrap();
    let serial = SerialExecutor::new(pool(1));
    threads.submit(|| ()).unwrap().join().unwrap();
    let key = serial.key("one");
    key.submit(|| ()).unwrap().join().unwrap();
    in_child(|| {
        let forked = |executor: &dyn Executor| {
            let rejected = executor.submit(|| ());
            rejected.is_err_and(|rejected| matches!(rejected.reason, RejectReason::Forked))
        };
        let both = forked(&threads) && forked(&key);
        threads.close().unwrap();
        both && threads.threads() == 0 && threads.is_terminated() && serial.busy_keys() == 0
    });
}

/// Waits for a future, as an executor of one thread does.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// The timer's thread is the parent's; the child starts one of its own.
#[test]
fn alarms_fire_in_the_child() {
    let _alone = alone();
    let _watch = watch();
    let later = || {
        let queue = DelayQueue::new();
        queue.offer_after(7, Duration::from_millis(3)).unwrap();
        block_on(queue.recv()) == 7
    };
    assert!(later());
    in_child(later);
    assert!(later());
}

/// That timer has its thread in the parent for good. In the child, a waiter polls by itself.
#[test]
fn alarms_of_a_timer_that_the_parent_made_leave_no_thread_waiting_in_the_child() {
    let _alone = alone();
    let _watch = watch();
    let clock = Clock::system().with_timer(Threads::named("parents-timer"));
    let due_after = |delay| {
        let queue = DelayQueue::new().with_clock(clock.clone());
        queue.offer_after(7, delay).unwrap();
        queue
    };
    let later = || block_on(due_after(Duration::from_millis(3)).recv()) == 7;
    assert!(later());
    // An alarm that is set in the parent and dropped on both sides.
    let far = due_after(Duration::from_secs(3600));
    let mut receiving = Box::pin(far.recv());
    let mut context = Context::from_waker(Waker::noop());
    assert!(receiving.as_mut().poll(&mut context).is_pending());
    in_child(|| {
        drop(receiving);
        later()
    });
    assert!(later());
}

/// The watch of such a pool gets no alarm; that is not a reason to recurse until the stack is gone.
#[test]
fn a_pool_of_the_child_on_a_timer_of_the_parent_works_and_rejects_delayed_tasks() {
    let _alone = alone();
    let _watch = watch();
    let clock = Clock::system().with_timer(Threads::named("parents-timer"));
    let by_clock = || {
        let pool = ThreadPool::builder("child").core(1).max(1);
        pool.clock(clock.clone()).build().unwrap()
    };
    let parents = by_clock();
    parents.submit(|| ()).unwrap().join().unwrap();
    in_child(|| {
        let own = by_clock();
        let works = (0..100).all(|i| own.submit(move || i).unwrap().join().unwrap() == i);
        let timers = ScheduledPool::on(own.clone()).clock(clock.clone()).build();
        let rejected = timers.schedule(Duration::from_secs(3600), || 7);
        let is_rejected = rejected.is_err_and(|rejected| {
            matches!(rejected.reason, RejectReason::SpawnFailed(_)) && (rejected.task)() == 7
        });
        timers.close().unwrap();
        own.close().unwrap();
        works && is_rejected
    });
    parents.close().unwrap();
}

/// Whatever the parent's threads hold when it forks.
#[test]
fn a_hundred_children_of_a_parent_under_load_all_end() {
    let _alone = alone();
    let _watch = watch();
    let pool = pool(2);
    let over = Arc::new(AtomicBool::new(false));
    let submitters: Vec<_> = (0..2)
        .map(|_| {
            let (pool, over) = (pool.clone(), Arc::clone(&over));
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    // Everything that takes locks: queue, workers, memory, waiters, the table of blocked joins.
                    let own = pool.clone();
                    let nested = pool.submit(move || own.submit(|| 7).map(|one| one.join().ok()));
                    if let Ok(nested) = nested {
                        let _ = nested.join();
                    }
                    let _ = pool.apply(&Patch::new().keep_alive(Duration::from_secs(9)));
                    drop(pool.snapshot());
                }
            })
        })
        .collect();
    for round in 0..100 {
        let handle = loop {
            if let Ok(handle) = pool.submit(thread::yield_now) {
                break handle;
            }
        };
        let mut handle = Some(handle);
        let mut own = Some(pool.clone());
        let child = run_in_child(TIMEOUT, || {
            let (Some(handle), Some(own)) = (handle.take(), own.take()) else {
                return 2;
            };
            let rejected = own.submit(|| ()).is_err_and(|one| one.reason.is_forked());
            let joined = match handle.join() {
                Ok(()) => true,
                Err(error) => error.is_forked(),
            };
            drop(own.snapshot());
            own.close().unwrap();
            drop(own);
            let new = ThreadPool::builder("child").core(1).max(1).build().unwrap();
            let works = new.submit(|| 7).unwrap().join().unwrap() == 7;
            new.close().unwrap();
            i32::from(!(rejected && joined && works))
        });
        assert_eq!(child.unwrap(), Child::Exited(0), "round {round}");
        handle.unwrap().join().unwrap();
    }
    over.store(true, Ordering::Relaxed);
    for submitter in submitters {
        submitter.join().unwrap();
    }
    pool.close().unwrap();
}

/// In the child, whatever is done to it.
fn has_ended(engine: &(impl Managed + Lifecycle)) -> bool {
    let now = engine.engine_snapshot();
    now.state == RunState::Terminated
        && engine.is_shutdown()
        && engine.is_terminated()
        && (now.workers, now.queued) == (0, 0)
}

/// Books and parameters are what they were at the fork: the engine was at rest, so no lock was held.
fn keeps_its_books(engine: impl Managed + Lifecycle) {
    let books = |now: EngineSnapshot| (now.submitted, now.completed, now.failed, now.cancelled);
    let values = |all: Vec<Parameter>| -> Vec<_> {
        // The capacity is with the queue, behind its lock: in a child it is 0.
        let all = all.into_iter().filter(|each| each.name != "capacity");
        all.map(|each| (each.name, each.value)).collect()
    };
    let at_fork = (books(engine.engine_snapshot()), values(engine.parameters()));
    assert_eq!(at_fork.0.1, 10);
    in_child(|| {
        let now = (books(engine.engine_snapshot()), values(engine.parameters()));
        let had_ended = has_ended(&engine);
        let nothing = Patch::new();
        let is_refused = engine.apply(&nothing).is_err() && engine.check(&nothing).is_err();
        engine.shutdown();
        let is_closed = engine.close().is_ok();
        now == at_fork && had_ended && is_refused && is_closed && has_ended(&engine)
    });
    assert!(!engine.is_shutdown() && !engine.is_terminated());
    engine.close().unwrap();
}

/// Waits until the books show that ten tasks are completed.
fn ten_tasks(engine: &impl Managed, mut run_one: impl FnMut()) {
    (0..10).for_each(|_| run_one());
    while engine.engine_snapshot().completed < 10 {
        thread::yield_now();
    }
}

#[test]
fn a_pool_has_ended_in_the_child_and_keeps_its_books_and_parameters() {
    let _alone = alone();
    let _watch = watch();
    let mill = pool(1);
    mill.apply(&Patch::new().max(3)).unwrap();
    ten_tasks(&mill, || mill.submit(|| ()).unwrap().join().unwrap());
    keeps_its_books(mill);
}

#[test]
fn a_scheduled_pool_has_ended_in_the_child_and_keeps_its_books_and_parameters() {
    let _alone = alone();
    let _watch = watch();
    let timers = preset::scheduled("parent", 1).unwrap();
    timers.set_max_pending(77);
    ten_tasks(&timers, || {
        let soon = timers.schedule(Duration::ZERO, || ()).unwrap();
        soon.join().unwrap();
    });
    keeps_its_books(timers);
}

#[test]
fn a_fork_join_pool_has_ended_in_the_child_and_keeps_its_books_and_parameters() {
    let _alone = alone();
    let _watch = watch();
    let mill = ForkJoinPool::builder("parent").parallelism(1);
    let mill = mill.build().unwrap();
    mill.set_parallelism(2).unwrap();
    ten_tasks(&mill, || mill.submit(|| ()).unwrap().join().unwrap());
    keeps_its_books(mill);
}

#[test]
fn a_busy_fork_join_pool_rejects_in_the_child_and_whatever_else_is_done_to_it_returns() {
    let _alone = alone();
    let _watch = watch();
    let pool = ForkJoinPool::builder("parent").parallelism(1);
    let pool = pool.build().unwrap();
    let running = pool.submit(|| interrupt::sleep(Duration::MAX)).unwrap();
    while !running.is_started() {
        thread::yield_now();
    }
    let queued = pool.submit(|| 7).unwrap().shared();
    let mut copy = Some(pool.clone());
    in_child(|| {
        let Some(pool) = copy.take() else {
            return false;
        };
        let water = String::from("water");
        let rejected = pool.submit(move || water).unwrap_err();
        let is_rejected = rejected.reason.is_forked() && (rejected.task)() == "water";
        let is_lost = queued.join().is_err_and(|error| error.is_forked());
        let is_quiet = pool.set_parallelism(2).is_err()
            && pool.workers().is_empty()
            && pool.stacks().is_empty()
            && pool.health().is_healthy();
        pool.shutdown();
        let has_ended = has_ended(&pool)
            && pool.shutdown_now().is_empty()
            && pool.await_termination_timeout(Duration::MAX) == Ok(true);
        drop(pool);
        is_rejected && is_lost && is_quiet && has_ended
    });
    drop(copy);
    assert!(!pool.is_shutdown(), "the child's pool is another one");
    assert!(running.interrupt());
    assert_eq!(*queued.join().unwrap(), 7);
    pool.close().unwrap();
}
