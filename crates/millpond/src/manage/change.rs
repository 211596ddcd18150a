//! What a patch changes, and patches for several engines that are applied together.
//!
//! An engine changes all that its patch names under a lock of its own, or nothing (PATCH-1). Several engines have no lock in
//! common. So [`apply_all`] checks all patches first; what an engine rejects nevertheless, because another thread has changed
//! it since the check, is answered by putting back what the engines before it have changed.

use super::{Managed, Parameter, Patch, PatchError, Value};
use millpond_raw::catch_panic;
use millpond_raw::user_code::{self, Kind};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A parameter that has changed, or would change: see [`Managed::check`] and [`Managed::apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The name of the parameter.
    pub parameter: Cow<'static, str>,
    /// The value before.
    pub from: Value,
    /// The value afterwards.
    pub to: Value,
}

impl Change {
    /// A change, for engines of other crates.
    ///
    /// ```
    /// use millpond::manage::Change;
    ///
    /// assert_eq!(Change::new("lanes", 2_u64, 3_u64).to_string(), "lanes: 2 -> 3");
    /// ```
    pub fn new(
        parameter: impl Into<Cow<'static, str>>,
        from: impl Into<Value>,
        to: impl Into<Value>,
    ) -> Self {
        Change {
            parameter: parameter.into(),
            from: from.into(),
            to: to.into(),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.parameter, self.from, self.to)
    }
}

/// Changes several engines, each by its patch: all of them, or none. Returns what has changed in each, in their order.
///
/// All patches are checked before the first is applied. An engine that another thread changes meanwhile may reject its patch
/// all the same. Then the engines before it get their former values back, where nobody has changed them again. An engine
/// that does not take them keeps what it has, and the [error](ApplyAllError::kept) says so and names the reasons there can be. Between the first engine and the last, other threads see some changed and
/// some not.
///
/// An engine should be there once: what two patches for it do together is not checked before.
///
/// # Errors
///
/// All that is wrong with the patches, by engine.
///
/// # Panics
///
/// If an engine of another crate does. When it does so while it is changed, the engines before it get their former values
/// back as well.
///
/// ```
/// use millpond::manage::{Managed, Patch, apply_all};
/// use millpond::pool::ThreadPool;
/// use millpond::preset;
///
/// let (pool, timers) = (preset::fixed("mill", 2).build()?, preset::scheduled("bells", 1)?);
/// let (smaller, fewer) = (Patch::new().set("max", "1"), Patch::new().set("max_pending", "10"));
/// let both: [(&dyn Managed, &Patch); 2] = [(&timers, &fewer), (&pool, &smaller)];
///
/// let error = apply_all(&both).unwrap_err();
/// assert!(error.to_string().starts_with("nothing has changed: mill: core 2 is above max 1"));
/// assert_eq!(timers.max_pending(), Some(1 << 20)); // as before
///
/// let smaller = Patch::new().set("max", "1").set("core", "1");
/// let changes = apply_all(&[(&timers, &fewer), (&pool, &smaller)])?;
/// assert_eq!(changes[0][0].to_string(), "max_pending: 1048576 -> 10");
/// assert_eq!((timers.max_pending(), pool.max()), (Some(10), 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn apply_all(patches: &[(&dyn Managed, &Patch)]) -> Result<Vec<Vec<Change>>, ApplyAllError> {
    let rejected = |(engine, patch): &(&dyn Managed, &Patch)| {
        let error = engine.check(patch).err()?;
        Some((engine.name().to_owned(), error))
    };
    let problems: Vec<_> = patches.iter().filter_map(rejected).collect();
    if !problems.is_empty() {
        return Err(ApplyAllError::new(problems));
    }
    let mut applied = Vec::new();
    for (engine, patch) in patches {
        // An engine of another crate may panic.
        user_code::check(Kind::Contained);
        match catch_unwind(AssertUnwindSafe(|| engine.apply(patch))) {
            Ok(Ok(changes)) => applied.push(changes),
            Ok(Err(error)) => {
                let mut error = ApplyAllError::new(vec![(engine.name().to_owned(), error)]);
                error.kept = put_all_back(patches, applied);
                return Err(error);
            }
            Err(panic) => {
                put_all_back(patches, applied);
                resume_unwind(panic);
            }
        }
    }
    Ok(applied)
}

