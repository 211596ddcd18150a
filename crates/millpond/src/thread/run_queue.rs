//! How many threads of the machine want a CPU at this moment, and how many CPUs there are.
//!
//! The kernel counts the threads that run or wait for a CPU, and shows the number as the first half of the fourth field
//! of `/proc/loadavg`. To read it takes 2 to 5 µs. In a container it is the number of the whole machine, so it is
//! compared with all CPUs of the machine and not with those of the process: a number that is too large then is certain
//! to be too large.
//!
//! Where the file is missing, or has another form, nothing is known.

use std::fs::File;
use std::io::Read;

/// The number of threads that run or wait for a CPU, the calling one included.
pub(super) fn runnable_threads() -> Option<u64> {
    parse_load(read("/proc/loadavg", &mut [0; 128])?)
}

/// The number of CPUs that are online.
pub(super) fn online_cpus() -> Option<u64> {
    parse_list(read("/sys/devices/system/cpu/online", &mut [0; 1024])?)
}

/// The text of a small file; `None` if it is larger than the buffer.
fn read<'b>(path: &str, buffer: &'b mut [u8]) -> Option<&'b str> {
    let len = File::open(path).ok()?.read(buffer).ok()?;
    if len == buffer.len() {
        return None;
    }
    std::str::from_utf8(&buffer[..len]).ok()
}

/// As in `0.20 0.18 0.12 3/80 11206`.
fn parse_load(text: &str) -> Option<u64> {
    let (runnable, _) = text.split_ascii_whitespace().nth(3)?.split_once('/')?;
    runnable.parse().ok()
}

/// As in `0-3,8`.
fn parse_list(text: &str) -> Option<u64> {
    let mut cpus = 0;
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        cpus += last.checked_sub(first)? + 1;
    }
    Some(cpus)
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_runnable_threads_is_the_fourth_field_before_the_slash() {
        assert_eq!(parse_load("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(parse_load("4.68 1.75 0.74 512/1220 30129\n"), Some(512));
        for other in ["", "0.20 0.18 0.12", "0.20 0.18 0.12 3 80", "a b c d/e"] {
            assert_eq!(parse_load(other), None, "{other}");
        }
    }

    #[test]
    fn a_list_of_cpus_counts_ranges_and_single_ones() {
        for (list, cpus) in [("0\n", 1), ("0-1\n", 2), ("0-3,8,10-11\n", 7)] {
            assert_eq!(parse_list(list), Some(cpus), "{list}");
        }
        for other in ["", "3-0", "0-", "all"] {
            assert_eq!(parse_list(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_that_fills_the_buffer_is_not_understood() {
        assert_eq!(read("/proc/self/status", &mut [0; 16]), None);
        assert_eq!(read("/no/such/file", &mut [0; 16]), None);
    }

    /// Where the kernel tells at all, the thread that asks is one of those that run.
    #[test]
    fn the_calling_thread_is_runnable() {
        assert!(runnable_threads().is_none_or(|threads| threads >= 1));
        assert!(online_cpus().is_none_or(|cpus| cpus >= 1));
    }
}
