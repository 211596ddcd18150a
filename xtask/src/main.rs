//! The house's gates.
#![forbid(unsafe_code)]

fn main() {}
