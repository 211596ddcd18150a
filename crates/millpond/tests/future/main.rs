//! Completable results.

mod small;
