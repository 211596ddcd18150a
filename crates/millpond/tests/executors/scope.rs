//! Tasks that borrow: what a scope does on the executors of the house.

use crate::executor_kit::{LONG, PerTask, Rejecting, Shelf, gate, signal};
use millpond::executor::{
    DirectExecutor, Executor, ExecutorExt, Rejected, SaturationPolicy, ScopeError, SerialExecutor,
    ThreadPerTask,
};
use millpond::task::{CancelReason, Task, TaskError, TaskSpec};
use millpond::time::{Deadline, ManualClock};
use millpond_testkit::DropCount;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Every public kind of executor, and a shelf that runs nothing itself.
fn executors() -> Vec<(&'static str, Arc<dyn Executor>)> {
    let threads = |bound| {
        let builder = ThreadPerTask::builder("scope", bound);
        builder.at_bound(SaturationPolicy::Block).build().unwrap()
    };
    vec![
        ("direct", Arc::new(DirectExecutor::new())),
        ("four threads", Arc::new(threads(4))),
        ("one thread", Arc::new(threads(1))),
        (
            "one key",
            Arc::new(SerialExecutor::new(threads(2)).key("key")),
        ),
        ("shelf", Shelf::with_room(usize::MAX)),
    ]
}

/// A queue and the one thread that takes from it.
#[derive(Debug)]
struct OneWorker(mpsc::Sender<Task>);

impl OneWorker {
    fn start() -> Arc<Self> {
        let (send, receive) = mpsc::channel::<Task>();
        thread::spawn(move || receive.into_iter().for_each(|task| drop(task.run())));
        Arc::new(OneWorker(send))
    }
}

impl Executor for OneWorker {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.0.send(task).expect("the worker lives");
        Ok(())
    }
}

#[test]
fn values_of_borrowed_things_come_back_from_every_executor() {
    for (name, executor) in executors() {
        let numbers: Vec<u64> = (1..=100).collect();
        let sum = executor.scope(|s| {
            let parts = numbers
                .chunks(30)
                .map(|part| s.submit(|| part.iter().sum::<u64>()));
            let parts: Vec<_> = parts.map(Result::unwrap).collect();
            parts
                .into_iter()
                .map(|part| part.join().unwrap())
                .sum::<u64>()
        });
        assert_eq!(sum, 5050, "{name}");
    }
}

#[test]
fn everything_has_ended_when_the_scope_returns() {
    for (name, executor) in executors() {
        let drops = DropCount::new();
        let mut cells = [0; 20];
        executor.scope(|s| {
            for (n, cell) in cells.iter_mut().enumerate() {
                let token = drops.token();
                s.execute(move || {
                    *cell = n;
                    token
                })
                .unwrap();
            }
        });
        assert!(
            cells.iter().enumerate().all(|(n, cell)| n == *cell),
            "{name}"
        );
        assert_eq!(drops.dropped(), 20, "{name}");
    }
}

#[test]
fn a_value_may_borrow_what_the_scope_may() {
    let text = String::from("rye oats barley");
    let words = DirectExecutor::new().scope(|s| {
        let words = s.submit(|| text.split(' ').collect::<Vec<_>>()).unwrap();
        words.join().unwrap()
    });
    assert_eq!(words, ["rye", "oats", "barley"]);
}

#[test]
fn a_task_spawns_further_tasks_and_the_scope_waits_for_them() {
    // One thread at its bound would let a task wait for the place that it has itself.
    for (name, executor) in executors()
        .into_iter()
        .filter(|(name, _)| *name != "one thread")
    {
        let count = AtomicUsize::new(0);
        executor.scope(|s| {
            for _ in 0..3 {
                s.execute(|| {
                    count.fetch_add(1, SeqCst);
                    for _ in 0..3 {
                        s.execute(|| count.fetch_add(10, SeqCst)).unwrap();
                    }
                })
                .unwrap();
            }
        });
        assert_eq!(count.load(SeqCst), 93, "{name}");
    }
}

#[test]
fn tasks_that_no_worker_has_started_run_in_the_owner_in_order() {
    let shelf = Shelf::with_room(usize::MAX);
    let order = Mutex::new(Vec::new());
    shelf.scope(|s| {
        for n in 0..5 {
            let order = &order;
            s.execute(move || order.lock().unwrap().push((n, thread::current().id())))
                .unwrap();
        }
        assert!(order.lock().unwrap().is_empty());
    });
    let here = thread::current().id();
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4].map(|n| (n, here)));
    assert!(
        shelf.take().iter().all(Task::is_gone),
        "its tasks give their places back"
    );
}

