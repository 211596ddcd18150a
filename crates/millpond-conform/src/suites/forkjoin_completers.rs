//! Counted completers, wherever they are invoked.

use super::forkjoin_tasks::Place;
use crate::kit::{delays, until};
use millpond::executor::{Executor, ExecutorExt};
use millpond::forkjoin::{Completer, CountedCompleter, ForkJoinPool};
use millpond::task::TaskHandle;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Tests of counted completers in a [`Place`].
#[macro_export]
macro_rules! forkjoin_completers_suite {
    ($place:expr) => {
        $crate::bodies! { forkjoin_completers, ($place as $crate::suites::forkjoin_tasks::Place);
            an_invoked_completer_comes_back_complete
            an_invocation_that_was_submitted_gives_its_root_to_a_join
            a_panic_of_a_completer_comes_to_its_caller
            a_panic_of_a_submitted_invocation_is_in_its_handle
            an_invocation_that_is_cancelled_before_its_start_never_runs
            a_cancelled_invocation_says_so_to_all_joins
            helping_until_quiescence_runs_submitted_invocations
            a_completer_runs_in_the_pool_that_it_was_invoked_in
            all_children_run_before_the_root_is_complete
            a_panic_of_a_child_comes_to_the_caller_of_the_root
            fields_can_be_set_and_read_before_the_end
            a_completer_that_is_failed_by_hand_fails_its_root
            pending_counts_are_what_was_set_added_and_taken_off
            the_parent_of_a_child_is_known_and_the_root_has_none
            a_completer_completes_at_once_whatever_is_pending
            the_last_part_completes_and_goes_on_to_the_parent
            completion_can_go_up_without_being_told
            first_and_next_complete_lead_up_to_what_is_complete
            a_search_completes_its_root_and_no_node_between
            every_style_of_halving_visits_each_leaf_once
            a_root_that_nobody_completes_is_a_panic_and_no_hang
        }
    };
}

const DAM: &str = "the dam broke";

fn caught<R>(f: impl FnOnce() -> R) -> Box<dyn Any + Send> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("it was to panic"),
        Err(payload) => payload,
    }
}

fn is_dam(payload: &(dyn Any + Send)) -> bool {
    payload.downcast_ref::<&str>() == Some(&DAM)
}

/// Has so many children, of which one may fail; counts those that have run.
#[derive(Default)]
struct Family {
    children: usize,
    failing: Option<usize>,
    ran: AtomicUsize,
}

impl Family {
    fn of(children: usize) -> Self {
        Family {
            children,
            ..Family::default()
        }
    }

    fn failing(children: usize, failing: usize) -> Self {
        Family {
            failing: Some(failing),
            ..Family::of(children)
        }
    }
}

impl CountedCompleter for Family {
    fn compute(this: &Completer<'_, '_, Self>) {
        for child in 0..this.children {
            this.fork_child(Family {
                failing: this.failing.filter(|failing| *failing == child),
                ..Family::default()
            });
        }
        if this.children == 0 && this.failing.is_some() {
            panic_any(DAM);
        }
        this.ran.fetch_add(1, Ordering::Relaxed);
        this.try_complete();
    }

    fn on_completion(this: &Completer<'_, '_, Self>, _: &Completer<'_, '_, Self>) {
        if let Some(parent) = this.completer() {
            let ran = this.ran.load(Ordering::Relaxed);
            parent.ran.fetch_add(ran, Ordering::Relaxed);
        }
    }
}

fn ran(family: Family) -> usize {
    family.ran.into_inner()
}

fn submitted(pool: &ForkJoinPool, family: Family) -> TaskHandle<Family> {
    pool.submit(|| family.invoke()).unwrap()
}

/// Holds: CountedCompleterTest.testInvoke, CountedCompleterTest.testInvokeSingleton, ForkJoinPool8Test.testInvokeCC
/// Holds: CountedCompleterTest.testQuietlyInvoke, CountedCompleterTest.testQuietlyInvokeSingleton
pub fn an_invoked_completer_comes_back_complete(place: &Place) {
    place(Box::new(|_| assert_eq!(ran(Family::of(7).invoke()), 8)));
}

