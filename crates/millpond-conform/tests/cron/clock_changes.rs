//! The days on which clocks are put forward or back, and those around them.
//!
//! The first table is that of the documentation of `Cron`.

use crate::kit::{at, cron, runs};
use std::time::{Duration, SystemTime};

const BERLIN: &str = "Europe/Berlin";
const NEW_YORK: &str = "America/New_York";
const LORD_HOWE: &str = "Australia/Lord_Howe";
const KOLKATA: &str = "Asia/Kolkata";

/// From 02:00 to 03:00 on 29 March 2026.
fn spring_in_berlin(expression: &str) -> Vec<String> {
    runs(expression, BERLIN, "2026-03-29T00:00", "2026-03-29T05:00")
}

/// From 03:00 to 02:00 on 25 October 2026.
fn autumn_in_berlin(expression: &str) -> Vec<String> {
    runs(expression, BERLIN, "2026-10-25T00:00", "2026-10-25T05:00")
}

#[test]
fn a_daily_job_runs_when_the_gap_ends_and_in_the_first_half_of_a_repeat() {
    assert_eq!(spring_in_berlin("30 2 * * *"), ["29. 03:00 +02:00"]);
    assert_eq!(autumn_in_berlin("30 2 * * *"), ["25. 02:30 +02:00"]);
    assert_eq!(spring_in_berlin("0 2,14 * * *"), ["29. 03:00 +02:00"]);
    assert_eq!(autumn_in_berlin("0 2,14 * * *"), ["25. 02:00 +02:00"]);
    assert_eq!(spring_in_berlin("59 59 1 * * *"), ["29. 01:59 +01:00"]);
    assert_eq!(spring_in_berlin("0 3 * * *"), ["29. 03:00 +02:00"]);
    assert_eq!(autumn_in_berlin("0 3 * * *"), ["25. 03:00 +01:00"]);
}

#[test]
fn times_that_the_gap_swallows_are_one_run() {
    assert_eq!(spring_in_berlin("*/15 2 * * *"), ["29. 03:00 +02:00"]);
    assert_eq!(spring_in_berlin("* * 2 * * *"), ["29. 03:00 +02:00"]);
    assert_eq!(
        spring_in_berlin("0,30 2,3 * * *"),
        ["29. 03:00 +02:00", "29. 03:30 +02:00"]
    );
    assert_eq!(
        autumn_in_berlin("*/15 2 * * *"),
        [
            "25. 02:00 +02:00",
            "25. 02:15 +02:00",
            "25. 02:30 +02:00",
            "25. 02:45 +02:00"
        ]
    );
}

#[test]
fn a_job_every_two_hours_goes_by_the_time_of_day() {
    assert_eq!(
        spring_in_berlin("0 */2 * * *"),
        ["29. 00:00 +01:00", "29. 03:00 +02:00", "29. 04:00 +02:00"]
    );
    assert_eq!(
        autumn_in_berlin("0 */2 * * *"),
        ["25. 00:00 +02:00", "25. 02:00 +02:00", "25. 04:00 +01:00"]
    );
}

#[test]
fn a_job_in_every_hour_around_a_change_goes_by_intervals() {
    for hourly in ["0 * * * *", "0 0-4 * * *", "0 0 1-3,0,4 * * *", "@hourly"] {
        assert_eq!(
            spring_in_berlin(hourly),
            [
                "29. 00:00 +01:00",
                "29. 01:00 +01:00",
                "29. 03:00 +02:00",
                "29. 04:00 +02:00"
            ],
            "{hourly}"
        );
        assert_eq!(
            autumn_in_berlin(hourly),
            [
                "25. 00:00 +02:00",
                "25. 01:00 +02:00",
                "25. 02:00 +02:00",
                "25. 02:00 +01:00",
                "25. 03:00 +01:00",
                "25. 04:00 +01:00"
            ],
            "{hourly}"
        );
    }
    assert_eq!(
        spring_in_berlin("30 * * * *"),
        [
            "29. 00:30 +01:00",
            "29. 01:30 +01:00",
            "29. 03:30 +02:00",
            "29. 04:30 +02:00"
        ]
    );
    assert_eq!(
        autumn_in_berlin("30 1-3 * * *"),
        [
            "25. 01:30 +02:00",
            "25. 02:30 +02:00",
            "25. 02:30 +01:00",
            "25. 03:30 +01:00"
        ]
    );
}

