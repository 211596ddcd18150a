//! Parameters of every engine: described, read, written as text, patched as a whole.

#[path = "proptest_kit/mod.rs"]
mod proptest_kit;

#[path = "parameters/described.rs"]
mod described;

#[path = "parameters/read.rs"]
mod read;

#[path = "parameters/together.rs"]
mod together;

#[path = "parameters/words.rs"]
mod words;

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{ForkJoinPool, HelpPolicy};
use millpond::manage::{
    CoDel, EngineSnapshot, Growth, Invalid, Managed, OverloadOrder, Parameter, Patch, Value,
    ValueType,
};
use millpond::pool::{PoolBuilder, PoolSnapshot, Queue, RejectionPolicy, RunWarning, ThreadPool};
use millpond::preset;
use millpond::queue::FifoQueue;
use millpond::schedule::{ScheduleSnapshot, ScheduledPool};
use millpond::time::ManualClock;
use proptest::prelude::*;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn pool() -> PoolBuilder {
    ThreadPool::builder("mill").core(2).max(4)
}

/// Every kind of engine there is, in several shapes.
fn engines() -> Vec<Box<dyn Managed>> {
    let careful = pool()
        .shedding(CoDel::default())
        .max_queue_wait(MS)
        .overload_order(OverloadOrder::NewestFirst)
        .run_warning(RunWarning::after(9 * MS).interrupts())
        .rejection(RejectionPolicy::Block(7 * MS));
    let custom = RejectionPolicy::custom(|task, context| context.give_back(task));
    let pools = [
        pool(),
        careful,
        pool().queue(Queue::unbounded()).without_metrics(),
        pool().queue(Queue::by_priority(9, MS)).rejection(custom),
        pool().queue(Queue::custom(FifoQueue::bounded(4).unwrap())),
        pool().queue(Queue::custom(FifoQueue::unbounded())),
        preset::cached("mill", 3),
        preset::java::single("mill"),
    ];
    let mut all: Vec<Box<dyn Managed>> = Vec::new();
    for pool in pools {
        all.push(Box::new(pool.build().unwrap()));
    }
    all.push(Box::new(preset::scheduled("mill", 1).unwrap()));
    let below = preset::single("below").build().unwrap();
    all.push(Box::new(ScheduledPool::owning(below).unbounded().build()));
    let mill = || ForkJoinPool::builder("mill").parallelism(2);
    for mill in [mill(), mill().fifo(true).help(HelpPolicy::Never)] {
        all.push(Box::new(mill.build().unwrap()));
    }
    all
}

fn values(engine: &dyn Managed) -> Vec<(String, Value)> {
    let named = |each: Parameter| (each.name.into_owned(), each.value);
    engine.parameters().into_iter().map(named).collect()
}

fn value(engine: &dyn Managed, name: &str) -> Value {
    let all = engine.parameters();
    let found = all.into_iter().find(|each| each.name == name);
    found.unwrap_or_else(|| panic!("{name}")).value
}

/// Values of a type, in its range and at the ends of it.
fn values_of(kind: ValueType) -> BoxedStrategy<Value> {
    match kind {
        ValueType::Integer { min, max } => prop_oneof![
            Just(min),
            Just(max),
            min..=min.saturating_add(50).min(max),
            min..=max
        ]
        .prop_map(Value::Integer)
        .boxed(),
        ValueType::Duration { min, max } => prop_oneof![
            Just(min),
            Just(max),
            any::<u64>().prop_map(Duration::from_nanos),
            any::<u32>().prop_map(|millis| Duration::from_millis(millis.into())),
            any::<Duration>(),
        ]
        .prop_map(move |duration| Value::Duration(duration.clamp(min, max)))
        .boxed(),
        ValueType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        ValueType::Choice(choices) => proptest::sample::select(choices)
            .prop_flat_map(|choice| match choice.argument {
                None => Just(Value::choice(choice.name)).boxed(),
                Some(kind) => values_of(kind)
                    .prop_map(move |value| Value::choice_with(choice.name, value))
                    .boxed(),
            })
            .boxed(),
        ValueType::Optional(kind) => prop_oneof![Just(Value::None), values_of(*kind)].boxed(),
        other => panic!("{other:?} is new"),
    }
}

