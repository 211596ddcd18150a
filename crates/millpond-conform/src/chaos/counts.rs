//! Counters of what has happened, by name.

use std::collections::BTreeMap;
use std::fmt;

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    pub(crate) fn happened(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub(crate) fn add(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: Counts) {
        for (what, times) in other.0 {
            self.add(what, times);
        }
    }

    /// How often that happened.
    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self.0.keys().map(|what| what.len()).max().unwrap_or(0);
        for (what, times) in &self.0 {
            writeln!(f, "  {what:<widest$}  {times:>10}")?;
        }
        Ok(())
    }
}
