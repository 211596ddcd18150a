//! Snapshots, parameters, patches and policies as JSON (feature `serde`), and policies and patches as text.

#![cfg(all(feature = "serde", not(any(millpond_loom, millpond_shuttle))))]

use millpond::adapt::CoDel;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{ForkJoinPool, HelpPolicy};
use millpond::manage::{Growth, Managed, OverloadOrder, Patch};
use millpond::pool::{RejectionPolicy, ThreadPool};
use millpond::preset;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json, to_value};
use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::Duration;

fn trip<T: Serialize + DeserializeOwned + Display + FromStr<Err: Debug> + Debug>(
    policy: T,
    json: &str,
) {
    let written = to_value(&policy).unwrap();
    assert_eq!(written, Value::from(json));
    let read: T = from_value(written).unwrap();
    let said: T = policy.to_string().parse().unwrap();
    for other in [read, said] {
        assert_eq!(format!("{other:?}"), format!("{policy:?}"));
    }
}

#[test]
fn every_policy_is_the_same_after_a_trip_through_json_and_through_text() {
    trip(Growth::ThreadsFirst, "threads_first");
    trip(OverloadOrder::NewestFirst, "newest_first");
    trip(CoDel::default(), "target 5ms, interval 100ms");
    for (policy, word) in [
        (HelpPolicy::Descendants, "descendants"),
        (HelpPolicy::Any, "any"),
        (HelpPolicy::Never, "never"),
    ] {
        trip(policy, word);
    }
    let second = Duration::from_secs(1);
    for (policy, word) in [
        (RejectionPolicy::Abort, "abort"),
        (RejectionPolicy::CallerRuns, "caller_runs"),
        (RejectionPolicy::Discard, "discard"),
        (RejectionPolicy::DiscardOldest, "discard_oldest"),
        (RejectionPolicy::Block(second), "block(1s)"),
        (RejectionPolicy::NewThread { at_most: 3 }, "new_thread(3)"),
        (
            RejectionPolicy::Report {
                at_most_every: second,
            },
            "report(1s)",
        ),
    ] {
        trip(policy, word);
    }
    let error = from_value::<RejectionPolicy>(json!("custom")).unwrap_err();
    assert!(
        error.to_string().contains("`custom` is not abort, "),
        "{error}"
    );
}

#[test]
fn a_patch_of_json_changes_a_pool_and_what_is_wrong_in_it_is_said_by_the_pool() {
    let pool = ThreadPool::builder("mill").core(1).max(2).build().unwrap();
    let settings = json!({
        "core": 3, "max": "8", "keep_alive": "30s", "core_may_time_out": true,
        "rejection": "block(100ms)", "max_queue_wait": null,
    });
    let patch: Patch = from_value(settings).unwrap();
    pool.apply(&patch).unwrap();
    assert_eq!(
        (pool.core(), pool.max(), pool.core_may_time_out()),
        (3, 8, true)
    );
    let again: Patch = from_value(to_value(&patch).unwrap()).unwrap();
    pool.apply(&again).unwrap();
    assert_eq!(patch.to_string(), again.to_string());
    let wrong: Patch = from_value(json!({"core": -1})).unwrap();
    let error = pool.apply(&wrong).unwrap_err().to_string();
    assert!(error.contains("core cannot be `-1`"), "{error}");
    assert!(from_value::<Patch>(json!({"core": [1]})).is_err());
}

#[test]
fn the_parameters_of_every_engine_make_a_patch_of_json_that_changes_nothing() {
    let pool = ThreadPool::builder("mill")
        .shedding(CoDel::default())
        .build()
        .unwrap();
    let timers = preset::scheduled("bells", 1).unwrap();
    let saw = ForkJoinPool::builder("saw").parallelism(2).build().unwrap();
    let engines: [&dyn Managed; 3] = [&pool, &timers, &saw];
    for engine in engines {
        let before = engine.parameters();
        let written = to_value(&before).unwrap();
        let named = written.as_array().unwrap().iter().map(|each| {
            let name = each["name"].as_str().unwrap().to_owned();
            (name, each["value"].clone())
        });
        let patch: Patch = from_value(Value::Object(named.collect())).unwrap();
        engine.apply(&patch).unwrap();
        assert_eq!(engine.parameters(), before);
    }
}

/// The names of the fields of a struct, by its `Debug`.
fn fields(value: &impl Debug) -> Vec<String> {
    let text = format!("{value:#?}");
    let own = text.lines().filter(|line| {
        line.starts_with("    ") && !line.starts_with("     ") && line.contains(':')
    });
    own.map(|line| line.trim().split(':').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_snapshot_has_all_its_fields() {
    let pool = preset::single("mill").build().unwrap();
    pool.submit_named("grind", || ()).unwrap().join().unwrap();
    pool.close().unwrap();
    let timers = preset::scheduled("bells", 1).unwrap();
    let saw = ForkJoinPool::builder("saw").parallelism(2).build().unwrap();
    let (one, two, three) = (pool.snapshot(), timers.snapshot(), saw.snapshot());
    for (written, names) in [
        (to_value(&one).unwrap(), fields(&one)),
        (to_value(&two).unwrap(), fields(&two)),
        (to_value(&three).unwrap(), fields(&three)),
        (to_value(pool.health()).unwrap(), fields(&pool.health())),
    ] {
        let mut written: Vec<_> = written.as_object().unwrap().keys().cloned().collect();
        let mut names = names;
        written.sort();
        names.sort();
        assert_eq!(written, names);
    }
    let written = to_value(&one).unwrap();
    assert_eq!(
        (&written["completed"], &written["state"]),
        (&json!(1), &json!("terminated"))
    );
    assert_eq!(written["keep_alive"], json!("1m"));
    let engine = to_value(pool.engine_snapshot()).unwrap();
    assert_eq!(engine["measurements"]["finished_late"], json!(0));
    assert_eq!(engine["latencies"][0]["task"], json!("grind"));
    assert_eq!(engine["latencies"][0]["run"]["count"], json!(1));
    let metrics = to_value(pool.metrics_by_name()).unwrap();
    assert_eq!(
        (&metrics[0]["label"], &metrics[0]["metrics"]["completed"]),
        (&json!("grind"), &json!(1))
    );
}
