//! A thread's own slabs. Invariants are in the [module](super).
//!
//! A rack is all safe code: slabs are moved into and out of cells that only their thread can see. It
//! knows its depots, so that models may have depots of their own ([`super::exchange`]).
//!
//! In builds with debug assertions a slab that nobody has is [poisoned](Slab::poison), and whoever gets it
//! looks whether it still is.

use super::depot::{BATCH, Depots};
use super::slab::{Class, Slab};
use core::cell::Cell;
use core::ops::Deref;

/// Two batches: one to go on with when the other is full or empty.
const ROOM: usize = 2 * BATCH;

/// The racks of one thread, one for each class.
pub(super) struct Racks<D: Deref<Target = Depots>> {
    racks: [Rack; Class::COUNT],
    depots: D,
}

impl<D: Deref<Target = Depots>> Racks<D> {
    /// Empty racks that are filled from these depots, and emptied into them when this drops.
    pub(super) const fn new(depots: D) -> Self {
        Racks {
            racks: [const { Rack::new() }; Class::COUNT],
            depots,
        }
    }

    #[inline]
    fn of(&self, class: Class) -> &Rack {
        &self.racks[class.index()]
    }

    /// A slab; `None` if the system has no memory.
    #[inline]
    pub(super) fn take(&self, class: Class) -> Option<Slab> {
        let slab = match self.of(class).pop() {
            Some(slab) => slab,
            None => self.fetch(class)?,
        };
        slab.expect_poison(class);
        Some(slab)
    }

    /// One slab from the depot, and more of them for the rack, which is empty.
    #[cold]
    fn fetch(&self, class: Class) -> Option<Slab> {
        let rack = self.of(class);
        rack.fill(&self.depots, class);
        rack.pop()
    }

    /// Takes a slab back.
    #[inline]
    pub(super) fn give(&self, class: Class, slab: Slab) {
        slab.poison(class);
        let rack = self.of(class);
        if rack.is_full() {
            rack.shed(&self.depots, class);
        }
        if let Some(slab) = rack.push(slab) {
            self.depots.hand_in(class, core::iter::once(slab));
        }
    }
}

impl<D: Deref<Target = Depots>> Drop for Racks<D> {
    fn drop(&mut self) {
        for class in Class::all() {
            let rack = self.of(class);
            while !rack.is_empty() {
                rack.shed(&self.depots, class);
            }
        }
    }
}

/// A stack of slabs of one class.
struct Rack {
    /// Slots below this hold a slab, those above do not.
    len: Cell<usize>,
    slots: [Cell<Option<Slab>>; ROOM],
}

impl Rack {
    const fn new() -> Self {
        Rack {
            len: Cell::new(0),
            slots: [const { Cell::new(None) }; ROOM],
        }
    }

    #[inline]
    fn pop(&self) -> Option<Slab> {
        let last = self.len.get().checked_sub(1)?;
        let slab = self.slots.get(last)?.take();
        self.len.set(last);
        slab
    }

    /// Fetches a batch from the depot, into an empty rack.
    fn fill(&self, depots: &Depots, class: Class) {
        debug_assert!(self.is_empty(), "else some are lost");
        let mut free = self.slots.iter();
        depots
            .of(class)
            .lock()
            .draw(class, BATCH, |slab| match free.next() {
                Some(slot) => slot.set(Some(slab)),
                None => debug_assert!(false, "an empty rack has room for a batch"),
            });
        self.len.set(ROOM - free.len());
    }

    /// Returns the slab if there is no room.
    #[inline]
    fn push(&self, slab: Slab) -> Option<Slab> {
        let Some(slot) = self.slots.get(self.len.get()) else {
            return Some(slab);
        };
        slot.set(Some(slab));
        self.len.set(self.len.get() + 1);
        None
    }

    fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.len.get() == ROOM
    }

    /// Brings a batch to the depot: the slabs that have lain longest, because the others are more
    /// likely to be in this core's cache.
    #[cold]
    fn shed(&self, depots: &Depots, class: Class) {
        let len = self.len.get();
        let going = len.min(BATCH);
        depots.hand_in(class, self.slots[..going].iter().filter_map(Cell::take));
        for (to, from) in self.slots.iter().zip(&self.slots[going..len]) {
            to.set(from.take());
        }
        self.len.set(len - going);
    }
}
