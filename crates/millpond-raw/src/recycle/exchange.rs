//! Depots and racks of one's own, for models and tests: the very code that the process' memory goes through,
//! without its statics. Invariants are in the [module](super).

use super::depot::Depots;
use super::rack::Racks;
use super::sheet;
use super::slab::{Class, Slab};
use core::fmt;
use std::alloc::Layout;
use std::sync::Arc;

/// Depots of one's own.
#[derive(Clone)]
pub struct Exchange(Arc<Depots>);

impl Exchange {
    /// Nothing in any depot.
    pub fn new() -> Self {
        Exchange(Arc::new(Depots::new()))
    }

    /// Racks for the present thread. They go to the depots when they drop, as at the end of a thread.
    pub fn racks(&self) -> OwnRacks {
        OwnRacks(Racks::new(Arc::clone(&self.0)))
    }

    /// A slab for who has no racks, of a class that is fit for so many bytes.
    pub fn take(&self, bytes: usize) -> Lent {
        let class = class(bytes);
        let slab = self.0.take_one(class).expect("there is memory");
        Lent::new(slab, class)
    }

    /// Takes a slab back from who has no racks.
    pub fn give(&self, lent: Lent) {
        sheet::touch(&lent.slab);
        self.0.give_one(lent.class, lent.slab);
    }

    /// What is in the depot for so many bytes.
    pub fn tally(&self, bytes: usize) -> Tally {
        let class = class(bytes);
        let depot = self.0.of(class).lock();
        let (sheets, whole) = depot.sheets();
        Tally {
            sheets,
            whole,
            free: depot.len(),
            on_a_sheet: sheet::slabs(class),
        }
    }
}

impl Default for Exchange {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

/// What is in a depot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// How many sheets have free slabs.
    pub sheets: usize,
    /// How many of these have no others.
    pub whole: usize,
    /// How many slabs are free.
    pub free: usize,
    /// How many slabs a sheet has.
    pub on_a_sheet: usize,
}

/// The racks of one thread.
pub struct OwnRacks(Racks<Arc<Depots>>);

impl OwnRacks {
    /// A slab of a class that is fit for so many bytes.
    pub fn take(&self, bytes: usize) -> Lent {
        let class = class(bytes);
        let slab = self.0.take(class).expect("there is memory");
        Lent::new(slab, class)
    }

    /// Takes a slab back, whoever had it.
    pub fn give(&self, lent: Lent) {
        sheet::touch(&lent.slab);
        self.0.give(lent.class, lent.slab);
    }
}

impl fmt::Debug for OwnRacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnRacks").finish_non_exhaustive()
    }
}

/// A slab that somebody has. Whoever forgets to give it back loses it, and with it the sheet.
#[must_use = "a slab that is not given back is lost"]
#[derive(Debug)]
pub struct Lent {
    slab: Slab,
    class: Class,
}

impl Lent {
    fn new(slab: Slab, class: Class) -> Self {
        sheet::touch(&slab);
        Lent { slab, class }
    }

    /// Where it is.
    pub fn address(&self) -> usize {
        self.slab.address()
    }

    /// Writes the mark into all of it.
    pub fn fill(&mut self, mark: u64) {
        sheet::touch(&self.slab);
        for word in self.slab.words(self.class) {
            // SAFETY: R1 - the slab is ours; R2 - so large, and so aligned.
            unsafe { word.write(mark) };
        }
    }

    /// Whether the mark is in all of it that was [filled](Lent::fill) in.
    pub fn holds(&self, mark: u64) -> bool {
        sheet::touch(&self.slab);
        let mut words = self.slab.words(self.class);
        // SAFETY: R1 - the slab is ours; R2 - so large, and so aligned; it was filled, or poisoned.
        words.all(|word| unsafe { word.read() } == mark)
    }
}

fn class(bytes: usize) -> Class {
    let layout = Layout::from_size_align(bytes, 8).expect("a size of some bytes");
    Class::of(layout).expect("no slab is larger than 256 bytes")
}
