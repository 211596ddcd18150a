//! Behaviour of scopes on one thread; the races are in `tests/scenarios`.

use super::*;
use crate::task::{CancelReason, Outcome};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

fn run(job: &JobRef<()>) {
    job.claim().expect("it is unclaimed").run(&|| ());
}

#[test]
fn a_scope_takes_jobs_only_while_it_is_entered() {
    let scope = Scope::<()>::new();
    assert_eq!((scope.job(|| 7).unwrap_err().0)(), 7);
    scope.enter(|| scope.job(|| 7).unwrap().detach());
    assert_eq!((scope.job(|| 7).unwrap_err().0)(), 7);
}

#[test]
fn a_scope_is_entered_once() {
    let scope = Scope::<()>::new();
    let again = catch_unwind(AssertUnwindSafe(|| scope.enter(|| scope.enter(|| ()))));
    assert!(again.is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| scope.enter(|| ()))).is_err());
}

#[test]
fn a_rejected_closure_removes_no_job_from_the_list() {
    let scope = Scope::<()>::new();
    scope.enter(|| {
        scope.job(|| ()).unwrap().detach();
        scope.scope_ref().stop();
        assert!(scope.job(|| ()).is_err());
        assert_eq!(scope.scope_ref().len(), 1);
    });
    assert!(scope.scope_ref().is_empty());
}

#[test]
fn a_job_leaves_the_list_as_soon_as_nothing_is_left_of_it() {
    let scope = Scope::<()>::new();
    scope.enter(|| {
        let detached = scope.job(|| ()).unwrap();
        let job = detached.job().clone();
        detached.detach();
        run(&job);
        assert!(scope.scope_ref().is_empty(), "run without a handle");

        let taken = scope.job(|| 7).unwrap().handle();
        run(taken.job());
        assert_eq!(scope.scope_ref().len(), 1, "the value is there");
        assert!(matches!(taken.take(), Some(Outcome::Completed(7))));
        assert!(scope.scope_ref().is_empty(), "taken");

        let dropped = scope.job(|| 7).unwrap().handle();
        run(dropped.job());
        drop(dropped);
        assert!(scope.scope_ref().is_empty(), "dropped after the end");

        let left = scope.job(|| 7).unwrap().handle();
        let job = left.job().clone();
        drop(left);
        run(&job);
        assert!(scope.scope_ref().is_empty(), "dropped before the end");

        let cancelled = scope.job(|| 7).unwrap().handle();
        assert_eq!(
            cancelled.job().cancel(CancelReason::Requested),
            CancelResult::Unrun
        );
        assert!(scope.scope_ref().is_empty(), "cancelled");

        assert_eq!((scope.job(|| 7).unwrap().reclaim().unwrap())(), 7);
        assert!(scope.scope_ref().is_empty(), "taken back");
    });
}

#[test]
fn a_new_job_that_is_dropped_is_cancelled() {
    let scope = Scope::<()>::new();
    scope.enter(|| {
        let stub = scope.job(|| ()).unwrap().stub();
        assert!(stub.job().state().cancelled().is_some());
        assert!(stub.claim().is_none());
    });
}

#[test]
fn a_claim_that_is_dropped_drops_the_closure_and_finishes_the_handle() {
    let (scope, owned) = (Scope::<()>::new(), Arc::new(()));
    scope.enter(|| {
        let inside = Arc::clone(&owned);
        let handle = scope.job(move || drop(inside)).unwrap().handle();
        drop(handle.job().claim());
        assert_eq!(Arc::strong_count(&owned), 1);
        assert!(matches!(handle.take(), Some(Outcome::Cancelled(_))));
    });
}

#[test]
fn of_two_panics_that_nobody_takes_the_first_is_kept() {
    let scope = Scope::<()>::new();
    scope.enter(|| {
        for text in ["one", "two"] {
            let job = scope.job(move || resume_unwind(Box::new(text))).unwrap();
            let stub = job.stub();
            job.detach();
            run(stub.job());
        }
    });
    assert_eq!(scope.take_panic().unwrap().message(), Some("one"));
    assert!(scope.take_panic().is_none());
}

