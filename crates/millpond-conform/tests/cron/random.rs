//! Expressions, times and zones at random, against models.
//!
//! `MILLPOND_SEED` runs one seed again.

use crate::kit::{cron, local};
use crate::proptest_kit::ask;
use millpond::schedule::Cron;
use proptest::prelude::*;
use proptest::sample::select;
use std::time::{Duration, SystemTime};

const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Havana",
    "America/Scoresbysund",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Pacific/Apia",
    "Asia/Kathmandu",
];

/// Between 1990 and 2060, to the nanosecond.
fn times() -> impl Strategy<Value = SystemTime> {
    (631_152_000..2_840_140_800_u64, 0..1_000_000_000_u32)
        .prop_map(|(seconds, nanos)| SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos))
}

pub(crate) fn number(low: u8, high: u8) -> BoxedStrategy<String> {
    let one = low..=high;
    prop_oneof![
        4 => Just("*".to_string()),
        4 => one.clone().prop_map(|n| n.to_string()),
        2 => (2..=high).prop_map(|step| format!("*/{step}")),
        2 => (one.clone(), one.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (one.clone(), one.clone(), 1..=high)
            .prop_map(|(a, b, step)| format!("{}-{}/{step}", a.min(b), a.max(b))),
        2 => prop::collection::vec(one, 1..5)
            .prop_map(|list| list.iter().map(u8::to_string).collect::<Vec<_>>().join(",")),
    ]
    .boxed()
}

/// Expressions of all kinds that exist, some of which never come.
fn expressions() -> impl Strategy<Value = String> {
    let day = prop_oneof![
        2 => Just("*".to_string()),
        2 => number(1, 31),
        1 => select(vec!["L", "LW", "15W", "1W", "31W", "1,L", "?"]).prop_map(String::from),
    ];
    let month = prop_oneof![
        3 => Just("*".to_string()),
        1 => number(1, 12),
        1 => select(vec!["FEB", "jan-mar", "Apr,Oct"]).prop_map(String::from),
    ];
    let weekday = prop_oneof![
        3 => Just("*".to_string()),
        1 => number(0, 6),
        1 => select(vec!["MON-FRI", "+TUE", "SUN", "5L", "1#2", "FRI-SUN", "+1-5", "0#5"]).prop_map(String::from),
    ];
    let second = prop::option::weighted(0.3, number(0, 59));
    (second, number(0, 59), number(0, 23), day, month, weekday).prop_map(
        |(second, minute, hour, day, month, weekday)| {
            let second = second.map(|second| second + " ").unwrap_or_default();
            format!("{second}{minute} {hour} {day} {month} {weekday}")
        },
    )
}

#[test]
fn no_text_makes_it_panic() {
    let anything = prop_oneof![
        10 => any::<String>(),
        10 => "[-*/,#?+@LW0-9A-Za-z \t]{0,60}",
        10 => "([*0-9LW#/,?-]{1,5} ){4,6}[*0-9L#+-]{1,4}",
        1 => "[ -~]{900,1100}",
    ];
    ask(3_000, &anything, |text| match Cron::parse(&text) {
        Ok(cron) => drop(cron.next_after(SystemTime::UNIX_EPOCH)),
        Err(error) => {
            let said = error.to_string();
            assert!(said.len() < 2000 && !said.contains('\n'), "{said}");
        }
    });
}

#[test]
fn no_name_of_a_zone_makes_it_panic() {
    ask(500, &any::<String>(), |name| {
        let daily = Cron::parse("@daily").unwrap();
        drop(daily.in_zone(&name).map_err(|error| error.to_string()));
    });
}

/// The expression in the zone; `None` if it never comes, which is all that may be wrong with these.
fn coming(expression: &str, zone: &str) -> Option<Cron> {
    match Cron::parse(expression) {
        Ok(_) => Some(cron(expression, zone)),
        Err(error) => {
            assert!(error.to_string().contains("it would never run"), "{error}");
            None
        }
    }
}

/// From any moment before it, after the last one, the next one is the same: none is passed over.
#[test]
fn the_next_one_is_strictly_after_and_none_is_passed_over() {
    let cases = (expressions(), select(ZONES), times(), 0.0..1.0_f64);
    ask(1_000, &cases, |(expression, zone, time, part)| {
        let Some(cron) = coming(&expression, zone) else {
            return;
        };
        let next = cron.next_after(time).expect("what was taken comes");
        assert!(next > time, "{cron} after {time:?}");
        let between = time + next.duration_since(time).unwrap().mul_f64(part);
        if between < next {
            assert_eq!(
                cron.next_after(between),
                Some(next),
                "{cron} after {between:?}"
            );
        }
        let after = cron.next_after(next);
        assert!(
            after.is_none_or(|after| after > next),
            "{cron} after {next:?}"
        );
    });
}

/// Where clocks do not change, croner's own search finds the same.
#[test]
fn without_changes_it_is_what_croner_finds() {
    let cases = (expressions(), select(&["UTC", "Asia/Kolkata"][..]), times());
    ask(500, &cases, |(expression, zone, time)| {
        let theirs: croner::Cron = expression.parse().unwrap();
        let from = local(time, zone).datetime();
        let from = from.with().subsec_nanosecond(0).build().unwrap();
        // To find out that there is none takes it long.
        let Some(ours) = coming(&expression, zone) else {
            return;
        };
        let ours: Vec<_> = ours
            .upcoming(time)
            .take(5)
            .map(|time| local(time, zone).datetime())
            .collect();
        let theirs: Vec<_> = theirs.iter_after(from).take(ours.len()).collect();
        assert_eq!(ours, theirs, "{expression} after {from}");
    });
}
