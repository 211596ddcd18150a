//! Cache-line padding.
//!
//! Two words that different threads write must not share a line, or each write takes the line from the other
//! core (about 100 ns there and back on a small server). 128 bytes, not 64: x86_64 prefetches lines in pairs,
//! and some aarch64 cores have lines of 128.

use core::fmt;
use core::ops::{Deref, DerefMut};

/// A value on cache lines of its own.
///
/// ```
/// use millpond_raw::cache_padded::CachePadded;
///
/// let counters = [CachePadded::new(1_u64), CachePadded::new(2)];
/// assert_eq!(*counters[0] + *counters[1], 3);
/// assert!(size_of_val(&counters) >= 2 * 128);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(align(128))]
pub struct CachePadded<V> {
    value: V,
}

impl<V> CachePadded<V> {
    /// Pads `value`.
    pub const fn new(value: V) -> Self {
        CachePadded { value }
    }

    /// Returns the value.
    pub fn into_inner(self) -> V {
        self.value
    }
}

impl<V> Deref for CachePadded<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

impl<V> DerefMut for CachePadded<V> {
    fn deref_mut(&mut self) -> &mut V {
        &mut self.value
    }
}

impl<V: fmt::Debug> fmt::Debug for CachePadded<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_never_share_a_pair_of_lines() {
        let pair = [CachePadded::new(0_u8), CachePadded::new(0_u8)];
        let first = (&raw const pair[0]).addr();
        let second = (&raw const pair[1]).addr();
        assert_eq!(first % 128, 0);
        assert_eq!(second - first, 128);
    }
}
