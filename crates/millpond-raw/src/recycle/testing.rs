//! Private depots and magazines, for models and tests: the code behind the process's memory, without its
//! statics. Invariants are in the [module](super).

use super::depot::Depots;
use super::magazine::Magazines;
use super::object::{Object, SizeClass};
use super::slab;
use core::fmt;
use std::alloc::Layout;
use std::sync::Arc;

/// Private depots.
#[derive(Clone)]
pub struct PrivateDepots(Arc<Depots>);

impl PrivateDepots {
    /// Empty depots.
    pub fn new() -> Self {
        PrivateDepots(Arc::new(Depots::new()))
    }

    /// Magazines for the current thread. They are emptied into the depots on drop, as at the end of a thread.
    pub fn magazines(&self) -> PrivateMagazines {
        PrivateMagazines(Magazines::new(Arc::clone(&self.0)))
    }

    /// Takes an object that fits so many bytes, without magazines.
    pub fn take(&self, bytes: usize) -> TestObject {
        let class = class(bytes);
        let object = self.0.take_one(class).expect("there is memory");
        TestObject::new(object, class)
    }

    /// Puts an object back, without magazines.
    pub fn put(&self, lent: TestObject) {
        slab::touch(&lent.object);
        self.0.put_one(lent.class, lent.object);
    }

    /// The state of the depot for so many bytes.
    pub fn stats(&self, bytes: usize) -> DepotStats {
        let class = class(bytes);
        let depot = self.0.of(class).lock();
        let (slabs, all_free) = depot.slabs();
        DepotStats {
            slabs,
            all_free,
            free: depot.len(),
            objects_per_slab: slab::objects_per_slab(class),
        }
    }
}

impl Default for PrivateDepots {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PrivateDepots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateDepots").finish_non_exhaustive()
    }
}

/// The state of a depot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepotStats {
    /// How many slabs have free objects.
    pub slabs: usize,
    /// How many of these are all free.
    pub all_free: usize,
    /// How many objects are free.
    pub free: usize,
    /// How many objects a slab holds.
    pub objects_per_slab: usize,
}

/// The magazines of one thread.
pub struct PrivateMagazines(Magazines<Arc<Depots>>);

impl PrivateMagazines {
    /// Takes an object that fits so many bytes.
    pub fn take(&self, bytes: usize) -> TestObject {
        let class = class(bytes);
        let object = self.0.take(class).expect("there is memory");
        TestObject::new(object, class)
    }

    /// Puts an object back, on whatever thread it was allocated.
    pub fn put(&self, lent: TestObject) {
        slab::touch(&lent.object);
        self.0.put(lent.class, lent.object);
    }
}

impl fmt::Debug for PrivateMagazines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateMagazines").finish_non_exhaustive()
    }
}

/// An allocated object. It leaks, and its slab with it, unless it is put back.
#[must_use = "an object that is not put back is lost"]
#[derive(Debug)]
pub struct TestObject {
    object: Object,
    class: SizeClass,
}

impl TestObject {
    fn new(object: Object, class: SizeClass) -> Self {
        slab::touch(&object);
        TestObject { object, class }
    }

    /// Its address.
    pub fn address(&self) -> usize {
        self.object.address()
    }

    /// Fills it with the mark.
    pub fn fill(&mut self, mark: u64) {
        slab::touch(&self.object);
        for word in self.object.words(self.class) {
            // SAFETY: RECYCLE-1 - we own the object; RECYCLE-2 - it has this size and alignment.
            unsafe { word.write(mark) };
        }
    }

    /// Whether it still holds the mark that it was [filled](TestObject::fill) with.
    pub fn holds(&self, mark: u64) -> bool {
        slab::touch(&self.object);
        let mut words = self.object.words(self.class);
        // SAFETY: RECYCLE-1 - we own the object; RECYCLE-2 - it has this size and alignment; it was filled,
        // or poisoned.
        words.all(|word| unsafe { word.read() } == mark)
    }
}

fn class(bytes: usize) -> SizeClass {
    let layout = Layout::from_size_align(bytes, 8).expect("a size of some bytes");
    SizeClass::of(layout).expect("at most 256 bytes")
}
