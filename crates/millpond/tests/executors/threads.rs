//! A thread per task: the bound, the factory that fails, and the end.

use crate::executor_kit::{LONG, PerTask, gate, quiet_panic, signal, start_on, start_sleeper};
use millpond::executor::{
    ExecutorExt, Lifecycle, RejectReason, SaturationPolicy, TerminationError, ThreadPerTask,
};
use millpond::interrupt;
use millpond::task::{CancelReason, TaskError};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::ManualClock;
use millpond_raw::park::probe;
use millpond_testkit::{DropCount, interrupt_at, watch};
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Refuses every second thread, in the chosen way.
#[derive(Debug)]
struct Faulty {
    asked: AtomicUsize,
    how: How,
    good: Threads,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Errs,
    Panics,
    LosesTheBody,
}

impl Faulty {
    fn new(how: How) -> Self {
        Faulty {
            asked: AtomicUsize::new(0),
            how,
            good: Threads::named("faulty"),
        }
    }
}

impl ThreadFactory for Faulty {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        if self.asked.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
            return self.good.start(body);
        }
        match self.how {
            How::Errs => Err(io::ErrorKind::WouldBlock.into()),
            How::Panics => quiet_panic("no thread for you"),
            How::LosesTheBody => self.good.start(Box::new(move || drop(body))),
        }
    }
}

#[test]
fn no_threads_at_all_cannot_be_asked_for() {
    let _watch = watch();
    let error = ThreadPerTask::builder("none", 0).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "max_threads is 0, so no task could ever run: allow at least one"
    );
}

#[test]
fn each_task_has_a_thread_of_its_own() {
    let _watch = watch();
    let per_task = PerTask::of(3);
    let (open, opened) = mpsc::channel::<()>();
    let opened = Arc::new(std::sync::Mutex::new(opened));
    let handles: Vec<_> = (0..3)
        .map(|_| {
            let opened = Arc::clone(&opened);
            per_task
                .0
                .submit(move || {
                    let _ = opened.lock().unwrap().recv_timeout(LONG);
                    std::thread::current().id()
                })
                .unwrap()
        })
        .collect();
    assert_eq!(per_task.0.threads(), 3);
    drop(open);
    let threads: HashSet<_> = handles.into_iter().map(|h| h.join().unwrap()).collect();
    assert_eq!(threads.len(), 3);
}

#[test]
fn at_the_bound_a_task_is_rejected() {
    let _watch = watch();
    let per_task = PerTask::of(1);
    let (open, wait) = gate();
    let first = per_task.0.submit(wait).unwrap();
    let rejected = per_task.0.submit(|| 7).unwrap_err();
    assert!(matches!(
        rejected.reason,
        RejectReason::Saturated {
            queued: 0,
            capacity: 0,
            workers: 1,
            ..
        }
    ));
    assert_eq!((rejected.task)(), 7);
    open.send(()).unwrap();
    first.join().unwrap();
}

#[test]
fn at_the_bound_a_submitter_may_wait_for_a_thread_to_end() {
    let _watch = watch();
    let threads = ThreadPerTask::builder("blocking", 1)
        .at_bound(SaturationPolicy::Block)
        .build()
        .unwrap();
    let threads = Arc::new(threads);
    let (open, wait) = gate();
    let first = threads.submit(wait).unwrap();
    let submitter = std::thread::Builder::new().name("tpt-submitter".into());
    let submitter = submitter
        .spawn({
            let threads = Arc::clone(&threads);
            move || threads.submit(|| 7).unwrap().join().unwrap()
        })
        .unwrap();
    probe::await_wait(LONG, |wait| {
        wait.name.as_deref() == Some("tpt-submitter")
            && wait.site.name() == "thread_per_task.execute"
    })
    .unwrap();
    open.send(()).unwrap();
    assert_eq!(submitter.join().unwrap(), 7);
    first.join().unwrap();
    threads.close().unwrap();
}

#[test]
fn a_waiting_submitter_is_released_by_a_timeout_a_shutdown_or_an_interrupt() {
    let _watch = watch();
    let hand = ManualClock::new();
    let threads = ThreadPerTask::builder("timed", 1)
        .at_bound(SaturationPolicy::BlockFor(Duration::from_secs(3600)))
        .clock(hand.clock())
        .build()
        .unwrap();
    let threads = Arc::new(threads);
    let (open, wait) = gate();
    let first = threads.submit(wait).unwrap();

    let submit = |threads: &Arc<ThreadPerTask>| {
        let threads = Arc::clone(threads);
        move || threads.submit(|| ()).map(drop).unwrap_err().reason
    };
    let patient = std::thread::spawn(submit(&threads));
    while hand.sleepers() == 0 {
        std::thread::yield_now();
    }
    hand.advance(Duration::from_secs(3600));
    assert!(patient.join().unwrap().is_saturated());

    let reason = interrupt_at("tpt-int", "thread_per_task.execute", submit(&threads));
    assert!(matches!(reason, RejectReason::Interrupted));

    let patient = std::thread::spawn(submit(&threads));
    while hand.sleepers() == 0 {
        std::thread::yield_now();
    }
    threads.shutdown();
    assert!(patient.join().unwrap().is_shut_down());
    open.send(()).unwrap();
    first.join().unwrap();
    threads.close().unwrap();
}