#[test]
fn an_interval_that_divides_the_change_stays_as_long_as_ever() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let intervals = [
        ("*/15 * * * *", minutes(15)),
        ("*/30 * * * *", minutes(30)),
        ("7-59/10 * * * *", minutes(10)),
        ("* * * * *", minutes(1)),
        ("*/20 * * * * *", Duration::from_secs(20)),
    ];
    let changes = [
        (BERLIN, "2026-03-28T22:00"),
        (BERLIN, "2026-10-24T22:00"),
        (NEW_YORK, "2026-03-07T22:00"),
        (NEW_YORK, "2026-10-31T22:00"),
        (LORD_HOWE, "2026-04-04T22:00"),
        (LORD_HOWE, "2026-10-03T22:00"),
        (KOLKATA, "2026-03-28T22:00"),
    ];
    for (zone, evening) in changes {
        for (expression, interval) in intervals {
            let cron = cron(expression, zone);
            let from = at(evening, zone);
            let first = cron.next_after(from).unwrap();
            let until = from + minutes(8 * 60);
            let mut expected = first;
            for run in cron.upcoming(from).take_while(|time| *time < until) {
                assert_eq!(run, expected, "{cron}");
                expected += interval;
            }
            assert!(expected >= until, "{cron}");
        }
    }
    // 30 minutes are all of the change there, an hour is not.
    let hourly = [
        "00:00 +11:00",
        "01:00 +11:00",
        "02:00 +10:30",
        "03:00 +10:30",
    ];
    assert_eq!(
        runs(
            "0 * * * *",
            LORD_HOWE,
            "2026-04-05T00:00",
            "2026-04-05T04:00"
        ),
        hourly.map(|time| format!("05. {time}"))
    );
}

#[test]
fn a_daily_job_runs_once_on_every_day_of_the_year_in_all_zones() {
    let zones = [
        BERLIN,
        NEW_YORK,
        LORD_HOWE,
        KOLKATA,
        "UTC",
        "America/Havana",       // at midnight
        "America/Scoresbysund", // the hour before midnight
        "Africa/Casablanca",    // twice more, around Ramadan
        "Antarctica/Troll",     // two hours
    ];
    for zone in zones {
        for time in [
            "0 0", "30 0", "30 1", "59 1", "0 2", "15 2", "30 2", "0 3", "30 22", "30 23",
        ] {
            let cron = cron(&format!("{time} * * *"), zone);
            let (first, last) = ("2026-01-01T00:00", "2027-01-01T00:00");
            let just_before = at(first, zone) - Duration::from_nanos(1);
            let end = at(last, zone);
            let times: Vec<SystemTime> = cron
                .upcoming(just_before)
                .take_while(|time| *time < end)
                .collect();
            assert_eq!(times.len(), 365, "{cron}");
            for pair in times.windows(2) {
                let apart = pair[1].duration_since(pair[0]).unwrap().as_secs();
                assert!(
                    (22 * 3600..=26 * 3600).contains(&apart),
                    "{cron}: {apart} s"
                );
            }
        }
    }
}

#[test]
fn in_new_york_the_repeated_hour_is_from_one_to_two() {
    let spring = |expression| runs(expression, NEW_YORK, "2026-03-08T00:00", "2026-03-08T04:00");
    let autumn = |expression| runs(expression, NEW_YORK, "2026-11-01T00:00", "2026-11-01T04:00");
    assert_eq!(spring("30 2 * * *"), ["08. 03:00 -04:00"]);
    assert_eq!(autumn("30 1 * * *"), ["01. 01:30 -04:00"]);
    assert_eq!(autumn("30 2 * * *"), ["01. 02:30 -05:00"]);
    assert_eq!(
        autumn("30 * * * *"),
        [
            "00:30 -04:00",
            "01:30 -04:00",
            "01:30 -05:00",
            "02:30 -05:00",
            "03:30 -05:00"
        ]
        .map(|time| format!("01. {time}"))
    );
}

