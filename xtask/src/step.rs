//! A step runs commands and keeps every line that they print.
//!
//! Standard output and standard error share one pipe, so the log has the order that a terminal would
//! show. The log stays in the build directory, whether the step passes or fails.
//!
//! A process that outlives its command and keeps the pipe is not waited for. With
//! [`limit_silence`](Step::limit_silence), a command that prints nothing for five minutes is killed
//! with all its descendants, and the log names them: `cargo xtask test` never hangs. A gate that is
//! run by hand may take as long as it likes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::process;

/// No command of `cargo xtask test` prints nothing for so long: the longest test takes a minute, and
/// so does the longest call of the compiler.
const MAX_SILENCE: Duration = Duration::from_secs(300);

/// How long to read on after a command has ended: what it has printed is in the pipe by then.
const REST: Duration = Duration::from_secs(5);

/// How often to check whether the command has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Is called with each line as it is printed.
type Listener = Box<dyn Fn(&str)>;

/// Runs the commands of a gate and writes their output to its log.
pub struct Step {
    log: File,
    path: PathBuf,
    listener: Listener,
    /// For how long a command may print nothing.
    max_silence: Duration,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// The exit and the output of a command.
#[derive(Clone, Debug)]
pub struct Ended {
    /// True if the exit code was zero.
    pub success: bool,
    /// Both streams, in order.
    pub output: String,
}

/// How a watched command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// By itself, or it was killed because it hung; true if the exit code was zero.
    Ended(bool),
    /// It was killed at this line.
    Stopped(String),
    /// It was killed at its time limit.
    OutOfTime,
}

