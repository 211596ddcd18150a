//! The switch between backends: the one place that asks which checker watches.

#[cfg(not(millpond_loom))]
mod cell;
#[cfg(any(millpond_loom, millpond_shuttle))]
mod model;
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
mod real;

#[cfg(any(millpond_loom, millpond_shuttle))]
pub use model::*;
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
pub use real::*;
