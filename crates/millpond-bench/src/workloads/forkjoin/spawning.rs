//! Jobs in a scope, each of which spawns two. They are numbered as in a heap, so that each number comes once.

use super::team::Team;
use crate::harness::Sample;
use crate::peers::forkjoin::ForkJoin;
use crate::peers::forkjoin::millpond::Millpond;
use crate::peers::forkjoin::rayon::Rayon;
use crate::peers::pool::WORKERS;
use crate::tally::Tally;
use anyhow::Result;
use millpond::forkjoin::ForkScope;
use std::time::Instant;

/// A pool that has scopes.
pub trait Scopes: ForkJoin {
    /// Runs jobs up to the number `last` in one scope, and waits for them.
    fn spawn_all(&self, tally: &'static Tally, last: u64);
}

impl Scopes for Millpond {
    fn spawn_all(&self, tally: &'static Tally, last: u64) {
        fn job<'scope>(
            scope: &'scope ForkScope<'scope, '_>,
            tally: &'static Tally,
            number: u64,
            last: u64,
        ) {
            for child in [2 * number, 2 * number + 1] {
                if child <= last {
                    scope.spawn(move |scope| job(scope, tally, child, last));
                }
            }
            tally.count(number);
        }
        self.0.scope(|scope| job(scope, tally, 1, last));
    }
}

impl Scopes for Rayon {
    fn spawn_all(&self, tally: &'static Tally, last: u64) {
        fn job<'scope>(
            scope: &rayon::Scope<'scope>,
            tally: &'static Tally,
            number: u64,
            last: u64,
        ) {
            for child in [2 * number, 2 * number + 1] {
                if child <= last {
                    scope.spawn(move |scope| job(scope, tally, child, last));
                }
            }
            tally.count(number);
        }
        self.0.scope(|scope| job(scope, tally, 1, last));
    }
}

/// Runs so many jobs.
///
/// # Errors
///
/// If not all of them ran, or one ran twice, or the pool cannot be opened.
pub fn round<S: Scopes>(jobs: u64) -> Result<Sample> {
    let jobs = jobs.max(1);
    let tally = Tally::take();
    let sample = Team::<S>::open(WORKERS)?.measure(jobs, |pool| {
        let start = Instant::now();
        pool.spawn_all(tally, jobs);
        Ok(start.elapsed())
    })?;
    tally.check(jobs)?;
    Ok(sample)
}
