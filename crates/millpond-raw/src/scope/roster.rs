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
    next: u64,
    /// How many jobs have been brought.
    pub(super) brought: u64,
    pub(super) phase: Phase,
    /// Whether the owner may be asleep, and is to be woken when a job is brought.
    pub(super) asleep: bool,
}

impl<M> Roster<M> {
    pub(super) fn new() -> Self {
        Roster {
            entries: VecDeque::new(),
            gaps: 0,
            next: 0,
            brought: 0,
            phase: Phase::New,
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

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::super::Scope;
    use super::*;

    /// A job that is over, which makes no difference to a roster.
    fn job() -> Erased<()> {
        let scope = Scope::new();
        scope.enter(|| scope.job(|| ()).unwrap().job().0.clone())
    }

    fn roster(count: u64) -> Roster<()> {
        let mut roster = Roster::new();
        for number in 0..count {
            assert_eq!(roster.push(job()), number);
        }
        roster
    }

    fn numbers(roster: &Roster<()>) -> Vec<u64> {
        let entries = roster.entries.iter();
        entries
            .filter_map(|(number, entry)| entry.as_ref().map(|_| *number))
            .collect()
    }

    #[test]
    fn a_job_leaves_from_anywhere_and_once() {
        for first in 0..5 {
            for second in 0..5 {
                let mut roster = roster(5);
                assert!(roster.remove(first).is_some());
                assert_eq!(roster.remove(second).is_some(), first != second);
                let left: Vec<_> = (0..5).filter(|n| ![first, second].contains(n)).collect();
                assert_eq!(numbers(&roster), left);
                assert_eq!(roster.len(), left.len());
            }
        }
    }

    #[test]
    fn jobs_of_long_ago_are_found_beside_those_of_now() {
        for start in [(1 << 31) - 1, (1 << 32) - 1, u64::MAX - 9] {
            let mut roster = roster(2);
            roster.next = start;
            let new: Vec<u64> = (0..5).map(|_| roster.push(job())).collect();
            assert_eq!(numbers(&roster).len(), 7);
            assert!(roster.remove(new[2]).is_some() && roster.remove(new[2]).is_none());
            assert!(roster.remove(0).is_some());
            assert_eq!(numbers(&roster), [1, new[0], new[1], new[3], new[4]]);
            assert!(roster.find(2, Reading::is_ended).is_some());
        }
    }

    #[test]
    fn a_number_that_was_never_given_removes_nothing() {
        let mut roster = roster(3);
        assert!(roster.remove(3).is_none());
        assert!(roster.remove(u64::MAX).is_none());
        assert_eq!(roster.len(), 3);
    }

    #[test]
    fn the_last_one_to_leave_leaves_it_empty() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let mut roster = roster(3);
            for number in order {
                assert!(!roster.is_empty());
                assert!(roster.remove(number).is_some());
            }
            assert!(roster.is_empty());
        }
    }

    #[test]
    fn one_that_stays_does_not_keep_the_places_of_all_that_left() {
        let mut roster = roster(1);
        for _ in 0..10_000 {
            let number = roster.push(job());
            assert!(roster.remove(number).is_some());
        }
        assert_eq!(numbers(&roster), [0]);
        assert!(roster.entries.capacity() < 100);
    }

    #[test]
    fn finding_begins_where_it_is_told_to() {
        let mut roster = roster(4);
        let _ = roster.remove(1);
        let find = |from| {
            let found = roster.find(from, Reading::is_ended);
            found.map(|job| {
                numbers(&roster)
                    .into_iter()
                    .find(|n| roster.entries[roster.place(*n)].1.as_ref().unwrap().is(job))
                    .unwrap()
            })
        };
        assert_eq!(
            [0, 1, 2, 3, 4].map(find),
            [Some(0), Some(2), Some(2), Some(3), None]
        );
    }
}
