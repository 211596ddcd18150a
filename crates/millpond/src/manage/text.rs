//! The text form of values: how it is read, and how durations are printed. The rules are in the header of
//! [`super::value`].

use super::{Choice, Value, ValueError, ValueType};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Digits, with underscores between them if that is easier to read.
pub(super) fn parse_integer<T: FromStr>(text: &str) -> Option<T> {
    let digits: String = text.chars().filter(|&digit| digit != '_').collect();
    let is_plain = text.starts_with(|first: char| first.is_ascii_digit());
    let is_grouped = !text.ends_with('_') && !text.contains("__");
    (is_plain && is_grouped)
        .then(|| digits.parse().ok())
        .flatten()
}

/// Names are the same whatever their case, and whatever is between their words.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        let letters = name
            .chars()
            .filter(|letter| !matches!(letter, '_' | '-' | ' '));
        letters.flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// `caller_runs`, and leniently `Caller runs`, `caller-runs` or `CallerRuns`; `block(100ms)`.
pub(super) fn parse_choice(
    choices: &[Choice],
    text: &str,
    kind: &ValueType,
) -> Result<Value, ValueError> {
    let error = || kind.error(text.to_owned(), false);
    let (name, argument) = match text.split_once('(') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(error)?)),
        None => (text, None),
    };
    let choice = choices
        .iter()
        .find(|choice| is_same_name(choice.name, name));
    let choice = choice.ok_or_else(error)?;
    let wrong = |is_out_of_range, hint| ValueError {
        hint: Some(hint),
        ..kind.error(text.to_owned(), is_out_of_range)
    };
    let name = choice.name;
    match (choice.argument, argument.map(str::trim)) {
        (None, None) => Ok(Value::choice(name)),
        (None, Some(_)) => Err(wrong(false, format!("{name} takes no argument: {name}"))),
        (Some(inner), None | Some("")) => {
            let hint = format!("it needs an argument: {name}({})", inner.noun());
            Err(wrong(false, hint))
        }
        (Some(inner), Some(argument)) => match inner.parse(argument) {
            Ok(argument) => Ok(Value::choice_with(name, argument)),
            Err(error) => {
                let lacks_unit = matches!(inner, ValueType::Duration { .. })
                    && parse_duration(&format!("{argument}ms")).is_some();
                let hint = if lacks_unit {
                    format!("{argument} needs a unit: {name}({argument}ms)")
                } else {
                    error.to_string()
                };
                Err(wrong(error.is_out_of_range, hint))
            }
        },
    }
}

/// The units of durations in nanoseconds, the largest first.
const UNITS: [(&str, u128); 8] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("ns", 1),
];

/// The largest unit in which it is a whole number: exact, and short for what people write.
pub(super) fn print_duration(duration: Duration, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if duration == Duration::MAX {
        return f.write_str("forever");
    }
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return f.write_str("0s");
    }
    let whole = UNITS.iter().find(|(_, unit)| nanos % unit == 0);
    let (name, unit) = whole.unwrap_or(&("ns", 1));
    write!(f, "{}{name}", nanos / unit)
}

/// A sum of numbers with units in any case: `1h30m`, `1.5s`. `None` for all else, also for a number without a unit.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    if text.eq_ignore_ascii_case("forever") {
        return Some(Duration::MAX);
    }
    let (mut rest, mut nanos) = (text, 0_u128);
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')?;
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let name = name.to_lowercase();
        let name = match name.as_str() {
            "min" => "m",
            "\u{3bc}s" => "us",
            name => name,
        };
        let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name)?;
        nanos = nanos.checked_add(parse_nanos(number, *unit)?)?;
        rest = after.trim_start();
        if rest.is_empty() {
            break;
        }
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}

