//! Values that travel with tasks: everything that a task submits inherits them, and nothing else does.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

mod executor_kit;
use executor_kit::{LONG, PerTask, Shelf, gate, quiet_panic, signal};
use millpond::executor::{
    CompletionService, DirectExecutor, Executor, ExecutorExt, Lifecycle, SerialExecutor,
    SpawnFuture,
};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::preset;
use millpond::task::{self, TaskHandle, TaskLocal, TaskSpec};
use millpond::time::{Clock, Deadline};
use millpond_testkit::{DropCount, until, watch};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;

static REQUEST: TaskLocal<u64> = TaskLocal::new();
static LANGUAGE: TaskLocal<String> = TaskLocal::new();

fn request() -> Option<u64> {
    REQUEST.get().map(|request| *request)
}

fn language() -> Option<String> {
    LANGUAGE.get().map(|language| String::clone(&language))
}

fn pool() -> ThreadPool {
    preset::fixed("carried", 1).build().unwrap()
}

/// The value seen by a task that is submitted inside a task that is submitted in a scope; and by the next
/// one, which is submitted outside.
fn sees<E: Executor + Clone + 'static>(executor: &E) -> (Option<u64>, Option<u64>) {
    let below = executor.clone();
    let handle: TaskHandle<TaskHandle<Option<u64>>> = REQUEST
        .scope(7, || {
            executor.submit(move || below.submit(request).unwrap())
        })
        .unwrap();
    let inside = handle.join().unwrap().join().unwrap();
    (inside, executor.submit(request).unwrap().join().unwrap())
}

#[test]
fn a_child_task_inherits_the_value_through_every_executor_and_the_next_task_does_not() {
    let _watch = watch();
    let (pool, per_task) = (pool(), PerTask::of(8));
    let expected = (Some(7), None);
    assert_eq!(sees(&DirectExecutor::new()), expected, "direct");
    assert_eq!(sees(&pool), expected, "pool");
    assert_eq!(sees(&per_task.0), expected, "thread per task");
    let serial = SerialExecutor::new(pool.clone());
    assert_eq!(sees(&serial.key("orders")), expected, "serial");
    let below: Arc<dyn Executor> = Arc::new(pool.clone());
    assert_eq!(sees(&below), expected, "behind a trait");
    assert_eq!(request(), None);
    pool.close().unwrap();
}

#[test]
fn tasks_submitted_in_other_ways_inherit_the_value_too() {
    let _watch = watch();
    let pool = pool();
    let service = CompletionService::new(pool.clone());
    REQUEST.scope(1, || service.submit(request)).unwrap();
    assert_eq!(service.take().unwrap().result.unwrap(), Some(1));

    let all = REQUEST.scope(2, || pool.invoke_all([request, request]));
    for seen in all.unwrap() {
        assert_eq!(seen.unwrap(), Some(2));
    }
    assert_eq!(
        REQUEST
            .scope(3, || pool.invoke_any([|| request().ok_or("nothing")]))
            .unwrap(),
        3
    );

    let (say, hear) = mpsc::channel();
    REQUEST
        .scope(4, || pool.execute(move || say.send(request()).unwrap()))
        .unwrap();
    assert_eq!(hear.recv_timeout(LONG), Ok(Some(4)));

    let borrowed = Mutex::new(Vec::new());
    REQUEST.scope(5, || {
        pool.scope(|s| {
            for _ in 0..3 {
                s.execute(|| borrowed.lock().unwrap().push(request()))
                    .unwrap();
            }
        });
        DirectExecutor::new().scope(|s| {
            s.execute(|| borrowed.lock().unwrap().push(request()))
                .unwrap();
        });
    });
    assert_eq!(borrowed.into_inner().unwrap(), [Some(5); 4]);
    pool.close().unwrap();
}

#[test]
fn a_future_has_it_in_all_of_its_polls() {
    let _watch = watch();
    let pool = pool();
    let (seen, mut polls) = (Arc::new(Mutex::new(Vec::new())), 0);
    let inside = Arc::clone(&seen);
    let future = std::future::poll_fn(move |context| {
        inside.lock().unwrap().push(request());
        polls += 1;
        if polls == 3 {
            return Poll::Ready(request());
        }
        // Woken from where something else is carried.
        let waker = context.waker().clone();
        std::thread::spawn(move || REQUEST.scope(1000, || waker.wake()));
        Poll::Pending
    });
    let handle = REQUEST.scope(6, || pool.spawn_future(future)).unwrap();
    assert_eq!(handle.join().unwrap(), Some(6));
    assert_eq!(*seen.lock().unwrap(), [Some(6); 3]);
    pool.close().unwrap();
}

