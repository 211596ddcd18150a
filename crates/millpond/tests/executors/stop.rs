//! What a stop of an executor is to the bodies that it runs, and to what runs inside and between
//! them.

use crate::executor_kit::{LONG, gate, quiet_panic, signal, start_sleeper};
use millpond::executor::{
    DirectExecutor, ExecutorExt, Lifecycle, RejectReason, SaturationPolicy, SerialExecutor,
    ThreadPerTask,
};
use millpond::interrupt::{self, Interrupted};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::{self, CancelReason, TaskError};
use millpond_raw::park::probe;
use std::sync::{Arc, mpsc};

/// Threads whose names are known to one test only.
fn threads(name: &'static str) -> Arc<ThreadPerTask> {
    Arc::new(ThreadPerTask::builder(name, 1).build().unwrap())
}

/// Waits until the first thread is parked at this site.
#[track_caller]
fn await_parked(name: &str, site: &str) {
    let thread = format!("{name}-1");
    probe::await_wait(LONG, |wait| {
        wait.name.as_ref() == Some(&thread) && wait.site.name() == site
    })
    .expect("it blocks there");
}

/// Runs `body` in an executor that is stopped when the body is parked at `site`.
#[track_caller]
fn stop_at<T: Send + 'static>(
    name: &'static str,
    site: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    let threads = threads(name);
    let mut handle = threads.submit(body).unwrap();
    await_parked(name, site);
    assert!(threads.shutdown_now().is_empty(), "the body has begun");
    let result = handle.join_timeout(LONG).unwrap();
    threads.await_termination().unwrap();
    result
}

#[test]
fn a_body_that_has_reported_the_stop_is_not_interrupted_again() {
    let threads = threads("stop-once");
    let (stopped, stop) = signal();
    let handle = threads
        .submit(move || {
            let first = interrupt::sleep(LONG);
            stop.wait();
            (first, interrupt::is_interrupted(), interrupt::check())
        })
        .unwrap();
    await_parked("stop-once", "interrupt.sleep");
    threads.shutdown_now();
    threads.shutdown_now();
    stopped.send(()).unwrap();
    assert_eq!(handle.join().unwrap(), (Err(Interrupted), false, Ok(())));
}

#[test]
fn an_uninterruptible_section_is_not_stopped_and_notices_afterwards() {
    let (queue, name) = (Arc::new(FifoQueue::bounded(1).unwrap()), "stop-masked");
    let threads = threads(name);
    let handle = threads
        .submit({
            let queue = Arc::clone(&queue);
            move || {
                let took = interrupt::uninterruptible(|| queue.take());
                let looked = [interrupt::is_interrupted(), interrupt::is_interrupted()];
                (took, looked, interrupt::sleep(LONG), interrupt::check())
            }
        })
        .unwrap();
    await_parked(name, "queue.take");
    threads.shutdown_now();
    queue.put(7).unwrap();
    assert_eq!(
        handle.join().unwrap(),
        (Ok(7), [true, true], Err(Interrupted), Ok(()))
    );
}

#[test]
fn an_inlined_task_is_stopped_with_its_thread_and_so_is_the_enclosing_task() {
    let told = stop_at("stop-place", "interrupt.sleep", || {
        let (_queued, inner) = task::new(|| interrupt::sleep(LONG));
        let inside = inner.run_or_join().unwrap();
        (inside, interrupt::check(), interrupt::check())
    });
    assert_eq!(told, (Err(Interrupted), Err(Interrupted), Ok(())));
}

#[test]
fn a_task_that_cleans_up_after_a_stop_may_run_others_inline() {
    let cleaned = stop_at("stop-clean", "interrupt.sleep", || {
        assert_eq!(interrupt::sleep(LONG), Err(Interrupted));
        let direct = DirectExecutor::new();
        let serial = SerialExecutor::new(DirectExecutor::new());
        (
            direct.submit(interrupt::check).unwrap().join().unwrap(),
            serial.key(1).submit(interrupt::check).unwrap().join(),
        )
    });
    assert!(matches!(cleaned, (Ok(()), Ok(Ok(())))), "{cleaned:?}");
}

