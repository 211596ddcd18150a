//! Java's side: one process that runs all scripts.
//!
//! The sources in `java` are compiled with `javac` into the build directory when they are newer than
//! what is there. (The launcher that runs a source file takes one file only and compiles it at every
//! start.) Scripts go in on standard input and logs come out on standard output, so a script costs no
//! start of anything.

use super::Side;
use super::judge::Log;
use super::script::Script;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, SystemTime};
use std::{fs, iter, thread};

/// The options of the process: it lives for seconds and needs little.
const OPTIONS: [&str; 4] = [
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Xss512k",
];

/// The folder of the sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("java")
}

/// Compiles the sources into `classes`, unless what is there is newer than they are.
///
/// # Errors
///
/// There is no compiler, or it found something wrong.
pub fn compile(classes: &Path) -> io::Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(sources())?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "java"));
    let changed = |file: &PathBuf| fs::metadata(file)?.modified();
    let newest = files.iter().map(changed).collect::<io::Result<Vec<_>>>()?;
    let newest = newest.into_iter().max().unwrap_or(SystemTime::now());
    let stamp = classes.join("compiled");
    if fs::metadata(&stamp)
        .and_then(|stamp| stamp.modified())
        .is_ok_and(|done| done > newest)
    {
        return Ok(());
    }
    fs::create_dir_all(classes)?;
    let mut javac = Command::new("javac");
    javac
        .args(["-Xlint:all,-serial", "-Werror", "-d"])
        .arg(classes)
        .args(&files);
    let ended = javac.status().map_err(|error| missing("javac", &error))?;
    if !ended.success() {
        return Err(io::Error::other(
            "javac found something wrong in the sources",
        ));
    }
    fs::write(stamp, "")
}

fn missing(program: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "cannot start `{program}` ({error}): install a Java development kit, \
         on Debian `apt-get install default-jdk-headless`"
    ))
}

/// The process.
#[derive(Debug)]
pub struct Java {
    child: Child,
    /// Gone when the process is to end.
    scripts: Option<ChildStdin>,
    reader: Reader,
    timeout: Duration,
    version: String,
}

impl Java {
    /// Starts the process on compiled classes. A step that has not come to rest after `timeout` is
    /// stuck.
    ///
    /// # Errors
    ///
    /// It cannot be started, or does not answer.
    pub fn start(classes: &Path, timeout: Duration) -> io::Result<Self> {
        let mut command = Command::new("java");
        command
            .args(OPTIONS)
            .arg("-cp")
            .arg(classes)
            .arg("Differential");
        command.arg(timeout.as_millis().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| missing("java", &error))?;
        let scripts = child.stdin.take();
        let output = child
            .stdout
            .take()
            .ok_or_else(|| gone("it has no output"))?;
        let mut java = Java {
            child,
            scripts,
            reader: Reader::start(BufReader::new(output)),
            timeout,
            version: String::new(),
        };
        // The start has nothing to do with the timeout for a step.
        let greeting = java.reader.read(timeout.max(Duration::from_secs(60)))?;
        java.version = greeting.join(" ");
        Ok(java)
    }

    /// The version that it prints.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Reads what the process says, when it is asked to and never in between: while our side plays, no
/// thread may stir that is not watched (see [`Stillness`](crate::kit::Stillness)).
#[derive(Debug)]
struct Reader {
    ask: Sender<()>,
    answers: Receiver<io::Result<Log>>,
}

impl Reader {
    fn start(mut output: impl BufRead + Send + 'static) -> Self {
        let (ask, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        // Ends when the requests end; the end of the process ends a read.
        thread::spawn(move || {
            let mut lines = iter::from_fn(move || {
                let mut line = String::new();
                match output.read_line(&mut line) {
                    Ok(0) => None,
                    Ok(_) => Some(Ok(line.trim_end().to_owned())),
                    Err(error) => Some(Err(error)),
                }
            });
            while asked.recv().is_ok() {
                let upto_end =
                    |line: &io::Result<String>| !line.as_ref().is_ok_and(|line| line == "end");
                let read: io::Result<Log> = lines.by_ref().take_while(upto_end).collect();
                if answer.send(read).is_err() {
                    return;
                }
            }
        });
        Reader { ask, answers }
    }

    /// All lines up to the next `end`.
    fn read(&self, timeout: Duration) -> io::Result<Log> {
        let asked = self.ask.send(());
        let answer = self.answers.recv_timeout(timeout);
        match (asked, answer) {
            (Ok(()), Ok(log)) => log,
            (_, Err(error)) => Err(gone(&format!("it does not answer ({error})"))),
            (Err(error), _) => Err(gone(&error.to_string())),
        }
    }
}

fn gone(problem: &str) -> io::Error {
    io::Error::other(format!("the Java process is of no use any more: {problem}"))
}

impl Side for Java {
    fn begin(&mut self, script: &Script) -> io::Result<()> {
        let mut text = script.lines().join("\n");
        text.push('\n');
        let pipe = self
            .scripts
            .as_mut()
            .ok_or_else(|| gone("it has no input"))?;
        pipe.write_all(text.as_bytes())?;
        pipe.flush()
    }

    fn finish(&mut self) -> io::Result<Log> {
        // It gives up a step by itself; this is for a process that died or hangs as a whole.
        let log = self
            .reader
            .read(self.timeout * 2 + Duration::from_secs(5))?;
        if log.is_empty() {
            Err(gone("it has ended"))
        } else {
            Ok(log)
        }
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // Without input it ends; killed it ends for certain, and it has nothing to save.
        drop(self.scripts.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
