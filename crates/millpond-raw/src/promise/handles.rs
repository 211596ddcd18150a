//! Readers, producers and sources: the counted references to cells. Invariants are in the [module](super).

use super::cell::{self, Header, front, header};
use super::complete;
use super::queue::{self, Queue};
use super::word::{BODY, MEMORY, READER, RESULT};
use crate::sync::atomic::Ordering;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// Borrows a cell with this metadata.
type Shows<'a, M> = PhantomData<(&'a (), fn() -> M)>;

/// Takes values, and shows metadata.
type Takes<V, M> = PhantomData<(fn(V), fn() -> M)>;

/// A source, as a body shows it.
pub struct Upstream<'a, M> {
    pub(super) cell: NonNull<Header>,
    pub(super) _of: Shows<'a, M>,
}

impl<M> Upstream<'_, M> {
    pub(super) fn cell(&self) -> NonNull<Header> {
        self.cell
    }

    /// A reference of its own.
    pub fn to_source(&self) -> Source<M> {
        // SAFETY: PROMISE-1 - the body holds it meanwhile.
        unsafe { header(self.cell) }.word.add(MEMORY);
        Source {
            cell: self.cell,
            _of: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Upstream<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upstream")
    }
}

/// A reader of a value: it will be there, and stays until the last reader goes, or the sole one moves it out.
pub struct Reader<V, M> {
    pub(super) cell: NonNull<Header>,
    pub(super) _of: PhantomData<(V, fn() -> M)>,
}

// SAFETY: PROMISE-2 - threads hand the value over, one after the other; shared access needs `V: Sync`, where it is given.
unsafe impl<V: Send, M: Send + Sync> Send for Reader<V, M> {}
// SAFETY: PROMISE-2 - as above.
unsafe impl<V: Send, M: Send + Sync> Sync for Reader<V, M> {}

impl<V, M> core::panic::UnwindSafe for Reader<V, M> {}
impl<V, M> core::panic::RefUnwindSafe for Reader<V, M> {}

impl<V, M> Reader<V, M> {
    fn front(&self) -> &cell::Front<V, M> {
        // SAFETY: PROMISE-1, PROMISE-5 - a reader of these types.
        unsafe { front(self.cell) }
    }

    /// The metadata of the cell.
    pub fn meta(&self) -> &M {
        &self.front().meta
    }

    /// Identifies the cell among all live ones.
    pub fn address(&self) -> usize {
        queue::address(self.cell)
    }

    /// Whether the value is there.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.front().is_complete()
    }

    /// The value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&V>
    where
        V: Sync,
    {
        if !self.is_complete() {
            return None;
        }
        // SAFETY: PROMISE-2 - a reader, and the list is closed.
        Some(unsafe { self.front().read() })
    }

    /// Calls `f` with the value, if it is there and this is the only reader.
    #[inline]
    pub fn peek<R>(&mut self, f: impl FnOnce(&V) -> R) -> Option<R> {
        if !self.is_complete() || self.front().header.word.load().readers() != 1 {
            return None;
        }
        // SAFETY: PROMISE-2 - a reader, and the list is closed.
        Some(f(unsafe { self.front().read() }))
    }

    /// Takes the value: moved out, if this is the only reader, otherwise cloned.
    ///
    /// # Errors
    ///
    /// The reader, if the value is not there.
    #[inline]
    pub fn take(self) -> Result<V, Self> {
        if !self.is_complete() {
            return Err(self);
        }
        let cell = ManuallyDrop::new(self).cell;
        // SAFETY: PROMISE-2 - it is complete, and the handle is gone.
        Ok(unsafe { cell::take::<V, M>(cell) })
    }

    /// Another reader of the same value.
    #[must_use]
    pub fn share(&self) -> Self
    where
        V: Clone + Sync,
    {
        self.front().set_cloner(V::clone);
        self.front().header.word.add(READER);
        Reader {
            cell: self.cell,
            _of: PhantomData,
        }
    }

    /// As a source of a body.
    #[inline]
    pub fn upstream(&self) -> Upstream<'_, M> {
        Upstream {
            cell: self.cell,
            _of: PhantomData,
        }
    }

    /// A way to complete the cell, if it is not complete yet.
    pub fn producer(&self) -> Producer<V, M> {
        self.front().header.word.add(MEMORY);
        Producer {
            cell: self.cell,
            _of: PhantomData,
        }
    }

    /// Completes the cell, unless that has happened.
    ///
    /// # Errors
    ///
    /// The value.
    pub fn complete(&self, value: V, queue: &mut Queue) -> Result<(), V> {
        // SAFETY: PROMISE-1, PROMISE-5 - a reader of these types.
        unsafe { complete::complete::<V, M>(self.cell, value, false, queue) }
    }
}

