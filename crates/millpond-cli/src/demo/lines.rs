//! The demo without a terminal: a line per second, and then the end.

use std::fmt::Write;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use millpond::interrupt;

use super::reading::{Flow, Reading};
use super::requests::Requests;
use super::shop::{Level, Shop};
use super::wording;
use crate::terminal::write_out;

const SECOND: Duration = Duration::from_secs(1);
/// How long it may take until a signal is heard.
const NAP: Duration = Duration::from_millis(20);

/// The columns of one second.
#[derive(Debug)]
pub(super) struct Second {
    /// Counts from 1.
    pub(super) number: u64,
    pub(super) tide: f64,
    pub(super) level: Level,
    /// In percent.
    pub(super) load: u32,
    /// Each department at its end, and what flowed in it.
    pub(super) pools: Vec<(Reading, Flow)>,
}

/// How seconds are written.
pub(super) trait Writing {
    fn head(&self, names: &[&str]) -> String;
    fn second(&self, second: &Second) -> Result<String>;
    /// While the shop is closing.
    fn closing(&self, inside: u64) -> String;
}

/// Runs the shop for so long, unless a signal ends it before, and closes it. False if the output is
/// closed.
pub(super) fn run(
    shop: &mut Shop,
    time: Duration,
    requests: &Requests,
    writing: &mut impl Writing,
) -> Result<bool> {
    let is_read = tell(shop, time, requests, writing)?;
    shop.shut_doors();
    while !shop.wait_until_empty(SECOND) {
        if requests.take() {
            shop.stop();
        }
        let text = writing.closing(shop.inside());
        if is_read && !write(&text)? {
            return Ok(false);
        }
    }
    Ok(is_read)
}

fn tell(
    shop: &Shop,
    time: Duration,
    requests: &Requests,
    writing: &mut impl Writing,
) -> Result<bool> {
    let names: Vec<&str> = shop
        .departments
        .iter()
        .map(|each| each.pool.name())
        .collect();
    if !write(&writing.head(&names))? {
        return Ok(false);
    }
    let look = || -> Vec<Reading> {
        let departments = shop.departments.iter();
        let at = shop.open_for();
        departments.map(|each| Reading::take(at, each)).collect()
    };
    let mut before = look();
    let mut number = 0;
    while SECOND * number < time {
        number += 1;
        while shop.open_for() < time.min(SECOND * number) {
            if requests.take() {
                return Ok(true);
            }
            // This thread runs no task, so it cannot be interrupted.
            interrupt::sleep(NAP).unwrap_or_default();
        }
        let now = look();
        let flows = now
            .iter()
            .zip(&before)
            .map(|(now, before)| now.since(before));
        let at = shop.sluice.time();
        let second = Second {
            number: u64::from(number),
            tide: shop.tide.height(at),
            level: shop.tide.level(at),
            load: shop.sluice.load(),
            pools: now.iter().cloned().zip(flows).collect(),
        };
        if !write(&writing.second(&second)?)? {
            return Ok(false);
        }
        before = now;
    }
    Ok(true)
}

/// False if the output is closed, as in `millpond | head`.
fn write(text: &str) -> Result<bool> {
    match write_out(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        outcome => {
            outcome.context("cannot write to standard output")?;
            Ok(true)
        }
    }
}

/// Lines for people.
#[derive(Debug)]
pub(super) struct Table {
    seed: u64,
    load: u32,
}

/// How wide the columns of a pool are together.
const POOL: usize = 36;

impl Table {
    pub(super) fn new(seed: u64, load: u32) -> Self {
        Table { seed, load }
    }
}

impl Writing for Table {
    fn head(&self, names: &[&str]) -> String {
        let mut text = format!(
            "A small shop on three pools: seed {}, load {} %. Tasks in, out and rejected per second;\n\
             how many wait and may wait; busy workers and how many there may be; what 99 % waited at \
             most.\n\n",
            self.seed, self.load
        );
        let mut columns = String::from("  s  tide       ");
        let _ = write!(text, "{:columns$}", "", columns = columns.len());
        for name in names {
            let _ = write!(text, "  {name:POOL$}");
            let _ = write!(
                columns,
                "  {:>4} {:>4} {:>8} {:>7} {:>4}{:>7}",
                "in", "out", "rejected", "queue", "busy", "wait"
            );
        }
        format!("{}\n{}\n", text.trim_end(), columns)
    }

    fn second(&self, second: &Second) -> Result<String> {
        let (number, tide) = (second.number, second.tide);
        let mut line = format!("{number:>3}  {:7} {tide:>3.1}", second.level);
        for (reading, flow) in &second.pools {
            let pool = &reading.snapshot;
            let queue = format!("{}/{}", pool.queued, pool.capacity.unwrap_or_default());
            let busy = format!("{}/{}", pool.active, pool.max);
            let wait = flow.wait.map_or("-".into(), |wait| wording::time(wait.p99));
            let _ = write!(
                line,
                "  {:>4.0} {:>4.0} {:>8.0} {queue:>7} {busy:>4}{wait:>7}",
                flow.came, flow.done, flow.rejected
            );
        }
        line.push('\n');
        Ok(line)
    }

    fn closing(&self, inside: u64) -> String {
        format!("closing: {inside} tasks inside\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::planted;
    use super::*;

    #[test]
    fn columns_stand_below_their_heads_and_lines_end_without_spaces() {
        let table = Table::new(7, 100);
        let reading = planted("orders", SECOND);
        let flow = Flow {
            came: 312.4,
            done: 40.0,
            rejected: 7.0,
            ..Flow::default()
        };
        let second = Second {
            number: 3,
            tide: 5.25,
            level: Level::Flood,
            load: 100,
            pools: vec![(reading.clone(), flow), (reading, flow)],
        };
        let text = table.head(&["orders", "images"]) + &table.second(&second).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let [.., columns, line] = lines[..] else {
            panic!("{text}")
        };
        for (head, value) in [
            ("in", "312"),
            ("out", "40"),
            ("rejected", "7"),
            ("wait", "-"),
        ] {
            let end = |line: &str, word: &str| line.find(word).unwrap() + word.len();
            assert_eq!(
                end(columns, &format!(" {head}")),
                end(line, &format!(" {value}")),
                "{text}"
            );
        }
        assert_eq!(columns.len(), line.len(), "{text}");
        assert!(lines.iter().all(|line| line.trim_end() == *line), "{text}");
    }
}
