//! Workers that block are replaced, up to a bound, and only while there is something to do.

use crate::{fib, pool, until};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinEvent, ForkJoinPool};
use millpond::interrupt;
use millpond::queue::{BlockingQueue, FifoQueue, HandOffQueue};
use millpond::task;
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::ManualClock;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn small(parallelism: usize, max_spares: usize) -> ForkJoinPool {
    let builder = ForkJoinPool::builder("mill").parallelism(parallelism);
    builder.max_spares(max_spares).build().unwrap()
}

fn queue() -> Arc<FifoQueue<u32>> {
    Arc::new(FifoQueue::unbounded())
}

/// Both workers of a pool run `wait`; a third task, which can only run on a spare, runs `release`.
fn replaced(
    name: &str,
    wait: impl Fn(&ForkJoinPool) + Clone + Send + 'static,
    release: impl FnOnce() + Send + 'static,
) {
    let pool = pool(2);
    let waits = [0, 1].map(|_| {
        let (wait, own) = (wait.clone(), pool.clone());
        pool.submit(move || wait(&own)).unwrap()
    });
    until(|| pool.snapshot().blocked == 2);
    pool.submit(release).unwrap().join().unwrap();
    waits.into_iter().for_each(|wait| wait.join().unwrap());
    let now = pool.snapshot();
    // One more if the first was blocked before the second had begun.
    assert!(
        now.blocked == 0 && matches!(now.largest, 3 | 4),
        "{name}: {now:?}"
    );
    pool.close().unwrap();
}

#[test]
fn workers_that_wait_in_calls_of_ours_are_replaced_without_being_told() {
    let full = queue();
    let from = Arc::clone(&full);
    let put = move || (0..2).for_each(|n| full.put(n).unwrap());
    replaced("queue", move |_| _ = from.take().unwrap(), put);

    let handoff = Arc::new(HandOffQueue::<u32>::unfair());
    let to = Arc::clone(&handoff);
    let take = move || (0..2).for_each(|_| _ = handoff.take().unwrap());
    replaced("handoff", move |_| to.put(7).unwrap(), take);

    let (work, handle) = task::new(|| 7);
    let handle = handle.shared();
    let wait = move |_: &ForkJoinPool| _ = handle.clone().join().unwrap();
    replaced("handle", wait, move || _ = work.run());

    let gates = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&gates);
    let sleep = move |_: &ForkJoinPool| {
        let (nap, handle) = task::new(|| _ = interrupt::sleep(HOUR));
        own.lock().unwrap().push(handle);
        nap.run();
    };
    let wake = move || {
        for nap in gates.lock().unwrap().drain(..) {
            nap.interrupt();
        }
    };
    replaced("sleep", sleep, wake);

    let other = pool(1);
    let ended = other.clone();
    let wait = move |_: &ForkJoinPool| ended.await_termination().unwrap();
    replaced("termination", wait, move || other.shutdown());
}

#[test]
fn a_worker_that_waits_for_another_pool_is_replaced() {
    let (outer, other) = (pool(1), pool(1));
    let gate = queue();
    let (inner, from) = (other.clone(), Arc::clone(&gate));
    let waits = outer.submit(move || inner.install(|| from.take().unwrap()));
    until(|| outer.snapshot().blocked == 1 && other.snapshot().blocked == 1);
    outer.submit(move || gate.put(7).unwrap()).unwrap();
    assert_eq!(waits.unwrap().join().unwrap(), 7);
}

#[test]
fn what_blocks_unseen_is_told_and_replaced() {
    let pool = pool(1);
    let (send, receive) = mpsc::channel();
    let waits = pool.submit(move || forkjoin::blocking(|| receive.recv().unwrap()));
    pool.execute(move || send.send(7).unwrap()).unwrap();
    assert_eq!(waits.unwrap().join().unwrap(), 7);
    assert_eq!(forkjoin::blocking(|| 3), 3, "no worker");
    assert_eq!(
        millpond::preset::single("other")
            .build()
            .unwrap()
            .submit(|| forkjoin::blocking(|| 4))
            .unwrap()
            .join()
            .unwrap(),
        4
    );
}

