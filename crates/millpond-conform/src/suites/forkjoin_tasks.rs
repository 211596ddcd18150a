//! Tasks that are forked and joined, wherever they are forked: in a large pool, in one with a single worker, and in the
//! common pool by a thread outside.

use crate::kit::{DropCount, delays, until};
use millpond::executor::{Executor, ExecutorExt};
use millpond::forkjoin::{ForkJoinPool, RecursiveTask};
use millpond::interrupt;
use millpond::task::{self, TaskError, TaskHandle};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// Runs a closure where tasks are to be forked, with the pool that they go to.
pub type Place = fn(Box<dyn FnOnce(&ForkJoinPool) + Send>);

/// Tests of forked tasks in a [`Place`].
#[macro_export]
macro_rules! forkjoin_tasks_suite {
    ($place:expr) => {
        $crate::bodies! { forkjoin_tasks, ($place as $crate::suites::forkjoin_tasks::Place);
            an_invoked_task_returns_its_result
            an_invoked_task_without_result_returns
            a_forked_task_gives_its_result_to_a_join
            a_forked_task_gives_its_result_to_a_timed_join
            waiting_for_a_forked_task_leaves_its_result_where_it_is
            helping_until_quiescence_runs_what_was_forked
            a_panic_of_an_invoked_task_comes_to_its_caller
            a_panic_that_is_caught_where_the_task_was_invoked_is_the_end_of_it
            a_join_of_a_forked_task_gives_its_panic
            a_timed_join_of_a_forked_task_gives_its_panic_and_no_timeout
            waiting_for_a_forked_task_that_panics_returns
            a_task_that_is_cancelled_before_its_start_never_runs
            joins_of_a_cancelled_task_say_that_it_was_cancelled
            a_worker_knows_its_pool_and_others_know_that_it_is_not_theirs
            all_of_a_list_of_tasks_run
            a_panic_of_one_of_many_tasks_comes_to_the_caller_of_all
            joins_of_an_interrupted_task_report_it_and_the_joined_one_goes_on
        }
    };
}

/// Computes Fibonacci numbers by forks, joins and lists in turn.
struct Fib(u64);

impl RecursiveTask for Fib {
    type Output = u64;

    fn compute(self) -> u64 {
        let n = self.0;
        if n < 2 {
            return n;
        }
        if n.is_multiple_of(5) {
            let left = Fib(n - 1).fork();
            let right = Fib(n - 2).compute();
            return left.join().expect("nobody cancels it") + right;
        }
        let [left, right] = Fib::invoke_all([Fib(n - 1), Fib(n - 2)]);
        left + right
    }
}

/// An action: it counts that it has run, and may fail.
struct Action {
    ran: Arc<AtomicUsize>,
    is_failing: bool,
}

impl RecursiveTask for Action {
    type Output = ();

    fn compute(self) {
        self.ran.fetch_add(1, Ordering::Relaxed);
        if self.is_failing {
            panic_any(DAM);
        }
    }
}

const DAM: &str = "the dam broke";

#[derive(Default)]
struct Actions(Arc<AtomicUsize>);

impl Actions {
    fn action(&self, is_failing: bool) -> Action {
        Action {
            ran: Arc::clone(&self.0),
            is_failing,
        }
    }

    fn ran(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn is_dam(payload: &(dyn Any + Send)) -> bool {
    payload.downcast_ref::<&str>() == Some(&DAM)
}

fn caught<R>(f: impl FnOnce() -> R) -> Box<dyn Any + Send> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("it was to panic"),
        Err(payload) => payload,
    }
}

fn failing() -> TaskHandle<()> {
    Actions::default().action(true).fork()
}

/// Holds: ForkJoinTaskTest.testInvoke, ForkJoinTaskTest.testInvokeSingleton, ForkJoinTask8Test.testInvoke
/// Holds: RecursiveActionTest.testInvoke
pub fn an_invoked_task_returns_its_result(place: &Place) {
    place(Box::new(|_| assert_eq!(Fib(16).invoke(), 987)));
}

