//! Waiting for the end of an executor, and refusing to do so inside one of its own tasks. (How an engine ends:
//! `engine/termination`.)
//!
//! An executor terminates after its last task has ended. So a task that waits for the end of its own executor waits for
//! itself. Executors that can be shut down record, for each thread, which of them cannot terminate before what runs there
//! has returned ([`Inside`]): a pool once in the life of a worker, so that no task pays for it. A wait without a timeout
//! looks there first. A wait with a timeout ends by itself.

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
    /// The caller is a task of that very executor, a hook or handler called on one of its threads, or its thread factory: the
    /// executor cannot terminate before the caller returns.
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

/// The result of a wait for the end: false if the time was up.
pub(crate) fn ended(waited: Result<(), WaitError>) -> Result<bool, TerminationError> {
    match waited {
        Ok(()) => Ok(true),
        Err(WaitError::TimedOut) => Ok(false),
        Err(WaitError::Interrupted) => Err(TerminationError::Interrupted),
    }
}

local! {
    /// The addresses of the executors that cannot terminate before what runs here has returned, the innermost last.
    static INSIDE: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

/// Records that an executor cannot terminate before this guard is dropped, on this thread. The executor is known by its
/// address, so it must outlive the guard.
pub(crate) struct Inside {
    address: usize,
    /// It is dropped on the thread that made it.
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

    /// Whether what runs on this thread keeps this executor from terminating.
    pub(crate) fn is<T>(engine: &T) -> bool {
        let address = std::ptr::from_ref(engine).addr();
        let found = INSIDE.try_with(|inside| inside.borrow().contains(&address));
        found.unwrap_or(false)
    }

    /// Refuses a wait for the end without a deadline, if what runs on this thread keeps it from coming.
    pub(crate) fn check<T>(engine: &T, deadline: Deadline) -> Result<(), TerminationError> {
        if deadline == Deadline::NEVER && Inside::is(engine) {
            Err(TerminationError::OwnTask)
        } else {
            Ok(())
        }
    }

    /// Stays recorded until [`leave`](Inside::leave) is called on this thread.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }

    /// Ends what [`keep`](Inside::keep) has left recorded.
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
            if let Some(index) = inside.iter().rposition(|one| *one == self.address) {
                inside.remove(index);
            }
        });
    }
}