/// Holds: CountedCompleterTest.testForkJoin, CountedCompleterTest.testForkJoinSingleton
/// Holds: ForkJoinPool8Test.testForkJoinCC
/// Holds: CountedCompleterTest.testForkGet, CountedCompleterTest.testForkGetSingleton
/// Holds: ForkJoinPool8Test.testForkGetCC
/// Holds: CountedCompleterTest.testForkTimedGet, CountedCompleterTest.testForkTimedGetSingleton
/// Holds: ForkJoinPool8Test.testForkTimedGetCC
/// Holds: CountedCompleterTest.testForkQuietlyJoin, CountedCompleterTest.testForkQuietlyJoinSingleton
/// Holds: ForkJoinPool8Test.testForkQuietlyJoinCC
pub fn an_invocation_that_was_submitted_gives_its_root_to_a_join(place: &Place) {
    place(Box::new(|pool| {
        assert_eq!(ran(submitted(pool, Family::of(7)).join().unwrap()), 8);
        let timed = submitted(pool, Family::of(7)).join_timeout(delays::hang());
        assert_eq!(ran(timed.unwrap()), 8);
        let mut waited = submitted(pool, Family::of(7));
        waited.wait().unwrap();
        assert!(waited.is_finished() && !waited.is_cancelled());
    }));
}

/// Holds: CountedCompleterTest.testAbnormalInvoke, CountedCompleterTest.testAbnormalInvokeSingleton
/// Holds: ForkJoinPool8Test.testAbnormalInvokeCC
/// Holds: CountedCompleterTest.testAbnormalQuietlyInvoke, CountedCompleterTest.testAbnormalQuietlyInvokeSingleton
/// Holds: ForkJoinPool8Test.testAbnormalQuietlyInvokeCC
pub fn a_panic_of_a_completer_comes_to_its_caller(place: &Place) {
    place(Box::new(|_| {
        let payload = caught(|| Family::failing(0, 0).invoke());
        assert!(is_dam(&*payload));
        assert_eq!(ran(Family::of(1).invoke()), 2, "it is over");
    }));
}

/// Holds: CountedCompleterTest.testAbnormalForkJoin, CountedCompleterTest.testAbnormalForkJoinSingleton
/// Holds: ForkJoinPool8Test.testAbnormalForkJoinCC
/// Holds: CountedCompleterTest.testAbnormalForkGet, CountedCompleterTest.testAbnormalForkGetSingleton
/// Holds: ForkJoinPool8Test.testAbnormalForkGetCC
/// Holds: CountedCompleterTest.testAbnormalForkTimedGetSingleton, ForkJoinPool8Test.testAbnormalForkTimedGetCC
/// Holds: CountedCompleterTest.testAbnormalForkQuietlyJoin
/// Holds: CountedCompleterTest.testAbnormalForkQuietlyJoinSingleton
/// Holds: ForkJoinPool8Test.testAbnormalForkQuietlyJoinCC
pub fn a_panic_of_a_submitted_invocation_is_in_its_handle(place: &Place) {
    place(Box::new(|pool| {
        let failing = || submitted(pool, Family::failing(3, 1));
        let Err(error) = failing().join() else {
            panic!("it fails");
        };
        assert!(is_dam(&*error.into_panic().unwrap().into_payload()));
        let timed = failing().join_timeout(delays::hang());
        assert!(timed.is_err_and(|error| error.is_panicked()));
        let mut waited = failing();
        waited.wait().unwrap();
        assert!(waited.join().is_err_and(|error| error.is_panicked()));
    }));
}