/// Holds: ForkJoinTaskTest.testQuietlyInvoke, ForkJoinTaskTest.testQuietlyInvokeSingleton
/// Holds: ForkJoinTask8Test.testQuietlyInvoke, ForkJoinTask8Test.testQuietlyInvoke_Singleton
/// Holds: RecursiveActionTest.testQuietlyInvoke, RecursiveTaskTest.testQuietlyInvoke
/// Holds: ForkJoinPool8Test.testQuietlyInvoke
/// Holds: ForkJoinPool19Test.testQuietlyInvoke
pub fn an_invoked_task_without_result_returns(place: &Place) {
    place(Box::new(|_| {
        let actions = Actions::default();
        actions.action(false).invoke();
        assert_eq!(actions.ran(), 1);
    }));
}

/// Holds: ForkJoinTaskTest.testForkJoin, ForkJoinTask8Test.testForkJoin, ForkJoinTask8Test.testForkJoin_Singleton
/// Holds: RecursiveTaskTest.testForkJoin, ForkJoinPool8Test.testForkJoin
/// Holds: ForkJoinTaskTest.testForkGet, ForkJoinTaskTest.testForkGetSingleton, ForkJoinTask8Test.testForkGet
/// Holds: ForkJoinTask8Test.testForkGet_Singleton, RecursiveActionTest.testForkGet, RecursiveTaskTest.testForkGet
/// Holds: ForkJoinPool8Test.testForkGet
/// Holds: ForkJoinPool19Test.testForkJoin
pub fn a_forked_task_gives_its_result_to_a_join(place: &Place) {
    place(Box::new(|_| {
        assert_eq!(Fib(16).fork().join().unwrap(), 987);
        let actions = Actions::default();
        actions.action(false).fork().join().unwrap();
        assert_eq!(actions.ran(), 1);
    }));
}

/// Holds: ForkJoinTaskTest.testForkTimedGet, ForkJoinTaskTest.testForkTimedGetSingleton
/// Holds: ForkJoinTask8Test.testForkTimedGet, RecursiveActionTest.testForkTimedGet
/// Holds: RecursiveTaskTest.testForkTimedGet, ForkJoinPool8Test.testForkTimedGet
pub fn a_forked_task_gives_its_result_to_a_timed_join(place: &Place) {
    place(Box::new(|_| {
        let mut forked = Fib(16).fork();
        assert_eq!(forked.join_timeout(delays::hang()).unwrap(), 987);
        assert!(forked.is_finished());
    }));
}

/// Holds: ForkJoinTaskTest.testForkQuietlyJoin, ForkJoinTask8Test.testForkQuietlyJoin
/// Holds: RecursiveActionTest.testForkQuietlyJoin, RecursiveTaskTest.testForkQuietlyJoin
/// Holds: ForkJoinPool8Test.testForkQuietlyJoin
pub fn waiting_for_a_forked_task_leaves_its_result_where_it_is(place: &Place) {
    place(Box::new(|_| {
        let mut forked = Fib(12).fork();
        forked.wait().unwrap();
        assert!(forked.is_finished() && !forked.is_cancelled());
        assert_eq!(forked.join().unwrap(), 144);
    }));
}

/// Holds: ForkJoinTaskTest.testForkHelpQuiesce, ForkJoinTaskTest.testForkHelpQuiesceSingleton
/// Holds: ForkJoinTask8Test.testForkHelpQuiesce_Singleton, RecursiveActionTest.testForkHelpQuiesce
pub fn helping_until_quiescence_runs_what_was_forked(place: &Place) {
    place(Box::new(|pool| {
        let forked = [8, 9, 10].map(|n| Fib(n).fork());
        if pool.on_worker_thread() {
            pool.help_quiesce();
            assert!(
                pool.snapshot().queued_by_worker.iter().sum::<usize>() == 0
                    || pool.parallelism() > 1
            );
        }
        assert!(pool.await_quiescence(delays::hang()).unwrap());
        until("all are done", || {
            forked.iter().all(TaskHandle::is_finished)
        });
        let sum: u64 = forked.map(|each| each.join().unwrap()).iter().sum();
        assert_eq!(sum, 21 + 34 + 55);
    }));
}

