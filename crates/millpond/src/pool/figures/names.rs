//! The names under which a pool counts its tasks.
//!
//! A task counts under the name it was given, or else under the place in the program where it was made.
//! Both become a small number, so that a worker finds its sheet for a name by index. There may be only so
//! many of them: a program that makes up a name for every task must not eat the memory. A label for which
//! there is no place counts under "others", number 0.
//!
//! # Who has a place
//!
//! Labels that fit stay for ever. When there is no place left and a newcomer has been turned away, a *round*
//! begins: workers forget what they know by heart, and ask again for each label that they meet. When the
//! round has lasted for [`IDLE`], a label that nobody has asked for, and of which no task runs, is *idle*. It
//! keeps its place until a newcomer needs one: each newcomer takes the place of one idle label, of that
//! which was asked for least recently, and what was counted under that one is from then on the others'. An idle
//! label that is asked for is not idle any more. As long as nobody is turned away no round begins, and
//! nothing of this is done.
//!
//! Rounds begin and end when somebody reads the figures, and when the watch looks round. With a round all that
//! is known by heart is forgotten; so whoever uses a label that has become idle asks for it first.
//!
//! # Rules
//!
//! - **L1** An [`Id`] is a place and the *generation* of the label that has it. A label that gets a place
//!   of another has the next generation.
//! - **L2** A sheet of a worker has the generation of what is on it. Only the worker itself clears it, to
//!   its sheet for the others, when it is to write something of a later generation there
//!   ([`Ledger::open_page`](super::Ledger::open_page)); never while it has a task to finish that
//!   counts there. A worker that knows an old id by heart goes on writing where it did.
//! - **L3** Who reads takes what is of another generation than the label's for the others'. So sums are exact,
//!   and nothing is counted under a label that is not its own.
//!
//! Refusals are counted by place alone, by many threads. What was refused under a label is looked at when it
//! becomes idle: who is refused under it afterwards asks for it first. One that is counted in that very moment
//! may show under the next label that has the place.

use crate::task::{Name, Task};
use millpond_raw::pad::Padded;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What tasks are counted under.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::Label;
/// use millpond::preset;
/// use millpond::task::TaskSpec;
///
/// let pool = preset::single("mill").build()?;
/// pool.run(|| ())?;
/// pool.submit_spec(TaskSpec::new().name("grind"), || ())?;
/// pool.close()?;
/// for named in pool.figures_by_name() {
///     match &named.label {
///         Label::Name(name) => assert_eq!(&**name, "grind"),
///         Label::Place(place) => assert_eq!(place.file(), file!()),
///         Label::Others => unreachable!("there is room for two"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub enum Label {
    /// The name that they were given.
    Name(Arc<str>),
    /// The place where they were made, for those without a name.
    Place(&'static Location<'static>),
    /// Those for which there was no room, and those that have not been in use and had to make room: a
    /// bounded number of labels is kept.
    Others,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Name(name) => f.write_str(name),
            Label::Place(place) => {
                let file = place.file();
                // The last two parts say enough, and fit into a line.
                let start = file.rmatch_indices(['/', '\\']).nth(1);
                let short = start.map_or(file, |(at, _)| &file[at + 1..]);
                write!(f, "{short}:{}", place.line())
            }
            Label::Others => f.write_str("(others)"),
        }
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Label({self})")
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Label::Name(one), Label::Name(other)) => one == other,
            (Label::Place(one), Label::Place(other)) => one == other,
            (Label::Others, Label::Others) => true,
            _ => false,
        }
    }
}

impl Eq for Label {}

/// The place of a label in one pool, and its generation (L1). Of two ids of one place the later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::pool) struct Id(u64);

const PLACE_BITS: u32 = 16;

impl Id {
    pub(in crate::pool) const OTHERS: Id = Id(0);

    /// The first label that has this place.
    pub(super) fn first_at(place: usize) -> Self {
        Id::new(place, 0)
    }

    pub(super) fn new(place: usize, generation: u64) -> Self {
        Id(generation << PLACE_BITS | place as u64)
    }

