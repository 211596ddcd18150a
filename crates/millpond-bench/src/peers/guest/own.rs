//! This program, as its own guest: for work that takes a process in which nothing has happened yet.
//!
//! The memory of a candidate shows only where no other before it has left some behind, and the usage of its
//! threads only where all threads are its own. So this program is started once more, with the
//! arguments that it was started with itself, and a variable that says that it is to take orders.

use super::process::{Order, Process, Who};
use super::{PATIENCE, answer};
use crate::harness::{Absent, Sample};
use anyhow::Result;
use std::env;
use std::io::{BufRead, Write};
use std::process::Command;

/// The variable. A program that is started with it takes orders.
const ORDERS: &str = "MILLPOND_BENCH_TAKES_ORDERS";

const WHO: Who = Who {
    name: "Rust",
    takes: "a program that measures with `program::run`",
};

/// Whether this process was started to take orders.
pub fn is_asked() -> bool {
    env::var_os(ORDERS).is_some()
}

/// Starts it, to do nothing but what it is ordered from now on.
///
/// # Errors
///
/// If it cannot be started.
pub fn start() -> Result<Process, Absent> {
    let program = env::current_exe()
        .map_err(|error| Absent(format!("this program does not know where it is: {error}")))?;
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).env(ORDERS, "1");
    Process::start(command, WHO, PATIENCE)
}

/// Greets, and has orders obeyed until there are no more.
///
/// # Errors
///
/// If an answer cannot be written.
pub fn take_orders(
    orders: impl BufRead,
    answers: &mut dyn Write,
    obey: impl Fn(&Order<'_>) -> Result<Sample>,
) -> Result<()> {
    writeln!(answers, "ready {}", env!("CARGO_PKG_VERSION"))?;
    answers.flush()?;
    for line in orders.lines() {
        let outcome = Order::parse(&line?).and_then(|order| obey(&order));
        writeln!(answers, "{}", answer::line(&outcome))?;
        answers.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Usage;
    use anyhow::bail;
    use std::time::Duration;

    #[test]
    fn orders_are_obeyed_one_by_one_and_a_wrong_one_ends_nothing() {
        let orders = "run fire pond 1 5 0\nfire\nrun mill pond 1 6 0\nrun fire pond 1 7 0\n";
        let mut answers = Vec::new();
        take_orders(orders.as_bytes(), &mut answers, |order| match order.work {
            "fire" => Ok(Sample {
                operations: order.operations,
                elapsed: Duration::from_nanos(9),
                usage: Usage::default(),
                quantiles: None,
                rush: None,
                memory: None,
                by_workers: None,
            }),
            other => bail!("there is no work {other}"),
        })
        .unwrap();
        let answers = String::from_utf8(answers).unwrap();
        let lines: Vec<_> = answers.lines().skip(1).collect();
        assert!(answers.starts_with("ready "), "{answers}");
        assert_eq!(
            lines,
            [
                "done operations=5 nanos=9",
                "failed not an order: fire",
                "failed there is no work mill",
                "done operations=7 nanos=9",
            ]
        );
    }
}
