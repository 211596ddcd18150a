//! The tracing span that a task was made in: the whole of the feature `tracing`.
//!
//! With the feature, a task remembers the span that was current where it was made, and is inside it
//! while it runs. Without, this is nothing and costs nothing.

pub(super) use which::Span;

#[cfg(feature = "tracing")]
mod which {
    use millpond_raw::quiet;
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

        /// Whether there is none where this is asked.
        pub(in super::super) fn is_none_here() -> bool {
            tracing::Span::current().is_none()
        }

        pub(in super::super) fn is_none(&self) -> bool {
            self.0.is_none()
        }

        pub(in super::super) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
            let Some(span) = &self.0 else { return f() };
            // A subscriber is users' code: its panic must not cost the task.
            user_code::check(Kind::Hook);
            let entered = quiet::call(|| span.enter());
            let result = f();
            quiet::drop(entered);
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