/// Holds: CountedCompleterTest.testCancelledInvoke, ForkJoinPool8Test.testCancelledInvokeCC
pub fn an_invocation_that_is_cancelled_before_its_start_never_runs(place: &Place) {
    place(Box::new(|pool| {
        let (task, handle) = millpond::task::new(|| -> usize { unreachable!("it was cancelled") });
        assert!(handle.cancel());
        pool.execute_task(task).unwrap();
        assert!(handle.join().unwrap_err().is_cancelled());
    }));
}

/// Holds: CountedCompleterTest.testCancelledForkJoin, CountedCompleterTest.testCancelledForkJoinSingleton
/// Holds: ForkJoinPool8Test.testCancelledForkJoinCC
/// Holds: CountedCompleterTest.testCancelledForkGet, CountedCompleterTest.testCancelledForkGetSingleton
/// Holds: ForkJoinPool8Test.testCancelledForkGetCC
/// Holds: CountedCompleterTest.testCancelledForkTimedGet, CountedCompleterTest.testCancelledForkTimedGetSingleton
/// Holds: ForkJoinPool8Test.testCancelledForkTimedGetCC
/// Holds: CountedCompleterTest.testCancelledForkQuietlyJoin
/// Holds: CountedCompleterTest.testCancelledForkQuietlyJoinSingleton
/// Holds: ForkJoinPool8Test.testCancelledForkQuietlyJoinCC
pub fn a_cancelled_invocation_says_so_to_all_joins(place: &Place) {
    place(Box::new(|pool| {
        let cancelled = || {
            let tries = std::iter::repeat_with(|| submitted(pool, Family::of(3)));
            let found = tries.take(100_000).find(TaskHandle::cancel);
            found.expect("not in time: an invocation is cancelled before it is done")
        };
        assert!(cancelled().join().is_err_and(|error| error.is_cancelled()));
        let timed = cancelled().join_timeout(delays::hang());
        assert!(timed.is_err_and(|error| error.is_cancelled()));
        let mut waited = cancelled();
        waited.wait().unwrap();
        assert!(waited.is_finished() && waited.is_cancelled());
    }));
}

/// Holds: CountedCompleterTest.testForkHelpQuiesce, CountedCompleterTest.testForkHelpQuiesceSingleton
pub fn helping_until_quiescence_runs_submitted_invocations(place: &Place) {
    place(Box::new(|pool| {
        let forked = [1, 2, 3].map(|children| submitted(pool, Family::of(children)));
        pool.help_quiesce();
        assert!(pool.await_quiescence(delays::hang()).unwrap());
        until("all are done", || {
            forked.iter().all(TaskHandle::is_finished)
        });
        let all: usize = forked.map(|each| ran(each.join().unwrap())).iter().sum();
        assert_eq!(all, 2 + 3 + 4);
    }));
}

/// Asks where it runs.
struct Where<'a>(&'a ForkJoinPool, AtomicUsize);

impl CountedCompleter for Where<'_> {
    fn compute(this: &Completer<'_, '_, Self>) {
        let is_inside = this.0.on_worker_thread();
        this.root()
            .1
            .fetch_add(usize::from(is_inside), Ordering::Relaxed);
        if this.completer().is_none() {
            for _ in 0..5 {
                this.fork_child(Where(this.0, AtomicUsize::new(0)));
            }
        }
        this.try_complete();
    }
}

/// Holds: CountedCompleterTest.testGetPool
/// Holds: CountedCompleterTest.testInForkJoinPool
/// Holds: CountedCompleterTest.testGetPool2, ForkJoinPool8Test.testGetPool2CC
/// Holds: CountedCompleterTest.testInForkJoinPool2, ForkJoinPool8Test.testInForkJoinPool2CC
pub fn a_completer_runs_in_the_pool_that_it_was_invoked_in(place: &Place) {
    place(Box::new(|pool| {
        let other = ForkJoinPool::builder("other").parallelism(1).build();
        let other = other.unwrap();
        let inside = |asked| pool.install(|| Where(asked, AtomicUsize::new(0)).invoke());
        assert_eq!(inside(pool).1.into_inner(), 6);
        assert_eq!(inside(&other).1.into_inner(), 0);
    }));
}

