//! The metadata of a task, in three words: cells are small, and most tasks have no name, deadline, span or task-local
//! values, and use the system clock.

use super::context::Inherited;
use super::cycle::TaskLabel;
use super::name::Name;
use super::queue_tag::TagWord;
use super::spec::TaskSpec;
use super::{CancelReason, Priority};
use crate::time::{Clock, Deadline, ShortTimestamp};
use millpond_raw::task::Body;
use std::panic::Location;

/// The metadata, between header and closure of the cell.
#[derive(Debug)]
pub(super) struct Meta {
    spec: TaskSpec,
    pub(super) tag: TagWord,
}

/// The part that few tasks need.
#[derive(Clone, Debug)]
pub(super) struct Extras {
    /// Name, deadline, priority, span and task-local values, which the tasks that it creates inherit.
    pub(super) inherited: Inherited,
    pub(super) clock: Clock,
    /// The user gave it that clock. Otherwise it gets the clock of the executor that it is submitted to.
    pub(super) clock_is_given: bool,
    /// The deadline is that of the enclosing task, and was not asked for.
    pub(super) deadline_is_inherited: bool,
    /// The same of the time by which it must have ended.
    pub(super) finish_is_inherited: bool,
}

impl Extras {
    /// The defaults.
    pub(super) fn defaults() -> Self {
        Extras {
            inherited: Inherited::empty(),
            clock: Clock::system(),
            clock_is_given: false,
            deadline_is_inherited: false,
            finish_is_inherited: false,
        }
    }
}

impl Extras {
    /// The time by which it must have started.
    fn start_by(&self) -> Deadline {
        self.inherited.deadline.min(self.inherited.finish_by)
    }

    fn expiry(&self) -> Option<CancelReason> {
        let start_by = self.start_by();
        if start_by == Deadline::NEVER {
            return None;
        }
        let now = self.clock.now();
        if self.inherited.deadline.has_passed(now) {
            return Some(CancelReason::Expired);
        }
        start_by.has_passed(now).then_some(CancelReason::TooLate)
    }
}

impl Meta {
    pub(super) fn new(spec: TaskSpec) -> Self {
        Meta {
            spec,
            tag: TagWord::untagged(false),
        }
    }

    /// Of a task that is exempt from shedding.
    pub(super) fn kept(spec: TaskSpec) -> Self {
        Meta {
            spec,
            tag: TagWord::untagged(true),
        }
    }

    #[inline]
    fn extras(&self) -> Option<&Extras> {
        self.spec.extras.as_deref()
    }

    /// What tasks inherit that this one creates; `None` if nothing.
    #[inline]
    pub(super) fn inherited(&self) -> Option<&Inherited> {
        self.extras().map(|extras| &extras.inherited)
    }

    #[inline]
    pub(super) fn name(&self) -> Option<&Name> {
        self.inherited()?.name.as_ref()
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.inherited()
            .map_or(Deadline::NEVER, |inherited| inherited.deadline)
    }

    pub(super) fn finish_by(&self) -> Deadline {
        self.inherited()
            .map_or(Deadline::NEVER, |inherited| inherited.finish_by)
    }

    /// The first of its deadlines: if it is unstarted then, it will not be started.
    pub(super) fn start_by(&self) -> Deadline {
        self.extras().map_or(Deadline::NEVER, Extras::start_by)
    }

    pub(super) fn priority(&self) -> Priority {
        self.inherited()
            .map_or(Priority::Normal, |inherited| inherited.priority)
    }

    pub(super) fn clock(&self) -> Clock {
        self.extras()
            .map_or_else(Clock::system, |extras| extras.clock.clone())
    }

    pub(super) fn location(&self) -> &'static Location<'static> {
        self.spec.location
    }

    /// Why it is not to be started any more, if one of its deadlines has passed by its own clock. Without a deadline the
    /// clock is not read.
    #[inline]
    pub(super) fn expiry(&self) -> Option<CancelReason> {
        self.extras()?.expiry()
    }

    #[inline]
    pub(super) fn label(&self) -> TaskLabel {
        TaskLabel {
            name: self.name().cloned(),
            location: self.location(),
        }
    }

    /// Identifies the task among all live ones.
    pub(super) fn mark(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    pub(super) fn view(&self) -> TaskView<'_> {
        TaskView(self)
    }

    /// Counts the tombstone after a cancellation through a handle. Returns whether the call cancelled the task.
    pub(super) fn record_cancelled(&self, found: Option<Body>) -> bool {
        if found == Some(Body::Gone) {
            self.tag.count_tombstone();
        }
        found.is_some()
    }
}

/// A view of a task for code that does not own it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskView<'a>(&'a Meta);

impl TaskView<'_> {
    pub(crate) fn shared_name(self) -> Option<Name> {
        self.0.name().cloned()
    }

    pub(crate) fn location(self) -> &'static Location<'static> {
        self.0.location()
    }

    pub(crate) fn deadline(self) -> Deadline {
        self.0.deadline()
    }

    pub(crate) fn priority(self) -> Priority {
        self.0.priority()
    }

    /// When an engine enqueued it.
    pub(crate) fn queued_since(self) -> Option<ShortTimestamp> {
        self.0.tag.stamp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_raw::task::cell_size;

    fn size<F: FnOnce() -> T, T>(_: F) -> usize {
        cell_size::<F, T, Meta>()
    }

    #[test]
    fn a_small_task_is_one_cache_line() {
        // A word is 8 bytes, and a cache line 64, on the machines that this is for.
        let word = size_of::<usize>();
        let words = [1_usize; 10];
        assert_eq!(size_of::<Meta>(), 3 * word);
        assert_eq!(size(|| ()), 8 * word);
        let two = [1_usize; 2];
        assert_eq!(size(move || two), 8 * word);
        let large = move || {
            let _moved = words;
        };
        assert_eq!(size(large), 16 * word);
    }

    #[test]
    fn the_rare_metadata_is_two_cache_lines_at_most() {
        let most = if cfg!(feature = "tracing") { 128 } else { 96 };
        assert!(size_of::<Extras>() <= most, "{}", size_of::<Extras>());
    }

    #[test]
    fn defaults_take_no_room() {
        let extras = |spec: &TaskSpec| spec.extras.is_some();
        assert!(!extras(&TaskSpec::new()));
        let usual = TaskSpec::new().clock_by_default(Clock::system());
        let usual = usual.priority(Priority::Normal);
        assert!(!extras(&usual.deadline(Deadline::NEVER)));
        assert!(extras(&TaskSpec::new().priority(Priority::Low)));
        assert!(extras(&TaskSpec::new().name("mill")));
    }
}
