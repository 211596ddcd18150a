//! Error messages say what is wrong and what to do.

use millpond::schedule::Cron;

fn error(expression: &str) -> String {
    match Cron::parse(expression) {
        Ok(cron) => panic!("{cron} should be an error"),
        Err(error) => {
            assert_eq!(error.expression(), expression);
            assert!(!error.is_unknown_zone());
            error.to_string()
        }
    }
}

const ORDER: &str = "the order of the fields is minute, hour, day, month, weekday";
const COUNT: &str =
    "write five (minute, hour, day, month, weekday), or six with the second before them";

#[test]
fn the_number_of_fields() {
    let empty = r#"it is empty: write five fields, such as "30 2 * * *""#;
    assert_eq!(error(""), format!(r#"cron "": {empty}"#));
    assert_eq!(error(" \t "), format!(r#"cron " \t ": {empty}"#));
    assert_eq!(
        error("daily"),
        format!(r#"cron "daily": it has only one field: {COUNT}"#)
    );
    assert_eq!(
        error("* * *"),
        format!(r#"cron "* * *": it has 3 fields: {COUNT}"#)
    );
    assert_eq!(
        error("0 0 0 1 1 * 2026"),
        format!(r#"cron "0 0 0 1 1 * 2026": it has 7 fields, and years are not known: {COUNT}"#)
    );
    assert_eq!(
        error("0 0 0 0 0 0 0 0"),
        format!(r#"cron "0 0 0 0 0 0 0 0": it has 8 fields: {COUNT}"#)
    );
    assert_eq!(
        error("@reboot"),
        r#"cron "@reboot": there is no such name: there are @hourly, @daily, @weekly, @monthly and @yearly"#
    );
}

#[test]
fn each_field_says_what_it_takes() {
    let table = [
        (
            "61 * * * *",
            r#"minute "61": "61" is not from 0 to 59: a whole hour is 0"#,
        ),
        (
            "60 0 * * * *",
            r#"second "60": "60" is not from 0 to 59: a whole minute is 0"#,
        ),
        (
            "0 24 * * *",
            r#"hour "24": "24" is not from 0 to 23: midnight is 0"#,
        ),
        (
            "0 0 0 * *",
            r#"day "0": "0" is not from 1 to 31: the last day of a month is L"#,
        ),
        (
            "0 0 1 13 *",
            r#"month "13": "13" is not from 1 to 12: January is 1, or JAN"#,
        ),
        (
            "0 0 * * 8",
            r#"weekday "8": "8" is not from 0 to 7: Sunday is 0, or SUN"#,
        ),
        (
            "x * * * *",
            r#"minute "X": "X" is no minute: write a number from 0 to 59, or *"#,
        ),
        (
            "-5 * * * *",
            r#"minute "-5": a number is missing: write it, or *"#,
        ),
        (
            "1.5 * * * *",
            r#"minute "1.5": "1.5" is no minute: write a number from 0 to 59, or *"#,
        ),
        (
            "1,,2 * * * *",
            r#"minute "1,,2": there is nothing beside a comma: take the comma away"#,
        ),
        (
            "*,2 * * * *",
            r#"minute "*,2": * stands alone in its field: take the rest away"#,
        ),
        (
            "? * * * *",
            r#"minute "?": ? is for days and weekdays: write *"#,
        ),
        (
            "5/15 * * * *",
            r#"minute "5/15": a step needs a range: write 5-59/15"#,
        ),
        (
            "/15 * * * *",
            r#"minute "/15": a number is missing: write it, or *"#,
        ),
        (
            "*/0 * * * *",
            r#"minute "*/0": "0" is no step: write a number from 1 on, such as */5"#,
        ),
        (
            "*/ * * * *",
            r#"minute "*/": "" is no step: write a number from 1 on, such as */5"#,
        ),
        (
            "*/90 * * * *",
            r#"minute "*/90": a step of "90" is longer than the field: write 0 for one run in it, or schedule at a fixed rate"#,
        ),
        (
            "0 22-6 * * *",
            r#"hour "22-6": 22-6 goes backwards: write 22-23,0-6"#,
        ),
        (
            "0 0 L,LW * *",
            r#"day "L,LW": L and LW cannot be in one field: make two expressions of it"#,
        ),
        (
            "0 0 32W * *",
            r#"day "32W": "32" is not from 1 to 31: the last day of a month is L"#,
        ),
        (
            "0 0 * JANUARY *",
            r#"month "JANUARY": "JANUARY" is not known: write JAN"#,
        ),
        (
            "0 0 * * monday",
            r#"weekday "MONDAY": "MONDAY" is not known: write MON"#,
        ),
        (
            "0 0 1 * +",
            r#"weekday "+": behind + goes a weekday, such as +FRI"#,
        ),
        (
            "+0 0 1 * *",
            r#"minute "+0": "+0" is no minute: write a number from 0 to 59, or *"#,
        ),
        (
            "0 0 * XII *",
            r#"month "XII": "XII" is no month: write a number from 1 to 12, or a name from JAN to DEC"#,
        ),
        (
            "0 0 * * L",
            r#"weekday "L": the last of which? 5L is the last Friday of the month"#,
        ),
        (
            "0 0 * * 1#6",
            r#"weekday "1#6": behind # goes which of them in the month: 1 to 5, or L for the last"#,
        ),
        (
            "0 0 * * 1#",
            r#"weekday "1#": behind # goes which of them in the month: 1 to 5, or L for the last"#,
        ),
        (
            "0 0 * * é",
            r#"weekday "é": 'é' does not belong here: write numbers, or letters from A to Z"#,
        ),
    ];
    for (expression, expected) in table {
        assert_eq!(
            error(expression),
            format!("cron {expression:?}: {expected}")
        );
    }
}

#[test]
fn a_name_in_the_wrong_field_is_no_number() {
    let table = [
        ("MON * * * *", r#"minute "MON": MON is a weekday"#),
        ("0 0 FRI * *", r#"day "FRI": FRI is a weekday"#),
        ("0 0 * SUN *", r#"month "SUN": SUN is a weekday"#),
        ("0 0 * * JUL", r#"weekday "JUL": JUL is a month"#),
    ];
    for (expression, expected) in table {
        assert_eq!(
            error(expression),
            format!("cron {expression:?}: {expected}: {ORDER}")
        );
    }
    // For croner these are December and November.
    assert!(error("0 0 1 JANFEB *").contains(r#""JANFEB" is not known: write JAN"#));
    assert!(error("0 0 1 1MON *").contains(r#""1MON" is no month"#));
}

#[test]
fn what_is_too_long_is_not_read_and_not_repeated() {
    let long = "1,".repeat(600) + "1 * * * *";
    let error = error(&long);
    assert!(
        error.contains("it has 1209 bytes, and 1000 are enough for any"),
        "{error}"
    );
    assert!(error.len() < 300, "{error}");
    let number = "9".repeat(900) + " * * * *";
    assert!(self::error(&number).len() < 400);
    let step = format!("*/{} * * * *", "9".repeat(900));
    assert!(self::error(&step).len() < 400);
    // All of them, one by one, are not too long.
    let all = |last: u8| {
        (0..=last)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let months = "JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC";
    let days = all(31).split_off(2);
    let weekdays = "SUN,MON,TUE,WED,THU,FRI,SAT";
    let every_second = format!(
        "{} {} {} {days} {months} {weekdays}",
        all(59),
        all(59),
        all(23)
    );
    assert!(Cron::parse(&every_second).is_ok());
}

#[test]
fn a_zone_that_does_not_exist_is_named() {
    for zone in [
        "Europe/Berln",
        "",
        "../../etc/passwd",
        "CET-1CEST",
        "\u{1b}[2J",
        "Etc/Unknown",
        "Zürich",
    ] {
        let cron = Cron::parse("@daily").unwrap();
        let error = cron.in_zone(zone).unwrap_err();
        assert!(error.is_unknown_zone());
        assert_eq!(
            error.to_string(),
            format!(
                "cron \"@DAILY\": there is no time zone {zone:?}: give its IANA name, such as \"Europe/Berlin\" or \"UTC\""
            )
        );
    }
}
