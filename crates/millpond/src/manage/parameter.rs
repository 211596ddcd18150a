//! Parameters of engines: one table per engine, from which everything else is made.
//!
//! An engine has a plain struct `C` with its configuration and a table of [`ParameterSpec<C>`], one row
//! per parameter: name, type, unit, default, help, how to read it from a `C` and how to write it there.
//! The rest is written once, here: the described list that consoles show, the judging of a
//! [`Patch`] and that of a builder's values ([`ParameterTable`]).
//!
//! # Invariants
//!
//! - **PARAM-1** Names are unique in a table, and are those of the builder's and the patch's methods.
//! - **PARAM-2** Reading a parameter and writing what was read changes nothing.
//! - **PARAM-3** A value that is written has been checked against the type of its row.
//! - **PARAM-4** A duration that is written is forever or shorter than 2^64 - 1 nanoseconds, as engines count them. So what
//!   is reported as changed is what the engine has afterwards.

use super::{Change, Invalid, Patch, Setting, Value, ValueType};
use std::borrow::Cow;
use std::fmt;

/// A parameter of a running engine, described.
///
/// ```
/// use millpond::manage::{Managed, Value};
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").core(2).max(4).build()?;
/// let core = pool.parameters().into_iter().find(|each| each.name == "core").unwrap();
/// assert_eq!((&core.value, core.is_live), (&Value::Integer(2), true));
/// assert_eq!(core.unit, Some("workers"));
/// assert!(core.to_string().starts_with("core = 2 workers"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name, unique in its engine.
    pub name: Cow<'static, str>,
    /// Which values it can have.
    pub kind: ValueType,
    /// What an integer counts.
    pub unit: Option<&'static str>,
    /// Its value now.
    pub value: Value,
    /// Its value in an engine whose builder was told nothing; `None` if there is no such value, as for the capacity of
    /// a queue that hands over. A patch with the defaults of all live parameters resets an engine.
    pub default: Option<Value>,
    /// Whether it can change while the engine runs.
    pub is_live: bool,
    /// One line that says what it is.
    pub help: &'static str,
}

impl Parameter {
    /// A live parameter without a unit, whose default is its value: for engines of other crates. All fields
    /// can be changed afterwards.
    ///
    /// ```
    /// use millpond::manage::{Parameter, Value, ValueType};
    ///
    /// let kind = ValueType::Integer { min: 0, max: 512 };
    /// let mut threads = Parameter::new("blocking_threads", kind, 64_u64, "Threads for blocking calls.");
    /// threads.is_live = false;
    /// assert_eq!(threads.default, Some(Value::Integer(64)));
    /// ```
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        kind: ValueType,
        value: impl Into<Value>,
        help: &'static str,
    ) -> Self {
        let value = value.into();
        Parameter {
            name: name.into(),
            kind,
            unit: None,
            default: Some(value.clone()),
            value,
            is_live: true,
            help,
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value)?;
        if let (Some(unit), Value::Integer(_)) = (self.unit, &self.value) {
            write!(f, " {unit}")?;
        }
        write!(f, " ({}", self.kind)?;
        if let Some(default) = &self.default {
            write!(f, "; default {default}")?;
        }
        let fixed = if self.is_live { "" } else { "; fixed" };
        write!(f, "{fixed}): {}", self.help)
    }
}