/// A parameter of an engine (its place in `engines()` and its place there), and a value for it.
fn settings() -> impl Strategy<Value = (usize, usize, Value)> {
    let mut all = Vec::new();
    for (engine, each) in engines().iter().enumerate() {
        for (place, parameter) in each.parameters().iter().enumerate() {
            all.push((engine, place, parameter.kind));
        }
    }
    proptest::sample::select(all).prop_flat_map(|(engine, place, kind)| {
        values_of(kind).prop_map(move |value| (engine, place, value))
    })
}

#[test]
fn an_engine_takes_all_its_own_values_as_they_are_and_as_text_and_nothing_changes() {
    for engine in engines() {
        let before = engine.parameters();
        let (mut as_values, mut as_text) = (Patch::new(), Patch::new());
        for each in &before {
            as_values = as_values.set(each.name.clone(), each.value.clone());
            as_text = as_text.set(each.name.clone(), each.value.to_string());
        }
        for patch in [as_values, as_text] {
            engine
                .apply(&patch)
                .unwrap_or_else(|error| panic!("{engine:?}: {error}"));
            assert_eq!(engine.parameters(), before);
        }
    }
}

#[test]
fn every_value_of_every_parameter_is_the_same_after_a_trip_through_text() {
    proptest_kit::ask(600, &settings(), |(engine, place, value)| {
        let parameter = &engines()[engine].parameters()[place];
        let text = value.to_string();
        assert_eq!(parameter.kind.parse(&text).as_ref(), Ok(&value), "{text}");
    });
}

#[test]
fn a_value_that_is_applied_as_text_is_there_afterwards_or_nothing_has_changed() {
    proptest_kit::ask(600, &settings(), |(engine, place, value)| {
        let engine = &*engines()[engine];
        let parameter = engine.parameters().swap_remove(place);
        let before = values(engine);
        let patch = Patch::new().set(parameter.name.clone(), value.to_string());
        match engine.apply(&patch) {
            // `none` for the interval means "twenty times the target".
            Ok(_) if parameter.name == "shedding_interval" && value == Value::None => (),
            Ok(_) => assert_eq!(self::value(engine, &parameter.name), kept(&value)),
            Err(error) => {
                assert_eq!(values(engine), before, "{error}");
                let about = error.problems().iter().map(Invalid::parameter);
                let text = error.to_string();
                assert!(about.count() > 0 && !text.is_empty());
            }
        }
        engine_ends(engine);
    });
}

/// A duration of more than five hundred years is forever (PARAM-4).
fn kept(value: &Value) -> Value {
    match value {
        Value::Duration(time) if time.as_nanos() >= u128::from(u64::MAX) => Duration::MAX.into(),
        Value::Choice {
            name,
            argument: Some(argument),
        } => Value::choice_with(name.clone(), kept(argument)),
        value => value.clone(),
    }
}

/// Engines that have run nothing end with their last handle.
fn engine_ends(engine: &dyn Managed) {
    assert_eq!(engine.engine_snapshot().workers, 0);
}

#[test]
fn a_patch_with_one_bad_value_changes_nothing_and_names_it() {
    let good = Patch::new()
        .core(3)
        .max(9)
        .keep_alive(5 * MS)
        .capacity(77)
        .max_queue_wait(9 * MS)
        .set("rejection", "caller_runs");
    let bad = [
        ("growth", "sideways"),
        ("core_may_time_out", "perhaps"),
        ("shedding_interval", "100ms"),
        ("overload_order", "oldest"),
        ("queue", "priority"),
        ("max_task_names", "3"),
        ("colour", "blue"),
    ];
    for (name, text) in bad {
        let pool = pool().build().unwrap();
        let before = values(&pool);
        let error = pool.apply(&good.clone().set(name, text)).unwrap_err();
        let [problem] = error.problems() else {
            panic!("{error}")
        };
        assert_eq!(problem.parameter(), name);
        assert!(problem.to_string().contains(name), "{problem}");
        assert_eq!(values(&pool), before);
        pool.apply(&good).unwrap();
        assert_eq!((pool.core(), pool.max(), pool.capacity()), (3, 9, Some(77)));
        assert!(matches!(pool.rejection(), RejectionPolicy::CallerRuns));
    }
}

