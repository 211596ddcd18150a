use super::*;
use crate::figure::Better;
use crate::report::tests::row;

#[test]
fn every_candidate_runs_all_submitted_tasks_at_both_ends_of_the_curve() {
    for length in [LENGTHS[0], LENGTHS[4]].map(Duration::from_nanos) {
        let workload = workload(length);
        assert_eq!(workload.candidates.len(), 8);
        for candidate in &workload.candidates {
            let sample = (candidate.run)(7).unwrap();
            let expected = if candidate.name == NO_POOL { 8 } else { 7 };
            assert_eq!(sample.operations, expected, "{}", candidate.name);
            let efficiency = (workload.figures[0].of)(&sample).unwrap();
            assert!(efficiency > 0.0, "{}: {efficiency}", candidate.name);
        }
    }
}

#[test]
fn a_point_for_every_length_and_a_line_for_every_candidate() {
    let all = workloads();
    let xs: Vec<f64> = all
        .iter()
        .map(|one| one.point.as_ref().unwrap().x)
        .collect();
    assert_eq!(xs, [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0]);
    assert_eq!(all[0].name, "tasks of 100ns");
    assert_eq!(all[8].name, "tasks of 1ms");
}

#[test]
fn a_pool_pays_from_where_it_stays_above_the_caller() {
    let caller = [(1.0, 50.0), (10.0, 50.0), (100.0, 50.0)];
    let pool = |values: [f64; 3]| [(1.0, values[0]), (10.0, values[1]), (100.0, values[2])];
    let of = |values| crossover(&pool(values), &caller);
    assert_eq!(of([60.0, 70.0, 90.0]), Crossover::Always);
    assert_eq!(of([10.0, 20.0, 50.0]), Crossover::Never);
    // Halfway between one and ten, on paper with a logarithmic axis.
    let Crossover::From(x) = of([40.0, 60.0, 90.0]) else {
        panic!("it crosses once");
    };
    assert!((x - 10_f64.sqrt()).abs() < 1e-9, "{x}");
    // A lead that is lost again does not count.
    let Crossover::From(x) = of([60.0, 30.0, 70.0]) else {
        panic!("it crosses for good at the end");
    };
    assert!((x - 1_000_f64.sqrt()).abs() < 1e-9, "{x}");
    assert_eq!(crossover(&[], &caller), Crossover::Never);
}

#[test]
fn the_notes_name_every_pool_and_no_reference() {
    let at = |candidate, standing, x: f64, efficiency| Row {
        better: Better::More,
        point: Some(Point {
            x,
            ..workload(Duration::from_nanos(100)).point.unwrap()
        }),
        ..row(candidate, standing, efficiency)
    };
    let alone = Standing::Reference { because: "x" };
    let rows = [
        at("millpond", Standing::Ours, 0.1, 20.0),
        at(CALLER, alone, 0.1, 40.0),
        at("millpond", Standing::Ours, 10.0, 90.0),
        at(CALLER, alone, 10.0, 40.0),
    ];
    let expected = ["granularity: millpond pays from about 373 ns on"];
    assert_eq!(notes(&rows), expected);
    assert!(notes(&[]).is_empty());
}
