//! The Govern seam: what every engine shows of itself, and how it is changed while it runs.
//!
//! An engine is [`Managed`]: it gives a [`PoolSnapshot`], plain figures of one moment, and it takes a
//! [`Patch`], any number of parameters that change together or not at all. Consoles, registries and
//! files of parameters know engines by this trait and by nothing else.

mod overload;
mod patch;
mod snapshot;

pub use crate::adapt::CoDel;
pub use overload::{Overload, OverloadOrder};
pub use patch::{Invalid, Patch, PatchError, Sizes};
pub use snapshot::{Growth, PoolSnapshot, RunState};

use std::fmt;

/// An engine that can be looked at and changed while it runs.
///
/// ```
/// use millpond::manage::{Managed, Patch};
/// use millpond::pool::ThreadPool;
///
/// fn halve(engine: &dyn Managed) -> Result<(), millpond::manage::PatchError> {
///     let now = engine.snapshot();
///     engine.apply(&Patch::new().core(now.core / 2).max((now.max / 2).max(1)))
/// }
///
/// let pool = ThreadPool::builder("mill").core(4).max(8).build()?;
/// halve(&pool)?;
/// assert_eq!((pool.core(), pool.max()), (2, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Managed: fmt::Debug + Send + Sync {
    /// Its figures and parameters at one moment.
    fn snapshot(&self) -> PoolSnapshot;

    /// Changes all parameters that the patch names, or none.
    ///
    /// # Errors
    ///
    /// All that is wrong with the patch; then nothing has changed.
    fn apply(&self, patch: &Patch) -> Result<(), PatchError>;
}
