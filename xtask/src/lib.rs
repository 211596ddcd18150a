//! The house's gates, as a library so that every gate can be shown to fail.
//!
//! | room | what is in it |
//! |---|---|
//! | [`table`] | the one table of gates; help, order and `cargo xtask test` follow from it |
//! | [`gates`] | one file (or folder) per gate |
//! | [`text`] | reading Rust, Markdown and folders: what the pure gates stand on |
//! | [`runner`] | `cargo xtask test`: progress, logs, summary |
//! | [`stage`] | runs commands for a step and keeps what they print |
//! | [`needs`] | programs from outside, and how to get them |
//! | [`cli`] | the command line |
//!
//! A pure gate is a function from a root folder to a [`report::Report`]. It never asks where the
//! real house is, so a test can plant a violation in a temporary folder and watch the gate fall.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program on its own: nobody simulates its clock or model-checks its threads"
)]

pub mod cli;
pub mod gates;
pub mod house;
mod kin;
pub mod needs;
pub mod report;
pub mod runner;
pub mod stage;
pub mod table;
pub mod tally;
pub mod text;