#[test]
fn private_jobs_are_published_before_their_worker_blocks() {
    // The first side of each join waits for what the second one brings, and there is one worker.
    fn nested(depth: u32, gate: &FifoQueue<u32>) -> u32 {
        if depth == 0 {
            return (0..8).map(|_| gate.take().unwrap()).sum();
        }
        let (all, ()) = forkjoin::join(|| nested(depth - 1, gate), || gate.put(1).unwrap());
        all
    }
    for _ in 0..100 {
        let pool = pool(1);
        let gate = queue();
        assert_eq!(pool.install(|| nested(8, &gate)), 8);
        pool.close().unwrap();
    }
}

#[test]
fn an_outer_job_is_published_before_its_worker_waits_for_a_scope() {
    // A job of the scope waits, on a spare, for the second side of the outer join.
    let pool = pool(1);
    let gate = queue();
    let both = pool.install(|| {
        forkjoin::join(
            || {
                let mut got = 0;
                forkjoin::scope(|scope| scope.spawn(|_| got = gate.take().unwrap()));
                got
            },
            || gate.put(7).unwrap(),
        )
    });
    assert_eq!(both, (7, ()));
}

#[test]
fn at_the_bound_workers_block_and_the_operator_is_told_once_in_a_while() {
    let hand = ManualClock::new();
    let (tell, told) = mpsc::channel();
    let pool = ForkJoinPool::builder("mill").parallelism(1).max_spares(2);
    let pool = pool
        .clock(hand.clock())
        .on_event(move |event| {
            if let ForkJoinEvent::SparesExhausted {
                pool,
                blocked,
                max_spares,
                ..
            } = event
            {
                tell.send((pool.clone(), *blocked, *max_spares, event.to_string()))
                    .unwrap();
            }
        })
        .build()
        .unwrap();
    let gate = queue();
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let from = Arc::clone(&gate);
            pool.submit(move || from.take().unwrap()).unwrap()
        })
        .collect();
    until(|| pool.snapshot().blocked == 3);
    assert!(told.try_recv().is_err(), "nothing waits");
    let queued: Vec<_> = (0..5).map(|n| pool.submit(move || n).unwrap()).collect();
    let (name, blocked, max_spares, said) = told.recv_timeout(crate::TIMEOUT).unwrap();
    assert_eq!((name.as_str(), blocked, max_spares), ("mill", 3, 2));
    assert!(said.contains("raise max_spares"), "{said}");
    assert!(told.try_recv().is_err(), "once for all five");
    let now = pool.snapshot();
    assert_eq!((now.workers, now.spares, now.queued_outside), (3, 2, 5));
    assert_eq!((now.spares_exhausted, now.active), (5, 0));
    assert!(pool.explain().contains("Nothing runs: all workers wait"));
    assert!(!queued[0].is_started());
    hand.advance(Duration::from_secs(11));
    pool.execute(|| ()).unwrap();
    told.recv_timeout(crate::TIMEOUT).expect("told again");
    for n in 0..3 {
        gate.put(n).unwrap();
    }
    let mut got: Vec<_> = waits.into_iter().map(|wait| wait.join().unwrap()).collect();
    got.sort_unstable();
    assert_eq!(got, [0, 1, 2]);
    for (n, each) in queued.into_iter().enumerate() {
        assert_eq!(each.join().unwrap(), n);
    }
    pool.close().unwrap();
}

#[test]
fn more_spares_while_all_are_blocked_let_what_is_queued_run() {
    let pool = small(1, 0);
    let gate = queue();
    let from = Arc::clone(&gate);
    let waits = pool.submit(move || from.take().unwrap()).unwrap();
    until(|| pool.snapshot().blocked == 1);
    let brings = pool.submit(move || gate.put(7).unwrap()).unwrap();
    assert_eq!(pool.snapshot().workers, 1, "no spare may be started");
    assert_eq!(pool.set_max_spares(1).unwrap(), 0);
    brings.join().unwrap();
    assert_eq!(waits.join().unwrap(), 7);
}

/// Counts the threads that it starts, and refuses when it may start no more.
#[derive(Clone, Debug)]
struct Few {
    left: Arc<AtomicUsize>,
    started: Arc<AtomicUsize>,
}

