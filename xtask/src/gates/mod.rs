//! The gates, one file or folder each. [`crate::table`] has their order.
//!
//! Pure gates ([`layers`], [`ledger`], [`links`], [`names`], [`seeds`]) only read files. The others call
//! cargo and judge its output.

pub mod browser;
pub mod built;
pub mod chaos;
pub mod clippy;
pub mod differential;
pub mod docs;
pub mod exhaustion;
pub mod figures;
pub mod fmt;
pub mod layers;
pub mod ledger;
pub mod links;
pub mod models;
pub mod names;
pub mod program;
pub mod programs;
pub mod sanitize;
pub mod scale;
pub mod seeds;
pub mod soak;
pub mod tests;
pub mod weaken;

use crate::report::Rule;

// Rules that the sources do not follow everywhere yet. A rule that is enforced needs no constant.

/// Ids of the old form (`W1`): see [`ledger::ids`].
pub const OLD_STYLE_IDS: Rule = Rule::Enforced;

/// File tables of folders: see [`layers::file_tables`].
pub const FILE_TABLES: Rule = Rule::Enforced;

/// Predicates that act: see [`names`].
pub const PREDICATES: Rule = Rule::Enforced;

/// The length of the vocabulary: see [`names`].
pub const WORDS: Rule = Rule::Enforced;
