//! The jobs of a scope that are not over, in the order in which they came.
//!
//! A job enters at the end and leaves from anywhere. Entries that have left in the middle stay as
//! gaps, and when there are more gaps than jobs the gaps are closed: leaving costs a binary search,
//! and the memory is that of the jobs that are there. A scope that lives for days and has had a
//! billion jobs is no larger than those of the moment.

use super::slot::Erased;
use super::state::Reading;
use std::collections::VecDeque;

/// What a scope is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nobody has entered it.
    New,
    /// Jobs may come.
    Open,
    /// The last job is gone, and no other may come.
    Closed,
}

/// The jobs that are not over, and whether more may come.
pub(super) struct Roster<M> {
    /// Sorted by number.
    entries: VecDeque<(u64, Option<Erased<M>>)>,
    gaps: usize,
    /// The number of the next job.
    pub(super) next: u64,
    pub(super) phase: Phase,
    /// Whether jobs are refused.
    pub(super) stopped: bool,
    /// Whether the owner may be asleep, and is to be woken when a job comes.
    pub(super) asleep: bool,
}

impl<M> Roster<M> {
    pub(super) fn new() -> Self {
        Roster {
            entries: VecDeque::new(),
            gaps: 0,
            next: 0,
            phase: Phase::New,
            stopped: false,
            asleep: false,
        }
    }

    /// Enters a job, and returns its number.
    pub(super) fn push(&mut self, job: Erased<M>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.entries.push_back((number, Some(job)));
        number
    }

    /// Takes a job out, if it is in.
    pub(super) fn remove(&mut self, number: u64) -> Option<Erased<M>> {
        let place = self.place(number);
        let (found, entry) = self.entries.get_mut(place)?;
        let job = (*found == number).then(|| entry.take()).flatten()?;
        self.gaps += 1;
        while let Some((_, None)) = self.entries.front() {
            self.entries.pop_front();
            self.gaps -= 1;
        }
        if self.gaps > self.entries.len() / 2 {
            self.entries.retain(|(_, entry)| entry.is_some());
            self.gaps = 0;
        }
        Some(job)
    }

    /// The first job with this number or a higher one of which `wanted` is true.
    pub(super) fn find(&self, from: u64, wanted: fn(Reading) -> bool) -> Option<&Erased<M>> {
        self.entries
            .range(self.place(from)..)
            .filter_map(|(_, entry)| entry.as_ref())
            .find(|job| wanted(job.state().read()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many jobs are not over.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.gaps
    }

    fn place(&self, number: u64) -> usize {
        self.entries.partition_point(|(other, _)| *other < number)
    }
}
