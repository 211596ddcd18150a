//! The `millpond` program.
#![forbid(unsafe_code)]

fn main() {}
