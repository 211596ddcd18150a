use super::*;
use crate::progress::Silent;
use std::cell::RefCell;
use std::rc::Rc;

const SETTINGS: Settings = Settings {
    rounds: 4,
    round_time: Duration::from_millis(1),
};

/// A candidate whose operations take exactly `nanos` each, and which notes when it ran.
fn planted(
    name: &'static str,
    nanos: u64,
    log: &Rc<RefCell<Vec<(&'static str, u64)>>>,
) -> Candidate {
    let log = Rc::clone(log);
    Candidate {
        name,
        standing: Standing::Peer,
        run: Box::new(move |operations| {
            log.borrow_mut().push((name, operations));
            Ok(Sample {
                operations,
                elapsed: Duration::from_nanos(nanos * operations),
                usage: Usage {
                    cpu: Some(Duration::from_nanos(3 * operations)),
                    sleeps: Some(operations),
                    preemptions: None,
                },
            })
        }),
    }
}

fn workload(candidates: Vec<Candidate>, most_operations: u64) -> Workload {
    Workload {
        suite: "planted",
        name: "w".into(),
        operation: "thing",
        most_operations,
        candidates,
    }
}

#[test]
fn candidates_take_turns_and_each_round_begins_with_another() {
    let log = Rc::default();
    let candidates =
        [("a", 10), ("b", 20), ("c", 30)].map(|(name, nanos)| planted(name, nanos, &log));
    let workload = workload(candidates.into(), u64::MAX);
    workload.measure(SETTINGS, None, &Silent).unwrap();
    let names: String = log.borrow().iter().map(|(name, _)| *name).collect();
    assert!(names.ends_with("abcbcacababc"), "{names}");
}

#[test]
fn every_candidate_gets_as_many_operations_as_fill_its_round() {
    let log = Rc::default();
    let candidates =
        [("quick", 10), ("slow", 10_000)].map(|(name, nanos)| planted(name, nanos, &log));
    workload(candidates.into(), u64::MAX)
        .measure(SETTINGS, None, &Silent)
        .unwrap();
    let rounds: Vec<_> = log.borrow().iter().rev().take(2).copied().collect();
    assert!(rounds.contains(&("quick", 100_000)), "{rounds:?}");
    assert!(rounds.contains(&("slow", 100)), "{rounds:?}");
}

#[test]
fn nobody_gets_more_operations_than_the_workload_allows() {
    let log = Rc::default();
    workload(vec![planted("quick", 1, &log)], 50)
        .measure(SETTINGS, None, &Silent)
        .unwrap();
    assert!(log.borrow().iter().all(|&(_, operations)| operations <= 50));
}

#[test]
fn figures_and_usage_are_per_operation() {
    let log = Rc::default();
    let rows = workload(vec![planted("a", 40, &log)], 1_000)
        .measure(SETTINGS, None, &Silent)
        .unwrap();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(
        row.spread,
        Spread {
            median: 40.0,
            min: 40.0,
            max: 40.0
        }
    );
    assert_eq!((row.rounds, row.operations), (4, 4_000));
    assert_eq!(row.unit, "ns/thing");
    assert_eq!(row.per_operation.cpu_ns, Some(3.0));
    assert_eq!(row.per_operation.sleeps, Some(1.0));
    assert_eq!(row.per_operation.preemptions, None);
    assert_eq!(row.per_operation.allocations, None);
}

#[test]
fn a_candidate_that_fails_is_named_with_its_workload() {
    let failing = Candidate {
        name: "leaky",
        standing: Standing::Peer,
        run: Box::new(|_| anyhow::bail!("1 of 64 messages never arrived")),
    };
    let error = workload(vec![failing], 64)
        .measure(SETTINGS, None, &Silent)
        .unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "planted w: leaky: 1 of 64 messages never arrived"
    );
}

#[test]
fn progress_is_told_of_exactly_the_promised_steps() {
    #[derive(Debug, Default)]
    struct Steps(RefCell<u64>);
    impl Progress for Steps {
        fn step(&self, _label: &str) {
            *self.0.borrow_mut() += 1;
        }
    }
    let log = Rc::default();
    let workload = workload(vec![planted("a", 9, &log), planted("b", 8, &log)], 1_000);
    let steps = Steps::default();
    workload.measure(SETTINGS, None, &steps).unwrap();
    assert_eq!(*steps.0.borrow(), workload.steps(SETTINGS));
}

#[test]
fn sizes_scale_with_time_and_stay_in_range() {
    let ms = Duration::from_millis;
    assert_eq!(fitting(100, ms(1), ms(10), 1_000_000), 1_000);
    assert_eq!(fitting(100, ms(10), ms(1), 1_000_000), 10);
    assert_eq!(fitting(1, ms(500), ms(1), 1_000_000), 1);
    assert_eq!(fitting(100, Duration::ZERO, ms(1), 777), 777);
}