/// One row of an engine's table of parameters: all there is to know of one parameter.
///
/// ```
/// use millpond::manage::{ParameterSpec, ParameterTable, Patch, Value, ValueType};
///
/// #[derive(Clone, Default)]
/// struct Config { lanes: u64 }
///
/// const LANES: ValueType = ValueType::Integer { min: 1, max: 8 };
/// const TABLE: ParameterTable<Config> = ParameterTable(&[
///     ParameterSpec::new(
///         "lanes",
///         LANES,
///         "Lanes that run at the same time.",
///         |config: &Config| config.lanes.into(),
///         |config, value| match value {
///             Value::Integer(lanes) => Ok(config.lanes = *lanes),
///             _ => Err("it is an integer".into()),
///         },
///     )
///     .with_unit("lanes")
///     .with_default(|_| Some(Value::Integer(1))),
/// ]);
///
/// let (next, problems) = TABLE.resolve(&Config { lanes: 1 }, &Patch::new().set("lanes", "4"));
/// assert_eq!((next.lanes, problems.len()), (4, 0));
/// let (same, problems) = TABLE.resolve(&next, &Patch::new().set("lanes", 9));
/// assert_eq!((same.lanes, problems[0].parameter()), (4, "lanes"));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ParameterSpec<C: 'static> {
    /// Its name, unique in the table.
    pub name: &'static str,
    /// Which values it can have.
    pub kind: ValueType,
    /// What an integer counts.
    pub unit: Option<&'static str>,
    /// Its value in an engine whose builder was told nothing, if an engine of this configuration can have that. The
    /// defaults of all rows fit each other.
    pub default: fn(&C) -> Option<Value>,
    /// Whether it can change while the engine runs.
    pub is_live: bool,
    /// One line that says what it is.
    pub help: &'static str,
    /// What is wrong with values that are too small; may be empty. Of one that is too large the range says enough.
    pub advice: &'static str,
    /// Reads it.
    pub get: fn(&C) -> Value,
    /// Writes a value that has been checked (PARAM-3). An error says why this engine cannot have it.
    pub set: fn(&mut C, &Value) -> Result<(), Cow<'static, str>>,
}

impl<C> ParameterSpec<C> {
    /// A live parameter without a unit, a default and advice.
    pub const fn new(
        name: &'static str,
        kind: ValueType,
        help: &'static str,
        get: fn(&C) -> Value,
        set: fn(&mut C, &Value) -> Result<(), Cow<'static, str>>,
    ) -> Self {
        ParameterSpec {
            name,
            kind,
            unit: None,
            default: |_| None,
            is_live: true,
            help,
            advice: "",
            get,
            set,
        }
    }

    /// The same with what an integer counts.
    #[must_use]
    pub const fn with_unit(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    /// The same with its value in an engine whose builder was told nothing.
    #[must_use]
    pub const fn with_default(mut self, default: fn(&C) -> Option<Value>) -> Self {
        self.default = default;
        self
    }

    /// The same with what is wrong with values that are too small.
    #[must_use]
    pub const fn with_advice(mut self, advice: &'static str) -> Self {
        self.advice = advice;
        self
    }

    /// The same, but it cannot change while the engine runs.
    #[must_use]
    pub const fn fixed(mut self) -> Self {
        self.is_live = false;
        self
    }

    /// The parameter with its value in this configuration.
    fn describe(&self, config: &C) -> Parameter {
        Parameter {
            name: Cow::Borrowed(self.name),
            kind: self.kind,
            unit: self.unit,
            value: (self.get)(config),
            default: (self.default)(config),
            is_live: self.is_live,
            help: self.help,
        }
    }

    fn read(&self, setting: &Setting) -> Result<Value, Invalid> {
        let read = match setting {
            Setting::Value(value) => self.kind.check(value).map(|()| value.clone()),
            Setting::Text(text) => self.kind.parse(text),
        };
        // PARAM-4
        read.map(|value| value.as_stored())
            .map_err(|error| Invalid::value(self.name, error, self.advice))
    }

    fn change(&self, config: &mut C, setting: &Setting) -> Result<(), Invalid> {
        let (value, current) = (self.read(setting)?, (self.get)(config));
        // A builder may have been told a longer duration.
        if value == current.as_stored() {
            return Ok(());
        }
        if !self.is_live {
            return Err(Invalid::NotLive {
                parameter: Cow::Borrowed(self.name),
                current,
            });
        }
        (self.set)(config, &value).map_err(|reason| Invalid::Other {
            parameter: Cow::Borrowed(self.name),
            reason,
        })
    }
}

/// All parameters of the engines of one kind. See [`ParameterSpec`] for an example.
#[derive(Clone, Copy, Debug)]
pub struct ParameterTable<C: 'static>(pub &'static [ParameterSpec<C>]);