impl Few {
    fn new(threads: usize) -> Self {
        Few {
            left: Arc::new(AtomicUsize::new(threads)),
            started: Arc::new(AtomicUsize::new(0)),
        }
    }
}

impl ThreadFactory for Few {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let one_less = |left: usize| left.checked_sub(1);
        let taken = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        if taken.is_err() {
            return Err(io::Error::other("no threads today"));
        }
        self.started.fetch_add(1, Ordering::SeqCst);
        Threads::named("few").start(body)
    }
}

#[test]
fn without_threads_for_spares_nothing_is_lost_and_the_next_submit_tries_again() {
    let few = Few::new(1);
    let pool = ForkJoinPool::builder("mill").parallelism(1);
    let pool = pool.threads(few.clone()).build().unwrap();
    for round in 0..20 {
        let gate = queue();
        let from = Arc::clone(&gate);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        until(|| pool.snapshot().blocked == 1);
        let queued = pool.submit(move || round).unwrap();
        assert_eq!(pool.snapshot().workers, 1);
        gate.put(round).unwrap();
        assert_eq!(
            (waits.join().unwrap(), queued.join().unwrap()),
            (round, round)
        );
    }
    assert!(pool.snapshot().thread_failures > 0);
    let gate = queue();
    let from = Arc::clone(&gate);
    let waits = pool.submit(move || from.take().unwrap()).unwrap();
    until(|| pool.snapshot().blocked == 1);
    let brings = pool.submit(move || gate.put(7).unwrap()).unwrap();
    few.left.store(1, Ordering::SeqCst);
    // The last failure may be so recent that starts are paused.
    until(|| {
        pool.execute(|| ()).unwrap();
        brings.is_finished()
    });
    assert_eq!(waits.join().unwrap(), 7);
    pool.close().unwrap();
}

#[test]
fn spares_that_were_released_are_taken_again_and_leave_after_their_keep_alive() {
    let hand = ManualClock::new();
    let few = Few::new(usize::MAX);
    let pool = ForkJoinPool::builder("mill").parallelism(1);
    let pool = pool
        .keep_alive(Duration::from_secs(60))
        .clock(hand.clock())
        .threads(few.clone())
        .build()
        .unwrap();
    for round in 0..200 {
        let gate = queue();
        let from = Arc::clone(&gate);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        until(|| pool.snapshot().blocked == 1);
        pool.execute(move || gate.put(round).unwrap()).unwrap();
        assert_eq!(waits.join().unwrap(), round);
    }
    assert_eq!(few.started.load(Ordering::SeqCst), 2);
    until(|| pool.snapshot().sleeping == 2);
    assert_eq!((pool.snapshot().spares, pool.snapshot().blocked), (1, 0));
    hand.advance(Duration::from_secs(61));
    until(|| pool.snapshot().workers == 0);
    pool.close().unwrap();
}

#[test]
fn a_new_parallelism_sends_spares_away_that_are_not_needed() {
    let pool = small(1, 4);
    let gate = queue();
    let waits: Vec<_> = (0..4)
        .map(|_| {
            let from = Arc::clone(&gate);
            pool.submit(move || from.take().unwrap()).unwrap()
        })
        .collect();
    until(|| pool.snapshot().blocked == 4);
    (0..4).for_each(|n| gate.put(n).unwrap());
    waits.into_iter().for_each(|wait| _ = wait.join().unwrap());
    until(|| pool.snapshot().sleeping == 4);
    pool.set_parallelism(2).unwrap();
    until(|| pool.snapshot().workers == 2);
    assert_eq!(pool.install(|| fib(12)), 144);
}

