//! One test in a process of its own: its exit, its output and its CPU time.

use std::io::{self, Read};
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::process;

/// More than a sound test prints. The rest is read and dropped.
const MAX_OUTPUT: u64 = 1 << 20;

/// `/proc` counts CPU time in ticks of this length, whatever the kernel's own are (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed at its time limit.
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
    let (mut child, mut reader) = process::spawn(command)?;
    let (send, read) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = (&mut reader).take(MAX_OUTPUT).read_to_end(&mut bytes);
        let _ = io::copy(&mut reader, &mut io::sink());
        // The receiver is gone if the process was killed.
        let _ = send.send(bytes);
    });
    let deadline = Instant::now() + limit;
    // The streams close when the process and its descendants have ended.
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
            process::kill_tree(&mut child);
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

/// The CPU time of a process, which may have ended but must not have been waited for.
fn cpu_of(id: u32) -> Duration {
    let fields = process::stat(id);
    fields.as_deref().and_then(cpu_in).unwrap_or_default()
}

/// User and system time, the fields 14 and 15 of `/proc/PID/stat`, of those from field 3 on.
fn cpu_in(fields: &str) -> Option<Duration> {
    let mut fields = fields.split_whitespace().skip(11);
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
    fn codes_signals_and_both_streams_are_returned() {
        let ran = shell("echo out; echo err >&2; exit 3", LONG);
        assert_eq!((ran.end, ran.output.as_str()), (End::Code(3), "out\nerr\n"));
        assert_eq!(shell("kill -ABRT $$", LONG).end, End::Signal(6));
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_and_its_output_is_kept() {
        let ran = shell("echo before; sleep 1003", Duration::from_millis(300));
        assert_eq!((ran.end, ran.output.as_str()), (End::OutOfTime, "before\n"));
        let closed = shell("exec >&- 2>&-; sleep 1004", Duration::from_millis(300));
        assert_eq!(closed.end, End::OutOfTime);
    }

    #[test]
    fn cpu_time_is_measured_and_waiting_costs_none() {
        let busy = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", LONG);
        assert!(busy.cpu >= TICK, "{:?}", busy.cpu);
        assert!(shell("sleep 0.1", LONG).cpu < Duration::from_millis(90));
    }

    #[test]
    fn the_line_of_the_kernel_is_parsed() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 31 12 0 0 20 0 1 0 5";
        let fields = process::behind_name(line).unwrap();
        assert_eq!(cpu_in(fields), Some(TICK * 43));
        assert_eq!(process::behind_name("7 (a"), None);
        assert_eq!(cpu_in(" S 1 7"), None);
    }
}
