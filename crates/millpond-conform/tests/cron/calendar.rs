//! Which days an expression means, and where it ends.

use crate::kit::{at, cron, days, local, runs};
use millpond::schedule::Cron;
use std::time::{Duration, SystemTime};

#[test]
fn a_leap_day_comes_every_four_years_and_not_in_2100() {
    assert_eq!(
        days("0 0 29 2 *", "2026-11-16T00:00", 3),
        ["2028-02-29", "2032-02-29", "2036-02-29"]
    );
    assert_eq!(days("0 0 29 2 *", "2096-03-01T00:00", 1), ["2104-02-29"]);
    // The longest that anything takes: 40 years.
    assert_eq!(days("0 0 29 2 +TUE", "2084-03-01T00:00", 1), ["2124-02-29"]);
}

#[test]
fn the_last_day_of_a_month_is_the_last() {
    assert_eq!(
        days("0 0 L * *", "2028-01-15T00:00", 3),
        ["2028-01-31", "2028-02-29", "2028-03-31"]
    );
    // 28 February 2026 is a Saturday, 31 May a Sunday.
    assert_eq!(
        days("0 0 LW 2,5 *", "2026-01-01T00:00", 2),
        ["2026-02-27", "2026-05-29"]
    );
}

#[test]
fn the_nearest_day_from_monday_to_friday_stays_in_its_month() {
    // 15 August 2026 is a Saturday, 15 November a Sunday.
    assert_eq!(
        days("0 0 15W 8,11 *", "2026-01-01T00:00", 2),
        ["2026-08-14", "2026-11-16"]
    );
    // 1 August 2026 is a Saturday, 31 May a Sunday.
    assert_eq!(days("0 0 1W 8 *", "2026-01-01T00:00", 1), ["2026-08-03"]);
    assert_eq!(days("0 0 31W 5 *", "2026-01-01T00:00", 1), ["2026-05-29"]);
}

#[test]
fn a_weekday_can_be_the_second_or_the_last_of_its_month() {
    assert_eq!(
        days("0 0 * * MON#2", "2026-11-01T00:00", 2),
        ["2026-11-09", "2026-12-14"]
    );
    assert_eq!(
        days("0 0 * * 5L", "2026-11-01T00:00", 2),
        ["2026-11-27", "2026-12-25"]
    );
    assert_eq!(
        days("0 0 * * FRI#5", "2026-11-01T00:00", 2),
        ["2027-01-29", "2027-04-30"]
    );
    for sunday in ["7L", "0L", "SUNL", "sun#L", "7#L"] {
        let expression = format!("0 0 * * {sunday}");
        assert_eq!(
            days(&expression, "2026-11-01T00:00", 1),
            ["2026-11-29"],
            "{sunday}"
        );
    }
}

#[test]
fn sunday_is_zero_and_seven() {
    for weekend in ["SAT-SUN", "6-7", "6,0", "6,7", "sat,sun", "SAT-0", "0,6"] {
        assert_eq!(
            days(&format!("0 0 * * {weekend}"), "2026-11-16T00:00", 3),
            ["2026-11-21", "2026-11-22", "2026-11-28"],
            "{weekend}"
        );
    }
    assert_eq!(
        days("0 0 * * SUN-MON", "2026-11-16T00:00", 2),
        ["2026-11-22", "2026-11-23"]
    );
}

#[test]
fn day_or_weekday_is_either_and_with_a_plus_it_is_both() {
    assert_eq!(
        days("0 0 13 * FRI", "2026-11-01T00:00", 3),
        ["2026-11-06", "2026-11-13", "2026-11-20"]
    );
    assert_eq!(
        days("0 0 13 * +FRI", "2026-11-01T00:00", 2),
        ["2026-11-13", "2027-08-13"]
    );
    assert_eq!(days("0 0 ? * MON", "2026-11-16T00:00", 1), ["2026-11-23"]);
}

