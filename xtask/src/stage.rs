//! The stage a step plays on: it runs commands and keeps every line they print.
//!
//! Standard output and standard error share one pipe, so the log has the order the user would
//! have seen. Nothing is lost when a step succeeds: the log stays in the build directory.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Hears each line as it is printed.
type Listener = Box<dyn Fn(&str)>;

/// Where a step runs its commands.
pub struct Stage {
    log: File,
    path: PathBuf,
    listener: Listener,
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
        })
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
    /// If it cannot be started or the log cannot be written; a failing command is no error.
    pub fn run(&mut self, command: &mut Command) -> Result<Ended> {
        let (mut child, lines) = self.start(command)?;
        let mut output = String::new();
        for line in lines {
            // What cargo tells programs is for the caller alone; people have the lines around it.
            if !line.starts_with("{\"reason\":") {
                self.say(&line)?;
            }
            output.push_str(&line);
            output.push('\n');
        }
        Ok(Ended {
            success: child.wait()?.success(),
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