#[test]
fn a_thread_that_cannot_be_started_returns_the_closure_and_frees_its_slot() {
    let _watch = watch();
    for how in [How::Errs, How::Panics] {
        let threads = ThreadPerTask::builder("faulty", 1)
            .threads(Faulty::new(how))
            .build()
            .unwrap();
        for round in 0..10 {
            let drops = DropCount::new();
            let token = drops.token();
            let rejected = threads
                .submit(move || {
                    drop(token);
                    round
                })
                .unwrap_err();
            assert!(matches!(rejected.reason, RejectReason::SpawnFailed(_)));
            assert_eq!((drops.dropped(), threads.threads()), (0, 0));
            let handle = threads.submit(rejected.task).unwrap();
            assert_eq!(handle.join().unwrap(), round);
            assert_eq!(drops.dropped(), 1);
            // The one place is free again only when the thread has left.
            while threads.threads() > 0 {
                std::thread::yield_now();
            }
        }
        threads.close().unwrap();
    }
}

#[test]
fn a_factory_that_loses_the_body_cancels_the_task_and_frees_its_slot() {
    let _watch = watch();
    let threads = ThreadPerTask::builder("faulty", 1)
        .threads(Faulty::new(How::LosesTheBody))
        .build()
        .unwrap();
    let handle = threads.submit(|| ()).unwrap();
    assert!(matches!(
        handle.join(),
        Err(TaskError::Cancelled(CancelReason::Dropped))
    ));
    threads.shutdown();
    assert_eq!(threads.await_termination_timeout(LONG), Ok(true));
}

#[test]
fn panics_leave_no_thread_behind_and_go_to_the_hook() {
    let _watch = watch();
    let (send, receive) = mpsc::channel();
    let threads = ThreadPerTask::builder("panics", 4)
        .at_bound(SaturationPolicy::Block)
        .on_panic(move |uncaught| send.send(uncaught.into_panic()).unwrap())
        .build()
        .unwrap();
    for _ in 0..20 {
        threads.execute(|| quiet_panic("no water")).unwrap();
    }
    threads.close().unwrap();
    assert_eq!(threads.threads(), 0);
    assert_eq!(
        receive.try_iter().count(),
        20,
        "all before it is terminated"
    );
}

#[test]
fn after_a_shutdown_closures_come_back() {
    let _watch = watch();
    let threads = ThreadPerTask::builder("shut", 2).build().unwrap();
    assert!(!threads.is_shutdown());
    threads.shutdown();
    threads.shutdown();
    assert!(threads.is_shutdown() && threads.is_terminated());
    let rejected = threads.submit(|| 7).unwrap_err();
    assert!(rejected.reason.is_shut_down());
    assert_eq!((rejected.task)(), 7);
    assert!(threads.execute(|| ()).unwrap_err().reason.is_shut_down());
}

#[test]
fn an_orderly_shutdown_interrupts_no_body_and_waits_for_all() {
    let _watch = watch();
    let per_task = PerTask::of(2);
    let (open, wait) = gate();
    let handle = start_on(&per_task.0, move || {
        wait();
        interrupt::is_interrupted()
    });
    per_task.0.shutdown();
    assert!(!per_task.0.is_terminated());
    assert_eq!(
        per_task.0.await_termination_timeout(Duration::ZERO),
        Ok(false)
    );
    open.send(()).unwrap();
    assert_eq!(per_task.0.await_termination_timeout(LONG), Ok(true));
    assert!(!handle.join().unwrap());
}

#[test]
fn a_cancelled_body_that_still_runs_keeps_the_executor_alive() {
    let _watch = watch();
    let per_task = PerTask::of(1);
    let (open, wait) = gate();
    let handle = start_on(&per_task.0, wait);
    assert!(handle.cancel());
    assert!(handle.join().unwrap_err().is_cancelled());
    per_task.0.shutdown();
    assert_eq!(per_task.0.threads(), 1);
    assert!(!per_task.0.is_terminated());
    assert!(per_task.0.submit(|| ()).is_err());
    open.send(()).unwrap();
}

#[test]
fn stopping_interrupts_the_bodies_that_block() {
    let _watch = watch();
    let per_task = PerTask::of(2);
    let (started, start) = signal();
    let with_handle = {
        let started = started.clone();
        per_task
            .0
            .submit(move || {
                started.send(()).unwrap();
                interrupt::sleep(LONG)
            })
            .unwrap()
    };
    let (send, receive) = mpsc::channel();
    per_task
        .0
        .execute(move || {
            started.send(()).unwrap();
            send.send(interrupt::sleep(LONG)).unwrap();
        })
        .unwrap();
    start.wait();
    start.wait();
    assert!(per_task.0.shutdown_now().is_empty(), "both have started");
    assert_eq!(with_handle.join().unwrap(), Err(interrupt::Interrupted));
    assert_eq!(
        receive.recv_timeout(LONG).unwrap(),
        Err(interrupt::Interrupted)
    );
}

