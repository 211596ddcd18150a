//! The usage of a thread: CPU time and context switches, from `/proc`.
//!
//! A thread asks for itself, before and after its work, or another asks for it while it is idle (see
//! [`crate::pool_threads`]). Threads that are gone leave no file behind, and the files of the whole process
//! count in hundredths of a second, or show the first thread only.
//!
//! The kernel updates a thread's CPU time when it passes the scheduler, which a busy thread
//! may not do for milliseconds. So a reading yields first; at the end of the work this makes the
//! figure exact, and costs one context switch at most.
//!
//! Where `/proc` does not tell (other systems than Linux, kernels without scheduler statistics), the
//! fact is `None`, and so is every sum it would be part of.

use std::fs;
use std::iter::Sum;
use std::ops::Sub;
use std::path::PathBuf;
use std::time::Duration;

/// CPU time and context switches. An unknown value is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on a CPU.
    pub cpu: Option<Duration>,
    /// How often it slept: it waited for something that was not there.
    pub sleeps: Option<u64>,
    /// How often it went on waiting for its CPU although it could have run: another thread took it,
    /// or it yielded. The kernel does not tell these apart.
    pub preemptions: Option<u64>,
}

impl Usage {
    /// Nothing used, and known.
    pub const NONE: Usage = Usage {
        cpu: Some(Duration::ZERO),
        sleeps: Some(0),
        preemptions: Some(0),
    };

    /// The usage of the running thread since it started.
    pub fn of_this_thread() -> Self {
        std::thread::yield_now();
        Self::read("thread-self")
    }

    /// The usage of a thread of this process since it started. It should be asleep, or the figure
    /// is some milliseconds old.
    pub fn of_thread(id: u32) -> Self {
        Self::read(&format!("self/task/{id}"))
    }

    /// The usage of the threads of a process whose names begin so, since they were started. They
    /// should be asleep, as above.
    pub fn of_process(id: u32, names: &str) -> Self {
        let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else {
            return Usage::default();
        };
        let folders = threads.flatten().map(|thread| thread.path());
        let is_meant = |folder: &PathBuf| {
            let name = fs::read_to_string(folder.join("comm"));
            name.is_ok_and(|name| name.starts_with(names))
        };
        let folders = folders.filter(is_meant);
        let usage = |folder: PathBuf| Self::read(&folder.to_string_lossy()["/proc/".len()..]);
        folders.map(usage).sum()
    }

    fn read(folder: &str) -> Self {
        let schedstat = fs::read_to_string(format!("/proc/{folder}/schedstat"));
        let status = fs::read_to_string(format!("/proc/{folder}/status")).unwrap_or_default();
        Usage {
            cpu: schedstat.ok().and_then(|text| cpu_time(&text)),
            sleeps: number(&status, "voluntary_ctxt_switches:"),
            preemptions: number(&status, "nonvoluntary_ctxt_switches:"),
        }
    }

    /// The usage of the running thread while `f` runs.
    pub fn during<T>(f: impl FnOnce() -> T) -> (T, Self) {
        let before = Self::of_this_thread();
        let value = f();
        (value, Self::of_this_thread() - before)
    }

    /// Sleeps and preemptions.
    pub fn switches(&self) -> Option<u64> {
        Some(self.sleeps? + self.preemptions?)
    }
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, earlier: Usage) -> Usage {
        fn minus<V>(later: Option<V>, earlier: Option<V>, sub: fn(V, V) -> V) -> Option<V> {
            Some(sub(later?, earlier?))
        }
        Usage {
            cpu: minus(self.cpu, earlier.cpu, Duration::saturating_sub),
            sleeps: minus(self.sleeps, earlier.sleeps, u64::saturating_sub),
            preemptions: minus(self.preemptions, earlier.preemptions, u64::saturating_sub),
        }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(usages: I) -> Usage {
        usages.fold(Usage::NONE, |sum, one| Usage {
            cpu: sum.cpu.zip(one.cpu).map(|(a, b)| a + b),
            sleeps: sum.sleeps.zip(one.sleeps).map(|(a, b)| a + b),
            preemptions: sum.preemptions.zip(one.preemptions).map(|(a, b)| a + b),
        })
    }
}

/// The first word of `schedstat` is the time on a CPU, in nanoseconds.
fn cpu_time(schedstat: &str) -> Option<Duration> {
    let nanos = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

fn number(status: &str, field: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";

    fn used(millis: u64, sleeps: u64, preemptions: u64) -> Usage {
        Usage {
            cpu: Some(Duration::from_millis(millis)),
            sleeps: Some(sleeps),
            preemptions: Some(preemptions),
        }
    }

    #[test]
    fn sleeps_and_preemptions_are_told_apart() {
        assert_eq!(number(STATUS, "voluntary_ctxt_switches:"), Some(12));
        assert_eq!(number(STATUS, "nonvoluntary_ctxt_switches:"), Some(3));
    }

    #[test]
    fn what_is_not_there_or_not_a_number_is_unknown() {
        assert_eq!(number("", "voluntary_ctxt_switches:"), None);
        assert_eq!(
            number("voluntary_ctxt_switches:\tmany", "voluntary_ctxt_switches:"),
            None
        );
        assert_eq!(cpu_time(""), None);
    }

    #[test]
    fn cpu_time_is_the_first_word() {
        assert_eq!(
            cpu_time("1500000 77 3\n"),
            Some(Duration::from_micros(1500))
        );
    }

    #[test]
    fn usages_add_up_and_an_unknown_part_makes_that_sum_unknown() {
        let both: Usage = [used(2, 5, 1), used(3, 7, 0)].into_iter().sum();
        assert_eq!(both, used(5, 12, 1));
        assert_eq!(both.switches(), Some(13));
        let half_known = Usage {
            cpu: None,
            ..used(0, 1, 1)
        };
        let sum: Usage = [used(2, 5, 1), half_known].into_iter().sum();
        assert_eq!(
            (sum.cpu, sum.sleeps, sum.preemptions),
            (None, Some(6), Some(2))
        );
        assert_eq!(used(5, 12, 1) - used(2, 5, 1), used(3, 7, 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_busy_thread_uses_cpu_time_and_a_waiting_one_sleeps() {
        let work = Duration::from_millis(5);
        let (spun, busy) = Usage::during(|| {
            let start = std::time::Instant::now();
            let mut spun = 0_u64;
            while start.elapsed() < work {
                spun = std::hint::black_box(spun + 1);
            }
            spun
        });
        assert!(spun > 0);
        // Less than the wall clock says if others want the CPU too, but not nothing.
        assert!(busy.cpu.is_none_or(|cpu| cpu > Duration::ZERO), "{busy:?}");
        let ((), asleep) = Usage::during(|| std::thread::sleep(Duration::from_millis(1)));
        assert!(asleep.sleeps.is_none_or(|sleeps| sleeps >= 1), "{asleep:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_of_a_process_are_found_by_how_their_names_begin() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("sleeps-often".into());
        let thread = thread.spawn(move || {
            for _ in 0..3 {
                std::thread::sleep(Duration::from_micros(100));
            }
            begin.send(()).unwrap();
            ended.recv()
        });
        begun.recv().unwrap();
        let named = |name| Usage::of_process(std::process::id(), name).sleeps;
        assert!(named("sleeps-often").is_none_or(|sleeps| sleeps >= 3));
        assert_eq!(named("sleeps-never"), Some(0));
        drop(end);
        let _ = thread.unwrap().join();
        assert_eq!(Usage::of_process(u32::MAX, "").sleeps, None);
    }
}
