//! Times that a person can read.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use millpond::schedule::Cron;
use std::time::SystemTime;

pub(crate) fn cron(expression: &str, zone: &str) -> Cron {
    let cron = Cron::parse(expression).unwrap_or_else(|error| panic!("{error}"));
    cron.in_zone(zone).unwrap_or_else(|error| panic!("{error}"))
}

/// This moment on the clocks of the zone, the first if there are two.
pub(crate) fn at(local: &str, zone: &str) -> SystemTime {
    let zone = TimeZone::get(zone).unwrap();
    let local: DateTime = local.parse().unwrap();
    let moment = zone.to_ambiguous_timestamp(local).compatible().unwrap();
    moment.into()
}

/// What the clocks of the zone show, and how far they are from UTC.
pub(crate) fn local(time: SystemTime, zone: &str) -> Zoned {
    Timestamp::try_from(time)
        .unwrap()
        .to_zoned(TimeZone::get(zone).unwrap())
}

/// All runs from a moment until another one, this one excluded, by the clocks of the zone.
pub(crate) fn runs(expression: &str, zone: &str, from: &str, until: &str) -> Vec<String> {
    let end = at(until, zone);
    let just_before = at(from, zone) - std::time::Duration::from_nanos(1);
    cron(expression, zone)
        .upcoming(just_before)
        .take_while(|time| *time < end)
        .map(|time| local(time, zone).strftime("%d. %H:%M %:z").to_string())
        .collect()
}

/// The days of the first `count` runs after a moment, in UTC.
pub(crate) fn days(expression: &str, after: &str, count: usize) -> Vec<String> {
    cron(expression, "UTC")
        .upcoming(at(after, "UTC"))
        .take(count)
        .map(|time| local(time, "UTC").strftime("%Y-%m-%d").to_string())
        .collect()
}
