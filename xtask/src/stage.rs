//! The stage a step plays on: it runs commands and keeps every line they print.
//!
//! Standard output and standard error share one pipe, so the log has the order the user would
//! have seen. Nothing is lost when a step succeeds: the log stays in the build directory.
//!
//! A process that outlives its command and keeps the pipe is not waited for. On a stage that is
//! [impatient](Stage::impatient) a command that prints nothing for longer than any of ours has reason
//! to is killed, with all that it has started, and the log says which those were: `cargo xtask test`
//! never hangs. What is asked for by hand may take as long as it likes.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::kin;

/// No step of `cargo xtask test` has reason to print nothing for so long: the longest test takes one
/// minute, and so does the longest call of the compiler.
const SILENCE: Duration = Duration::from_secs(300);

/// What a command has printed is in the pipe when it ends; to read that takes no time to speak of.
const REST: Duration = Duration::from_secs(5);

/// How often it is looked whether the command has ended.
const LOOK: Duration = Duration::from_millis(500);

/// Hears each line as it is printed.
type Listener = Box<dyn Fn(&str)>;

/// Where a step runs its commands.
pub struct Stage {
    log: File,
    path: PathBuf,
    listener: Listener,
    /// For how long a command may print nothing.
    silence: Duration,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// How a command ended, and what it printed.
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
    /// It ended by itself; true if the exit code was zero.
    Ended(bool),
    /// The watcher saw what it waited for, in this line.
    Stopped(String),
    /// The time was up.
    OutOfTime,
}

impl Stage {
    /// Opens the log `path` and sends each new line to `listener` too.
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
            silence: Duration::MAX,
        })
    }

    /// From now on, who is silent for too long is killed.
    #[must_use]
    pub fn impatient(self) -> Self {
        self.silent_for_at_most(SILENCE)
    }

    fn silent_for_at_most(mut self, silence: Duration) -> Self {
        self.silence = silence;
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

    /// Runs a command to its end.
    ///
    /// # Errors
    /// If it cannot be started or the log cannot be written; a failing command is no error, nor is
    /// one that was killed.
    pub fn run(&mut self, command: &mut Command) -> Result<Ended> {
        let (mut child, lines) = self.start(command)?;
        let mut output = String::new();
        let mut heard = Instant::now();
        // When it was seen to have ended, and how.
        let mut end = None;
        loop {
            match lines.recv_timeout(LOOK) {
                Ok(line) => {
                    // What cargo tells programs is for the caller alone; people have the lines around it.
                    if !line.starts_with("{\"reason\":") {
                        self.say(&line)?;
                    }
                    output.push_str(&line);
                    output.push('\n');
                    heard = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if end.is_none() {
                end = child.try_wait()?.map(|status| (status, Instant::now()));
            }
            match &end {
                Some((_, ended)) if ended.elapsed() > REST => {
                    self.say(
                        "a process that outlives this command has its output; not waited for",
                    )?;
                    break;
                }
                None if heard.elapsed() > self.silence => {
                    self.say(&format!(
                        "not a line for {:?}: it hangs, and is killed:",
                        self.silence
                    ))?;
                    for one in kin::kill_all(&mut child) {
                        self.say(&format!("  {one}"))?;
                    }
                    break;
                }
                _ => {}
            }
        }
        let status = match end {
            Some((status, _)) => status,
            None => child.wait()?,
        };
        Ok(Ended {
            success: status.success(),
            output,
        })
    }

    /// Runs a command until it ends, `until` says stop, or `limit` is over; then it is killed.
    ///
    /// # Errors
    /// If it cannot be started or the log cannot be written.
    pub fn watch(
        &mut self,
        command: &mut Command,
        limit: Duration,
        until: impl Fn(&str) -> bool,
    ) -> Result<Watched> {
        let (mut child, lines) = self.start(command)?;
        let deadline = Instant::now() + limit;
        let stopped = loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.say(&line)?;
                    if until(&line) {
                        break Watched::Stopped(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => break Watched::OutOfTime,
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(Watched::Ended(child.wait()?.success()));
                }
            }
        };
        // It may have ended by itself meanwhile; then there is nothing left to kill.
        let _ = child.kill();
        child.wait()?;
        Ok(stopped)
    }

    fn start(&mut self, command: &mut Command) -> Result<(Child, mpsc::Receiver<String>)> {
        self.say(&format!("$ {}", shown(command)))?;
        let (reader, writer) = io::pipe()?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        // The command holds the writing ends; while it does, the reader would never see the end.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
                if send
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_err()
                {
                    return;
                }
            }
        });
        Ok((child, lines))
    }
}

