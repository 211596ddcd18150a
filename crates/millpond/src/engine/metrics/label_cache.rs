//! The labels that a worker knows without asking the table.
//!
//! The key is an address: that of a source location, which is static, or that of the text of a name, which lives as
//! long as it is kept here.

use super::label::LabelId;
use super::label_table::{LabelTable, SLOTS, slot_of};
use crate::task::{Name, Task};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// The labels that a worker has met, so that it does not lock the table for every task.
pub(super) struct LabelCache {
    /// The round in which it was filled.
    round: Cell<u64>,
    /// The last few labels, by address.
    slots: [Cell<(usize, LabelId)>; SLOTS],
    /// Names made at run time, which are kept alive here.
    names: RefCell<HashMap<usize, (Name, LabelId)>>,
}

/// The maximum of names made at run time. A program may make the same one over and over.
pub(super) const MAX_NAMES: usize = 256;

impl LabelCache {
    pub(super) fn new() -> Self {
        LabelCache {
            round: Cell::new(0),
            slots: std::array::from_fn(|_| Cell::new((0, LabelId::OTHERS))),
            names: RefCell::new(HashMap::new()),
        }
    }

    #[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
    pub(super) fn names_len(&self) -> usize {
        self.names.borrow().len()
    }

    /// True if a round has begun since it was filled.
    #[inline]
    pub(super) fn is_outdated(&self, table: &LabelTable) -> bool {
        self.round.get() != table.round()
    }

    #[cold]
    fn forget(&self, table: &LabelTable) {
        self.round.set(table.round());
        let kept = self.names.take();
        // Their addresses may be used again.
        for slot in &self.slots {
            slot.set((0, LabelId::OTHERS));
        }
        drop(kept);
    }

    pub(super) fn id_of(&self, table: &LabelTable, task: &Task) -> LabelId {
        if self.is_outdated(table) {
            self.forget(table);
        }
        let key = match task.name() {
            None => std::ptr::from_ref(task.location()).addr(),
            // One text may be the beginning of another.
            Some(name) => name.as_ptr().addr() ^ name.len().rotate_right(16),
        };
        let slot = &self.slots[slot_of(key)];
        let (known, id) = slot.get();
        if known == key {
            return id;
        }
        self.look_up(table, task, key)
    }

    #[cold]
    fn look_up(&self, table: &LabelTable, task: &Task, key: usize) -> LabelId {
        let slot = &self.slots[slot_of(key)];
        let Some(name) = task.shared_name() else {
            let id = table.id_of(task.name(), task.location());
            slot.set((key, id));
            return id;
        };
        let mut kept = self.names.borrow_mut();
        if let Some((_, id)) = kept.get(&key) {
            slot.set((key, *id));
            return *id;
        }
        let id = table.id_of(task.name(), task.location());
        if kept.len() >= MAX_NAMES {
            kept.clear();
            // Their addresses may be used again.
            for slot in &self.slots {
                slot.set((0, LabelId::OTHERS));
            }
        }
        kept.insert(key, (name, id));
        slot.set((key, id));
        id
    }
}
