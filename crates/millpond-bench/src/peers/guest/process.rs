//! A guest that was started: orders in, answers out, a line each.
//!
//! A thread of its own reads the answers, so that waiting for one can end. It sleeps while the guest
//! works, and the guest takes its times itself.

use super::answer;
use crate::harness::{Absent, Sample};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// The work to be done.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The name that the program has for it.
    pub work: &'a str,
    /// The program's name for the candidate.
    pub executor: &'a str,
    /// The number of threads that submit tasks.
    pub producers: usize,
    /// How many operations.
    pub operations: u64,
    /// For how long at most to do it before the first time that counts.
    pub warm_up_millis: u64,
}

impl<'a> Order<'a> {
    /// Reads what is displayed.
    ///
    /// # Errors
    ///
    /// If it is no order.
    pub fn parse(line: &'a str) -> Result<Self> {
        let words: Vec<&'a str> = line.split_whitespace().collect();
        let &["run", work, executor, producers, operations, warm_up] = words.as_slice() else {
            bail!("not an order: {line}");
        };
        let no_order = || format!("not an order: {line}");
        Ok(Order {
            work,
            executor,
            producers: producers.parse().with_context(no_order)?,
            operations: operations.parse().with_context(no_order)?,
            warm_up_millis: warm_up.parse().with_context(no_order)?,
        })
    }
}

impl fmt::Display for Order<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Order {
            work,
            executor,
            producers,
            operations,
            warm_up_millis,
        } = self;
        write!(
            f,
            "run {work} {executor} {producers} {operations} {warm_up_millis}"
        )
    }
}

/// The identity of a process, for messages about what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its name.
    pub name: &'static str,
    /// The tools that it takes to run it.
    pub takes: &'static str,
}

/// A program that takes orders. It ends when this is dropped, or when this process ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// `None` once it is to end.
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
    who: Who,
    version: String,
    timeout: Duration,
}

impl Process {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or does not greet within `timeout`.
    pub fn start(mut command: Command, who: Who, timeout: Duration) -> Result<Self, Absent> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child =
            child.map_err(|error| Absent(format!("`{program}` cannot be started: {error}")))?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(answers)) = (orders, answers) else {
            return Err(Absent(format!("`{program}` has no pipes")));
        };
        let mut process = Process {
            child,
            orders: Some(orders),
            answers: lines(answers),
            who,
            version: String::new(),
            timeout,
        };
        let greeting = process.read_line().unwrap_or_default();
        match greeting.strip_prefix("ready ") {
            Some(version) => version.clone_into(&mut process.version),
            None => {
                process.end();
                let takes = who.takes;
                return Err(Absent(format!(
                    "`{program}` does not run the bench's program: it takes {takes}"
                )));
            }
        }
        Ok(process)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The version of the tool that runs it, in its own words.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Gives an order, and waits for the answer.
    ///
    /// # Errors
    ///
    /// The failure that the program reports, or that it is gone; [`Absent`] if it hangs, and then it is
    /// ended.
    pub fn run(&mut self, order: &Order<'_>) -> Result<Sample> {
        let name = self.who.name;
        let orders = self.orders.as_mut();
        let sent = orders.map_or(Ok(()), |orders| {
            writeln!(orders, "{order}").and_then(|()| orders.flush())
        });
        sent.with_context(|| format!("the {name} process takes no more orders"))?;
        match self.read_line() {
            Ok(line) => answer::parse(&line).with_context(|| format!("in {name}")),
            Err(RecvTimeoutError::Disconnected) => bail!("the {name} process has ended"),
            Err(RecvTimeoutError::Timeout) => {
                self.end();
                let timeout = self.timeout;
                Err(Absent(format!(
                    "it hung: `{order}` was not answered within {timeout:?}"
                ))
                .into())
            }
        }
    }

    fn read_line(&self) -> Result<String, RecvTimeoutError> {
        self.answers.recv_timeout(self.timeout)
    }

    /// Ends it, whatever it does.
    fn end(&mut self) {
        // It is gone already if this fails.
        let _ = self.child.kill();
        self.orders = None;
    }
}

/// The output, line by line, until there is no more.
fn lines(answers: ChildStdout) -> Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(answers).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

impl Drop for Process {
    fn drop(&mut self) {
        self.orders = None;
        // Without orders it ends at once. Its last output does not matter any more.
        let _ = self.child.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::Language;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn order<'a>(work: &'a str, executor: &'a str) -> Order<'a> {
        Order {
            work,
            executor,
            producers: 2,
            operations: 3,
            warm_up_millis: 0,
        }
    }

    /// A guest that is a script of the shell.
    fn shell(script: &str) -> Result<Process, Absent> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        Process::start(command, Language::Go.who(), PATIENCE)
    }

    #[test]
    fn orders_and_answers_are_lines() {
        let script = "echo ready 99\nread order\necho \"failed $order\"\nread order\n";
        let mut process = shell(script).unwrap();
        assert_eq!(process.version(), "99");
        let error = process.run(&order("fire", "channel")).unwrap_err();
        assert_eq!(format!("{error:#}"), "in Go: run fire channel 2 3 0");
        let error = process.run(&order("fire", "channel")).unwrap_err();
        assert_eq!(format!("{error:#}"), "the Go process has ended");
    }

    #[test]
    fn an_order_is_read_as_it_was_given() {
        let text = order("fire", "channel").to_string();
        assert_eq!(Order::parse(&text).unwrap().to_string(), text);
        for wrong in [
            "",
            "run fire channel 1 2",
            "run fire channel 1 many 3",
            "go fire channel 1 2 3",
        ] {
            let error = Order::parse(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("not an order: {wrong}"));
        }
    }

    #[test]
    fn a_guest_that_does_not_greet_is_absent() {
        let absent = shell("echo 'error: no compiler'").unwrap_err();
        assert_eq!(
            absent.0,
            "`sh` does not run the bench's program: it takes Go 1.19 or later"
        );
    }

    #[test]
    fn a_guest_that_is_not_there_is_absent() {
        let command = Command::new("no-such-guest");
        let absent = Process::start(command, Language::Python.who(), PATIENCE).unwrap_err();
        assert!(absent.0.starts_with("`no-such-guest` cannot be started: "));
    }

    #[test]
    fn a_guest_that_hangs_is_ended_and_is_absent() {
        // It does not even read its orders, so it has to be killed.
        let script = "echo ready 99\nexec tail -f /dev/null\n";
        let mut process = shell(script).unwrap();
        process.timeout = Duration::from_millis(20);
        let error = process.run(&order("trip", "channel")).unwrap_err();
        let absent = error.downcast_ref::<Absent>().unwrap();
        assert_eq!(
            absent.0,
            "it hung: `run trip channel 2 3 0` was not answered within 20ms"
        );
        assert!(!process.child.wait().unwrap().success());
    }
}
