//! Patches for several engines: all of them change, or none.

use super::{pool, value};
use millpond::manage::{
    Change, EngineSnapshot, Invalid, Managed, Parameter, Patch, PatchError, RunState, Value,
    apply_all,
};
use millpond::pool::{Queue, ThreadPool};
use millpond::preset;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// An engine of another crate that finds nothing wrong with a patch until that is applied. Something happens before.
struct LateToReject<F>(F);

impl<F> std::fmt::Debug for LateToReject<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("late")
    }
}

impl<F: Fn() + Send + Sync> Managed for LateToReject<F> {
    fn name(&self) -> &str {
        "late"
    }

    fn explain(&self) -> String {
        String::new()
    }

    fn engine_snapshot(&self) -> EngineSnapshot {
        EngineSnapshot::new("late", "late", RunState::Running)
    }

    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn check(&self, _patch: &Patch) -> Result<Vec<Change>, PatchError> {
        Ok(Vec::new())
    }

    fn apply(&self, _patch: &Patch) -> Result<Vec<Change>, PatchError> {
        (self.0)();
        let problem = Invalid::Other {
            parameter: "lanes".into(),
            reason: "not now".into(),
        };
        PatchError::unless_none(vec![problem]).map(|()| Vec::new())
    }
}

fn mill(name: &'static str) -> ThreadPool {
    preset::fixed(name, 2).build().unwrap()
}

#[test]
fn all_that_is_wrong_is_told_by_engine_and_nothing_changes() {
    let (one, other, third) = (mill("one"), mill("other"), mill("third"));
    let error = apply_all(&[
        (&one, &Patch::new().max(1)),
        (&other, &Patch::new().capacity(5)),
        (&third, &Patch::new().set("cor", 5)),
    ]);
    let error = error.unwrap_err();
    let names: Vec<_> = error.problems().iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["one", "third"]);
    assert_eq!(
        error.to_string(),
        "nothing has changed: one: core 2 is above max 1: raise max or lower core, or change both at once; \
         third: there is no parameter `cor`: did you mean core?"
    );
    assert!(error.kept().is_empty());
    assert_eq!(other.capacity(), Some(1024));
}

#[test]
fn what_has_changed_is_returned_for_each_engine() {
    let (one, other) = (mill("one"), mill("other"));
    let changes = apply_all(&[
        (&one, &Patch::new().max(8).core(2)),
        (&other, &Patch::new().max(2)),
    ]);
    let expected = vec![vec![Change::new("max", 2_u64, 8_u64)], Vec::new()];
    assert_eq!(changes, Ok(expected));
    assert_eq!(one.max(), 8);
}

#[test]
fn engines_get_their_former_values_back_if_a_later_one_rejects_its_patch_after_all() {
    let (one, other) = (mill("one"), mill("other"));
    let (more, nothing) = (Patch::new().core(4).max(8), Patch::new());
    let late = LateToReject(|| assert_eq!((one.core(), other.core()), (4, 4)));
    let error = apply_all(&[(&one, &more), (&other, &more), (&late, &nothing)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothing has changed: late: lanes: not now"
    );
    for mill in [one, other] {
        assert_eq!((mill.core(), mill.max()), (2, 2));
    }
}

#[test]
fn a_value_that_another_thread_has_changed_again_is_not_put_back() {
    let mill = mill("mill");
    let more = Patch::new().max(8).capacity(5);
    let late = LateToReject(|| mill.set_max(16).unwrap());
    let error = apply_all(&[(&mill, &more), (&late, &Patch::new())]).unwrap_err();
    assert!(error.kept().is_empty());
    assert_eq!((mill.max(), mill.capacity()), (16, Some(1024)));
}

#[test]
fn a_change_that_no_patch_can_undo_is_told() {
    let mill = pool().queue(Queue::unbounded()).build().unwrap();
    let late = LateToReject(|| ());
    let bound = Patch::new().capacity(5);
    let error = apply_all(&[(&mill, &bound), (&late, &Patch::new())]).unwrap_err();
    let kept = Change::new("capacity", Value::None, 5_u64);
    assert_eq!(error.kept(), [("mill".to_owned(), vec![kept])]);
    assert_eq!(
        error.to_string(),
        "not all was undone (mill, capacity: none -> 5): late: lanes: not now"
    );
    assert_eq!(value(&mill, "capacity"), Value::Integer(5));
}

#[test]
fn a_time_that_is_too_long_to_be_counted_is_forever_and_is_put_back_too() {
    let mill = mill("mill");
    let before = mill.keep_alive();
    let late = LateToReject(|| assert_eq!(mill.keep_alive(), Duration::MAX));
    let ages = Patch::new().set("keep_alive", "300000d");
    let error = apply_all(&[(&mill, &ages), (&late, &Patch::new())]).unwrap_err();
    assert!(error.kept().is_empty());
    assert_eq!(mill.keep_alive(), before);

    let expected = vec![Change::new("keep_alive", before, Duration::MAX)];
    assert_eq!(mill.check(&ages).unwrap(), expected);
    assert_eq!(mill.apply(&ages).unwrap(), expected);
    assert_eq!(value(&mill, "keep_alive"), expected[0].to);
    assert!(mill.check(&ages).unwrap().is_empty());
    let block = |time| Patch::new().set("rejection", time);
    let changes = mill.apply(&block("block(300000d)")).unwrap();
    assert_eq!(changes[0].to.to_string(), "block(forever)");
    assert!(mill.check(&block("block(400000d)")).unwrap().is_empty());
}

#[test]
fn engines_get_their_former_values_back_if_a_later_one_panics() {
    let mill = mill("mill");
    let panics = LateToReject(|| resume_unwind(Box::new("late")));
    let more = Patch::new().core(4).max(8);
    let all: [(&dyn Managed, &Patch); 2] = [(&mill, &more), (&panics, &Patch::new())];
    let caught = catch_unwind(AssertUnwindSafe(|| apply_all(&all)));
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"late"));
    assert_eq!((mill.core(), mill.max()), (2, 2));
}
