//! The task cell: completing, cancelling, interrupting and dropping, against joining and polling.

use super::stop::block_until_set;
use super::{Probe, few_or_many, join_all, spawn_all};
use millpond_raw::park::{self, Site};
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use millpond_raw::task::{self, CancelReason, Handle, InlineRunner, Outcome, Ran, Shared};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

const JOIN: Site = Site::new("scenario.join");

/// Joins as a thread does: register, check, park.
fn join<T>(handle: &mut Handle<T>) -> Outcome<T> {
    let here = park::current();
    loop {
        if let Some(outcome) = handle.take() {
            return outcome;
        }
        if handle.register(&here.waker()) {
            here.park(JOIN);
        }
    }
}

/// Joins one of many handles.
fn join_shared<T>(handle: &Shared<T>) {
    let here = park::current();
    let Some(ticket) = handle.register(&here.waker()) else {
        return;
    };
    while !handle.state().is_finished() {
        here.park(JOIN);
    }
    handle.unregister(ticket);
}

/// A waker that counts, and wakes a thread.
struct Bell {
    rung: AtomicUsize,
    thread: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.fetch_add(1, Ordering::Release);
        self.thread.wake_by_ref();
    }
}

/// The joiner gets the value, and sees all that the body wrote.
pub(crate) fn a_join_gets_the_value_and_sees_the_bodys_writes() {
    let (probe, note) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (task, mut handle) = task::new(
        {
            let (probe, note) = (probe.clone(), Arc::clone(&note));
            move || {
                note.store(7, Ordering::Relaxed);
                probe
            }
        },
        (),
    );
    let runner = spawn(move || task.run());
    match join(&mut handle) {
        Outcome::Completed(value) => assert_eq!((probe.others(), drop(value)), (1, ())),
        other => panic!("{other:?}"),
    }
    assert_eq!(note.load(Ordering::Relaxed), 7);
    assert!(matches!(runner.join().unwrap(), Ran::Completed));
    drop(handle);
    assert_eq!(probe.others(), 0);
}

/// A pending future is woken, once, and then finds the value.
pub(crate) fn a_pending_poll_is_woken() {
    let (task, mut handle) = task::new(|| 7, ());
    let runner = spawn(move || task.run());
    let here = park::current();
    let bell = Arc::new(Bell {
        rung: AtomicUsize::new(0),
        thread: here.waker(),
    });
    let waker = Waker::from(Arc::clone(&bell));
    let mut context = Context::from_waker(&waker);
    let mut pending = false;
    let outcome = loop {
        match handle.poll(&mut context) {
            Poll::Ready(outcome) => break outcome,
            Poll::Pending => pending = true,
        }
        while bell.rung.load(Ordering::Acquire) == 0 {
            here.park(JOIN);
        }
    };
    assert!(matches!(outcome, Outcome::Completed(7)));
    assert_eq!(bell.rung.load(Ordering::Acquire), usize::from(pending));
    let _ = runner.join();
}

/// A future that moves to another task in the middle is woken there.
pub(crate) fn a_poll_from_another_task_is_woken_there() {
    let (task, mut handle) = task::new(|| 7, ());
    let runner = spawn(move || task.run());
    let first = handle.poll(&mut Context::from_waker(Waker::noop()));
    if first.is_pending() {
        assert!(matches!(join(&mut handle), Outcome::Completed(7)));
    }
    let _ = runner.join();
}