/// Holds: ForkJoinTaskTest.testAbnormalInvoke, ForkJoinTaskTest.testAbnormalInvokeSingleton
/// Holds: ForkJoinTask8Test.testAbnormalInvoke_Singleton, RecursiveActionTest.testAbnormalInvoke
/// Holds: RecursiveTaskTest.testAbnormalInvoke
pub fn a_panic_of_an_invoked_task_comes_to_its_caller(place: &Place) {
    place(Box::new(|_| {
        let actions = Actions::default();
        let payload = caught(|| actions.action(true).invoke());
        assert!(is_dam(&*payload) && actions.ran() == 1);
    }));
}

/// Holds: ForkJoinTaskTest.testAbnormalQuietlyInvoke, ForkJoinTaskTest.testAbnormalQuietlyInvokeSingleton
/// Holds: ForkJoinTask8Test.testAbnormalQuietlyInvoke, ForkJoinTask8Test.testAbnormalQuietlyInvoke_Singleton
/// Holds: RecursiveTaskTest.testAbnormalQuietlyInvoke
pub fn a_panic_that_is_caught_where_the_task_was_invoked_is_the_end_of_it(place: &Place) {
    place(Box::new(|_| {
        let actions = Actions::default();
        for _ in 0..3 {
            assert!(is_dam(&*caught(|| actions.action(true).invoke())));
        }
        actions.action(false).invoke();
        assert_eq!((actions.ran(), Fib(10).invoke()), (4, 55));
    }));
}

/// Holds: ForkJoinTaskTest.testAbnormalForkJoin, ForkJoinTaskTest.testAbnormalForkJoinSingleton
/// Holds: ForkJoinTask8Test.testAbnormalForkJoin, ForkJoinTask8Test.testAbnormalForkJoin_Singleton
/// Holds: RecursiveActionTest.testAbnormalForkJoin, RecursiveTaskTest.testAbnormalForkJoin
/// Holds: ForkJoinPool8Test.testAbnormalForkJoin
/// Holds: ForkJoinTaskTest.testAbnormalForkGet, ForkJoinTaskTest.testAbnormalForkGetSingleton
/// Holds: ForkJoinTask8Test.testAbnormalForkGet_Singleton, RecursiveActionTest.testAbnormalForkGet
/// Holds: ForkJoinPool8Test.testAbnormalForkGet
pub fn a_join_of_a_forked_task_gives_its_panic(place: &Place) {
    place(Box::new(|_| {
        let error = failing().join().unwrap_err();
        assert!(error.is_panicked());
        let panic = error.into_panic().unwrap();
        assert!(is_dam(&*panic.into_payload()));
        let resumed = caught(|| failing().join().unwrap_err().resume());
        assert!(is_dam(&*resumed));
    }));
}

/// Holds: ForkJoinTaskTest.testAbnormalForkTimedGet, ForkJoinTask8Test.testAbnormalForkTimedGet
/// Holds: ForkJoinTask8Test.testAbnormalForkTimedGet_Singleton, RecursiveTaskTest.testAbnormalForkTimedGet
/// Holds: ForkJoinPool8Test.testAbnormalForkTimedGet
/// Holds: ForkJoinPool19Test.testAbnormalTimedQuietlyJoin
/// Holds: ForkJoinPool19Test.testAbnormalTimedQuietlyJoinUninterruptibly
pub fn a_timed_join_of_a_forked_task_gives_its_panic_and_no_timeout(place: &Place) {
    place(Box::new(|_| {
        let error = failing().join_timeout(delays::hang()).unwrap_err();
        assert!(error.is_panicked() && !error.is_timed_out());
        let error = interrupt::uninterruptible(|| failing().join_timeout(delays::hang()));
        assert!(error.unwrap_err().is_panicked());
    }));
}

