//! What an expression says, field by field.
//!
//! We read the fields ourselves and write them down again for `croner`, in numbers only. Its reader takes
//! names for numbers wherever they stand, so `JANFEB` is December and a weekday in the place of the minute
//! is a minute; it passes over `1,,2`, never finds `7L`, and says little about what is wrong.

use super::CronError;
use super::error::shown;
use croner::CronPattern;
use croner::parser::{CronParser, Seconds, Year};

/// Sixty minutes and sixty seconds, one by one, and all the rest, fit into this.
const LONGEST: usize = 1000;

const NICKNAMES: &[(&str, &str)] = &[
    ("@HOURLY", "0 * * * *"),
    ("@DAILY", "0 0 * * *"),
    ("@WEEKLY", "0 0 * * 0"),
    ("@MONTHLY", "0 0 1 * *"),
    ("@YEARLY", "0 0 1 1 *"),
    ("@ANNUALLY", "0 0 1 1 *"),
];

struct Field {
    name: &'static str,
    low: u16,
    high: u16,
    /// Names of its values, from `low` on.
    names: &'static [&'static str],
    /// What to say of a number that is out of range.
    hint: &'static str,
}

const SECOND: &Field = &Field {
    name: "second",
    low: 0,
    high: 59,
    names: &[],
    hint: "a whole minute is 0",
};
const MINUTE: &Field = &Field {
    name: "minute",
    low: 0,
    high: 59,
    names: &[],
    hint: "a whole hour is 0",
};
const HOUR: &Field = &Field {
    name: "hour",
    low: 0,
    high: 23,
    names: &[],
    hint: "midnight is 0",
};
const DAY: &Field = &Field {
    name: "day",
    low: 1,
    high: 31,
    names: &[],
    hint: "the last day of a month is L",
};
const MONTH: &Field = &Field {
    name: "month",
    low: 1,
    high: 12,
    names: &[
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ],
    hint: "January is 1, or JAN",
};
const WEEKDAY: &Field = &Field {
    name: "weekday",
    low: 0,
    high: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    hint: "Sunday is 0, or SUN",
};

/// THE table of fields, in their order.
const FIELDS: [&Field; 6] = [SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY];

/// What is wrong with a field.
type Why = String;

const FIVE_OR_SIX: &str =
    "write five (minute, hour, day, month, weekday), or six with the second before them";

pub(super) fn parse(expression: &str) -> Result<CronPattern, CronError> {
    let wrong = |why| CronError::whole(expression, why);
    let upper = expression.to_ascii_uppercase();
    let texts = texts(&upper).map_err(wrong)?;
    let mut numbers = Vec::with_capacity(FIELDS.len());
    let left_out = FIELDS.len() - texts.len();
    numbers.extend((0..left_out).map(|_| "0".to_string()));
    for (field, text) in FIELDS[left_out..].iter().zip(texts) {
        let number = field.in_numbers(text);
        numbers.push(number.map_err(|why| CronError::field(expression, field.name, text, why))?);
    }
    let reader = CronParser::builder()
        .seconds(Seconds::Required)
        .year(Year::Disallowed)
        .build();
    match reader.parse(&numbers.join(" ")) {
        Ok(cron) => Ok(cron.pattern),
        Err(error) => Err(wrong(format!("it cannot be read: {error}"))),
    }
}

/// The texts of its five or six fields.
fn texts(upper: &str) -> Result<Vec<&str>, Why> {
    if upper.len() > LONGEST {
        return Err(format!(
            "it has {} bytes, and {LONGEST} are enough for any: use ranges and steps, such as 0-30/5",
            upper.len()
        ));
    }
    let mut spelled_out = upper.trim();
    if spelled_out.starts_with('@') {
        let known = NICKNAMES.iter().find(|(name, _)| *name == spelled_out);
        (_, spelled_out) = *known.ok_or(
            "there is no such name: there are @hourly, @daily, @weekly, @monthly and @yearly",
        )?;
    }
    let texts: Vec<_> = spelled_out.split_whitespace().collect();
    match texts.len() {
        5 | 6 => Ok(texts),
        0 => Err("it is empty: write five fields, such as \"30 2 * * *\"".into()),
        1 => Err(format!("it has only one field: {FIVE_OR_SIX}")),
        7 => Err(format!(
            "it has 7 fields, and years are not known: {FIVE_OR_SIX}"
        )),
        count => Err(format!("it has {count} fields: {FIVE_OR_SIX}")),
    }
}

impl Field {
    fn is_of_days(&self) -> bool {
        self.name == DAY.name || self.name == WEEKDAY.name
    }

