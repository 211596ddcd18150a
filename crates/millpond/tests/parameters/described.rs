//! What parameters say of themselves is what their engine does.

use super::{engines, pool, value, values};
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::{Change, Invalid, Managed, Parameter, Patch, PatchError, Value, ValueType};
use millpond::pool::{Queue, ThreadPool};
use std::time::Duration;

#[test]
fn names_are_unique_and_everything_is_described() {
    for engine in engines() {
        let mut names = Vec::new();
        for each in engine.parameters() {
            assert!(!names.contains(&each.name), "{}", each.name);
            assert!(
                each.help.ends_with('.') && each.help.len() > 10,
                "{}",
                each.name
            );
            assert!(each.kind.check(&each.value).is_ok(), "{each}");
            let default = each.default.as_ref();
            assert!(
                default.is_none_or(|default| each.kind.check(default).is_ok()),
                "{each}"
            );
            names.push(each.name);
        }
    }
}

/// All live parameters that have a default, at that.
fn reset(engine: &dyn Managed) -> Patch {
    let all = engine.parameters().into_iter();
    let live = all.filter(|each| each.is_live);
    let defaults = live.filter_map(|each| Some((each.name, each.default?)));
    defaults.fold(Patch::new(), |patch, (name, value)| patch.set(name, value))
}

#[test]
fn the_defaults_of_all_live_parameters_make_a_patch_that_resets_any_engine() {
    for engine in engines() {
        let patch = reset(&*engine);
        let text = |(name, _): (&str, _)| (name.to_owned(), patch.get(name).cloned());
        let asked: Vec<_> = patch.changes().map(text).collect();
        for _ in 0..2 {
            let applied = engine.apply(&patch);
            applied.unwrap_or_else(|error| panic!("{engine:?}: {error}\n{asked:?}"));
            for each in engine.parameters() {
                let default = each.default.as_ref().filter(|_| each.is_live);
                assert!(
                    default.is_none_or(|default| *default == each.value),
                    "{each}"
                );
            }
            assert_eq!(reset(&*engine), patch, "{engine:?}");
        }
    }
}

#[test]
fn a_default_is_what_a_builder_chooses_that_was_told_nothing() {
    let told_nothing = ThreadPool::builder("mill").build().unwrap();
    for engine in engines() {
        if engine.engine_snapshot().kind == "thread pool" {
            for each in engine.parameters() {
                if let Some(default) = each.default {
                    assert_eq!(default, value(&told_nothing, &each.name), "{}", each.name);
                }
            }
        }
    }
    for each in told_nothing.parameters() {
        assert_eq!(each.default, Some(each.value), "{}", each.name);
    }
}

#[test]
fn a_capacity_that_is_the_choice_of_its_queue_has_no_default() {
    let ms = Duration::from_millis(1);
    for queue in [Queue::hand_off(), Queue::by_priority(9, ms)] {
        let all = pool().queue(queue).build().unwrap().parameters();
        let capacity = all.iter().find(|each| each.name == "capacity").unwrap();
        assert_eq!(capacity.default, None);
        assert!(!capacity.to_string().contains("default"), "{capacity}");
    }
}

/// Values that the type has, with its ends.
fn inside(kind: ValueType) -> Vec<Value> {
    match kind {
        ValueType::Integer { min, max } => {
            let near = [min, min.saturating_add(1).min(max), max];
            near.map(Value::Integer).to_vec()
        }
        ValueType::Duration { min, max } => {
            let second = Duration::from_secs(1).clamp(min, max);
            [min, second, max].map(Value::Duration).to_vec()
        }
        ValueType::Boolean => [true, false].map(Value::Boolean).to_vec(),
        ValueType::Choice(choices) => {
            let of = |choice: &millpond::manage::Choice| match choice.argument {
                None => vec![Value::choice(choice.name)],
                Some(kind) => {
                    let all = inside(kind).into_iter();
                    all.map(|value| Value::choice_with(choice.name, value))
                        .collect()
                }
            };
            choices.iter().flat_map(of).collect()
        }
        ValueType::Optional(kind) => {
            let mut all = inside(*kind);
            all.push(Value::None);
            all
        }
        other => panic!("{other:?} is new"),
    }
}

/// Values beside the type: out of its range, of another type, `none` where it is not optional, a name that it has not.
fn outside(kind: ValueType) -> Vec<Value> {
    let candidates = [
        Value::None,
        Value::Boolean(true),
        Value::Integer(0),
        Value::Integer(u64::MAX),
        Value::Duration(Duration::ZERO),
        Value::Duration(Duration::from_nanos(1)),
        Value::Duration(Duration::MAX),
        Value::choice("sideways"),
        Value::choice("custom"),
        Value::choice("newest_first"),
        Value::choice("block"),
        Value::choice_with("abort", 1_u64),
    ];
    let mut all = candidates.to_vec();
    if let ValueType::Integer { min, max } = kind {
        all.extend(min.checked_sub(1).map(Value::Integer));
        all.extend(max.checked_add(1).map(Value::Integer));
    }
    all.retain(|value| kind.check(value).is_err());
    all
}

/// Whether another parameter forbids the value.
fn is_misfit(problem: &Invalid) -> bool {
    match problem {
        Invalid::CoreAboveMax { .. }
        | Invalid::NoKeepAlive
        | Invalid::IntervalBelowTarget { .. }
        | Invalid::NeverOverloaded => true,
        Invalid::Other { reason, .. } => reason.contains("means nothing without shedding_target"),
        _ => false,
    }
}

