//! Candidates that are written in Rust, in a process of their own for each turn: see
//! [`own`].

use super::{ENTRIES, Entry, Runner, Work, hour};
use crate::harness::Sample;
use crate::peers::guest::{Order, own};
use anyhow::{Context, Result, bail};

/// Has a process of its own do the work.
pub(super) fn run(entry: &Entry, work: Work, operations: u64) -> Result<Sample> {
    let order = Order {
        work: &work.word(),
        executor: &word(entry),
        producers: 1,
        operations,
        warm_up_millis: 0,
    };
    let mut process = own::start()?;
    match work {
        Work::Hour => hour::watch(&mut process, &order, ""),
        _ => process.run(&order),
    }
}

/// Does what is ordered, in this process.
///
/// # Errors
///
/// If there is no such work or no such candidate here, or it is not done.
pub fn obey(order: &Order<'_>) -> Result<Sample> {
    let work = super::works()
        .into_iter()
        .find(|work| work.word() == order.work)
        .with_context(|| format!("there is no work {}", order.work))?;
    let entry = ENTRIES
        .iter()
        .find(|entry| word(entry) == order.executor)
        .with_context(|| format!("there is no executor {}", order.executor))?;
    match entry.run {
        Runner::Here(run) => run(work, order.operations),
        Runner::Abroad(_) => bail!("{} is a guest itself", entry.name),
    }
}

/// An order is words with spaces between them.
fn word(entry: &Entry) -> String {
    entry.name.replace(' ', "-")
}