/// A decimal number of units as nanoseconds, if that is a whole number.
fn parse_nanos(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = parse_integer::<u128>(whole)?.checked_mul(unit)?;
    if fraction.is_empty() {
        return (!number.ends_with('.')).then_some(whole);
    }
    if fraction.contains('_') {
        return None;
    }
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = parse_integer::<u128>(fraction)?.checked_mul(unit)?;
    (part % scale == 0).then(|| whole.checked_add(part / scale))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duration(text: &str) -> Option<String> {
        parse_duration(text).map(|duration| Value::Duration(duration).to_string())
    }

    #[test]
    fn durations_are_read_with_units_and_printed_in_the_largest_that_is_whole() {
        for (text, printed) in [
            ("0s", "0s"),
            ("60s", "1m"),
            ("90 s", "90s"),
            ("1.5s", "1500ms"),
            ("1h30m", "90m"),
            ("1h 30min", "90m"),
            ("2d", "2d"),
            ("250us", "250us"),
            ("250\u{b5}s", "250us"),
            ("250\u{3bc}s", "250us"),
            ("0.25ms", "250us"),
            ("1_000ms", "1s"),
            ("forever", "forever"),
            ("Forever", "forever"),
            ("5S", "5s"),
            ("1H 30Min", "90m"),
            ("250 MS", "250ms"),
            ("250\u{39c}S", "250us"),
        ] {
            assert_eq!(duration(text).as_deref(), Some(printed), "{text}");
        }
    }

    #[test]
    fn durations_without_a_unit_or_sense_are_refused() {
        for text in [
            "",
            "5",
            "s",
            "5 weeks",
            "-5s",
            "5s5",
            "1..5s",
            "1.s",
            ".5s",
            "0.1ns",
            "5s,",
            "999999999999999d",
            "1e3s",
            "0.500_000s",
            "1.5_0s",
            "1_s",
            "1__0s",
            "ever",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn integers_booleans_and_choices_are_read_strictly() {
        let count = ValueType::Integer { min: 0, max: 99 };
        for text in ["", "-1", "+1", "1.0", "0x10", "_1", "one", "1 000"] {
            assert!(count.parse(text).is_err(), "{text}");
        }
        assert_eq!(count.parse(" 42 "), Ok(Value::Integer(42)));
        assert!(count.parse("100").unwrap_err().is_out_of_range);
        assert!(ValueType::Boolean.parse("yes").is_err());
        const WAYS: ValueType = ValueType::Choice(&[
            Choice::plain("caller_runs"),
            Choice::with("block", ValueType::ANY_DURATION),
        ]);
        for text in [
            "caller_runs",
            "Caller runs",
            "caller-runs",
            "CallerRuns",
            "CALLER_RUNS",
            " callerRuns ",
        ] {
            assert_eq!(WAYS.parse(text), Ok(Value::choice("caller_runs")), "{text}");
        }
        for text in [
            "block",
            "block()",
            "block(5)",
            "block(5ms",
            "caller_runs(5ms)",
            "run",
        ] {
            assert!(WAYS.parse(text).is_err(), "{text}");
        }
        let block = Value::choice_with("block", Duration::from_millis(5));
        assert_eq!(WAYS.parse("block( 5ms )"), Ok(block));
        assert_eq!(WAYS.to_string(), "caller_runs or block(duration)");
    }

    #[test]
    fn a_choice_with_a_wrong_argument_is_told_what_is_wrong_with_that() {
        const UP_TO_9: ValueType = ValueType::Integer { min: 0, max: 9 };
        const WAYS: ValueType = ValueType::Choice(&[
            Choice::plain("abort"),
            Choice::with("block", ValueType::ANY_DURATION),
            Choice::with("times", UP_TO_9),
        ]);
        for (text, hint) in [
            ("block(100)", "100 needs a unit: block(100ms)"),
            ("BLOCK( 1.5 )", "1.5 needs a unit: block(1.5ms)"),
            ("block", "it needs an argument: block(duration)"),
            ("block()", "it needs an argument: block(duration)"),
            (
                "block(soon)",
                "`soon` is not a duration with its unit (as 20ms, 5s, 1m)",
            ),
            ("times(10)", "`10` is not an integer from 0 to 9"),
            ("abort(5ms)", "abort takes no argument: abort"),
        ] {
            let error = WAYS.parse(text).unwrap_err();
            assert_eq!(error.hint.as_deref(), Some(hint), "{text}");
            assert_eq!(error.to_string(), format!("`{text}`: {hint}"));
            assert_eq!(error.is_out_of_range, text == "times(10)");
        }
        assert_eq!(WAYS.parse("sideways").unwrap_err().hint, None);
    }

    #[test]
    fn words_are_read_in_any_case() {
        const WAIT: ValueType = ValueType::Optional(&ValueType::ANY_DURATION);
        for (kind, texts, value) in [
            (WAIT, ["none", "None", "NONE"], Value::None),
            (WAIT, ["5s", "5S", " 5 S "], Duration::from_secs(5).into()),
            (ValueType::Boolean, ["true", "True", "TRUE"], true.into()),
            (
                ValueType::Boolean,
                ["false", "False", "FALSE"],
                false.into(),
            ),
        ] {
            for text in texts {
                assert_eq!(kind.parse(text), Ok(value.clone()), "{text}");
            }
        }
        let codel: crate::adapt::CoDel = "Target 5MS, INTERVAL 100ms".parse().unwrap();
        assert_eq!(codel, crate::adapt::CoDel::default());
    }

    #[test]
    fn none_is_a_value_of_optional_parameters_alone() {
        const WAIT: ValueType = ValueType::Optional(&ValueType::POSITIVE_DURATION);
        assert_eq!(WAIT.parse("none"), Ok(Value::None));
        assert!(ValueType::POSITIVE_DURATION.parse("none").is_err());
        let error = WAIT.parse("0s").unwrap_err();
        assert!(
            error.is_out_of_range && error.to_string().ends_with("or none"),
            "{error}"
        );
    }
}
