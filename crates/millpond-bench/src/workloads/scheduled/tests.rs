use super::*;
use crate::harness::Absent;
use std::collections::BTreeSet;

/// So few that nothing takes long, and more than are kept before they are cancelled.
const TIMERS: u64 = 1_500;

#[test]
fn every_candidate_does_every_work_and_its_books_balance() {
    for work in WORKS {
        for candidate in &workload(work).candidates {
            let name = format!("{}: {}", work.name(), candidate.name);
            let sample = match (candidate.run)(TIMERS) {
                Ok(sample) => sample,
                Err(error) if error.is::<Absent>() => {
                    eprintln!("skipped: {name}: {error}");
                    continue;
                }
                Err(error) => panic!("{name}: {error:#}"),
            };
            let expected = match work {
                Work::Pending => TIMERS / 10,
                Work::Firing => TIMERS,
            };
            assert_eq!(sample.operations, expected, "{name}");
            assert!(!sample.elapsed.is_zero(), "{name}");
            for figure in work.figures() {
                assert!((figure.of)(&sample).is_some(), "{name}: {figure:?}");
            }
        }
    }
}

#[test]
fn a_quick_run_has_fewer_timers_and_a_warm_up_next_to_none() {
    let timers = |work: Work| {
        let rounds = [Settings::FULL, Settings::QUICK].map(|settings| settings.round_time);
        [rounds[0], rounds[1], rounds[0] / 20].map(|time| work.timers(time))
    };
    assert_eq!(timers(Work::Pending), [1_000_000, 100_000, 2_000]);
    assert_eq!(timers(Work::Firing), [100_000, 20_000, 1_000]);
}

#[test]
fn ours_is_named_after_what_it_is_today() {
    let names: BTreeSet<_> = ENTRIES.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), ENTRIES.len());
    let ours: Vec<_> = ENTRIES
        .iter()
        .filter(|entry| entry.standing == Standing::Ours)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(ours, ["millpond delay queue"]);
}

/// Fires everything at once, whenever it is due.
#[derive(Debug)]
struct Hasty;

impl Timers for Hasty {
    const NAME: &'static str = "hasty";
    type Ticket = ();

    fn open() -> Result<Self> {
        Ok(Hasty)
    }

    fn schedule<F: FnOnce() + Send + 'static>(&mut self, _due: std::time::Instant, task: F) {
        task();
    }

    fn cancel(&mut self, _ticket: ()) {}

    fn close(self) {}
}

#[test]
fn timers_that_fire_before_their_time_are_found_out() {
    let error = firing::run::<Hasty>(20).unwrap_err().to_string();
    assert_eq!(error, "20 of 20 tasks ran before they were due");
    let error = pending::run::<Hasty>(20).unwrap_err().to_string();
    assert_eq!(error, "0 tasks were submitted and 1022 ran");
}

#[test]
fn java_has_the_same_sizes() {
    const SOURCE: &str = include_str!("../../../java/ScheduledBench.java");
    for (name, value) in [
        ("WORKERS", crate::peers::pool::WORKERS.to_string()),
        ("LATER", "1_000".into()),
        ("SHARE", "10".into()),
        ("FAR_NANOS", "3_600_000_000_000L".into()),
        ("LEAD_NANOS", "250_000_000".into()),
        ("WITHIN_NANOS", "1_000_000_000".into()),
    ] {
        let line = format!(" {name} = {value};");
        assert!(SOURCE.contains(&line), "there is no {line:?}");
    }
    assert_eq!(pending::LATER, 1_000);
    assert_eq!(firing::LEAD, Duration::from_nanos(250_000_000));
    assert_eq!(firing::WITHIN, Duration::from_nanos(1_000_000_000));
}
