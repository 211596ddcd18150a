//! Cron expressions: when, by the calendar of a time zone.
//!
//! | file | question |
//! |---|---|
//! | `fields.rs` | what does the expression say, and if nothing, why not? |
//! | `calendar.rs` | which dates and times of day are that? |
//! | `zone.rs` | when is that, where clocks are put forward and back? |
//! | `error.rs` | what is wrong with an expression or a zone? |
//!
//! `croner` reads the fields and knows the days, `jiff` knows the zones. The rest is ours, because what
//! happens when clocks change has to be said in one place, and held.

mod calendar;
mod error;
mod fields;
mod zone;

pub use error::CronError;

use calendar::Calendar;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

/// When: a cron expression in a time zone.
///
/// ```
/// use millpond::schedule::Cron;
/// use std::time::{Duration, SystemTime};
///
/// // At half past two every night, as the clocks in Berlin have it.
/// let nightly = Cron::parse("30 2 * * *")?.in_zone("Europe/Berlin")?;
/// let new_year = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600); // 2026-01-01 00:00 UTC
/// let next = nightly.next_after(new_year).unwrap();
/// assert_eq!(next, new_year + Duration::from_secs(90 * 60)); // 01:30 UTC
/// assert_eq!(nightly.to_string(), "30 2 * * * (Europe/Berlin)");
/// # Ok::<(), millpond::schedule::CronError>(())
/// ```
///
/// # Expressions
///
/// Five fields, or six with seconds first:
///
/// ```text
///   second   minute   hour   day    month        weekday
///   0-59     0-59     0-23   1-31   1-12         0-7, Sunday is 0 and 7
///   may be                   L W    JAN to DEC   SUN to SAT, L #
///   left out
/// ```
///
/// | in a field | means |
/// |---|---|
/// | `*` | all (`?` says the same of day and weekday) |
/// | `1,5`, `1-5` | these; from, to |
/// | `*/5`, `10-40/5` | every fifth: 0, 5, 10 and so on; 10, 15 to 40 |
/// | `L`, `LW`, `15W` (day) | the last day of the month; its last day from Monday to Friday; the day from Monday to Friday that is nearest to the 15th, in the same month |
/// | `5L`, `1#2` (weekday) | the last Friday, the second Monday of the month |
/// | `+1` (weekday) | a Monday that is also one of the days: see below |
///
/// `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` (`@annually`) stand for the first moment of
/// each. Case does not matter.
///
/// If both day and weekday are given, a day needs to be **one** of them: `0 0 13 * FRI` is each 13th and
/// each Friday. That is how cron has always been. `0 0 13 * +FRI` is Friday the 13th.
///
/// # When clocks change
///
/// A job that runs in every hour around the change goes by intervals: its runs stay as far apart as ever.
/// Any other goes by the time of day: each of its times has one run on each day. In spring, when the time
/// does not exist, it runs at the first moment after the gap; times that meet there are one run. In
/// autumn, when the time comes twice, it runs the first time.
///
/// In Berlin clocks go from 02:00 to 03:00 in spring, and in autumn from 03:00 back to 02:00:
///
/// | expression | goes by | spring | autumn |
/// |---|---|---|---|
/// | `30 2 * * *` | time of day | 03:00 | 02:30, the first one |
/// | `0 2,14 * * *` | time of day | 03:00, 14:00 | 02:00, the first one, 14:00 |
/// | `*/15 2 * * *` | time of day | 03:00 | 02:00, 02:15, 02:30, 02:45, the first ones |
/// | `0 */2 * * *` | time of day | 00:00, 03:00, 04:00 | 00:00, 02:00, the first one, 04:00 |
/// | `*/15 * * * *` | intervals | 01:45, 03:00 | 02:45, 02:00 again to 02:45, 03:00 |
/// | `0 * * * *` | intervals | 01:00, 03:00 | 01:00, 02:00, 02:00 again, 03:00 |
/// | `30 * * * *` | intervals | 01:30, 03:30 | 02:30, 02:30 again, 03:30 |
/// | `0 0-5 * * *` | intervals | 01:00, 03:00 | 01:00, 02:00, 02:00 again, 03:00 |
///
/// An interval of the calendar is as long as the calendar lets it be. On Lord Howe Island the change is
/// half an hour, and there an hourly job has one interval of an hour and a half on these days.
///
/// # Equality
///
/// Two are equal if they are spelled alike, but for case and spaces, and are in the same zone.
#[derive(Clone)]
pub struct Cron {
    /// Upper case, one space between fields.
    expression: Arc<str>,
    calendar: Arc<Calendar>,
    zone: TimeZone,
}

