use super::*;
use crate::record::Standing;
use crate::record::tests::{record, row};

/// A row whose rounds spread by so many percent to each side.
fn spread(candidate: &str, standing: Standing, median: f64, percent: f64) -> Row {
    Row {
        min: median * (1.0 - percent / 100.0),
        max: median * (1.0 + percent / 100.0),
        ..row(candidate, standing, median)
    }
}

fn ours(median: f64, percent: f64) -> Row {
    spread("millpond", Standing::Ours, median, percent)
}

fn compare(old: Vec<Row>, new: Vec<Row>) -> Comparison {
    Comparison::of(&record(old), &record(new))
}

fn verdict(old: Row, new: Row) -> Verdict {
    compare(vec![old], vec![new]).pairs[0].verdict
}

#[test]
fn a_row_is_better_or_worse_if_each_median_is_outside_the_rounds_of_the_other() {
    assert_eq!(
        verdict(ours(100.0, 10.0), ours(80.0, 10.0)),
        Verdict::Better
    );
    assert_eq!(
        verdict(ours(100.0, 10.0), ours(125.0, 10.0)),
        Verdict::Worse
    );
    // Rounds may overlap, as long as the medians stay out of it.
    let (old, new) = (ours(100.0, 15.0), ours(80.0, 15.0));
    assert!(new.max > old.min);
    assert_eq!(verdict(old, new), Verdict::Better);
}

#[test]
fn one_median_within_the_rounds_of_the_other_is_noise() {
    assert_eq!(verdict(ours(100.0, 30.0), ours(80.0, 1.0)), Verdict::Same);
    assert_eq!(verdict(ours(100.0, 1.0), ours(80.0, 30.0)), Verdict::Same);
}

#[test]
fn a_small_difference_is_none_however_sharp_the_figures_are() {
    assert_eq!(verdict(ours(100.0, 0.1), ours(104.9, 0.1)), Verdict::Same);
    assert_eq!(verdict(ours(100.0, 0.1), ours(105.1, 0.1)), Verdict::Worse);
    assert_eq!(verdict(ours(104.9, 0.1), ours(100.0, 0.1)), Verdict::Same);
    assert_eq!(verdict(ours(105.1, 0.1), ours(100.0, 0.1)), Verdict::Better);
}

#[test]
fn where_more_is_better_more_is_better() {
    let rate = |median| Row {
        better: Better::More,
        ..ours(median, 1.0)
    };
    assert_eq!(verdict(rate(100.0), rate(150.0)), Verdict::Better);
    assert_eq!(verdict(rate(150.0), rate(100.0)), Verdict::Worse);
}

#[test]
fn figures_of_zero_are_judged_by_their_ranges_and_have_no_ratio() {
    assert_eq!(verdict(ours(0.0, 0.0), ours(0.0, 0.0)), Verdict::Same);
    assert_eq!(verdict(ours(0.0, 0.0), ours(0.5, 1.0)), Verdict::Worse);
    assert_eq!(verdict(ours(0.5, 1.0), ours(0.0, 0.0)), Verdict::Better);
    let pairs = compare(vec![ours(0.0, 0.0)], vec![ours(0.5, 1.0)]).pairs;
    assert_eq!(pairs[0].ratio(), None);
}

/// Three peers that all took `factor` times as long, and a row of ours.
fn day(factor: f64, ours_median: f64) -> Vec<Row> {
    let peer = |name, median: f64| spread(name, Standing::Peer, median * factor, 1.0);
    let peers = [
        peer("kanal", 50.0),
        peer("rayon", 200.0),
        peer("tokio", 400.0),
    ];
    peers.into_iter().chain([ours(ours_median, 1.0)]).collect()
}

#[test]
fn the_drift_of_the_peers_is_subtracted() {
    // A slow day, and nothing else.
    let slow = compare(day(1.0, 100.0), day(1.4, 140.0));
    assert!(slow.pairs.iter().all(|pair| pair.verdict == Verdict::Same));
    assert!(
        slow.pairs
            .iter()
            .all(|pair| (pair.drift - 1.4).abs() < 1e-9)
    );
    // A slow day on which we stay as fast as we were.
    let gained = compare(day(1.0, 100.0), day(1.4, 100.0));
    let better = gained.with(Verdict::Better);
    assert_eq!(better.len(), 1);
    assert!(better[0].is_ours);
    assert!((better[0].ratio().unwrap() - 1.0 / 1.4).abs() < 1e-9);
}

#[test]
fn one_peer_that_changed_is_no_drift_and_is_reported() {
    let mut new = day(1.0, 100.0);
    new[1] = spread("rayon", Standing::Peer, 400.0, 1.0);
    let comparison = compare(day(1.0, 100.0), new);
    let worse = comparison.with(Verdict::Worse);
    assert_eq!(worse.len(), 1);
    assert_eq!(worse[0].name, "pool: burst: rayon");
}

#[test]
fn where_peers_deviate_a_change_must_be_larger_than_that() {
    let peers = |factors: [f64; 5]| {
        let names = ["kanal", "flume", "rayon", "tokio", "std"];
        let peers = names.into_iter().zip(factors);
        peers.map(|(name, factor)| spread(name, Standing::Peer, 100.0 * factor, 1.0))
    };
    let run = |factors, ours_median| -> Vec<Row> {
        peers(factors).chain([ours(ours_median, 1.0)]).collect()
    };
    let old = || run([1.0; 5], 100.0);
    let ours_of = |new| compare(old(), new).pairs.pop().unwrap();
    // A peer is usually 10 % off, so even 40 % say nothing, and 80 % do.
    let busy = [1.0, 1.1, 0.9, 1.12, 0.88];
    assert_eq!(ours_of(run(busy, 140.0)).verdict, Verdict::Same);
    assert_eq!(ours_of(run(busy, 180.0)).verdict, Verdict::Worse);
    // One that did change makes no noise.
    let exchanged = [1.0, 1.0, 1.0, 1.0, 5.0];
    let pair = ours_of(run(exchanged, 110.0));
    assert_eq!((pair.verdict, pair.noise), (Verdict::Worse, SMALLEST));
}

