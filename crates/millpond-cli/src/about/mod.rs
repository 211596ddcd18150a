//! The `about` page: what is in the box, what machine this is, what the building blocks cost.
//!
//! - `rooms.rs` is the table of what is in the box; a row that is not true does not compile.
//! - `costs.rs` is the table of what is measured, by the probes of the bench; `measure.rs` knows how to
//!   time short and long things within a budget, `stats.rs` what a percentile is.
//! - `page.rs` puts all of it into one value, which `render.rs` shows to people and serde to
//!   programs. Both show the same.

mod costs;
mod facts;
mod measure;
mod page;
mod render;
mod rooms;
mod stats;
mod table;

use std::io::{self, IsTerminal};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use millpond::machine::Machine;
use millpond_bench::machine::Hardware;

use crate::args::AboutOptions;
use crate::terminal::{Paint, print};
use facts::Facts;
use measure::Progress;
use page::Page;

pub(crate) fn run(options: &AboutOptions) -> Result<()> {
    let machine = Machine::read();
    let hardware = Hardware::read_from("/", machine.online.as_ref());
    let costs = (!options.no_measure).then(|| {
        let bar = Bar::new(options.budget.as_millis() as u64);
        let costs = costs::measure(options.budget, &bar);
        bar.0.finish_and_clear();
        costs
    });
    let page = Page::new(Facts::of(&machine, &hardware), costs);
    let text = if options.json {
        let mut text = serde_json::to_string_pretty(&page).context("cannot write the page")?;
        text.push('\n');
        text
    } else {
        render::page(&page, Paint::for_stdout())
    };
    print(&text)
}

/// Shows how much of the budget is used. It draws between samples only, and from this thread:
/// a drawing thread of its own would disturb what is measured.
#[derive(Debug)]
struct Bar(ProgressBar);

impl Bar {
    fn new(milliseconds: u64) -> Self {
        if !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("measuring [{bar:30}] {msg}")
            .expect("the template is a constant")
            .progress_chars("=> ");
        Self(ProgressBar::new(milliseconds).with_style(style))
    }
}

impl Progress for Bar {
    fn measuring(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    fn used(&self, milliseconds: u64) {
        self.0.set_position(milliseconds);
    }
}
