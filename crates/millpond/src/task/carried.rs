//! Values of the user's own that go from a task to the tasks that it makes.
//!
//! A [`Carried`] is a name for a value. What is carried at a moment is a [`Load`]: a list of values that is
//! never changed, only replaced, and that all tasks of one origin share. It is a part of what a task
//! [inherits](super::context), so it goes wherever names and deadlines go, is put back in the same places,
//! and a thread that carries nothing does not look at it.
//!
//! A load has one entry for each `Carried` and no more, however deep scopes are nested: a task that opens
//! a scope and makes the next one in it, which does the same, for ever, keeps one value and not all.
//!
//! The last owner of a load drops its values: whoever is done with the last task that has it. That is never
//! under a lock of ours, and panics of their destructors go no further.

#![allow(
    clippy::disallowed_types,
    reason = "a user's static outlives every model, and its number only tells it from others"
)]

use super::{Task, context};
use millpond_raw::quiet;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value that travels with tasks: what a task submits has it, too, through any number of executors.
///
/// It is for what belongs to a request and not to a function: its number for the log, who asked, in which
/// language. [`scope`](Carried::scope) says what the value is while a closure runs. Every task that is made
/// meanwhile carries it, and everything that those make, until a scope says otherwise. The thread that runs a
/// task has the task's values as long as it does so, and its own again afterwards, also if the task panics.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::preset;
/// use millpond::task::Carried;
///
/// struct Request(u64);
/// static REQUEST: Carried<Request> = Carried::new();
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
/// A future that is spawned inside a scope has the value in all of its polls. Threads that are started
/// otherwise have nothing. A value lives as long as there is a task that carries it, or a handle to one.
#[doc(alias = "MDC")]
#[doc(alias = "task_local")]
#[doc(alias = "ScopedValue")]
#[doc(alias = "InheritableThreadLocal")]
pub struct Carried<T> {
    /// What tells it from others. 0 until somebody asks.
    number: AtomicUsize,
    kind: PhantomData<fn(T) -> T>,
}

impl<T> Carried<T> {
    /// A value that nobody carries yet. Usually a `static`.
    pub const fn new() -> Self {
        Carried {
            number: AtomicUsize::new(0),
            kind: PhantomData,
        }
    }

    fn number(&self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let known = self.number.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let new = NEXT.fetch_add(1, Ordering::Relaxed);
        let set = self
            .number
            .compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
        set.map_or_else(|other| other, |_| new)
    }
}

impl<T: Send + Sync + 'static> Carried<T> {
    /// Runs `f`, and lets it and all tasks that it makes carry this value. Afterwards this thread carries
    /// what it did before, also if `f` panics.
    ///
    /// ```
    /// use millpond::task::Carried;
    ///
    /// static LANGUAGE: Carried<&str> = Carried::new();
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
        let load = context::load().with(self.number(), value);
        context::carry(load, f)
    }

    /// The value that is carried here and now.
    pub fn get(&self) -> Option<Arc<T>> {
        context::load().find(self.number())?.downcast().ok()
    }

    /// The value that this task carries. For those who have a task in hand and not its closure, such as a
    /// rejection handler.
    ///
    /// ```
    /// use millpond::task::{self, Carried};
    ///
    /// static ORDER: Carried<u64> = Carried::new();
    /// let (task, _handle) = ORDER.scope(42, || task::new(|| ()));
    /// assert_eq!(ORDER.of(&task).as_deref(), Some(&42));
    /// ```
    pub fn of(&self, task: &Task) -> Option<Arc<T>> {
        task.load()?.find(self.number())?.downcast().ok()
    }
}

impl<T> Default for Carried<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Carried<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carried").finish_non_exhaustive()
    }
}

/// Everything that is carried at a moment.
#[derive(Clone, Debug)]
pub(super) struct Load(Option<Arc<Values>>);

/// Values by the numbers of their [`Carried`].
struct Values(Vec<(usize, Value)>);

type Value = Arc<dyn Any + Send + Sync>;

impl Load {
    pub(super) const fn nothing() -> Self {
        Load(None)
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    fn all(&self) -> &[(usize, Value)] {
        self.0.as_ref().map_or(&[], |values| &values.0)
    }

    fn find(&self, number: usize) -> Option<Value> {
        let mut all = self.all().iter();
        let (_, value) = all.find(|(known, _)| *known == number)?;
        Some(Arc::clone(value))
    }

    /// The same, but for one value.
    fn with(&self, number: usize, value: Value) -> Self {
        let others = self.all().iter().filter(|(known, _)| *known != number);
        let all = others.cloned().chain([(number, value)]).collect();
        Load(Some(Arc::new(Values(all))))
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        // Each by itself: one that panics costs no other.
        self.0.drain(..).for_each(quiet::drop);
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
        static DEPTH: Carried<u32> = Carried::new();
        static OTHER: Carried<u32> = Carried::new();
        let first = Arc::new(0);
        let mut load = Load::nothing().with(DEPTH.number(), Arc::clone(&first) as Value);
        load = load.with(OTHER.number(), Arc::new(7_u32));
        for depth in 1..1_000_u32 {
            load = load.with(DEPTH.number(), Arc::new(depth));
        }
        assert_eq!(load.all().len(), 2);
        assert_eq!(Arc::strong_count(&first), 1);
    }

    #[test]
    fn a_number_is_given_once() {
        let one = Carried::<u8>::new();
        let other = Carried::<u8>::new();
        assert_eq!(one.number(), one.number());
        assert_ne!(one.number(), other.number());
    }
}
