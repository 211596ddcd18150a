//! Task-locals: values of the user's that tasks inherit from the task that creates them.
//!
//! A [`TaskLocal`] names a value. The current values are a [`TaskLocals`]: an immutable list, replaced as a whole, and
//! shared by all tasks of one origin. It is a part of the [inherited context](super::context), so it goes wherever names
//! and deadlines go and is restored in the same places, and a thread without values does not look at it.
//!
//! The list has one entry for each `TaskLocal`, however deep scopes are nested: a chain of tasks that each open a scope
//! and create the next task in it keeps one value, not all.
//!
//! The last task or handle that refers to a list drops its values, never under a lock of ours, and a panic of their
//! destructors is caught.

#![allow(
    clippy::disallowed_types,
    reason = "a user's static outlives every model, and its id only tells it from others"
)]

use super::{Task, context};
use millpond_raw::catch_panic;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A value that tasks inherit from the task that creates them, through any number of executors.
///
/// It is for data of a request rather than of a function: its id for the log, its user, its language.
/// [`scope`](TaskLocal::scope) sets the value while a closure runs. Every task that is created meanwhile has it, and all
/// tasks that those create, until another scope replaces it. A thread has the values of the task that it runs, and its
/// own again afterwards, also if the task panics.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::preset;
/// use millpond::task::TaskLocal;
///
/// struct Request(u64);
/// static REQUEST: TaskLocal<Request> = TaskLocal::new();
///
/// let number = || REQUEST.get().map(|request| request.0);
///
/// let pool = preset::fixed("mill", 2).build()?;
/// let also = pool.clone();
/// let answer = REQUEST.scope(Request(42), || {
///     // Two executors further on it is still there.
///     pool.submit(move || also.submit(number)?.join().map_err(Into::into))
/// })?;
/// let answer: Result<_, Box<dyn std::error::Error + Send + Sync>> = answer.join()?;
/// assert_eq!(answer.unwrap(), Some(42));
///
/// // And gone afterwards, here and there.
/// assert_eq!(number(), None);
/// assert_eq!(pool.submit(number)?.join()?, None);
/// # pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// In async code [`scope_future`](TaskLocal::scope_future) sets it for a future, and
/// [`TaskSpec::local`](super::TaskSpec::local) for one task. A future that is spawned inside a scope has the value in all
/// of its polls. Threads that are started by other means
/// have no values. A value lives as long as a task that has it, or a handle to such a task.
#[doc(alias = "MDC")]
#[doc(alias = "task_local")]
#[doc(alias = "ScopedValue")]
#[doc(alias = "InheritableThreadLocal")]
pub struct TaskLocal<T> {
    /// 0 until it is first needed. 64 bits everywhere: a program may create one for each request, and ids are not
    /// reused.
    id: AtomicU64,
    kind: PhantomData<fn(T) -> T>,
}

impl<T> TaskLocal<T> {
    /// A task-local that has no value yet. Usually a `static`.
    pub const fn new() -> Self {
        TaskLocal {
            id: AtomicU64::new(0),
            kind: PhantomData,
        }
    }

    pub(super) fn id(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let known = self.id.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let new = NEXT.fetch_add(1, Ordering::Relaxed);
        let set = self
            .id
            .compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
        set.map_or_else(|other| other, |_| new)
    }
}

impl<T: Send + Sync + 'static> TaskLocal<T> {
    /// Runs `f` with this value, for itself and for all tasks that it creates. Afterwards this thread has its former value
    /// again, also if `f` panics.
    ///
    /// ```
    /// use millpond::task::TaskLocal;
    ///
    /// static LANGUAGE: TaskLocal<&str> = TaskLocal::new();
    /// let here = || LANGUAGE.get().map_or("none", |language| *language);
    ///
    /// LANGUAGE.scope("en", || {
    ///     assert_eq!(LANGUAGE.scope("de", here), "de");
    ///     assert_eq!(here(), "en");
    /// });
    /// assert_eq!(here(), "none");
    /// ```
    pub fn scope<R>(&self, value: impl Into<Arc<T>>, f: impl FnOnce() -> R) -> R {
        let value: Arc<T> = value.into();
        let locals = context::task_locals().with(self.id(), value);
        context::with_task_locals(locals, f)
    }

    /// The current value.
    pub fn get(&self) -> Option<Arc<T>> {
        context::task_locals().find(self.id())?.downcast().ok()
    }

    /// The value that this task has inherited. For code that has a task and not its closure, such as a rejection handler.
    ///
    /// ```
    /// use millpond::task::{self, TaskLocal};
    ///
    /// static ORDER: TaskLocal<u64> = TaskLocal::new();
    /// let (task, _handle) = ORDER.scope(42, || task::new(|| ()));
    /// assert_eq!(ORDER.of(&task).as_deref(), Some(&42));
    /// ```
    pub fn of(&self, task: &Task) -> Option<Arc<T>> {
        task.task_locals()?.find(self.id())?.downcast().ok()
    }
}

impl<T> Default for TaskLocal<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for TaskLocal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLocal").finish_non_exhaustive()
    }
}

/// The values of all task-locals at a moment.
#[derive(Clone, Debug)]
pub(super) struct TaskLocals(Option<Arc<Values>>);

/// Values by the ids of their [`TaskLocal`].
struct Values(Vec<(u64, Value)>);

pub(super) type Value = Arc<dyn Any + Send + Sync>;

impl TaskLocals {
    pub(super) const fn empty() -> Self {
        TaskLocals(None)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn all(&self) -> &[(u64, Value)] {
        self.0.as_ref().map_or(&[], |values| &values.0)
    }

    fn find(&self, id: u64) -> Option<Value> {
        let mut all = self.all().iter();
        let (_, value) = all.find(|(known, _)| *known == id)?;
        Some(Arc::clone(value))
    }

    /// Whether both are one list.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// A copy with one value set.
    pub(super) fn with(&self, id: u64, value: Value) -> Self {
        let others = self.all().iter().filter(|(known, _)| *known != id);
        let all = others.cloned().chain([(id, value)]).collect();
        TaskLocals(Some(Arc::new(Values(all))))
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        // Each by itself: a panic must not keep the others.
        self.0.drain(..).for_each(catch_panic::drop);
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_replaced_is_not_kept() {
        static DEPTH: TaskLocal<u32> = TaskLocal::new();
        static OTHER: TaskLocal<u32> = TaskLocal::new();
        let first = Arc::new(0);
        let mut locals = TaskLocals::empty().with(DEPTH.id(), Arc::clone(&first) as Value);
        locals = locals.with(OTHER.id(), Arc::new(7_u32));
        for depth in 1..1_000_u32 {
            locals = locals.with(DEPTH.id(), Arc::new(depth));
        }
        assert_eq!(locals.all().len(), 2);
        assert_eq!(Arc::strong_count(&first), 1);
    }

    #[test]
    fn an_id_is_given_once() {
        let one = TaskLocal::<u8>::new();
        let other = TaskLocal::<u8>::new();
        assert_eq!(one.id(), one.id());
        assert_ne!(one.id(), other.id());
    }
}
