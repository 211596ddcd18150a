//! Recursive tasks, as in Java. The names in brackets are those of the behaviours in Java's own tests.

use crate::pool;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{ForkJoinPool, RecursiveTask};
use millpond::interrupt;
use millpond::task::TaskError;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Java's example: sums an array by halving, down to 10,000 items.
struct SumTask<'a> {
    array: &'a [i64],
}

impl SumTask<'_> {
    const THRESHOLD: usize = 10_000;
}

impl RecursiveTask for SumTask<'_> {
    type Output = i64;

    fn compute(self) -> i64 {
        if self.array.len() <= Self::THRESHOLD {
            return self.array.iter().sum();
        }
        let (left, right) = self.array.split_at(self.array.len() / 2);
        let [left, right] = Self::invoke_all([SumTask { array: left }, SumTask { array: right }]);
        left + right
    }
}

/// Forks each of its parts, as most programs in Java do.
struct Fib(u64);

impl RecursiveTask for Fib {
    type Output = Result<u64, TaskError>;

    fn compute(self) -> Self::Output {
        if self.0 < 2 {
            return Ok(self.0);
        }
        let left = Fib(self.0 - 1).fork();
        let right = Fib(self.0 - 2).compute()?;
        Ok(left.join()?? + right)
    }
}

struct Fails;

impl RecursiveTask for Fails {
    type Output = ();

    fn compute(self) {
        panic_any("the dam broke");
    }
}

/// Fails if it is told to, and counts.
struct Counts<'a> {
    ran: &'a AtomicUsize,
    fails: bool,
}

impl RecursiveTask for Counts<'_> {
    type Output = usize;

    fn compute(self) -> usize {
        if self.fails {
            panic_any("the dam broke");
        }
        self.ran.fetch_add(1, Ordering::Relaxed)
    }
}

/// Sleeps for an hour, unless it is interrupted.
struct Sleeps;

impl RecursiveTask for Sleeps {
    type Output = bool;

    fn compute(self) -> bool {
        interrupt::sleep(Duration::from_secs(3600)).is_err()
    }
}

/// Sorts by halving: an action, in Java's words.
struct SortTask<'a>(&'a mut [u32]);

impl RecursiveTask for SortTask<'_> {
    type Output = ();

    fn compute(self) {
        let SortTask(items) = self;
        if items.len() <= 100 {
            return items.sort_unstable();
        }
        let (left, right) = items.split_at_mut(items.len() / 2);
        SortTask::invoke_all([SortTask(left), SortTask(right)]);
        items.sort(); // Two runs: a merge.
    }
}

fn message(caught: Result<impl Sized, Box<dyn std::any::Any + Send>>) -> &'static str {
    let payload = caught.err().expect("it panics");
    *payload.downcast::<&'static str>().expect("it is a text")
}

#[test]
fn javas_example_sums_an_array_by_halving_with_any_number_of_workers() {
    let array: Vec<i64> = (1..=1_000_000).collect();
    let sum = 500_000_500_000;
    for parallelism in [1, 2, 4] {
        let pool = pool(parallelism);
        for _ in 0..20 {
            let task = SumTask { array: &array };
            assert_eq!(pool.install(|| task.compute()), sum);
        }
    }
    assert_eq!(SumTask { array: &array }.invoke(), sum, "outside of a pool");
    assert_eq!(SumTask { array: &[] }.invoke(), 0);
}

/// `[testForkJoin, testForkGet, testForkTimedGet, testInvoke]`
#[test]
fn a_forked_task_is_joined_with_its_result_also_by_the_only_worker() {
    for parallelism in [1, 2, 4] {
        let pool = pool(parallelism);
        assert_eq!(pool.install(|| Fib(12).compute()).unwrap(), 144);
        let mut handle = pool.install(|| Fib(10).fork());
        let result = handle.join_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(result.unwrap(), 55);
    }
}

#[test]
fn outside_of_a_pool_a_task_is_forked_to_the_common_one() {
    struct Name;

    impl RecursiveTask for Name {
        type Output = Option<String>;

        fn compute(self) -> Option<String> {
            std::thread::current().name().map(String::from)
        }
    }

    let name = Name.fork().join().unwrap().unwrap();
    assert!(name.starts_with("common-"), "{name}");
    let name = Name.invoke().unwrap();
    assert!(name.starts_with("common-"), "{name}");
    let pool = pool(1);
    assert_eq!(
        pool.install(|| Name.invoke()).unwrap(),
        "mill-1",
        "a worker invokes there and then"
    );
}

/// `[testAbnormalForkJoin, testAbnormalForkGet, testAbnormalInvoke]`
#[test]
fn the_failure_of_a_task_comes_to_who_invokes_or_joins_it() {
    for parallelism in [1, 2] {
        let pool = pool(parallelism);
        let joined = pool.install(|| Fails.fork().join());
        assert!(joined.unwrap_err().is_panicked());
        let invoked = catch_unwind(AssertUnwindSafe(|| pool.install(|| Fails.invoke())));
        assert_eq!(message(invoked), "the dam broke");
        let raise = || Fails.fork().join().map_err(TaskError::resume).is_ok();
        let raised = catch_unwind(AssertUnwindSafe(|| pool.install(raise)));
        assert!(raised.is_err(), "`resume` raises it as Java's `join` does");
    }
}

