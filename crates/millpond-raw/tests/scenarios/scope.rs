//! Scopes: claiming, cancelling, joining, dropping and late stubs, against the end of the scope.
//!
//! Bodies borrow from the scenario's own stack and write there without ordering: what the owner reads after
//! the scope must be there because the scope ended. Some scenarios free it at once: a later body would be a
//! use after free, which an address sanitizer sees.

use super::{Probe, few_or_many, forget, join_all, spawn_all};
use millpond_raw::park::{self, Site};
use millpond_raw::scope::{CancelResult, JobRef, JobState, Scope, Stub};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use millpond_raw::sync::thread::{JoinHandle, spawn};
use millpond_raw::task::{CancelReason, Outcome};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const JOIN: Site = Site::new("scenario.join");

/// Runs the job of a stub; returns whether its closure was there.
fn run(stub: Stub<()>) -> bool {
    let claimed = stub.claim();
    let found = claimed.is_some();
    if let Some(claimed) = claimed {
        claimed.run(&|| ());
    }
    found
}

fn elsewhere(stub: Stub<()>) -> JoinHandle<bool> {
    spawn(move || run(stub))
}

/// Waits as a joiner does: register, check, park.
fn wait(job: &JobRef<()>, over: fn(JobState) -> bool) {
    let here = park::current();
    while let Some(ticket) = job.register(&here.waker(), over) {
        here.park(JOIN);
        job.unregister(ticket);
    }
}

/// Of two threads that want to run a job one does, and the owner sees what it wrote.
pub(crate) fn two_claimers_run_a_job_once() {
    let (runs, probe) = (AtomicUsize::new(0), Probe::default());
    let scope = Scope::new();
    let (here, runner) = scope.enter(|| {
        let kept = probe.clone();
        let job = scope
            .job(|| {
                drop(kept);
                runs.store(runs.load(Relaxed) + 1, Relaxed);
            })
            .unwrap();
        let runner = elsewhere(job.stub());
        let here = run(job.stub());
        job.detach();
        (here, runner)
    });
    assert_eq!((runs.load(Relaxed), probe.others()), (1, 0));
    assert!(here != runner.join().unwrap(), "exactly one has run it");
}

/// The owner sees all that was written by bodies that have started, however late they end. Those that have
/// not started never do.
pub(crate) fn the_owner_waits_for_every_body() {
    let count = few_or_many(2, 4);
    let notes: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
    let probe = Probe::default();
    let scope = Scope::new();
    let runners = scope.enter(|| {
        notes
            .iter()
            .map(|note| {
                let kept = probe.clone();
                let job = scope.job(move || {
                    note.store(1, Relaxed);
                    drop(kept);
                });
                let job = job.unwrap();
                let runner = elsewhere(job.stub());
                job.detach();
                runner
            })
            .collect()
    });
    let written: Vec<_> = notes.iter().map(|note| note.load(Relaxed) == 1).collect();
    assert_eq!(probe.others(), 0, "no closure is left");
    drop(notes);
    assert_eq!(join_all(runners), written);
}

/// A panic in the scope waits for the bodies that have started, too.
pub(crate) fn a_panic_in_the_scope_waits_for_every_body() {
    let (note, probe) = (Box::new(AtomicUsize::new(0)), Probe::default());
    let runner = Mutex::new(None);
    let scope = Scope::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        scope.enter(|| {
            let kept = probe.clone();
            let job = scope
                .job(|| {
                    note.store(1, Relaxed);
                    drop(kept);
                })
                .unwrap();
            *runner.lock() = Some(elsewhere(job.stub()));
            resume_unwind(Box::new("on purpose"));
        })
    }));
    assert!(panicked.is_err());
    let written = note.load(Relaxed) == 1;
    assert_eq!(probe.others(), 0);
    drop(note);
    let runner = runner.lock().take().expect("it was started");
    assert_eq!(runner.join().unwrap(), written);
}

