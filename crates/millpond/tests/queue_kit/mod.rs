//! A queue of every flavor in its most naive form: a list that is
//! searched from end to end.

#![allow(
    dead_code,
    reason = "each test program is a crate of its own and uses a part of this"
)]

/// Which queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    FifoBounded,
    FifoGrowing,
    Deque,
    Priority,
    Aging,
    Delay,
    Weighed,
}

/// How many of the lowest bits of a value do not count in the order of the priority queue, so that
/// there are equals.
pub(crate) const EQUALS: u8 = 2;

/// Milliseconds per level in the aging queue, whose level is the value.
pub(crate) const PER_LEVEL: u64 = 3;

/// An element of the queue: a value that means something to the flavor, and an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) value: u8,
    pub(crate) id: u32,
    /// When it is due, or would have come at level 0; in milliseconds.
    pub(crate) due: u64,
}

/// The model: elements in the order in which they came.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) flavor: Flavor,
    pub(crate) bound: Option<u64>,
    pub(crate) now: u64,
    pub(crate) held: Vec<Held>,
}

/// Why the model does not take an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    TooHeavy,
}

impl Model {
    pub(crate) fn new(flavor: Flavor, bound: Option<u64>) -> Self {
        Model {
            flavor,
            bound,
            now: 0,
            held: Vec::new(),
        }
    }

    pub(crate) fn weight(&self, value: u8) -> u64 {
        match self.flavor {
            Flavor::Weighed => u64::from(value),
            _ => 1,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.held.iter().map(|held| self.weight(held.value)).sum()
    }

    /// The rest of the bound; `None` if it is exceeded already.
    pub(crate) fn free(&self) -> Option<u64> {
        self.bound.unwrap_or(u64::MAX).checked_sub(self.used())
    }

    pub(crate) fn admits(&self, value: u8) -> Result<(), Refusal> {
        let weight = self.weight(value);
        if self.bound.is_some_and(|bound| weight > bound) {
            return Err(Refusal::TooHeavy);
        }
        match self.free() {
            Some(free) if weight <= free => Ok(()),
            // An element of weight zero fits beyond a lowered bound, too.
            _ if weight == 0 => Ok(()),
            _ => Err(Refusal::Full),
        }
    }

    /// Takes in what is due `after` from now.
    pub(crate) fn offer(&mut self, value: u8, id: u32, after: u64) -> Result<(), Refusal> {
        self.admits(value)?;
        let due = match self.flavor {
            Flavor::Aging => self.now + u64::from(value) * PER_LEVEL,
            _ => self.now + after,
        };
        self.held.push(Held { value, id, due });
        Ok(())
    }

    pub(crate) fn offer_first(&mut self, value: u8, id: u32) -> Result<(), Refusal> {
        self.admits(value)?;
        let due = self.now;
        self.held.insert(0, Held { value, id, due });
        Ok(())
    }

    /// All elements in the order in which they come out.
    pub(crate) fn in_order(&self) -> Vec<Held> {
        let mut all = self.held.clone();
        match self.flavor {
            Flavor::Priority => all.sort_by_key(|held| held.value >> EQUALS),
            Flavor::Aging | Flavor::Delay => all.sort_by_key(|held| held.due),
            _ => {}
        }
        all
    }

    /// How many could be taken now.
    pub(crate) fn ready(&self) -> usize {
        match self.flavor {
            Flavor::Delay => self.held.iter().filter(|held| held.due <= self.now).count(),
            _ => self.held.len(),
        }
    }

    fn forget(&mut self, gone: Held) -> u32 {
        self.held.retain(|held| held.id != gone.id);
        gone.id
    }

    pub(crate) fn poll(&mut self) -> Option<u32> {
        let first = *self.in_order().first()?;
        if self.flavor == Flavor::Delay && first.due > self.now {
            return None;
        }
        Some(self.forget(first))
    }

    pub(crate) fn poll_last(&mut self) -> Option<u32> {
        let last = *self.held.last()?;
        Some(self.forget(last))
    }

    pub(crate) fn remove_where(
        &mut self,
        limit: usize,
        mut unwanted: impl FnMut(u8) -> bool,
    ) -> Vec<u32> {
        let mut gone: Vec<_> = self.in_order();
        gone.retain(|held| unwanted(held.value));
        gone.truncate(limit);
        gone.into_iter().map(|held| self.forget(held)).collect()
    }

    /// When the first element is due.
    pub(crate) fn first_due(&self) -> Option<u64> {
        self.held.iter().map(|held| held.due).min()
    }
}