#[test]
fn an_inlined_task_has_its_own_value_and_leaves_that_of_its_joiner_alone() {
    let _watch = watch();
    let pool = pool();
    // In a worker that joins a task of its own pool.
    let below = pool.clone();
    let outer = REQUEST.scope(1, || {
        pool.submit(move || {
            let other = REQUEST.scope(2, || below.submit(request)).unwrap();
            (other.join().unwrap(), request())
        })
    });
    assert_eq!(outer.unwrap().join().unwrap(), (Some(2), Some(1)));
    // On the thread that polls it, with no value inside and some value around it.
    let shelf = Shelf::with_room(1);
    let plain = shelf.submit(request).unwrap();
    let seen = REQUEST.scope(3, || (plain.run_or_join().unwrap(), request()));
    assert_eq!(seen, (None, Some(3)));
    // In its caller, by the rejection policy.
    let full = preset::fixed("full", 1)
        .queue(Queue::hand_off())
        .rejection(RejectionPolicy::CallerRuns)
        .build()
        .unwrap();
    let ((open, held), (say, hear)) = (gate(), signal());
    let busy = full.submit(move || {
        say.send(()).unwrap();
        held();
    });
    hear.wait();
    let (task, handle) =
        REQUEST.scope(4, || task::new(|| (request(), std::thread::current().id())));
    REQUEST.scope(5, || {
        full.execute_task(task).unwrap();
        assert_eq!(request(), Some(5));
    });
    let here = std::thread::current().id();
    assert_eq!(handle.join().unwrap(), (Some(4), here));
    open.send(()).unwrap();
    busy.unwrap().join().unwrap();
    full.close().unwrap();
    pool.close().unwrap();
}

#[test]
fn a_panic_puts_back_what_was_there() {
    let _watch = watch();
    let caught = REQUEST.scope(1, || {
        let caught = std::panic::catch_unwind(|| REQUEST.scope(2, || quiet_panic("over")));
        assert_eq!(request(), Some(1));
        caught
    });
    assert!(caught.is_err());
    assert_eq!(request(), None);
    let pool = pool();
    for executor in [
        Arc::new(DirectExecutor::new()) as Arc<dyn Executor>,
        Arc::new(pool.clone()),
    ] {
        let panics = || REQUEST.scope(3, || quiet_panic("over"));
        assert!(executor.submit(panics).unwrap().join().is_err());
        let panics = REQUEST.scope(4, || executor.submit(|| quiet_panic("over")));
        assert!(panics.unwrap().join().is_err());
        assert_eq!(executor.submit(request).unwrap().join().unwrap(), None);
    }
    assert_eq!(request(), None);
    pool.close().unwrap();
}

#[test]
fn scopes_are_nested_and_each_value_is_for_itself() {
    let here = || (request(), language());
    let german = || Some("de".to_owned());
    REQUEST.scope(1, || {
        LANGUAGE.scope("de".to_owned(), || {
            assert_eq!(here(), (Some(1), german()));
            REQUEST.scope(2, || {
                assert_eq!(here(), (Some(2), german()));
                let seen = DirectExecutor::new().submit(here).unwrap().join();
                assert_eq!(seen.unwrap(), (Some(2), german()));
            });
            assert_eq!(here(), (Some(1), german()));
        });
        assert_eq!(here(), (Some(1), None));
    });
    assert_eq!(here(), (None, None));
}

#[test]
fn shared_values_are_inherited_by_reference() {
    let shared = Arc::new("shared".to_owned());
    let got = LANGUAGE.scope(Arc::clone(&shared), || LANGUAGE.get().unwrap());
    assert!(Arc::ptr_eq(&shared, &got));
}

#[test]
fn names_deadlines_and_values_go_together() {
    let deadline = Deadline::at(Clock::system().now() + LONG);
    let direct = DirectExecutor::new();
    let spec = TaskSpec::new().name("order").deadline(deadline);
    let handle = direct.submit_with(spec, || {
        REQUEST.scope(1, || DirectExecutor::new().submit(request).unwrap())
    });
    let inner = handle.unwrap().join().unwrap();
    assert_eq!((inner.name(), inner.deadline()), (Some("order"), deadline));
    assert_eq!(inner.join().unwrap(), Some(1));
    assert_eq!(direct.submit(|| ()).unwrap().name(), None);
}