/// A command as one would type it, with the variables that matter.
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

    fn stage() -> (tempfile::TempDir, Stage) {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage::open(&folder.path().join("logs/step.log"), |_| ()).unwrap();
        (folder, stage)
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_streams_reach_the_log_in_order() {
        let (folder, mut stage) = stage();
        let ended = stage
            .run(&mut shell("echo one; echo two >&2; echo three; exit 3"))
            .unwrap();
        assert!(!ended.success);
        assert_eq!(ended.output, "one\ntwo\nthree\n");
        let log = fs::read_to_string(folder.path().join("logs/step.log")).unwrap();
        assert!(log.ends_with(&ended.output), "{log}");
    }

    #[test]
    fn messages_for_programs_reach_the_caller_and_not_the_log() {
        let (folder, mut stage) = stage();
        let ended = stage.run(&mut shell("echo '{\"reason\":\"x\"}'")).unwrap();
        assert!(ended.output.contains("reason"));
        let log = fs::read_to_string(folder.path().join("logs/step.log")).unwrap();
        assert_eq!(log.lines().count(), 1, "the command alone: {log}");
    }

    #[test]
    fn a_watched_command_is_killed_at_the_awaited_line() {
        let (_folder, mut stage) = stage();
        let mut endless = shell("echo go; echo STOP; exec sleep 1000");
        let watched = stage.watch(&mut endless, Duration::from_secs(60), |line| line == "STOP");
        assert_eq!(watched.unwrap(), Watched::Stopped("STOP".into()));
    }

    #[test]
    fn a_watched_command_is_killed_when_its_time_is_up() {
        let (_folder, mut stage) = stage();
        let mut endless = shell("exec sleep 1000");
        let watched = stage
            .watch(&mut endless, Duration::from_millis(20), |_| false)
            .unwrap();
        assert_eq!(watched, Watched::OutOfTime);
    }

    #[test]
    fn a_silent_command_is_killed_with_all_that_it_has_started_and_they_are_named() {
        let (folder, stage) = stage();
        let mut stage = stage.silent_for_at_most(Duration::from_millis(300));
        let mut silent = shell("echo go; sleep 1001; echo never");
        let ended = stage.run(&mut silent).unwrap();
        assert!(!ended.success);
        assert_eq!(ended.output, "go\n");
        let log = fs::read_to_string(folder.path().join("logs/step.log")).unwrap();
        assert!(log.contains("it hangs"), "{log}");
        assert!(log.contains("sleep 1001"), "{log}");
    }

    #[test]
    fn a_process_that_outlives_the_command_and_has_its_output_is_not_waited_for() {
        let (folder, mut stage) = stage();
        let mut leaves = shell("echo go; sleep 1002 & echo $!");
        let ended = stage.run(&mut leaves).unwrap();
        assert!(ended.success);
        let left = ended.output.lines().nth(1).unwrap();
        assert!(shell(&format!("kill {left}")).status().unwrap().success());
        let log = fs::read_to_string(folder.path().join("logs/step.log")).unwrap();
        assert!(log.contains("not waited for"), "{log}");
    }

    #[test]
    fn a_watched_command_that_ends_tells_how() {
        let (_folder, mut stage) = stage();
        let limit = Duration::from_secs(60);
        assert_eq!(
            stage.watch(&mut shell("true"), limit, |_| false).unwrap(),
            Watched::Ended(true)
        );
        let failed = stage.watch(&mut shell("exit 1"), limit, |_| false).unwrap();
        assert_eq!(failed, Watched::Ended(false));
    }
}
