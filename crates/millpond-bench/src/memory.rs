//! The resident memory of a process, from `/proc`.
//!
//! Every language counts its memory in its own way, and none of these ways has what its allocator holds
//! in reserve. Resident memory is the same for all: pages that no other process can use. It is read in a
//! process in which nothing else has happened: an allocator does not return memory that it may need again,
//! so the second candidate would find memory that it need not allocate.

use std::fs;

/// The memory of timers, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The memory of all of them while they wait.
    pub resident: u64,
    /// The memory that is still held when as many have been cancelled, and cannot be used by others.
    pub kept: u64,
}

/// The resident memory of this process, in bytes; `None` where the kernel does not tell.
pub fn resident() -> Option<u64> {
    parse(&fs::read_to_string("/proc/self/smaps_rollup").ok()?)
}

fn parse(rollup: &str) -> Option<u64> {
    let value = rollup.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resident_is_one_line_of_the_sum_of_all_maps() {
        let rollup = "55ac-7ffe ---p 00000000 00:00 0  [rollup]\nRss:   1600 kB\nPss:    350 kB\n";
        assert_eq!(parse(rollup), Some(1_638_400));
        assert_eq!(parse("Pss:    350 kB\n"), None);
        assert_eq!(parse("Rss:    many kB\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_written_to_is_resident() {
        const LARGE: usize = 64 << 20;
        let before = resident();
        let written = std::hint::black_box(vec![1_u8; LARGE]);
        let after = resident();
        // Other tests may give some back meanwhile, but hardly half as much.
        let more = before
            .zip(after)
            .map(|(before, after)| after.saturating_sub(before));
        assert!(more.is_none_or(|more| more > LARGE as u64 / 2), "{more:?}");
        drop(written);
    }
}
