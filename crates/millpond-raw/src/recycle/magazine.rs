//! The magazines of one thread. Invariants are in the [module](super).
//!
//! This is all safe code: objects are moved into and out of cells that only their thread can see. The
//! magazines know their depots, so that models can use private ones ([`super::testing`]).
//!
//! In builds with debug assertions a free object is [poisoned](Object::poison), and the poison is checked
//! when it is allocated again.

use super::depot::{BATCH, Depots};
use super::object::{Object, SizeClass};
use core::cell::Cell;
use core::ops::Deref;

/// Two batches, so that one is left when the other has been fetched or returned.
const CAPACITY: usize = 2 * BATCH;

/// The magazines of one thread, one per class.
pub(super) struct Magazines<D: Deref<Target = Depots>> {
    magazines: [Magazine; SizeClass::COUNT],
    depots: D,
}

impl<D: Deref<Target = Depots>> Magazines<D> {
    /// Empty magazines that are refilled from these depots, and emptied into them on drop.
    pub(super) const fn new(depots: D) -> Self {
        Magazines {
            magazines: [const { Magazine::new() }; SizeClass::COUNT],
            depots,
        }
    }

    #[inline]
    fn of(&self, class: SizeClass) -> &Magazine {
        &self.magazines[class.index()]
    }

    /// Takes an object; `None` if the system has no memory.
    #[inline]
    pub(super) fn take(&self, class: SizeClass) -> Option<Object> {
        let object = match self.of(class).pop() {
            Some(object) => object,
            None => self.take_slow(class)?,
        };
        object.expect_poison(class);
        Some(object)
    }

    /// Refills the empty magazine from the depot, and takes one.
    #[cold]
    fn take_slow(&self, class: SizeClass) -> Option<Object> {
        let magazine = self.of(class);
        magazine.refill(&self.depots, class);
        magazine.pop()
    }

    /// Puts an object back.
    #[inline]
    pub(super) fn put(&self, class: SizeClass, object: Object) {
        object.poison(class);
        let magazine = self.of(class);
        if magazine.is_full() {
            magazine.flush_batch(&self.depots, class);
        }
        if let Some(object) = magazine.push(object) {
            self.depots.put_all(class, core::iter::once(object));
        }
    }
}

impl<D: Deref<Target = Depots>> Drop for Magazines<D> {
    fn drop(&mut self) {
        for class in SizeClass::all() {
            let magazine = self.of(class);
            while !magazine.is_empty() {
                magazine.flush_batch(&self.depots, class);
            }
        }
    }
}

/// A stack of objects of one class.
struct Magazine {
    /// Slots below this index hold an object, the others do not.
    len: Cell<usize>,
    slots: [Cell<Option<Object>>; CAPACITY],
}

impl Magazine {
    const fn new() -> Self {
        Magazine {
            len: Cell::new(0),
            slots: [const { Cell::new(None) }; CAPACITY],
        }
    }

    #[inline]
    fn pop(&self) -> Option<Object> {
        let last = self.len.get().checked_sub(1)?;
        let object = self.slots.get(last)?.take();
        self.len.set(last);
        object
    }

    /// Fetches a batch from the depot into an empty magazine.
    fn refill(&self, depots: &Depots, class: SizeClass) {
        debug_assert!(self.is_empty(), "a refill overwrites the slots");
        let mut free = self.slots.iter();
        depots
            .of(class)
            .lock()
            .take_up_to(class, BATCH, |object| match free.next() {
                Some(slot) => slot.set(Some(object)),
                None => debug_assert!(false, "an empty magazine has room for a batch"),
            });
        self.len.set(CAPACITY - free.len());
    }

    /// Returns the object if the magazine is full.
    #[inline]
    fn push(&self, object: Object) -> Option<Object> {
        let Some(slot) = self.slots.get(self.len.get()) else {
            return Some(object);
        };
        slot.set(Some(object));
        self.len.set(self.len.get() + 1);
        None
    }

    fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.len.get() == CAPACITY
    }

    /// Returns the oldest batch to the depot: the others are more likely to be in this core's cache.
    #[cold]
    fn flush_batch(&self, depots: &Depots, class: SizeClass) {
        let len = self.len.get();
        let going = len.min(BATCH);
        depots.put_all(class, self.slots[..going].iter().filter_map(Cell::take));
        for (to, from) in self.slots.iter().zip(&self.slots[going..len]) {
            to.set(from.take());
        }
        self.len.set(len - going);
    }
}