/// `[testCancelledForkJoin, testCancelledForkTimedGet]`
#[test]
fn a_forked_task_can_be_cancelled_before_it_begins_and_interrupted_afterwards() {
    let pool = pool(1);
    let cancelled = pool.install(|| {
        // The only worker is here, so it has not begun.
        let handle = Sleeps.fork();
        assert!(handle.cancel());
        handle.join()
    });
    assert!(cancelled.unwrap_err().is_cancelled());
    let handle = pool.install(|| Sleeps.fork());
    while !handle.is_started() {
        std::thread::yield_now();
    }
    assert!(handle.interrupt());
    assert!(handle.join().unwrap_err().is_cancelled());
    pool.close().unwrap();
}

/// `[testInvokeAll1, testInvokeAll2, testInvokeAll3, testInvokeAllCollection]`
#[test]
fn invoke_all_runs_every_task_once_and_returns_results_in_order() {
    for parallelism in [1, 2] {
        let pool = pool(parallelism);
        pool.install(|| {
            assert_eq!(Fib::invoke_all([]).len(), 0);
            let [one] = Fib::invoke_all([Fib(7)]);
            assert_eq!(one.unwrap(), 13);
            let three = Fib::invoke_all([Fib(1), Fib(5), Fib(9)]).map(Result::unwrap);
            assert_eq!(three, [1, 5, 34]);
            let many = Fib::invoke_all_vec((0..12).map(Fib).collect());
            let many: Vec<_> = many.into_iter().map(Result::unwrap).collect();
            assert_eq!(many, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]);
        });
        let ran = AtomicUsize::new(0);
        let task = || Counts {
            ran: &ran,
            fails: false,
        };
        let mut numbers = Counts::invoke_all_vec((0..100).map(|_| task()).collect());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }
}

/// `[testAbnormalInvokeAll1, testAbnormalInvokeAll2, testAbnormalInvokeAll3, testAbnormalInvokeAllCollection]`
#[test]
fn invoke_all_raises_the_failure_of_any_task() {
    let pool = pool(2);
    let ran = AtomicUsize::new(0);
    for failing in 0..5 {
        let task = |each: usize| Counts {
            ran: &ran,
            fails: each == failing % 3,
        };
        let array = AssertUnwindSafe(|| pool.install(|| Counts::invoke_all([0, 1, 2].map(task))));
        assert_eq!(message(catch_unwind(array)), "the dam broke");
        let tasks = || (0..3).map(task).collect();
        let vec = AssertUnwindSafe(|| pool.install(|| Counts::invoke_all_vec(tasks())));
        assert_eq!(message(catch_unwind(vec)), "the dam broke");
    }
}

/// `[testSortTaskDemo]`
#[test]
fn a_recursive_action_sorts_a_big_array() {
    let mut items: Vec<u32> = (0..100_000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761))
        .collect();
    let mut expected = items.clone();
    expected.sort_unstable();
    SortTask(&mut items).invoke();
    assert_eq!(items, expected);
}

#[test]
fn forks_of_a_pool_that_was_shut_down_run_at_once() {
    let pool = ForkJoinPool::builder("mill")
        .parallelism(1)
        .build()
        .unwrap();
    let again = pool.clone();
    let result = pool.submit(move || {
        again.shutdown();
        let handle = Fib(10).fork();
        assert!(handle.is_finished());
        handle.join()?
    });
    assert_eq!(result.unwrap().join().unwrap().unwrap(), 55);
    pool.await_termination().unwrap();
}

#[test]
fn a_task_that_is_never_joined_still_runs() {
    struct Adds(Arc<AtomicUsize>);

    impl RecursiveTask for Adds {
        type Output = ();

        fn compute(self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let pool = pool(2);
    let count = Arc::new(AtomicUsize::new(0));
    pool.install(|| {
        for _ in 0..100 {
            drop(Adds(Arc::clone(&count)).fork());
        }
    });
    pool.close().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 100);
}

/// What waits in the deques of workers.
fn queued(pool: &ForkJoinPool) -> usize {
    pool.snapshot().queued_by_worker.iter().sum()
}

#[test]
fn tasks_that_are_joined_inline_leave_the_deque_of_their_worker() {
    let pool = pool(1);
    let left = pool.install(|| {
        let fib = Fib(15).compute().unwrap();
        let nested = queued(&pool);
        // The oldest first: those behind it are in the way, until the last one is joined.
        let forked: Vec<_> = (0..100).map(|_| Fib(1).fork()).collect();
        assert_eq!(queued(&pool), 100);
        let sum: u64 = forked
            .into_iter()
            .map(|one| one.join().unwrap().unwrap())
            .sum();
        (fib, nested, sum, queued(&pool))
    });
    assert_eq!(left, (610, 0, 100, 0));
    pool.close().unwrap();
    let now = pool.snapshot();
    assert_eq!(
        (now.submitted, now.cancelled),
        (now.completed, 0),
        "{now:?}"
    );
}
