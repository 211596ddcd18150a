//! Inspecting and changing engines of any kind while they run.
//!
//! Take it for a console, a registry or a parameter file that handles thread pools, scheduled pools, fork-join pools and
//! engines of other crates alike; code that knows its pool uses the methods of the pool.
//!
//! ```
//! use millpond::manage::{Managed, Patch};
//! use millpond::preset;
//!
//! let (pool, timers) = (preset::fixed("mill", 2).build()?, preset::scheduled("bells", 1)?);
//! let engines: [&dyn Managed; 2] = [&pool, &timers];
//! for engine in engines {
//!     println!("{}: {}", engine.name(), engine.explain());
//!     for parameter in engine.parameters() {
//!         println!("  {} = {}", parameter.name, parameter.value);
//!     }
//! }
//! engines[0].apply(&Patch::new().set("max", "4"))?;
//! assert_eq!(pool.max(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An engine is [`Managed`]. It has a name, and explains itself in sentences. It gives an [`EngineSnapshot`]: a few
//! numbers that all engines have, and the snapshot of its own kind. It lists its [parameters](Parameter): name, type,
//! range, value, whether it can change live. And it takes a [`Patch`]: parameters that change together or not at all.
//! Consoles, registries and parameter files know engines by this trait alone, so they show and change an engine that
//! they have never heard of.

// The Govern seam.
//
// | file | what |
// |---|---|
// | `snapshot` | the state of an engine at one moment |
// | `value`, `text` | values of parameters; how their text is read and printed |
// | `parameter` | described parameters; the table that an engine has of them |
// | `words` | patches and policies as text |
// | `patch` | parameters that change together |
// | `change` | what a patch changes; patches for several engines that are applied together |
// | `error` | what can be wrong with them |
// | `policy` | choices that a thread pool's parameters have |

mod change;
mod error;
mod parameter;
mod patch;
mod policy;
mod snapshot;
mod text;
mod value;
mod words;

pub use crate::adapt::CoDel;
pub use change::{ApplyAllError, Change, apply_all};
pub use error::{Invalid, PatchError};
pub use parameter::{Parameter, ParameterSpec, ParameterTable};
pub(crate) use parameter::{WRONG_TYPE, set};
pub use patch::{Patch, Setting};
pub use policy::{Growth, OverloadOrder};
pub use snapshot::{
    AsAny, Details, EngineSnapshot, Measurement, MeasurementKind, RunState, TaskLatency,
};
pub use value::{Choice, Value, ValueError, ValueType};

use std::fmt;

/// An engine that can be inspected and changed while it runs.
///
/// ```
/// use millpond::manage::{Managed, Patch, PatchError};
/// use millpond::preset;
/// use std::sync::{Arc, Weak};
///
/// fn set_everywhere(engines: &[Weak<dyn Managed>], name: &str, text: &str) -> Result<(), PatchError> {
///     for engine in engines.iter().filter_map(Weak::upgrade) {
///         if engine.parameters().iter().any(|each| each.name == name) {
///             engine.apply(&Patch::new().set(name.to_owned(), text))?;
///         }
///     }
///     Ok(())
/// }
///
/// let pool = Arc::new(preset::fixed("mill", 2).build()?);
/// let timers = Arc::new(preset::scheduled("bell", 1)?);
/// let (one, other): (Arc<dyn Managed>, Arc<dyn Managed>) = (pool.clone(), timers.clone());
/// let registry = [Arc::downgrade(&one), Arc::downgrade(&other)];
///
/// set_everywhere(&registry, "max_pending", "500")?;
/// set_everywhere(&registry, "capacity", "64")?;
/// assert_eq!((timers.max_pending(), pool.capacity()), (Some(500), Some(64)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Managed: fmt::Debug + Send + Sync {
    /// Its name, by which registries and consoles know it.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    /// use millpond::manage::Managed;
    /// use millpond::preset;
    ///
    /// let (pool, timers) = (preset::single("mill").build()?, preset::scheduled("bells", 1)?);
    /// let steals = ForkJoinPool::builder("saw").build()?;
    /// let engines: [&dyn Managed; 3] = [&pool, &timers, &steals];
    /// assert_eq!(engines.map(Managed::name), ["mill", "bells", "saw"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn name(&self) -> &str;

    /// The engine in sentences: what it does, why tasks wait, and what would help.
    ///
    /// ```
    /// use millpond::manage::Managed;
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let engine: &dyn Managed = &pool;
    /// assert!(engine.explain().starts_with("mill is running and has nothing to do."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn explain(&self) -> String;

    /// Its state at one moment, with all its latencies. The counts never fall from one snapshot to a later one:
    /// [`EngineSnapshot`] has the contract. Reading those takes a while if tasks have many
    /// names: the snapshot of the engine's own type has the plain numbers for less.
    fn engine_snapshot(&self) -> EngineSnapshot;

    /// The engine below, if it has no workers of its own: the one that runs what is due. Tasks that it has handed over are
    /// among the tasks of that engine as well, and it has to be shut down before that engine. By default there is none.
    ///
    /// ```
    /// use millpond::manage::Managed;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// let timers = ScheduledPool::on(pool.clone()).name("bells").build();
    /// let engines: [&dyn Managed; 2] = [&pool, &timers];
    /// assert!(engines[0].executor().is_none());
    /// assert_eq!(engines[1].executor().map(|below| below.name()), Some("mill"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn executor(&self) -> Option<&dyn Managed> {
        None
    }

    /// Its parameters, described, with their values now.
    fn parameters(&self) -> Vec<Parameter>;

    /// What the patch would change now: a dry run, which changes nothing. Parameters that have the value already are left
    /// out.
    ///
    /// Another thread may change the engine before the patch is applied. And a queue of the user's tells only then
    /// whether it can have a capacity.
    ///
    /// # Errors
    ///
    /// All that is wrong with the patch.
    ///
    /// ```
    /// use millpond::manage::{Managed, Patch};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// let engine: &dyn Managed = &pool;
    /// let changes = engine.check(&Patch::new().set("core", "2").set("max", "4"))?;
    /// assert_eq!(changes[0].to_string(), "core: 1 -> 2");
    /// assert_eq!((changes.len(), pool.core()), (1, 1)); // max is 4 already, and core stays
    /// assert!(engine.check(&Patch::new().set("core", "5")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn check(&self, patch: &Patch) -> Result<Vec<Change>, PatchError>;

    /// Changes all parameters that the patch names, or none. Returns what it has changed, as [`check`](Managed::check)
    /// does, for a log. Several engines at once: [`apply_all`].
    ///
    /// # Errors
    ///
    /// All that is wrong with the patch; then nothing has changed.
    fn apply(&self, patch: &Patch) -> Result<Vec<Change>, PatchError>;
}
