//! The line about dropped tasks that a process writes, for executors that are no pools.

#![cfg(not(any(millpond_loom, millpond_shuttle, feature = "tracing")))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{DirectExecutor, Executor, ExecutorExt, SerialExecutor};
use millpond::task::TaskSpec;
use millpond_testkit::watch;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const CHILD: &str = "MILLPOND_CHILD_OF_TEST";
const THREADS: u64 = 4;
const TASKS: u64 = 50;

fn drop_some() {
    let serial = SerialExecutor::new(DirectExecutor::new());
    for _ in 0..TASKS {
        let now = serial.key(1).clock().deadline(Duration::ZERO);
        let late = TaskSpec::new().name("late").deadline(now);
        let late_too = TaskSpec::new().name("late").deadline(now);
        serial.key(1).execute_with(late, || unreachable!()).unwrap();
        let direct = DirectExecutor::new();
        direct.execute_with(late_too, || unreachable!()).unwrap();
    }
}

/// The next line is written ten seconds later and has the rest.
#[test]
fn the_log_lines_of_a_process_account_for_every_dropped_task() {
    let _watch = watch();
    if std::env::var_os(CHILD).is_some() {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(drop_some);
            }
        });
        // Until the parent has read what it waits for, or is gone.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let test = "the_log_lines_of_a_process_account_for_every_dropped_task";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (mut told, mut lines_told) = (0, 0);
    for line in lines {
        let line = line.unwrap();
        let Some((_, rest)) = line.split_once("nobody holds its handle; ") else {
            continue;
        };
        assert!(line.starts_with("millpond: `late` (made at "), "{line}");
        assert!(line.contains("(its deadline had passed)"), "{line}");
        let number = rest.split(' ').next().unwrap();
        told += number.parse::<u64>().unwrap();
        lines_told += 1;
        if told == 2 * THREADS * TASKS {
            break;
        }
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(told, 2 * THREADS * TASKS);
    assert!(lines_told <= 3, "{lines_told} lines");
}
