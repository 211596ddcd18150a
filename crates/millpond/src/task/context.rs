//! What a task passes on to the tasks that it makes.
//!
//! A task that is made inside another one *inherits*: the deadline, unless it is given one of its
//! own; the name, likewise; and, with the feature `tracing`, the span that is current where it is
//! made. So what a request starts is shed with the request, counted under its name and logged under
//! its span, however many executors it goes through.
//!
//! # How
//!
//! Running a task puts its [`Inherited`] into a thread-local and takes it out afterwards, also when
//! the body panics; [`TaskSpec::new`](super::TaskSpec::new) copies what it finds there. Most
//! tasks have nothing to pass on. For them both ends are one look at a flag.

use super::name::Name;
use super::span::Span;
use crate::time::Deadline;
use millpond_raw::sync::local;
use std::cell::{Cell, RefCell};

/// What goes from a task to those that it makes.
#[derive(Clone, Debug)]
pub(super) struct Inherited {
    pub(super) name: Option<Name>,
    pub(super) deadline: Deadline,
    pub(super) span: Span,
}

impl Inherited {
    pub(super) const fn nothing() -> Self {
        Inherited {
            name: None,
            deadline: Deadline::NEVER,
            span: Span::none(),
        }
    }

    /// Whether there is nothing that a thread-local would have to hold. The span is not: while the
    /// body runs it is the current one of its own library.
    fn is_nothing(&self) -> bool {
        self.name.is_none() && self.deadline == Deadline::NEVER
    }
}

local! {
    static SOMETHING: Cell<bool> = Cell::new(false);
}

local! {
    static INHERITED: RefCell<Inherited> = RefCell::new(Inherited::nothing());
}

/// What a task that is made here and now inherits.
pub(super) fn here() -> Inherited {
    let mut found = match SOMETHING.try_with(Cell::get) {
        // No borrow lasts longer than the copy, so this one is to be had.
        Ok(true) => INHERITED
            .try_with(|inherited| inherited.borrow().clone())
            .unwrap_or(Inherited::nothing()),
        _ => Inherited::nothing(),
    };
    found.span = Span::current();
    found
}

/// Whether running a task that passes this on needs no [`enter`].
pub(super) fn is_plain(inherited: &Inherited) -> bool {
    inherited.is_nothing()
        && inherited.span.is_none()
        && !SOMETHING.try_with(Cell::get).unwrap_or(false)
}

/// Runs `f` as the body of a task that passes this on.
pub(super) fn enter<R>(inherited: Inherited, f: impl FnOnce() -> R) -> R {
    let span = inherited.span.clone();
    let _left = Left(swap(inherited));
    span.in_scope(f)
}

/// Puts back what was there, when it drops.
struct Left(Option<Inherited>);

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(outside) = self.0.take() {
            swap(outside);
        }
    }
}

/// `None` in a thread that is being torn down: there is nowhere to note it.
fn swap(inside: Inherited) -> Option<Inherited> {
    let something = !inside.is_nothing();
    let outside = INHERITED
        .try_with(|inherited| inherited.replace(inside))
        .ok()?;
    SOMETHING.try_with(|flag| flag.set(something)).ok()?;
    Some(outside)
}
