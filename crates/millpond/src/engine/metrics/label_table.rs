//! The table of labels that an engine counts its tasks under.
//!
//! A task is counted under its name, or without one under the source location where it was made. Either becomes a
//! small number, so that a worker finds its metrics for a label by index. The table is bounded: a program that makes up
//! a name for every task must not eat the memory. A label that does not fit is counted under "others", number 0.
//!
//! # Which labels have a place
//!
//! Labels that fit stay for ever. When the table is full and a newcomer has been turned away, a *round* begins: workers
//! drop their [caches](super::label_cache) and ask again for each label that they meet. When the round has lasted for
//! [`IDLE`], a label that was not looked up, and of which no task runs, is *idle*. It keeps its place until a newcomer
//! needs one: each newcomer takes the place of one idle label, the one that was asked for least recently, and what was
//! counted under that label belongs to the others from then on. An idle label that is asked for is no longer idle. As
//! long as no newcomer is turned away no round begins, and none of this is done.
//!
//! Rounds begin and end when the metrics are read, and when the watchdog looks round. A round empties the caches;
//! so a worker that uses a label which has become idle asks for it first.
//!
//! # Invariants
//!
//! - **LABELS-1** A [`LabelId`] is an index and the *generation* of the label that has it. A label that takes the place
//!   of another has the next generation.
//! - **LABELS-2** The metrics of a worker for an index have the generation of what is counted there. Only the worker
//!   itself clears them, into its metrics for the others, when it is about to count something of a later generation
//!   ([`WorkerMetrics::prepare`](super::worker::WorkerMetrics)); never while it runs a task that counts there. A worker
//!   with an old id in its cache goes on counting where it did.
//! - **LABELS-3** A reader adds what is of another generation than the label's to the others. So sums are exact, and
//!   nothing is counted under a label that is not its own.
//!
//! Rejections are counted by index alone, by many threads. The count of a label is noted when it becomes idle: a task
//! that is rejected under it afterwards asks for the label first. A rejection that is counted in that very moment may
//! show under the next label that has the place.

use super::label::{Label, LabelId};
use super::label_metrics::LabelSums;
use super::values::{Metrics, TaskMetrics};
use crate::task::Task;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No table has more labels, beside that of the others.
pub(crate) const MAX_LABELS: usize = u16::MAX as usize;

/// A label that was not in use for this long may lose its place.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// The labels of an engine.
#[derive(Debug)]
pub(crate) struct LabelTable {
    max: usize,
    /// Counts rounds: caches filled in an earlier one are out of date. Relaxed: a worker that sees it late asks late
    /// (LABELS-2).
    round: CachePadded<AtomicU64>,
    table: Mutex<Table>,
    /// The last few locations whose tasks were rejected, each with its index, in one word: rejections come in storms,
    /// and must not contend for the table. Written under the lock of the table.
    rejected_places: [AtomicU64; SLOTS],
}

#[derive(Debug)]
struct Table {
    by_name: HashMap<Arc<str>, LabelId>,
    /// By content: the compiler may keep one location twice.
    by_place: HashMap<(&'static str, u32, u32), LabelId>,
    all: Vec<Entry>,
    /// Counts lookups: the logical time of use.
    asked: u64,
    /// `asked` when the round began.
    asked_before: u64,
    /// Indices of labels that were idle when the last round ended, the least recently used last.
    idle: Vec<usize>,
    /// A newcomer has been turned away since the round began.
    is_short: bool,
    /// When the round began.
    began: Option<Instant>,
    /// The number of labels that have lost their place, and of rejections under them.
    folded: u64,
    folded_rejections: u64,
}

#[derive(Debug)]
struct Entry {
    id: LabelId,
    label: Label,
    /// `asked` at its last lookup.
    used: u64,
    /// If it was not looked up in a whole round, nor since: the rejections counted under this index by then.
    idle: Option<u64>,
    /// The rejections under this index that belong to earlier labels.
    rejected_before: u64,
}

/// A label that has a place, for readers.
#[derive(Debug)]
pub(crate) struct KnownLabel {
    pub(crate) id: LabelId,
    pub(crate) label: Label,
    /// The number of labels it stands for.
    pub(crate) labels: u64,
    /// What to add to, and to subtract from, the rejections counted under its index.
    pub(crate) rejected_more: u64,
    pub(crate) rejected_less: u64,
}

impl LabelTable {
    /// At most `max` labels, others not counted.
    pub(crate) fn new(max: usize) -> Self {
        let max = max.min(MAX_LABELS);
        LabelTable {
            max,
            round: CachePadded::new(AtomicU64::new(0)),
            rejected_places: std::array::from_fn(|_| AtomicU64::new(0)),
            table: Mutex::new(Table {
                by_name: HashMap::new(),
                by_place: HashMap::new(),
                all: vec![Entry {
                    id: LabelId::OTHERS,
                    label: Label::Others,
                    used: 0,
                    idle: None,
                    rejected_before: 0,
                }],
                asked: 0,
                asked_before: 0,
                idle: Vec::new(),
                is_short: false,
                began: None,
                folded: 0,
                folded_rejections: 0,
            }),
        }
    }

