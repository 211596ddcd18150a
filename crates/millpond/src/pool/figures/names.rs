//! The names under which a pool counts its tasks.
//!
//! A task counts under the name it was given, or else under the place in the program where it was made.
//! Both become a small number, so that a worker finds its sheet for a name by index. There may be only so
//! many of them: a program that makes up a name for every task must not eat the memory. Whoever comes
//! later counts under "others", number 0.

use crate::task::{Name, Task};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

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
    /// Those for which there was no room in the book: it keeps a bounded number of labels.
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

/// The number of a label, in one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::pool) struct Id(u16);

impl Id {
    pub(in crate::pool) const OTHERS: Id = Id(0);

    pub(in crate::pool) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn bits(self) -> u32 {
        u32::from(self.0)
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        Id(bits as u16)
    }
}

/// The labels of a pool.
#[derive(Debug)]
pub(in crate::pool) struct Names {
    most: usize,
    table: Mutex<Table>,
    /// The last few places whose tasks were refused, each with its number, in one word: refusals come
    /// in storms, and must not queue up for the table.
    refused_places: [AtomicU64; POCKETS],
}

#[derive(Debug)]
struct Table {
    by_name: HashMap<Arc<str>, Id>,
    /// By what is written there: the compiler may keep one place twice.
    by_place: HashMap<(&'static str, u32, u32), Id>,
    all: Vec<Label>,
}

impl Names {
    /// At most `most` labels, others not counted.
    pub(in crate::pool) fn new(most: usize) -> Self {
        let most = most.min(usize::from(u16::MAX));
        Names {
            most,
            refused_places: std::array::from_fn(|_| AtomicU64::new(0)),
            table: Mutex::new(Table {
                by_name: HashMap::new(),
                by_place: HashMap::new(),
                all: vec![Label::Others],
            }),
        }
    }

    /// How many sheets a worker needs.
    pub(in crate::pool) fn sheets(&self) -> usize {
        self.most + 1
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
        if let Some(id) = table.by_name.get(name) {
            return *id;
        }
        let name: Arc<str> = name.into();
        let id = table.enter(self.most, Label::Name(Arc::clone(&name)));
        if id != Id::OTHERS {
            table.by_name.insert(name, id);
        }
        id
    }

    fn id_of_place(&self, place: &'static Location<'static>) -> Id {
        let key = (place.file(), place.line(), place.column());
        let mut table = self.table.lock();
        if let Some(id) = table.by_place.get(&key) {
            return *id;
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
            return Id(known as u16);
        }
        let id = self.id_of_place(place);
        if word >> 16 == address as u64 {
            pocket.store(word | u64::from(id.0), Ordering::Relaxed);
        }
        id
    }

    pub(in crate::pool) fn label(&self, id: Id) -> Label {
        let table = self.table.lock();
        table.all.get(id.index()).cloned().unwrap_or(Label::Others)
    }

    /// All labels so far, by number.
    pub(in crate::pool) fn all(&self) -> Vec<(Id, Label)> {
        let all = self.table.lock().all.clone();
        let numbered = all.into_iter().enumerate();
        numbered
            .map(|(index, label)| (Id(index as u16), label))
            .collect()
    }
}

impl Table {
    fn enter(&mut self, most: usize, label: Label) -> Id {
        if self.all.len() > most {
            return Id::OTHERS;
        }
        // `most` fits, so this does.
        let id = Id(self.all.len() as u16);
        self.all.push(label);
        id
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
    /// The last few, by address.
    pockets: [Cell<(usize, Id)>; POCKETS],
    names: RefCell<HashMap<usize, (Name, Id)>>,
}

/// How many names made at run time a worker keeps by heart. A program may make the same one over and over.
const MOST_NAMES: usize = 256;

impl Memory {
    pub(super) fn new() -> Self {
        Memory {
            pockets: std::array::from_fn(|_| Cell::new((0, Id::OTHERS))),
            names: RefCell::new(HashMap::new()),
        }
    }

    pub(super) fn id_of(&self, names: &Names, task: &Task) -> Id {
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
mod tests {
    use super::*;
    use crate::task::TaskSpec;

    fn named(name: &str) -> Task {
        TaskSpec::new().name(name.to_owned()).build_detached(|| ())
    }

    fn id_of(names: &Names, task: &Task) -> Id {
        names.id_of(task.name(), task.made_at())
    }

    #[test]
    fn one_name_is_one_number_wherever_its_text_is_kept() {
        let (names, memory) = (Names::new(10), Memory::new());
        let first = memory.id_of(&names, &named("flour"));
        let second = memory.id_of(&names, &named("bread"));
        assert_ne!(first, second);
        assert_eq!(memory.id_of(&names, &named("flour")), first);
        assert_eq!(id_of(&names, &named("bread")), second);
        assert_eq!(names.label(second).to_string(), "bread");
    }

    #[test]
    fn a_task_without_a_name_counts_under_its_place() {
        let (names, memory) = (Names::new(10), Memory::new());
        let make = || TaskSpec::new().build_detached(|| ());
        let (one, other) = (make(), make());
        let elsewhere = TaskSpec::new().build_detached(|| ());
        let id = memory.id_of(&names, &one);
        assert_eq!(memory.id_of(&names, &other), id);
        assert_ne!(memory.id_of(&names, &elsewhere), id);
        let label = names.label(id).to_string();
        assert!(label.starts_with("figures/names.rs:"), "{label}");
    }

    #[test]
    fn refusals_are_counted_under_the_same_names() {
        let names = Names::new(10);
        let place = || TaskSpec::new().build_detached(|| ());
        for _ in 0..3 {
            let id = names.id_of_refused(&place());
            assert_eq!(id, id_of(&names, &place()));
            assert_ne!(id, Id::OTHERS);
        }
        let flour = names.id_of_refused(&named("flour"));
        assert_eq!(flour, id_of(&names, &named("flour")));
        assert_ne!(flour, Id::OTHERS);
    }

    #[test]
    fn a_text_that_is_the_beginning_of_another_is_a_name_of_its_own() {
        const WHOLE: &str = "flourish";
        let (names, memory) = (Names::new(10), Memory::new());
        let fixed = |name| TaskSpec::new().name(name).build_detached(|| ());
        let long = memory.id_of(&names, &fixed(WHOLE));
        let short = memory.id_of(&names, &fixed(&WHOLE[..5]));
        assert_ne!(long, short);
        assert_eq!(names.label(short).to_string(), "flour");
    }

    #[test]
    fn there_are_only_so_many_names_and_the_rest_are_others() {
        let (names, memory) = (Names::new(2), Memory::new());
        let ids: Vec<_> = ["one", "two", "three", "four", "one"]
            .map(|name| memory.id_of(&names, &named(name)))
            .to_vec();
        assert_eq!(ids[2], Id::OTHERS);
        assert_eq!(ids[3], Id::OTHERS);
        assert_eq!(ids[4], ids[0]);
        assert_eq!(names.all().len(), names.sheets());
    }

    #[test]
    fn names_made_anew_for_every_task_are_not_taken_for_each_other() {
        let (names, memory) = (Names::new(4), Memory::new());
        for number in 0..3 * MOST_NAMES {
            // Each text is freed at the end of its turn, and its memory used for the next.
            let name = ["one", "two", "six"][number % 3];
            let id = memory.id_of(&names, &named(name));
            assert_eq!(names.label(id).to_string(), name);
        }
        assert!(memory.names.borrow().len() <= MOST_NAMES);
    }
}
