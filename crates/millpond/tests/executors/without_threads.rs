//! Waiting in async code: for room, for the end; and what blocks the thread of a runtime instead.

use millpond::executor::{
    Executor, ExecutorExt, Lifecycle, RejectReason, Terminated, ThreadPerTask,
};
use millpond::forkjoin::ForkJoinPool;
use millpond::pool::{PoolBuilder, Queue, RejectionPolicy, SubmitWhenRoom, ThreadPool};
use millpond::preset;
use millpond::queue::FifoQueue;
use millpond::task::{TaskHandle, TaskSpec};
use millpond::time::ManualClock;
use millpond_testkit::watch;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Counts its calls.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future + Unpin>(future: &mut F, bell: &Arc<Bell>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(bell));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// Polls whenever it has been woken.
fn drive<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let bell = Arc::new(Bell::default());
    loop {
        let rung = bell.0.load(Ordering::SeqCst);
        if let Poll::Ready(output) = poll(&mut future, &bell) {
            return output;
        }
        while bell.0.load(Ordering::SeqCst) == rung {
            std::thread::yield_now();
        }
    }
}

/// A pool with one worker that is busy until the sender is dropped, and room for one task, which is taken if `full`.
struct Full {
    hand: ManualClock,
    pool: ThreadPool,
    busy: Sender<()>,
    queued: TaskHandle<()>,
}

fn full(queue: Queue) -> Full {
    let hand = ManualClock::new();
    let pool = ThreadPool::builder("mill").core(1).max(1).queue(queue);
    let pool = pool.clock(hand.clock()).build().unwrap();
    let (busy, may_end) = channel::<()>();
    let (tell, told) = channel();
    let body = move || {
        tell.send(()).unwrap();
        let _ = may_end.recv();
    };
    pool.execute(body).unwrap();
    told.recv().unwrap();
    let queued = pool.submit(|| ()).unwrap();
    Full {
        hand,
        pool,
        busy,
        queued,
    }
}

fn queues() -> [Queue; 2] {
    let own = FifoQueue::bounded(1).unwrap();
    [Queue::bounded(1), Queue::custom(own)]
}

#[test]
fn a_future_gets_the_room_that_a_worker_makes_without_a_thread_that_waits() {
    for queue in queues() {
        let full = full(queue);
        let bell = Arc::new(Bell::default());
        let mut third = full.pool.submit_when_room(|| 3);
        assert!(poll(&mut third, &bell).is_pending());
        drop(full.busy);
        let handle = drive(third).unwrap();
        assert_eq!(handle.join().unwrap(), 3);
        full.queued.join().unwrap();
        full.pool.close().unwrap();
        let now = full.pool.snapshot();
        assert_eq!(
            (now.completed, now.waited_for_room, now.rejected),
            (3, 1, 0)
        );
    }
}