    /// The number of indices, that of the others included.
    pub(crate) fn len(&self) -> usize {
        self.max + 1
    }

    /// The most labels, the others not included.
    pub(crate) fn max_labels(&self) -> usize {
        self.max
    }

    #[inline]
    pub(super) fn round(&self) -> u64 {
        self.round.load(Ordering::Relaxed)
    }

    /// The id that a task is counted under.
    pub(crate) fn id_of(
        &self,
        name: Option<&str>,
        location: &'static Location<'static>,
    ) -> LabelId {
        match name {
            Some(name) => self.id_of_name(name),
            None => self.id_of_place(location),
        }
    }

    fn id_of_name(&self, name: &str) -> LabelId {
        let mut table = self.table.lock();
        if let Some(id) = table.by_name.get(name).copied() {
            return table.mark_used(id);
        }
        let name: Arc<str> = name.into();
        let label = Label::Name(Arc::clone(&name));
        let id = table.enter(self.max, label);
        if id != LabelId::OTHERS {
            table.by_name.insert(name, id);
        }
        id
    }

    fn id_of_place(&self, place: &'static Location<'static>) -> LabelId {
        self.id_of_place_locked(&mut self.table.lock(), place)
    }

    fn id_of_place_locked(&self, table: &mut Table, place: &'static Location<'static>) -> LabelId {
        let key = (place.file(), place.line(), place.column());
        if let Some(id) = table.by_place.get(&key).copied() {
            return table.mark_used(id);
        }
        let id = table.enter(self.max, Label::Place(place));
        if id != LabelId::OTHERS {
            table.by_place.insert(key, id);
        }
        id
    }

    /// The id that a rejected task is counted under.
    #[inline]
    pub(crate) fn id_of_rejected(&self, task: &Task) -> LabelId {
        match task.name() {
            Some(name) => self.id_of_name(name),
            None => self.id_of_rejected_place(task.location()),
        }
    }

    #[inline]
    pub(crate) fn id_of_rejected_place(&self, place: &'static Location<'static>) -> LabelId {
        let address = std::ptr::from_ref(place).addr();
        let slot = &self.rejected_places[slot_of(address)];
        // Addresses have 48 bits on the machines that this is for; elsewhere the table is asked every time.
        let word = (address as u64) << 16;
        // Relaxed: the word is complete in itself.
        let known = slot.load(Ordering::Relaxed);
        if known & !0xffff == word && known != 0 {
            return LabelId::first_at(usize::from(known as u16));
        }
        let mut table = self.table.lock();
        let id = self.id_of_place_locked(&mut table, place);
        if word >> 16 == address as u64 {
            slot.store(word | id.index() as u64, Ordering::Relaxed);
        }
        drop(table);
        id
    }

    pub(crate) fn label(&self, id: LabelId) -> Label {
        let table = self.table.lock();
        let entry = table.all.get(id.index()).filter(|entry| entry.id == id);
        entry.map_or(Label::Others, |entry| entry.label.clone())
    }

    /// All labels that have a place, the others first.
    pub(crate) fn all(&self) -> Vec<KnownLabel> {
        let table = self.table.lock();
        let known = table.all.iter().map(|entry| {
            let is_others = entry.id == LabelId::OTHERS;
            let of_others = |count: u64| if is_others { count } else { 0 };
            KnownLabel {
                id: entry.id,
                label: entry.label.clone(),
                labels: if is_others { table.folded } else { 1 },
                rejected_more: of_others(table.folded_rejections),
                rejected_less: entry.rejected_before,
            }
        });
        known.collect()
    }

