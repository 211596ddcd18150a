//! Who waits where: the registry behind honest race tests.
//!
//! A test that wants to interrupt a thread *while it blocks in `queue.take`* must know that it
//! does; sleeping and hoping is how flaky tests are made. With the feature `probe` every park notes
//! its site here before it sleeps and strikes it out after. Without it, and under the checkers, which
//! know better, a note is no code at all and the registry does not exist.
//!
//! Being noted means that the strand has decided to wait and will not look at its condition again
//! before something wakes it. It may still be a few instructions away from the futex; the token
//! rule makes the difference invisible.

#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
mod registry;

#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
#[allow(unused_imports, reason = "only where processes fork")]
pub(crate) use registry::keep_at_forks;
#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
pub(super) use registry::note;
#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
pub use registry::{Wait, await_wait, waits};

/// Nothing is noted.
#[cfg(any(not(any(test, feature = "probe")), millpond_loom, millpond_shuttle))]
pub(super) struct Noted;

#[cfg(any(not(any(test, feature = "probe")), millpond_loom, millpond_shuttle))]
pub(super) fn note(_site: super::Site, _timed: bool) -> Noted {
    Noted
}