#[test]
fn parameters_that_need_each_other_are_judged_together() {
    let pool = pool().build().unwrap();
    let apply = |patch: Patch| pool.apply(&patch);
    let target = Patch::new().set("shedding_target", "10ms");
    apply(target.clone()).unwrap();
    assert_eq!(pool.shedding(), Some(CoDel::new(10 * MS, 200 * MS)));
    let order = Patch::new().set("overload_order", "newest_first");
    apply(order).unwrap();
    let error = apply(Patch::new().set("shedding_target", "none")).unwrap_err();
    assert_eq!(error.problems(), [Invalid::NeverOverloaded]);
    let error = apply(Patch::new().set("shedding_interval", "1ms")).unwrap_err();
    let (target, interval) = (10 * MS, MS);
    let below = Invalid::IntervalBelowTarget { target, interval };
    assert_eq!(error.problems(), [below]);
    apply(
        Patch::new()
            .shedding(None)
            .overload_order(OverloadOrder::Unchanged),
    )
    .unwrap();
    assert_eq!(pool.shedding(), None);
}

/// One parameter of a thread pool in all the ways in which it can be said.
struct Said {
    name: &'static str,
    text: &'static str,
    build: fn(PoolBuilder) -> PoolBuilder,
    patch: fn(Patch) -> Patch,
    set: fn(&ThreadPool),
    get: fn(&ThreadPool) -> Value,
    /// `None` if it is not in the snapshot.
    seen: Option<fn(&PoolSnapshot) -> Value>,
}

const SAID: &[Said] = &[
    Said {
        name: "core",
        text: "3",
        build: |pool| pool.core(3),
        patch: |patch| patch.core(3),
        set: |pool| pool.set_core(3).unwrap(),
        get: |pool| pool.core().into(),
        seen: Some(|now| now.core.into()),
    },
    Said {
        name: "max",
        text: "9",
        build: |pool| pool.max(9),
        patch: |patch| patch.max(9),
        set: |pool| pool.set_max(9).unwrap(),
        get: |pool| pool.max().into(),
        seen: Some(|now| now.max.into()),
    },
    Said {
        name: "keep_alive",
        text: "5ms",
        build: |pool| pool.keep_alive(5 * MS),
        patch: |patch| patch.keep_alive(5 * MS),
        set: |pool| pool.set_keep_alive(5 * MS).unwrap(),
        get: |pool| pool.keep_alive().into(),
        seen: Some(|now| now.keep_alive.into()),
    },
    Said {
        name: "core_may_time_out",
        text: "true",
        build: |pool| pool.core_may_time_out(true),
        patch: |patch| patch.core_may_time_out(true),
        set: |pool| pool.set_core_may_time_out(true).unwrap(),
        get: |pool| pool.core_may_time_out().into(),
        seen: Some(|now| now.core_may_time_out.into()),
    },
    Said {
        name: "growth",
        text: "threads_first",
        build: |pool| pool.growth(Growth::ThreadsFirst),
        patch: |patch| patch.growth(Growth::ThreadsFirst),
        set: |pool| pool.set_growth(Growth::ThreadsFirst),
        get: |pool| pool.growth().into(),
        seen: Some(|now| now.growth.into()),
    },
    Said {
        name: "capacity",
        text: "77",
        build: |pool| pool.queue(Queue::bounded(77)),
        patch: |patch| patch.capacity(77),
        set: |pool| pool.set_capacity(77).unwrap(),
        get: |pool| pool.capacity().into(),
        seen: Some(|now| now.capacity.into()),
    },
    Said {
        name: "rejection",
        text: "block(7ms)",
        build: |pool| pool.rejection(RejectionPolicy::Block(7 * MS)),
        patch: |patch| patch.set("rejection", "block(7ms)"),
        set: |pool| pool.set_rejection(RejectionPolicy::Block(7 * MS)),
        get: |pool| match pool.rejection() {
            RejectionPolicy::Block(time) => Value::choice_with("block", time),
            _ => Value::choice("abort"),
        },
        seen: None,
    },
    Said {
        name: "max_queue_wait",
        text: "9ms",
        build: |pool| pool.max_queue_wait(9 * MS),
        patch: |patch| patch.max_queue_wait(9 * MS),
        set: |pool| pool.set_max_queue_wait(9 * MS).unwrap(),
        get: |pool| pool.max_queue_wait().into(),
        seen: Some(|now| now.max_queue_wait.into()),
    },
    Said {
        name: "shedding_target",
        text: "6ms",
        build: |pool| pool.shedding(CoDel::new(6 * MS, 120 * MS)),
        patch: |patch| patch.shedding(CoDel::new(6 * MS, 120 * MS)),
        set: |pool| pool.set_shedding(CoDel::new(6 * MS, 120 * MS)).unwrap(),
        get: |pool| pool.shedding().map(|codel| codel.target).into(),
        seen: Some(|now| now.shedding.map(|codel| codel.target).into()),
    },
    Said {
        name: "shedding_interval",
        text: "120ms",
        build: |pool| pool.shedding(CoDel::new(6 * MS, 120 * MS)),
        patch: |patch| patch.shedding(CoDel::new(6 * MS, 120 * MS)),
        set: |pool| pool.set_shedding(CoDel::new(6 * MS, 120 * MS)).unwrap(),
        get: |pool| pool.shedding().map(|codel| codel.interval).into(),
        seen: Some(|now| now.shedding.map(|codel| codel.interval).into()),
    },
    Said {
        name: "overload_order",
        text: "newest_first",
        build: |pool| pool.overload_order(OverloadOrder::NewestFirst),
        patch: |patch| patch.overload_order(OverloadOrder::NewestFirst),
        set: |pool| pool.set_overload_order(OverloadOrder::NewestFirst).unwrap(),
        get: |pool| pool.overload_order().into(),
        seen: Some(|now| now.overload_order.into()),
    },
    Said {
        name: "finish_percentile",
        text: "95",
        build: |pool| pool.finish_percentile(95),
        patch: |patch| patch.finish_percentile(95),
        set: |pool| pool.set_finish_percentile(95).unwrap(),
        get: |pool| u32::from(pool.finish_percentile()).into(),
        seen: None,
    },
    Said {
        name: "run_warning",
        text: "8ms",
        build: |pool| pool.run_warning(RunWarning::after(8 * MS)),
        patch: |patch| patch.run_warning(8 * MS),
        set: |pool| pool.set_run_warning(Some(RunWarning::after(8 * MS))),
        get: |pool| {
            let is_so = pool.run_warning() == Some(RunWarning::after(8 * MS));
            is_so.then_some(8 * MS).into()
        },
        seen: None,
    },
];

