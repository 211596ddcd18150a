//! The closure of a series, and how the series ends for its handle.

use super::failure::{RunError, RunStatus};
use crate::task::{CancelReason, Panic};
use std::sync::Arc;

/// The closure, as the rest of the series sees it: the value that it ends with has been put aside.
pub(super) type Exclusive = Box<dyn FnMut() -> RunStatus<()> + Send>;
pub(super) type Shared = Arc<dyn Fn() -> RunStatus<()> + Send + Sync>;

/// SERIES-3
pub(super) enum Body {
    Exclusive(Exclusive),
    Shared(Shared),
}

/// How a series ends, for its handle.
pub(super) enum Finish {
    /// With the value that was put aside.
    Value,
    Failed(RunError),
    Panicked(Panic),
    Cancelled(CancelReason),
}

pub(super) type Done = Box<dyn FnOnce(Finish) + Send>;
