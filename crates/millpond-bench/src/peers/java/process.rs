//! The process: orders in, answers out, a line each.

use super::answer;
use crate::harness::{Absent, Sample};
use anyhow::{Context, Result, ensure};
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What Java is called.
const PROGRAM: &str = "java";

/// What it runs: it compiles a source file by itself, if it comes with a compiler.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java/PoolBench.java");

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The name that the program has for it.
    pub work: &'a str,
    /// The name that the program has for who does it.
    pub executor: &'a str,
    /// How many threads bring tasks.
    pub producers: usize,
    /// How many operations.
    pub operations: u64,
    /// For how long to do it before the first time that counts.
    pub warm_up_millis: u64,
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

/// A program that takes orders. It ends when this is dropped, or when this process ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// `None` only while it is dropped.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    version: String,
}

impl Process {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If there is no Java here that can run it.
    pub fn start() -> Result<Self, Absent> {
        Self::start_with(PROGRAM, Path::new(SOURCE))
    }

    fn start_with(program: &str, source: &Path) -> Result<Self, Absent> {
        if !source.exists() {
            let source = source.display();
            return Err(Absent(format!("its program is not there: {source}")));
        }
        let mut command = Command::new(program);
        command
            .arg(source)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Absent(format!("there is no `{program}` on the PATH")),
            _ => Absent(format!("`{program}` cannot be started: {error}")),
        })?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(answers)) = (orders, answers) else {
            return Err(Absent(format!("`{program}` has no pipes")));
        };
        let mut process = Process {
            child,
            orders: Some(orders),
            answers: BufReader::new(answers),
            version: String::new(),
        };
        let greeting = process.read_line().unwrap_or_default();
        match greeting.strip_prefix("ready ") {
            Some(version) => version.clone_into(&mut process.version),
            None => {
                return Err(Absent(format!(
                    "`{program}` does not run the bench's program: it takes a JDK, 17 or later"
                )));
            }
        }
        Ok(process)
    }

    /// Which Java it is.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Gives an order, and waits for the answer.
    ///
    /// # Errors
    ///
    /// What the program says went wrong, or that it is gone.
    pub fn run(&mut self, order: &Order<'_>) -> Result<Sample> {
        let orders = self.orders.as_mut();
        let sent = orders.map_or(Ok(()), |orders| {
            writeln!(orders, "{order}").and_then(|()| orders.flush())
        });
        sent.context("the Java process takes no more orders")?;
        let answer = self.read_line()?;
        ensure!(!answer.is_empty(), "the Java process has ended");
        answer::parse(&answer).context("in Java")
    }

    /// Nothing at the end.
    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.orders = None;
        // Without orders it ends at once. What it says about that does not matter any more.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const WORKS: [&str; 9] = [
        "fire",
        "blocking",
        "caller-runs",
        "join-all",
        "trip",
        "trip-here",
        "trip-pause",
        "burst",
        "idle",
    ];

    fn order<'a>(work: &'a str, executor: &'a str) -> Order<'a> {
        Order {
            work,
            executor,
            producers: 2,
            operations: 3,
            warm_up_millis: 0,
        }
    }

    /// `None` where there is no Java: then there is nothing to test.
    fn java() -> Option<Process> {
        let started = Process::start();
        if let Err(absent) = &started {
            eprintln!("skipped: {absent}");
        }
        started.ok()
    }

    /// One test: starting Java takes a second.
    #[test]
    fn java_does_every_work_and_says_what_it_does_not_know() {
        let Some(mut java) = java() else { return };
        assert!(!java.version().is_empty());
        does_every_work(&mut java);
        an_unknown_order_is_an_error_and_the_next_one_is_done(&mut java);
    }

    fn does_every_work(java: &mut Process) {
        for executor in ["tpe", "fjp"] {
            for work in WORKS {
                if executor == "fjp" && matches!(work, "blocking" | "caller-runs") {
                    continue;
                }
                let sample = java.run(&order(work, executor)).unwrap();
                let name = format!("{executor} {work}: {sample:?}");
                let expected = match work {
                    "join-all" => 1_000,
                    "fire" | "blocking" | "caller-runs" => 4,
                    _ => 3,
                };
                assert_eq!(sample.operations, expected, "{name}");
                assert!(!sample.elapsed.is_zero(), "{name}");
                assert_eq!(
                    sample.quantiles.is_some(),
                    work.starts_with("trip"),
                    "{name}"
                );
            }
        }
    }

    fn an_unknown_order_is_an_error_and_the_next_one_is_done(java: &mut Process) {
        let error = java.run(&order("mill", "tpe")).unwrap_err();
        assert_eq!(format!("{error:#}"), "in Java: there is no work mill");
        let error = java.run(&order("fire", "pond")).unwrap_err();
        assert_eq!(format!("{error:#}"), "in Java: there is no executor pond");
        assert!(java.run(&order("fire", "tpe")).is_ok());
    }

    #[test]
    fn without_java_there_is_a_reason_and_no_process() {
        let absent = Process::start_with("no-such-java", Path::new(SOURCE)).unwrap_err();
        assert_eq!(absent.0, "there is no `no-such-java` on the PATH");
    }

    #[test]
    fn without_its_program_java_is_not_even_started() {
        let absent = Process::start_with("no-such-java", Path::new("/no/such/P.java")).unwrap_err();
        assert_eq!(absent.0, "its program is not there: /no/such/P.java");
    }

    /// A program that is not Java, and takes the source file as a shell takes a script.
    #[cfg(unix)]
    fn shell(script: &str) -> (tempfile::TempDir, Result<Process, Absent>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        fs::write(&file, script).unwrap();
        let started = Process::start_with("sh", &file);
        (folder, started)
    }

    #[test]
    #[cfg(unix)]
    fn a_java_that_does_not_greet_is_none() {
        let (_folder, started) = shell("echo 'error: no compiler'\n");
        let absent = started.unwrap_err();
        assert!(
            absent.0.ends_with("it takes a JDK, 17 or later"),
            "{absent}"
        );
    }

    #[test]
    #[cfg(unix)]
    fn orders_and_answers_are_lines() {
        let script = "echo ready 99\nread order\necho \"failed $order\"\nread order\n";
        let (_folder, started) = shell(script);
        let mut process = started.unwrap();
        assert_eq!(process.version(), "99");
        let error = process.run(&order("fire", "tpe")).unwrap_err();
        assert_eq!(format!("{error:#}"), "in Java: run fire tpe 2 3 0");
        let error = process.run(&order("fire", "tpe")).unwrap_err();
        assert_eq!(format!("{error:#}"), "the Java process has ended");
    }
}
