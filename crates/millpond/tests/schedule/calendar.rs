//! Series by the calendar.

#![cfg(feature = "cron")]

use crate::kit::{Bench, Diary, HOUR, SECOND};
use millpond::executor::Lifecycle;
use millpond::schedule::{Backoff, Catchup, Cron, Every, OnFailure};
use std::time::{Duration, SystemTime};

const MINUTE: Duration = Duration::from_secs(60);

/// Midnight, some day.
fn midnight() -> SystemTime {
    SystemTime::UNIX_EPOCH + 20_000 * 24 * HOUR
}

fn noting(diary: &Diary) -> impl FnMut() + Send + 'static {
    let diary = diary.clone();
    move || diary.note("run")
}

fn at(expression: &str) -> Every {
    Every::cron(Cron::parse(expression).unwrap())
}

#[test]
fn a_job_runs_when_the_wall_clock_says_so() {
    let bench = Bench::new();
    bench.manual.set_wall(midnight() + 7 * SECOND);
    let series = bench
        .timers
        .schedule_cron(Cron::parse("*/5 * * * *").unwrap(), noting(&bench.diary));
    let series = series.unwrap();
    assert_eq!(
        series.next_run(),
        bench.manual.clock().deadline(293 * SECOND)
    );
    bench.pass(900);
    assert_eq!(bench.diary.times("run"), [293, 593, 893]);
    assert_eq!(bench.timers.upcoming(1)[0].repeats, "*/5 * * * * (UTC)");
}

#[test]
fn a_clock_that_is_set_forward_is_noticed_within_a_minute() {
    let bench = Bench::new();
    bench.manual.set_wall(midnight());
    bench
        .timers
        .series(at("0 12 * * *"))
        .start(noting(&bench.diary))
        .unwrap();
    bench.pass(10);
    bench.manual.set_wall(midnight() + 12 * HOUR + SECOND);
    bench.manual.advance(MINUTE);
    assert_eq!(bench.diary.times("run").len(), 1);
}

#[test]
fn a_clock_that_is_set_back_lets_its_times_come_again() {
    let bench = Bench::new();
    bench.manual.set_wall(midnight() + 12 * HOUR - SECOND);
    bench
        .timers
        .series(at("0 * * * *"))
        .start(noting(&bench.diary))
        .unwrap();
    bench.pass(2);
    assert_eq!(bench.diary.times("run"), [1]);
    // Half an hour back: noon comes again, and then one.
    let set_back = 11 * HOUR + 30 * MINUTE;
    bench.manual.set_wall(midnight() + set_back);
    for _ in 0..95 {
        bench.manual.advance(MINUTE);
    }
    let at = |minutes: u64| 2 + minutes * 60;
    assert_eq!(bench.diary.times("run"), [1, at(30), at(90)]);
}

#[test]
fn times_that_were_missed_are_left_out_or_made_up_for() {
    for (catchup, runs) in [
        (None, 2),
        (Some(Catchup::All), 5),
        (Some(Catchup::Delay), 2),
    ] {
        let bench = Bench::new();
        bench.manual.set_wall(midnight());
        let mut series = bench.timers.series(at("0 * * * *"));
        if let Some(catchup) = catchup {
            series = series.catchup(catchup);
        }
        series.start(noting(&bench.diary)).unwrap();
        bench.manual.advance(HOUR);
        bench.manual.advance(4 * HOUR + MINUTE);
        assert_eq!(bench.diary.times("run").len(), runs, "{catchup:?}");
    }
}

#[test]
fn another_try_waits_for_its_pause_and_not_for_a_look_at_the_wall_clock() {
    let bench = Bench::new();
    bench.manual.set_wall(midnight());
    let (diary, mut fails) = (bench.diary.clone(), true);
    bench
        .timers
        .series(at("0 * * * *"))
        .on_failure(OnFailure::Retry(Backoff::starting_at(5 * MINUTE)))
        .start(move || {
            diary.note("run");
            if std::mem::take(&mut fails) {
                Err("no water")
            } else {
                Ok(())
            }
        })
        .unwrap();
    for _ in 0..121 {
        bench.manual.advance(MINUTE);
    }
    assert_eq!(bench.diary.times("run"), [3600, 3900, 7200]);
    drop(bench.timers.shutdown_now());
}