#[test]
fn futures_and_threads_are_served_in_the_order_of_their_arrival() {
    let full = full(Queue::bounded(1));
    full.pool
        .set_rejection(RejectionPolicy::Block(Duration::MAX));
    let (tell, told) = channel();
    let ordered = |number: u32| {
        let tell = tell.clone();
        move || tell.send(number).unwrap()
    };
    let bell = Arc::new(Bell::default());
    let mut first = full.pool.submit_when_room(ordered(1));
    assert!(poll(&mut first, &bell).is_pending());
    let (pool, second) = (full.pool.clone(), ordered(2));
    let thread = std::thread::spawn(move || pool.execute(second).is_ok());
    while full.pool.snapshot().waited_for_room < 2 {
        std::thread::yield_now();
    }
    // The thread is in the line, or spins for a moment before it enters it.
    std::thread::sleep(Duration::from_millis(20));
    let mut third = full.pool.submit_when_room(ordered(3));
    assert!(poll(&mut third, &bell).is_pending());
    drop(full.busy);
    drop((drive(first).unwrap(), drive(third).unwrap()));
    assert!(thread.join().unwrap());
    let order: Vec<u32> = told.iter().take(3).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn a_future_that_is_dropped_has_submitted_nothing_and_takes_no_place() {
    for queue in queues() {
        let full = full(queue);
        let bell = Arc::new(Bell::default());
        let ran = Arc::new(AtomicUsize::new(0));
        let run = || {
            let ran = Arc::clone(&ran);
            move || {
                ran.fetch_add(1, Ordering::SeqCst);
            }
        };
        drop(full.pool.submit_when_room(run()));
        let mut waits = full.pool.submit_when_room(run());
        assert!(poll(&mut waits, &bell).is_pending());
        drop(waits);
        let mut next = full.pool.submit_when_room(run());
        assert!(poll(&mut next, &bell).is_pending());
        drop(full.busy);
        drive(next).unwrap().join().unwrap();
        full.pool.close().unwrap();
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        assert_eq!(Arc::strong_count(&ran), 1, "the closures are dropped");
        let now = full.pool.snapshot();
        assert_eq!((now.submitted, now.rejected), (3, 1));
    }
}

#[test]
fn a_task_that_a_worker_has_taken_at_the_last_moment_cannot_be_taken_back() {
    let pool = ThreadPool::builder("mill").max(1).queue(Queue::hand_off());
    let pool = pool.build().unwrap();
    let (busy, may_end) = channel::<()>();
    let held = pool.submit(move || may_end.recv().is_err()).unwrap();
    let (tell, told) = channel();
    let bell = Arc::new(Bell::default());
    let mut dropped = pool.submit_when_room(|| unreachable!("it was given up in time"));
    let mut served = pool.submit_when_room(move || tell.send("flour"));
    assert!(poll(&mut dropped, &bell).is_pending());
    assert!(poll(&mut served, &bell).is_pending());
    assert!(dropped.into_closure().is_some());
    drop(busy);
    assert!(held.join().unwrap());
    assert_eq!(
        told.recv(),
        Ok("flour"),
        "the worker took it out of the future"
    );
    assert!(served.into_closure().is_none());
    pool.close().unwrap();
    let now = pool.snapshot();
    assert_eq!((now.submitted, now.completed, now.rejected), (2, 2, 1));
}

#[test]
fn the_time_is_up_by_the_clock_of_the_pool_and_the_closure_is_back() {
    let full = full(Queue::bounded(1));
    let bell = Arc::new(Bell::default());
    let mut late = full.pool.submit_when_room(|| "flour").timeout(SECOND);
    assert!(poll(&mut late, &bell).is_pending());
    full.hand.advance(SECOND);
    assert!(bell.0.load(Ordering::SeqCst) > 0, "it is woken");
    let Poll::Ready(Err(rejected)) = poll(&mut late, &bell) else {
        panic!("there is no room");
    };
    assert!(rejected.reason.is_saturated());
    assert_eq!((rejected.task)(), "flour");
    assert_eq!(full.pool.snapshot().rejected, 1);
}

#[test]
fn a_shutdown_wakes_the_future_and_gives_the_closure_back() {
    for queue in queues() {
        let full = full(queue);
        let bell = Arc::new(Bell::default());
        let mut waits = full.pool.submit_when_room(|| "flour");
        assert!(poll(&mut waits, &bell).is_pending());
        full.pool.shutdown();
        assert!(bell.0.load(Ordering::SeqCst) > 0, "it is woken");
        let rejected = drive(waits).unwrap_err();
        assert!(matches!(rejected.reason, RejectReason::ShutDown));
        assert_eq!((rejected.task)(), "flour");
        drop(full.busy);
        full.pool.close().unwrap();
    }
}

#[test]
fn a_higher_maximum_starts_a_worker_for_it() {
    let full = full(Queue::bounded(1));
    let bell = Arc::new(Bell::default());
    let mut waits = full.pool.submit_when_room(|| "flour");
    assert!(poll(&mut waits, &bell).is_pending());
    full.pool.set_max(2).unwrap();
    assert!(bell.0.load(Ordering::SeqCst) > 0, "it is woken");
    assert_eq!(drive(waits).unwrap().join().unwrap(), "flour");
    drop(full.busy);
}

#[test]
fn the_future_may_be_sent_and_needs_no_pinning() {
    fn check<T: Send + Unpin>(_: T) {}
    let pool = preset::single("mill").build().unwrap();
    let spec = TaskSpec::new().name("grind");
    let future: SubmitWhenRoom<'_, _, u32> = pool.submit_when_room_with(spec, || 7);
    check(future);
    check(pool.terminated());
}

#[test]
fn many_futures_through_a_pool_of_one_place_are_all_run() {
    let pool = ThreadPool::builder("mill").max(2).queue(Queue::bounded(1));
    let pool = pool.build().unwrap();
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let pool = pool.clone();
            std::thread::spawn(move || {
                (0..300_u64)
                    .map(|number| drive(pool.submit_when_room(move || thread * number)).unwrap())
                    .map(|handle| handle.join().unwrap())
                    .sum::<u64>()
            })
        })
        .collect();
    let sum: u64 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(sum, 6 * (300 * 299 / 2));
    pool.close().unwrap();
}

fn await_end(lifecycle: &(impl Lifecycle + Executor)) {
    let bell = Arc::new(Bell::default());
    let (go, may_go) = channel::<()>();
    let body = move || {
        let _ = may_go.recv();
    };
    lifecycle.execute(body).unwrap();
    let mut end = Terminated::of(lifecycle);
    assert!(poll(&mut end, &bell).is_pending());
    assert!(!lifecycle.is_shutdown(), "it only waits");
    lifecycle.shutdown();
    assert!(poll(&mut end, &bell).is_pending());
    drop(go);
    drive(end);
    assert!(lifecycle.is_terminated());
}

#[test]
fn the_end_of_every_executor_can_be_awaited() {
    let _watchdog = watch();
    await_end(&preset::single("mill").build().unwrap());
    await_end(
        &ForkJoinPool::builder("mill")
            .parallelism(1)
            .build()
            .unwrap(),
    );
    await_end(&ThreadPerTask::builder("mill", 2).build().unwrap());
}

