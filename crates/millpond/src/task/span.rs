//! The tracing span that a task was created in (feature `tracing`).
//!
//! With the feature, a task remembers the span that was current when it was created, and runs inside it. Without the
//! feature this is empty and costs nothing.

pub(super) use which::Span;

#[cfg(feature = "tracing")]
mod which {
    use millpond_raw::catch_panic;
    use millpond_raw::user_code::{self, Kind};

    /// A span, or none.
    #[derive(Clone, Debug)]
    pub(in super::super) struct Span(Option<tracing::Span>);

    impl Span {
        pub(in super::super) const fn none() -> Self {
            Span(None)
        }

        pub(in super::super) fn current() -> Self {
            let span = tracing::Span::current();
            Span((!span.is_none()).then_some(span))
        }

        /// Whether there is no current span.
        pub(in super::super) fn is_none_here() -> bool {
            tracing::Span::current().is_none()
        }

        pub(in super::super) fn is_none(&self) -> bool {
            self.0.is_none()
        }

        pub(in super::super) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
            let Some(span) = &self.0 else { return f() };
            // A subscriber is user code: its panic must not harm the task.
            user_code::check(Kind::Hook);
            let entered = catch_panic::call(|| span.enter());
            let result = f();
            catch_panic::drop(entered);
            result
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod which {
    /// No span.
    #[derive(Clone, Debug)]
    pub(in super::super) struct Span;

    impl Span {
        pub(in super::super) const fn none() -> Self {
            Span
        }

        pub(in super::super) fn current() -> Self {
            Span
        }

        pub(in super::super) fn is_none_here() -> bool {
            true
        }

        pub(in super::super) fn is_none(&self) -> bool {
            true
        }

        pub(in super::super) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
            f()
        }
    }
}
