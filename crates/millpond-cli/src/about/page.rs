//! The page as one value: what people read and what programs read come from it.

use serde::Serialize;

use super::costs::{Costs, Line};
use super::facts::Facts;
use super::rooms::{PLANNED, READY, Room};

#[derive(Debug, Serialize)]
pub(super) struct Page {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) about: &'static str,
    pub(super) ready: &'static [Room],
    pub(super) planned: &'static [&'static str],
    pub(super) machine: Facts,
    /// `None` if nothing was measured.
    pub(super) costs: Option<Vec<Cost>>,
}

/// A measured line, or one that says why it could not be measured.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    pub(super) key: &'static str,
    pub(super) label: &'static str,
    #[serde(flatten)]
    pub(super) found: Found,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Found {
    Measured {
        p50_ns: f64,
        p99_ns: f64,
        rounds: u64,
        meaning: String,
    },
    Skipped {
        skipped: String,
    },
}

impl Page {
    pub(super) fn new(machine: Facts, costs: Option<Costs>) -> Self {
        Self {
            name: "millpond",
            version: env!("CARGO_PKG_VERSION"),
            about: "The executor framework of java.util.concurrent, done the Rust way.",
            ready: READY,
            planned: PLANNED,
            machine,
            costs: costs.as_ref().map(lines),
        }
    }
}

fn lines(costs: &Costs) -> Vec<Cost> {
    let cost = |(row, found): &Line| Cost {
        key: row.key,
        label: row.label,
        found: match found {
            &Ok(super::stats::Summary { p50, p99, rounds }) => Found::Measured {
                p50_ns: p50,
                p99_ns: p99,
                rounds,
                meaning: row.meaning(costs),
            },
            Err(skipped) => Found::Skipped {
                skipped: skipped.clone(),
            },
        },
    };
    costs.lines.iter().map(cost).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::costs::tests::planted;
    use super::*;

    fn json(page: &Page) -> Value {
        serde_json::from_str(&serde_json::to_string_pretty(page).unwrap()).unwrap()
    }

    #[test]
    fn measured_and_skipped_lines_are_told_apart_by_their_fields() {
        let costs = planted(&[("clock", 25.0), ("task", 50.0)]);
        let page = json(&Page::new(Facts::unknown(), Some(costs)));
        let line = |key: &str| {
            let lines = page["costs"].as_array().unwrap();
            lines
                .iter()
                .find(|line| line["key"] == key)
                .unwrap()
                .clone()
        };
        assert_eq!(line("clock")["p50_ns"], 25.0);
        assert_eq!(line("clock")["p99_ns"], 50.0);
        assert_eq!(
            line("clock")["meaning"],
            "timing a task (two reads) adds 100 % to it"
        );
        assert_eq!(line("line")["skipped"], "it was left out");
        assert_eq!(line("line")["p50_ns"], Value::Null);
    }

    #[test]
    fn a_page_without_costs_says_null() {
        let page = json(&Page::new(Facts::unknown(), None));
        assert_eq!(page["costs"], Value::Null);
        assert_eq!(page["machine"]["worker_hint"], 1);
        assert_eq!(page["ready"].as_array().unwrap().len(), READY.len());
    }
}
