//! On which CPUs the threads of a factory run.
//!
//! A thread inherits the CPUs of the thread that starts it. So the starting thread confines itself for a moment, starts the
//! thread, and goes back: the new thread is where it belongs from its first instruction on, its stack is in memory near to
//! it, and a CPU that cannot be had is an error of the start, not a thread that runs elsewhere in silence.
//!
//! - **PINNING-1** A CPU counts the threads that were started for it and have not ended. A new thread gets the CPU with the
//!   fewest, the first of equals. So a thread that takes the place of one that has ended takes its CPU.

use super::{Body, JoinHandle};
use millpond_raw::affinity;
use millpond_raw::sync::Mutex;
use std::io;
use std::sync::Arc;

/// Where threads run.
#[derive(Debug)]
pub(super) enum Pinning {
    Anywhere,
    /// On any of these.
    Any(Vec<u32>),
    /// Each on one of these.
    OneOfEach(Arc<Mutex<Vec<Used>>>),
}

/// A CPU, and its threads (PINNING-1).
#[derive(Debug)]
pub(super) struct Used {
    cpu: u32,
    threads: usize,
}

/// A thread that counts for a CPU.
struct Claim {
    cpu: u32,
    all: Arc<Mutex<Vec<Used>>>,
}

impl Pinning {
    pub(super) fn one_of_each(cpus: impl IntoIterator<Item = u32>) -> Self {
        let used = |cpu| Used { cpu, threads: 0 };
        let all = cpus.into_iter().map(used).collect();
        Pinning::OneOfEach(Arc::new(Mutex::new(all)))
    }

    /// Lets `start` start the thread where it belongs.
    pub(super) fn start(
        &self,
        body: Body,
        start: impl FnOnce(Body) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<JoinHandle<()>> {
        match self {
            Pinning::Anywhere => start(body),
            Pinning::Any(cpus) => on(cpus, || start(body)),
            Pinning::OneOfEach(all) => {
                let claim = Claim::new(all)?;
                let cpu = claim.cpu;
                let counted = move || {
                    let _claim = claim;
                    body();
                };
                on(&[cpu], || start(Box::new(counted)))
            }
        }
    }
}

fn on(
    cpus: &[u32],
    start: impl FnOnce() -> io::Result<JoinHandle<()>>,
) -> io::Result<JoinHandle<()>> {
    let failed = |error: io::Error| {
        let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        let (list, plural) = (list.join(", "), if cpus.len() == 1 { "" } else { "s" });
        let text = format!(
            "a thread cannot be pinned to CPU{plural} {list} ({error}): \
             take CPUs that are online and allowed for this process, as in Machine::read().allowed"
        );
        io::Error::new(error.kind(), text)
    };
    affinity::with_cpus(cpus, start).map_err(failed)?
}

impl Claim {
    fn new(all: &Arc<Mutex<Vec<Used>>>) -> io::Result<Self> {
        let cpu = {
            let mut used = all.lock();
            let least = used.iter_mut().min_by_key(|used| used.threads);
            least.map(|least| {
                least.threads += 1;
                least.cpu
            })
        };
        match cpu {
            Some(cpu) => Ok(Claim {
                cpu,
                all: Arc::clone(all),
            }),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "threads are to be pinned to no CPU at all: name at least one",
            )),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut used = self.all.lock();
        if let Some(used) = used.iter_mut().find(|used| used.cpu == self.cpu) {
            used.threads -= 1;
        }
    }
}

#[cfg(all(
    test,
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod tests {
    use crate::thread::{ThreadFactory, Threads};
    use millpond_raw::affinity;
    use std::sync::mpsc;

    #[test]
    fn each_thread_has_a_cpu_of_its_own_and_a_successor_takes_the_cpu_of_its_predecessor() {
        let cpus = affinity::current_cpus().unwrap();
        let threads = Threads::named("pinned").pinned(cpus.clone());
        let mut running = Vec::new();
        for cpu in &cpus {
            let (go, gone) = mpsc::channel::<()>();
            let (tell, told) = mpsc::channel();
            let body = move || {
                tell.send(affinity::current_cpus().unwrap()).unwrap();
                let _ = gone.recv();
            };
            let handle = threads.start(Box::new(body)).unwrap();
            assert_eq!(told.recv().unwrap(), [*cpu]);
            running.push((go, handle));
        }
        let (go, last) = running.pop().unwrap();
        drop(go);
        last.join().unwrap();
        let (tell, told) = mpsc::channel();
        let body = move || tell.send(affinity::current_cpus().unwrap()).unwrap();
        let successor = threads.start(Box::new(body)).unwrap();
        assert_eq!(told.recv().unwrap(), [*cpus.last().unwrap()]);
        successor.join().unwrap();
        for (go, handle) in running {
            drop(go);
            handle.join().unwrap();
        }
    }

    #[test]
    fn confined_threads_may_run_on_any_of_their_cpus_and_the_starter_on_all() {
        let cpus = affinity::current_cpus().unwrap();
        let threads = Threads::named("confined").confined(cpus[..1].to_vec());
        let (tell, told) = mpsc::channel();
        let body = move || tell.send(affinity::current_cpus().unwrap()).unwrap();
        threads.start(Box::new(body)).unwrap().join().unwrap();
        assert_eq!(told.recv().unwrap(), cpus[..1]);
        assert_eq!(affinity::current_cpus().unwrap(), cpus);
    }

    #[test]
    fn a_cpu_that_cannot_be_had_fails_the_start_and_counts_for_nothing() {
        let threads = Threads::named("nowhere").pinned([60_000]);
        for _ in 0..2 {
            let error = threads.start(Box::new(|| unreachable!())).unwrap_err();
            assert!(
                error.to_string().contains("Machine::read().allowed"),
                "{error}"
            );
        }
        let none = Threads::named("none").pinned([]);
        let error = none.start(Box::new(|| unreachable!())).unwrap_err();
        assert!(error.to_string().contains("name at least one"), "{error}");
    }
}