impl Cron {
    /// Reads an expression. The zone is UTC.
    ///
    /// ```
    /// use millpond::schedule::Cron;
    ///
    /// let on_workdays = Cron::parse("*/15 9-17 * * MON-FRI")?;
    /// let each_ten_seconds = Cron::parse("*/10 * * * * *")?;
    /// # let _ = (on_workdays, each_ten_seconds);
    ///
    /// // There is no 30 February.
    /// assert!(Cron::parse("0 0 30 2 *").unwrap_err().to_string().contains("it would never run"));
    /// # Ok::<(), millpond::schedule::CronError>(())
    /// ```
    ///
    /// # Errors
    /// If it is no cron expression, or none of its days exists; the error says where and why.
    pub fn parse(expression: &str) -> Result<Cron, CronError> {
        let calendar = Calendar::parse(expression)?;
        let words: Vec<_> = expression.split_whitespace().collect();
        Ok(Cron {
            expression: words.join(" ").to_ascii_uppercase().into(),
            calendar: Arc::new(calendar),
            zone: TimeZone::UTC,
        })
    }

    /// The same expression, as the clocks in this zone have it.
    ///
    /// Zones are those of the system, or if it has none, those of the version that `jiff` brings along.
    ///
    /// ```
    /// use millpond::schedule::Cron;
    ///
    /// let noon = Cron::parse("0 12 * * *")?.in_zone("Asia/Kolkata")?;
    /// # let _ = noon;
    /// # Ok::<(), millpond::schedule::CronError>(())
    /// ```
    ///
    /// # Errors
    /// If there is no zone of this IANA name.
    pub fn in_zone(self, zone: &str) -> Result<Cron, CronError> {
        match TimeZone::get(zone) {
            Ok(zone) if !zone.is_unknown() => Ok(Cron { zone, ..self }),
            _ => Err(CronError::zone(&self.expression, zone)),
        }
    }

    /// The same expression, as the clocks of this system have it; UTC if the system does not say.
    ///
    /// The system is asked here and now: a Cron does not follow it to another zone.
    ///
    /// ```
    /// use millpond::schedule::Cron;
    ///
    /// let noon = Cron::parse("0 12 * * *")?.in_local_zone();
    /// # let _ = noon;
    /// # Ok::<(), millpond::schedule::CronError>(())
    /// ```
    #[must_use]
    pub fn in_local_zone(self) -> Self {
        let system = TimeZone::try_system()
            .ok()
            .filter(|zone| !zone.is_unknown());
        let zone = system.unwrap_or(TimeZone::UTC);
        Cron { zone, ..self }
    }

    /// The first of its times that is strictly after `time`; `None` if there is none before the calendar ends,
    /// with the year 9999.
    ///
    /// ```
    /// use millpond::schedule::Cron;
    /// use std::time::SystemTime;
    ///
    /// let now = SystemTime::now();
    /// assert!(Cron::parse("* * * * *")?.next_after(now) > Some(now));
    /// # Ok::<(), millpond::schedule::CronError>(())
    /// ```
    pub fn next_after(&self, time: SystemTime) -> Option<SystemTime> {
        let time = match Timestamp::try_from(time) {
            Ok(time) => time,
            // Our calendar begins in the year -9999 and ends in 9999.
            Err(_) if time < SystemTime::UNIX_EPOCH => Timestamp::MIN,
            Err(_) => return None,
        };
        zone::next_after(&self.calendar, &self.zone, time).map(SystemTime::from)
    }

    /// Its times after `time`, one after the other.
    ///
    /// ```
    /// use millpond::schedule::Cron;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let hourly = Cron::parse("@hourly")?;
    /// let hours: Vec<_> = hourly.upcoming(SystemTime::UNIX_EPOCH).take(2).collect();
    /// assert_eq!(hours[1] - Duration::from_secs(3600), hours[0]);
    /// # Ok::<(), millpond::schedule::CronError>(())
    /// ```
    pub fn upcoming(&self, time: SystemTime) -> impl Iterator<Item = SystemTime> {
        let mut last = Some(time);
        std::iter::from_fn(move || {
            last = self.next_after(last?);
            last
        })
        .fuse()
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(expression: &str) -> Result<Cron, CronError> {
        Cron::parse(expression)
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression && self.zone == other.zone
    }
}

impl Eq for Cron {}

/// The expression and the zone. A zone of the system that has no name is called local.
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = self.zone.iana_name().unwrap_or("local");
        write!(f, "{} ({zone})", self.expression)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({self})")
    }
}
