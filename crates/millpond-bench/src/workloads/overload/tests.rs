use super::*;
use crate::harness::Settings;
use crate::origin::Heading;
use crate::peers::overload::End;
use crate::peers::pool::Job;
use crate::progress::Silent;
use crate::table;
use std::collections::BTreeSet;

/// So few and so slow that a pool has time for all of them; that a machine may be busy is why nothing
/// is said about how many came in time.
const CALM: (f64, u64) = (500.0, 60);

/// All at once, and more than two workers, a queue and their clients' timeout have room for.
const CRUSH: (f64, u64) = (1e9, 2_000);

fn fates((peak, arrivals): (f64, u64), open: Open) -> crate::rush::Fates {
    rush(open, peak, arrivals).unwrap().rush.unwrap().fates
}

#[test]
fn every_candidate_accounts_for_every_task() {
    for &(name, _, open) in ENTRIES {
        for load in [CALM, CRUSH] {
            let fates = fates(load, open);
            let [offered, rest @ ..] = fates.numbers();
            assert_eq!(offered, load.1, "{name}: {fates:?}");
            assert_eq!(rest.iter().sum::<u64>(), offered, "{name}: {fates:?}");
            assert_eq!(fates.lost, 0, "{name}: {fates:?}");
        }
    }
}

#[test]
fn an_unprotected_pool_answers_every_accepted_task_and_too_late() {
    for &(name, _, open) in ENTRIES {
        if !["millpond, unprotected", "crossbeam-channel of 1024"].contains(&name) {
            continue;
        }
        let fates = fates(CRUSH, open);
        assert_eq!(fates.shed + fates.expired, 0, "{name}: {fates:?}");
        // More than a thousand wait, at a millisecond each for two.
        assert!(fates.refused > 0 && fates.late > 500, "{name}: {fates:?}");
    }
}

#[test]
fn a_peer_that_is_protected_rejects_early_or_drops_what_is_late() {
    for &(name, standing, open) in ENTRIES {
        if standing != Standing::Peer || name == "crossbeam-channel of 1024" {
            continue;
        }
        let fates = fates(CRUSH, open);
        let has_deadlines = name.contains("deadlines");
        assert_eq!(fates.expired > 0, has_deadlines, "{name}: {fates:?}");
        // A short queue, or few permits: nearly all that come at once are turned away.
        assert_eq!(fates.refused > 1_800, !has_deadlines, "{name}: {fates:?}");
    }
}

#[test]
fn java_follows_the_same_plan_and_accounts_for_every_task() {
    let (rate, arrivals) = CALM;
    for (name, executor) in abroad::EXECUTORS {
        match abroad::rush(executor, rate, arrivals) {
            Ok(sample) => {
                let fates = sample.rush.unwrap().fates;
                assert_eq!((fates.offered, fates.lost), (arrivals, 0), "{name}");
                // The last comes when it was planned to, to a microsecond.
                let end = Plan::poisson(SEED, rate * LOAD, arrivals).end();
                assert!(sample.elapsed + Duration::from_micros(1) >= end, "{name}");
            }
            Err(error) if error.is::<crate::harness::Absent>() => {
                eprintln!("skipped: {name}: {error}");
            }
            Err(error) => panic!("{name}: {error:#}"),
        }
    }
}

#[test]
fn java_has_the_same_sizes() {
    for (name, value) in [
        ("WORKERS", WORKERS as u128),
        ("WORK_NANOS", WORK.as_nanos()),
        ("SLACK_NANOS", SLACK.as_nanos()),
        ("PATIENCE_NANOS", PATIENCE.as_nanos()),
    ] {
        assert_eq!(abroad::IN_JAVA.size(name), Some(value), "{name}");
    }
}

#[test]
fn every_protection_drops_tasks_that_have_waited_too_long() {
    for &(name, standing, open) in ENTRIES {
        if standing != Standing::Ours {
            continue;
        }
        let fates = fates(CRUSH, open);
        let has_deadlines = name.contains("deadlines");
        assert_eq!(fates.expired > 0, has_deadlines, "{name}: {fates:?}");
        assert_eq!(fates.shed > 0, !has_deadlines, "{name}: {fates:?}");
    }
}

#[test]
fn a_round_says_what_it_took_and_how_it_went() {
    let (_, _, open) = ENTRIES[0];
    let (peak, arrivals) = CALM;
    let sample = rush(open, peak, arrivals).unwrap();
    assert_eq!(sample.operations, arrivals);
    // It was to take 60 tasks at 750 a second.
    assert!(sample.elapsed > Duration::from_millis(40), "{sample:?}");
    for figure in Figure::rush() {
        let value = (figure.of)(&sample);
        assert!(value.is_some_and(|value| value >= 0.0), "{figure:?}");
    }
    // No task is answered before the work is done.
    assert!(sample.quantiles.unwrap().p50() >= WORK.as_nanos() as u64);
}

