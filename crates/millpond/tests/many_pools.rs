//! What a pool promises does not depend on how many others there are, or were.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

mod forward_kit;

use forward_kit::forward_to_inner;
use millpond::executor::{CompletionService, Executor, ExecutorExt, Lifecycle, SpawnFuture};
use millpond::forkjoin::ForkJoinPool;
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::preset;
use millpond::queue::{
    AsyncQueue, BlockingQueue, CapacityError, DelayQueue, FifoQueue, OfferError, Offered, Taken,
    WaitSlot,
};
use millpond::schedule::ScheduledPool;
use millpond::task::Task;
use millpond::thread::Threads;
use millpond::time::{Clock, ManualClock};
use millpond_testkit::watch;
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::time::{Duration, Instant};

const MANY: usize = 1_200;

fn mill() -> ThreadPool {
    let mill = ThreadPool::builder("mill").core(1).max(1);
    mill.queue(Queue::bounded(8)).build().unwrap()
}

fn fork_join_mill() -> ForkJoinPool {
    let mill = ForkJoinPool::builder("mill").parallelism(1);
    mill.build().unwrap()
}

/// A worker joins a task that waits in the queue behind it, and runs it inline.
#[track_caller]
fn joins_itself<P: Executor + Clone + 'static>(pool: &P) {
    let inner = pool.clone();
    let outer = pool.submit(move || inner.submit(|| 7).unwrap().join().unwrap());
    let joined = outer.unwrap().join_timeout(Duration::from_secs(20));
    assert_eq!(joined.unwrap(), 7);
}

#[track_caller]
fn each_joins_itself_among_many<P: Executor + Lifecycle + Clone + 'static>(mill: fn() -> P) {
    let _watch = watch();
    let mut pools: Vec<_> = (0..MANY).map(|_| mill()).collect();
    for number in [0, 255, 256, 257, 511, 512, MANY - 1] {
        joins_itself(&pools[number]);
    }
    // Some go, and others come.
    pools.drain(200..900);
    pools.extend((0..700).map(|_| mill()));
    for pool in pools.iter().step_by(97) {
        joins_itself(pool);
    }
    pools.iter().for_each(Lifecycle::shutdown);
}

#[test]
fn a_worker_joins_in_its_own_pool_however_many_pools_there_are() {
    each_joins_itself_among_many(mill);
}

#[test]
fn a_worker_joins_in_its_own_fork_join_pool_however_many_pools_there_are() {
    each_joins_itself_among_many(fork_join_mill);
}

fn a_completion_service_takes_among_many<P: Executor + Clone + 'static>(mill: fn() -> P) {
    let _watch = watch();
    let pools: Vec<_> = (0..MANY).map(|_| mill()).collect();
    for number in [0, 256, MANY - 1] {
        let pool = &pools[number];
        let service = CompletionService::new(pool.clone());
        let outer = pool.submit(move || {
            service.submit(|| 7).unwrap();
            service.take().unwrap().result.unwrap()
        });
        let taken = outer.unwrap().join_timeout(Duration::from_secs(20));
        assert_eq!(taken.unwrap(), 7);
    }
}

#[test]
fn a_completion_service_takes_in_a_worker_however_many_pools_there_are() {
    a_completion_service_takes_among_many(mill);
}

#[test]
fn a_completion_service_takes_in_a_worker_however_many_fork_join_pools_there_are() {
    a_completion_service_takes_among_many(fork_join_mill);
}

#[test]
fn a_scheduled_task_is_joined_in_a_worker_however_many_pools_there_are() {
    let _watch = watch();
    let _others: Vec<_> = (0..MANY).map(|_| mill()).collect();
    let pool = Arc::new(preset::scheduled("timed", 1).unwrap());
    let inner = Arc::clone(&pool);
    let outer = pool.submit(move || {
        let soon = inner.schedule(Duration::from_millis(1), || 7).unwrap();
        soon.join().unwrap()
    });
    let joined = outer.unwrap().join_timeout(Duration::from_secs(20));
    assert_eq!(joined.unwrap(), 7);
}

