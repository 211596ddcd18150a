//! The shop: three departments, each with a pool of its own, and their customers.
//!
//! ```text
//!   visits (planned by seed and tide)      door           pool
//!   orders  by chance, with the tide  -->  lets in  -->  waits for banks and stores
//!   images  by chance, with the tide  -->  lets in  -->  computes
//!   mails   by the clock              -->  lets in  -->  waits for a mail server
//!                     ^ sluice: load, pause, close          | slips
//!                                                           v
//!                                                         ledger  -->  books
//! ```
//!
//! Nothing here depends on the screen. What is planned is decided by the seed alone
//! (`visits.rs`, `tide.rs`) and does not heed how the pools are doing.

mod books;
mod department;
mod door;
mod easel;
mod ledger;
mod menu;
mod random;
mod sluice;
mod tide;
mod visits;

pub(crate) use books::{Books, Page};
pub(crate) use department::Department;
pub(crate) use ledger::Counts;
pub(crate) use sluice::{MOST_LOAD, Sluice};
pub(crate) use tide::{Level, Tide};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use millpond::executor::Lifecycle;
use millpond::thread::{ThreadFactory, Threads};
use millpond::time::Clock;

use door::Door;

#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) departments: Vec<Department>,
    pub(crate) sluice: Arc<Sluice>,
    pub(crate) tide: Tide,
    seed: u64,
    clock: Clock,
    opened: Instant,
    doors: Vec<JoinHandle<()>>,
    /// Which doors have broken down, by the number of their department.
    broken: Vec<usize>,
    /// Whether the policy `new thread` was ever chosen, for the books (SHOP-3).
    had_extra_threads: AtomicBool,
}

impl Shop {
    /// Opens the doors.
    pub(crate) fn open(seed: u64, load: u32) -> Result<Self> {
        let clock = Clock::system();
        let tide = Tide::new(seed);
        let opened = clock.now();
        let mut shop = Shop {
            departments: Vec::new(),
            sluice: Arc::new(Sluice::new(clock.clone(), load)),
            tide,
            seed,
            clock,
            opened,
            doors: Vec::new(),
            broken: Vec::new(),
            had_extra_threads: AtomicBool::new(false),
        };
        let threads = Threads::named("door");
        for (department, source) in menu::departments(seed, tide)? {
            let door = Door {
                department: department.clone(),
                sluice: Arc::clone(&shop.sluice),
                source,
            };
            let started = threads.start(Box::new(move || door.attend()));
            let door = started.context(
                "cannot start a thread for the demo: raise the limit of threads (ulimit -u)",
            )?;
            shop.doors.push(door);
            shop.departments.push(department);
        }
        Ok(shop)
    }

    /// For how long it has been open, pauses included.
    pub(crate) fn open_for(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.opened)
    }

    /// To be said when a policy has been chosen that starts threads outside the pool.
    pub(crate) fn expect_extra_threads(&self) {
        self.had_extra_threads.store(true, Relaxed);
    }

    /// Lets no customer in any more; those inside are served to the end.
    pub(crate) fn shut_doors(&mut self) {
        self.sluice.close();
        for (number, door) in self.doors.drain(..).enumerate() {
            if door.join().is_err() {
                self.broken.push(number);
            }
        }
        for department in &self.departments {
            department.pool.shutdown();
        }
    }

    /// Stops what runs, and drops what waits.
    pub(crate) fn stop(&self) {
        for department in &self.departments {
            drop(department.pool.shutdown_now());
        }
    }

    /// How many tasks are still inside.
    pub(crate) fn inside(&self) -> u64 {
        let counts = self.departments.iter().map(|each| each.counts().open());
        counts.sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.departments
            .iter()
            .all(|each| each.pool.is_terminated())
    }

    /// Waits for the end, but not longer than this. Returns whether it has come.
    pub(crate) fn wait_until_empty(&self, timeout: Duration) -> bool {
        let deadline = self.clock.deadline(timeout);
        let mut pools = self.departments.iter().map(|each| &each.pool);
        // This thread runs no task, so it cannot be interrupted.
        pools.all(|pool| pool.await_termination_until(deadline).unwrap_or(false))
    }

    /// Closes the books. To be asked when it [is empty](Self::is_empty).
    pub(crate) fn books(&self) -> Books {
        let extra = self.had_extra_threads.load(Relaxed);
        let page = |each: &Department| Page::new(each.counts(), &each.pool.snapshot(), extra);
        let mut pages: Vec<Page> = self.departments.iter().map(page).collect();
        for number in &self.broken {
            let why = "its door has panicked, and some who would have come did not".to_owned();
            pages[*number].wrong.push(why);
        }
        Books::new(self.open_for(), self.seed, pages)
    }
}

impl Drop for Shop {
    /// However it ends, no thread is left at a door.
    fn drop(&mut self) {
        self.shut_doors();
    }
}

#[cfg(test)]
mod tests;
