//! A test that hangs says who waits where, and ends the process so that everyone sees it.
//!
//! `millpond-conform` has the same for its suites; it stands above this crate, so these tests cannot
//! use it. A test begins with `let _watch = watch();`.

#![allow(
    dead_code,
    reason = "each test program is a crate of its own and takes what it needs"
)]

use millpond_raw::park::probe;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Longer than any chain of patiences in one test. `MILLPOND_DELAY_FACTOR` scales it.
const HANG: Duration = Duration::from_secs(120);

/// A watch over one test; dropping it ends the watch.
#[must_use = "the watch ends when it is dropped"]
pub(crate) struct Watch {
    _ends: Sender<()>,
}

/// Watches the test that the present thread runs.
pub(crate) fn watch() -> Watch {
    let test = std::thread::current();
    let name = test.name().unwrap_or("a test").to_owned();
    watch_with(patience(), move |waits| {
        let report = format!(
            "wedged: `{name}` has not ended within {:?}{waits}\n",
            patience()
        );
        // Not by a macro: those write into the test's captured output, which dies with us.
        let _ = std::io::stderr().write_all(report.as_bytes());
        std::process::abort();
    })
}

/// Watches, and calls `alarm` with who waits where if the time is up.
pub(crate) fn watch_with(patience: Duration, alarm: impl FnOnce(&str) + Send + 'static) -> Watch {
    let (ends, ended) = mpsc::channel();
    let watcher = move || {
        if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            let mut waits = String::from("\nparked:");
            for wait in probe::waits() {
                let _ = write!(waits, "\n  {wait}");
            }
            alarm(&waits);
        }
    };
    std::thread::Builder::new()
        .name("watch".into())
        .spawn(watcher)
        .expect("a thread can be started");
    Watch { _ends: ends }
}

fn patience() -> Duration {
    let factor = match std::env::var("MILLPOND_DELAY_FACTOR") {
        Err(_) => 1.0,
        Ok(text) => text.trim().parse().unwrap_or_else(|_| {
            panic!("MILLPOND_DELAY_FACTOR is `{text}`: give a number above 0, such as 4")
        }),
    };
    HANG.mul_f64(factor)
}