impl<C: Clone> ParameterTable<C> {
    /// The parameters with their values in this configuration.
    pub fn describe(&self, config: &C) -> Vec<Parameter> {
        self.0.iter().map(|row| row.describe(config)).collect()
    }

    /// The configuration that a patch leads to, and all that is wrong with the patch by itself: names that
    /// are not there, values of a wrong type or out of range, parameters that cannot change. What is wrong is
    /// left out of the configuration. Whether the parameters fit each other is for the engine to say.
    ///
    /// Names that are not there are compared with all that are, so this is not for the inside of a lock: there an
    /// engine calls [`resolve_known`](ParameterTable::resolve_known), and [`unknown`](ParameterTable::unknown) before.
    pub fn resolve(&self, config: &C, patch: &Patch) -> (C, Vec<Invalid>) {
        let mut problems = self.unknown(patch);
        let (next, further) = self.resolve_known(config, patch);
        problems.extend(further);
        (next, problems)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|row| row.name == name)
    }

    /// The names in a patch that are not in the table.
    ///
    /// ```
    /// use millpond::manage::{ParameterTable, Patch};
    ///
    /// let none = ParameterTable::<()>(&[]);
    /// assert_eq!(none.unknown(&Patch::new().core(1))[0].parameter(), "core");
    /// ```
    pub fn unknown(&self, patch: &Patch) -> Vec<Invalid> {
        let names = patch.changes().map(|(name, _)| name);
        let unknown = names.filter(|name| !self.has(name));
        let problem = |name| Invalid::unknown(name, self.0.iter().map(|row| row.name));
        unknown.map(problem).collect()
    }

    /// As [`resolve`](ParameterTable::resolve), for the names that are in the table; the others are ignored.
    ///
    /// ```
    /// use millpond::manage::{ParameterTable, Patch};
    ///
    /// let none = ParameterTable::<()>(&[]);
    /// assert!(none.resolve_known(&(), &Patch::new().core(1)).1.is_empty());
    /// ```
    pub fn resolve_known(&self, config: &C, patch: &Patch) -> (C, Vec<Invalid>) {
        let (mut next, mut problems) = (config.clone(), Vec::new());
        for row in self.0 {
            if let Some(setting) = patch.get(row.name) {
                let replaced = patch.replaced(row.name);
                problems.extend(replaced.filter_map(|former| row.read(former).err()));
                problems.extend(row.change(&mut next, setting).err());
            }
        }
        (next, problems)
    }

    /// The parameters that two configurations do not have in common.
    ///
    /// ```
    /// use millpond::manage::ParameterTable;
    ///
    /// assert!(ParameterTable::<()>(&[]).changes(&(), &()).is_empty());
    /// ```
    pub fn changes(&self, before: &C, after: &C) -> Vec<Change> {
        let changed = |row: &ParameterSpec<C>| {
            let (from, to) = ((row.get)(before), (row.get)(after));
            (from != to).then(|| Change::new(row.name, from, to))
        };
        self.0.iter().filter_map(changed).collect()
    }

    /// All values of a configuration that are out of their ranges: for builders.
    pub fn check(&self, config: &C) -> Vec<Invalid> {
        let wrong = |row: &ParameterSpec<C>| {
            let checked = row.kind.check(&(row.get)(config));
            let problem = |error| Invalid::value(row.name, error, row.advice);
            checked.err().map(problem)
        };
        self.0.iter().filter_map(wrong).collect()
    }
}
/// What a setter of a table says if a value is not of its type, which PARAM-3 rules out.
pub(crate) const WRONG_TYPE: Cow<'static, str> = Cow::Borrowed("the value is of another type");

/// Sets a field of a configuration, in a row of a table.
pub(crate) fn set<T>(to: &mut T, value: Option<T>) -> Result<(), Cow<'static, str>> {
    *to = value.ok_or(WRONG_TYPE)?;
    Ok(())
}