#[test]
fn a_scope_in_a_worker_of_its_own_executor_does_not_wait_for_a_worker() {
    let worker = OneWorker::start();
    let inner = Arc::clone(&worker);
    let (send, receive) = mpsc::channel();
    worker
        .execute(move || {
            let cells = [1, 2, 3].map(AtomicUsize::new);
            let joined = inner.scope(|s| {
                for cell in &cells {
                    s.execute(|| cell.fetch_add(10, SeqCst)).unwrap();
                }
                s.submit(|| cells.len()).unwrap().join().unwrap()
            });
            send.send((cells.map(AtomicUsize::into_inner), joined))
                .unwrap();
        })
        .unwrap();
    assert_eq!(receive.recv_timeout(LONG).unwrap(), ([11, 12, 13], 3));
}

#[test]
fn an_owner_that_joins_a_task_runs_what_that_task_spawns() {
    let worker = OneWorker::start();
    let (submitted, expect) = signal();
    let ran_in = Mutex::new(None);
    worker.scope(|s| {
        let outer = s.execute(|| {
            // The only worker is here, and waits in a way that does not run it.
            let mut inner = s.submit(|| thread::current().id()).unwrap();
            submitted.send(()).unwrap();
            *ran_in.lock().unwrap() = inner.join_timeout(LONG).ok();
        });
        outer.unwrap();
        expect.wait();
    });
    assert_eq!(ran_in.into_inner().unwrap(), Some(thread::current().id()));
}

#[test]
fn tasks_of_a_key_keep_their_order_and_run_one_at_a_time() {
    let below = Arc::new(
        ThreadPerTask::builder("lane", 4)
            .at_bound(SaturationPolicy::Block)
            .build()
            .unwrap(),
    );
    let serial = SerialExecutor::new(below);
    let (busy, order) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    serial.key("key").scope(|s| {
        for n in 0..50 {
            let (busy, order) = (&busy, &order);
            let handle = s
                .submit(move || {
                    assert!(!busy.swap(true, SeqCst), "one at a time");
                    order.lock().unwrap().push(n);
                    busy.store(false, SeqCst);
                })
                .unwrap();
            // Neither a join nor the end of the scope jumps the queue.
            if n % 10 == 0 {
                handle.join().unwrap();
            }
        }
    });
    assert!(order.lock().unwrap().iter().copied().eq(0..50));
}

#[test]
fn a_scope_in_a_task_of_its_own_key_does_not_wait_for_itself() {
    let serial = SerialExecutor::new(ThreadPerTask::builder("lane", 2).build().unwrap());
    let key = serial.key("key");
    let inner = key.clone();
    let mut handle = key
        .submit(move || {
            let cells = [1, 2].map(AtomicUsize::new);
            inner.scope(|s| {
                s.execute(|| cells[0].fetch_add(10, SeqCst)).unwrap();
                s.submit(|| cells[1].fetch_add(10, SeqCst))
                    .unwrap()
                    .join()
                    .unwrap();
            });
            cells.map(AtomicUsize::into_inner)
        })
        .unwrap();
    assert_eq!(handle.join_timeout(LONG).unwrap(), [11, 12]);
}

#[test]
fn a_rejection_returns_the_closure_with_what_it_borrows() {
    let text = String::from("rye");
    let length = Rejecting.scope(|s| {
        let rejected = s.submit(|| text.len()).unwrap_err();
        assert!(rejected.reason.is_saturated());
        (rejected.task)()
    });
    assert_eq!(length, 3);
    let error = Rejecting.scope(|s| Ok::<_, ScopeError>(s.submit(|| text.len())?.join()?));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("a task of the scope was rejected: ")
    );
}

#[test]
fn a_join_runs_a_task_that_no_worker_has_started() {
    let shelf = Shelf::with_room(1);
    let here = thread::current().id();
    shelf.scope(|s| {
        let handle = s.submit(|| thread::current().id()).unwrap();
        assert!(!handle.is_started() && !handle.is_finished());
        assert_eq!(handle.join().unwrap(), here);
    });
}