    #[inline]
    pub(in crate::pool) fn index(self) -> usize {
        usize::from(self.0 as u16)
    }

    pub(super) fn generation(self) -> u64 {
        self.0 >> PLACE_BITS
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        Id(bits)
    }
}

/// For how long a label must not have been in use to lose its place.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// The labels of a pool.
#[derive(Debug)]
pub(in crate::pool) struct Names {
    most: usize,
    /// Counts rounds: what was known by heart before is to be asked again. Relaxed: who hears of it late
    /// asks late (L2).
    round: Padded<AtomicU64>,
    table: Mutex<Table>,
    /// The last few places whose tasks were refused, each with its number, in one word: refusals come
    /// in storms, and must not queue up for the table. Written under the lock of the table.
    refused_places: [AtomicU64; POCKETS],
}

#[derive(Debug)]
struct Table {
    by_name: HashMap<Arc<str>, Id>,
    /// By what is written there: the compiler may keep one place twice.
    by_place: HashMap<(&'static str, u32, u32), Id>,
    all: Vec<Entry>,
    /// How often somebody has asked: the time by which labels are used.
    asked: u64,
    /// What that was when the round began.
    asked_before: u64,
    /// Places of labels that were idle when the last round ended, the least recently used last.
    idle: Vec<usize>,
    /// Somebody has been turned away since the round began.
    is_short: bool,
    /// When the round began.
    began: Option<Instant>,
    /// How many labels have lost their place, and what was refused under them.
    folded: u64,
    folded_refusals: u64,
}

#[derive(Debug)]
struct Entry {
    id: Id,
    label: Label,
    /// When somebody asked for it last.
    used: u64,
    /// If nobody has asked for it in a whole round, nor since: what was refused under this number by then.
    idle: Option<u64>,
    /// What had been refused under this number before.
    refused_before: u64,
}

/// A label that has a place, for who reads.
#[derive(Debug)]
pub(in crate::pool) struct Known {
    pub(in crate::pool) id: Id,
    pub(in crate::pool) label: Label,
    /// How many labels it stands for.
    pub(in crate::pool) labels: u64,
    /// What to add to the refusals that were counted by its number.
    pub(in crate::pool) refused_more: u64,
    pub(in crate::pool) refused_less: u64,
}

impl Names {
    /// At most `most` labels, others not counted.
    pub(in crate::pool) fn new(most: usize) -> Self {
        let most = most.min(usize::from(u16::MAX));
        Names {
            most,
            round: Padded::new(AtomicU64::new(0)),
            refused_places: std::array::from_fn(|_| AtomicU64::new(0)),
            table: Mutex::new(Table {
                by_name: HashMap::new(),
                by_place: HashMap::new(),
                all: vec![Entry {
                    id: Id::OTHERS,
                    label: Label::Others,
                    used: 0,
                    idle: None,
                    refused_before: 0,
                }],
                asked: 0,
                asked_before: 0,
                idle: Vec::new(),
                is_short: false,
                began: None,
                folded: 0,
                folded_refusals: 0,
            }),
        }
    }

    /// How many sheets a worker needs.
    pub(in crate::pool) fn sheets(&self) -> usize {
        self.most + 1
    }

    #[inline]
    fn round(&self) -> u64 {
        self.round.load(Ordering::Relaxed)
    }

    /// The number that a task counts under.
    pub(in crate::pool) fn id_of(
        &self,
        name: Option<&str>,
        made_at: &'static Location<'static>,
    ) -> Id {
        match name {
            Some(name) => self.id_of_name(name),
            None => self.id_of_place(made_at),
        }
    }

    fn id_of_name(&self, name: &str) -> Id {
        let mut table = self.table.lock();
        if let Some(id) = table.by_name.get(name).copied() {
            return table.is_used(id);
        }
        let name: Arc<str> = name.into();
        let label = Label::Name(Arc::clone(&name));
        let id = table.enter(self.most, label);
        if id != Id::OTHERS {
            table.by_name.insert(name, id);
        }
        id
    }