#[test]
fn nicknames_are_what_they_stand_for() {
    let nicknames = [
        ("@hourly", "0 * * * *"),
        ("@Daily", "0 0 * * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        (" @ANNUALLY ", "0 0 1 1 *"),
    ];
    let now = at("2026-11-16T09:00", "UTC");
    for (nickname, spelled_out) in nicknames {
        let times = |expression| {
            cron(expression, "UTC")
                .upcoming(now)
                .take(30)
                .collect::<Vec<_>>()
        };
        assert_eq!(times(nickname), times(spelled_out), "{nickname}");
    }
}

#[test]
fn seconds_may_be_left_out_and_are_none_then() {
    assert_eq!(
        runs(
            "0 */20 9 * * *",
            "UTC",
            "2026-11-16T00:00",
            "2026-11-17T00:00"
        ),
        runs(
            "*/20 9 * * *",
            "UTC",
            "2026-11-16T00:00",
            "2026-11-17T00:00"
        )
    );
    let now = at("2026-11-16T09:00:00", "UTC");
    let next = cron("*/10 * * * * *", "UTC").next_after(now + Duration::from_millis(10_500));
    assert_eq!(next, Some(now + Duration::from_secs(20)));
}

#[test]
fn an_expression_that_never_matches_is_an_error_at_once_with_the_reason() {
    for never in [
        "0 0 30 2 *",
        "0 0 31 2 *",
        "0 0 31 feb ?",
        "0 0 31 2,4,6,9,11 *",
        "0 0 30W 2 *",
        "* * * 31 4 *",
        "0 0 1-7 * +MON#5",
        "0 0 30 2 +MON",
    ] {
        let clock = millpond::time::Clock::system();
        let quickest = (0..3).map(|_| {
            let begun = clock.now();
            let error = Cron::parse(never).unwrap_err();
            let said = format!(
                "cron {never:?}: it would never run: no date has this combination of day, month and weekday; \
                 February has at most 29 days, and April, June, September and November have 30"
            );
            assert_eq!(error.to_string(), said);
            assert_eq!(error.expression(), never);
            clock.now() - begun
        });
        // The longest search there is: 400 years, day by day.
        let took = quickest.min().unwrap();
        assert!(took < Duration::from_secs(1), "{never}: {took:?}");
    }
}

#[test]
fn an_expression_that_matches_once_in_a_long_time_is_accepted() {
    // 29 February on a Friday, and the fifth Monday of a February.
    for (rare, day) in [
        ("0 0 29 2 +FRI", "2036-02-29"),
        ("0 0 * 2 MON#5", "2044-02-29"),
        ("0 0 31 2,12 *", "2026-12-31"),
        // A weekday is one of the days, too.
        ("0 0 31 2 MON", "2027-02-01"),
    ] {
        assert_eq!(days(rare, "2026-11-16T00:00", 1), [day], "{rare}");
    }
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    let minutely = cron("* * * * *", "America/New_York");
    let mut times = vec![SystemTime::UNIX_EPOCH];
    for days in [
        1,
        1_000,
        100_000,
        3_000_000,
        4_000_000,
        1_000_000_000,
        100_000_000_000,
    ] {
        let span = Duration::from_secs(86_400 * days);
        times.extend(SystemTime::UNIX_EPOCH.checked_add(span));
        times.extend(SystemTime::UNIX_EPOCH.checked_sub(span));
    }
    for time in times {
        let next = minutely.next_after(time);
        assert!(next.is_none_or(|next| next > time), "{time:?}");
    }
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * 4_000_000);
    assert_eq!(
        minutely.next_after(far),
        None,
        "after the year 9999 nothing comes"
    );
}

#[test]
fn crons_are_equal_if_they_are_spelled_alike_and_in_the_same_zone() {
    let one = Cron::parse("0  0 * * mon").unwrap();
    assert_eq!(one, " 0 0 * * MON".parse().unwrap());
    assert_ne!(one, Cron::parse("0 0 * * 1").unwrap());
    assert_eq!(one, one.clone().in_zone("UTC").unwrap());
    assert_ne!(one, one.clone().in_zone("Europe/Berlin").unwrap());
    assert_eq!(one.to_string(), "0 0 * * MON (UTC)");
    assert_eq!(format!("{one:?}"), "Cron(0 0 * * MON (UTC))");
}

/// The system is asked through `TZ`, in a process of its own: the variable is the whole process's.
#[test]
fn the_local_zone_is_that_of_the_system() {
    const CHILD: &str = "MILLPOND_CRON_CHILD";
    let nightly = Cron::parse("30 2 * * *").unwrap().in_local_zone();
    if std::env::var_os(CHILD).is_some() {
        let next = nightly.next_after(at("2026-03-29T00:30", "UTC")).unwrap();
        println!("<{nightly}> <{}>", local(next, "UTC"));
        return;
    }
    let table = [
        ("Asia/Kolkata", "Asia/Kolkata", "2026-03-29T21:00"),
        ("Europe/Berlin", "Europe/Berlin", "2026-03-29T01:00"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "local", "2026-03-29T01:00"),
        ("Nowhere/Town", "UTC", "2026-03-29T02:30"),
    ];
    for (variable, name, next) in table {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "calendar::the_local_zone_is_that_of_the_system",
                "--nocapture",
            ])
            .env("TZ", variable)
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        let expected = format!("<30 2 * * * ({name})> <{next}:00+00:00[UTC]>");
        assert!(
            said.contains(&expected),
            "TZ={variable}: {said}, not {expected}"
        );
    }
}
