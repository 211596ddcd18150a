//! The gates, as a library, so that a test can show that each of them fails.
//!
//! | module | what it is |
//! |---|---|
//! | [`table`] | the one table of gates; help, order and `cargo xtask test` follow from it |
//! | [`gates`] | one file (or folder) per gate |
//! | [`text`] | reading Rust, Markdown and folders |
//! | [`runner`] | `cargo xtask test`: steps in order, summary |
//! | [`step`] | runs the commands of a gate and keeps their output |
//! | [`counts`] | counts of tests |
//! | `process` | starting and killing processes |
//! | [`report`] | the result of a pure gate |
//! | [`workspace`] | the workspace on disk, and cargo in it |
//! | [`needs`] | external programs, and how to install them |
//! | [`cli`] | the command line |
//!
//! A pure gate is a function from a root folder to a [`report::Report`]. It does not know
//! where the real workspace is, so a test can plant a violation in a temporary folder.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program of its own: its clock is not simulated and its threads are not model-checked"
)]

pub mod cli;
pub mod counts;
pub mod gates;
pub mod needs;
mod process;
pub mod report;
pub mod runner;
pub mod step;
pub mod table;
pub mod text;
pub mod workspace;
