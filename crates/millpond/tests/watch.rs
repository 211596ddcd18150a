//! The watch over the tests of this crate works.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

mod watch_kit;

use millpond::interrupt;
use millpond::task;
use millpond_raw::park::probe;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use watch_kit::{watch, watch_with};

const LONG: Duration = Duration::from_secs(20);
const CHILD: &str = "MILLPOND_WATCHED_CHILD";

#[test]
fn who_waits_where_is_told_when_the_time_is_up() {
    let (task, handle) = task::new(|| interrupt::sleep(Duration::MAX).is_err());
    let runner = std::thread::Builder::new().name("sleeper".into());
    let runner = runner.spawn(move || drop(task.run())).unwrap();
    probe::await_wait(LONG, |wait| wait.site.name() == "interrupt.sleep").expect("it sleeps");
    let (tell, told) = mpsc::channel();
    let _watch = watch_with(Duration::ZERO, move |waits| {
        tell.send(waits.to_owned()).unwrap();
    });
    let waits = told.recv_timeout(LONG).unwrap();
    assert!(
        waits.contains("thread `sleeper` is parked in interrupt.sleep"),
        "{waits}"
    );
    handle.interrupt();
    runner.join().unwrap();
}

#[test]
fn a_test_that_ends_in_time_is_left_alone() {
    let (tell, told) = mpsc::channel::<()>();
    drop(watch_with(LONG, move |_| drop(tell)));
    assert_eq!(
        told.recv_timeout(LONG),
        Err(mpsc::RecvTimeoutError::Disconnected),
        "the alarm is dropped uncalled"
    );
}

#[test]
fn a_process_that_hangs_is_ended_and_names_the_test() {
    if std::env::var_os(CHILD).is_some() {
        let _watch = watch();
        std::thread::sleep(LONG);
        unreachable!("the watch ends the process before");
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_process_that_hangs_is_ended_and_names_the_test",
        ])
        .env(CHILD, "1")
        .env("MILLPOND_DELAY_FACTOR", "0.005")
        .output()
        .unwrap();
    assert!(!child.status.success());
    let text = String::from_utf8_lossy(&child.stderr);
    let report = "`a_process_that_hangs_is_ended_and_names_the_test` has not ended within 600ms";
    assert!(text.contains(report), "{text}");
}
