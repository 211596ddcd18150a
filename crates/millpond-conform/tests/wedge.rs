//! The watchdog really ends a process that hangs: a child of this very test is made to hang.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it hangs on purpose"
)]

use millpond_conform::kit::{Actor, Wedge, delays};
use std::process::Command;
use std::time::Duration;

const CHILD: &str = "MILLPOND_WEDGED_CHILD";

#[test]
fn a_process_that_hangs_is_ended_and_says_who_waits_where() {
    if std::env::var_os(CHILD).is_some() {
        let _wedge = Wedge::arm("the_hanging_test", delays::short());
        let stuck = Actor::start("stuck", || millpond::interrupt::sleep(Duration::MAX));
        let _ = stuck.finish();
        unreachable!("the watchdog ends the process before");
    }
    let name = "a_process_that_hangs_is_ended_and_says_who_waits_where";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success());
    assert!(text.contains("`the_hanging_test` has not ended"), "{text}");
    assert!(
        text.contains("thread `stuck` is parked in interrupt.sleep"),
        "{text}"
    );
}
