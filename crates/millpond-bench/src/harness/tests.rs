use super::sizing::fitting;
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
        counts_allocations: true,
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
                quantiles: None,
                rush: None,
                memory: None,
                by_workers: None,
            })
        }),
    }
}

fn workload(candidates: Vec<Candidate>, most_operations: u64) -> Workload {
    Workload {
        suite: "planted",
        name: "w".into(),
        figures: vec![Figure::nanos("thing")],
        most_operations,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates,
    }
}

/// The candidates in the order of their turns, four rounds of three.
fn turns(pace: &Pace) -> String {
    let log = Rc::default();
    let candidates =
        [("a", 10), ("b", 20), ("c", 30)].map(|(name, nanos)| planted(name, nanos, &log));
    let workload = workload(candidates.into(), u64::MAX);
    let rows = workload.measure_at(pace, None, &Silent).unwrap().rows;
    let listed: Vec<_> = rows.iter().map(|row| row.candidate).collect();
    assert_eq!(listed, ["a", "b", "c"], "rows keep the order of the table");
    let names: String = log.borrow().iter().map(|(name, _)| *name).collect();
    names[names.len() - 12..].to_owned()
}

#[test]
fn candidates_take_turns_in_orders_that_are_drawn_by_the_seed() {
    let seeded = |seed| {
        turns(&Pace {
            seed,
            ..Pace::of(SETTINGS)
        })
    };
    for seed in 1..=20 {
        for round in seeded(seed).as_bytes().chunks(3) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, b"abc", "seed {seed}");
        }
    }
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
    // Not one order for all rounds.
    let rounds = seeded(1);
    assert!(
        rounds
            .as_bytes()
            .chunks(3)
            .any(|round| round != &rounds.as_bytes()[..3])
    );
}

#[test]
fn a_budget_ends_the_rounds_but_not_before_a_verdict_is_possible() {
    let with = |budget| {
        let log = Rc::default();
        let settings = Settings {
            rounds: 50,
            ..SETTINGS
        };
        let pace = Pace {
            budget: Some(budget),
            ..Pace::of(settings)
        };
        let workload = workload(vec![planted("a", 10, &log)], u64::MAX);
        workload.measure_at(&pace, None, &Silent).unwrap().rows[0].rounds
    };
    assert_eq!(with(Duration::ZERO), Pace::LEAST_ROUNDS);
    // Planted candidates take no time at all.
    assert_eq!(with(Duration::from_secs(60)), 50);
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
fn no_candidate_gets_more_operations_than_the_workload_allows() {
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
        .unwrap()
        .rows;
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
        counts_allocations: true,
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
    let absent = Candidate {
        run: Box::new(|_| Err(Absent("not here".into()).into())),
        ..planted("c", 7, &log)
    };
    let candidates = vec![
        planted("a", 9, &log),
        absent,
        hanging("d", &log),
        planted("b", 8, &log),
    ];
    let workload = workload(candidates, 1_000);
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

#[test]
fn a_candidate_that_is_not_here_is_left_out_with_its_reason() {
    let log = Rc::default();
    let absent = Candidate {
        run: Box::new(|_| Err(Absent("no java on the PATH".into()).into())),
        ..planted("java", 7, &log)
    };
    let found = workload(vec![absent, planted("a", 9, &log)], 1_000)
        .measure(SETTINGS, None, &Silent)
        .unwrap();
    let names: Vec<_> = found.rows.iter().map(|row| row.candidate).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(found.rows[0].ratio_to_best_peer, Some(1.0));
    let reason = Absent("no java on the PATH".into());
    assert_eq!(found.absent, [("java", reason)]);
}

/// Goes away in its second round.
fn hanging(name: &'static str, log: &Rc<RefCell<Vec<(&'static str, u64)>>>) -> Candidate {
    let works = planted(name, 1, log).run;
    let long_runs = RefCell::new(0);
    Candidate {
        run: Box::new(move |operations| {
            // The first of these is the last of its sizing.
            *long_runs.borrow_mut() += u32::from(operations == 1_000);
            if *long_runs.borrow() > 2 {
                return Err(Absent("it hung".into()).into());
            }
            works(operations)
        }),
        ..planted(name, 1, log)
    }
}

#[test]
fn a_candidate_that_goes_away_between_rounds_is_left_out_and_the_others_are_measured() {
    let log = Rc::default();
    let candidates = vec![planted("a", 9, &log), hanging("b", &log)];
    let found = workload(candidates, 1_000)
        .measure(SETTINGS, None, &Silent)
        .unwrap();
    assert_eq!(found.absent, [("b", Absent("it hung".into()))]);
    let [row] = &found.rows[..] else {
        panic!("{found:?}")
    };
    assert_eq!((row.candidate, row.rounds), ("a", SETTINGS.rounds));
    // It would have been the best peer.
    assert_eq!(row.ratio_to_best_peer, Some(1.0));
}

#[test]
fn every_figure_of_a_workload_has_its_own_rows_and_its_own_best_peer() {
    let log = Rc::default();
    let timed = |name, nanos, p50, p99| {
        let plain = planted(name, nanos, &log).run;
        let quantiles = Quantiles::told(p50, p99);
        Candidate {
            run: Box::new(move |operations| {
                plain(operations).map(|sample| Sample {
                    quantiles: Some(quantiles.clone()),
                    ..sample
                })
            }),
            ..planted(name, nanos, &log)
        }
    };
    let both = vec![timed("a", 9, 1_000, 8_000), timed("b", 9, 2_000, 4_000)];
    let workload = Workload {
        figures: Figure::quantiles(),
        ..workload(both, 1_000)
    };
    let rows = workload.measure(SETTINGS, None, &Silent).unwrap().rows;
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (&row.workload[..], row.candidate, row.spread.median))
        .collect();
    let expected = [
        ("w: p50", "a", 1.0),
        ("w: p50", "b", 2.0),
        ("w: p99", "a", 8.0),
        ("w: p99", "b", 4.0),
    ];
    assert_eq!(seen, expected);
    let ratios: Vec<_> = rows.iter().map(|row| row.ratio_to_best_peer).collect();
    assert_eq!(ratios, [1.0, 2.0, 2.0, 1.0].map(Some));
}