#[test]
fn the_panic_hook_runs_before_the_job_is_seen_to_end() {
    let scope = Scope::<()>::new();
    scope.enter(|| {
        let job = scope.job(|| resume_unwind(Box::new("one"))).unwrap();
        let job: Job<'_, (), ()> = job.handle();
        let seen = std::cell::Cell::new(None);
        let claimed = job.job().claim().unwrap();
        claimed.run(&|| seen.set(Some(job.job().state().is_finished())));
        assert_eq!(seen.get(), Some(false));
        assert!(matches!(job.take(), Some(Outcome::Panicked(_))));
    });
    assert!(scope.take_panic().is_none());
}

#[test]
fn the_value_of_a_cancelled_body_is_dropped_as_soon_as_it_ends() {
    let (scope, owned) = (Scope::<()>::new(), Arc::new(()));
    scope.enter(|| {
        let value = Arc::clone(&owned);
        let handle = scope.job(move || value).unwrap().handle();
        let claimed = handle.job().claim().unwrap();
        let found = handle.job().cancel(CancelReason::Requested);
        assert_eq!(found, CancelResult::Running);
        claimed.run(&|| ());
        assert_eq!(Arc::strong_count(&owned), 1);
        assert!(scope.scope_ref().is_empty(), "nothing is left of it");
        assert!(matches!(handle.take(), Some(Outcome::Cancelled(_))));
    });
}

#[test]
fn the_panic_of_a_cancelled_body_is_dropped() {
    let scope = Scope::<()>::new();
    scope.enter(|| {
        let job = scope.job(|| resume_unwind(Box::new("late"))).unwrap();
        let job: Job<'_, (), ()> = job.handle();
        let claimed = job.job().claim().unwrap();
        let _ = job.job().cancel(CancelReason::Requested);
        claimed.run(&|| ());
        assert!(matches!(job.take(), Some(Outcome::Cancelled(_))));
    });
    assert!(scope.take_panic().is_none());
}

#[test]
fn a_job_is_claimed_once_whatever_became_of_it() {
    let scope = Scope::<()>::new();
    scope.enter(|| {
        let job = scope.job(|| ()).unwrap();
        let claimed = job.job().claim().unwrap();
        assert!(job.job().claim().is_none(), "it is being run");
        assert_eq!(
            job.job().cancel(CancelReason::Requested),
            CancelResult::Running
        );
        assert!(job.job().claim().is_none(), "it was cancelled");
        claimed.run(&|| ());
        assert!(job.job().claim().is_none(), "it has ended");
        assert!(job.reclaim().is_err());
    });
}

/// A value whose destructor makes a job.
struct Makes<'scope>(&'scope Scope<'scope, ()>, Option<Arc<()>>);

impl Drop for Makes<'_> {
    fn drop(&mut self) {
        let (scope, owned) = (self.0, self.1.take());
        scope.job(move || drop(owned)).unwrap().detach();
    }
}

#[test]
fn the_end_waits_for_what_the_destructor_of_a_value_makes() {
    let (scope, owned) = (Scope::new(), Arc::new(()));
    scope.enter(|| {
        let inside = Some(Arc::clone(&owned));
        let made = scope.job(|| Makes(&scope, inside)).unwrap();
        let stub = made.stub();
        made.detach();
        run(stub.job());
    });
    assert_eq!(Arc::strong_count(&owned), 1, "the closure is gone");
    assert!(scope.scope_ref().is_empty());
}

#[test]
fn the_end_waits_for_what_it_makes_itself_by_dropping_values() {
    let (scope, owned, kept) = (Scope::new(), Arc::new(()), std::cell::Cell::new(None));
    scope.enter(|| {
        let inside = Some(Arc::clone(&owned));
        let made = scope.job(|| Makes(&scope, inside)).unwrap().handle();
        run(made.job());
        // The handle is not dropped, so the value stays in the slot.
        kept.set(Some(made));
    });
    assert_eq!(Arc::strong_count(&owned), 1, "the closure is gone");
    assert!(scope.scope_ref().is_empty());
}
