//! Processes: both streams in one pipe, and the end of a process with all that it has started.

use std::collections::HashMap;
use std::fs;
use std::io::{self, PipeReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Starts a command whose standard output and standard error share one pipe, so that the reader sees
/// their lines in order.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn spawn(command: &mut Command) -> Result<(Child, PipeReader)> {
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
    Ok((child, reader))
}

/// Kills a process and its descendants. Returns the command lines of the descendants.
///
/// Cargo does not pass a signal on, so a test program that hangs would stay and hold its pipe. A
/// process group would solve that, but would take Ctrl-C away from cargo. Hence the descendants are
/// looked up in `/proc`; on systems without it, only the process itself is killed.
pub(crate) fn kill_tree(child: &mut Child) -> Vec<String> {
    let descendants = descendants(child.id());
    // It may have ended by itself meanwhile; then there is nothing left to kill.
    let _ = child.kill();
    let kill = |process: u32| {
        let killed = command_line(process);
        // The same holds for these.
        let _ = Command::new("kill")
            .args(["-9", &process.to_string()])
            .output();
        killed
    };
    descendants.into_iter().map(kill).collect()
}

/// Children, grandchildren and so on, the nearest first.
fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent(id) {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(one) = found.get(next) {
        found.extend(children.remove(one).unwrap_or_default());
        next += 1;
    }
    found.split_off(1)
}

fn parent(process: u32) -> Option<u32> {
    stat(process)?.split_whitespace().nth(1)?.parse().ok()
}

/// The fields of `/proc/PID/stat` behind the name, from the state (field 3) on. The name stands in
/// parentheses and may contain anything.
pub(crate) fn stat(process: u32) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    behind_name(&line).map(String::from)
}

/// See [`stat`].
pub(crate) fn behind_name(line: &str) -> Option<&str> {
    line.rsplit_once(')').map(|(_, behind)| behind)
}

fn command_line(process: u32) -> String {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    words.trim_end_matches('\0').replace('\0', " ")
}
