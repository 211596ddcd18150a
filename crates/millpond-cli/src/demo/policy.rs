//! The rejection policies that the demo offers, in the order in which a key goes through them.

use std::fmt;
use std::time::Duration;

use millpond::pool::RejectionPolicy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Abort,
    CallerRuns,
    Discard,
    DiscardOldest,
    Block,
    NewThread,
}

const BLOCK_TIMEOUT: Duration = Duration::from_millis(100);
const EXTRA_THREADS: usize = 4;

impl Policy {
    pub(super) const ALL: [Policy; 6] = [
        Policy::Abort,
        Policy::CallerRuns,
        Policy::Discard,
        Policy::DiscardOldest,
        Policy::Block,
        Policy::NewThread,
    ];

    pub(super) fn rejection(self) -> RejectionPolicy {
        match self {
            Policy::Abort => RejectionPolicy::Abort,
            Policy::CallerRuns => RejectionPolicy::CallerRuns,
            Policy::Discard => RejectionPolicy::Discard,
            Policy::DiscardOldest => RejectionPolicy::DiscardOldest,
            Policy::Block => RejectionPolicy::Block(BLOCK_TIMEOUT),
            Policy::NewThread => RejectionPolicy::NewThread {
                at_most: EXTRA_THREADS,
            },
        }
    }

    /// The policy of a pool that was set here.
    pub(super) fn of(rejection: &RejectionPolicy) -> Self {
        match rejection {
            RejectionPolicy::CallerRuns => Policy::CallerRuns,
            RejectionPolicy::Discard => Policy::Discard,
            RejectionPolicy::DiscardOldest => Policy::DiscardOldest,
            RejectionPolicy::Block(_) => Policy::Block,
            RejectionPolicy::NewThread { .. } => Policy::NewThread,
            _ => Policy::Abort,
        }
    }

    pub(super) fn next(self) -> Self {
        let place = Self::ALL.iter().position(|policy| *policy == self);
        Self::ALL[place.map_or(0, |place| (place + 1) % Self::ALL.len())]
    }

    /// The effect of the policy on a task for which there is no room.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Policy::Abort => "the task is given back to its caller",
            Policy::CallerRuns => "the caller runs the task, and lets nobody else in meanwhile",
            Policy::Discard => "the task is dropped",
            Policy::DiscardOldest => "the one that has waited longest is dropped",
            Policy::Block => "the caller waits for some, 100 ms at most",
            Policy::NewThread => "the task gets a thread of its own, if fewer than 4 have one",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Policy::Abort => "abort",
            Policy::CallerRuns => "caller runs",
            Policy::Discard => "discard",
            Policy::DiscardOldest => "discard oldest",
            Policy::Block => "block",
            Policy::NewThread => "new thread",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_known_again_by_what_it_makes_of_a_pool() {
        for policy in Policy::ALL {
            assert_eq!(Policy::of(&policy.rejection()), policy);
        }
    }

    #[test]
    fn the_next_of_the_last_is_the_first() {
        let mut policy = Policy::Abort;
        for expected in Policy::ALL {
            assert_eq!(policy, expected);
            policy = policy.next();
        }
        assert_eq!(policy, Policy::Abort);
    }

    #[test]
    fn the_meanings_tell_the_numbers_that_are_used() {
        let wait = format!("{} ms", BLOCK_TIMEOUT.as_millis());
        assert!(Policy::Block.meaning().contains(&wait));
        let fewer = format!("fewer than {EXTRA_THREADS} ");
        assert!(Policy::NewThread.meaning().contains(&fewer));
    }
}
