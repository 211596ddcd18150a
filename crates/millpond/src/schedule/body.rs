//! What a series calls, and what its handle hears at the end.

use super::failure::{RunError, Verdict};
use crate::task::{CancelReason, Panic};
use std::sync::Arc;

/// A run of it, as the rest of the series sees it: what it ends with has been put aside.
pub(super) type Exclusive = Box<dyn FnMut() -> Verdict<()> + Send>;
pub(super) type Shared = Arc<dyn Fn() -> Verdict<()> + Send + Sync>;

/// What is called.
pub(super) enum Body {
    Exclusive(Exclusive),
    Shared(Shared),
}

/// How a series ends, told to its handle.
pub(super) enum Finish {
    /// With a value that has been put aside.
    Value,
    Failed(RunError),
    Panicked(Panic),
    Cancelled(CancelReason),
}

pub(super) type Done = Box<dyn FnOnce(Finish) + Send>;
