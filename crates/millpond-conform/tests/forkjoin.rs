//! The fork-join pool: the suites of forked tasks and of counted completers, and the behaviours of the pool itself.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads, locks and clocks beside what it tests"
)]

use millpond::executor::{Executor, ExecutorExt, InvokeAnyError, Lifecycle};
use millpond::forkjoin::{self, ForkJoinPool, RecursiveTask};
use millpond::interrupt;
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use millpond_conform::ask;
use millpond_conform::kit::{Actor, Gate, Guard, Latch, Stopwatch, delays, until, watch};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

fn build(parallelism: usize) -> ForkJoinPool {
    let builder = ForkJoinPool::builder("conform").parallelism(parallelism);
    builder.build().unwrap()
}

/// A pool that is sure to end.
fn pool(parallelism: usize) -> Guard<Arc<ForkJoinPool>> {
    Guard::new(Arc::new(build(parallelism)))
}

/// What is queued, anywhere.
fn queued(pool: &ForkJoinPool) -> usize {
    let seen = pool.snapshot();
    seen.queued_outside + seen.queued_by_worker.iter().sum::<usize>()
}

static MANY: LazyLock<ForkJoinPool> = LazyLock::new(|| build(4));
static ONE: LazyLock<ForkJoinPool> = LazyLock::new(|| build(1));

ask! { fork_join_many, |f| MANY.install(|| f(&MANY)), forkjoin_tasks_suite forkjoin_completers_suite }
ask! { fork_join_one, |f| ONE.install(|| f(&ONE)), forkjoin_tasks_suite forkjoin_completers_suite }
ask! { fork_join_common, |f| f(ForkJoinPool::common()), forkjoin_tasks_suite forkjoin_completers_suite }
ask! { fork_join_handles, |task| MANY.execute_task(task).unwrap(), task_suite }

/// Holds: ForkJoinPoolTest.testGetParallelism, ForkJoinPool19Test.testSetParallelism
/// Holds: ForkJoinPool19Test.testSetParallelismBadArgs
#[test]
fn the_parallelism_is_the_one_that_was_set_last() {
    let pool = pool(3);
    assert_eq!(pool.parallelism(), 3);
    assert_eq!(pool.set_parallelism(2).unwrap(), 3);
    for bad in [0, 1_000_000, usize::MAX] {
        assert!(pool.set_parallelism(bad).is_err());
    }
    assert_eq!(pool.parallelism(), 2);
}

/// Holds: ForkJoinPoolTest.testGetPoolSize
#[test]
fn workers_are_started_when_there_is_something_to_do() {
    let _watchdog = watch();
    let (pool, begun, gate) = (pool(4), Latch::new(1), Gate::new());
    assert_eq!(pool.snapshot().workers, 0);
    let (begins, held) = (begun.clone(), gate.clone());
    let task = pool.submit(move || {
        begins.arrive();
        held.wait();
    });
    begun.wait();
    let seen = pool.snapshot();
    assert_eq!((seen.workers, seen.active), (1, 1));
    gate.open();
    task.unwrap().join().unwrap();
    pool.close().unwrap();
    let seen = pool.snapshot();
    assert_eq!((seen.workers, seen.active), (0, 0));
}

/// Holds: ForkJoinPoolTest.testAwaitTermination_timesOut
#[test]
fn awaiting_the_end_of_a_running_pool_times_out_and_leaves_it_usable() {
    let _watchdog = watch();
    let pool = pool(1);
    let watch = Stopwatch::start();
    assert!(!pool.await_termination_timeout(delays::timeout()).unwrap());
    watch.assert_at_least(delays::timeout());
    assert!(!pool.is_terminated() && !pool.is_shutdown());
    assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
}