#[test]
fn too_few_peers_in_a_workload_are_made_up_for_by_those_of_the_suite() {
    let lone = |median| Row {
        workload: "idle".into(),
        ..ours(median, 1.0)
    };
    let old = day(1.0, 100.0).into_iter().chain([lone(10.0)]).collect();
    let new = day(2.0, 200.0).into_iter().chain([lone(20.0)]).collect();
    let comparison = compare(old, new);
    assert!((comparison.pairs[4].drift - 2.0).abs() < 1e-9);
    assert_eq!(comparison.pairs[4].verdict, Verdict::Same);
    // Without any there is no drift to take out.
    let alone = compare(vec![lone(10.0)], vec![lone(20.0)]);
    assert_eq!(alone.pairs[0].drift, 1.0);
    assert_eq!(alone.pairs[0].verdict, Verdict::Worse);
}

#[test]
fn rows_that_only_one_run_has_are_named() {
    let kanal = || row("kanal", Standing::Peer, 1.0);
    let flume = || row("flume", Standing::Peer, 1.0);
    let comparison = compare(vec![ours(1.0, 1.0), kanal()], vec![ours(1.0, 1.0), flume()]);
    assert_eq!(comparison.gone, ["pool: burst: kanal"]);
    assert_eq!(comparison.added, ["pool: burst: flume"]);
    let text = comparison.to_string();
    assert!(
        text.contains("only in the old run\n    pool: burst: kanal\n"),
        "{text}"
    );
}

#[test]
fn points_of_a_curve_are_compared_where_they_are() {
    let point = |x, median| Row {
        curve: Some("p99 against load".into()),
        x: Some(x),
        ..ours(median, 1.0)
    };
    let old = vec![point(10.0, 5.0), point(90.0, 50.0)];
    let new = vec![point(10.0, 5.0), point(90.0, 80.0), point(95.0, 90.0)];
    let comparison = compare(old, new);
    let verdicts: Vec<_> = comparison.pairs.iter().map(|pair| pair.verdict).collect();
    assert_eq!(verdicts, [Verdict::Same, Verdict::Worse]);
    assert_eq!(comparison.added, ["pool: burst (at 95): millpond"]);
}

#[test]
fn another_machine_and_few_rounds_are_reasons_to_doubt() {
    let (mut old, mut new) = (record(vec![ours(1.0, 1.0)]), record(vec![ours(1.0, 1.0)]));
    for record in [&mut old, &mut new] {
        record.machine.load_before = Some(0.1);
        record.machine.steal_percent = Some(0.0);
    }
    assert!(doubts(&old, &new).is_empty());
    old.machine.cpu_model = Some("Abacus".into());
    old.machine.steal_percent = Some(7.0);
    new.rows[0].rounds = 3;
    new.machine.load_before = Some(3.0);
    let text = Comparison::of(&old, &new).to_string();
    assert!(
        text.contains("another machine: the old run is from Abacus"),
        "{text}"
    );
    assert!(text.contains("the new run has rows of 3"), "{text}");
    assert!(
        text.contains("the load was 3.0 before the new run"),
        "{text}"
    );
    assert!(
        text.contains("7 % of the CPU time of the old run"),
        "{text}"
    );
}

#[test]
fn the_table_says_what_changed_and_by_how_much() {
    let text = compare(day(1.0, 100.0), day(1.4, 100.0)).to_string();
    let expected = "\
better beyond noise
                           unit     old  new  drift  change  noise
  * pool: burst: millpond  ns/task  100  100   1.40    0.71   1.05
";
    assert!(
        text.contains("1 better, 0 worse, 3 the same within noise"),
        "{text}"
    );
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("worse beyond noise\n"), "{text}");
}

/// How often two runs of the same code are judged different, in `trials` trials of so many rounds each.
fn false_alarms(rounds: usize, trials: u32) -> f64 {
    const SEED: u64 = 20_261_116;
    let mut state = SEED;
    let mut random = move || {
        // xorshift64*, by Vigna.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut run = || {
        let rounds: Vec<f64> = (0..rounds).map(|_| 1.0 + 9.0 * random()).collect();
        Spread::of(&rounds).unwrap()
    };
    let is_alarm = |old: Spread, new: Spread| {
        let new = Row {
            median: new.median,
            min: new.min,
            max: new.max,
            ..ours(1.0, 1.0)
        };
        super::verdict(old, &new, SMALLEST) != Verdict::Same
    };
    let alarms = (0..trials).filter(|_| is_alarm(run(), run())).count();
    alarms as f64 / f64::from(trials)
}

#[test]
fn chance_makes_as_many_false_alarms_as_the_header_says() {
    for (rounds, one_in) in [(3, 5.0), (5, 21.0), (10, 700.0)] {
        let alarms = false_alarms(rounds, 50_000);
        let expected = 1.0 / one_in;
        assert!(
            (0.6 * expected..1.4 * expected).contains(&alarms),
            "{rounds} rounds: {alarms} instead of {expected}"
        );
    }
}
