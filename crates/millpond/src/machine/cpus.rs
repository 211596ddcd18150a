//! [`CpuList`]: a set of CPU numbers in the kernel's notation, `0-3,8`.
//!
//! # Invariants
//! - **CPULIST-1** Ranges are sorted, do not overlap and do not touch. So equal sets have equal ranges,
//!   and a broken file that says `0-4294967295` costs one range instead of 16 GiB.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A set of CPU numbers, read and shown as the kernel writes it.
///
/// ```
/// use millpond::machine::CpuList;
///
/// let cpus: CpuList = "8,0-3".parse()?;
/// assert_eq!(cpus.len(), 5);
/// assert!(cpus.contains(8));
/// assert_eq!(cpus.to_string(), "0-3,8");
/// assert_eq!(cpus.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
/// # Ok::<(), millpond::machine::CpuListError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct CpuList {
    ranges: Vec<RangeInclusive<u32>>,
}

impl CpuList {
    /// How many CPUs are in the set.
    ///
    /// ```
    /// use millpond::machine::CpuList;
    ///
    /// let cpus: CpuList = "0-3,8".parse()?;
    /// assert_eq!(cpus.len(), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len(&self) -> usize {
        // CPULIST-1 bounds the sum by 2^32; the saturation is for 32-bit targets and their full set.
        self.ranges.iter().fold(0_usize, |sum, range| {
            sum.saturating_add((range.end() - range.start()) as usize)
                .saturating_add(1)
        })
    }

    /// Whether there is no CPU in the set.
    ///
    /// ```
    /// use millpond::machine::CpuList;
    ///
    /// let cpus: CpuList = "0-3,8".parse()?;
    /// let others: CpuList = "4-7".parse()?;
    /// assert!(!cpus.is_empty() && cpus.intersection(&others).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether the set has CPU number `cpu`.
    ///
    /// ```
    /// use millpond::machine::CpuList;
    ///
    /// let cpus: CpuList = "0-3,8".parse()?;
    /// assert!(cpus.contains(8) && !cpus.contains(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains(&self, cpu: u32) -> bool {
        self.ranges.iter().any(|range| range.contains(&cpu))
    }

    /// The CPU numbers, lowest first.
    ///
    /// ```
    /// use millpond::machine::CpuList;
    ///
    /// let cpus: CpuList = "0-3,8".parse()?;
    /// assert!(cpus.iter().eq([0, 1, 2, 3, 8]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().cloned().flatten()
    }

    /// The CPUs that are in both sets.
    ///
    /// ```
    /// use millpond::machine::CpuList;
    ///
    /// let allowed: CpuList = "2-127".parse()?;
    /// let online: CpuList = "0-7".parse()?;
    /// assert_eq!(allowed.intersection(&online).to_string(), "2-7");
    /// # Ok::<(), millpond::machine::CpuListError>(())
    /// ```
    pub fn intersection(&self, other: &Self) -> Self {
        let overlaps = self.ranges.iter().flat_map(|a| {
            other.ranges.iter().filter_map(move |b| {
                let (first, last) = (*a.start().max(b.start()), *a.end().min(b.end()));
                (first <= last).then_some(first..=last)
            })
        });
        Self::from_ranges(overlaps.collect())
    }

    /// Establishes CPULIST-1.
    fn from_ranges(mut ranges: Vec<RangeInclusive<u32>>) -> Self {
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<u32>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => merged.push(range),
            }
        }
        Self { ranges: merged }
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self::from_ranges(cpus.into_iter().map(|cpu| cpu..=cpu).collect())
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let ranges = text.split(',').map(|part| {
            range(part.trim()).ok_or_else(|| CpuListError {
                part: part.trim().to_owned(),
            })
        });
        Ok(Self::from_ranges(ranges.collect::<Result<_, _>>()?))
    }
}

fn range(part: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..=last)
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuList({self})")
    }
}

/// A text that is not a list of CPUs.
///
/// ```
/// use millpond::machine::CpuList;
///
/// let error = "0-3,x".parse::<CpuList>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`x` is neither a CPU number nor a range: write a list such as 0-3,8"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuListError {
    part: String,
}

impl fmt::Display for CpuListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = &self.part;
        write!(
            f,
            "`{part}` is neither a CPU number nor a range: write a list such as 0-3,8"
        )
    }
}

impl Error for CpuListError {}