impl<T, F: Sync, M> Reader<Result<T, F>, M> {
    /// The error, if the value is there and is one. Unlike [`get`](Reader::get) this does not ask whether threads may share
    /// a `T`.
    pub fn get_err(&self) -> Option<&F> {
        if !self.is_complete() {
            return None;
        }
        // SAFETY: PROMISE-2 - a reader, and the list is closed; of a value, `T`, nothing is accessed.
        unsafe { self.front().read() }.as_ref().err()
    }
}

impl<V, M> Drop for Reader<V, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: PROMISE-1, PROMISE-2, PROMISE-5 - a reader of these types.
        unsafe { cell::leave::<V, M>(self.cell) };
    }
}

impl<V, M> fmt::Debug for Reader<V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("is_complete", &self.is_complete())
            .finish()
    }
}

/// Completes a cell; sees nothing of its value.
pub struct Producer<V, M> {
    pub(super) cell: NonNull<Header>,
    pub(super) _of: Takes<V, M>,
}

// SAFETY: PROMISE-2 - values go in, from one thread.
unsafe impl<V: Send, M: Send + Sync> Send for Producer<V, M> {}
// SAFETY: PROMISE-2 - as above.
unsafe impl<V: Send, M: Send + Sync> Sync for Producer<V, M> {}

impl<V, M> core::panic::UnwindSafe for Producer<V, M> {}
impl<V, M> core::panic::RefUnwindSafe for Producer<V, M> {}

impl<V, M> Producer<V, M> {
    pub(super) fn front(&self) -> &cell::Front<V, M> {
        // SAFETY: PROMISE-1, PROMISE-5 - a reference to a cell of these types.
        unsafe { front(self.cell) }
    }

    /// The metadata of the cell.
    pub fn meta(&self) -> &M {
        &self.front().meta
    }

    /// Identifies the cell among all live ones.
    pub fn address(&self) -> usize {
        queue::address(self.cell)
    }

    /// Whether the cell is complete.
    pub fn is_complete(&self) -> bool {
        self.front().is_complete()
    }

    /// Whether the cell is complete, or a thread is completing it.
    pub fn is_claimed(&self) -> bool {
        self.front().header.word.load().has(RESULT)
    }

    /// Completes the cell, unless that has happened.
    ///
    /// # Errors
    ///
    /// The value.
    #[inline]
    pub fn complete(&self, value: V, queue: &mut Queue) -> Result<(), V> {
        // SAFETY: PROMISE-1, PROMISE-5 - a reference to a cell of these types.
        unsafe { complete::complete::<V, M>(self.cell, value, false, queue) }
    }

    /// Completes the cell, unless that has happened, and drops the producer. This is cheaper than the two.
    ///
    /// # Errors
    ///
    /// The value.
    #[inline]
    pub fn complete_and_drop(self, value: V, queue: &mut Queue) -> Result<(), V> {
        let own = ManuallyDrop::new(self);
        // SAFETY: PROMISE-1, PROMISE-5 - a reference to a cell of these types, which is given.
        let done = unsafe { complete::complete::<V, M>(own.cell, value, true, queue) };
        if done.is_err() {
            drop(ManuallyDrop::into_inner(own));
        }
        done
    }

    /// Counts one more writer. A cell begins with one.
    pub fn add_writer(&self) {
        let before = self.front().header.writers.fetch_add(1, Ordering::Relaxed);
        if before >= u32::MAX / 2 {
            std::process::abort();
        }
    }