/// Holds: ForkJoinPoolTest.testSubmitForkJoinTask, ForkJoinPoolTest.testExecuteRunnable
/// Holds: ForkJoinPoolTest.testSubmitCallable, ForkJoinPoolTest.testSubmitRunnable
/// Holds: ForkJoinPoolTest.testSubmitRunnable2, ForkJoinPoolTest.testSubmitEE
/// Holds: ForkJoinPoolTest.testInvokeUncheckedException
#[test]
fn what_is_submitted_gives_its_value_or_its_panic() {
    let _watchdog = watch();
    let (pool, done) = (pool(2), Latch::new(1));
    let arrives = done.clone();
    pool.execute(move || arrives.arrive()).unwrap();
    done.wait();
    assert_eq!(pool.submit(|| "flour").unwrap().join().unwrap(), "flour");
    let mut unit = pool.submit(|| ()).unwrap();
    unit.wait().unwrap();
    assert!(unit.is_finished());
    unit.join().unwrap();
    assert_eq!(pool.submit(|| queens(6, &[])).unwrap().join().unwrap(), 4);
    let error = pool.submit(|| panic_any("the dam broke")).unwrap().join();
    assert!(error.unwrap_err().is_panicked());
    let raised = catch_unwind(AssertUnwindSafe(|| {
        pool.install(|| panic_any("the dam broke"));
    }));
    let payload = raised.unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"the dam broke"));
}

/// Holds: ForkJoinPoolTest.testSubmitAfterShutdown, ForkJoinPool19Test.testClose2
#[test]
fn nothing_is_accepted_after_a_shutdown_and_closing_waits() {
    let _watchdog = watch();
    let (pool, gate, ended) = (pool(2), Gate::new(), Arc::new(AtomicBool::new(false)));
    let (held, ends) = (gate.clone(), Arc::clone(&ended));
    pool.execute(move || {
        held.wait();
        ends.store(true, Ordering::SeqCst);
    })
    .unwrap();
    pool.shutdown();
    assert!(pool.submit(|| 7).unwrap_err().reason.is_shut_down());
    gate.open();
    pool.close().unwrap();
    assert!(pool.is_terminated() && ended.load(Ordering::SeqCst));
    assert!(pool.submit(|| 7).unwrap_err().reason.is_shut_down());
}

/// Holds: ForkJoinPoolTest.testCancellationExceptionInGet
#[test]
fn readers_of_a_running_task_that_is_cancelled_hear_of_the_cancellation() {
    let _watchdog = watch();
    for is_timed in [false, true] {
        let (pool, begun) = (pool(1), Latch::new(1));
        let begins = begun.clone();
        let task = pool.submit(move || {
            begins.arrive();
            let _ = interrupt::sleep(delays::hang());
        });
        let task = task.unwrap().shared();
        begun.wait();
        let reader = task.clone();
        let reader = Actor::start("reader", move || {
            let read = if is_timed {
                reader.join_timeout(delays::hang())
            } else {
                reader.join()
            };
            read.map(drop).unwrap_err().is_cancelled()
        });
        reader.await_parked_anywhere();
        assert!(task.interrupt());
        assert!(reader.finish());
    }
}

/// Holds: ForkJoinPoolTest.testInterruptedSubmit, jtreg forkjoin.GetMultipleWaiters.testGet
/// Holds: jtreg forkjoin.GetMultipleWaiters.testTimedGet
#[test]
fn one_of_two_readers_is_interrupted_or_times_out_while_the_other_waits_on() {
    let _watchdog = watch();
    let (pool, gate) = (pool(1), Gate::new());
    let held = gate.clone();
    let task = pool.submit(move || held.wait()).unwrap().shared();
    let read = |name| {
        let reader = task.clone();
        Actor::start(name, move || reader.join().map(drop))
    };
    let (first, second) = (read("first"), read("second"));
    second.await_parked_anywhere();
    first.interrupt_at("task.join");
    assert!(first.finish().unwrap_err().is_interrupted());
    let watch = Stopwatch::start();
    let timed = task.join_timeout(delays::timeout()).map(drop);
    watch.assert_at_least(delays::timeout());
    assert!(timed.unwrap_err().is_timed_out());
    gate.open();
    second.finish().unwrap();
}