    /// What was measured of each label, those whose tasks ran longest in total first. `rejected` is the number of
    /// rejections counted under an index. The sums are taken before this is called: a label is in the table before
    /// anything is counted under it.
    pub(crate) fn by_name(
        &self,
        mut sums: LabelSums,
        rejected: impl Fn(LabelId) -> u64,
    ) -> Vec<TaskMetrics> {
        let named = self.all().into_iter().map(|known| {
            let rejected = rejected(known.id) + known.rejected_more;
            let metrics = Metrics {
                rejected: rejected.saturating_sub(known.rejected_less),
                ..sums.take(known.id)
            };
            TaskMetrics {
                label: known.label,
                labels: known.labels,
                metrics,
            }
        });
        let mut all: Vec<_> = named.collect();
        // The others come first, and get what belongs to no label any more.
        all[0].metrics.merge(&sums.rest());
        all.retain(|named| named.metrics != Metrics::default());
        all.sort_by_key(|named| std::cmp::Reverse(named.metrics.run.total()));
        all
    }

    /// True if a newcomer has been turned away.
    pub(crate) fn may_renew(&self) -> bool {
        self.table.lock().is_short
    }

    /// Begins a round if a newcomer has been turned away, and ends one that has lasted long enough: labels that no task
    /// has asked for meanwhile, and that are not in `running`, are idle from then on. `rejected` is the number of
    /// rejections counted under an index.
    pub(crate) fn renew(
        &self,
        now: Instant,
        running: &[LabelId],
        rejected: impl Fn(LabelId) -> u64,
    ) {
        let mut table = self.table.lock();
        if !table.is_short {
            return;
        }
        let lasts = |began: Instant| now.saturating_duration_since(began) < IDLE;
        match table.began {
            Some(began) if lasts(began) => return,
            Some(_) => {
                for id in running {
                    if table.all[id.index()].id == *id {
                        table.mark_used(*id);
                    }
                }
                table.find_idle(rejected);
            }
            // The first round: no label has been looked up yet.
            None => {}
        }
        table.began = Some(now);
        table.is_short = false;
        table.asked_before = table.asked;
        self.round.fetch_add(1, Ordering::Relaxed);
        for slot in &self.rejected_places {
            slot.store(0, Ordering::Relaxed);
        }
    }
}

impl Table {
    fn mark_used(&mut self, id: LabelId) -> LabelId {
        self.asked += 1;
        let entry = &mut self.all[id.index()];
        (entry.used, entry.idle) = (self.asked, None);
        id
    }

    /// Gives a new label a place: a free one, or that of an idle label.
    fn enter(&mut self, max: usize, label: Label) -> LabelId {
        if self.all.len() > max {
            let Some(id) = self.evict() else {
                self.is_short = true;
                return LabelId::OTHERS;
            };
            self.all[id.index()].label = label;
            return self.mark_used(id);
        }
        // `max` fits, so this does.
        let id = LabelId::first_at(self.all.len());
        self.all.push(Entry {
            id,
            label,
            used: 0,
            idle: None,
            rejected_before: 0,
        });
        self.mark_used(id)
    }

    /// Evicts the least recently used idle label, and returns the id of the next label in its place.
    fn evict(&mut self) -> Option<LabelId> {
        loop {
            let index = self.idle.pop()?;
            let entry = &mut self.all[index];
            // It may have been asked for since.
            let Some(rejected) = entry.idle.take() else {
                continue;
            };
            self.folded += 1;
            self.folded_rejections += rejected.saturating_sub(entry.rejected_before);
            entry.rejected_before = rejected;
            entry.id = LabelId::new(index, entry.id.generation() + 1);
            match &entry.label {
                Label::Name(name) => drop(self.by_name.remove(name)),
                Label::Place(at) => {
                    let key = (at.file(), at.line(), at.column());
                    self.by_place.remove(&key);
                }
                Label::Others => {}
            }
            return Some(entry.id);
        }
    }

    /// Finds the labels that no task has asked for in this round.
    fn find_idle(&mut self, rejected: impl Fn(LabelId) -> u64) {
        self.idle.clear();
        for (index, entry) in self.all.iter_mut().enumerate().skip(1) {
            let is_idle = entry.used <= self.asked_before;
            entry.idle = is_idle.then(|| rejected(entry.id));
            if is_idle {
                self.idle.push(index);
            }
        }
        let all = &self.all;
        self.idle
            .sort_unstable_by_key(|index| std::cmp::Reverse(all[*index].used));
    }
}

pub(super) const SLOTS: usize = 16;

pub(super) fn slot_of(address: usize) -> usize {
    (address >> 3 ^ address >> 7) % SLOTS
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
