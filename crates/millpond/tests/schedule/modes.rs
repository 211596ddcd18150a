//! What "every five seconds" means.

use crate::kit::{Bench, Diary, HOUR, SECOND};
use millpond::schedule::{Catchup, Every, Overlap};
use millpond::time::{Deadline, ManualClock};
use std::time::Duration;

/// A run that is noted, and takes so many seconds, each in turn; the last one again and again.
fn taking(
    diary: &Diary,
    manual: &ManualClock,
    seconds: &'static [u32],
) -> impl FnMut() + Send + 'static {
    let (diary, manual, mut run) = (diary.clone(), manual.clone(), 0);
    move || {
        diary.note("run");
        let takes = seconds[run.min(seconds.len() - 1)];
        run += 1;
        for _ in 0..takes {
            manual.advance(SECOND);
        }
    }
}

const FIVE: Duration = Duration::from_secs(5);

#[test]
fn a_fixed_rate_counts_from_due_time_to_due_time() {
    let bench = Bench::new();
    let run = taking(&bench.diary, &bench.manual, &[2]);
    bench
        .timers
        .schedule_at_fixed_rate(SECOND, FIVE, run)
        .unwrap();
    bench.pass_until(20);
    assert_eq!(bench.diary.times("run"), [1, 6, 11, 16]);
}

#[test]
fn a_fixed_delay_counts_from_the_end_of_the_run_before() {
    let bench = Bench::new();
    let run = taking(&bench.diary, &bench.manual, &[2]);
    bench
        .timers
        .schedule_with_fixed_delay(SECOND, FIVE, run)
        .unwrap();
    bench.pass_until(20);
    assert_eq!(bench.diary.times("run"), [1, 8, 15]);
}

fn rate(overlap: Overlap, catchup: Catchup, takes: &'static [u32], pass: u64) -> Vec<u64> {
    let bench = Bench::new();
    let run = taking(&bench.diary, &bench.manual, takes);
    let series = bench.timers.series(Every::rate(FIVE)).first_after(FIVE);
    series.overlap(overlap).catchup(catchup).start(run).unwrap();
    bench.pass_until(pass);
    bench.diary.times("run")
}

#[test]
fn after_a_run_that_took_too_long_all_the_missed_ones_come_at_once() {
    // Due at 5, 10, 15, 20, 25; the first one takes until 17.
    let times = rate(Overlap::Queue, Catchup::All, &[12, 0], 26);
    assert_eq!(times, [5, 17, 17, 20, 25]);
}

#[test]
fn or_none_of_them() {
    let times = rate(Overlap::Queue, Catchup::Skip, &[12, 0], 26);
    assert_eq!(times, [5, 20, 25]);
}

#[test]
fn or_the_series_is_shifted() {
    let times = rate(Overlap::Queue, Catchup::Delay, &[12, 0], 28);
    assert_eq!(times, [5, 22, 27]);
}

#[test]
fn a_run_that_ends_exactly_when_the_next_is_due_is_not_late() {
    for catchup in [Catchup::All, Catchup::Skip, Catchup::Delay] {
        let times = rate(Overlap::Queue, catchup, &[5, 0], 21);
        assert_eq!(times, [5, 10, 15, 20]);
    }
}

/// The machine sleeps for seventeen seconds.
fn paused(overlap: Overlap, catchup: Catchup) -> Vec<u64> {
    let bench = Bench::new();
    let run = taking(&bench.diary, &bench.manual, &[0]);
    let series = bench.timers.series(Every::rate(FIVE)).first_after(FIVE);
    series.overlap(overlap).catchup(catchup).start(run).unwrap();
    bench.pass(6);
    bench.manual.advance(17 * SECOND);
    bench.pass(8);
    bench.diary.times("run")
}

#[test]
fn after_a_pause_the_late_run_takes_place_and_the_choice_is_about_those_behind_it() {
    for overlap in [Overlap::Queue, Overlap::Skip] {
        assert_eq!(paused(overlap, Catchup::All), [5, 23, 23, 23, 25, 30]);
        assert_eq!(paused(overlap, Catchup::Skip), [5, 23, 25, 30]);
        assert_eq!(paused(overlap, Catchup::Delay), [5, 23, 28]);
    }
}

#[test]
fn a_maximal_delay_is_never_and_blocks_nobody() {
    let bench = Bench::new();
    let run = taking(&bench.diary, &bench.manual, &[0]);
    let series = bench
        .timers
        .schedule_with_fixed_delay(SECOND, Duration::MAX, run)
        .unwrap();
    let beat = taking(&bench.diary, &bench.manual, &[0]);
    bench
        .timers
        .schedule_at_fixed_rate(Duration::MAX, FIVE, beat)
        .unwrap();
    bench.pass(1);
    bench.manual.advance(HOUR);
    assert_eq!(bench.diary.times("run"), [1]);
    assert_eq!(series.next_run(), Deadline::NEVER);
    let task = bench.timers.schedule(SECOND, || ()).unwrap();
    bench.pass(1);
    assert!(task.is_finished());
}

#[test]
fn a_period_of_zero_is_rejected_with_a_reason() {
    let bench = Bench::new();
    let zero = Duration::ZERO;
    let rejected = bench
        .timers
        .schedule_at_fixed_rate(zero, zero, || ())
        .unwrap_err();
    assert!(rejected.to_string().contains("a period of 0"), "{rejected}");
    let rejected = bench
        .timers
        .schedule_with_fixed_delay(zero, zero, || ())
        .unwrap_err();
    assert!(rejected.to_string().contains("a delay of 0"), "{rejected}");
    assert_eq!(bench.timers.snapshot().series, 0);
}

#[test]
fn runs_that_may_overlap_need_a_closure_that_threads_can_share() {
    let bench = Bench::new();
    let series = || {
        bench
            .timers
            .series(Every::rate(FIVE))
            .overlap(Overlap::Concurrent)
    };
    let rejected = series().start(|| ()).unwrap_err();
    assert!(rejected.to_string().contains("start_shared"), "{rejected}");
    series().start_shared(|| ()).unwrap();
}

#[test]
fn a_handle_knows_its_series() {
    let bench = Bench::new();
    let run = taking(&bench.diary, &bench.manual, &[0]);
    let mut series = bench
        .timers
        .series(Every::rate(FIVE))
        .name("beat")
        .start(run)
        .unwrap();
    assert_eq!((series.name(), series.runs()), (Some("beat"), 0));
    assert_eq!(series.last_outcome(), None);
    bench.pass(12);
    assert_eq!(
        (series.runs(), series.failures(), series.skipped()),
        (2, 0, 0)
    );
    assert_eq!(series.last_outcome().unwrap().to_string(), "completed");
    assert_eq!(series.lateness(), Some(Duration::ZERO));
    assert_eq!(series.next_run(), bench.manual.clock().deadline(3 * SECOND));
    assert!(!series.is_finished());
    assert!(series.cancel());
    assert_eq!(series.next_run(), Deadline::NEVER);
    bench.pass(20);
    assert_eq!(series.runs(), 2);
    assert!(series.join().unwrap_err().is_cancelled());
}