/// Holds: ForkJoinTaskTest.testAbnormalForkQuietlyJoin, ForkJoinTaskTest.testAbnormalForkQuietlyJoinSingleton
/// Holds: ForkJoinTask8Test.testAbnormalForkQuietlyJoin, ForkJoinTask8Test.testAbnormalForkQuietlyJoin_Singleton
/// Holds: RecursiveActionTest.testAbnormalForkQuietlyJoin, RecursiveTaskTest.testAbnormalForkQuietlyJoin
/// Holds: ForkJoinPool8Test.testAbnormalForkQuietlyJoin
pub fn waiting_for_a_forked_task_that_panics_returns(place: &Place) {
    place(Box::new(|_| {
        let mut forked = failing();
        forked.wait().unwrap();
        assert!(forked.is_finished() && !forked.is_cancelled());
        assert!(forked.join().unwrap_err().is_panicked());
    }));
}

/// A forked task that was cancelled before it was done. Another worker may be faster.
fn cancelled(actions: &Actions) -> TaskHandle<()> {
    for _ in 0..100_000 {
        let forked = actions.action(false).fork();
        if forked.cancel() {
            return forked;
        }
    }
    panic!("not in time: a task is cancelled before it is done");
}

/// Holds: ForkJoinTaskTest.testCancelledInvoke, RecursiveActionTest.testCancelledInvoke
/// Holds: RecursiveTaskTest.testCancelledInvoke, ForkJoinPool8Test.testCancelledInvoke
pub fn a_task_that_is_cancelled_before_its_start_never_runs(place: &Place) {
    place(Box::new(|pool| {
        let (count, drops) = (Arc::new(AtomicUsize::new(0)), DropCount::new());
        let (own, token) = (Arc::clone(&count), drops.token());
        let (task, handle) = task::new(move || {
            own.fetch_add(1, Ordering::Relaxed);
            drop(token);
        });
        assert!(handle.cancel());
        pool.execute_task(task).unwrap();
        assert!(handle.join().unwrap_err().is_cancelled());
        until("its closure is dropped", || drops.alive() == 0);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }));
}

/// Holds: ForkJoinTaskTest.testCancelledForkJoin, ForkJoinTaskTest.testCancelledForkJoinSingleton
/// Holds: RecursiveActionTest.testCancelledForkJoin
/// Holds: ForkJoinTaskTest.testCancelledForkGet, ForkJoinTaskTest.testCancelledForkGetSingleton
/// Holds: RecursiveTaskTest.testCancelledForkGet, ForkJoinPool8Test.testCancelledForkGet
/// Holds: ForkJoinTaskTest.testCancelledForkTimedGet, ForkJoinTaskTest.testCancelledForkTimedGetSingleton
/// Holds: RecursiveActionTest.testCancelledForkTimedGet, RecursiveTaskTest.testCancelledForkTimedGet
/// Holds: ForkJoinPool8Test.testCancelledForkTimedGet
/// Holds: ForkJoinTaskTest.testCancelledForkQuietlyJoin, ForkJoinTaskTest.testCancelledForkQuietlyJoinSingleton
/// Holds: RecursiveActionTest.testCancelledForkQuietlyJoin
pub fn joins_of_a_cancelled_task_say_that_it_was_cancelled(place: &Place) {
    place(Box::new(|_| {
        let actions = Actions::default();
        assert!(cancelled(&actions).join().unwrap_err().is_cancelled());
        let timed = cancelled(&actions).join_timeout(delays::hang());
        assert!(timed.unwrap_err().is_cancelled());
        let mut waited = cancelled(&actions);
        waited.wait().unwrap();
        assert!(waited.is_finished() && waited.is_cancelled());
    }));
}

