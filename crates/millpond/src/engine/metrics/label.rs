//! The label that a task is counted under, and its number.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The name that tasks are counted under.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::Label;
/// use millpond::preset;
/// use millpond::task::TaskSpec;
///
/// let pool = preset::single("mill").build()?;
/// pool.execute(|| ())?;
/// pool.submit_with(TaskSpec::new().name("grind"), || ())?;
/// pool.close()?;
/// for named in pool.metrics_by_name() {
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
    /// The name of the tasks.
    Name(Arc<str>),
    /// The place where the tasks were made, if they have no name.
    Place(&'static Location<'static>),
    /// Labels that did not fit into the table, and idle ones that have made room for others: the table is bounded.
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

/// The index of a label in the table of one engine, and its generation (LABELS-1). Of two ids with one index the later
/// is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LabelId(u64);

const INDEX_BITS: u32 = 16;

impl LabelId {
    pub(crate) const OTHERS: LabelId = LabelId(0);

    /// The first label with this index.
    #[inline]
    pub(super) fn first_at(index: usize) -> Self {
        LabelId::new(index, 0)
    }

    #[inline]
    pub(super) fn new(index: usize, generation: u64) -> Self {
        LabelId(generation << INDEX_BITS | index as u64)
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0 as u16)
    }

    #[inline]
    pub(super) fn generation(self) -> u64 {
        self.0 >> INDEX_BITS
    }

    #[inline]
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn from_bits(bits: u64) -> Self {
        LabelId(bits)
    }
}
