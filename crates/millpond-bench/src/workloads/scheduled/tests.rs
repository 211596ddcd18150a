use super::*;
use crate::harness::Absent;
use crate::peers::guest::{Language, Order};
use crate::peers::pool::WORKERS;
use std::collections::BTreeSet;

/// So few that nothing takes long, and more than are kept before they are cancelled.
const TIMERS: u64 = 1_500;

#[test]
fn every_candidate_does_every_work_that_fits_it_and_accounts_for_every_timer() {
    for (work, entry) in all() {
        let name = format!("{}: {}", work.name(), entry.name);
        let operations = match work {
            Work::Hour => 3,
            // As long as the others take.
            Work::Firing(rate) => (rate / 50).clamp(1, TIMERS),
            Work::Fill | Work::CancelAll | Work::Pending | Work::Memory => TIMERS,
        };
        // Here, even if each would have a process of its own: that is what tests/alone.rs is for.
        let done = match entry.run {
            Runner::Here(_) if work == Work::Hour => continue,
            Runner::Here(run) => run(work, operations),
            Runner::Abroad(executor) => executor.run(work, operations),
        };
        let sample = match done {
            Ok(sample) => sample,
            Err(error) if error.is::<Absent>() => {
                eprintln!("skipped: {name}: {error}");
                continue;
            }
            Err(error) => panic!("{name}: {error:#}"),
        };
        let expected = match work {
            Work::Pending => operations / 10,
            Work::Fill | Work::CancelAll | Work::Firing(_) | Work::Memory | Work::Hour => {
                operations
            }
        };
        assert_eq!(sample.operations, expected, "{name}");
        assert!(!sample.elapsed.is_zero(), "{name}");
        for figure in work.figures() {
            assert!((figure.of)(&sample).is_some(), "{name}: {figure:?}");
        }
        // A latency without its price is half of the truth. (Here threads of other tests come and go, and then nothing
        // is known of those of this process.)
        let is_asked =
            !work.is_alone() && matches!(entry.run, Runner::Abroad(_)) && cfg!(target_os = "linux");
        assert!(sample.usage.cpu.is_some() || !is_asked, "{name}");
    }
}

fn all() -> impl Iterator<Item = (Work, &'static Entry)> {
    works().into_iter().flat_map(|work| {
        let fitting = ENTRIES.iter().filter(move |entry| (entry.fits)(work));
        fitting.map(move |entry| (work, entry))
    })
}

#[test]
fn every_work_has_ours_a_peer_here_and_two_languages_abroad() {
    for work in works() {
        let names: Vec<_> = all()
            .filter(|(its, entry)| *its == work && entry.standing != Standing::Ours)
            .map(|(_, entry)| entry.name)
            .collect();
        for peer in ["tokio sleep", "Java STPE", "Java 25 STPE", "Go AfterFunc"] {
            assert!(names.contains(&peer), "{work:?}: {names:?}");
        }
        assert!(workload(work).candidates.len() > names.len(), "{work:?}");
    }
}

#[test]
fn a_quick_run_has_fewer_timers_and_a_warm_up_next_to_none() {
    let operations = |work: Work| {
        let rounds = [Settings::FULL, Settings::QUICK].map(|settings| settings.round_time);
        let times = [rounds[0], rounds[1], rounds[0] / 20];
        times.map(|time| work.operations(time * work.stretch()))
    };
    for work in [Work::Fill, Work::CancelAll, Work::Pending] {
        assert_eq!(operations(work), [1_000_000, 100_000, 2_000], "{work:?}");
    }
    assert_eq!(operations(Work::Firing(100_000)), [100_000, 20_000, 1_000]);
    assert_eq!(operations(Work::Firing(10)), [10, 2, 1]);
    assert_eq!(operations(Work::Memory), [1_000_000, 100_000, 2_000]);
    assert_eq!(operations(Work::Hour), [1_000, 100, 1]);
}

#[test]
fn an_order_for_an_unknown_candidate_or_workload_is_an_error() {
    let obey = |order: &str| {
        let order = Order::parse(order).unwrap();
        alone::obey(&order).map_err(|error| error.to_string())
    };
    let timers = obey("run memory tokio-sleep 1 20 0").unwrap().operations;
    assert_eq!(timers, 20);
    let error = obey("run mill tokio-sleep 1 20 0").unwrap_err();
    assert_eq!(error, "there is no work mill");
    let error = obey("run memory pond 1 20 0").unwrap_err();
    assert_eq!(error, "there is no executor pond");
    let error = obey("run memory Java-STPE 1 20 0").unwrap_err();
    assert_eq!(error, "Java STPE is a guest itself");
}

#[test]
fn ours_is_the_scheduled_pool() {
    let names: BTreeSet<_> = ENTRIES.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), ENTRIES.len());
    let ours: Vec<_> = ENTRIES
        .iter()
        .filter(|entry| entry.standing == Standing::Ours)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(ours, ["millpond"]);
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
fn timers_that_fire_early_are_detected() {
    let error = firing::run::<Hasty>(1_000, 20).unwrap_err().to_string();
    assert_eq!(error, "20 of 20 tasks ran before they were due");
    let error = pending::run::<Hasty>(20).unwrap_err().to_string();
    assert_eq!(error, "0 tasks were submitted and 1022 ran");
    for timed in [filling::Timed::Filling, filling::Timed::Cancelling] {
        let error = filling::run::<Hasty>(timed, 20).unwrap_err().to_string();
        assert_eq!(error, "20 tasks ran, and no more than 0 should have");
    }
}

#[test]
fn every_guest_has_the_same_sizes() {
    let nanos = |time: Duration| time.as_nanos();
    for program in [abroad::java(Language::Java), abroad::IN_GO] {
        for (name, value) in [
            ("WORKERS", WORKERS as u128),
            ("LATER", pending::LATER as u128),
            ("SHARE", pending::SHARE.into()),
            ("FAR_NANOS", nanos(far::FAR)),
            ("NEAREST_NANOS", nanos(filling::NEAREST)),
            ("FARTHEST_NANOS", nanos(filling::FARTHEST)),
            ("LEAD_NANOS", nanos(firing::LEAD)),
            ("LEAST_LEAD_NANOS", nanos(firing::LEAST_LEAD)),
            ("LEAD_NANOS_EACH", nanos(firing::LEAD_EACH)),
            ("WAVES", memory::WAVES.into()),
        ] {
            let file = program.file;
            assert_eq!(program.size(name), Some(value), "{name} in {file}");
        }
    }
}