#[test]
fn builder_setter_patch_text_getter_and_snapshot_agree_on_every_parameter() {
    for said in SAID {
        // Newest first needs to know what an overload is, and an interval a target.
        let plain = || match said.name {
            "overload_order" => pool().max_queue_wait(MS),
            "shedding_interval" => pool().shedding(CoDel::new(6 * MS, 10 * MS)),
            _ => pool(),
        };
        let (patched, set, by_text) = (plain(), plain(), plain());
        let built = (said.build)(plain()).build().unwrap();
        let [patched, set, by_text] = [patched, set, by_text].map(|pool| pool.build().unwrap());
        patched.apply(&(said.patch)(Patch::new())).unwrap();
        (said.set)(&set);
        by_text
            .apply(&Patch::new().set(said.name, said.text))
            .unwrap();
        for pool in [built, patched, set, by_text] {
            let listed = value(&pool, said.name);
            assert_eq!(listed.to_string(), said.text, "{}", said.name);
            assert_eq!((said.get)(&pool), listed, "{}", said.name);
            if let Some(seen) = said.seen {
                assert_eq!(seen(&pool.snapshot()), listed, "{}", said.name);
            }
        }
    }
}

#[test]
fn no_live_parameter_of_a_pool_is_missing_above() {
    let pool = pool().build().unwrap();
    let live = pool.parameters().into_iter().filter(|each| each.is_live);
    let live: Vec<_> = live.map(|each| each.name).collect();
    let said: Vec<_> = SAID.iter().map(|said| said.name).collect();
    assert_eq!(live, said);
}

