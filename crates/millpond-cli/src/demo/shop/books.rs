//! The books, closed at the end: the shop's own ledger against what the pools have counted.
//!
//! # What must hold when all is over
//!
//! - **SHOP-1** came = done + rejected + dropped: nothing was lost.
//! - **SHOP-2** dropped, by the ledger, is what the pool has discarded, shed, cancelled or returned.
//! - **SHOP-3** done, by the ledger, is what the pool has completed or let its callers run; with the policy
//!   `new thread` more was done than that, in extra threads, which pools do not count.
//! - **SHOP-4** Nothing is left in the pool.

use std::time::Duration;

use millpond::manage::RunState;
use millpond::pool::PoolSnapshot;
use serde::Serialize;

use super::ledger::Counts;

/// One pool's page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Page {
    pub(crate) pool: String,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    pub(crate) lost: u64,
    /// The disagreements, in sentences.
    pub(crate) wrong: Vec<String>,
}

/// All pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Books {
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
    pub(crate) pools: Vec<Page>,
    pub(crate) balanced: bool,
}

impl Books {
    pub(super) fn new(open_for: Duration, seed: u64, pools: Vec<Page>) -> Self {
        let balanced = pools.iter().all(|page| page.wrong.is_empty());
        Books {
            seconds: open_for.as_secs_f64(),
            seed,
            pools,
            balanced,
        }
    }
}

impl Page {
    /// Compares the two. `had_extra_threads` says whether tasks may have run in extra threads.
    pub(super) fn new(counts: Counts, pool: &PoolSnapshot, had_extra_threads: bool) -> Self {
        let lost = counts.open();
        let mut wrong = Vec::new();
        if lost > 0 {
            wrong.push(format!("{lost} tasks came and were never heard of again"));
        }
        let dropped = pool.cancelled;
        if counts.dropped != dropped {
            wrong.push(format!(
                "{} tasks were dropped, and the pool knows of {dropped}",
                counts.dropped
            ));
        }
        // What extra threads ran is not known here.
        let ran = pool.completed - pool.extra_ran;
        let agrees = if had_extra_threads {
            counts.done >= ran
        } else {
            counts.done == ran
        };
        if !agrees {
            wrong.push(format!(
                "{} tasks were done, and the pool knows of {ran}",
                counts.done
            ));
        }
        let left = pool.queued + pool.active + pool.workers + pool.extra_threads;
        if pool.state != RunState::Terminated || left > 0 {
            wrong.push(format!("it has not ended: {pool}"));
        }
        Page {
            pool: pool.name.clone(),
            counts,
            lost,
            wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond::executor::{ExecutorExt, Lifecycle};
    use millpond::pool::ThreadPool;

    use super::*;

    /// A pool that has run three tasks and ended.
    fn ended() -> PoolSnapshot {
        let pool = ThreadPool::builder("orders").core(1).build().unwrap();
        for _ in 0..3 {
            pool.execute(|| ()).unwrap();
        }
        pool.close().unwrap();
        pool.snapshot()
    }

    fn counts(done: u64, rejected: u64, dropped: u64) -> Counts {
        Counts {
            came: done + rejected + dropped,
            gave_up: 0,
            done,
            rejected,
            dropped,
        }
    }

    #[test]
    fn books_that_agree_have_nothing_wrong() {
        let page = Page::new(counts(3, 2, 0), &ended(), false);
        assert_eq!((page.lost, page.wrong), (0, vec![]));
    }

    #[test]
    fn a_lost_task_is_found() {
        let mut counts = counts(3, 0, 0);
        counts.came += 2;
        let page = Page::new(counts, &ended(), false);
        assert_eq!(page.lost, 2);
        assert_eq!(page.wrong, ["2 tasks came and were never heard of again"]);
    }

    #[test]
    fn a_pool_that_counts_differently_is_found() {
        let done = Page::new(counts(4, 0, 0), &ended(), false);
        assert_eq!(done.wrong, ["4 tasks were done, and the pool knows of 3"]);
        let dropped = Page::new(counts(3, 0, 1), &ended(), false);
        assert_eq!(
            dropped.wrong,
            ["1 tasks were dropped, and the pool knows of 0"]
        );
        let mut running = ended();
        running.state = RunState::Running;
        assert!(Page::new(counts(3, 0, 0), &running, false).wrong[0].starts_with("it has not"));
    }

    #[test]
    fn extra_threads_may_have_done_more_than_the_pool_counts_and_never_less() {
        assert!(Page::new(counts(5, 0, 0), &ended(), true).wrong.is_empty());
        assert_eq!(Page::new(counts(2, 0, 0), &ended(), true).wrong.len(), 1);
    }

    #[test]
    fn one_wrong_page_unbalances_the_books() {
        let good = Page::new(counts(3, 0, 0), &ended(), false);
        let bad = Page::new(counts(4, 0, 0), &ended(), false);
        let second = Duration::from_secs(1);
        assert!(Books::new(second, 1, vec![good.clone()]).balanced);
        assert!(!Books::new(second, 1, vec![good, bad]).balanced);
    }
}