/// A dry run changes nothing and says what the patch then does: what has changed, or what is wrong.
fn apply_as_checked(engine: &dyn Managed, patch: &Patch) -> Result<Vec<Change>, PatchError> {
    let before = values(engine);
    let checked = engine.check(patch);
    assert_eq!(values(engine), before, "{patch:?}");
    let applied = engine.apply(patch);
    assert_eq!(checked, applied, "{patch:?}");
    let changes: Vec<_> = before
        .into_iter()
        .zip(values(engine))
        .filter(|(before, after)| before != after)
        .map(|((name, from), (_, to))| Change::new(name, from, to))
        .collect();
    assert_eq!(*applied.as_ref().unwrap_or(&Vec::new()), changes);
    applied
}

/// Every engine afresh for every value, which is applied to one parameter.
fn each_live_parameter(
    values: fn(ValueType) -> Vec<Value>,
    judge: fn(&Parameter, &Value, Result<Vec<Change>, PatchError>),
) {
    for place in 0..engines().len() {
        let engine = || engines().swap_remove(place);
        for parameter in engine().parameters() {
            for value in values(parameter.kind) {
                let patch = Patch::new().set(parameter.name.clone(), value.clone());
                if parameter.is_live {
                    judge(&parameter, &value, apply_as_checked(&*engine(), &patch));
                }
            }
        }
    }
}

#[test]
fn every_value_of_the_described_type_is_accepted_unless_another_parameter_forbids_it() {
    each_live_parameter(inside, |parameter, value, applied| {
        if let Err(error) = applied {
            let problems = error.problems();
            assert!(
                problems.iter().all(is_misfit),
                "{parameter}: {value}: {error}"
            );
        }
    });
}

#[test]
fn every_value_beside_the_described_type_is_rejected() {
    each_live_parameter(outside, |parameter, value, applied| {
        assert!(applied.is_err(), "{parameter}: {value}");
    });
}

#[test]
fn a_value_that_another_parameter_forbids_is_accepted_together_with_that() {
    let most = ThreadPool::MAX_WORKERS;
    let second = Duration::from_secs(1);
    for patch in [
        Patch::new().core(most).max(most),
        Patch::new().core(0).max(1),
        Patch::new()
            .keep_alive(Duration::ZERO)
            .core_may_time_out(false),
        Patch::new()
            .set("shedding_target", second)
            .set("shedding_interval", "forever"),
    ] {
        pool().build().unwrap().apply(&patch).unwrap();
    }
}

#[test]
fn a_fixed_parameter_takes_no_value_but_its_own() {
    for engine in engines() {
        for each in engine.parameters().into_iter().filter(|each| !each.is_live) {
            for value in inside(each.kind).into_iter().chain(outside(each.kind)) {
                let applied = engine.apply(&Patch::new().set(each.name.clone(), value.clone()));
                assert_eq!(applied.is_ok(), value == each.value, "{each}: {value}");
            }
        }
    }
}

#[test]
fn an_unbounded_queue_may_stay_so_or_be_given_a_bound_which_it_keeps() {
    let pool = pool().queue(Queue::unbounded()).build().unwrap();
    let kind = |pool: &ThreadPool| {
        let all = pool.parameters();
        let found = all.iter().find(|each| each.name == "capacity");
        found.unwrap().kind.to_string()
    };
    assert_eq!(kind(&pool), "an integer from 1 on, or none");
    pool.apply(&Patch::new().set("capacity", "none")).unwrap();
    pool.apply(&Patch::new().set("capacity", "7")).unwrap();
    assert_eq!(kind(&pool), "an integer from 1 on");
    pool.apply(&Patch::new().set("capacity", "none"))
        .unwrap_err();
}

#[test]
fn the_guide_lists_every_parameter_of_a_pool() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/pools.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for each in pool().build().unwrap().parameters() {
        let live = if each.is_live { "yes" } else { "no" };
        let (kind, help) = (each.kind, each.help);
        let row = format!("| `{}` | {kind} | {live} | {help} |", each.name);
        assert!(guide.contains(&row), "docs/guide/pools.md lacks\n{row}");
    }
}

/// What a builder takes is what is described, in every engine with workers: nothing is cut down silently.
#[test]
fn a_pool_measures_as_many_names_as_are_described_and_no_builder_takes_more() {
    let pool_of = |most| pool().max_task_names(most).build();
    let forks_of = |most| ForkJoinPool::builder("mill").max_task_names(most).build();
    let (pool, forks) = (pool_of(65_535).unwrap(), forks_of(65_535).unwrap());
    for all in [pool.parameters(), forks.parameters()] {
        let names = all.iter().find(|each| each.name == "max_task_names");
        let names = names.unwrap();
        assert_eq!(names.value, Value::from(65_535_usize));
        assert_eq!(
            names.kind.to_string(),
            "an integer from 0 to 65535, or none"
        );
        assert_eq!(names.kind.check(&names.value), Ok(()));
        assert!(names.kind.check(&Value::from(65_536_usize)).is_err());
    }
    let wrong = [
        pool_of(65_536).unwrap_err().to_string(),
        forks_of(65_536).unwrap_err().to_string(),
    ];
    for error in wrong {
        let expected = "max_task_names cannot be 65536: write an integer from 0 to 65535, or none";
        assert!(error.contains(expected), "{error}");
    }
}
