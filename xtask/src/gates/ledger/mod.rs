//! The ledger: where unsafe code lives, why it is sound, and which orderings belong together.
//!
//! | part | question |
//! |---|---|
//! | [`fence`] | is unsafe code in `millpond-raw` only, and do all other crates forbid it? |
//! | [`safety`] | does every `unsafe` there cite an invariant that its module states? |
//! | [`sheet`] | does `docs/safety.md` list exactly the files with unsafe code, with proofs that exist? |
//! | [`orderings`] | does every ordering above `Relaxed` carry the label of an explained pair? |
//! | [`user_code`] | does every call into user code pass the guard? |

pub mod fence;
pub mod headers;
pub mod orderings;
pub mod safety;
pub mod sheet;
pub mod unsafes;
pub mod user_code;

use std::path::Path;

use anyhow::Result;

use crate::house::House;
use crate::report::Report;
use crate::stage::Stage;
use crate::table::Outcome;

/// The crate that holds all unsafe code.
pub const RAW: &str = "crates/millpond-raw";

/// Checks all five parts below `root`.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = fence::check(root)?;
    report.merge(safety::check(root)?);
    report.merge(sheet::check(root)?);
    report.merge(orderings::check(root)?);
    report.merge(user_code::check(root)?);
    Ok(report)
}

/// The gate.
///
/// # Errors
/// As [`check`].
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    Outcome::of_report(&check(&house.root)?, stage)
}
