//! Values of parameters, and their text form.
//!
//! A parameter file, a console and a program speak of the same few kinds of values. Each kind has one
//! text form that is exact, always has its unit, and is read back as the same value:
//!
//! | kind | text |
//! |---|---|
//! | integer | `64`, `10_000` |
//! | duration | `5ms`, `1.5s`, `1h30m`, `forever`; units `ns`, `us`, `ms`, `s`, `m`, `h`, `d` |
//! | boolean | `true`, `false` |
//! | choice | `caller_runs`, with an argument `block(100ms)` |
//! | optional, unset | `none` |
//!
//! It is read more leniently than it is written: [`ValueType`] has the table for users.
//!
//! # Invariants
//!
//! - **VALUE-1** For every value that a type accepts, parsing its text by that type gives the same value.
//! - **VALUE-2** What a type accepts as text it accepts as a value, and the reverse.

use super::text::{parse_choice, parse_duration, parse_integer, print_duration};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The value of a parameter.
///
/// ```
/// use millpond::manage::Value;
/// use std::time::Duration;
///
/// assert_eq!(Value::from(64_usize).to_string(), "64");
/// assert_eq!(Value::from(Duration::from_millis(1500)).to_string(), "1500ms");
/// assert_eq!(Value::from(None::<Duration>).to_string(), "none");
/// assert_eq!(Value::choice("caller_runs").to_string(), "caller_runs");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// An optional parameter that is not set.
    None,
    /// A count.
    Integer(u64),
    /// A length of time; [`Duration::MAX`] is forever.
    Duration(Duration),
    /// Yes or no.
    Boolean(bool),
    /// One of several names, some of which take an argument.
    Choice {
        /// The name.
        name: Cow<'static, str>,
        /// What the choice is to be done with, as the time of `block(100ms)`.
        argument: Option<Box<Value>>,
    },
}

impl Value {
    /// A choice without an argument.
    ///
    /// ```
    /// use millpond::manage::Value;
    ///
    /// assert_eq!(Value::choice("abort").to_string(), "abort");
    /// ```
    pub fn choice(name: impl Into<Cow<'static, str>>) -> Self {
        Value::Choice {
            name: name.into(),
            argument: None,
        }
    }

    /// A choice with an argument.
    ///
    /// ```
    /// use millpond::manage::Value;
    /// use std::time::Duration;
    ///
    /// let block = Value::choice_with("block", Duration::from_millis(100));
    /// assert_eq!(block.to_string(), "block(100ms)");
    /// ```
    pub fn choice_with(name: impl Into<Cow<'static, str>>, argument: impl Into<Value>) -> Self {
        Value::Choice {
            name: name.into(),
            argument: Some(Box::new(argument.into())),
        }
    }