impl Step {
    /// Opens the log `path`; each new line goes to `listener`, too.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn open(path: &Path, listener: impl Fn(&str) + 'static) -> Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let log = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            log,
            path: path.to_path_buf(),
            listener: Box::new(listener),
            max_silence: Duration::MAX,
        })
    }

    /// From now on a command that is silent for too long is killed.
    #[must_use]
    pub fn limit_silence(self) -> Self {
        self.limit_silence_to(MAX_SILENCE)
    }

    fn limit_silence_to(mut self, max_silence: Duration) -> Self {
        self.max_silence = max_silence;
        self
    }

    /// Writes text of the step's own into the log.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn say(&mut self, text: &str) -> Result<()> {
        for line in text.lines() {
            writeln!(self.log, "{line}")?;
            (self.listener)(line);
        }
        Ok(())
    }

    /// The last `count` lines of the log, under a line that says where they are.
    pub fn tail(&self, count: usize) -> String {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(count);
        let place = format!("--- {} from line {}", self.path.display(), first + 1);
        format!("{place}\n{}\n--- end", lines[first..].join("\n"))
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// If it cannot be started or the log cannot be written. A command that fails or is killed is no
    /// error.
    pub fn run(&mut self, command: &mut Command) -> Result<Ended> {
        let mut output = String::new();
        let end = self.watch(command, Duration::MAX, |line| {
            output.push_str(line);
            output.push('\n');
            false
        })?;
        let success = end == Watched::Ended(true);
        Ok(Ended { success, output })
    }

    /// Runs a command until it ends, `until` returns true for a line, or `limit` is over; then it is
    /// killed.
    ///
    /// # Errors
    /// As [`run`](Step::run).
    pub fn watch(
        &mut self,
        command: &mut Command,
        limit: Duration,
        mut until: impl FnMut(&str) -> bool,
    ) -> Result<Watched> {
        self.say(&format!("$ {}", shown(command)))?;
        let (mut child, reader) = process::spawn(command)?;
        let lines = lines_of(reader);
        let begin = Instant::now();
        let mut last_line = begin;
        let mut exit: Option<(ExitStatus, Instant)> = None;
        let killed = loop {
            let left = limit.saturating_sub(begin.elapsed());
            match lines.recv_timeout(left.min(CHECK_INTERVAL)) {
                Ok(line) => {
                    // Cargo's messages for programs are for the caller alone.
                    if !line.starts_with("{\"reason\":") {
                        self.say(&line)?;
                    }
                    if until(&line) {
                        break Watched::Stopped(line);
                    }
                    last_line = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(Watched::Ended(child.wait()?.success()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if exit.is_none() {
                exit = child.try_wait()?.map(|status| (status, Instant::now()));
            }
            match exit {
                Some((status, at)) if at.elapsed() > REST => {
                    let text =
                        "a process that outlives this command has its output; not waited for";
                    self.say(text)?;
                    return Ok(Watched::Ended(status.success()));
                }
                Some(_) => {}
                None if last_line.elapsed() > self.max_silence => {
                    let silence = self.max_silence;
                    self.say(&format!("no line for {silence:?}: it hangs and is killed"))?;
                    break Watched::Ended(false);
                }
                None if begin.elapsed() >= limit => break Watched::OutOfTime,
                None => {}
            }
        };
        for descendant in process::kill_tree(&mut child) {
            self.say(&format!("killed: {descendant}"))?;
        }
        child.wait()?;
        Ok(killed)
    }
}

fn lines_of(reader: PipeReader) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A command line, with the variables that are set for it.
fn shown(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!(
                "{}={:?}",
                name.to_string_lossy(),
                value.to_string_lossy()
            ));
        }
    }
    let program = Path::new(command.get_program());
    words.push(
        program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    );
    words.extend(
        command
            .get_args()
            .map(|argument| argument.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> (tempfile::TempDir, Step) {
        let folder = tempfile::tempdir().unwrap();
        let step = Step::open(&folder.path().join("logs/step.log"), |_| ()).unwrap();
        (folder, step)
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_streams_reach_the_log_in_order() {
        let (folder, mut step) = step();
        let ended = step
            .run(&mut shell("echo one; echo two >&2; echo three; exit 3"))
            .unwrap();
        assert!(!ended.success);
        assert_eq!(ended.output, "one\ntwo\nthree\n");
        let log = fs::read_to_string(folder.path().join("logs/step.log")).unwrap();
        assert!(log.ends_with(&ended.output), "{log}");
    }

    #[test]
    fn messages_for_programs_reach_the_caller_and_not_the_log() {
        let (folder, mut step) = step();
        let ended = step.run(&mut shell("echo '{\"reason\":\"x\"}'")).unwrap();
        assert!(ended.output.contains("reason"));
        let log = fs::read_to_string(folder.path().join("logs/step.log")).unwrap();
        assert_eq!(log.lines().count(), 1, "the command alone: {log}");
    }

    #[test]
    fn a_watched_command_is_killed_at_the_awaited_line() {
        let (_folder, mut step) = step();
        let mut endless = shell("echo go; echo STOP; exec sleep 1000");
        let limit = Duration::from_secs(60);
        let watched = step.watch(&mut endless, limit, |line| line == "STOP");
        assert_eq!(watched.unwrap(), Watched::Stopped("STOP".into()));
    }

    #[test]
    fn a_watched_command_is_killed_when_its_time_is_up() {
        let (_folder, mut step) = step();
        let mut endless = shell("exec sleep 1000");
        let watched = step
            .watch(&mut endless, Duration::from_millis(20), |_| false)
            .unwrap();
        assert_eq!(watched, Watched::OutOfTime);
    }

    #[test]
    fn a_silent_command_is_killed_with_all_that_it_has_started_and_they_are_named() {
        let (folder, step) = step();
        let mut step = step.limit_silence_to(Duration::from_millis(300));
        let mut silent = shell("echo go; sleep 1001; echo never");
        let ended = step.run(&mut silent).unwrap();
        assert!(!ended.success);
        assert_eq!(ended.output, "go\n");
        let log = fs::read_to_string(folder.path().join("logs/step.log")).unwrap();
        assert!(log.contains("it hangs"), "{log}");
        assert!(log.contains("sleep 1001"), "{log}");
    }

    #[test]
    fn a_process_that_outlives_the_command_and_has_its_output_is_not_waited_for() {
        let (folder, mut step) = step();
        let mut leaves = shell("echo go; sleep 1002 & echo $!");
        let ended = step.run(&mut leaves).unwrap();
        assert!(ended.success);
        let left = ended.output.lines().nth(1).unwrap();
        assert!(shell(&format!("kill {left}")).status().unwrap().success());
        let log = fs::read_to_string(folder.path().join("logs/step.log")).unwrap();
        assert!(log.contains("not waited for"), "{log}");
    }

    #[test]
    fn a_watched_command_that_ends_tells_how() {
        let (_folder, mut step) = step();
        let limit = Duration::from_secs(60);
        assert_eq!(
            step.watch(&mut shell("true"), limit, |_| false).unwrap(),
            Watched::Ended(true)
        );
        let failed = step.watch(&mut shell("exit 1"), limit, |_| false).unwrap();
        assert_eq!(failed, Watched::Ended(false));
    }
}
