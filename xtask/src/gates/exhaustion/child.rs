//! One test in a process of its own: how it ended, what it printed, and what it cost.

use std::fs;
use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::kin;

/// More than any test prints that is well. What comes after it is read and forgotten.
const MOST_OUTPUT: u64 = 1 << 20;

/// `/proc` counts CPU time in ticks of this length, whatever the kernel's own are (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed, because its time was up.
    OutOfTime,
}

/// A process that has ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// The CPU time of all its threads.
    pub cpu: Duration,
    /// Both streams, in order.
    pub output: String,
}

/// Runs a command to its end, or kills it after `limit`.
///
/// # Errors
/// If it cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ran> {
    let (reader, writer) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
    // The command holds the writing ends; while it does, the reader would never see the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (send, read) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = reader;
        let mut bytes = Vec::new();
        // What cannot be read is not there.
        let _ = (&mut reader).take(MOST_OUTPUT).read_to_end(&mut bytes);
        let _ = io::copy(&mut reader, &mut io::sink());
        // Nobody listens if the process was given up.
        let _ = send.send(bytes);
    });
    let deadline = Instant::now() + limit;
    // The streams close when the process ends, or when the last one does that it has left behind.
    let bytes = read.recv_timeout(limit).ok();
    let cpu = cpu_of(child.id());
    let mut status = None;
    if bytes.is_some() {
        // A process may close its streams and go on.
        while status.is_none() && Instant::now() < deadline {
            status = child.try_wait()?;
            if status.is_none() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    let end = match status {
        Some(status) => end_of(status),
        None => {
            kin::kill_all(&mut child);
            child.wait()?;
            End::OutOfTime
        }
    };
    let bytes = bytes.or_else(|| read.recv_timeout(Duration::from_secs(5)).ok());
    let output = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    Ok(Ran { end, cpu, output })
}

fn end_of(status: ExitStatus) -> End {
    match status.code() {
        Some(code) => End::Code(code),
        None => End::Signal(signal_of(status)),
    }
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0)
}

#[cfg(not(unix))]
fn signal_of(_: ExitStatus) -> i32 {
    0
}

/// What a process has used so far. One that has ended and that nobody has waited for still tells.
fn cpu_of(process: u32) -> Duration {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    cpu_in(&line).unwrap_or_default()
}

/// The fields 14 and 15 of the line: user and system time. The name, in parentheses, may contain
/// anything; the third field stands behind it.
fn cpu_in(line: &str) -> Option<Duration> {
    let (_, behind) = line.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ran {
        run(Command::new("sh").args(["-c", script]), limit).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn codes_signals_and_both_streams_are_told() {
        let ran = shell("echo out; echo err >&2; exit 3", LONG);
        assert_eq!((ran.end, ran.output.as_str()), (End::Code(3), "out\nerr\n"));
        assert_eq!(shell("kill -ABRT $$", LONG).end, End::Signal(6));
    }

    #[test]
    fn one_that_does_not_end_is_killed_and_what_it_printed_is_kept() {
        let ran = shell("echo before; sleep 1003", Duration::from_millis(300));
        assert_eq!((ran.end, ran.output.as_str()), (End::OutOfTime, "before\n"));
        let closed = shell("exec >&- 2>&-; sleep 1004", Duration::from_millis(300));
        assert_eq!(closed.end, End::OutOfTime);
    }

    #[test]
    fn cpu_time_is_measured_and_waiting_is_none() {
        let busy = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", LONG);
        assert!(busy.cpu >= TICK, "{:?}", busy.cpu);
        assert!(shell("sleep 0.1", LONG).cpu < Duration::from_millis(90));
    }

    #[test]
    fn the_line_of_the_kernel_is_understood() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 31 12 0 0 20 0 1 0 5";
        assert_eq!(cpu_in(line), Some(TICK * 43));
        assert_eq!(cpu_in("7 (a"), None);
    }
}