#[test]
fn no_more_than_the_parallelism_go_on_when_a_blocked_one_has_come_back() {
    let pool = pool(1);
    let gate = queue();
    let (end_first, first_ends) = mpsc::channel::<()>();
    let (end_spare, spare_ends) = mpsc::channel::<()>();
    let from = Arc::clone(&gate);
    let first = pool.submit(move || {
        from.take().unwrap();
        first_ends.recv().unwrap();
    });
    until(|| pool.snapshot().blocked == 1);
    let second = pool.submit(move || spare_ends.recv().unwrap()).unwrap();
    until(|| second.is_started());
    let third = pool.submit(|| 7).unwrap();
    gate.put(0).unwrap();
    until(|| pool.snapshot().blocked == 0);
    assert_eq!(pool.snapshot().active, 2);
    end_spare.send(()).unwrap();
    // The one of them that is done first sleeps, although something is queued.
    until(|| pool.snapshot().sleeping == 1);
    assert!(!third.is_started());
    end_first.send(()).unwrap();
    first.unwrap().join().unwrap();
    assert_eq!(third.join().unwrap(), 7);
    pool.close().unwrap();
}

#[test]
fn blocks_inside_of_blocks_count_once_and_end_with_a_panic_or_an_interrupt() {
    let pool = pool(1);
    let gate = queue();
    let from = Arc::clone(&gate);
    let nested =
        pool.submit(move || forkjoin::blocking(|| forkjoin::blocking(|| from.take().unwrap())));
    until(|| pool.snapshot().blocked == 1);
    let other = Arc::clone(&gate);
    pool.submit(move || other.put(7).unwrap())
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(nested.unwrap().join().unwrap(), 7);
    assert_eq!(pool.snapshot().blocked, 0);

    let panics = pool
        .submit(|| forkjoin::blocking(|| panic!("in the mill")))
        .unwrap();
    let _: task::TaskError = panics.join().map(|(): ()| ()).unwrap_err();
    assert_eq!(pool.snapshot().blocked, 0);

    let sleeps = pool
        .submit(|| forkjoin::blocking(|| interrupt::sleep(HOUR)))
        .unwrap();
    until(|| pool.snapshot().blocked == 1);
    assert!(sleeps.interrupt());
    until(|| pool.snapshot().blocked == 0);
    let from = Arc::clone(&gate);
    let waits = pool.submit(move || from.take().unwrap()).unwrap();
    pool.execute(move || gate.put(8).unwrap()).unwrap();
    assert_eq!(waits.join().unwrap(), 8);
    pool.close().unwrap();
}

#[test]
fn a_shutdown_waits_for_blocked_tasks_and_runs_what_frees_them() {
    for _ in 0..50 {
        let pool = pool(1);
        let gate = queue();
        let from = Arc::clone(&gate);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        until(|| pool.snapshot().blocked == 1);
        // Both are queued: the first runs on a spare and blocks too, the second frees it.
        let inner = queue();
        let (first, second) = (Arc::clone(&inner), inner);
        let holds = pool.submit(move || {
            first.take().unwrap();
            gate.put(7).unwrap();
        });
        pool.execute(move || second.put(1).unwrap()).unwrap();
        pool.shutdown();
        pool.await_termination().unwrap();
        assert_eq!(waits.join().unwrap(), 7);
        holds.unwrap().join().unwrap();
    }
}

#[test]
fn a_stop_interrupts_blocked_tasks_and_ends_spares() {
    let pool = pool(1);
    let gate = queue();
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let from = Arc::clone(&gate);
            pool.submit(move || from.take().is_err()).unwrap()
        })
        .collect();
    until(|| pool.snapshot().blocked == 3);
    assert!(pool.shutdown_now().is_empty());
    waits
        .into_iter()
        .for_each(|wait| assert!(wait.join().unwrap()));
    pool.await_termination().unwrap();
}

#[test]
fn idle_workers_are_not_blocked_and_nobody_replaces_them() {
    let pool = pool(2);
    for _ in 0..100 {
        assert_eq!(pool.install(|| fib(10)), 55);
    }
    until(|| pool.snapshot().sleeping == pool.snapshot().workers);
    let now = pool.snapshot();
    assert_eq!((now.blocked, now.joining, now.active), (0, 0, 0));
}

#[test]
fn a_worker_that_waits_in_a_join_is_replaced_for_tasks_that_are_queued() {
    // One worker waits in a join for a part that the other one runs; that waits for a task that is queued behind.
    let pool = pool(2);
    let (started, is_started) = mpsc::channel();
    let gate = queue();
    let to = Arc::clone(&gate);
    let own = pool.clone();
    let both = pool.install(|| {
        forkjoin::join(
            move || {
                is_started.recv_timeout(crate::TIMEOUT).unwrap();
                own.execute(move || to.put(7).unwrap()).unwrap();
            },
            || {
                started.send(()).unwrap();
                // A wait that the pool does not see.
                until(|| !gate.is_empty());
                gate.take().unwrap()
            },
        )
    });
    assert_eq!(both, ((), 7));
    pool.close().unwrap();
}