/// Starts threads only when the test asks for it.
#[derive(Clone, Default)]
struct Late(Arc<std::sync::Mutex<Vec<Body>>>);

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Late")
    }
}

impl ThreadFactory for Late {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        self.0.lock().unwrap().push(body);
        Threads::named("late").start(Box::new(|| ()))
    }
}

#[test]
fn stopping_returns_the_tasks_that_no_thread_has_started() {
    let _watch = watch();
    let late = Late::default();
    let threads = ThreadPerTask::builder("late", 2)
        .threads(late.clone())
        .build()
        .unwrap();
    let first = threads.submit(|| 7).unwrap();
    let second = threads.submit(|| 8).unwrap();
    let mut unstarted = threads.shutdown_now();
    assert_eq!(unstarted.len(), 2);
    assert!(!threads.is_terminated(), "their threads are still to come");
    for body in std::mem::take(&mut *late.0.lock().unwrap()) {
        body();
    }
    assert!(threads.is_terminated());
    // In the order in which they were submitted: run one, drop the other.
    drop(unstarted.remove(0).run());
    drop(unstarted);
    assert_eq!(first.join().unwrap(), 7);
    assert!(matches!(
        second.join(),
        Err(TaskError::Cancelled(CancelReason::Dropped))
    ));
}

#[test]
fn a_stop_that_races_with_submits_leaves_no_join_waiting() {
    let _watch = watch();
    for _ in 0..200 {
        let threads = Arc::new(ThreadPerTask::builder("race", 64).build().unwrap());
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                let threads = Arc::clone(&threads);
                std::thread::spawn(move || {
                    let mut handles = Vec::new();
                    for _ in 0..8 {
                        match threads.submit(|| interrupt::sleep(LONG)) {
                            Ok(handle) => handles.push(handle),
                            Err(rejected) => assert!(rejected.reason.is_shut_down()),
                        }
                    }
                    handles
                })
            })
            .collect();
        drop(threads.shutdown_now());
        for submitter in submitters {
            for mut handle in submitter.join().unwrap() {
                match handle.join_timeout(LONG) {
                    Ok(slept) => assert_eq!(slept, Err(interrupt::Interrupted)),
                    Err(error) => assert!(error.is_cancelled(), "{error}"),
                }
            }
        }
        assert_eq!(threads.await_termination_timeout(LONG), Ok(true));
    }
}

#[test]
fn closing_waits_for_running_tasks() {
    let _watch = watch();
    let threads = ThreadPerTask::builder("close", 2).build().unwrap();
    let (open, wait) = gate();
    let handle = threads.submit(wait).unwrap();
    let opener = std::thread::spawn(move || open.send(()).unwrap());
    threads.close().unwrap();
    assert!(handle.is_finished());
    assert!(threads.is_terminated());
    threads.close().unwrap();
    opener.join().unwrap();
}

#[test]
fn closing_that_is_interrupted_stops_running_tasks_and_stays_interrupted() {
    let _watch = watch();
    let threads = Arc::new(ThreadPerTask::builder("close", 1).build().unwrap());
    let handle = start_sleeper(&threads);
    let site = "thread_per_task.await_termination";
    let still = interrupt_at("tpt-closer", site, move || {
        threads.close().unwrap();
        (threads.is_terminated(), interrupt::is_interrupted())
    });
    assert_eq!(still, (true, true));
    assert_eq!(handle.join().unwrap(), Err(interrupt::Interrupted));
}

#[test]
fn waiting_for_the_end_can_be_interrupted() {
    let _watch = watch();
    let threads = Arc::new(ThreadPerTask::builder("await", 1).build().unwrap());
    let site = "thread_per_task.await_termination";
    let waited = interrupt_at("tpt-awaiter", site, {
        let threads = Arc::clone(&threads);
        move || threads.await_termination()
    });
    assert_eq!(waited, Err(TerminationError::Interrupted));
}

#[test]
fn dropping_the_executor_lets_running_tasks_go_on() {
    let _watch = watch();
    let threads = ThreadPerTask::builder("dropped", 1).build().unwrap();
    let (open, wait) = gate();
    let handle = threads
        .submit(move || {
            wait();
            7
        })
        .unwrap();
    drop(threads);
    open.send(()).unwrap();
    assert_eq!(handle.join().unwrap(), 7);
}

#[test]
fn shutting_an_idle_executor_down_releases_those_that_await_termination() {
    let _watch = watch();
    let threads = Arc::new(ThreadPerTask::builder("idle", 1).build().unwrap());
    let (send, receive) = mpsc::channel();
    let waiter = std::thread::Builder::new().name("tpt-idle-waiter".into());
    waiter
        .spawn({
            let threads = Arc::clone(&threads);
            // Without a deadline, so that nothing but a wake makes it look again.
            move || send.send(threads.await_termination()).unwrap()
        })
        .unwrap();
    probe::await_wait(LONG, |wait| wait.name.as_deref() == Some("tpt-idle-waiter")).unwrap();
    threads.shutdown();
    assert_eq!(receive.recv_timeout(LONG), Ok(Ok(())));
}
