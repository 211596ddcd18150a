//! What travels with a task beside its closure, in three words: cells are small, and most tasks have
//! no name, no deadline, no span, nothing that they carry, and the system's clock.

use super::Priority;
use super::context::Inherited;
use super::cycle::TaskLabel;
use super::home::Address;
use super::name::Name;
use super::spec::TaskSpec;
use crate::time::{Clock, Deadline, Stamp};
use millpond_raw::task::Body;
use std::panic::Location;

/// What is in a cell between header and closure.
#[derive(Debug)]
pub(super) struct Meta {
    spec: TaskSpec,
    pub(super) home: Address,
}

/// What few tasks have.
#[derive(Clone, Debug)]
pub(super) struct Rare {
    /// Name, deadline, priority, span and what is carried: what the task's own tasks have, too.
    pub(super) inherited: Inherited,
    pub(super) clock: Clock,
}

impl Rare {
    /// All as it is without.
    pub(super) fn nothing() -> Self {
        Rare {
            inherited: Inherited::nothing(),
            clock: Clock::system(),
        }
    }
}

impl Rare {
    fn is_expired(&self) -> bool {
        let deadline = self.inherited.deadline;
        deadline != Deadline::NEVER && deadline.has_passed(self.clock.now())
    }
}

impl Meta {
    pub(super) fn new(spec: TaskSpec) -> Self {
        Meta {
            spec,
            home: Address::none(false),
        }
    }

    /// Of a task that is not shed.
    pub(super) fn kept(spec: TaskSpec) -> Self {
        Meta {
            spec,
            home: Address::none(true),
        }
    }

    #[inline]
    fn rare(&self) -> Option<&Rare> {
        self.spec.rare.as_deref()
    }

    /// What the task passes on to those that it makes; `None` if that is nothing.
    #[inline]
    pub(super) fn inherited(&self) -> Option<&Inherited> {
        self.rare().map(|rare| &rare.inherited)
    }

    #[inline]
    pub(super) fn name(&self) -> Option<&Name> {
        self.inherited()?.name.as_ref()
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.inherited()
            .map_or(Deadline::NEVER, |inherited| inherited.deadline)
    }

    pub(super) fn priority(&self) -> Priority {
        self.inherited()
            .map_or(Priority::Normal, |inherited| inherited.priority)
    }

    pub(super) fn clock(&self) -> Clock {
        self.rare()
            .map_or_else(Clock::system, |rare| rare.clock.clone())
    }

    pub(super) fn made_at(&self) -> &'static Location<'static> {
        self.spec.made_at
    }

    /// Whether its deadline has passed, by its own clock. What has no deadline asks no clock.
    #[inline]
    pub(super) fn is_expired(&self) -> bool {
        self.rare().is_some_and(Rare::is_expired)
    }

    #[inline]
    pub(super) fn label(&self) -> TaskLabel {
        TaskLabel {
            name: self.name().cloned(),
            made_at: self.made_at(),
        }
    }

    /// What tells its task from all others that are there.
    pub(super) fn mark(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    pub(super) fn about(&self) -> About<'_> {
        About(self)
    }

    /// Takes note of a cancellation through a handle. Returns whether it was one.
    pub(super) fn note_cancelled(&self, found: Option<Body>) -> bool {
        if found == Some(Body::Gone) {
            self.home.count_gone();
        }
        found.is_some()
    }
}

/// What can be told of a task, to those who do not have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a>(&'a Meta);

impl About<'_> {
    pub(crate) fn shared_name(self) -> Option<Name> {
        self.0.name().cloned()
    }

    pub(crate) fn made_at(self) -> &'static Location<'static> {
        self.0.made_at()
    }

    pub(crate) fn deadline(self) -> Deadline {
        self.0.deadline()
    }

    pub(crate) fn priority(self) -> Priority {
        self.0.priority()
    }

    /// Since when it waits in an engine.
    pub(crate) fn waits_since(self) -> Option<Stamp> {
        self.0.home.stamp()
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
    fn what_few_tasks_have_is_two_cache_lines_at_most() {
        let most = if cfg!(feature = "tracing") { 128 } else { 80 };
        assert!(size_of::<Rare>() <= most, "{}", size_of::<Rare>());
    }

    #[test]
    fn what_is_as_usual_takes_no_room() {
        let rare = |spec: &TaskSpec| spec.rare.is_some();
        assert!(!rare(&TaskSpec::new()));
        let usual = TaskSpec::new().clock(Clock::system());
        let usual = usual.priority(Priority::Normal);
        assert!(!rare(&usual.deadline(Deadline::NEVER)));
        assert!(rare(&TaskSpec::new().priority(Priority::Low)));
        assert!(rare(&TaskSpec::new().name("mill")));
    }
}