#[test]
fn a_hook_between_tasks_is_never_interrupted() {
    let (name, (send, receive)) = ("stop-hook", mpsc::channel());
    let threads = ThreadPerTask::builder(name, 1)
        .on_panic(move |_| send.send(interrupt::check()).unwrap())
        .build()
        .unwrap();
    threads
        .execute(|| {
            let _ = interrupt::sleep(LONG);
            quiet_panic("stopped")
        })
        .unwrap();
    await_parked(name, "interrupt.sleep");
    threads.shutdown_now();
    assert_eq!(receive.recv_timeout(LONG).unwrap(), Ok(()));
}

#[test]
fn a_hook_between_the_tasks_of_a_key_is_never_interrupted_and_saves_none() {
    let (name, (send, receive)) = ("stop-lane", mpsc::channel());
    let threads = threads(name);
    let serial = SerialExecutor::builder(Arc::clone(&threads))
        .on_panic(move |_| send.send(interrupt::check()).unwrap())
        .build()
        .unwrap();
    serial
        .key("a")
        .execute(|| {
            let _ = interrupt::sleep(LONG);
            quiet_panic("stopped")
        })
        .unwrap();
    let behind = serial.key("a").submit(|| 2).unwrap();
    await_parked(name, "interrupt.sleep");
    threads.shutdown_now();
    assert_eq!(receive.recv_timeout(LONG).unwrap(), Ok(()));
    assert!(matches!(
        behind.join(),
        Err(TaskError::Cancelled(CancelReason::ShutDown))
    ));
}

#[test]
fn a_stop_reaches_through_keys_on_keys_and_cancels_what_waits_in_both() {
    let name = "stop-keys";
    let threads = threads(name);
    let below = SerialExecutor::new(Arc::clone(&threads));
    let above = SerialExecutor::new(below.key("below"));
    let running = above.key("a").submit(|| interrupt::sleep(LONG)).unwrap();
    let behind = [
        above.key("a").submit(|| 2).unwrap(),
        below.key("below").submit(|| 3).unwrap(),
    ];
    await_parked(name, "interrupt.sleep");
    threads.shutdown_now();
    assert_eq!(running.join().unwrap(), Err(Interrupted));
    for handle in behind {
        assert!(matches!(
            handle.join(),
            Err(TaskError::Cancelled(CancelReason::ShutDown))
        ));
    }
    threads.await_termination().unwrap();
    assert_eq!((above.busy_keys(), below.busy_keys()), (0, 0));
}

#[test]
fn a_body_that_closes_another_executor_when_it_is_stopped_stops_that_one_and_stays_interrupted() {
    let inner = threads("stop-inner");
    let blocked = start_sleeper(&inner);
    let site = "thread_per_task.await_termination";
    let closed = stop_at("stop-closer", site, move || {
        inner.close().unwrap();
        (inner.is_terminated(), interrupt::check())
    });
    assert_eq!(closed, (true, Err(Interrupted)));
    assert_eq!(blocked.join().unwrap(), Err(Interrupted));
}

#[test]
fn a_submitter_whose_own_executor_is_stopped_gives_up() {
    let full = ThreadPerTask::builder("stop-full", 1)
        .at_bound(SaturationPolicy::Block)
        .build()
        .unwrap();
    let (open, wait) = gate();
    full.execute(wait).unwrap();
    let rejected = stop_at("stop-submitter", "thread_per_task.execute", move || {
        let rejected = full.submit(|| 7).unwrap_err();
        (full, (rejected.task)(), rejected.reason)
    });
    assert!(matches!(rejected, (_, 7, RejectReason::Interrupted)));
    open.send(()).unwrap();
    rejected.0.close().unwrap();
}
