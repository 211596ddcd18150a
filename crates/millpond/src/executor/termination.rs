//! Waiting for the end of an executor, and who must not.
//!
//! An executor ends after its last task has. So a task that waits for the end of its own executor waits for
//! itself. Executors that can be ended note in each thread which of them cannot end before what runs there
//! does ([`Inside`]): a pool once in the life of a worker, so that no task pays for it. Whoever is about to
//! wait without a time-out looks there first. A wait with a time-out ends by itself.

use crate::interrupt::{Interrupted, WaitError};
use crate::time::Deadline;
use millpond_raw::sync::local;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

/// Why a wait for the end of an executor was given up.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle, TerminationError};
/// use millpond::preset;
///
/// let pool = preset::single("mill").build()?;
/// let own = pool.clone();
/// let closed = pool.submit(move || own.close())?;
/// assert_eq!(closed.join()?, Err(TerminationError::OwnTask));
/// // It was shut down all the same, and out here the end can be waited for.
/// pool.await_termination()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TerminationError {
    /// The caller, itself a task, was interrupted.
    Interrupted,
    /// The caller is a task of that very executor, or a hook or handler that it has called on one of its
    /// threads: the end that it would wait for cannot come before it returns.
    OwnTask,
}

impl fmt::Display for TerminationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TerminationError::Interrupted => Interrupted.fmt(f),
            TerminationError::OwnTask => f.write_str(
                "a task of an executor cannot wait for the end of that executor, which waits for the \
                 task: wait in a thread outside of it",
            ),
        }
    }
}

impl Error for TerminationError {}

impl From<Interrupted> for TerminationError {
    fn from(_: Interrupted) -> Self {
        TerminationError::Interrupted
    }
}

/// What a wait for the end came to.
pub(crate) fn ended(waited: Result<(), WaitError>) -> Result<bool, TerminationError> {
    match waited {
        Ok(()) => Ok(true),
        Err(WaitError::TimedOut) => Ok(false),
        Err(WaitError::Interrupted) => Err(TerminationError::Interrupted),
    }
}

local! {
    /// The addresses of those that cannot end before what runs here does, the innermost last.
    static INSIDE: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

/// Keeping something from its end on this thread, until it is dropped. It knows it by its address, so it
/// must be there all the while.
pub(crate) struct Inside {
    address: usize,
    /// It is dropped where it was made.
    here: PhantomData<*const ()>,
}

impl Inside {
    pub(crate) fn of<T>(engine: &T) -> Self {
        let address = std::ptr::from_ref(engine).addr();
        let _ = INSIDE.try_with(|inside| inside.borrow_mut().push(address));
        Inside {
            address,
            here: PhantomData,
        }
    }

    /// Whether what runs here keeps this from its end.
    pub(crate) fn is<T>(engine: &T) -> bool {
        let address = std::ptr::from_ref(engine).addr();
        let found = INSIDE.try_with(|inside| inside.borrow().contains(&address));
        found.unwrap_or(false)
    }

    /// For one who is about to wait for the end of this until `deadline`.
    pub(crate) fn check<T>(engine: &T, deadline: Deadline) -> Result<(), TerminationError> {
        match deadline == Deadline::NEVER && Inside::is(engine) {
            true => Err(TerminationError::OwnTask),
            false => Ok(()),
        }
    }
}

impl Inside {
    /// Keeps it from its end until [`leave`](Inside::leave) is called on this thread.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }

    /// Ends what was [kept](Inside::keep).
    pub(crate) fn leave<T>(engine: &T) {
        drop(Inside {
            address: std::ptr::from_ref(engine).addr(),
            here: PhantomData,
        });
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| {
            let mut inside = inside.borrow_mut();
            if let Some(place) = inside.iter().rposition(|one| *one == self.address) {
                inside.remove(place);
            }
        });
    }
}