type Candidate = fn() -> Result<u32, ()>;

/// Holds: ForkJoinPoolTest.testInvokeAny2, ForkJoinPoolTest.testInvokeAny6
/// Holds: ForkJoinPoolTest.testTimedInvokeAny2, ForkJoinPoolTest.testTimedInvokeAny5
#[test]
fn any_of_none_is_an_error_and_any_of_many_is_the_first_success() {
    let _watchdog = watch();
    let (pool, nobody) = (pool(2), || Vec::<Candidate>::new());
    let hang = delays::hang();
    assert!(matches!(
        pool.invoke_any(nobody()),
        Err(InvokeAnyError::Empty)
    ));
    let timed = pool.invoke_any_timeout(nobody(), hang);
    assert!(matches!(timed, Err(InvokeAnyError::Empty)));
    let many: [Candidate; 3] = [|| Err(()), || panic_any("the dam broke"), || Ok(7)];
    assert_eq!(pool.invoke_any(many).unwrap(), 7);
    assert_eq!(pool.invoke_any_timeout(many, hang).unwrap(), 7);
}

/// Holds: ForkJoinPoolTest.testInvokeAll2, ForkJoinPoolTest.testInvokeAll4
/// Holds: ForkJoinPoolTest.testTimedInvokeAll2, ForkJoinPoolTest.testTimedInvokeAll4
/// Holds: ForkJoinPoolTest.testTimedInvokeAll5
#[test]
fn a_failure_within_a_batch_shows_in_its_own_result_only() {
    let _watchdog = watch();
    let pool = pool(2);
    type Work = fn() -> u32;
    assert!(pool.invoke_all(Vec::<Work>::new()).unwrap().is_empty());
    for timeout in [Duration::ZERO, delays::hang()] {
        let none = pool.invoke_all_timeout(Vec::<Work>::new(), timeout);
        assert!(none.unwrap().is_empty());
    }
    let work: [Work; 3] = [|| 1, || panic_any("the dam broke"), || 3];
    for results in [
        pool.invoke_all(work).unwrap(),
        pool.invoke_all_timeout(work, delays::hang()).unwrap(),
    ] {
        let seen: Vec<_> = results.into_iter().map(Result::ok).collect();
        assert_eq!(seen, [Some(1), None, Some(3)]);
    }
}

/// Holds: RecursiveActionTest.testWorkerGetPoolIndex
#[test]
fn workers_are_numbered_in_the_names_of_their_threads() {
    let _watchdog = watch();
    let pool = pool(1);
    let name = pool.install(|| std::thread::current().name().map(str::to_owned));
    assert_eq!(name.as_deref(), Some("conform-1"));
}

/// Sorts by merging.
struct MergeSort<'a>(&'a mut [u32]);

impl RecursiveTask for MergeSort<'_> {
    type Output = ();

    fn compute(self) {
        if self.0.len() <= 64 {
            return self.0.sort_unstable();
        }
        let half = self.0.len() / 2;
        let (left, right) = self.0.split_at_mut(half);
        MergeSort::invoke_all([MergeSort(&mut *left), MergeSort(&mut *right)]);
        let copies = (left.to_vec(), right.to_vec());
        let (mut left, mut right) = (copies.0.iter().copied(), copies.1.iter().copied());
        let (mut one, mut two) = (left.next(), right.next());
        for place in self.0.iter_mut() {
            let takes_left = two.is_none_or(|two| one.is_some_and(|one| one <= two));
            let taken = if takes_left {
                std::mem::replace(&mut one, left.next())
            } else {
                std::mem::replace(&mut two, right.next())
            };
            *place = taken.expect("there are as many as places");
        }
    }
}

