//! Reading: Rust source, Markdown and folders.
//!
//! Rust is read twice. [`tokens`] lexes it with `proc-macro2`, which is exact but forgets
//! comments; [`source`] splits each line into code and comment. A gate reads the code from
//! the first and the comments from the second.

pub mod files;
pub mod markdown;
pub mod source;
pub mod tokens;