/// Holds: ForkJoinTaskTest.testGetPool, ForkJoinTask8Test.testGetPool, ForkJoinTask8Test.testGetPool_Singleton
/// Holds: RecursiveActionTest.testGetPool, RecursiveTaskTest.testGetPool
/// Holds: ForkJoinTaskTest.testInForkJoinPool, ForkJoinTask8Test.testInForkJoinPool
/// Holds: ForkJoinTask8Test.testInForkJoinPool_Singleton, RecursiveActionTest.testInForkJoinPool
/// Holds: RecursiveTaskTest.testInForkJoinPool
/// Holds: ForkJoinTaskTest.testGetPool2, ForkJoinTask8Test.testGetPool2, RecursiveActionTest.testGetPool2
/// Holds: ForkJoinTaskTest.testInForkJoinPool2, ForkJoinTask8Test.testInForkJoinPool2
/// Holds: RecursiveActionTest.testInForkJoinPool2, RecursiveTaskTest.testInForkJoinPool2
/// Holds: ForkJoinPool8Test.testInForkJoinPool2
/// Holds: RecursiveActionTest.testWorkerGetPool
pub fn a_worker_knows_its_pool_and_others_know_that_it_is_not_theirs(place: &Place) {
    place(Box::new(|pool| {
        let other = ForkJoinPool::builder("other").parallelism(1).build();
        let other = other.unwrap();
        let (own, stranger) = (pool.clone(), other.clone());
        let inside = pool.submit(move || (own.on_worker_thread(), stranger.on_worker_thread()));
        let inside = inside.unwrap().join().unwrap();
        assert_eq!(inside, (true, false));
        assert!(!other.on_worker_thread());
        let outside = std::thread::scope(|threads| {
            let outside = threads.spawn(|| pool.on_worker_thread());
            outside.join().unwrap()
        });
        assert!(!outside);
    }));
}

/// Holds: ForkJoinTaskTest.testInvokeAll1, ForkJoinTaskTest.testInvokeAll1Singleton
/// Holds: ForkJoinTask8Test.testInvokeAll1, RecursiveActionTest.testInvokeAll1, ForkJoinPool8Test.testInvokeAll1
/// Holds: ForkJoinTaskTest.testInvokeAll2, ForkJoinTaskTest.testInvokeAll2Singleton
/// Holds: ForkJoinTask8Test.testInvokeAll2, ForkJoinTask8Test.testInvokeAll2_Singleton
/// Holds: RecursiveTaskTest.testInvokeAll2, ForkJoinPool8Test.testInvokeAll2
/// Holds: ForkJoinTaskTest.testInvokeAll3, ForkJoinTaskTest.testInvokeAll3Singleton
/// Holds: ForkJoinTask8Test.testInvokeAll3, ForkJoinTask8Test.testInvokeAll3_Singleton
/// Holds: RecursiveActionTest.testInvokeAll3, ForkJoinPool8Test.testInvokeAll3
/// Holds: ForkJoinTaskTest.testInvokeAllCollection, ForkJoinTaskTest.testInvokeAllCollectionSingleton
/// Holds: ForkJoinTask8Test.testInvokeAllCollection, ForkJoinTask8Test.testInvokeAllCollection_Singleton
/// Holds: RecursiveActionTest.testInvokeAllCollection, RecursiveTaskTest.testInvokeAllCollection
pub fn all_of_a_list_of_tasks_run(place: &Place) {
    place(Box::new(|_| {
        assert_eq!(Fib::invoke_all([Fib(7)]), [13]);
        assert_eq!(Fib::invoke_all([Fib(7), Fib(8)]), [13, 21]);
        assert_eq!(Fib::invoke_all([Fib(7), Fib(8), Fib(9)]), [13, 21, 34]);
        let many = Fib::invoke_all_vec((0..10).map(Fib).collect());
        assert_eq!(many, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]);
        assert!(Fib::invoke_all_vec(Vec::new()).is_empty());
        let actions = Actions::default();
        Action::invoke_all_vec((0..50).map(|_| actions.action(false)).collect());
        assert_eq!(actions.ran(), 50);
    }));
}