    /// Counts one writer less. Returns whether it was the last.
    ///
    /// Relaxed: what the last one does, it does by completing the cell.
    pub fn remove_writer(&self) -> bool {
        self.front().header.writers.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Another one.
    #[must_use]
    pub fn another(&self) -> Self {
        self.front().header.word.add(MEMORY);
        Producer {
            cell: self.cell,
            _of: PhantomData,
        }
    }

    /// As a source of a body.
    pub fn upstream(&self) -> Upstream<'_, M> {
        Upstream {
            cell: self.cell,
            _of: PhantomData,
        }
    }
}

impl<V, M> Drop for Producer<V, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: PROMISE-1 - its own.
        unsafe { cell::release(self.cell) };
    }
}

impl<V, M> fmt::Debug for Producer<V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("is_complete", &self.is_complete())
            .finish()
    }
}

/// A cell whose value is of any type: whether it is complete, and what it waits for.
pub struct Source<M> {
    pub(super) cell: NonNull<Header>,
    pub(super) _of: PhantomData<fn() -> M>,
}

// SAFETY: PROMISE-1 - it shares the metadata, and nothing else.
unsafe impl<M: Send + Sync> Send for Source<M> {}
// SAFETY: PROMISE-1 - as above.
unsafe impl<M: Send + Sync> Sync for Source<M> {}

impl<M> Source<M> {
    fn header(&self) -> &Header {
        // SAFETY: PROMISE-1 - its own reference.
        unsafe { header(self.cell) }
    }

    /// The metadata of the cell.
    pub fn meta(&self) -> &M {
        // SAFETY: PROMISE-1, PROMISE-5 - the front up to the metadata is the same for all types of values that are
        // behind it.
        &unsafe { self.cell.cast::<cell::Prefix<M>>().as_ref() }.meta
    }

    /// Identifies the cell among all live ones.
    pub fn address(&self) -> usize {
        queue::address(self.cell)
    }

    /// Whether the cell is complete.
    pub fn is_complete(&self) -> bool {
        // Relaxed: nothing of the value is read through a source.
        self.header().head.load(Ordering::Relaxed) == cell::closed()
    }

    /// Whether the body of the cell has been claimed: it runs, or is gone; or there was none.
    pub fn is_running(&self) -> bool {
        self.header().word.load().has(BODY)
    }

    /// The sources that the cell waits for; none if its body runs, or is gone, or never was. Bodies that ought to have run
    /// meanwhile are in the queue afterwards.
    pub fn sources(&self, queue: &mut Queue) -> Vec<Source<M>> {
        let mut found = Vec::new();
        let header = self.header();
        if !complete::peek(header) {
            return found;
        }
        let mut see = |cell| {
            let upstream = Upstream {
                cell,
                _of: PhantomData,
            };
            found.push(upstream.to_source());
        };
        // SAFETY: PROMISE-3 - claimed with PEEK; PROMISE-5 - a body of a cell with this metadata has such sources.
        unsafe { (header.table.visit)(self.cell, &mut see) };
        // SAFETY: PROMISE-1, PROMISE-3 - as above, and its own reference.
        unsafe { complete::unpeek(self.cell, queue) };
        found
    }

    /// How many cells wait for this one. Dead links go.
    pub fn dependents(&self, queue: &mut Queue) -> u32 {
        complete::sweep(self.header(), queue)
    }

    /// As a source of a body.
    pub fn upstream(&self) -> Upstream<'_, M> {
        Upstream {
            cell: self.cell,
            _of: PhantomData,
        }
    }
}

impl<M> Clone for Source<M> {
    fn clone(&self) -> Self {
        self.upstream().to_source()
    }
}

impl<M> Drop for Source<M> {
    fn drop(&mut self) {
        // SAFETY: PROMISE-1 - its own.
        unsafe { cell::release(self.cell) };
    }
}

impl<M> fmt::Debug for Source<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("is_complete", &self.is_complete())
            .finish()
    }
}