/// Exactly one of running and cancelling happens to a task that has not started; the closure is dropped once,
/// and an unwanted value is dropped too.
pub(crate) fn running_and_cancelling_agree() {
    let cancellers = few_or_many(1, 3);
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (task, handle) = task::new(
        {
            let (probe, runs) = (probe.clone(), Arc::clone(&runs));
            move || {
                runs.fetch_add(1, Ordering::Relaxed);
                probe
            }
        },
        (),
    );
    let handle = handle.share().expect("nothing is taken");
    let runner = spawn(move || task.run());
    let won: usize = join_all(spawn_all(cancellers, {
        let handle = handle.clone();
        move |_| usize::from(handle.cancel(CancelReason::Requested).is_some())
    }))
    .into_iter()
    .sum();
    let ran = runner.join().unwrap();
    match handle.outcome().expect("everything has ended") {
        Outcome::Completed(_) => assert_eq!((won, runs.load(Ordering::Relaxed)), (0, 1)),
        Outcome::Cancelled(reason) => {
            assert_eq!((won, reason), (1, CancelReason::Requested));
            let runs = runs.load(Ordering::Relaxed);
            assert_eq!(runs == 0, matches!(ran, Ran::Gone(_)));
            assert_eq!(probe.others(), 0, "closure and late value are gone at once");
        }
        Outcome::Panicked(panic) => panic!("{panic:?}"),
    }
    drop(handle);
    assert_eq!(probe.others(), 0);
}

/// A joiner is released by a cancellation as well as by the outcome.
pub(crate) fn a_cancelled_joiner_is_released() {
    let probe = Probe::default();
    let (task, handle) = task::new(
        {
            let probe = probe.clone();
            move || probe
        },
        (),
    );
    let handle = handle.share().expect("nothing is taken");
    let joiner = spawn({
        let handle = handle.clone();
        move || join_shared(&handle)
    });
    let runner = spawn(move || task.run());
    handle.cancel(CancelReason::Requested);
    let _ = (joiner.join().unwrap(), runner.join().unwrap());
    assert!(handle.state().is_finished());
    drop(handle);
    assert_eq!(probe.others(), 0);
}

/// A handle that is dropped while its task ends leaves nothing behind.
pub(crate) fn dropping_the_handle_against_completing_leaks_nothing() {
    let probe = Probe::default();
    let (task, handle) = task::new(
        {
            let probe = probe.clone();
            move || probe
        },
        (),
    );
    let runner = spawn(move || task.run());
    drop(handle);
    assert!(matches!(runner.join().unwrap(), Ran::Completed));
    assert_eq!(probe.others(), 0);
}

/// A future that is dropped while it waits takes its waker out, or has been woken.
pub(crate) fn dropping_a_pending_handle_takes_its_waker_out() {
    let (task, mut handle) = task::new(|| (), ());
    let bell = Arc::new(Bell {
        rung: AtomicUsize::new(0),
        thread: Waker::noop().clone(),
    });
    let waker = Waker::from(Arc::clone(&bell));
    let runner = spawn(move || task.run());
    let _ = handle.poll(&mut Context::from_waker(&waker));
    drop((handle, waker));
    let _ = runner.join();
    assert_eq!(Arc::strong_count(&bell), 1, "no waker is left in the cell");
}

/// A task that is dropped unrun completes its handle, with the reason.
pub(crate) fn dropping_the_task_releases_the_joiner() {
    let probe = Probe::default();
    let (task, mut handle) = task::new(
        {
            let probe = probe.clone();
            move || probe
        },
        (),
    );
    let dropper = spawn(move || drop(task));
    match join(&mut handle) {
        Outcome::Cancelled(reason) => assert_eq!(reason, CancelReason::Dropped),
        other => panic!("{other:?}"),
    }
    dropper.join().unwrap();
    assert_eq!(
        probe.others(),
        0,
        "the closure is gone, though the handle is not"
    );
}

/// A task dropped by its queue while its handle cancels it is cancelled once.
pub(crate) fn dropping_and_cancelling_agree() {
    let probe = Probe::default();
    let (task, handle) = task::new(
        {
            let probe = probe.clone();
            move || probe
        },
        (),
    );
    let dropper = spawn(move || task.cancel(CancelReason::ShutDown));
    let requested = handle.cancel(CancelReason::Requested).is_some();
    let shut_down = dropper.join().unwrap();
    assert!(requested != shut_down, "exactly one of them wins");
    let expected = if requested {
        CancelReason::Requested
    } else {
        CancelReason::ShutDown
    };
    assert_eq!(handle.state().cancelled(), Some(expected));
    drop(handle);
    assert_eq!(probe.others(), 0);
}