/// Holds: RecursiveActionTest.testSortTaskDemo
#[test]
fn a_recursive_merge_sort_sorts_a_big_array() {
    let _watchdog = watch();
    let scrambled = (0..100_000_u32).map(|n| n.wrapping_mul(2_654_435_761));
    let mut items: Vec<u32> = scrambled.collect();
    let mut expected = items.clone();
    expected.sort_unstable();
    pool(3).install(|| MergeSort(&mut items).compute());
    assert!(items == expected);
}

/// Holds: ForkJoinPool8Test.testCommonPoolParallelism, ForkJoinPool8Test.testCommonPoolShutDown
/// Holds: ForkJoinPool19Test.testCloseCommonPool, jtreg forkjoin.Uniprocessor
#[test]
fn the_common_pool_is_there_and_never_ends() {
    let _watchdog = watch();
    let common = ForkJoinPool::common();
    assert!(common.parallelism() >= 1);
    assert_eq!(common.snapshot().parallelism, common.parallelism());
    common.shutdown();
    assert!(common.shutdown_now().is_empty());
    common.close().unwrap();
    assert!(!common.is_shutdown() && !common.is_terminated());
    assert_eq!(common.submit(|| 7).unwrap().join().unwrap(), 7);
}

/// Holds: ForkJoinPool8Test.testAwaitQuiescence2
#[test]
fn a_pool_is_quiescent_when_all_that_was_submitted_and_forked_is_over() {
    let _watchdog = watch();
    let (pool, ended) = (pool(3), Arc::new(AtomicUsize::new(0)));
    fn grow(pool: &ForkJoinPool, depth: u32, ended: &Arc<AtomicUsize>) {
        for _ in 0..if depth > 0 { 2 } else { 0 } {
            let (inner, count) = (pool.clone(), Arc::clone(ended));
            pool.execute(move || grow(&inner, depth - 1, &count))
                .unwrap();
        }
        ended.fetch_add(1, Ordering::SeqCst);
    }
    for round in 1..=20 {
        let (inner, count) = (pool.clone(), Arc::clone(&ended));
        pool.execute(move || grow(&inner, 7, &count)).unwrap();
        assert!(pool.await_quiescence(delays::hang()).unwrap());
        assert_eq!(ended.load(Ordering::SeqCst), 255 * round);
        assert!(pool.is_quiescent() && queued(&pool) == 0);
    }
}

/// Holds: ForkJoinPool20Test.testSubmit
#[test]
fn what_is_submitted_from_outside_waits_outside() {
    let _watchdog = watch();
    let (pool, begun, gate) = (pool(1), Latch::new(1), Gate::new());
    let (begins, held) = (begun.clone(), gate.clone());
    pool.execute(move || {
        begins.arrive();
        held.wait();
    })
    .unwrap();
    begun.wait();
    let task = pool.submit(|| 7).unwrap();
    let seen = pool.snapshot();
    assert_eq!(seen.queued_outside, 1);
    assert_eq!(seen.queued_by_worker.iter().sum::<usize>(), 0);
    gate.open();
    assert_eq!(task.join().unwrap(), 7);
}

/// Holds: ForkJoinPool20Test.testGetQueuedTaskCount2
#[test]
fn what_is_submitted_from_inside_is_counted_by_worker() {
    let _watchdog = watch();
    let (pool, begun, gate) = (pool(2), Latch::new(2), Gate::new());
    for count in [2, 3] {
        let (inner, begins, held) = (pool.clone(), begun.clone(), gate.clone());
        pool.execute(move || {
            // Both workers are busy before anything is there to be stolen.
            begins.arrive();
            begins.wait();
            for _ in 0..count {
                inner.execute(|| ()).unwrap();
            }
            held.wait();
        })
        .unwrap();
    }
    until("both have queued theirs", || {
        let mut seen = pool.snapshot().queued_by_worker;
        seen.retain(|count| *count > 0);
        seen.sort_unstable();
        seen == [2, 3]
    });
    assert_eq!(pool.snapshot().queued_outside, 0);
    gate.open();
    assert!(pool.await_quiescence(delays::hang()).unwrap());
}

