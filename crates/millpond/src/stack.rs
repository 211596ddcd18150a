//! Stacks of workers, captured by the crate `millpond-stack` if the feature `stack-dump` is on.
//!
//! No other module knows the feature. Without it the same names are here: a [`ThreadRef`] is empty, and
//! every snapshot is an error that names the feature.

#[cfg(feature = "stack-dump")]
pub(crate) use millpond_stack::{
    DEFAULT_TIMEOUT, IS_SUPPORTED, StackSnapshot, Symbolizer, ThreadRef, snapshot,
};
#[cfg(not(feature = "stack-dump"))]
pub(crate) use without::{
    DEFAULT_TIMEOUT, IS_SUPPORTED, StackSnapshot, Symbolizer, ThreadRef, snapshot,
};

#[cfg(not(feature = "stack-dump"))]
mod without {
    use std::time::Duration;

    pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::ZERO;
    pub(crate) const IS_SUPPORTED: bool = false;

    #[derive(Clone)]
    pub(crate) struct ThreadRef;

    impl ThreadRef {
        pub(crate) fn current() -> Self {
            ThreadRef
        }
    }

    pub(crate) enum StackSnapshot {}

    pub(crate) fn snapshot(
        threads: &[ThreadRef],
        _timeout: Duration,
    ) -> Vec<Result<StackSnapshot, &'static str>> {
        let error =
            "no stack: switch on the feature `stack-dump` of millpond (Linux on x86-64 or AArch64)";
        threads.iter().map(|_| Err(error)).collect()
    }

    pub(crate) struct Symbolizer;

    impl Symbolizer {
        pub(crate) fn new() -> Self {
            Symbolizer
        }

        pub(crate) fn resolve(&mut self, snapshot: &StackSnapshot) -> String {
            match *snapshot {}
        }
    }
}