/// Holds: ForkJoinTaskTest.testAbnormalInvokeAll1, ForkJoinTaskTest.testAbnormalInvokeAll1Singleton
/// Holds: ForkJoinTask8Test.testAbnormalInvokeAll1, ForkJoinTask8Test.testAbnormalInvokeAll1_Singleton
/// Holds: RecursiveActionTest.testAbnormalInvokeAll1, ForkJoinPool8Test.testAbnormalInvokeAll1
/// Holds: ForkJoinTaskTest.testAbnormalInvokeAll2, ForkJoinTaskTest.testAbnormalInvokeAll2Singleton
/// Holds: ForkJoinTask8Test.testAbnormalInvokeAll2, ForkJoinTask8Test.testAbnormalInvokeAll2_Singleton
/// Holds: RecursiveTaskTest.testAbnormalInvokeAll2, ForkJoinPool8Test.testAbnormalInvokeAll2
/// Holds: ForkJoinTaskTest.testAbnormalInvokeAll3, ForkJoinTaskTest.testAbnormalInvokeAll3Singleton
/// Holds: ForkJoinTask8Test.testAbnormalInvokeAll3, ForkJoinTask8Test.testAbnormalInvokeAll3_Singleton
/// Holds: RecursiveActionTest.testAbnormalInvokeAll3, RecursiveTaskTest.testAbnormalInvokeAll3
/// Holds: ForkJoinPool8Test.testAbnormalInvokeAll3
/// Holds: ForkJoinTaskTest.testAbnormalInvokeAllCollectionSingleton
/// Holds: ForkJoinTask8Test.testAbnormalInvokeAllCollection, RecursiveActionTest.testAbnormalInvokeAllCollection
/// Holds: ForkJoinPool8Test.testAbnormalInvokeAllCollection
pub fn a_panic_of_one_of_many_tasks_comes_to_the_caller_of_all(place: &Place) {
    place(Box::new(|_| {
        let actions = Actions::default();
        let one = |is_failing| actions.action(is_failing);
        let raised = [
            caught(|| Action::invoke_all([one(true)])),
            caught(|| Action::invoke_all([one(true), one(false)])),
            caught(|| Action::invoke_all([one(false), one(true)])),
            caught(|| Action::invoke_all([one(false), one(true), one(false)])),
            caught(|| {
                drop(Action::invoke_all_vec(
                    (0..9).map(|n| one(n == 5)).collect(),
                ))
            }),
        ];
        assert!(raised.iter().all(|payload| is_dam(&**payload)));
    }));
}

/// Holds: RecursiveActionTest.testJoinIgnoresInterrupts
/// Holds: ForkJoinPool8Test.testJoinIgnoresInterrupts
/// Holds: ForkJoinPool19Test.testTimedQuietlyJoinInterrupts
pub fn joins_of_an_interrupted_task_report_it_and_the_joined_one_goes_on(place: &Place) {
    place(Box::new(|_| {
        let (send, sent) = mpsc::channel::<TaskHandle<()>>();
        let actions = Actions::default();
        let joined = [(); 2].map(|()| actions.action(false));
        let last = actions.action(false);
        let (task, handle) = task::new(move || {
            assert!(sent.recv().unwrap().interrupt());
            // What borrows is joined whatever comes.
            Action::invoke_all(joined);
            let mut forked = Fib(10).fork();
            let value = match forked.join_timeout(delays::hang()) {
                Err(TaskError::Interrupted) => forked.join(),
                other => other,
            };
            assert_eq!(value.unwrap(), 55, "an interrupt is reported once");
            last.compute();
        });
        send.send(handle).unwrap();
        let _ = task.run();
        assert_eq!(actions.ran(), 3, "it came to its end");
    }));
}