/// Holds: CountedCompleterTest.testInvokeAll1, CountedCompleterTest.testInvokeAll1Singleton
/// Holds: ForkJoinPool8Test.testInvokeAll1CC
/// Holds: CountedCompleterTest.testInvokeAll2, CountedCompleterTest.testInvokeAll2Singleton
/// Holds: ForkJoinPool8Test.testInvokeAll2CC
/// Holds: CountedCompleterTest.testInvokeAll3Singleton, ForkJoinPool8Test.testInvokeAll3CC
/// Holds: CountedCompleterTest.testInvokeAllCollection, CountedCompleterTest.testInvokeAllCollectionSingleton
/// Holds: ForkJoinPool8Test.testInvokeAllCollectionCC
pub fn all_children_run_before_the_root_is_complete(place: &Place) {
    place(Box::new(|_| {
        for children in [1, 2, 3, 100] {
            assert_eq!(ran(Family::of(children).invoke()), children + 1);
        }
    }));
}

/// Holds: CountedCompleterTest.testAbnormalInvokeAll1, CountedCompleterTest.testAbnormalInvokeAll1Singleton
/// Holds: CountedCompleterTest.testAbnormalInvokeAll2, CountedCompleterTest.testAbnormalInvokeAll2Singleton
/// Holds: ForkJoinPool8Test.testAbnormalInvokeAll2CC
/// Holds: CountedCompleterTest.testAbnormalInvokeAll3, CountedCompleterTest.testAbnormalInvokeAll3Singleton
/// Holds: ForkJoinPool8Test.testAbnormalInvokeAll3CC
/// Holds: CountedCompleterTest.testAbnormalInvokeAllCollection
/// Holds: CountedCompleterTest.testAbnormalInvokeAllCollectionSingleton
/// Holds: ForkJoinPool8Test.testAbnormalInvokeAllCollectionCC
pub fn a_panic_of_a_child_comes_to_the_caller_of_the_root(place: &Place) {
    place(Box::new(|_| {
        for (children, failing) in [(1, 0), (2, 1), (3, 1), (50, 17)] {
            let payload = caught(|| Family::failing(children, failing).invoke());
            assert!(is_dam(&*payload));
        }
    }));
}

/// What to do with a node: a script in a closure.
struct Node {
    script: Option<Script>,
    told: AtomicU32,
    value: AtomicU32,
}

type Script = fn(&Completer<'_, '_, Node>);

impl Node {
    fn with(script: Script) -> Self {
        Node {
            script: Some(script),
            ..Node::plain()
        }
    }

    fn plain() -> Self {
        Node {
            script: None,
            told: AtomicU32::new(0),
            value: AtomicU32::new(0),
        }
    }
}

impl CountedCompleter for Node {
    fn compute(this: &Completer<'_, '_, Self>) {
        if let Some(script) = this.script {
            script(this);
        }
    }

    fn on_completion(this: &Completer<'_, '_, Self>, _: &Completer<'_, '_, Self>) {
        this.told.fetch_add(1, Ordering::Relaxed);
    }
}

fn told(node: &Node) -> u32 {
    node.told.load(Ordering::Relaxed)
}

fn play(place: &Place, script: Script) {
    place(Box::new(move |_| {
        let _ = Node::with(script).invoke();
    }));
}

/// Holds: CountedCompleterTest.testSetRawResult, ForkJoinPool8Test.testSetRawResultCC
pub fn fields_can_be_set_and_read_before_the_end(place: &Place) {
    play(place, |node| {
        node.value.store(7, Ordering::Relaxed);
        assert_eq!(node.value.load(Ordering::Relaxed), 7);
        assert!(!node.is_completed());
        node.complete();
    });
}