#[test]
fn a_join_waits_for_a_task_that_runs_elsewhere() {
    let per_task = PerTask::of(1);
    let (started, start) = signal();
    let (open, opened) = gate();
    let opened = Mutex::new(Some(opened));
    per_task.0.scope(|s| {
        let handle = s
            .submit(|| {
                started.send(()).unwrap();
                opened.lock().unwrap().take().unwrap()();
                thread::current().id()
            })
            .unwrap();
        start.wait();
        assert!(handle.is_started() && !handle.is_finished());
        open.send(()).unwrap();
        assert_ne!(handle.join().unwrap(), thread::current().id());
    });
}

#[test]
fn a_join_with_a_timeout_does_not_run_the_task_and_can_be_repeated() {
    let (shelf, manual) = (Shelf::with_room(1), ManualClock::new());
    shelf.scope(|s| {
        let spec = TaskSpec::new().clock(manual.clock());
        let mut handle = s.submit_with(spec, || 7).unwrap();
        let waited = handle.join_timeout(Duration::ZERO);
        assert!(matches!(waited, Err(TaskError::TimedOut)));
        assert!(!handle.is_started());
        shelf.run_all();
        assert_eq!(handle.join_timeout(Duration::ZERO).unwrap(), 7);
    });
}

#[test]
fn a_name_and_a_deadline_are_passed_on_wherever_the_task_runs() {
    let manual = ManualClock::new();
    let deadline = manual.clock().deadline(Duration::from_secs(60));
    for (name, executor) in executors() {
        let outer = TaskSpec::new()
            .name("order")
            .deadline(deadline)
            .clock(manual.clock());
        let (task, handle) = outer.build(move || {
            executor.scope(|s| {
                let seen = || {
                    let inner = DirectExecutor::new().submit(|| ()).unwrap();
                    (inner.name().map(str::to_owned), inner.deadline())
                };
                let plain = s.submit(seen).unwrap();
                let own = TaskSpec::new().name("bill").deadline(Deadline::NEVER);
                let own = s.submit_with(own, seen).unwrap();
                (plain.join().unwrap(), own.join().unwrap())
            })
        });
        drop(task.run());
        let (inherited, given) = handle.join().unwrap();
        assert_eq!(inherited, (Some("order".into()), deadline), "{name}");
        assert_eq!(given, (Some("bill".into()), Deadline::NEVER), "{name}");
    }
}

#[test]
fn a_task_whose_deadline_has_passed_is_cancelled_by_the_thread_that_finds_it() {
    let manual = ManualClock::new();
    let spec = || {
        let deadline = Deadline::at(manual.clock().now());
        TaskSpec::new().clock(manual.clock()).deadline(deadline)
    };
    let expired = |error| matches!(error, Err(TaskError::Cancelled(CancelReason::Expired)));
    // By the executor.
    let ran = AtomicBool::new(false);
    DirectExecutor::new().scope(|s| {
        let handle = s.submit_with(spec(), || ran.store(true, SeqCst)).unwrap();
        assert!(handle.is_finished() && handle.is_cancelled());
        assert!(expired(handle.join()));
    });
    // By the thread that joins it, and by the end of the scope.
    Shelf::with_room(2).scope(|s| {
        let _left = s.submit_with(spec(), || ran.store(true, SeqCst)).unwrap();
        let joined = s.submit_with(spec(), || ran.store(true, SeqCst)).unwrap();
        assert!(expired(joined.join()));
    });
    assert!(!ran.load(SeqCst));
}

#[test]
fn scopes_in_scopes_borrow_from_both() {
    let per_task = PerTask::of(4);
    let outer = [1, 2];
    let total = AtomicUsize::new(0);
    per_task.0.scope(|s| {
        for n in &outer {
            let submit = s.execute(|| {
                let inner = [10, 20];
                DirectExecutor::new().scope(|t| {
                    for m in &inner {
                        t.execute(|| total.fetch_add(*n * *m, SeqCst)).unwrap();
                    }
                });
            });
            submit.unwrap();
        }
    });
    assert_eq!(total.into_inner(), 90);
}

#[test]
fn an_empty_scope_returns_what_its_closure_does() {
    assert_eq!(Rejecting.scope(|_| 7), 7);
    assert_eq!(Rejecting.try_scope(|_| Err::<(), _>("no")), Err("no"));
}