#[test]
fn a_builder_rejects_what_a_patch_rejects_with_the_same_words() {
    type Build = fn(PoolBuilder) -> PoolBuilder;
    let wrong: [(Build, Patch); 5] = [
        (|pool| pool.max(0).core(0), Patch::new().max(0).core(0)),
        (|pool| pool.core(5), Patch::new().core(5)),
        (
            |pool| pool.max_queue_wait(Duration::ZERO),
            Patch::new().max_queue_wait(Duration::ZERO),
        ),
        (
            |pool| pool.shedding(CoDel::new(Duration::ZERO, Duration::ZERO)),
            Patch::new().shedding(CoDel::new(Duration::ZERO, Duration::ZERO)),
        ),
        (
            |pool| pool.overload_order(OverloadOrder::NewestFirst),
            Patch::new().overload_order(OverloadOrder::NewestFirst),
        ),
    ];
    for (build, patch) in wrong {
        let built = build(pool()).build().unwrap_err();
        let patched = pool().build().unwrap().apply(&patch).unwrap_err();
        let texts = |error: millpond::manage::PatchError| {
            let mut all: Vec<String> = error.problems().iter().map(Invalid::to_string).collect();
            all.sort();
            all
        };
        assert_eq!(texts(built), texts(patched));
    }
}

#[test]
fn a_run_warning_that_a_patch_sets_is_heeded_for_a_task_that_runs_already() {
    let hand = ManualClock::new();
    let mill = pool().clock(hand.clock()).on_event(|_| ());
    let pool = mill.build().unwrap();
    let (meet, wait) = std::sync::mpsc::sync_channel(0);
    pool.execute(move || for () in wait {}).unwrap();
    meet.send(()).unwrap(); // it runs
    hand.advance(9 * MS);
    pool.apply(&Patch::new().set("run_warning", "20ms"))
        .unwrap();
    hand.advance(10 * MS);
    assert_eq!(pool.health().long_runs, 0);
    hand.advance(MS);
    assert_eq!(pool.health().long_runs, 1);
}

#[test]
fn what_all_engines_have_in_common_is_what_their_own_snapshots_say() {
    let pool = pool().build().unwrap();
    for number in 0..5 {
        pool.submit(move || assert!(number != 3))
            .unwrap()
            .join()
            .ok();
    }
    pool.close().unwrap();
    let (engine, own) = (pool.engine_snapshot(), pool.snapshot());
    assert_eq!(engine.details::<PoolSnapshot>(), Some(&own));
    assert_eq!((&*engine.name, &*engine.kind), ("mill", "thread pool"));
    assert_eq!(
        (engine.submitted, engine.completed, engine.failed),
        (5, 5, 1)
    );
    assert_eq!((engine.state, engine.queued), (own.state, own.queued));
    let measured = |snapshot: &EngineSnapshot| -> u64 {
        let runs = snapshot.latencies.iter().map(|each| each.run.count());
        runs.sum()
    };
    assert_eq!(measured(&engine), 5);
    assert!(engine.is_healthy(), "{:?}", engine.warnings);

    let timers = preset::scheduled("mill", 1).unwrap();
    timers.schedule(MS, || ()).unwrap().join().unwrap();
    let later = timers.schedule(Duration::from_secs(3600), || ()).unwrap();
    let (engine, own) = (timers.engine_snapshot(), timers.snapshot());
    assert_eq!(engine.details::<ScheduleSnapshot>(), Some(&own));
    assert_eq!(engine.kind, "scheduled pool");
    assert_eq!(
        (engine.completed, engine.queued, engine.submitted),
        (1, 1, 2)
    );
    assert!(engine.details::<PoolSnapshot>().is_none());
    later.cancel();
    timers.close().unwrap();
}

#[test]
fn accepted_tasks_that_never_ran_are_cancelled_in_the_common_snapshot() {
    let pool = ThreadPool::builder("mill").core(1).max(1).build().unwrap();
    let (meet, wait) = std::sync::mpsc::sync_channel(0);
    pool.execute(move || for () in wait {}).unwrap();
    meet.send(()).unwrap(); // it runs
    let cancelled = pool.submit(|| ()).unwrap();
    pool.execute(|| ()).unwrap();
    pool.execute(|| ()).unwrap();
    cancelled.cancel();
    let handed_back = pool.shutdown_now();
    drop(meet);
    pool.close().unwrap();
    let snapshot = pool.engine_snapshot();
    assert_eq!(handed_back.len(), 2);
    assert_eq!((snapshot.submitted, snapshot.completed), (4, 1));
    assert_eq!(
        snapshot.cancelled, 3,
        "one was cancelled and two were handed back"
    );
}
