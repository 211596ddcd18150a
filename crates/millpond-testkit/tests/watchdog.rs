//! The watchdog really ends a process that hangs: a child of this very test is made to hang.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it hangs on purpose"
)]

use millpond_testkit::{Actor, case, delays, watch};
use std::process::{Command, Output};
use std::time::Duration;

const CHILD: &str = "MILLPOND_WATCHED_CHILD";

/// Runs one test of this file in a process of its own, where it hangs.
fn child(name: &str, factor: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, "1")
        .env(delays::FACTOR, factor)
        .output()
        .unwrap()
}

#[test]
fn a_process_that_hangs_is_ended_and_says_where_its_threads_wait() {
    if std::env::var_os(CHILD).is_some() {
        let _watchdog = watch();
        let stuck = Actor::start("stuck", || millpond::interrupt::sleep(Duration::MAX));
        stuck.await_parked("interrupt.sleep");
        std::thread::sleep(Duration::from_secs(60));
        unreachable!("the watchdog ends the process before");
    }
    let name = "a_process_that_hangs_is_ended_and_says_where_its_threads_wait";
    let child = child(name, "0.01");
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success());
    let report = format!("`{name}` has not ended within 800ms");
    assert!(text.contains(&report), "{text}");
    assert!(
        text.contains("thread `stuck` is parked in interrupt.sleep"),
        "{text}"
    );
}

#[test]
fn the_timeout_of_a_test_that_hangs_grows_with_the_delay_factor() {
    if std::env::var_os(CHILD).is_some() {
        case("the_hanging_case", || {
            std::thread::sleep(Duration::from_secs(60))
        });
        unreachable!("the watchdog ends the process before");
    }
    for (factor, timeout) in [("0.005", "400ms"), ("0.01", "800ms")] {
        let name = "the_timeout_of_a_test_that_hangs_grows_with_the_delay_factor";
        let child = child(name, factor);
        let text = String::from_utf8_lossy(&child.stderr);
        assert!(!child.status.success());
        let report = format!("`the_hanging_case` has not ended within {timeout}");
        assert!(text.contains(&report), "{text}");
    }
}
