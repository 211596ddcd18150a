//! The switch between backends: the one place that asks which checker runs.
//!
//! | file | what |
//! |---|---|
//! | `real` | std, and chaos on top of it |
//! | `model` | loom and shuttle |
//! | `cell` | the cell of the backends that do not check memory |

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