/// Holds: ForkJoinPool19Test.testForkTimedQuietlyJoin
/// Holds: ForkJoinPool19Test.testForkTimedQuietlyJoinUninterruptibly
#[test]
fn a_timed_wait_without_interruption_ends_with_the_task() {
    let _watchdog = watch();
    let pool = pool(1);
    let timed = || pool.submit(|| 7).unwrap().join_timeout(delays::hang());
    assert_eq!(timed().unwrap(), 7);
    assert_eq!(interrupt::uninterruptible(timed).unwrap(), 7);
}

/// Holds: jtreg forkjoin.AsyncShutdownNow.testFutureGet
/// Holds: jtreg forkjoin.AsyncShutdownNow.testTimedFutureGet
#[test]
fn a_reader_of_a_running_task_is_released_by_a_stop() {
    let _watchdog = watch();
    for is_timed in [false, true] {
        let (pool, begun) = (pool(1), Latch::new(1));
        let begins = begun.clone();
        let task = pool.submit(move || {
            begins.arrive();
            interrupt::sleep(delays::hang()).is_err()
        });
        let mut task = task.unwrap();
        begun.wait();
        let reader = Actor::start("reader", move || match is_timed {
            true => task.join_timeout(delays::hang()),
            false => task.join(),
        });
        reader.await_parked_anywhere();
        assert!(pool.shutdown_now().is_empty());
        assert!(reader.finish().unwrap(), "it was interrupted");
    }
}

/// Holds: jtreg forkjoin.AsyncShutdownNowInvokeAnyRace.testInvokeAny
#[test]
fn a_stop_in_any_phase_of_any_ends_it() {
    let _watchdog = watch();
    for round in 0..300_u32 {
        let pool = build(2);
        let inner = pool.clone();
        let caller = Actor::start("caller", move || {
            let sleeps = || interrupt::sleep(delays::hang()).map(|()| 7);
            inner.invoke_any([sleeps; 3])
        });
        for _ in 0..round % 50 {
            std::thread::yield_now();
        }
        // Those that have not started are cancelled when they are dropped.
        drop(pool.shutdown_now());
        assert!(caller.finish().is_err());
        assert!(pool.await_termination_timeout(delays::hang()).unwrap());
    }
}

fn integrate(from: f64, to: f64, least: f64, forks: bool) -> f64 {
    let middle = f64::midpoint(from, to);
    let area = |a: f64, b: f64| (b - a) * (a.powi(3) + a + b.powi(3) + b) / 2.0;
    let (whole, left, right) = (area(from, to), area(from, middle), area(middle, to));
    if (whole - left - right).abs() <= least {
        return left + right;
    }
    let left = || integrate(from, middle, least, forks);
    let right = || integrate(middle, to, least, forks);
    let (left, right) = if forks {
        forkjoin::join(left, right)
    } else {
        (left(), right())
    };
    left + right
}

/// Holds: jtreg forkjoin.Integrate
#[test]
fn integration_gives_the_same_number_with_forks_and_without() {
    let _watchdog = watch();
    let serial = integrate(0.0, 100.0, 1e-4, false);
    for parallelism in [1, 3] {
        let forked = pool(parallelism).install(|| integrate(0.0, 100.0, 1e-4, true));
        assert!(forked.to_bits() == serial.to_bits(), "{forked} {serial}");
    }
    assert!((serial - 25_005_000.0).abs() < 1.0, "{serial}");
}

/// The number of ways to put queens on the rest of a board.
fn queens(size: usize, rows: &[usize]) -> usize {
    if rows.len() == size {
        return 1;
    }
    let is_safe = |column: usize| {
        rows.iter()
            .rev()
            .zip(1..)
            .all(|(other, distance)| *other != column && other.abs_diff(column) != distance)
    };
    let found = AtomicUsize::new(0);
    forkjoin::scope(|scope| {
        for column in (0..size).filter(|column| is_safe(*column)) {
            let found = &found;
            scope.spawn(move |_| {
                let mut rows = rows.to_vec();
                rows.push(column);
                found.fetch_add(queens(size, &rows), Ordering::Relaxed);
            });
        }
    });
    found.into_inner()
}

