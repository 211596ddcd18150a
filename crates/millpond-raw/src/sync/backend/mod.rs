//! The switch between backends: the one place that asks which checker watches.

#[cfg(millpond_loom)]
mod loom;
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
mod real;
#[cfg(millpond_shuttle)]
mod shuttle;

#[cfg(millpond_loom)]
pub use loom::*;
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
pub use real::*;
#[cfg(millpond_shuttle)]
pub use shuttle::*;

#[cfg(not(millpond_loom))]
mod cell;