#[test]
fn stretched_rounds_are_longer_and_fewer_but_enough_for_a_median() {
    let stretched = Settings::FULL.stretched(10);
    assert_eq!(stretched.round_time, Settings::FULL.round_time * 10);
    assert_eq!(stretched.rounds, 3);
    assert_eq!(SETTINGS.stretched(1), SETTINGS);
    assert_eq!(SETTINGS.stretched(2).rounds, 3);
    let single = Settings {
        rounds: 1,
        ..SETTINGS
    };
    assert_eq!(single.stretched(10).rounds, 1);
}

#[test]
fn one_slow_run_does_not_make_all_rounds_short() {
    let runs = Rc::new(RefCell::new(0));
    let log = Rc::default();
    let plain = planted("a", 10, &log).run;
    let stumbling = Candidate {
        run: Box::new(move |operations| {
            *runs.borrow_mut() += 1;
            let mut sample = plain(operations)?;
            if *runs.borrow() == 1 {
                sample.elapsed = Duration::from_secs(1);
            }
            Ok(sample)
        }),
        ..planted("a", 10, &log)
    };
    workload(vec![stumbling], u64::MAX)
        .measure(SETTINGS, None, &Silent)
        .unwrap();
    assert_eq!(log.borrow().last(), Some(&("a", 100_000)));
}

/// Each round of it takes as long as the next of `nanos` says, once it has been sized.
fn uneven(name: &'static str, standing: Standing, nanos: &'static [u64]) -> Candidate {
    let runs = RefCell::new(0);
    Candidate {
        standing,
        run: Box::new(move |operations| {
            let run = *runs.borrow();
            *runs.borrow_mut() += 1;
            let each = nanos[run % nanos.len()];
            Ok(Sample {
                operations,
                elapsed: Duration::from_nanos(each * operations),
                usage: Usage::default(),
                quantiles: None,
                rush: None,
                memory: None,
                by_workers: None,
            })
        }),
        ..planted(name, 1, &Rc::default())
    }
}

fn differing(below: f64) -> Workload {
    // Sizing takes one run of each, because no candidate may have more operations than it begins with.
    let with = uneven("with", Standing::Ours, &[900, 130, 230, 330, 1_000]);
    let without = uneven("without", Standing::Peer, &[900, 100, 210, 320, 400]);
    let difference = Difference {
        with: "with",
        without: "without",
        below,
    };
    Workload {
        difference: Some(difference),
        ..workload(vec![without, with], 64)
    }
}

#[test]
fn a_difference_is_the_median_of_what_each_round_differs_by() {
    let one = Settings {
        rounds: 1,
        ..SETTINGS
    };
    let judged = |below| {
        let rows = differing(below).measure(one, None, &Silent).unwrap().rows;
        rows.into_iter().last().unwrap()
    };
    // 30, 20, 10 and 600 more: the difference of the two medians would be 15.
    let row = judged(25.1);
    assert_eq!(
        (&row.workload[..], row.candidate),
        ("w: difference", "with")
    );
    let Spread { median, min, max } = row.spread;
    assert_eq!((median, min, max), (25.0, 10.0, 600.0));
    assert_eq!(row.rounds, Difference::MORE_ROUNDS);
    assert_eq!((row.limit, row.lost), (Some(25.1), false));
    // The limit itself is too much.
    assert!(judged(25.0).lost);
}

#[test]
fn those_that_differ_get_the_same_number_of_operations() {
    let log = Rc::default();
    let candidates = [("quick", 10), ("slow", 100)].map(|(name, nanos)| planted(name, nanos, &log));
    let workload = Workload {
        difference: Some(Difference {
            with: "slow",
            without: "quick",
            below: 1.0,
        }),
        ..workload(candidates.into(), u64::MAX)
    };
    let rows = workload.measure(SETTINGS, None, &Silent).unwrap().rows;
    assert_eq!(rows.last().unwrap().spread.median, 90.0);
    let rounds: Vec<_> = log.borrow().iter().rev().take(2).copied().collect();
    assert!(rounds.contains(&("quick", 10_000)), "{rounds:?}");
    assert!(rounds.contains(&("slow", 10_000)), "{rounds:?}");
}

#[test]
fn a_difference_to_one_that_is_not_here_is_none() {
    let mut workload = differing(1.0);
    workload.candidates.remove(0);
    let rows = workload.measure(SETTINGS, None, &Silent).unwrap().rows;
    assert_eq!(rows.len(), 1);
}

#[test]
fn planned_rounds_are_not_sized_but_as_long_as_their_plan() {
    let log = Rc::default();
    let workload = Workload {
        planned: Some(Planned::by(|time| Ok(time.as_micros() as u64 * 3))),
        ..workload(vec![planted("a", 7, &log)], 1)
    };
    workload.measure(SETTINGS, None, &Silent).unwrap();
    let runs: Vec<_> = log.borrow().iter().map(|&(_, arrivals)| arrivals).collect();
    assert_eq!(runs, [150, 3_000, 3_000, 3_000, 3_000]);
}