    /// The integer, if it is one that fits.
    pub(crate) fn as_usize(&self) -> Option<usize> {
        match self {
            Value::Integer(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The duration, if it is one.
    pub(crate) fn as_duration(&self) -> Option<Duration> {
        match self {
            Value::Duration(duration) => Some(*duration),
            _ => None,
        }
    }

    /// The value as an engine has it: from 2^64 - 1 nanoseconds on, which is 584 years, a duration is forever.
    pub(super) fn as_stored(&self) -> Value {
        match self {
            Value::Duration(duration) if duration.as_nanos() >= u128::from(u64::MAX) => {
                Value::Duration(Duration::MAX)
            }
            Value::Choice {
                name,
                argument: Some(argument),
            } => Value::choice_with(name.clone(), argument.as_stored()),
            other => other.clone(),
        }
    }

    /// Whether it is `true`.
    pub(crate) fn is_true(&self) -> bool {
        *self == Value::Boolean(true)
    }

    /// Name and argument, if it is a choice.
    pub(crate) fn as_choice(&self) -> Option<(&str, Option<&Value>)> {
        match self {
            Value::Choice { name, argument } => Some((name, argument.as_deref())),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("none"),
            Value::Integer(number) => number.fmt(f),
            Value::Duration(duration) => print_duration(*duration, f),
            Value::Boolean(is_set) => is_set.fmt(f),
            Value::Choice {
                name,
                argument: Some(argument),
            } => write!(f, "{name}({argument})"),
            Value::Choice { name, .. } => f.write_str(name),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Integer(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Value::Integer(number as u64)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Integer(number.into())
    }
}

impl From<Duration> for Value {
    fn from(duration: Duration) -> Self {
        Value::Duration(duration)
    }
}

impl From<bool> for Value {
    fn from(is_set: bool) -> Self {
        Value::Boolean(is_set)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::None, Into::into)
    }
}

/// Which values a parameter can have.
///
/// # Values as text
///
/// | type | written as | read as well |
/// |---|---|---|
/// | integer | `10000` | `10_000`; no sign, no decimals |
/// | duration | the largest unit in which it is whole: `90s`, `1500ms`; the longest is `forever` | decimals `1.5s`, sums `1h 30m`, blanks before the unit `90 s`, `1_000ms`. Units: `ns`, `us` (`µs`), `ms`, `s`, `m` (`min`), `h`, `d`. A number without a unit is an error |
/// | boolean | `true`, `false` | |
/// | choice | `caller_runs`, with an argument `block(100ms)` | `caller-runs`, `caller runs`, `CallerRuns`; blanks in the parentheses |
/// | optional | `none`, if it is not set | |
///
/// Words and units are read in any case (`None`, `TRUE`, `5S`), and blanks around the text do not matter.
///
/// ```
/// use millpond::manage::{Value, ValueType};
///
/// let workers = ValueType::Integer { min: 1, max: 64 };
/// assert_eq!(workers.parse("8")?, Value::Integer(8));
/// let error = workers.parse("many").unwrap_err();
/// assert_eq!(error.to_string(), "`many` is not an integer from 1 to 64");
/// # Ok::<(), millpond::manage::ValueError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// An integer from `min` to `max`, both included.
    Integer {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A duration from `min` to `max`, both included.
    Duration {
        /// The shortest.
        min: Duration,
        /// The longest; [`Duration::MAX`] is forever.
        max: Duration,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these.
    Choice(&'static [Choice]),
    /// One of these values, or none.
    Optional(&'static ValueType),
}

/// One of the names that a parameter can have as its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name.
    pub name: &'static str,
    /// The type of its argument, if it takes one.
    pub argument: Option<ValueType>,
}

impl Choice {
    /// A choice without an argument.
    ///
    /// ```
    /// use millpond::manage::{Choice, ValueType};
    ///
    /// const SIDES: ValueType = ValueType::Choice(&[Choice::plain("left"), Choice::plain("right")]);
    /// assert_eq!(SIDES.to_string(), "left or right");
    /// ```
    pub const fn plain(name: &'static str) -> Self {
        Choice {
            name,
            argument: None,
        }
    }

    /// A choice with an argument.
    ///
    /// ```
    /// use millpond::manage::{Choice, ValueType};
    ///
    /// const UP_TO_9: ValueType = ValueType::Integer { min: 0, max: 9 };
    /// const HOW: ValueType = ValueType::Choice(&[Choice::plain("never"), Choice::with("times", UP_TO_9)]);
    /// assert_eq!(HOW.parse("times(3)")?.to_string(), "times(3)");
    /// # Ok::<(), millpond::manage::ValueError>(())
    /// ```
    pub const fn with(name: &'static str, argument: ValueType) -> Self {
        Choice {
            name,
            argument: Some(argument),
        }
    }
}

impl ValueType {
    /// Any duration, zero included.
    pub const ANY_DURATION: ValueType = ValueType::Duration {
        min: Duration::ZERO,
        max: Duration::MAX,
    };

    /// Any duration above zero.
    pub const POSITIVE_DURATION: ValueType = ValueType::Duration {
        min: Duration::from_nanos(1),
        max: Duration::MAX,
    };

    /// Reads a value of this type.
    ///
    /// # Errors
    ///
    /// The text is no value of this type, or out of range.
    ///
    /// ```
    /// use millpond::manage::{Value, ValueType};
    /// use std::time::Duration;
    ///
    /// const WAIT: ValueType = ValueType::Optional(&ValueType::POSITIVE_DURATION);
    /// assert_eq!(WAIT.parse("1.5s")?, Value::Duration(Duration::from_millis(1500)));
    /// assert_eq!(WAIT.parse("none")?, Value::None);
    /// assert!(WAIT.parse("250").unwrap_err().to_string().contains("unit"));
    /// # Ok::<(), millpond::manage::ValueError>(())
    /// ```
    pub fn parse(&self, text: &str) -> Result<Value, ValueError> {
        let text = text.trim();
        let read = match self {
            ValueType::Integer { .. } => parse_integer(text).map(Value::Integer),
            ValueType::Duration { .. } => parse_duration(text).map(Value::Duration),
            ValueType::Boolean => {
                let is = |word| text.eq_ignore_ascii_case(word);
                let known = is("true") || is("false");
                known.then(|| Value::Boolean(is("true")))
            }
            ValueType::Choice(choices) => return parse_choice(choices, text, self),
            ValueType::Optional(_) if text.eq_ignore_ascii_case("none") => return Ok(Value::None),
            ValueType::Optional(kind) => {
                let wrong = |error: ValueError| ValueError {
                    expected: *self,
                    ..error
                };
                return kind.parse(text).map_err(wrong);
            }
        };
        let value = read.ok_or_else(|| self.error(text.to_owned(), false))?;
        self.check(&value)?;
        Ok(value)
    }

    /// Whether the value is one of this type.
    ///
    /// # Errors
    ///
    /// It is of another type, or out of range.
    ///
    /// ```
    /// use millpond::manage::{Value, ValueType};
    ///
    /// let workers = ValueType::Integer { min: 1, max: 64 };
    /// assert!(workers.check(&Value::Integer(64)).is_ok());
    /// assert!(workers.check(&Value::Integer(65)).unwrap_err().is_out_of_range);
    /// assert!(!workers.check(&Value::Boolean(true)).unwrap_err().is_out_of_range);
    /// ```
    pub fn check(&self, value: &Value) -> Result<(), ValueError> {
        let fits = match (self, value) {
            (ValueType::Integer { min, max }, Value::Integer(number)) => in_range(min, max, number),
            (ValueType::Duration { min, max }, Value::Duration(duration)) => {
                in_range(min, max, duration)
            }
            (ValueType::Boolean, Value::Boolean(_)) => Fits::Yes,
            (ValueType::Choice(choices), Value::Choice { name, argument }) => {
                let choice = choices.iter().find(|choice| choice.name == *name);
                let argument = argument.as_deref();
                match (choice.map(|choice| choice.argument), argument) {
                    (Some(None), None) => Fits::Yes,
                    (Some(Some(kind)), Some(argument)) => match kind.check(argument) {
                        Ok(()) => Fits::Yes,
                        Err(error) if error.is_out_of_range => Fits::OutOfRange,
                        Err(_) => Fits::No,
                    },
                    _ => Fits::No,
                }
            }
            (ValueType::Optional(_), Value::None) => Fits::Yes,
            (ValueType::Optional(kind), value) => match kind.check(value) {
                Ok(()) => Fits::Yes,
                Err(error) if error.is_out_of_range => Fits::OutOfRange,
                Err(_) => Fits::No,
            },
            _ => Fits::No,
        };
        match fits {
            Fits::Yes => Ok(()),
            Fits::OutOfRange => Err(self.error(value.to_string(), true)),
            Fits::No => Err(self.error(value.to_string(), false)),
        }
    }

    pub(crate) fn error(&self, given: String, is_out_of_range: bool) -> ValueError {
        ValueError {
            given,
            expected: *self,
            is_out_of_range,
            hint: None,
        }
    }

    /// Its name in a word, for the argument of a choice.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            ValueType::Integer { .. } => "integer",
            ValueType::Duration { .. } => "duration",
            ValueType::Boolean => "true or false",
            ValueType::Choice(_) => "name",
            ValueType::Optional(kind) => kind.noun(),
        }
    }
}

enum Fits {
    Yes,
    OutOfRange,
    No,
}

fn in_range<T: PartialOrd>(min: &T, max: &T, value: &T) -> Fits {
    if (min..=max).contains(&value) {
        Fits::Yes
    } else {
        Fits::OutOfRange
    }
}

/// What to write: "an integer from 1 to 64".
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Integer { min, max } if min == max => write!(f, "{min}"),
            ValueType::Integer { min, max } if *max == u64::MAX => {
                write!(f, "an integer from {min} on")
            }
            ValueType::Integer { min, max } => write!(f, "an integer from {min} to {max}"),
            ValueType::Duration { min, max } => {
                f.write_str("a duration with its unit (as 20ms, 5s, 1m)")?;
                match (*min, *max) {
                    (Duration::ZERO, Duration::MAX) => Ok(()),
                    (min, Duration::MAX) => write!(f, ", at least {}", Value::Duration(min)),
                    (min, max) => {
                        write!(
                            f,
                            " from {} to {}",
                            Value::Duration(min),
                            Value::Duration(max)
                        )
                    }
                }
            }
            ValueType::Boolean => f.write_str("true or false"),
            ValueType::Choice(choices) => {
                for (position, choice) in choices.iter().enumerate() {
                    f.write_str(match position {
                        0 => "",
                        _ if position + 1 == choices.len() => " or ",
                        _ => ", ",
                    })?;
                    f.write_str(choice.name)?;
                    if let Some(argument) = choice.argument {
                        write!(f, "({})", argument.noun())?;
                    }
                }
                Ok(())
            }
            ValueType::Optional(kind) => write!(f, "{kind}, or none"),
        }
    }
}

/// A text or a value that is not of the type that was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueError {
    /// The text, or the value as text.
    pub given: String,
    /// The type that was expected.
    pub expected: ValueType,
    /// Whether it is a value of the right kind, but too small or too large.
    pub is_out_of_range: bool,
    /// What is wrong with a text that is nearly right, and what to write instead.
    pub hint: Option<String>,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (given, expected) = (&self.given, &self.expected);
        match &self.hint {
            Some(hint) => write!(f, "`{given}`: {hint}"),
            None => write!(f, "`{given}` is not {expected}"),
        }
    }
}

impl Error for ValueError {}