    fn id_of_place(&self, place: &'static Location<'static>) -> Id {
        self.id_of_place_locked(&mut self.table.lock(), place)
    }

    fn id_of_place_locked(&self, table: &mut Table, place: &'static Location<'static>) -> Id {
        let key = (place.file(), place.line(), place.column());
        if let Some(id) = table.by_place.get(&key).copied() {
            return table.is_used(id);
        }
        let id = table.enter(self.most, Label::Place(place));
        if id != Id::OTHERS {
            table.by_place.insert(key, id);
        }
        id
    }

    /// The number that a task counts under that was refused.
    #[inline]
    pub(in crate::pool) fn id_of_refused(&self, task: &Task) -> Id {
        match task.name() {
            Some(name) => self.id_of_name(name),
            None => self.id_of_refused_place(task.made_at()),
        }
    }

    #[inline]
    pub(in crate::pool) fn id_of_refused_place(&self, place: &'static Location<'static>) -> Id {
        let address = std::ptr::from_ref(place).addr();
        let pocket = &self.refused_places[pocket_of(address)];
        // Addresses have 48 bits on the machines that this is for; elsewhere it is asked every time.
        let word = (address as u64) << 16;
        // Relaxed: a number says the same whoever looks it up.
        let known = pocket.load(Ordering::Relaxed);
        if known & !0xffff == word && known != 0 {
            return Id::first_at(usize::from(known as u16));
        }
        let mut table = self.table.lock();
        let id = self.id_of_place_locked(&mut table, place);
        if word >> 16 == address as u64 {
            pocket.store(word | id.index() as u64, Ordering::Relaxed);
        }
        drop(table);
        id
    }

    pub(in crate::pool) fn label(&self, id: Id) -> Label {
        let table = self.table.lock();
        let entry = table.all.get(id.index()).filter(|entry| entry.id == id);
        entry.map_or(Label::Others, |entry| entry.label.clone())
    }

    /// All labels that have a place, the others first.
    pub(in crate::pool) fn all(&self) -> Vec<Known> {
        let table = self.table.lock();
        let known = table.all.iter().map(|entry| {
            let is_others = entry.id == Id::OTHERS;
            let of_others = |count: u64| if is_others { count } else { 0 };
            Known {
                id: entry.id,
                label: entry.label.clone(),
                labels: if is_others { table.folded } else { 1 },
                refused_more: of_others(table.folded_refusals),
                refused_less: entry.refused_before,
            }
        });
        known.collect()
    }

    /// Whether somebody has been turned away.
    pub(in crate::pool) fn may_renew(&self) -> bool {
        self.table.lock().is_short
    }

    /// Begins a round if somebody has been turned away, and ends one that has lasted long enough: labels that
    /// nobody has asked for meanwhile, and that are not those of tasks which run now, are idle from then on.
    /// `refused` is how many were refused by that number.
    pub(in crate::pool) fn renew(&self, now: Instant, running: &[Id], refused: impl Fn(Id) -> u64) {
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
                        table.is_used(*id);
                    }
                }
                table.find_idle(refused);
            }
            // Who has a place has not been asked yet.
            None => {}
        }
        table.began = Some(now);
        table.is_short = false;
        table.asked_before = table.asked;
        self.round.fetch_add(1, Ordering::Relaxed);
        for pocket in &self.refused_places {
            pocket.store(0, Ordering::Relaxed);
        }
    }
}

impl Table {
    fn is_used(&mut self, id: Id) -> Id {
        self.asked += 1;
        let entry = &mut self.all[id.index()];
        (entry.used, entry.idle) = (self.asked, None);
        id
    }

    /// Gives a new label a place: one that is free, or that of an idle one.
    fn enter(&mut self, most: usize, label: Label) -> Id {
        if self.all.len() > most {
            let Some(id) = self.evict() else {
                self.is_short = true;
                return Id::OTHERS;
            };
            self.all[id.index()].label = label;
            return self.is_used(id);
        }
        // `most` fits, so this does.
        let id = Id::first_at(self.all.len());
        self.all.push(Entry {
            id,
            label,
            used: 0,
            idle: None,
            refused_before: 0,
        });
        self.is_used(id)
    }