/// A job that a job makes while the scope ends is waited for as well.
pub(crate) fn a_job_made_by_a_job_is_waited_for() {
    let (note, inner) = (Box::new(AtomicUsize::new(0)), Mutex::new(None));
    let scope = Scope::new();
    let outer = scope.enter(|| {
        let job = scope
            .job(|| {
                let job = scope.job(|| note.store(1, Relaxed)).unwrap();
                *inner.lock() = Some(elsewhere(job.stub()));
                job.detach();
            })
            .unwrap();
        let outer = elsewhere(job.stub());
        job.detach();
        outer
    });
    let written = note.load(Relaxed) == 1;
    drop(note);
    let inner = inner.lock().take();
    assert_eq!(inner.is_some(), outer.join().unwrap());
    let ran = inner.is_some_and(|inner| inner.join().unwrap());
    assert_eq!(ran, written);
}

/// A joiner is woken by the end of the job, and gets the value and all that the body wrote.
pub(crate) fn a_joiner_gets_the_value_and_sees_the_bodys_writes() {
    let (note, probe) = (AtomicUsize::new(0), Probe::default());
    let scope = Scope::new();
    let runner = scope.enter(|| {
        let value = probe.clone();
        let job = scope
            .job(|| {
                note.store(7, Relaxed);
                value
            })
            .unwrap();
        let runner = elsewhere(job.stub());
        let handle = job.handle();
        wait(handle.job(), JobState::is_finished);
        assert!(matches!(handle.take(), Some(Outcome::Completed(_))));
        assert!(handle.take().is_none(), "a value is taken once");
        assert_eq!(note.load(Relaxed), 7);
        runner
    });
    assert_eq!(probe.others(), 0);
    assert!(runner.join().unwrap());
}

/// A value whose handle is dropped or leaked is dropped once, and before the scope ends.
pub(crate) fn a_value_that_is_not_taken_is_dropped_by_the_end() {
    let probe = Probe::default();
    let scope = Scope::new();
    let runners = scope.enter(|| {
        let jobs = [probe.clone(), probe.clone()].map(|value| scope.job(move || value).unwrap());
        let runners = jobs.each_ref().map(|job| elsewhere(job.stub()));
        let [dropped, forgotten] = jobs.map(|job| job.handle());
        drop(dropped);
        forget(forgotten);
        runners
    });
    assert_eq!(probe.others(), 0);
    join_all(runners.into());
}

/// Wherever a value is dropped, its destructor has ended before the scope does, and may use what the scope
/// borrows.
pub(crate) fn the_owner_waits_for_destructors_too() {
    struct Notes<'a>(&'a AtomicUsize);

    impl Drop for Notes<'_> {
        fn drop(&mut self) {
            self.0.store(1, Relaxed);
        }
    }

    let (note, scope) = (Box::new(AtomicUsize::new(0)), Scope::new());
    let runner = scope.enter(|| {
        let job = scope.job(|| Notes(&note)).unwrap();
        let runner = elsewhere(job.stub());
        job.detach();
        runner
    });
    let written = note.load(Relaxed) == 1;
    drop(note);
    assert_eq!(runner.join().unwrap(), written);
}

/// Either running or cancelling happens to a job that has not started; a handle learns of both.
pub(crate) fn cancelling_and_running_agree() {
    let cancellers = few_or_many(1, 3);
    let (runs, probe) = (AtomicUsize::new(0), Probe::default());
    let scope = Scope::new();
    let (runner, won, outcome) = scope.enter(|| {
        let value = probe.clone();
        let job = scope
            .job(|| {
                runs.fetch_add(1, Relaxed);
                drop(value);
            })
            .unwrap();
        let runner = elsewhere(job.stub());
        let cancellers = spawn_all(cancellers, {
            let job = job.job().clone();
            move |_| job.cancel(CancelReason::Requested)
        });
        let handle = job.handle();
        wait(handle.job(), JobState::is_finished);
        let outcome = handle.take();
        let found = join_all(cancellers);
        let won = found
            .into_iter()
            .filter(|found| *found != CancelResult::TooLate)
            .count();
        (runner, won, outcome)
    });
    let runs = runs.load(Relaxed);
    assert_eq!(probe.others(), 0);
    assert_eq!(runner.join().unwrap(), runs == 1);
    match outcome {
        Some(Outcome::Completed(())) => assert_eq!((won, runs), (0, 1)),
        Some(Outcome::Cancelled(reason)) => assert_eq!((won, reason), (1, CancelReason::Requested)),
        other => panic!("{other:?}"),
    }
}