/// TAG-3 and TAG-4 of `task::queue_tag`: the user has a share in the queue, so a task can outlive its pool.
#[test]
fn a_task_that_outlives_its_pool_is_no_task_of_a_later_one() {
    let _watch = watch();
    let with = |queue: &Common| {
        let mill = ThreadPool::builder("mill").core(1).max(1);
        mill.queue(Queue::custom(queue.clone())).build().unwrap()
    };
    let fresh = || Common(Arc::new(FifoQueue::unbounded()));
    let queue = fresh();
    let old = with(&queue);
    let (go, may_go) = mpsc::channel::<()>();
    let busy = old.submit(move || may_go.recv().is_err()).unwrap();
    let left = old.submit(|| "left").unwrap().shared();
    let task = queue.poll().unwrap();
    drop(go);
    assert!(busy.join().unwrap());
    old.shutdown();
    old.await_termination().unwrap();
    drop(old);
    // However often numbers have gone round meanwhile.
    for round in 0..40 {
        let later: Vec<_> = (0..round * 15 + 1).map(|_| with(&fresh())).collect();
        let new = later.into_iter().next_back().unwrap();
        let waits = left.clone();
        let joined = new.submit(move || waits.join_timeout(Duration::from_millis(1)).is_err());
        assert!(joined.unwrap().join().unwrap(), "it is nobody's");
        joins_itself(&new);
        new.shutdown();
        new.await_termination().unwrap();
        assert_eq!(new.snapshot().completed, 3);
    }
    let _ = task.run();
    assert_eq!(*left.join().unwrap(), "left");
}

/// A queue of which its maker keeps a share.
#[derive(Clone, Debug)]
struct Common(Arc<FifoQueue<Task>>);

impl BlockingQueue<Task> for Common {
    forward_to_inner!();
}

#[test]
fn futures_that_wait_for_room_in_one_pool_delay_no_scheduled_pool() {
    const ROOM: usize = 64;
    let _watch = watch();
    let (hand, second) = (ManualClock::new(), Duration::from_secs(1));
    let clock = hand.clock().with_timer(Threads::named("own-timer"));
    let full = ThreadPool::builder("full").core(1).max(1);
    let full = full
        .queue(Queue::bounded(ROOM))
        .rejection(RejectionPolicy::Block(Duration::from_secs(3600)))
        .build()
        .unwrap();
    let futures: Vec<_> = (0..40)
        .map(|i| {
            let queue = Arc::new(DelayQueue::new().with_clock(clock.clone()));
            queue.offer_after(i, second).unwrap();
            full.spawn_future(async move { queue.recv().await })
                .unwrap()
        })
        .collect();
    // Behind them in the queue: all of them have been polled, and wait for their time.
    full.submit(|| ()).unwrap().join().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    let (begins, has_begun) = mpsc::channel();
    full.execute(move || {
        begins.send(()).unwrap();
        for () in may_go {}
    })
    .unwrap();
    has_begun.recv().unwrap();
    for _ in 0..ROOM {
        full.execute(|| ()).unwrap();
    }
    let below = mill();
    let timers = ScheduledPool::on(below.clone()).clock(clock).build();
    let other = timers.schedule(2 * second, || "bread").unwrap();
    // All of them are woken, and find no room.
    hand.advance(second);
    let start = Instant::now();
    while !other.is_finished() {
        hand.advance(second);
        std::thread::yield_now();
        assert!(start.elapsed() < Duration::from_secs(20), "it is held up");
    }
    assert_eq!(other.join().unwrap(), "bread");
    assert!(futures.iter().all(|future| !future.is_finished()));
    drop(go);
    for (i, future) in futures.into_iter().enumerate() {
        assert_eq!(future.join().unwrap(), i);
    }
    timers.close().unwrap();
    below.close().unwrap();
    full.close().unwrap();
}
