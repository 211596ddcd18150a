//! The trait behind every wait, and the implementation that the current thread waits through.

use super::{ThreadBlock, Woken};
use crate::sync::local;
use core::cell::RefCell;
use core::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// How a strand waits. Both methods follow the token rule of the [module](super).
pub trait Block: fmt::Debug + Send + Sync + 'static {
    /// Waits for a token, until `deadline` if there is one. Called only by the strand itself.
    fn park(&self, deadline: Option<Instant>) -> Woken;

    /// A waker that leaves a token with the strand. It stays valid after the strand has ended, and then does
    /// nothing.
    fn waker(self: Arc<Self>) -> Waker;
}

local! {
    static CURRENT: RefCell<Option<Arc<dyn Block>>> = RefCell::new(None);
}

/// The block of the current thread; a [`ThreadBlock`] is made at its first wait.
///
/// Thread-local destructors may wait as well, after `CURRENT` is gone. They get a block for that one wait.
pub(super) fn current() -> Arc<dyn Block> {
    CURRENT
        .try_with(|current| {
            Arc::clone(
                current
                    .borrow_mut()
                    .get_or_insert_with(|| Arc::new(ThreadBlock::new())),
            )
        })
        .unwrap_or_else(|_| Arc::new(ThreadBlock::new()))
}

/// Runs `f`; every wait of the current thread meanwhile goes through `block`.
///
/// ```
/// use millpond_raw::park::{self, Block, Site, ThreadBlock, Woken};
/// use millpond_raw::sync::atomic::{AtomicU32, Ordering};
/// use std::{sync::Arc, task::Waker, time::Instant};
///
/// /// Counts the waits of its thread, as a fork-join worker does before it starts a spare.
/// #[derive(Debug)]
/// struct Counting(Arc<ThreadBlock>, AtomicU32);
///
/// impl Block for Counting {
///     fn park(&self, deadline: Option<Instant>) -> Woken {
///         self.1.fetch_add(1, Ordering::Relaxed);
///         self.0.park(deadline)
///     }
///     fn waker(self: Arc<Self>) -> Waker {
///         Arc::clone(&self.0).waker()
///     }
/// }
///
/// let counting = Arc::new(Counting(Arc::new(ThreadBlock::new()), AtomicU32::new(0)));
/// park::with_block(counting.clone(), || {
///     let here = park::current();
///     here.waker().wake();
///     here.park(Site::new("example.wait"));
/// });
/// assert_eq!(counting.1.load(Ordering::Relaxed), 1);
/// ```
pub fn with_block<R>(block: Arc<dyn Block>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<dyn Block>>);

    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.replace(self.0.take()));
        }
    }

    let _restore = Restore(CURRENT.with(|current| current.replace(Some(block))));
    f()
}
