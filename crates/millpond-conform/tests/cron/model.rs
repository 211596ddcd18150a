//! What clock changes do, against a model: the rules once more, minute by minute.
//!
//! `croner` says what a minute of the calendar matches, `jiff` whether it exists once, twice or not at all.
//! The model looks at every minute around a change of clocks and knows nothing of how to search.

use crate::kit::cron;
use crate::proptest_kit::ask;
use crate::random::number;
use croner::CronDateTime;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;

/// Where clocks change, each in its own way: see `clock_changes.rs`.
const ODD_ZONES: &[&str] = &[
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Scoresbysund",
    "Africa/Casablanca",
    "Antarctica/Troll",
];

struct Model {
    cron: croner::Cron,
    zone: TimeZone,
}

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

impl Model {
    fn matches(&self, local: DateTime) -> bool {
        self.cron.is_time_matching(&local).unwrap()
    }

    fn offset(&self, local: DateTime) -> AmbiguousOffset {
        self.zone.to_ambiguous_timestamp(local).offset()
    }

    fn is_gap(&self, local: DateTime) -> bool {
        matches!(self.offset(local), AmbiguousOffset::Gap { .. })
    }

    fn is_fold(&self, local: DateTime) -> bool {
        matches!(self.offset(local), AmbiguousOffset::Fold { .. })
    }

    /// Whether it runs in all hours of this stretch of odd minutes, of that before and of that after.
    fn goes_through(&self, within: DateTime, is_odd: impl Fn(DateTime) -> bool) -> bool {
        let (mut first, mut last) = (within, within);
        while is_odd(first) {
            first -= MINUTE;
        }
        while is_odd(last) {
            last += MINUTE;
        }
        let mut hours = std::iter::successors(Some(first), |time| Some(*time + MINUTE));
        let hours = hours.by_ref().take_while(|time| *time <= last);
        let has = |time: DateTime| {
            self.cron
                .pattern
                .hour_match(time.to_civil().hour())
                .unwrap()
        };
        hours.into_iter().all(has)
    }

    fn runs_at(&self, moment: Timestamp) -> bool {
        let shown = moment.to_zoned(self.zone.clone());
        let local = shown.datetime();
        if let AmbiguousOffset::Fold { after, .. } = self.offset(local) {
            let is_second = shown.offset() == after;
            let counts = !is_second || self.goes_through(local, |time| self.is_fold(time));
            return counts && self.matches(local);
        }
        let before = local - MINUTE;
        if self.is_gap(before) && !self.goes_through(before, |time| self.is_gap(time)) {
            let gap = std::iter::successors(Some(before), |time| Some(*time - MINUTE));
            let mut lost = gap.take_while(|time| self.is_gap(*time));
            if lost.any(|time| self.matches(time)) {
                return true;
            }
        }
        self.matches(local)
    }
}

#[test]
fn around_a_change_it_does_what_the_rules_say() {
    let hours = vec!["22-23,0-2", "23,0,1", "0-5", "1-3", "0,2,4"];
    let hour = prop_oneof![
        4 => number(0, 4),
        1 => number(0, 23),
        1 => select(hours).prop_map(String::from),
    ];
    let day = select(vec!["*", "*", "*", "L", "1-7", "8"]);
    let cases = (number(0, 59), hour, day, select(ODD_ZONES), 0..20_usize);
    ask(300, &cases, |(minute, hour, day, zone, nth)| {
        let expression = format!("{minute} {hour} {day} * *");
        let model = Model {
            cron: expression.parse().unwrap(),
            zone: TimeZone::get(zone).unwrap(),
        };
        let since: Timestamp = "2015-01-01T00:00Z".parse().unwrap();
        let change = model.zone.following(since).nth(nth).unwrap().timestamp();
        let around = SignedDuration::from_hours(8);
        let (first, last) = (change - around, change + around);
        let minutes = std::iter::successors(Some(first), |time| Some(*time + MINUTE));
        let expected: Vec<_> = minutes
            .take_while(|time| *time < last)
            .filter(|time| model.runs_at(*time))
            .collect();
        let cron = cron(&expression, zone);
        let found: Vec<_> = cron
            .upcoming((first - SignedDuration::from_nanos(1)).into())
            .map(|time| Timestamp::try_from(time).unwrap())
            .take_while(|time| *time < last)
            .collect();
        let differ = found
            .iter()
            .zip(&expected)
            .find(|(found, expected)| found != expected);
        assert_eq!(differ, None, "{expression} in {zone} at {change}");
        assert_eq!(
            found.len(),
            expected.len(),
            "{expression} in {zone} at {change}"
        );
        // From wherever one begins to look, and in either half of a repeat.
        let mut from = change - SignedDuration::from_mins(150);
        while from < change + SignedDuration::from_mins(150) {
            let next = cron
                .next_after(from.into())
                .map(|time| Timestamp::try_from(time).unwrap());
            let expected = expected.iter().find(|time| **time > from);
            if next.is_some_and(|next| next < last) || expected.is_some() {
                assert_eq!(
                    next.as_ref(),
                    expected,
                    "{expression} in {zone} after {from}"
                );
            }
            from += SignedDuration::from_mins(15);
        }
    });
}