/// A joiner is released by a cancellation, also if the body goes on: this one ends later.
pub(crate) fn a_joiner_of_a_cancelled_job_is_released() {
    let scope = Scope::new();
    let canceller = scope.enter(|| {
        let handle = scope.job(|| ()).unwrap().handle();
        // Claimed, so to other threads the body runs.
        let claimed = handle.job().claim().expect("it is unclaimed");
        let canceller = spawn({
            let job = handle.job().clone();
            move || job.cancel(CancelReason::Requested)
        });
        wait(handle.job(), JobState::is_finished);
        assert!(matches!(handle.take(), Some(Outcome::Cancelled(_))));
        claimed.run(&|| ());
        canceller
    });
    assert_eq!(canceller.join().unwrap(), CancelResult::Running);
}

/// A job whose stub is dropped wakes its waiter, which can run it then.
pub(crate) fn a_job_with_a_dropped_stub_is_left_to_a_waiter() {
    let note = AtomicUsize::new(0);
    let scope = Scope::new();
    let dropper = scope.enter(|| {
        let job = scope.job(|| note.store(1, Relaxed)).unwrap();
        let stub = job.stub();
        let dropper = spawn(move || drop(stub));
        wait(job.job(), |state| {
            state.is_finished() || state.is_stub_dropped()
        });
        let claimed = job.job().claim().expect("no other thread can run it");
        claimed.run(&|| ());
        job.detach();
        dropper
    });
    assert_eq!(note.load(Relaxed), 1);
    dropper.join().unwrap();
}

/// A stop rejects a job, or finds it.
pub(crate) fn a_stop_rejects_or_finds_every_job() {
    let probe = Probe::default();
    let scope = Scope::<()>::new();
    let stopper = scope.enter(|| {
        let scope_ref = scope.scope_ref().clone();
        let stopper = spawn(move || {
            scope_ref.stop();
            let (mut from, mut found) = (0, 0);
            while let Some(job) = scope_ref.find(from, |state| !state.is_ended()) {
                let _ = job.cancel(CancelReason::Requested);
                from = job.number() + 1;
                found += 1;
            }
            found
        });
        let kept = probe.clone();
        let made = match scope.job(move || drop(kept)) {
            Err(rejected) => {
                (rejected.0)();
                0
            }
            Ok(job) => {
                let handle = job.handle();
                wait(handle.job(), JobState::is_finished);
                assert!(matches!(handle.take(), Some(Outcome::Cancelled(_))));
                1
            }
        };
        (stopper, made)
    });
    assert_eq!(probe.others(), 0);
    let (stopper, made) = stopper;
    // A job that is cancelled by the end of the scope, before the stop reaches it, is not found.
    assert_eq!(stopper.join().unwrap(), made);
}

/// The owner, waiting for one job, is woken when another one is published, and runs it.
pub(crate) fn a_waiting_owner_is_woken_by_new_jobs() {
    let note = AtomicUsize::new(0);
    let scope = Scope::new();
    let runner = scope.enter(|| {
        let first = scope
            .job(|| {
                let second = scope.job(|| note.store(1, Relaxed)).unwrap();
                second.publish(());
                // Only the owner can run it.
                wait(second.handle().job(), JobState::is_finished);
            })
            .unwrap();
        let runner = elsewhere(first.stub());
        while !first.job().state().is_ended() {
            let seen = scope.scope_ref().published();
            if let Some(job) = scope.scope_ref().find(0, JobState::is_unstarted) {
                job.claim().expect("no other thread can").run(&|| ());
            }
            scope.wait(first.job(), seen, JOIN);
        }
        first.detach();
        runner
    });
    assert_eq!(note.load(Relaxed), 1);
    assert!(runner.join().unwrap());
}

/// A panic goes to the scope once, unless a handle has taken it.
pub(crate) fn a_panic_goes_to_the_handle_or_to_the_scope() {
    let scope = Scope::new();
    let (runner, taken) = scope.enter(|| {
        let job = scope.job(|| resume_unwind(Box::new("on purpose"))).unwrap();
        let runner = elsewhere(job.stub());
        let handle = job.handle();
        let outcome: Option<Outcome<()>> = handle.take();
        let taken = matches!(outcome, Some(Outcome::Panicked(_)));
        drop((handle, outcome));
        (runner, taken)
    });
    let ran = runner.join().unwrap();
    assert_eq!(scope.take_panic().is_some(), ran && !taken);
    assert!(scope.take_panic().is_none());
}