/// Holds: jtreg forkjoin.NQueensCS
#[test]
fn an_irregular_search_counts_right() {
    let _watchdog = watch();
    for parallelism in [1, 2, 4] {
        let pool = pool(parallelism);
        for (size, solutions) in [(4, 2), (6, 4), (8, 92)] {
            assert_eq!(pool.install(|| queens(size, &[])), solutions);
        }
    }
}

/// Holds: jtreg forkjoin.SubmissionTest
#[test]
fn single_submissions_to_an_idle_worker_all_run() {
    let _watchdog = watch();
    let (pool, count) = (pool(1), Arc::new(AtomicUsize::new(0)));
    for round in 1..=30_000 {
        let own = Arc::clone(&count);
        pool.execute(move || _ = own.fetch_add(1, Ordering::Release))
            .unwrap();
        until("it runs without a join", || {
            count.load(Ordering::Acquire) == round
        });
    }
}

/// Starts nothing.
#[derive(Debug)]
struct NoThreads;

impl ThreadFactory for NoThreads {
    fn start(&self, _: Body) -> std::io::Result<JoinHandle<()>> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }
}

/// Holds: jtreg forkjoin.ThreadLessCommon
#[test]
fn a_pool_without_threads_lets_the_caller_do_it_all() {
    let _watchdog = watch();
    let builder = ForkJoinPool::builder("none").threads(NoThreads);
    let pool = Guard::new(Arc::new(builder.parallelism(4).build().unwrap()));
    let here = std::thread::current().id();
    let is_here = move || std::thread::current().id() == here;
    assert!(pool.install(is_here));
    assert_eq!(pool.join(is_here, is_here), (true, true));
    let ran = AtomicUsize::new(0);
    ForkJoinPool::scope(&pool, |scope| {
        for _ in 0..5 {
            scope.spawn(|_| {
                assert!(is_here());
                ran.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(ran.into_inner(), 5);
    let mut items = [3, 1, 2];
    pool.install(|| MergeSort(&mut items).compute());
    assert_eq!(items, [1, 2, 3]);
}

/// Holds: jtreg forkjoin.ThrowingRunnable
#[test]
fn a_panic_of_a_task_without_handle_reaches_the_hook_of_the_pool() {
    let _watchdog = watch();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let builder = ForkJoinPool::builder("hooked").on_panic(move |uncaught| {
        let text = format!("{uncaught:?}");
        hears.lock().unwrap().push(text);
    });
    let pool = Guard::new(Arc::new(builder.parallelism(1).build().unwrap()));
    pool.execute(|| panic_any("the dam broke")).unwrap();
    until("it is heard", || heard.lock().unwrap().len() == 1);
    let heard = heard.lock().unwrap().concat();
    assert!(heard.contains("the dam broke"), "{heard}");
    assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
}

#[test]
fn a_million_changes_of_parallelism_leave_every_count_right() {
    let _watchdog = watch();
    let guarded = pool(1);
    let pool: &ForkJoinPool = &guarded;
    let changes = |count: usize, from: usize| {
        for round in 0..count {
            let wanted = 1 + (round * 7 + from) % 1_000;
            pool.set_parallelism(wanted).unwrap();
        }
    };
    changes(1_000_000, 0);
    let seen = pool.snapshot();
    assert_eq!((seen.workers, seen.active, queued(pool)), (0, 0, 0));
    assert!(!pool.is_shutdown());
    // And while tasks come and go.
    let done = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 0..20_000 {
                pool.set_parallelism(1 + round % 3).unwrap();
            }
        });
        for _ in 0..5_000 {
            let own = Arc::clone(&done);
            pool.execute(move || _ = own.fetch_add(1, Ordering::SeqCst))
                .unwrap();
        }
    });
    pool.set_parallelism(2).unwrap();
    assert!(pool.await_quiescence(delays::hang()).unwrap());
    assert_eq!(done.load(Ordering::SeqCst), 5_000);
    until("the surplus has left", || pool.snapshot().workers <= 2);
    pool.close().unwrap();
    let seen = pool.snapshot();
    assert_eq!((seen.workers, seen.completed), (0, 5_000));
}

#[test]
fn load_that_goes_up_and_down_starves_nobody() {
    let _watchdog = watch();
    let pool = pool(3);
    for wave in 0..40_usize {
        let stop = Arc::new(AtomicBool::new(false));
        // Tasks that make themselves again, from inside: there is always something in the own deques.
        for _ in 0..wave % 8 {
            fn again(pool: &ForkJoinPool, stop: &Arc<AtomicBool>) {
                if !stop.load(Ordering::Relaxed) {
                    let (inner, own) = (pool.clone(), Arc::clone(stop));
                    pool.execute(move || again(&inner, &own)).unwrap();
                }
            }
            let (inner, own) = (pool.clone(), Arc::clone(&stop));
            pool.execute(move || again(&inner, &own)).unwrap();
        }
        pool.set_parallelism(1 + wave % 3).unwrap();
        for number in 0..20 {
            let outside = pool.submit(move || number).unwrap();
            assert_eq!(outside.join().unwrap(), number);
            assert_eq!(pool.install(|| forkjoin::join(|| 3, || 4)), (3, 4));
        }
        stop.store(true, Ordering::Relaxed);
        if wave.is_multiple_of(5) {
            assert!(pool.await_quiescence(delays::hang()).unwrap());
        }
    }
}

#[test]
fn a_thousand_pools_live_beside_each_other() {
    let _watchdog = watch();
    let pools: Vec<ForkJoinPool> = (0..1_000).map(|_| build(2)).collect();
    for (number, pool) in pools.iter().enumerate().step_by(20) {
        let value = pool.submit(move || forkjoin::join(|| number, || 1));
        assert_eq!(value.unwrap().join().unwrap(), (number, 1));
    }
    for pool in &pools {
        pool.shutdown();
    }
    for pool in &pools {
        assert!(pool.await_termination_timeout(delays::hang()).unwrap());
    }
}

#[test]
fn pools_inside_pools_scopes_inside_joins_and_panics_everywhere_end() {
    let _watchdog = watch();
    let guarded = (pool(3), pool(2));
    let (outer, inner): (&ForkJoinPool, &ForkJoinPool) = (&guarded.0, &guarded.1);
    /// Panics where the number says so; the count of leaves otherwise.
    fn nest(pools: (&ForkJoinPool, &ForkJoinPool), depth: u32, bad: usize) -> usize {
        let leaves = AtomicUsize::new(0);
        if depth == 0 {
            assert!(bad != 1, "the dam broke");
            return 1;
        }
        let bad = |branch: usize| if bad % 4 == branch { bad / 4 } else { 0 };
        let (left, right) = forkjoin::join(
            || {
                forkjoin::scope(|scope| {
                    for branch in [0, 1] {
                        let leaves = &leaves;
                        scope.spawn(move |_| {
                            let found = nest(pools, depth - 1, bad(branch));
                            leaves.fetch_add(found, Ordering::Relaxed);
                        });
                    }
                });
                0
            },
            || {
                pools.1.install(|| {
                    let one = || nest((pools.1, pools.1), depth - 1, bad(2));
                    let two = || nest((pools.1, pools.1), depth - 1, bad(3));
                    let (one, two) = pools.1.join(one, two);
                    one + two
                })
            },
        );
        left + right + leaves.into_inner()
    }
    let mut failed = 0;
    for bad in 0..256 {
        let run = || outer.install(|| nest((outer, inner), 3, bad));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(leaves) => assert_eq!(leaves, 64),
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 0);
    assert_eq!((queued(outer), outer.install(|| queens(6, &[]))), (0, 4));
}
