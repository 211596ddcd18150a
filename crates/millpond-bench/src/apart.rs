//! CPUs for the workers, and one for the thread that keeps the time.
//!
//! A thread that must not come late does not sleep. Left to itself the kernel likes to wake a worker on
//! the CPU of the waking thread, behind a thread that never gives it up: the worker then waits for the
//! next tick, milliseconds away, and what was to be measured is lost in that. So the two are kept apart:
//! the threads of a pool inherit all CPUs but the first, and the thread that submits tasks has the
//! first one for itself.
//!
//! Where there is one CPU only, or no way to choose, all threads share all CPUs.

/// The threads that are kept apart, until this is dropped.
#[derive(Debug)]
pub struct Apart {
    #[cfg(target_os = "linux")]
    before: Option<rustix::thread::CpuSet>,
}

/// Starts threads with `spawn`, on all CPUs but the first. From then on, and until the guard is dropped,
/// the first one is for this thread alone.
pub fn apart<T>(spawn: impl FnOnce() -> T) -> (T, Apart) {
    #[cfg(target_os = "linux")]
    {
        let Some(split) = linux::Split::of_this_thread() else {
            return (spawn(), Apart { before: None });
        };
        let guard = Apart {
            before: Some(split.all),
        };
        linux::stay_on(&split.others);
        let spawned = spawn();
        linux::stay_on(&split.first);
        (spawned, guard)
    }
    #[cfg(not(target_os = "linux"))]
    (spawn(), Apart {})
}

/// Keeps this thread, and the threads and processes that it starts from now on, on the first of its CPUs.
///
/// # Errors
///
/// If the kernel does not grant it, or there is no way to choose.
pub fn stay_on_one_cpu() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    return linux::stay_on_first();
    #[cfg(not(target_os = "linux"))]
    anyhow::bail!("a process cannot be kept on one CPU here")
}

impl Apart {
    /// Whether there was a CPU for each side.
    pub fn is_apart(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.before.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }
}

#[cfg(target_os = "linux")]
impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            linux::stay_on(before);
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    pub(super) struct Split {
        pub(super) all: CpuSet,
        pub(super) first: CpuSet,
        pub(super) others: CpuSet,
    }

    impl Split {
        /// `None` if there is nothing to split.
        pub(super) fn of_this_thread() -> Option<Split> {
            let all = sched_getaffinity(None).ok()?;
            if all.count() < 2 {
                return None;
            }
            let number = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu))?;
            let (mut first, mut others) = (CpuSet::new(), all);
            first.set(number);
            others.unset(number);
            Some(Split { all, first, others })
        }
    }

    pub(super) fn stay_on_first() -> anyhow::Result<()> {
        let all = sched_getaffinity(None)?;
        let number = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu));
        let mut first = CpuSet::new();
        first.set(number.unwrap_or_default());
        Ok(sched_setaffinity(None, &first)?)
    }

    /// If the kernel refuses the affinity, threads stay where they were.
    pub(super) fn stay_on(cpus: &CpuSet) {
        let _ = sched_setaffinity(None, cpus);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity};
    use std::sync::mpsc;

    fn mine() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    #[test]
    fn spawned_threads_have_all_cpus_but_the_first_and_the_affinity_is_restored() {
        // On a thread of its own, which takes its CPUs with it.
        std::thread::spawn(|| {
            let before = mine();
            let (told, guard) = apart(|| {
                let (tell, told) = mpsc::channel();
                std::thread::spawn(move || {
                    let _ = tell.send(mine());
                });
                told.recv().unwrap()
            });
            if guard.is_apart() {
                assert_eq!(mine().count(), 1);
                assert_eq!(told.count(), before.count() - 1);
                let both = (0..CpuSet::MAX_CPU).any(|cpu| mine().is_set(cpu) && told.is_set(cpu));
                assert!(!both, "{told:?}");
            } else {
                assert_eq!(before.count(), 1);
            }
            drop(guard);
            assert_eq!(mine(), before);
        })
        .join()
        .unwrap();
    }
}
