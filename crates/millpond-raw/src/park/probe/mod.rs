//! A registry of parked strands, for reliable race tests.
//!
//! A test that wants to interrupt a thread *while it blocks in `queue.take`* must know that it does; sleeping
//! and hoping makes tests flaky. With the feature `probe` every park records its site here before it sleeps
//! and removes it after. Without the feature, and under the checkers, there is no registry and no cost.
//!
//! A recorded strand has decided to wait and will not check its condition again before it is woken. It may
//! still be a few instructions away from the futex; the token rule makes the difference invisible.

#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
mod registry;

#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
pub(super) use registry::record;
#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
#[allow(unused_imports, reason = "only where processes fork")]
pub(crate) use registry::register_fork_locks;
#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
pub use registry::{Wait, await_wait, waits};

/// Nothing is recorded.
#[cfg(any(not(any(test, feature = "probe")), millpond_loom, millpond_shuttle))]
pub(super) struct Recorded;

#[cfg(any(not(any(test, feature = "probe")), millpond_loom, millpond_shuttle))]
pub(super) fn record(_site: super::Site, _timed: bool) -> Recorded {
    Recorded
}
