//! What is counted and measured, by name.

use crate::mill::{Mill, is_about, ms, of};
use millpond::executor::ExecutorExt;
use millpond::pool::ThreadPool;
use millpond::pool::{PoolBuilder, Queue};
use millpond::task::TaskSpec;
use millpond_conform::kit::case;
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::time::{Duration, Instant};

#[test]
fn waits_and_runs_are_kept_apart_and_by_name() {
    case("by name", || {
        let mill = Mill::new(|pool| pool);
        let (gate, held) = mill.hold("first");
        let handles = [
            mill.bring("grind", ms(8)),
            mill.bring("bake", ms(300)),
            mill.bring("grind", ms(16)),
        ];
        mill.hand.advance(ms(1000));
        gate.open();
        held.join().unwrap();
        for handle in handles {
            handle.join().unwrap();
        }
        mill.pond.await_completed(4);
        mill.pond.await_idle(1);
        let all = mill.pond.metrics_by_name();
        let (grind, bake) = (of(&all, "grind"), of(&all, "bake"));
        assert_eq!(grind.metrics.completed, 2);
        assert_eq!(grind.metrics.run.total(), ms(24), "to the nanosecond");
        assert_eq!(grind.metrics.wait.total(), ms(1000 + 1308));
        assert!(is_about(grind.metrics.run.max(), ms(16)), "{grind:?}");
        assert_eq!(bake.metrics.run.total(), ms(300));
        assert_eq!(bake.metrics.wait.total(), ms(1008));
        assert_eq!(of(&all, "first").metrics.run.total(), ms(1000));
        assert_eq!(all[0].label.to_string(), "first", "the longest comes first");
        let sum = mill.pond.metrics();
        assert_eq!((sum.completed, sum.run.count()), (4, 4));
        assert_eq!(sum.run.total(), ms(1324));
        // Looking changes nothing.
        assert_eq!(mill.pond.metrics(), sum);
    });
}

#[test]
fn what_did_not_run_is_counted_and_is_in_no_time() {
    case("not run", || {
        let mill = Mill::new(|pool| pool.queue(Queue::bounded(3)));
        let (gate, held) = mill.hold("first");
        let cancelled = mill.bring("bake", ms(1));
        let soon = mill.hand.clock().deadline(ms(5));
        let spec = TaskSpec::new()
            .name("bake")
            .deadline(soon)
            .clock(mill.hand.clock());
        let expired = mill.pond.submit_with(spec, || ()).unwrap();
        let panics = TaskSpec::new().name("bake");
        let panics = mill
            .pond
            .submit_with(panics, || std::panic::resume_unwind(Box::new(())))
            .unwrap();
        let refused = TaskSpec::new().name("bake");
        assert!(mill.pond.submit_with(refused, || ()).is_err());
        cancelled.cancel();
        mill.hand.advance(ms(10));
        gate.open();
        held.join().unwrap();
        assert!(panics.join().is_err() && expired.join().is_err());
        mill.pond.await_idle(1);
        let all = mill.pond.metrics_by_name();
        let bake = &of(&all, "bake").metrics;
        let counts = (bake.completed, bake.panicked, bake.cancelled, bake.expired);
        assert_eq!(counts, (1, 1, 1, 1));
        assert_eq!(bake.rejected, 1);
        assert_eq!((bake.run.count(), bake.wait.count()), (1, 1));
    });
}

#[test]
fn a_task_without_a_name_counts_under_the_place_where_it_was_made() {
    case("place", || {
        let mill = Mill::new(|pool| pool);
        let line = line!() + 2;
        for _ in 0..3 {
            mill.pond.submit(|| ()).unwrap().join().unwrap();
        }
        mill.pond.await_idle(1);
        let all = mill.pond.metrics_by_name();
        let label = format!("pool_insight/metrics.rs:{line}");
        assert_eq!(of(&all, &label).metrics.completed, 3);
        assert_eq!(all.len(), 1, "{all:?}");
    });
}

#[test]
fn there_are_only_so_many_names() {
    case("many names", || {
        let mill = Mill::new(|pool| pool.max_task_names(2));
        for name in ["one", "two", "three", "four", "two"] {
            mill.bring(name, ms(1)).join().unwrap();
        }
        mill.pond.await_idle(1);
        let all = mill.pond.metrics_by_name();
        assert_eq!(of(&all, "two").metrics.completed, 2);
        assert_eq!(of(&all, "(others)").metrics.completed, 2);
        assert_eq!(all.len(), 3);
    });
}