/// A task that its waiter may run inline runs once, on either thread.
pub(crate) fn a_task_run_inline_runs_once() {
    let runs = Arc::new(AtomicUsize::new(0));
    let (task, mut handle) = task::new(
        {
            let runs = Arc::clone(&runs);
            move || runs.fetch_add(1, Ordering::Relaxed)
        },
        (),
    );
    let runner = spawn(move || task.run());
    let here = handle
        .run_inline(InlineRunner::OtherThread, || (), |_| ())
        .is_some();
    assert!(matches!(join(&mut handle), Outcome::Completed(0)));
    assert_eq!(here, matches!(runner.join().unwrap(), Ran::Gone(_)));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

/// A task that its queue drops while its waiter runs it inline is run, or cancelled, and its handle says
/// which.
pub(crate) fn dropping_and_running_inline_agree() {
    let (task, mut handle) = task::new(|| 7, ());
    let dropper = spawn(move || drop(task));
    let here = handle
        .run_inline(InlineRunner::OtherThread, || (), |_| ())
        .is_some();
    match join(&mut handle) {
        Outcome::Completed(7) => assert!(here),
        Outcome::Cancelled(CancelReason::Dropped) => assert!(!here),
        other => panic!("{other:?}"),
    }
    dropper.join().unwrap();
}

/// A witness that runs the task, a queue that drops it and a handle that is dropped: the task is run or
/// cancelled once, and its value is dropped once, by the last of them.
pub(crate) fn a_witness_that_runs_it_and_a_handle_that_drops_agree() {
    let probe = Probe::default();
    let (task, handle) = task::new(
        {
            let probe = probe.clone();
            move || probe
        },
        (),
    );
    let witness = handle.witness();
    let dropper = spawn(move || drop(task));
    let runner = spawn(move || {
        let ran = witness
            .run_inline(InlineRunner::OwnWorker, || (), |_| ())
            .is_some();
        assert!(witness.state().is_finished());
        ran
    });
    drop(handle);
    dropper.join().unwrap();
    let _ = runner.join().unwrap();
    assert_eq!(probe.others(), 0, "closure or value: it was dropped");
}

/// An interrupt reaches the body while it blocks, or keeps it from starting.
pub(crate) fn an_interrupt_reaches_the_body_that_blocks() {
    let (task, handle) = task::new(block_until_set, ());
    let runner = spawn(move || task.run());
    assert!(handle.interrupt(CancelReason::Requested).is_some());
    let _ = runner.join().unwrap();
    assert_eq!(handle.state().cancelled(), Some(CancelReason::Requested));
}

/// A joiner and a blocking body both need queues to wait in, and either may be the first; an interrupt that
/// comes in between reaches both.
pub(crate) fn a_joiner_and_a_body_that_blocks_are_both_reached() {
    let (task, handle) = task::new(block_until_set, ());
    let handle = handle.share().expect("nothing is taken");
    let joiner = spawn({
        let handle = handle.clone();
        move || join_shared(&handle)
    });
    let runner = spawn(move || task.run());
    handle.interrupt(CancelReason::Requested);
    let _ = (joiner.join().unwrap(), runner.join().unwrap());
    assert_eq!(handle.state().cancelled(), Some(CancelReason::Requested));
}

/// Every one of many joiners is woken and sees the same value.
pub(crate) fn many_joiners_see_one_value() {
    let joiners = few_or_many(1, 4);
    let probe = Probe::default();
    let (task, handle) = task::new(
        {
            let probe = probe.clone();
            move || (7, probe)
        },
        (),
    );
    let handle = handle.share().expect("nothing is taken");
    let others = spawn_all(joiners, {
        let handle = handle.clone();
        move |_| {
            join_shared(&handle);
            match handle.outcome() {
                Some(Outcome::Completed((seven, _))) => assert_eq!(*seven, 7),
                other => panic!("{}", other.is_some()),
            }
        }
    });
    drop(handle);
    assert!(matches!(task.run(), Ran::Completed));
    join_all(others);
    assert_eq!(probe.others(), 0);
}

/// A joiner that gives up while the task ends leaves no waker and loses no outcome.
pub(crate) fn a_joiner_that_gives_up_leaves_nothing_behind() {
    let (task, mut handle) = task::new(|| 7, ());
    let bell = Arc::new(Bell {
        rung: AtomicUsize::new(0),
        thread: Waker::noop().clone(),
    });
    let runner = spawn(move || task.run());
    {
        let waker = Waker::from(Arc::clone(&bell));
        if handle.register(&waker) {
            handle.unregister();
        }
    }
    assert!(matches!(join(&mut handle), Outcome::Completed(7)));
    let _ = runner.join();
    assert_eq!(Arc::strong_count(&bell), 1);
}

/// A body that panics delivers its payload, which is dropped once.
pub(crate) fn a_panic_is_delivered_and_dropped_once() {
    let probe = Probe::default();
    let (task, mut handle) = task::new(
        {
            let probe = probe.clone();
            move || -> u8 { std::panic::resume_unwind(Box::new(probe)) }
        },
        (),
    );
    let runner = spawn(move || task.run());
    match join(&mut handle) {
        Outcome::Panicked(panic) => assert!(panic.into_payload().is::<Probe>()),
        other => panic!("{other:?}"),
    }
    let _ = runner.join();
    drop(handle);
    assert_eq!(probe.others(), 0);
}

/// A closure that its maker takes back while a waiter may run it is run once or comes back whole.
pub(crate) fn reclaiming_and_running_agree() {
    /// A task, its handle, and how its maker takes it back.
    type Made<F> = (
        task::Task,
        Handle<Probe>,
        fn(task::Task) -> Result<F, task::Task>,
    );
    fn made<F: FnOnce() -> Probe + Send + 'static>(f: F) -> Made<F> {
        let (task, handle) = task::new(f, ());
        (task, handle, |task| task.reclaim(CancelReason::Rejected))
    }
    let probe = Probe::default();
    let (task, handle, reclaim) = made({
        let probe = probe.clone();
        move || probe
    });
    let waiter = spawn(move || {
        let ran = handle
            .run_inline(InlineRunner::OtherThread, || (), |_| ())
            .is_some();
        (handle, ran)
    });
    let back = reclaim(task);
    let (mut handle, ran) = waiter.join().unwrap();
    match (back, ran) {
        (Ok(closure), false) => {
            assert_eq!(handle.state().cancelled(), Some(CancelReason::Rejected));
            assert_eq!(probe.others(), 1, "the closure has it");
            drop(closure);
        }
        (Err(task), true) => {
            drop(task);
            assert!(matches!(handle.take(), Some(Outcome::Completed(_))));
        }
        (back, ran) => panic!("reclaimed: {}, ran: {ran}", back.is_ok()),
    }
    drop(handle);
    assert_eq!(probe.others(), 0);
}

/// A joiner is released when the maker takes the closure back.
pub(crate) fn reclaiming_releases_the_joiner() {
    fn reclaimer<F: FnOnce() -> u8 + Send + 'static>(
        f: F,
    ) -> (Handle<u8>, impl FnOnce() -> F + Send) {
        let (task, handle) = task::new(f, ());
        (handle, move || {
            task.reclaim(CancelReason::Rejected).expect("it is not run")
        })
    }
    let (mut handle, reclaim) = reclaimer(|| 7);
    let joiner = spawn(move || join(&mut handle));
    assert_eq!(reclaim()(), 7);
    assert!(matches!(
        joiner.join().unwrap(),
        Outcome::Cancelled(CancelReason::Rejected)
    ));
}
