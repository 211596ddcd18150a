//! The modules of the library, for the page.
//!
//! A ready row names the public path where its things live, and the table imports that path: a row
//! that promises what is not there does not compile. A test looks the other way round, so that no
//! public module of the library is left out.

use serde::Serialize;

/// A module that can be used today.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Room {
    /// The public path.
    pub(super) path: &'static str,
    pub(super) holds: &'static str,
}

macro_rules! ready {
    ($($first:ident $(:: $next:ident)* => $holds:literal,)*) => {
        mod exists {
            $(#[allow(unused_imports, reason = "importing proves that the path exists")]
            use $first $(:: $next)* as _;)*
        }

        /// Modules, from the highest rank down.
        pub(super) const READY: &[Room] = &[
            $(Room { path: concat!(stringify!($first) $(, "::", stringify!($next))*), holds: $holds },)*
        ];
    };
}

ready! {
    millpond::prelude => "the names that most programs use, in one import",
    millpond::preset => "pools for the usual needs, sized by CPUs and quota",
    millpond::future => "results that are composed: promises, stages, all, any, time-outs",
    millpond::pool => "the elastic pool: core, queue, max, policies, hooks, all live",
    millpond::forkjoin => "computations that divide themselves; idle workers steal parts",
    millpond::schedule => "tasks later, at a rate, by the calendar; on any executor",
    millpond::manage => "figures of an engine, and parameters that change together",
    millpond::executor => "submit, invoke all or any; thread per task, in order by key",
    millpond::queue => "blocking queues of eight kinds, for threads and async code",
    millpond::task => "a task and its TaskHandle: join, timeout, await, cancel, interrupt",
    millpond::interrupt => "asking a running task to stop, without killing anything",
    millpond::time => "Clock, the system's and a manual one for tests; saturating deadlines",
    millpond::thread => "ThreadFactory: how threads are started, named and sized",
    millpond::adapt => "pure controllers: telling overload from a burst, time to drain",
    millpond::meter => "how long things took: counts, means and percentiles",
    millpond::machine => "how many CPUs this process may use: mask and cgroup quota",
    millpond_raw::task => "the task cell: closure, result and waiters, 64 bytes if small",
    millpond_raw::park => "how anything waits and is woken; loom and shuttle check it",
    millpond_raw::sync => "our lock and atomics, and the seam that lets checkers in",
}

/// The modules to come, in the order they are built.
pub(super) const PLANNED: &[&str] = &["virtual threads", "governance", "console"];

#[cfg(test)]
mod tests {
    use super::*;

    /// The names after `pub mod` in a crate root.
    fn public_modules(root: &str) -> Vec<&str> {
        root.lines()
            .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
            .collect()
    }

    #[test]
    fn every_public_module_of_the_library_is_in_the_box() {
        let modules = public_modules(include_str!("../../../millpond/src/lib.rs"));
        assert!(
            modules.contains(&"machine"),
            "the scan of lib.rs finds nothing"
        );
        for module in modules {
            let path = format!("millpond::{module}");
            assert!(
                READY.iter().any(|room| room.path == path),
                "`{path}` is public but not in the box: add a row to rooms.rs"
            );
        }
    }

    #[test]
    fn nothing_is_ready_and_planned_at_once() {
        for room in READY {
            let name = room.path.rsplit("::").next().unwrap();
            let twice = PLANNED.iter().find(|planned| {
                planned.eq_ignore_ascii_case(name) || room.holds.contains(**planned)
            });
            assert_eq!(twice, None, "`{}` has it: take it off the plan", room.path);
        }
    }

    #[test]
    fn a_path_is_written_as_rust_writes_it() {
        assert!(READY.iter().any(|room| room.path == "millpond::machine"));
    }
}