#[test]
fn on_lord_howe_island_the_change_is_half_an_hour() {
    // From 02:00 to 02:30, and from 02:00 back to 01:30.
    let spring = |expression| {
        runs(
            expression,
            LORD_HOWE,
            "2026-10-04T00:00",
            "2026-10-04T04:00",
        )
    };
    let autumn = |expression| {
        runs(
            expression,
            LORD_HOWE,
            "2026-04-05T00:00",
            "2026-04-05T04:00",
        )
    };
    assert_eq!(spring("15 2 * * *"), ["04. 02:30 +11:00"]);
    assert_eq!(spring("45 2 * * *"), ["04. 02:45 +11:00"]);
    assert_eq!(autumn("45 1 * * *"), ["05. 01:45 +11:00"]);
    assert_eq!(autumn("15 1 * * *"), ["05. 01:15 +11:00"]);
    assert_eq!(
        spring("*/30 1-2 * * *"),
        ["01:00 +10:30", "01:30 +10:30", "02:30 +11:00"].map(|time| format!("04. {time}"))
    );
    assert_eq!(
        autumn("*/30 1-2 * * *"),
        [
            "01:00 +11:00",
            "01:30 +11:00",
            "01:30 +10:30",
            "02:00 +10:30",
            "02:30 +10:30"
        ]
        .map(|time| format!("05. {time}"))
    );
}

#[test]
fn a_run_after_the_gap_may_be_on_the_day_after() {
    // From 23:00 to 00:00.
    assert_eq!(
        runs(
            "30 23 * * *",
            "America/Scoresbysund",
            "2026-03-28T12:00",
            "2026-03-29T12:00"
        ),
        ["29. 00:00 -01:00"]
    );
    // Friday the 27th is not to blame: only what the gap has swallowed is made up for.
    assert_eq!(
        runs(
            "30 23 * * FRI",
            "America/Scoresbysund",
            "2026-03-28T12:00",
            "2026-03-30T12:00"
        ),
        [] as [&str; 0]
    );
}

#[test]
fn a_day_that_does_not_exist_has_no_runs() {
    let samoa = |expression| {
        runs(
            expression,
            "Pacific/Apia",
            "2011-12-29T12:00",
            "2012-01-01T00:00",
        )
    };
    assert_eq!(samoa("30 2 * * *"), ["31. 02:30 +14:00"]);
    assert_eq!(samoa("0 12 30 12 *"), [] as [&str; 0]);
    assert_eq!(
        samoa("0 */12 * * *"),
        ["29. 12:00 -10:00", "31. 00:00 +14:00", "31. 12:00 +14:00"]
    );
}

#[test]
fn where_clocks_do_not_change_nothing_is_odd() {
    for zone in [KOLKATA, "UTC"] {
        let march = runs("30 2 * * *", zone, "2026-03-27T00:00", "2026-04-01T00:00");
        assert_eq!(march.len(), 5, "{zone}");
        assert!(march.iter().all(|time| time.contains("02:30")), "{march:?}");
    }
}

#[test]
fn asked_within_a_repeat_it_knows_which_half_it_is() {
    let first = at("2026-10-25T02:30", BERLIN);
    let second = first + Duration::from_secs(3600);
    let three = first + Duration::from_secs(5400);
    let day = Duration::from_secs(86_400);
    let nightly = cron("30 2 * * *", BERLIN);
    // The next day is an hour further away: its offset is that of the second half.
    assert_eq!(nightly.next_after(first), Some(second + day));
    assert_eq!(
        nightly.next_after(first - Duration::from_nanos(1)),
        Some(first)
    );
    assert_eq!(
        nightly.next_after(second - Duration::from_secs(1)),
        Some(second + day)
    );
    let change = second - Duration::from_secs(1800);
    assert_eq!(nightly.next_after(change), Some(second + day));
    assert_eq!(
        cron("0 2 * * *", BERLIN).next_after(change - Duration::from_nanos(1)),
        Some(change + day)
    );
    let hourly = cron("30 * * * *", BERLIN);
    assert_eq!(hourly.next_after(first), Some(second));
    assert_eq!(
        hourly.next_after(first - Duration::from_nanos(1)),
        Some(first)
    );
    assert_eq!(cron("0 3 * * *", BERLIN).next_after(first), Some(three));
}