/// How many are completed under each label, in the order of the labels.
fn completed(mill: &Mill) -> Vec<(String, u64)> {
    mill.pond.await_idle(1);
    let all = mill.pond.metrics_by_name();
    let counts = all
        .iter()
        .map(|named| (named.label.to_string(), named.metrics.completed));
    let mut counts: Vec<_> = counts.collect();
    counts.sort();
    counts
}

#[test]
fn a_name_that_is_not_in_use_makes_room_for_one_that_is() {
    case("make room", || {
        let mill = Mill::new(|pool| pool.max_task_names(2));
        let counts = |counts: &[(&str, u64)]| {
            let owned = counts
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count));
            owned.collect::<Vec<_>>()
        };
        let bring = |name| mill.bring(name, ms(1)).join().unwrap();
        ["one", "two", "three"].into_iter().for_each(bring);
        let early = counts(&[("(others)", 1), ("one", 1), ("two", 1)]);
        assert_eq!(completed(&mill), early);
        // For a minute "two" and "three" are in use.
        ["two", "three"].into_iter().for_each(bring);
        mill.hand.advance(Duration::from_secs(61));
        let late = counts(&[("(others)", 2), ("one", 1), ("two", 2)]);
        assert_eq!(completed(&mill), late, "nobody has needed the place yet");
        bring("three");
        let last = counts(&[("(others)", 3), ("three", 1), ("two", 2)]);
        assert_eq!(completed(&mill), last, "what was one's is the others'");
        let all = mill.pond.metrics_by_name();
        assert_eq!(of(&all, "(others)").labels, 1);
        assert_eq!(of(&all, "three").labels, 1);
        assert_eq!(
            mill.pond.metrics().completed,
            mill.pond.snapshot().completed
        );
    });
}

#[test]
fn a_name_whose_task_runs_keeps_its_place_for_as_long_as_that_takes() {
    case("long", || {
        let mill = Mill::new(|pool| pool.max_task_names(1).max(2).core(2));
        let (gate, held) = mill.hold("long");
        for _ in 0..3 {
            mill.bring("short", ms(1)).join().unwrap();
            mill.pond.metrics_by_name();
            mill.hand.advance(Duration::from_secs(61));
        }
        gate.open();
        held.join().unwrap();
        mill.pond.await_idle(2);
        let all = mill.pond.metrics_by_name();
        assert_eq!(of(&all, "long").metrics.completed, 1);
        assert_eq!(of(&all, "(others)").metrics.completed, 3);
    });
}

#[test]
fn refusals_of_a_name_that_has_made_room_are_the_others() {
    case("refused", || {
        let mill = Mill::new(|pool| pool.max(1).max_task_names(1).queue(Queue::hand_off()));
        let (gate, held) = mill.hold("held");
        let refuse = |name: &'static str| {
            let spec = TaskSpec::new().name(name);
            mill.pond.submit_with(spec, || ()).unwrap_err();
        };
        refuse("held");
        refuse("rare");
        gate.open();
        held.join().unwrap();
        mill.pond.await_idle(1);
        let refused = |label: &str| {
            let all = mill.pond.metrics_by_name();
            let own = all.iter().find(|named| named.label.to_string() == label);
            own.map(|named| named.metrics.rejected)
        };
        assert_eq!((refused("held"), refused("(others)")), (Some(1), Some(1)));
        let (gate, held) = mill.hold("rare");
        mill.hand.advance(Duration::from_secs(61));
        assert_eq!((refused("held"), refused("(others)")), (Some(1), Some(1)));
        refuse("rare");
        assert_eq!((refused("rare"), refused("(others)")), (Some(1), Some(2)));
        assert_eq!(refused("held"), None);
        assert_eq!(mill.pond.snapshot().rejected, 3);
        gate.open();
        held.join().unwrap();
    });
}

