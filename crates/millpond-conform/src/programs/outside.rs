//! Things outside of all engines: destructors that submit, thread-locals, child processes.

use crate::chaos::client::{Client, let_go, submit_task};
use crate::kit::Rng;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Submits a task when it is dropped.
pub(super) struct Submits {
    client: Client,
    seed: u64,
    live_threads: Arc<AtomicUsize>,
}

impl Submits {
    pub(super) fn new(client: Client, seed: u64, live_threads: &Arc<AtomicUsize>) -> Self {
        live_threads.fetch_add(1, Ordering::SeqCst);
        Submits {
            client,
            seed,
            live_threads: Arc::clone(live_threads),
        }
    }
}

impl Drop for Submits {
    fn drop(&mut self) {
        /// Tasks that submit no others.
        const DEEPEST: usize = 2;

        let mut rng = Rng::new(self.seed);
        if let Some((id, handle)) = submit_task(&self.client, &mut rng, DEEPEST) {
            let_go(&self.client, id, handle);
        }
        self.live_threads.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Leaves it to the end of the present thread.
pub(super) fn drop_with_the_thread(submits: Submits) {
    thread_local! {
        static LEFT: RefCell<Vec<Submits>> = const { RefCell::new(Vec::new()) };
    }
    let mut submits = Some(submits);
    // If the thread-local is gone already, the present thread is at its end.
    let _ = LEFT.try_with(|left| left.borrow_mut().extend(submits.take()));
}

/// Forks. The child uses a pool of its parent: it is rejected, and ends (PROGRAM-7).
#[cfg(target_os = "linux")]
pub(super) fn fork(client: &Client) {
    use millpond::executor::{ExecutorExt, Lifecycle};
    use millpond_raw::fork::{Child, run_in_child};
    use std::sync::Mutex;

    /// In seconds.
    const TIMEOUT: u32 = 60;
    /// One at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    let _alone = crate::chaos::ledger::lock(&ALONE);
    let mut own = Some(client.pool.clone());
    let child = run_in_child(TIMEOUT, || {
        let Some(pool) = own.take() else {
            return 2;
        };
        let is_refused = pool.submit(|| ()).is_err();
        pool.look();
        pool.shutdown();
        pool.close().unwrap();
        drop(pool);
        i32::from(!is_refused)
    });
    match child {
        Ok(Child::Exited(0)) => {}
        // Too many processes: nothing that a pool could help.
        Err(_) => {}
        Ok(other) => client.ledger.wrong(format!(
            "a child that touched the pool: {other:?} (PROGRAM-7)"
        )),
    }
}

/// Other systems have no `fork`, or none that tests can use.
#[cfg(not(target_os = "linux"))]
pub(super) fn fork(_: &Client) {}
