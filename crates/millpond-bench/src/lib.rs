//! Millpond and its peers, measured side by side.
//!
//! ```text
//! cargo bench -p millpond-bench -- queue task      two suites, 10 interleaved rounds
//! cargo bench -p millpond-bench -- pool            all rows of the pool; Java, Go, Python and C# among the peers
//! cargo bench -p millpond-bench -- latency scale   curves: against load, against workers
//! cargo bench -p millpond-bench -- overload        a pool that gets more than it can do
//! cargo bench -p millpond-bench -- pool --condition busy   the same beside endless loops at nice 19
//! cargo bench -p millpond-bench -- queue --quick   seconds instead of minutes, and noisier
//! cargo bench -p millpond-bench -- --help
//! ```
//!
//! # Rules
//!
//! 1. Candidates of one workload take turns, round by round, in one process, in orders drawn by a printed seed; one
//!    that cannot be in it takes its turns from another. Absolute figures move from day to day and from machine to
//!    machine; what counts is the ratio to the best peer of the same run.
//! 2. Warm-up is thrown away. A figure is the median of the rounds, with the smallest and largest.
//! 3. Every result is consumed and checked. A candidate that loses or invents a message, or loses or
//!    repeats a task, is no candidate.
//! 4. Allocations are counted in runs of their own, so that counting does not slow the timed ones.
//! 5. A row of ours is ahead of the best peer, level with it within noise, or behind ([`verdict`]). Rows we lose
//!    stay in, and are marked.
//! 6. A candidate that does something else than the others (one that spins where they sleep) is
//!    shown for reference, with the reason, and no ratio is taken to it.
//! 7. A candidate that is not on the machine is left out, with the reason.
//! 8. A cost that can be switched off is measured with and without, and the row is the median of the
//!    differences of the rounds. It has a limit, in the unit of the figures.
//! 9. Where load is open (tasks come whether there is room or not), it follows a plan that was made before, and time
//!    is counted from the planned arrival. The seed of the plan is printed with the figures.
//! 10. Where single operations are timed, a percentile is the nearest rank among those of a round, and that of a row is
//!     the median of the rounds: by one rule, here and in the guests ([`stats::nearest_rank`]). CPU time stands beside
//!     every one of them.
//! 11. A suite that a machine of few CPUs distorts says so in its header, and beside its figures.
//!
//! # Rooms
//!
//! | module | what it is |
//! |---|---|
//! | [`harness`] | what a suite, a workload and a candidate are, and how rounds are run |
//! | [`workloads`] | the suites: one file per question |
//! | [`peers`] | others and us behind one trait each, so that a workload is written once |
//! | [`crew`], [`tally`] | threads that start together; which tasks have run |
//! | [`usage`], [`pool_threads`], [`alloc`], [`memory`] | CPU time and context switches; those of a pool's threads; allocations; resident memory |
//! | [`figure`], [`stats`] | what is read off a round; medians and quantiles |
//! | [`plan`], [`spin`] | when tasks come, decided before; work of a known length |
//! | [`condition`] | a quiet machine, a busy one, or one CPU |
//! | [`apart`] | CPUs for the workers, and one for the thread that keeps the time |
//! | [`rush`] | what became of tasks that came whether there was room or not |
//! | [`report`], [`verdict`], [`table`] | ratios; ahead, level or behind; tables to read |
//! | [`origin`] | commit, compiler, versions, seed: what it takes to measure it again |
//! | [`record`], [`output_file`] | an earlier run, read back; files that are known to be writable |
//! | [`page`], [`compare`] | a page with plots, and what changed between two runs: both of a record |
//! | [`publish`] | figures to be quoted: many processes become one file, and pages are made of it |
//! | [`machine`] | where it was measured, and how quiet it was |
//! | [`many_cores`] | what a pool would do on more cores, from counts of a recorded run |
//! | [`program`], [`ctrl_c`] | the command line, for `cargo bench` and for the `millpond` program; its end before the end |
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program that measures std and others beside ours uses their threads, channels and clock"
)]

pub mod alloc;
pub mod apart;
pub mod compare;
pub mod condition;
pub mod crew;
pub mod ctrl_c;
pub mod figure;
pub mod harness;
pub mod machine;
pub mod many_cores;
pub mod memory;
pub mod origin;
pub mod output_file;
pub mod page;
pub mod peers;
pub mod plan;
pub mod pool_threads;
pub mod program;
pub mod progress;
pub mod publish;
pub mod record;
pub mod report;
pub mod rush;
pub mod spin;
pub mod stats;
pub mod table;
pub mod tally;
pub mod usage;
pub mod verdict;
pub mod workloads;