#[test]
fn the_value_can_be_read_from_a_task() {
    let (task, _handle) = REQUEST.scope(8, || task::new(|| ()));
    assert_eq!(REQUEST.of(&task).as_deref(), Some(&8));
    assert_eq!(LANGUAGE.of(&task), None);
    assert_eq!(request(), None);
    let (plain, _handle) = task::new(|| ());
    assert_eq!(REQUEST.scope(9, || REQUEST.of(&plain)), None);
}

#[test]
fn a_drain_of_a_lane_keeps_no_value_of_its_submitter() {
    let _watch = watch();
    static LOAD: TaskLocal<millpond_testkit::DropToken> = TaskLocal::new();
    let (drops, shelf) = (Arc::new(DropCount::new()), Shelf::with_room(9));
    let serial = SerialExecutor::new(Arc::clone(&shelf));
    let key = serial.key("orders");
    let first = LOAD.scope(drops.token(), || key.execute(|| ()));
    first.unwrap();
    let seen = Arc::clone(&shelf);
    let dropped = Arc::clone(&drops);
    // In the same drain, after the first has ended.
    let second = key.submit(move || (dropped.dropped(), LOAD.get().is_none(), seen.take().len()));
    shelf.run_all();
    assert_eq!(second.unwrap().join().unwrap(), (1, true, 0));
}

struct OnDrop<F: Fn()>(
    F,
    #[allow(dead_code, reason = "it is dropped")] millpond_testkit::DropToken,
);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Loses tasks of a pool that carry something, in many ways. Returns how many did.
fn lose(submit: &dyn Fn(&ThreadPool, Deadline) -> TaskHandle<()>) -> usize {
    let one = |rejection| {
        let pool = preset::fixed("lose", 1).queue(Queue::bounded(2));
        pool.rejection(rejection).build().unwrap()
    };
    let hold = |pool: &ThreadPool| {
        let ((open, held), (say, hear)) = (gate(), signal());
        let body = move || {
            say.send(()).unwrap();
            held();
        };
        pool.execute(body).unwrap();
        hear.wait();
        open
    };
    let bring_any = |pool: &ThreadPool| submit(pool, Deadline::NEVER);
    // Run; cancelled while it waits; too late.
    let pool = one(RejectionPolicy::Abort);
    bring_any(&pool).join().unwrap();
    let open = hold(&pool);
    assert!(bring_any(&pool).cancel());
    pool.purge();
    let late = submit(&pool, Deadline::at(Clock::system().now()));
    open.send(()).unwrap();
    assert!(late.join().unwrap_err().is_cancelled());
    pool.close().unwrap();
    // Thrown away: the new one and the old one.
    let pool = one(RejectionPolicy::Discard);
    let open = hold(&pool);
    (0..3).for_each(|_| drop(bring_any(&pool)));
    pool.set_rejection(RejectionPolicy::DiscardOldest);
    drop(bring_any(&pool));
    // Returned by `shutdown_now`.
    let back = pool.shutdown_now();
    drop(open);
    assert_eq!(back.len(), 2);
    drop(back);
    assert_eq!(pool.await_termination_timeout(LONG), Ok(true));
    7
}

#[test]
fn destructors_of_values_may_panic_and_may_use_the_pool() {
    let _watch = watch();
    type Load = OnDrop<Box<dyn Fn() + Send + Sync>>;
    static LOAD: TaskLocal<Load> = TaskLocal::new();
    let (drops, uses) = (DropCount::new(), Arc::new(AtomicUsize::new(0)));
    let submitted = lose(&|pool, deadline| {
        let (inside, uses) = (pool.clone(), Arc::clone(&uses));
        let drop_it: Box<dyn Fn() + Send + Sync> = Box::new(move || {
            let _ = (inside.snapshot(), inside.queued_tasks(), inside.purge());
            inside.set_max(inside.max()).unwrap();
            inside.set_rejection(inside.rejection());
            uses.fetch_add(1, Ordering::SeqCst);
            quiet_panic("do not drop me");
        });
        let load = OnDrop(drop_it, drops.token());
        LOAD.scope(load, || {
            let spec = TaskSpec::new().deadline(deadline);
            pool.submit_with(spec, || ()).unwrap()
        })
    });
    until("it comes to that", || drops.dropped() == submitted);
    assert_eq!(uses.load(Ordering::SeqCst), submitted);
    // A value by itself, and one beside it that does not panic.
    let drop_it: Box<dyn Fn() + Send + Sync> = Box::new(|| {
        quiet_panic("do not drop me");
    });
    let load = OnDrop(drop_it, drops.token());
    LOAD.scope(load, || LANGUAGE.scope("de".to_owned(), || ()));
    assert_eq!(drops.dropped(), submitted + 1);
}
