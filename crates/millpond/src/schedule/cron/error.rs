//! What is wrong with an expression or a zone, and what to do.

use std::fmt;

/// How much of a text is shown. A person has to find the place; a log has to survive it.
const SHOWN: usize = 80;

/// A cron expression that is none or would never run, or a time zone that does not exist.
///
/// Its text has the expression in it, says where it is wrong, and what to write instead.
///
/// ```
/// use millpond::schedule::Cron;
///
/// let error = Cron::parse("0 24 * * *").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"cron "0 24 * * *": hour "24": "24" is not from 0 to 23: midnight is 0"#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError {
    expression: String,
    wrong: Wrong,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wrong {
    /// The expression as a whole.
    Expression(String),
    Field {
        name: &'static str,
        text: String,
        why: String,
    },
    Zone(String),
}

impl CronError {
    pub(super) fn whole(expression: &str, why: impl Into<String>) -> Self {
        CronError::new(expression, Wrong::Expression(why.into()))
    }

    pub(super) fn field(expression: &str, name: &'static str, text: &str, why: String) -> Self {
        let text = text.into();
        CronError::new(expression, Wrong::Field { name, text, why })
    }

    pub(super) fn zone(expression: &str, zone: &str) -> Self {
        CronError::new(expression, Wrong::Zone(zone.into()))
    }

    fn new(expression: &str, wrong: Wrong) -> Self {
        CronError {
            expression: expression.into(),
            wrong,
        }
    }

    /// The expression, as it was given.
    ///
    /// ```
    /// use millpond::schedule::Cron;
    ///
    /// assert_eq!(Cron::parse("every day").unwrap_err().expression(), "every day");
    /// ```
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Whether the expression is right, and the time zone is unknown.
    ///
    /// ```
    /// use millpond::schedule::Cron;
    ///
    /// let error = Cron::parse("@daily")?.in_zone("Europe/Atlantis").unwrap_err();
    /// assert!(error.is_unknown_zone());
    /// # Ok::<(), millpond::schedule::CronError>(())
    /// ```
    pub fn is_unknown_zone(&self) -> bool {
        matches!(self.wrong, Wrong::Zone(_))
    }
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cron {}: ", shown(&self.expression))?;
        match &self.wrong {
            Wrong::Expression(why) => f.write_str(why),
            Wrong::Field { name, text, why } => write!(f, "{name} {}: {why}", shown(text)),
            Wrong::Zone(zone) => write!(
                f,
                "there is no time zone {}: give its IANA name, such as \"Europe/Berlin\" or \"UTC\"",
                shown(zone)
            ),
        }
    }
}

impl std::error::Error for CronError {}

/// In quotes, without anything that a terminal would obey, and not too long.
pub(super) fn shown(text: &str) -> String {
    if text.chars().nth(SHOWN).is_none() {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start:?} and so on")
}
