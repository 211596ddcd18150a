//! The executor framework of `java.util.concurrent`, done the Rust way.
#![forbid(unsafe_code)]

pub mod machine;
