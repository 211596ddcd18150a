//! What a task passes on to the tasks that it makes.
//!
//! A task that is made inside another one *inherits*: the deadline, unless it is given one of its
//! own; the name and the priority, likewise; the values of the user's own that are
//! [carried](super::Carried); and, with the feature `tracing`, the span that is current where it is made. So
//! what a request starts is shed with the request, counted under its name and logged under its span,
//! however many executors it goes through.
//!
//! A task without a handle does not inherit the deadline, unless its description asks for it
//! ([`TaskSpec::inherit_deadline`](super::TaskSpec::inherit_deadline)): it has been accepted, and nobody
//! would hear that it was dropped. The same goes for a task that is scheduled.
//!
//! # How
//!
//! Running a task puts its [`Inherited`] into a thread-local and takes it out afterwards, also when
//! the body panics; [`TaskSpec::new`](super::TaskSpec::new) copies what it finds there. Most
//! tasks have nothing to pass on. For them both ends are one look at a flag.

use super::Priority;
use super::carried::Load;
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
    pub(super) priority: Priority,
    pub(super) span: Span,
    pub(super) load: Load,
}

impl Inherited {
    pub(super) const fn nothing() -> Self {
        Inherited {
            name: None,
            deadline: Deadline::NEVER,
            priority: Priority::Normal,
            span: Span::none(),
            load: Load::nothing(),
        }
    }

    /// Whether there is nothing that a thread-local would have to hold. The span is not: while the
    /// body runs it is the current one of its own library.
    fn is_nothing(&self) -> bool {
        let usual = self.deadline == Deadline::NEVER && self.priority == Priority::Normal;
        usual && self.name.is_none() && self.load.is_nothing()
    }
}

local! {
    static SOMETHING: Cell<bool> = Cell::new(false);
}

local! {
    static INHERITED: RefCell<Inherited> = RefCell::new(Inherited::nothing());
}

#[inline]
fn is_something() -> bool {
    SOMETHING.try_with(Cell::get).unwrap_or(false)
}

/// What a task that is made here and now inherits; `None` if that is nothing.
#[inline]
pub(super) fn here() -> Option<Inherited> {
    let span = Span::current();
    if !is_something() {
        return (!span.is_none()).then(|| Inherited {
            span,
            ..Inherited::nothing()
        });
    }
    Some(Inherited { span, ..copy() })
}

/// Whether a task that is made here and now inherits nothing.
#[inline]
pub(crate) fn inherits_nothing() -> bool {
    !is_something() && Span::is_none_here()
}

fn copy() -> Inherited {
    // No borrow lasts longer than the copy, so this one is to be had.
    let found = INHERITED.try_with(|inherited| inherited.borrow().clone());
    found.unwrap_or(Inherited::nothing())
}

/// What the task is called that runs here and now.
pub(crate) fn current_name() -> Option<Name> {
    is_something().then(copy)?.name
}

/// What is carried here and now.
pub(super) fn load() -> Load {
    if !is_something() {
        return Load::nothing();
    }
    let found = INHERITED.try_with(|inherited| inherited.borrow().load.clone());
    found.unwrap_or(Load::nothing())
}

/// Runs `f` as part of what runs here, with all else as it is, but with this load.
pub(super) fn carry<R>(load: Load, f: impl FnOnce() -> R) -> R {
    let _left = Left(swap(Inherited { load, ..copy() }));
    f()
}

/// Whether running a task that passes this on needs no [`enter`].
#[inline]
pub(super) fn is_plain(inherited: Option<&Inherited>) -> bool {
    inherited.is_none_or(|inherited| inherited.is_nothing() && inherited.span.is_none())
        && !is_something()
}

/// Runs `f` as the body of a task that passes this on.
pub(super) fn enter<R>(inherited: Option<Inherited>, f: impl FnOnce() -> R) -> R {
    let inherited = inherited.unwrap_or(Inherited::nothing());
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