#[test]
fn a_scheduled_pool_has_ended_when_its_own_executor_has() {
    let pool = preset::scheduled("mill", 1).unwrap();
    let (go, may_go) = channel::<()>();
    let (tell, told) = channel();
    let task = pool.schedule(Duration::ZERO, move || {
        tell.send(()).unwrap();
        may_go.recv().is_err()
    });
    let task = task.unwrap();
    told.recv().unwrap();
    let mut end = pool.close_async();
    assert!(
        !pool.is_shutdown(),
        "futures do nothing until they are polled"
    );
    assert!(poll(&mut end, &Arc::new(Bell::default())).is_pending());
    assert!(pool.is_shutdown());
    drop(go);
    drive(end);
    assert!(pool.is_terminated() && task.join().unwrap());
}

#[test]
fn an_executor_of_the_users_that_wakes_nobody_is_looked_at_now_and_then() {
    #[derive(Debug)]
    struct Wrapper(ThreadPool);

    impl Lifecycle for Wrapper {
        fn shutdown(&self) {
            self.0.shutdown();
        }
        fn shutdown_now(&self) -> Vec<millpond::task::Task> {
            self.0.shutdown_now()
        }
        fn is_shutdown(&self) -> bool {
            self.0.is_shutdown()
        }
        fn is_terminated(&self) -> bool {
            self.0.is_terminated()
        }
        fn await_termination_until(
            &self,
            deadline: millpond::time::Deadline,
        ) -> Result<bool, millpond::executor::TerminationError> {
            self.0.await_termination_until(deadline)
        }
        fn await_termination_timeout(
            &self,
            timeout: Duration,
        ) -> Result<bool, millpond::executor::TerminationError> {
            self.0.await_termination_timeout(timeout)
        }
    }

    let own = Wrapper(preset::single("mill").build().unwrap());
    let (go, may_go) = channel::<()>();
    let body = move || {
        let _ = may_go.recv();
    };
    own.0.execute(body).unwrap();
    let mut end = own.close_async();
    assert!(poll(&mut end, &Arc::new(Bell::default())).is_pending());
    drop(go);
    drive(end);
}

#[cfg(feature = "tokio")]
mod on_a_runtime {
    use super::*;
    use millpond::interrupt::{self, BlockedRuntime};

    fn seen_in(lines: std::ops::Range<u32>) -> Vec<BlockedRuntime> {
        let mut seen = interrupt::blocked_runtime_threads();
        seen.retain(|each| {
            each.location.file() == file!() && lines.contains(&each.location.line())
        });
        seen
    }

    fn nap() {
        interrupt::sleep(Duration::from_millis(20)).unwrap();
    }

    #[test]
    fn each_place_that_blocks_a_runtimes_thread_is_told_once_with_what_to_use() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let builder = || ThreadPool::builder("mill").max(1).queue(Queue::bounded(1));
        let block = |pool: PoolBuilder| pool.rejection(RejectionPolicy::Block(Duration::MAX));
        let pool = block(builder()).build().unwrap();
        let first = line!();
        runtime.block_on(async {
            for _ in 0..3 {
                pool.submit(nap).unwrap().join().unwrap();
            }
            for _ in 0..3 {
                pool.execute(nap).unwrap();
            }
            pool.close().unwrap();
        });
        let calls = seen_in(first..line!());
        let calls: Vec<_> = calls.iter().map(|each| (each.call, each.instead)).collect();
        assert_eq!(
            calls,
            [
                ("TaskHandle::join", "await the handle"),
                ("RejectionPolicy::Block", "use `submit_when_room(..).await`"),
                ("close", "use `close_async().await`"),
            ]
        );
    }

    #[test]
    fn threads_that_may_block_are_left_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let pool = preset::single("mill").build().unwrap();
        let first = line!();
        pool.submit(nap).unwrap().join().unwrap();
        let _entered = runtime.enter();
        pool.submit(nap).unwrap().join().unwrap();
        let own = pool.clone();
        let blocking = runtime.spawn_blocking(move || own.submit(nap).unwrap().join().is_ok());
        assert!(runtime.block_on(blocking).unwrap());
        runtime.block_on(async {
            pool.submit(nap).unwrap().await.unwrap();
            pool.submit_when_room(nap).await.unwrap().await.unwrap();
            pool.close_async().await;
            // It has ended, so nothing blocks.
            pool.close().unwrap();
        });
        assert_eq!(seen_in(first..line!()), []);
    }

    #[test]
    fn a_line_says_where_and_what_to_do() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let pool = preset::single("mill").build().unwrap();
        let line = line!() + 1;
        runtime.block_on(async { pool.submit(nap).unwrap().join().unwrap() });
        let seen = seen_in(line..line + 1);
        let text = seen[0].to_string();
        let start = format!("TaskHandle::join at {}:{line}:", file!());
        assert!(text.starts_with(&start), "{text}");
        assert!(text.ends_with(": await the handle, or call it in `tokio::task::spawn_blocking`"));
    }
}
