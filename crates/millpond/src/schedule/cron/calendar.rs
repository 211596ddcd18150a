//! Which seconds of the calendar an expression means, before any zone.
//!
//! The days are a matter of `croner`: it knows what `L`, `W` and `#` are. The search is ours, day by day
//! and then by the fields of the time of day. It ends: the calendar repeats itself after 400 years,
//! weekdays included, so what has not come by then never comes. An expression that never comes (30 February)
//! is a mistake, and refused.

use super::CronError;
use super::fields;
use croner::{CronPattern, Weekday};
use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};

/// After so long the calendar begins anew: 400 years, a whole number of weeks.
const CYCLE: SignedDuration = SignedDuration::from_hours(146_097 * 24);

/// Where the search begins for a day that an expression has at all.
const SOME_DAY: Date = Date::constant(1999, 12, 31);

const NEVER: &str = "it would never run: no date has this combination of day, month and weekday; February has at \
                     most 29 days, and April, June, September and November have 30";

/// The times that an expression means, as a clock on the wall shows them.
#[derive(Debug)]
pub(super) struct Calendar {
    days: CronPattern,
    hours: Set,
    minutes: Set,
    seconds: Set,
}

impl Calendar {
    pub(super) fn parse(expression: &str) -> Result<Self, CronError> {
        let days = fields::parse(expression)?;
        let calendar = Calendar {
            hours: Set::of(&days.hours.values()),
            minutes: Set::of(&days.minutes.values()),
            seconds: Set::of(&days.seconds.values()),
            days,
        };
        match calendar.day_after(SOME_DAY) {
            Some(_) => Ok(calendar),
            None => Err(CronError::whole(expression, NEVER)),
        }
    }

    /// The first of its times that is not before `from`; `None` if there is none before the calendar ends.
    pub(super) fn first_from(&self, from: DateTime) -> Option<DateTime> {
        if self.has_day(from.date()) {
            if let Some(time) = self.time_from(from.time()) {
                return Some(from.date().to_datetime(time));
            }
        }
        let day = self.day_after(from.date())?;
        Some(day.to_datetime(self.time_from(Time::midnight())?))
    }

    /// Whether it has times in every hour that the clock shows from `first` to `last`.
    pub(super) fn has_every_hour(&self, first: DateTime, last: DateTime) -> bool {
        let into_the_hour =
            SignedDuration::from_secs(i64::from(first.minute()) * 60 + i64::from(first.second()));
        let begin = first.saturating_sub(into_the_hour);
        (0..24)
            .map(|passed| begin.saturating_add(SignedDuration::from_hours(passed)))
            .take_while(|hour| *hour <= last)
            .all(|hour| self.hours.has(hour.hour() as u8))
    }

    fn has_day(&self, date: Date) -> bool {
        let (year, month, day) = (date.year(), date.month() as u32, date.day() as u32);
        let weekday = Weekday::from_days_from_sunday(date.weekday().to_sunday_zero_offset() as u32);
        let matches = || self.days.day_match(year.into(), month, day, weekday);
        self.has_month(date) && matches().unwrap_or(false)
    }

    fn has_month(&self, date: Date) -> bool {
        let matches = self.days.month_match(date.month() as u32);
        matches.unwrap_or(false)
    }

    fn day_after(&self, date: Date) -> Option<Date> {
        let last = date.saturating_add(CYCLE);
        let mut date = date;
        while date < last {
            if !self.has_month(date) {
                date = date.last_of_month();
            }
            date = date.tomorrow().ok()?;
            if self.has_day(date) {
                return Some(date);
            }
        }
        None
    }

    fn time_from(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour() as u8, from.minute() as u8, from.second() as u8);
        let (first_minute, first_second) = (self.minutes.from(0)?, self.seconds.from(0)?);
        let in_this_minute = || self.seconds.from(second).map(|s| (hour, minute, s));
        let in_this_hour = || {
            self.minutes
                .from(minute + 1)
                .map(|m| (hour, m, first_second))
        };
        let later = || {
            self.hours
                .from(hour + 1)
                .map(|h| (h, first_minute, first_second))
        };
        let found = if !self.hours.has(hour) {
            later()
        } else if !self.minutes.has(minute) {
            in_this_hour().or_else(later)
        } else {
            in_this_minute().or_else(in_this_hour).or_else(later)
        };
        let (hour, minute, second) = found?;
        Time::new(hour as i8, minute as i8, second as i8, 0).ok()
    }
}

/// Numbers below 64.
#[derive(Clone, Copy, Debug)]
struct Set(u64);

impl Set {
    fn of(values: &[u16]) -> Self {
        Set(values.iter().fold(0, |set, value| set | 1 << (value % 64)))
    }

    fn has(self, value: u8) -> bool {
        self.0 >> value & 1 == 1
    }

    /// The least that is not below `least`, which is at most 63.
    fn from(self, least: u8) -> Option<u8> {
        let rest = self.0 >> least << least;
        (rest != 0).then(|| rest.trailing_zeros() as u8)
    }
}