/// Puts back what the first engines have changed, the last of them first. Returns what is not possible.
fn put_all_back(
    patches: &[(&dyn Managed, &Patch)],
    applied: Vec<Vec<Change>>,
) -> Vec<(String, Vec<Change>)> {
    let changed = patches.iter().zip(applied).rev();
    changed
        .filter_map(|((engine, _), changes)| put_back(*engine, changes))
        .collect()
}

/// Puts former values back where nobody has changed them again. Returns the changes, if that is not possible.
fn put_back(engine: &dyn Managed, mut changes: Vec<Change>) -> Option<(String, Vec<Change>)> {
    let now = catch_panic::call(|| engine.parameters()).unwrap_or_default();
    changes.retain(|change| {
        let is_there =
            |each: &Parameter| (&each.name, &each.value) == (&change.parameter, &change.to);
        now.iter().any(is_there)
    });
    let former = changes.iter().fold(Patch::new(), |patch, change| {
        patch.set(change.parameter.clone(), change.from.clone())
    });
    let put_back = catch_panic::call(|| engine.apply(&former));
    let kept = !matches!(put_back, Some(Ok(_)));
    kept.then(|| (engine.name().to_owned(), changes))
}

/// Why [`apply_all`] has not changed several engines.
///
/// ```
/// use millpond::manage::{Patch, apply_all};
/// use millpond::preset;
///
/// let pool = preset::fixed("mill", 2).build()?;
/// let error = apply_all(&[(&pool, &Patch::new().set("cor", 3))]).unwrap_err();
/// let (engine, what) = &error.problems()[0];
/// assert_eq!((engine.as_str(), what.problems()[0].parameter()), ("mill", "cor"));
/// assert!(error.kept().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyAllError {
    problems: Vec<(String, PatchError)>,
    kept: Vec<(String, Vec<Change>)>,
}

impl ApplyAllError {
    fn new(problems: Vec<(String, PatchError)>) -> Self {
        ApplyAllError {
            problems,
            kept: Vec::new(),
        }
    }

    /// The names of the engines that reject their patches, and why.
    pub fn problems(&self) -> &[(String, PatchError)] {
        &self.problems
    }

    /// The names of engines that did not take their former values back, and what has changed there.
    ///
    /// It is empty unless an engine rejects a patch that it accepted when that was checked, because another thread has
    /// changed the engine meanwhile. Then those before it keep what they have
    ///
    /// - if no patch can set a former value: a queue without a bound that has got one, a rejection policy of your own;
    /// - if another thread has changed something since then that a former value does not fit;
    /// - if an engine of another crate refuses.
    pub fn kept(&self) -> &[(String, Vec<Change>)] {
        &self.kept
    }
}

impl fmt::Display for ApplyAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kept.is_empty() {
            f.write_str("nothing has changed")?;
        } else {
            f.write_str("not all was undone (")?;
            for (position, (engine, changes)) in self.kept.iter().enumerate() {
                let separator = if position > 0 { "; " } else { "" };
                write!(f, "{separator}{engine}")?;
                changes
                    .iter()
                    .try_for_each(|change| write!(f, ", {change}"))?;
            }
            f.write_str(")")?;
        }
        for (position, (engine, error)) in self.problems.iter().enumerate() {
            let separator = if position > 0 { "; " } else { ": " };
            write!(f, "{separator}{engine}: {error}")?;
        }
        Ok(())
    }
}

impl Error for ApplyAllError {}