#[test]
fn a_job_that_holds_a_lock_while_it_joins_meets_no_other_that_wants_it() {
    // What deadlocks in rayon: see `lock_in_join.rs` of the benches.
    let pool = pool(2);
    for _ in 0..50 {
        let lock = Arc::new(Mutex::new(0));
        let (started, is_started) = mpsc::channel();
        let (wanted, is_wanted) = mpsc::channel();
        let (own, inner) = (pool.clone(), Arc::clone(&lock));
        pool.install(|| {
            let mut held = lock.lock().unwrap();
            let wants = move || {
                wanted.send(()).unwrap();
                *forkjoin::blocking(|| inner.lock().unwrap()) += 1;
            };
            forkjoin::join(
                move || {
                    is_started.recv_timeout(crate::TIMEOUT).unwrap();
                    own.execute(wants).unwrap();
                },
                move || {
                    started.send(()).unwrap();
                    is_wanted.recv_timeout(crate::TIMEOUT).unwrap();
                },
            );
            *held += 1;
        });
        assert!(pool.await_quiescence(crate::TIMEOUT).unwrap());
        assert_eq!(*lock.lock().unwrap(), 2);
    }
    pool.close().unwrap();
}

#[test]
fn how_deep_helping_goes_is_measured() {
    fn nested(depth: u64) {
        if depth > 0 {
            forkjoin::scope(|scope| scope.spawn(move |_| nested(depth - 1)));
        }
    }
    let pool = small(1, 0);
    pool.install(|| nested(1));
    assert_eq!(pool.snapshot().max_help_depth, 1);
    pool.install(|| nested(20));
    assert_eq!(pool.snapshot().max_help_depth, 20);
    pool.install(|| nested(3));
    assert_eq!(pool.snapshot().max_help_depth, 20, "the deepest");
}

#[test]
fn helping_stops_before_the_stack_is_used_up() {
    fn nested(depth: u64) -> u64 {
        let mut space = [0_u8; 4096];
        std::hint::black_box(&mut space);
        if depth == 0 {
            return 0;
        }
        let mut below = 0;
        forkjoin::scope(|scope| scope.spawn(|_| below = nested(depth - 1)));
        below + 1
    }
    // A stack of 512 KiB has room for some of these; the rest runs on spares.
    let threads = Threads::named("mill").stack_size(512 * 1024);
    let pool = ForkJoinPool::builder("mill")
        .parallelism(1)
        .threads(threads);
    let pool = pool.max_spares(64).build().unwrap();
    assert_eq!(pool.install(|| nested(500)), 500);
    let now = pool.snapshot();
    assert!(now.largest > 1 && now.max_help_depth < 400, "{now:?}");
}

#[test]
fn stress_tasks_that_pass_tokens_round_all_end_whatever_blocks() {
    for parallelism in [1, 2] {
        let pool = small(parallelism, 8);
        for round in 0..100_u32 {
            // Each of four waits for the one before it; they come in any order.
            let rings: Vec<_> = (0..5).map(|_| queue()).collect();
            let mut order: Vec<usize> = (0..4).collect();
            order.rotate_left(round as usize % 4);
            let passes: Vec<_> = order
                .into_iter()
                .map(|n| {
                    let (from, to) = (Arc::clone(&rings[n]), Arc::clone(&rings[n + 1]));
                    pool.submit(move || to.put(from.take().unwrap() + fib(5) as u32).unwrap())
                })
                .collect();
            rings[0].put(round).unwrap();
            assert_eq!(rings[4].take().unwrap(), round + 20);
            passes
                .into_iter()
                .for_each(|pass| pass.unwrap().join().unwrap());
        }
        until(|| pool.is_quiescent());
        assert_eq!(pool.snapshot().blocked, 0);
        pool.close().unwrap();
    }
}
