//! The jobs of a scope that are not over, in the order in which they were made.
//!
//! A job enters at the end and leaves from anywhere. An entry that leaves from the middle becomes a gap, and
//! the list is compacted when there are more gaps than jobs: leaving costs a binary search, and the memory is
//! proportional to the jobs that are there. A scope that lives for days and has had a billion jobs is no
//! larger than its current ones.

use super::slot::SlotRef;
use super::state::JobState;
use std::collections::VecDeque;

/// The phase of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not entered yet.
    New,
    /// Jobs can be added.
    Open,
    /// The last job is gone, and no other can be added.
    Closed,
}

/// The jobs that are not over, and the phase of the scope.
pub(super) struct JobList<M> {
    /// Sorted by number.
    entries: VecDeque<(u64, Option<SlotRef<M>>)>,
    gaps: usize,
    /// The number of the next job.
    next: u64,
    /// How many jobs have been published.
    pub(super) published: u64,
    pub(super) phase: Phase,
    /// Whether the owner sleeps, or is about to, and the next published job must wake it.
    pub(super) owner_asleep: bool,
}

impl<M> JobList<M> {
    pub(super) fn new() -> Self {
        JobList {
            entries: VecDeque::new(),
            gaps: 0,
            next: 0,
            published: 0,
            phase: Phase::New,
            owner_asleep: false,
        }
    }

    /// Adds a job, and returns its number.
    pub(super) fn push(&mut self, job: SlotRef<M>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.entries.push_back((number, Some(job)));
        number
    }

    /// Removes a job, if it is listed.
    pub(super) fn remove(&mut self, number: u64) -> Option<SlotRef<M>> {
        let index = self.position(number);
        let (found, entry) = self.entries.get_mut(index)?;
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
    pub(super) fn find(&self, from: u64, wanted: fn(JobState) -> bool) -> Option<&SlotRef<M>> {
        self.entries
            .range(self.position(from)..)
            .filter_map(|(_, entry)| entry.as_ref())
            .find(|job| wanted(job.state().read()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of jobs.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.gaps
    }

    fn position(&self, number: u64) -> usize {
        self.entries.partition_point(|(other, _)| *other < number)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::super::Scope;
    use super::*;

    /// A job that is over; the list does not care.
    fn job() -> SlotRef<()> {
        let scope = Scope::new();
        scope.enter(|| scope.job(|| ()).unwrap().job().0.clone())
    }

    fn job_list(count: u64) -> JobList<()> {
        let mut job_list = JobList::new();
        for number in 0..count {
            assert_eq!(job_list.push(job()), number);
        }
        job_list
    }

    fn numbers(job_list: &JobList<()>) -> Vec<u64> {
        let entries = job_list.entries.iter();
        entries
            .filter_map(|(number, entry)| entry.as_ref().map(|_| *number))
            .collect()
    }

    #[test]
    fn a_job_leaves_from_anywhere_and_once() {
        for first in 0..5 {
            for second in 0..5 {
                let mut job_list = job_list(5);
                assert!(job_list.remove(first).is_some());
                assert_eq!(job_list.remove(second).is_some(), first != second);
                let left: Vec<_> = (0..5).filter(|n| ![first, second].contains(n)).collect();
                assert_eq!(numbers(&job_list), left);
                assert_eq!(job_list.len(), left.len());
            }
        }
    }

    #[test]
    fn jobs_of_long_ago_are_found_beside_those_of_now() {
        for start in [(1 << 31) - 1, (1 << 32) - 1, u64::MAX - 9] {
            let mut job_list = job_list(2);
            job_list.next = start;
            let new: Vec<u64> = (0..5).map(|_| job_list.push(job())).collect();
            assert_eq!(numbers(&job_list).len(), 7);
            assert!(job_list.remove(new[2]).is_some() && job_list.remove(new[2]).is_none());
            assert!(job_list.remove(0).is_some());
            assert_eq!(numbers(&job_list), [1, new[0], new[1], new[3], new[4]]);
            assert!(job_list.find(2, JobState::is_ended).is_some());
        }
    }

    #[test]
    fn a_number_that_was_never_given_removes_nothing() {
        let mut job_list = job_list(3);
        assert!(job_list.remove(3).is_none());
        assert!(job_list.remove(u64::MAX).is_none());
        assert_eq!(job_list.len(), 3);
    }

    #[test]
    fn the_last_one_to_leave_leaves_it_empty() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let mut job_list = job_list(3);
            for number in order {
                assert!(!job_list.is_empty());
                assert!(job_list.remove(number).is_some());
            }
            assert!(job_list.is_empty());
        }
    }

    #[test]
    fn a_job_that_stays_does_not_keep_the_entries_of_all_that_left() {
        let mut job_list = job_list(1);
        for _ in 0..10_000 {
            let number = job_list.push(job());
            assert!(job_list.remove(number).is_some());
        }
        assert_eq!(numbers(&job_list), [0]);
        assert!(job_list.entries.capacity() < 100);
    }

    #[test]
    fn finding_begins_where_it_is_told_to() {
        let mut job_list = job_list(4);
        let _ = job_list.remove(1);
        let find = |from| {
            let found = job_list.find(from, JobState::is_ended);
            found.map(|job| {
                numbers(&job_list)
                    .into_iter()
                    .find(|n| {
                        job_list.entries[job_list.position(*n)]
                            .1
                            .as_ref()
                            .unwrap()
                            .is(job)
                    })
                    .unwrap()
            })
        };
        assert_eq!(
            [0, 1, 2, 3, 4].map(find),
            [Some(0), Some(2), Some(2), Some(3), None]
        );
    }
}
