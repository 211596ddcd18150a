//! The context of a task, which the tasks that it creates inherit.
//!
//! A task that is created inside another one *inherits* from it the deadlines, the name and the priority, unless it is
//! given its own; the values of [task-locals](super::TaskLocal); and, with the feature `tracing`, the current span. So
//! all tasks of a request are shed with the request, counted under its name and logged under its span, however many
//! executors they go through.
//!
//! A task without a handle does not inherit the deadline, unless its description asks for it
//! ([`TaskSpec::inherit_deadline`](super::TaskSpec::inherit_deadline)): it has been accepted, and nobody would hear that
//! it was dropped. The same goes for a scheduled task.
//!
//! # How
//!
//! Running a task puts its [`Inherited`] into a thread-local and takes it out afterwards, also if the body panics;
//! [`TaskSpec::new`](super::TaskSpec::new) copies it from there. Most tasks have empty to pass on. For them both ends
//! are one look at a flag.
//!
//! A part of a task that another worker of a fork-join pool runs is in the context of the task: a job that others may take
//! carries a copy ([`carried`]).

use super::Priority;
use super::name::Name;
use super::span::Span;
use super::task_local::TaskLocals;
use crate::time::Deadline;
use millpond_raw::forkjoin::{self, Surround};
use millpond_raw::sync::local;
use std::cell::{Cell, RefCell};

/// What the tasks inherit that a task creates.
#[derive(Clone, Debug)]
pub(super) struct Inherited {
    pub(super) name: Option<Name>,
    pub(super) deadline: Deadline,
    /// The time by which it must have ended.
    pub(super) finish_by: Deadline,
    pub(super) priority: Priority,
    pub(super) span: Span,
    pub(super) locals: TaskLocals,
}

impl Inherited {
    pub(super) const fn empty() -> Self {
        Inherited {
            name: None,
            deadline: Deadline::NEVER,
            finish_by: Deadline::NEVER,
            priority: Priority::Normal,
            span: Span::none(),
            locals: TaskLocals::empty(),
        }
    }

    /// Whether the thread-local need not hold it. The span does not count: while the body runs it is the current span of
    /// the tracing library.
    fn is_empty(&self) -> bool {
        let is_timed = self.deadline != Deadline::NEVER || self.finish_by != Deadline::NEVER;
        !is_timed
            && self.priority == Priority::Normal
            && self.name.is_none()
            && self.locals.is_empty()
    }
}

local! {
    static IS_SET: Cell<bool> = Cell::new(false);
}

local! {
    static INHERITED: RefCell<Inherited> = RefCell::new(Inherited::empty());
}

#[inline]
fn is_set() -> bool {
    IS_SET.try_with(Cell::get).unwrap_or(false)
}

/// What a task inherits that is created here and now; `None` if nothing.
#[inline]
pub(super) fn current() -> Option<Inherited> {
    let span = Span::current();
    if !is_set() {
        return (!span.is_none()).then(|| Inherited {
            span,
            ..Inherited::empty()
        });
    }
    Some(Inherited { span, ..copy() })
}

/// Whether a task that is created here and now inherits nothing.
#[inline]
pub(crate) fn inherits_nothing() -> bool {
    !is_set() && Span::is_none_here()
}

fn copy() -> Inherited {
    // No borrow lasts longer than the copy, so this one succeeds.
    let found = INHERITED.try_with(|inherited| inherited.borrow().clone());
    found.unwrap_or(Inherited::empty())
}

/// The name of the current task.
pub(crate) fn current_name() -> Option<Name> {
    is_set().then(copy)?.name
}

/// The time by which the current task must have ended; never, if it has no such time, and outside of tasks.
///
/// Interrupts reach blocking calls of this library only. A task hands what is left to the time-outs of other calls: of
/// sockets, drivers and locks.
///
/// ```
/// use millpond::executor::{Executor, ExecutorExt};
/// use millpond::preset;
/// use millpond::task::{self, TaskSpec};
/// use std::time::Duration;
///
/// let pool = preset::single("mill").build()?;
/// let clock = pool.clock();
/// let soon = clock.deadline(Duration::from_secs(60));
/// let left = pool.submit_with(TaskSpec::new().finish_by(soon), move || {
///     task::current_finish_by().remaining(clock.now()) // for `TcpStream::set_read_timeout`, say
/// })?;
/// assert!(left.join()?.is_some_and(|left| left <= Duration::from_secs(60)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn current_finish_by() -> Deadline {
    if !is_set() {
        return Deadline::NEVER;
    }
    let found = INHERITED.try_with(|inherited| inherited.borrow().finish_by);
    found.unwrap_or(Deadline::NEVER)
}

/// The current values of task-locals.
pub(super) fn task_locals() -> TaskLocals {
    if !is_set() {
        return TaskLocals::empty();
    }
    let found = INHERITED.try_with(|inherited| inherited.borrow().locals.clone());
    found.unwrap_or(TaskLocals::empty())
}

/// Runs `f` in the current context, but with these values of task-locals.
pub(super) fn with_task_locals<R>(locals: TaskLocals, f: impl FnOnce() -> R) -> R {
    // Jobs that were forked carry the context that is current when they are published.
    forkjoin::publish_private();
    let _restore = Restore(swap(Inherited { locals, ..copy() }));
    f()
}

/// The current context, for a job that another thread may run; `None` if there is none.
pub(crate) fn carried() -> Option<Box<dyn Surround>> {
    let inherited = if is_set() || !Span::is_none_here() {
        copy()
    } else {
        return None;
    };
    let is_plain = inherited.is_empty() && inherited.span.is_none();
    (!is_plain).then(|| Box::new(inherited) as Box<dyn Surround>)
}

impl Surround for Inherited {
    fn enclose(self: Box<Self>, body: &mut dyn FnMut()) {
        enter(Some(*self), body);
    }
}

/// Runs `f`, which is part of no task, without the context of the task that the thread runs.
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
    if is_set() { enter(None, f) } else { f() }
}

/// Whether a task with this context runs without [`enter`].
#[inline]
pub(super) fn is_plain(inherited: Option<&Inherited>) -> bool {
    inherited.is_none_or(|inherited| inherited.is_empty() && inherited.span.is_none()) && !is_set()
}

/// Runs `f` as the body of a task with this context.
pub(super) fn enter<R>(inherited: Option<Inherited>, f: impl FnOnce() -> R) -> R {
    let inherited = inherited.unwrap_or(Inherited::empty());
    let span = inherited.span.clone();
    forkjoin::publish_private();
    let _restore = Restore(swap(inherited));
    span.in_scope(f)
}

/// Restores the outer context when it drops.
struct Restore(Option<Inherited>);

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(outside) = self.0.take() {
            swap(outside);
        }
    }
}

/// `None` in a thread that is being torn down, whose thread-locals are gone.
fn swap(inside: Inherited) -> Option<Inherited> {
    let is_set = !inside.is_empty();
    let outside = INHERITED
        .try_with(|inherited| inherited.replace(inside))
        .ok()?;
    IS_SET.try_with(|flag| flag.set(is_set)).ok()?;
    Some(outside)
}