/// Holds: CountedCompleterTest.testCompleteExceptionally
/// Holds: CountedCompleterTest.testCompleteExceptionally2, ForkJoinPool8Test.testCompleteExceptionally2CC
/// Holds: CountedCompleterTest.testCompleteExceptionallySingleton
pub fn a_completer_that_is_failed_by_hand_fails_its_root(place: &Place) {
    place(Box::new(|_| {
        let failing = Node::with(|node| {
            let child = node.child(Node::with(|_| {
                unreachable!("it was failed before its start")
            }));
            child.fail(Box::new(DAM));
            assert!(child.is_failed() && node.is_failed() && node.is_completed());
            node.add_pending(1);
            child.fork();
            node.try_complete();
        });
        assert!(is_dam(&*caught(|| failing.invoke())));
    }));
}

/// Holds: CountedCompleterTest.testSetPendingCount
/// Holds: CountedCompleterTest.testAddToPendingCount
/// Holds: CountedCompleterTest.testDecrementPendingCountUnlessZero
/// Holds: CountedCompleterTest.testCompareAndSetPendingCount
pub fn pending_counts_are_what_was_set_added_and_taken_off(place: &Place) {
    play(place, |node| {
        assert_eq!(node.pending(), 0);
        node.set_pending(3);
        node.add_pending(2);
        assert_eq!(node.pending(), 5);
        assert!(!node.compare_and_set_pending(4, 1) && node.pending() == 5);
        assert!(node.compare_and_set_pending(5, 2));
        let taken = [(); 4].map(|()| node.decrement_pending_unless_zero());
        assert_eq!((taken, node.pending()), ([2, 1, 0, 0], 0));
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| (0..1_000).for_each(|_| node.add_pending(1)));
            }
        });
        assert_eq!(node.pending(), 4_000);
        node.complete();
        assert_eq!(node.pending(), 4_000, "it stays as it is");
    });
}

/// Holds: CountedCompleterTest.testGetCompleter
pub fn the_parent_of_a_child_is_known_and_the_root_has_none(place: &Place) {
    play(place, |node| {
        let (child, same) = (node.child(Node::plain()), node.clone());
        node.value.store(9, Ordering::Relaxed);
        assert!(node.completer().is_none());
        let parent = child.completer().unwrap();
        assert_eq!(parent.value.load(Ordering::Relaxed), 9);
        assert_eq!(child.root().value.load(Ordering::Relaxed), 9);
        same.complete();
        assert!(node.is_completed() && !child.is_completed());
    });
}

/// Holds: CountedCompleterTest.testComplete
pub fn a_completer_completes_at_once_whatever_is_pending(place: &Place) {
    play(place, |node| {
        let child = node.child(Node::plain());
        child.set_pending(42);
        node.set_pending(1);
        assert!(!child.is_completed());
        child.complete();
        assert!(child.is_completed() && !child.is_failed());
        assert_eq!((child.pending(), told(&child)), (42, 1));
        assert_eq!(
            (node.pending(), told(node), node.is_completed()),
            (0, 0, false)
        );
        node.child(Node::plain()).complete();
        assert_eq!((told(node), node.is_completed()), (1, true));
    });
}

/// Holds: CountedCompleterTest.testTryComplete
pub fn the_last_part_completes_and_goes_on_to_the_parent(place: &Place) {
    play(place, |node| {
        let child = node.child(Node::plain());
        child.set_pending(2);
        for left in [1, 0] {
            child.try_complete();
            assert_eq!((child.pending(), told(&child)), (left, 0));
            assert!(!child.is_completed());
        }
        child.try_complete();
        assert!(child.is_completed() && node.is_completed());
        assert_eq!((told(&child), told(node)), (1, 1));
    });
}

/// Holds: CountedCompleterTest.testPropagateCompletion
pub fn completion_can_go_up_without_being_told(place: &Place) {
    play(place, |node| {
        let child = node.child(Node::plain());
        child.set_pending(1);
        child.propagate_completion();
        assert!(child.pending() == 0 && !child.is_completed());
        child.propagate_completion();
        assert!(child.is_completed() && node.is_completed());
        assert_eq!((told(&child), told(node)), (0, 0));
    });
}