#[test]
fn figures_of_workers_that_have_left_are_kept() {
    case("left", || {
        let mill = Mill::new(|pool| pool.core(0).max(1).keep_alive(ms(10)));
        for round in 1..=3 {
            mill.bring("grind", ms(4)).join().unwrap();
            mill.pond.await_idle(1);
            mill.hand.advance(ms(10));
            mill.pond.await_workers(0);
            let all = mill.pond.metrics_by_name();
            assert_eq!(of(&all, "grind").metrics.completed, round);
            assert_eq!(of(&all, "grind").metrics.run.total(), ms(4) * round as u32);
        }
    });
}

#[test]
fn a_pool_without_figures_keeps_none_and_counts_all_the_same() {
    case("none", || {
        let mill = Mill::new(PoolBuilder::without_metrics);
        mill.bring("grind", ms(4)).join().unwrap();
        mill.pond.await_completed(1);
        assert!(mill.pond.metrics_by_name().is_empty());
        assert_eq!(mill.pond.metrics().run.count(), 0);
    });
}

#[test]
fn what_runs_in_place_is_in_the_figures_of_its_own_name() {
    case("in place", || {
        let mill = Mill::new(|pool| pool);
        let (pool, hand) = (mill.pond.pool(), mill.hand.clone());
        let outer = TaskSpec::new().name("outer");
        let body = move || {
            let inner = TaskSpec::new().name("inner");
            let inner = pool.submit_with(inner, move || hand.advance(ms(7)));
            inner.unwrap().join().unwrap();
        };
        mill.pond.submit_with(outer, body).unwrap().join().unwrap();
        mill.pond.await_idle(1);
        let all = mill.pond.metrics_by_name();
        assert_eq!(of(&all, "inner").metrics.completed, 1);
        assert_eq!(of(&all, "inner").metrics.run.total(), ms(7));
        assert_eq!(of(&all, "outer").metrics.run.total(), ms(7));
    });
}

/// Not by a manual clock: this is about what the machine does.
#[test]
fn computing_and_blocking_are_told_apart() {
    case("usage", || {
        let pond = Pond::of(ThreadPool::builder(fresh_name()).core(1));
        let named = |name: &'static str| TaskSpec::new().name(name);
        let computes = || {
            let start = Instant::now();
            while start.elapsed() < ms(20) {
                std::hint::spin_loop();
            }
        };
        for _ in 0..5 {
            pond.submit_with(named("computes"), computes).unwrap();
            let sleeps = || std::thread::sleep(ms(20));
            pond.submit_with(named("blocks"), sleeps).unwrap();
        }
        pond.await_completed(10);
        pond.await_idle(1);
        let all = pond.metrics_by_name();
        let usage = |name| of(&all, name).metrics.usage;
        let (computes, blocks) = (usage("computes"), usage("blocks"));
        assert!(blocks.sampled() >= ms(90), "{blocks:?}");
        assert!(blocks.computing() < 0.1, "{blocks}");
        assert!(blocks.blocked() > 0.5, "{blocks}");
        assert!(computes.sampled() >= ms(90), "{computes:?}");
        // On a machine that is busy it waits for a CPU, but it never blocks.
        let wants = computes.computing() + computes.waiting_for_cpu();
        assert!(wants > 0.6, "{computes}");
        assert!(
            computes.computing() > 4.0 * blocks.computing(),
            "{computes} {blocks}"
        );
    });
}

#[cfg(target_os = "linux")]
#[test]
fn more_threads_than_cpus_wait_for_a_cpu() {
    case("crowd", || {
        let cpus = std::thread::available_parallelism().unwrap().get();
        let workers = cpus * 4;
        let pond = Pond::of(ThreadPool::builder(fresh_name()).core(workers));
        let computes = || {
            let start = Instant::now();
            while start.elapsed() < ms(120) {
                std::hint::spin_loop();
            }
        };
        for _ in 0..workers {
            pond.submit(computes).unwrap();
        }
        pond.await_completed(workers as u64);
        pond.await_idle(workers);
        let usage = pond.metrics().usage;
        assert!(usage.waiting_for_cpu() > 0.4, "{usage}");
        assert!(usage.blocked() < 0.3, "{usage}");
        let waited = pond
            .workers()
            .into_iter()
            .filter_map(|worker| worker.waited_for_cpu);
        assert!(waited.sum::<Duration>() > ms(100));
    });
}
