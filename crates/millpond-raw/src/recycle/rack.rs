//! A thread's own slabs, and the way to them. Invariants are in the [module](super).
//!
//! A rack is all safe code: slabs are moved into and out of cells that only their thread can see. A
//! thread that is being torn down has no racks any more; it goes to the depot for every slab.

use super::depot::{BATCH, Depot};
use super::slab::{Class, Slab};
use super::{plain, sheet};
use crate::pad::Padded;
use crate::sync::{Mutex, local};
use core::cell::Cell;
use core::ptr::NonNull;
use std::alloc::{Layout, handle_alloc_error};

/// Two batches: one to go on with when the other is full or empty.
const ROOM: usize = 2 * BATCH;

static DEPOTS: [Padded<Mutex<Depot>>; Class::COUNT] =
    [const { Padded::new(Mutex::new(Depot::new())) }; Class::COUNT];

local! {
    static RACKS: Racks = Racks::new();
}

/// The depots are in order at forks.
#[allow(dead_code, reason = "only where processes fork")]
pub(crate) fn keep_at_forks() {
    for depot in &DEPOTS {
        crate::fork::keep(depot);
    }
}

fn depot(class: Class) -> &'static Mutex<Depot> {
    &DEPOTS[class.index()]
}

/// How many bytes lie idle in the depots, to be used again. What threads have in their racks is not
/// counted.
///
/// ```
/// let before = millpond_raw::recycle::kept();
/// assert!(before <= 16 << 20);
/// ```
pub fn kept() -> usize {
    Class::all().map(|class| idle(class) * class.size()).sum()
}

/// How many slabs of a class lie in its depot.
pub(super) fn idle(class: Class) -> usize {
    depot(class).lock().len()
}

/// Memory for `layout`.
#[inline]
pub(super) fn alloc(layout: Layout) -> NonNull<u8> {
    match Class::of(layout) {
        Some(class) => take(class).into_place(),
        None => plain::alloc(layout),
    }
}

/// Gives memory back.
///
/// # Safety
///
/// R2, R6: `place` came from [`alloc`] with this layout. R1, R4: it is the caller's, who no longer
/// uses it.
#[inline]
pub(super) unsafe fn free(place: NonNull<u8>, layout: Layout) {
    match Class::of(layout) {
        // SAFETY: R1, R2, R4 - by contract; R3 - it is on a sheet, as all slabs are.
        Some(class) => give(class, unsafe { Slab::own(place) }),
        // SAFETY: R6 - by contract.
        None => unsafe { plain::free(place, layout) },
    }
}

#[inline]
fn take(class: Class) -> Slab {
    RACKS
        .try_with(|racks| {
            let rack = racks.of(class);
            rack.pop().unwrap_or_else(|| fetch(class, Some(rack)))
        })
        .unwrap_or_else(|_| fetch(class, None))
}

#[inline]
fn give(class: Class, slab: Slab) {
    let mut slab = Some(slab);
    let kept = RACKS.try_with(|racks| {
        let rack = racks.of(class);
        if rack.is_full() {
            rack.shed(class);
        }
        slab = slab.take().and_then(|slab| rack.push(slab));
    });
    if kept.is_err() || slab.is_some() {
        hand_in(class, slab.into_iter());
    }
}

/// One slab from the depot, and more of them for the rack, which is empty.
#[cold]
fn fetch(class: Class, rack: Option<&Rack>) -> Slab {
    let fetched = match rack {
        Some(rack) => {
            rack.fill(class);
            rack.pop()
        }
        None => {
            let mut one = None;
            depot(class).lock().draw(class, 1, |slab| one = Some(slab));
            one
        }
    };
    fetched.unwrap_or_else(|| handle_alloc_error(sheet::layout()))
}

/// Brings slabs to the depot.
#[cold]
fn hand_in(class: Class, slabs: impl Iterator<Item = Slab>) {
    let surplus = depot(class).lock().hand_in(class, slabs);
    surplus.give_back();
}

/// The racks of one thread.
struct Racks([Rack; Class::COUNT]);

impl Racks {
    const fn new() -> Self {
        Racks([const { Rack::new() }; Class::COUNT])
    }

    #[inline]
    fn of(&self, class: Class) -> &Rack {
        &self.0[class.index()]
    }
}

impl Drop for Racks {
    fn drop(&mut self) {
        for class in Class::all() {
            let rack = self.of(class);
            while !rack.is_empty() {
                rack.shed(class);
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
    fn fill(&self, class: Class) {
        debug_assert!(self.is_empty(), "else some are lost");
        let mut free = self.slots.iter();
        depot(class)
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
    fn shed(&self, class: Class) {
        let len = self.len.get();
        let going = len.min(BATCH);
        hand_in(class, self.slots[..going].iter().filter_map(Cell::take));
        for (to, from) in self.slots.iter().zip(&self.slots[going..len]) {
            to.set(from.take());
        }
        self.len.set(len - going);
    }
}