/// Holds: CountedCompleterTest.testFirstComplete
/// Holds: CountedCompleterTest.testNextComplete
pub fn first_and_next_complete_lead_up_to_what_is_complete(place: &Place) {
    play(place, |node| {
        let child = node.child(Node::plain());
        child.set_pending(1);
        assert!(child.first_complete().is_none() && child.pending() == 0);
        let first = child.first_complete().unwrap();
        assert!(first.completer().is_some());
        node.set_pending(1);
        assert!(first.next_complete().is_none() && node.pending() == 0);
        let next = first.next_complete().unwrap();
        assert!(next.completer().is_none() && !node.is_completed());
        assert!(next.next_complete().is_none() && node.is_completed());
        assert_eq!((told(&child), told(node)), (0, 0));
    });
}

/// Holds: CountedCompleterTest.testQuietlyCompleteRoot
pub fn a_search_completes_its_root_and_no_node_between(place: &Place) {
    play(place, |node| {
        let child = node.child(Node::plain());
        let grandchild = child.child(Node::plain());
        node.set_pending(100);
        grandchild.complete_root();
        assert!(node.is_completed() && told(node) == 0);
        assert!(!child.is_completed() && !grandchild.is_completed());
    });
}

/// How a range is halved.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// Both halves are forked, and both are counted at once.
    Both,
    /// One half is forked, and the node goes on with the other.
    Right,
    /// As before, and completion goes up by hand.
    ByHand,
}

struct Range<'a> {
    style: Style,
    from: usize,
    to: usize,
    seen: &'a [AtomicUsize],
}

impl CountedCompleter for Range<'_> {
    fn compute(this: &Completer<'_, '_, Self>) {
        let (mut from, mut to) = (this.from, this.to);
        let part = |from, to| Range { from, to, ..**this };
        while to - from >= 2 {
            let middle = from + (to - from) / 2;
            match this.style {
                Style::Both => {
                    this.set_pending(2);
                    this.child(part(from, middle)).fork();
                    this.child(part(middle, to)).fork();
                    from = to;
                }
                Style::Right | Style::ByHand => {
                    this.fork_child(part(middle, to));
                    to = middle;
                }
            }
        }
        if from < to {
            this.seen[from].fetch_add(1, Ordering::Relaxed);
        }
        match this.style {
            Style::Both | Style::Right => this.try_complete(),
            Style::ByHand => {
                let mut next = this.first_complete();
                while let Some(node) = next {
                    next = node.next_complete();
                }
            }
        }
    }
}

/// Holds: CountedCompleter8Test.testRecursiveDecomposition
pub fn every_style_of_halving_visits_each_leaf_once(place: &Place) {
    for style in [Style::Both, Style::Right, Style::ByHand] {
        place(Box::new(move |_| {
            let seen: Vec<_> = (0..1_000).map(|_| AtomicUsize::new(0)).collect();
            let root = Range {
                style,
                from: 0,
                to: seen.len(),
                seen: &seen,
            };
            let root = root.invoke();
            assert_eq!((root.from, root.to), (0, 1_000));
            let is_once = |leaf: &AtomicUsize| leaf.load(Ordering::Relaxed) == 1;
            assert!(seen.iter().all(is_once), "{style:?}");
        }));
    }
}

/// A mistake that Java punishes with a thread that waits for ever.
pub fn a_root_that_nobody_completes_is_a_panic_and_no_hang(place: &Place) {
    place(Box::new(|_| {
        let forgetful = Node::with(|node| {
            node.set_pending(2);
            node.try_complete();
        });
        let payload = caught(|| forgetful.invoke());
        let text = payload.downcast_ref::<String>().unwrap();
        assert!(text.contains("which is 1"), "{text}");
    }));
}
