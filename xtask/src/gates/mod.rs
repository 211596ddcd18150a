//! The gates, one file or folder each. [`crate::table`] says in which order they are asked.
//!
//! Pure gates ([`layers`], [`ledger`], [`links`], [`seeds`]) read files and nothing else. The others call
//! cargo and judge how it ended; what they decide by themselves is a pure function too.

pub mod browser;
pub mod built;
pub mod chaos;
pub mod clippy;
pub mod differential;
pub mod docs;
pub mod exhaustion;
pub mod fmt;
pub mod layers;
pub mod ledger;
pub mod links;
pub mod models;
pub mod program;
pub mod programs;
pub mod sanitize;
pub mod seeds;
pub mod soak;
pub mod tests;
pub mod weaken;
