//! What a reader of parameters sees beside a writer, and how long it takes.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and clock beside what it tests"
)]

use super::{engines, pool};
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::{Managed, Parameter, Patch};
use millpond::pool::Queue;
use millpond::preset;
use millpond::queue::FifoQueue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Two parameters that are always patched together, and their values in either patch.
fn assert_patches_are_seen_whole(
    case: &str,
    engine: &dyn Managed,
    one: [(&'static str, &str); 2],
    other: [(&'static str, &str); 2],
) {
    let patch = |[(first, one), (second, other)]: [(&'static str, &str); 2]| {
        Patch::new().set(first, one).set(second, other)
    };
    engine.apply(&patch(one)).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3_000 {
                engine.apply(&patch(other)).unwrap();
                engine.apply(&patch(one)).unwrap();
            }
            is_over.store(true, Ordering::SeqCst);
        });
        while !is_over.load(Ordering::SeqCst) {
            let all = engine.parameters();
            let value = |name: &str| {
                let found = all.iter().find(|each| each.name == name);
                found
                    .map(|each: &Parameter| each.value.to_string())
                    .unwrap()
            };
            let seen = one.map(|(name, _)| (name, value(name)));
            let is =
                |patch: [(&str, &str); 2]| seen == patch.map(|(name, text)| (name, text.into()));
            assert!(is(one) || is(other), "{case}: {seen:?}");
        }
    });
}

#[test]
fn no_half_of_a_patch_is_ever_seen() {
    let own = pool().queue(Queue::custom(FifoQueue::bounded(1).unwrap()));
    for (case, pool) in [("fifo", pool()), ("own queue", own)] {
        let pool = pool.build().unwrap();
        let pairs = [
            [("core", "1", "2"), ("capacity", "1", "2")],
            [("core", "1", "2"), ("max_queue_wait", "1ms", "2ms")],
            [("core", "1", "2"), ("run_warning", "1s", "2s")],
            [("capacity", "1", "2"), ("keep_alive", "1s", "2s")],
        ];
        for pair in pairs {
            let one = pair.map(|(name, one, _)| (name, one));
            let other = pair.map(|(name, _, other)| (name, other));
            assert_patches_are_seen_whole(case, &pool, one, other);
        }
    }
    let pool = ForkJoinPool::builder("mill")
        .parallelism(1)
        .build()
        .unwrap();
    let names = ["parallelism", "max_spares"];
    assert_patches_are_seen_whole(
        "fork-join",
        &pool,
        names.map(|name| (name, "1")),
        names.map(|name| (name, "2")),
    );
    let timers = preset::scheduled("mill", 1).unwrap();
    let names = ["run_delayed_after_shutdown", "run_series_after_shutdown"];
    assert_patches_are_seen_whole(
        "scheduled",
        &timers,
        names.map(|name| (name, "true")),
        names.map(|name| (name, "false")),
    );
}

/// The shortest of many calls: the others were disturbed. To read the machine takes several times as long.
#[test]
fn parameters_are_listed_without_a_look_at_the_machine() {
    for engine in engines() {
        let time = |_| {
            let start = Instant::now();
            assert!(!engine.parameters().is_empty());
            start.elapsed()
        };
        let shortest = (0..200).map(time).min().unwrap();
        assert!(
            shortest < Duration::from_micros(100),
            "{engine:?}: {shortest:?}"
        );
    }
}
