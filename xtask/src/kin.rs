//! A process with all that it has started, and their end.
//!
//! Cargo does not pass its own end on: a test program that hangs would stay, and hold its pipe.
//! A group of its own would do that, and take Ctrl-C away from it. So the kin are looked up, where
//! the system has a list of processes to read (Linux); elsewhere it is the process alone.

use std::collections::HashMap;
use std::fs;
use std::process::Child;

/// Kills a process and all that it has started. Returns what each of those was, as one would type it.
pub(crate) fn kill_all(child: &mut Child) -> Vec<String> {
    let kin = of(child.id());
    // It may have ended by itself meanwhile; then there is nothing left to kill.
    let _ = child.kill();
    let mut told = Vec::new();
    for one in kin {
        told.push(typed(one));
        // The same holds for these.
        let _ = std::process::Command::new("kill")
            .args(["-9", &one.to_string()])
            .output();
    }
    told
}

/// The children of a process, theirs, and so on, the nearest first.
fn of(root: u32) -> Vec<u32> {
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
    let mut kin = vec![root];
    let mut next = 0;
    while let Some(one) = kin.get(next) {
        kin.extend(children.remove(one).unwrap_or_default());
        next += 1;
    }
    kin.split_off(1)
}

fn parent(process: u32) -> Option<u32> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain anything; the state and the parent stand behind it.
    let (_, behind) = line.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

fn typed(process: u32) -> String {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    words.trim_end_matches('\0').replace('\0', " ")
}
