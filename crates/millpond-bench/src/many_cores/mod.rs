//! What a pool would do on more cores than there are: counted here, computed for there.
//!
//! A machine with two CPUs cannot measure a pool with 64 workers. It can count what decides it: how many
//! cache lines a task moves between cores, how many of them while a lock is held, and how many locked
//! instructions it executes. `cargo xtask scale` records a real run access by access, [`count`]s, and puts the
//! counts into a queueing [`model`]. The result is a ceiling and a shape, not a measurement, and
//! `docs/design/scale.md` says so.
//!
//! | file | what |
//! |---|---|
//! | `count` | from a record of accesses to counts per task |
//! | `model` | from counts to tasks per second on so many cores |

pub mod count;
pub mod model;
