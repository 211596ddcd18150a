//! The ledger of unsafe code: where it is, why it is sound, and which orderings belong together.
//!
//! | file | question |
//! |---|---|
//! | [`confined`] | is unsafe code in `millpond-raw` only, and do all other crates forbid it? |
//! | [`safety`] | does every `unsafe` there cite an invariant that its module states? |
//! | [`safety_doc`] | does `docs/safety.md` list exactly the files with unsafe code, with proofs that exist? |
//! | [`orderings`] | does every ordering above `Relaxed` carry the label of an explained pair? |
//! | [`headers`], [`unsafes`] | (how headers and `unsafe` are read) |
//! | [`ids`] | is every invariant's id stated once, and every cited one stated? |
//! | [`user_code`] | does every `catch_unwind` around user code call the guard? |

pub mod confined;
pub mod headers;
pub mod ids;
pub mod orderings;
pub mod safety;
pub mod safety_doc;
pub mod unsafes;
pub mod user_code;

use std::path::Path;

use anyhow::Result;

use crate::report::Report;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::Workspace;

/// The crate that holds all unsafe code.
pub const RAW: &str = "crates/millpond-raw";

/// Checks all parts below `root`.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = confined::check(root)?;
    report.merge(safety::check(root)?);
    report.merge(safety_doc::check(root)?);
    report.merge(orderings::check(root)?);
    report.merge(ids::check(root)?);
    report.merge(user_code::check(root)?);
    Ok(report)
}

/// The gate.
///
/// # Errors
/// As [`check`].
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    Outcome::of_report(&check(&workspace.root)?, step)
}