/// Takes everything in, and forgets one in a hundred.
#[derive(Debug)]
struct Forgetful {
    pool: HandRolled,
    says_it_ran: bool,
    forgotten: Vec<usize>,
}

impl Rushed for Forgetful {
    fn offer(&mut self, number: usize, came: Instant, task: Job) -> bool {
        if number % 100 == 50 {
            self.forgotten.push(number);
            return true;
        }
        self.pool.offer(number, came, task)
    }

    fn ends(&mut self) -> Vec<(usize, End)> {
        let mut ends = self.pool.ends();
        if self.says_it_ran {
            ends.extend(
                self.forgotten
                    .drain(..)
                    .map(|number| (number, End::Answered)),
            );
        }
        ends
    }

    fn close(self: Box<Self>) {
        Box::new(self.pool).close();
    }
}

fn forgetful(says_it_ran: bool) -> Result<Box<dyn Rushed>> {
    Ok(Box::new(Forgetful {
        pool: HandRolled::open(BOUND),
        says_it_ran,
        forgotten: Vec::new(),
    }))
}

#[test]
fn a_pool_that_loses_a_task_is_detected_whatever_it_reports() {
    let (peak, arrivals) = CALM;
    for open in [(|| forgetful(false)) as Open, || forgetful(true)] {
        let error = rush(open, peak, arrivals).unwrap_err().to_string();
        assert_eq!(error, "1 of 60 tasks were lost");
    }
}

/// Runs tasks that it has rejected.
#[derive(Debug)]
struct TwoFaced(HandRolled);

impl Rushed for TwoFaced {
    fn offer(&mut self, number: usize, came: Instant, task: Job) -> bool {
        self.0.offer(number, came, task) && number != 7
    }

    fn ends(&mut self) -> Vec<(usize, End)> {
        let ends = self.0.ends().into_iter();
        ends.filter(|&(number, _)| number != 7).collect()
    }

    fn close(self: Box<Self>) {
        Box::new(self.0).close();
    }
}

#[test]
fn a_pool_that_runs_a_rejected_task_is_detected() {
    let (peak, arrivals) = CALM;
    let open: Open = || Ok(Box::new(TwoFaced(HandRolled::open(BOUND))));
    let error = rush(open, peak, arrivals).unwrap_err().to_string();
    assert_eq!(error, "task 7 has run, and its pool says Refused");
}

#[test]
fn the_peak_is_what_two_workers_can_do_and_no_more() {
    let peak = peak().unwrap();
    // A task takes a millisecond at least; how much longer is up to the machine.
    assert!(peak > 0.0 && peak <= 2_000.0, "{peak}");
    // And who was there of other languages, if another test has asked for them.
    assert!(notes()[0].starts_with("overload: the peak is "));
    let planned = workload()
        .planned
        .unwrap()
        .arrivals(Duration::from_secs(2))
        .unwrap();
    assert_eq!(planned, (peak * 3.0) as u64);
}

#[test]
fn every_candidate_has_a_name_of_its_own_and_some_are_peers() {
    let names: BTreeSet<_> = ENTRIES.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), ENTRIES.len());
    let is = |wanted| move |entry: &&(_, Standing, _)| entry.1 == wanted;
    assert_eq!(ENTRIES.iter().filter(is(Standing::Ours)).count(), 4);
    assert_eq!(ENTRIES.iter().filter(is(Standing::Peer)).count(), 5);
}

#[test]
fn the_rows_and_the_tables_say_what_became_of_all_tasks() {
    // Fifty times longer: a tenth of a second.
    let settings = Settings {
        rounds: 1,
        round_time: Duration::from_millis(2),
    };
    let found = workload().measure(settings, None, &Silent).unwrap();
    let java = workload().candidates.len() - ENTRIES.len();
    let here = found.rows.len() / 4 + found.absent.len();
    assert_eq!(here, ENTRIES.len() + java);
    let json = serde_json::to_value(&found.rows).unwrap();
    for row in json.as_array().unwrap() {
        assert!(row["fates"]["offered"].as_u64().unwrap() > 0, "{row}");
        assert_eq!(row["fates"]["lost"], 0, "{row}");
        assert_eq!(row["operations"], row["fates"]["offered"], "{row}");
    }
    let text = table::found(&found, Heading::default());
    assert!(
        text.contains("overload: 150 % of the peak: goodput  ("),
        "{text}"
    );
    assert_eq!(text.matches("what became of them").count(), 1, "{text}");
}
