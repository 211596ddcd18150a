//! Reading: Rust source, Markdown and folders.
//!
//! Rust is read twice. [`tokens`] lexes it with `proc-macro2`, which is exact but forgets
//! comments; [`source`] splits each line into code and comment. A gate asks the first what the
//! code says and the second what the reader is told about it.

pub mod files;
pub mod markdown;
pub mod source;
pub mod tokens;
