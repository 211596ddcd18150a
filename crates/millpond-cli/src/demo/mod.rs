//! The demo: a small shop on three pools, to look at and to meddle with.
//!
//! - `shop/` runs it: pools, customers, and a ledger of its own. It knows of no screen.
//! - `reading.rs` is what can be seen of a department at one moment; everything that is shown comes
//!   from readings.
//! - `screen/` shows it on a terminal; `keys.rs` says what keys mean, `knob.rs` does it.
//! - `lines.rs` shows it without a terminal, a line per second; `json.rs` is the same for programs.
//! - `summary.rs` closes the books.

mod json;
mod keys;
mod knob;
mod lines;
mod policy;
mod reading;
mod requests;
mod screen;
mod shop;
mod summary;
mod wording;

use std::env;
use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::args::DemoOptions;
use crate::terminal::print;
use requests::Requests;
use shop::Shop;

/// How long it goes on without a terminal, from which it could be ended.
const SECONDS_WITHOUT_A_SCREEN: u64 = 10;

pub(crate) fn run(options: &DemoOptions) -> Result<()> {
    let requests = Requests::listen()?;
    let limit = options.seconds.map(Duration::from_secs);
    let alone = limit.unwrap_or(Duration::from_secs(SECONDS_WITHOUT_A_SCREEN));
    let mut shop = Shop::open(options.seed, options.load)?;
    let is_read = if options.json {
        lines::run(&mut shop, alone, &requests, &mut json::Json)?
    } else if options.plain || !has_screen() {
        let table = &mut lines::Table::new(options.seed, options.load);
        lines::run(&mut shop, alone, &requests, table)?
    } else {
        screen::run(&mut shop, limit, &requests)?;
        true
    };
    let books = shop.books();
    // A reader that has closed the output does not want the summary, either.
    if is_read {
        print(&if options.json {
            json::summary(&books)?
        } else {
            summary::text(&books)
        })?;
    }
    if !books.balanced {
        bail!(
            "the books of the demo do not balance: that is a bug, please report it with its seed"
        );
    }
    Ok(())
}

fn has_screen() -> bool {
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !is_dumb
}