    /// Takes its place from the least recently used label that is idle, and returns the id of whoever has it
    /// next.
    fn evict(&mut self) -> Option<Id> {
        loop {
            let place = self.idle.pop()?;
            let entry = &mut self.all[place];
            // It may have been asked for since.
            let Some(refused) = entry.idle.take() else {
                continue;
            };
            self.folded += 1;
            self.folded_refusals += refused.saturating_sub(entry.refused_before);
            entry.refused_before = refused;
            entry.id = Id::new(place, entry.id.generation() + 1);
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

    /// Finds the labels that nobody has asked for in this round.
    fn find_idle(&mut self, refused: impl Fn(Id) -> u64) {
        self.idle.clear();
        for (place, entry) in self.all.iter_mut().enumerate().skip(1) {
            let is_idle = entry.used <= self.asked_before;
            entry.idle = is_idle.then(|| refused(entry.id));
            if is_idle {
                self.idle.push(place);
            }
        }
        let all = &self.all;
        self.idle
            .sort_unstable_by_key(|place| std::cmp::Reverse(all[*place].used));
    }
}

const POCKETS: usize = 16;

fn pocket_of(address: usize) -> usize {
    (address >> 3 ^ address >> 7) % POCKETS
}

/// What a worker knows by heart of its pool's labels, so that it need not ask for every task.
///
/// The key is an address: of a place, which is for ever, or of the text of a name, which lives as long as
/// it is kept here.
pub(super) struct Memory {
    /// The round in which it was asked for.
    round: Cell<u64>,
    /// The last few, by address.
    pockets: [Cell<(usize, Id)>; POCKETS],
    names: RefCell<HashMap<usize, (Name, Id)>>,
}

/// How many names made at run time a worker keeps by heart. A program may make the same one over and over.
const MOST_NAMES: usize = 256;

impl Memory {
    pub(super) fn new() -> Self {
        Memory {
            round: Cell::new(0),
            pockets: std::array::from_fn(|_| Cell::new((0, Id::OTHERS))),
            names: RefCell::new(HashMap::new()),
        }
    }

    /// Whether a round has begun since.
    #[inline]
    pub(super) fn is_outdated(&self, names: &Names) -> bool {
        self.round.get() != names.round()
    }

    #[cold]
    fn forget(&self, names: &Names) {
        self.round.set(names.round());
        let kept = self.names.take();
        // None of the addresses is good any more.
        for pocket in &self.pockets {
            pocket.set((0, Id::OTHERS));
        }
        drop(kept);
    }

    pub(super) fn id_of(&self, names: &Names, task: &Task) -> Id {
        if self.is_outdated(names) {
            self.forget(names);
        }
        let key = match task.name() {
            None => std::ptr::from_ref(task.made_at()).addr(),
            // One text may be the beginning of another.
            Some(name) => name.as_ptr().addr() ^ name.len().rotate_right(16),
        };
        let pocket = &self.pockets[pocket_of(key)];
        let (known, id) = pocket.get();
        if known == key {
            return id;
        }
        self.look_up(names, task, key)
    }

    #[cold]
    fn look_up(&self, names: &Names, task: &Task, key: usize) -> Id {
        let pocket = &self.pockets[pocket_of(key)];
        let Some(name) = task.shared_name() else {
            let id = names.id_of(task.name(), task.made_at());
            pocket.set((key, id));
            return id;
        };
        let mut kept = self.names.borrow_mut();
        if let Some((_, id)) = kept.get(&key) {
            pocket.set((key, *id));
            return *id;
        }
        let id = names.id_of(task.name(), task.made_at());
        if kept.len() >= MOST_NAMES {
            kept.clear();
            // None of the addresses is good any more.
            for pocket in &self.pockets {
                pocket.set((0, Id::OTHERS));
            }
        }
        kept.insert(key, (name, id));
        pocket.set((key, id));
        id
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
