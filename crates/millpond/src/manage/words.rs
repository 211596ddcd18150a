//! Patches and policies as text, as in a file of settings or on a command line.

use super::{Growth, Invalid, OverloadOrder, Patch, PatchError, Setting, ValueError, ValueType};
use crate::adapt::CoDel;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Reads a name, in any spelling.
///
/// ```
/// use millpond::manage::Growth;
///
/// assert_eq!("threads_first".parse(), Ok(Growth::ThreadsFirst));
/// assert_eq!(Growth::ThreadsFirst.to_string().parse(), Ok(Growth::ThreadsFirst));
/// let error = "fast".parse::<Growth>().unwrap_err();
/// assert_eq!(error.to_string(), "`fast` is not queue_first or threads_first");
/// ```
impl FromStr for Growth {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let value = Growth::TYPE.parse(text)?;
        Growth::of(&value).ok_or_else(|| Growth::TYPE.error(text.to_owned(), false))
    }
}

/// Reads a name, in any spelling.
///
/// ```
/// use millpond::manage::OverloadOrder;
///
/// assert_eq!("newest first".parse(), Ok(OverloadOrder::NewestFirst));
/// ```
impl FromStr for OverloadOrder {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let value = OverloadOrder::TYPE.parse(text)?;
        OverloadOrder::of(&value).ok_or_else(|| OverloadOrder::TYPE.error(text.to_owned(), false))
    }
}

/// Reads what its `Display` writes, or the target alone: then the interval is twenty times that.
///
/// ```
/// use millpond::adapt::CoDel;
///
/// assert_eq!("target 5ms, interval 100ms".parse(), Ok(CoDel::default()));
/// assert_eq!("5ms".parse(), Ok(CoDel::default()));
/// assert!("5".parse::<CoDel>().unwrap_err().to_string().contains("a duration with its unit"));
/// ```
impl FromStr for CoDel {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const TIME: ValueType = ValueType::POSITIVE_DURATION;
        let read = |text: &str, label: &str| {
            let text = text.trim();
            let start = text.get(..label.len()).unwrap_or_default();
            let has_label = start.eq_ignore_ascii_case(label);
            let value = TIME.parse(if has_label {
                &text[label.len()..]
            } else {
                text
            })?;
            value
                .as_duration()
                .ok_or_else(|| TIME.error(text.to_owned(), false))
        };
        let (target, interval) = match text.split_once(',') {
            Some((target, interval)) => (target, Some(interval)),
            None => (text, None),
        };
        let target = read(target, "target")?;
        let interval = match interval {
            Some(interval) => read(interval, "interval")?,
            None => target.saturating_mul(20),
        };
        Ok(CoDel::new(target, interval))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Value(value) => value.fmt(f),
            Setting::Text(text) => f.write_str(text),
        }
    }
}

/// Its changes, as [`FromStr`] reads them.
///
/// ```
/// use millpond::manage::Patch;
///
/// assert_eq!(Patch::new().core(4).set("keep_alive", "30s").to_string(), "core = 4, keep_alive = 30s");
/// ```
impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, setting)) in self.changes().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{name} = {setting}")?;
        }
        Ok(())
    }
}

/// Reads settings that are separated by commas or line ends; what follows a `#` is a comment. The engine that the patch is
/// applied to reads the values.
///
/// ```
/// use millpond::manage::Patch;
/// use millpond::preset;
///
/// let pool = preset::fixed("mill", 2).build()?;
/// let patch: Patch = "core = 1, max = 4 # more at night\n rejection = block(100ms)".parse()?;
/// pool.apply(&patch)?;
/// assert_eq!((pool.core(), pool.max()), (1, 4));
/// assert_eq!(patch.to_string().parse::<Patch>()?, patch);
///
/// let error = "core".parse::<Patch>().unwrap_err();
/// assert!(error.to_string().contains("`core = ...`"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl FromStr for Patch {
    type Err = PatchError;

    fn from_str(text: &str) -> Result<Self, PatchError> {
        let (mut patch, mut problems) = (Patch::new(), Vec::new());
        let lines = text
            .lines()
            .map(|line| line.split_once('#').map_or(line, |(before, _)| before));
        let settings = lines.flat_map(|line| line.split(',')).map(str::trim);
        for setting in settings.filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                    patch = patch.set(name.trim().to_owned(), value.trim());
                }
                _ => problems.push(Invalid::Other {
                    parameter: Cow::Owned(setting.to_owned()),
                    reason: Cow::Owned(format!("write its name and its value: `{setting} = ...`")),
                }),
            }
        }
        PatchError::unless_none(problems)?;
        Ok(patch)
    }
}