    /// The field as `croner` is to read it.
    fn in_numbers(&self, text: &str) -> Result<String, Why> {
        if let Some(strange) = text.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(format!(
                "{strange:?} does not belong here: write numbers, or letters from A to Z"
            ));
        }
        let (both, items) = match text.strip_prefix('+') {
            Some(items) if self.name == WEEKDAY.name => ("+", items),
            _ => ("", text),
        };
        match items {
            "" => return Err("behind + goes a weekday, such as +FRI".into()),
            "*" => return Ok(format!("{both}*")),
            "?" if self.is_of_days() => return Ok(format!("{both}*")),
            _ => {}
        }
        let list: Vec<_> = items.split(',').collect();
        if list.contains(&"L") && list.contains(&"LW") {
            return Err("L and LW cannot be in one field: make two expressions of it".into());
        }
        let numbers: Result<Vec<_>, Why> = list.iter().map(|item| self.item(item)).collect();
        Ok(format!("{both}{}", numbers?.join(",")))
    }

    fn item(&self, item: &str) -> Result<String, Why> {
        match item {
            "" => Err("there is nothing beside a comma: take the comma away".into()),
            "?" if !self.is_of_days() => Err("? is for days and weekdays: write *".into()),
            "*" | "?" => Err(format!(
                "{item} stands alone in its field: take the rest away"
            )),
            "L" | "LW" if self.name == DAY.name => Ok(item.into()),
            "L" if self.name == WEEKDAY.name => {
                Err("the last of which? 5L is the last Friday of the month".into())
            }
            _ if self.name == WEEKDAY.name => self.weekdays(item),
            _ if self.name == DAY.name && item.ends_with('W') => {
                let day = self.value(&item[..item.len() - 1])?;
                Ok(format!("{day}W"))
            }
            _ => {
                let (first, last, step) = self.range(item)?;
                Ok(if step > last - first {
                    first.to_string()
                } else {
                    format!("{first}-{last}/{step}")
                })
            }
        }
    }

    /// One by one, so that a Sunday is always 0.
    fn weekdays(&self, item: &str) -> Result<String, Why> {
        let (days, which) = match item.split_once('#') {
            Some((days, which)) => (days, which),
            None => match item.strip_suffix('L') {
                // Not July in the wrong place.
                Some(days) if !MONTH.names.contains(&item) => (days, "L"),
                _ => (item, ""),
            },
        };
        if !matches!(which, "" | "1" | "2" | "3" | "4" | "5" | "L") || item.ends_with('#') {
            return Err(
                "behind # goes which of them in the month: 1 to 5, or L for the last".into(),
            );
        }
        let (first, last, step) = self.range(days)?;
        let sign = if which.is_empty() { "" } else { "#" };
        let days: Vec<_> = (first..=last)
            .step_by(step.into())
            .map(|day| format!("{}{sign}{which}", day % 7))
            .collect();
        Ok(days.join(","))
    }

    /// First, last and step of `*/2`, `5`, `1-5` or `1-5/2`.
    fn range(&self, text: &str) -> Result<(u16, u16, u16), Why> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (text, None),
        };
        if range == "*" && step.is_some() {
            return Ok((self.low, self.high, step.unwrap_or(1)));
        }
        let Some((first, last)) = range.split_once('-') else {
            let first = self.value(range)?;
            return match step {
                None => Ok((first, first, 1)),
                Some(step) => Err(format!(
                    "a step needs a range: write {first}-{}/{step}",
                    self.high
                )),
            };
        };
        let (first, mut last) = (self.value(first)?, self.value(last)?);
        if self.name == WEEKDAY.name && last == 0 && first > 0 {
            last = 7;
        }
        if first > last {
            return Err(format!(
                "{first}-{last} goes backwards: write {first}-{},{}-{last}",
                self.high, self.low
            ));
        }
        Ok((first, last, step.unwrap_or(1)))
    }

    fn step(&self, step: &str) -> Result<u16, Why> {
        let number = digits(step).filter(|step| *step > 0);
        let Some(number) = number else {
            return Err(format!(
                "{} is no step: write a number from 1 on, such as */5",
                shown(step)
            ));
        };
        // Of days and months there are people who write */100 for the first one.
        if number > self.high && self.low == 0 && self.name != WEEKDAY.name {
            return Err(format!(
                "a step of {} is longer than the field: write 0 for one run in it, or schedule at a fixed rate",
                shown(step)
            ));
        }
        Ok(number)
    }

    fn value(&self, text: &str) -> Result<u16, Why> {
        if let Some(index) = self.names.iter().position(|name| *name == text) {
            return Ok(self.low + index as u16);
        }
        match digits(text) {
            Some(number) if (self.low..=self.high).contains(&number) => Ok(number),
            Some(_) => Err(format!(
                "{} is not from {} to {}: {}",
                shown(text),
                self.low,
                self.high,
                self.hint
            )),
            None => Err(self.no_value(text)),
        }
    }

    fn no_value(&self, text: &str) -> Why {
        let elsewhere = FIELDS.iter().find(|field| field.names.contains(&text));
        let longer = self.names.iter().find(|name| text.starts_with(**name));
        match (elsewhere, longer) {
            (Some(field), _) => format!(
                "{text} is a {}: the order of the fields is minute, hour, day, month, weekday",
                field.name
            ),
            (None, Some(name)) => format!("{} is not known: write {name}", shown(text)),
            (None, None) if text.is_empty() => "a number is missing: write it, or *".into(),
            (None, None) => {
                let (first, last) = (self.names.first(), self.names.last());
                let or = match first.zip(last) {
                    Some((first, last)) => format!("or a name from {first} to {last}"),
                    None => "or *".into(),
                };
                format!(
                    "{} is no {}: write a number from {} to {}, {or}",
                    shown(text),
                    self.name,
                    self.low,
                    self.high
                )
            }
        }
    }
}

/// A number that is written in digits. One that is too large is the largest.
fn digits(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u16::MAX))
}
