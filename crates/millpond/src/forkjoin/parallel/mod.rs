//! Loops over slices, ranges, chunks and vectors whose parts run at the same time, and sorting.
//!
//! ```
//! use millpond::forkjoin::parallel;
//!
//! let grains = vec![3_u64, 4, 5];
//! let flour: Vec<u64> = parallel::over(&grains).map(|grain| grain * 10).collect();
//! assert_eq!(flour, [30, 40, 50]);
//! let heavy = parallel::over(&flour).filter(|flour| **flour > 30).count();
//! assert_eq!(heavy, 2);
//! assert_eq!(parallel::over(1..=1_000_u64).sum::<u64>(), 500_500);
//! ```
//!
//! | what | how |
//! |---|---|
//! | begin | [`over`] a slice, a vector, a range of integers; [`chunks`], [`chunks_mut`] |
//! | number them, pair them | [`enumerate`](Parallel::enumerate), [`zip`](Parallel::zip) |
//! | change the items | [`map`](Parallel::map), [`map_init`](Parallel::map_init), [`filter`](Parallel::filter) |
//! | use each | [`for_each`](Parallel::for_each), [`try_for_each`](Parallel::try_for_each) |
//! | combine all | [`fold`](Parallel::fold), [`reduce`](Parallel::reduce), [`sum`](Parallel::sum), [`count`](Parallel::count), [`min_by`](Parallel::min_by), [`max_by`](Parallel::max_by) |
//! | look for one | [`find_any`](Parallel::find_any) |
//! | keep all, in order | [`collect`](Parallel::collect) |
//! | sort | [`sort`], [`sort_by`], [`sort_by_key`] (stable); [`sort_unstable`], [`sort_unstable_by`], [`sort_unstable_by_key`] |
//!
//! A loop runs in the pool of the calling worker, or else in [`ForkJoinPool::common`](super::ForkJoinPool::common);
//! `pool.install(|| ..)` chooses another one. If no other worker is idle, the whole loop runs in the caller.
//!
//! # When a loop splits
//!
//! No grain size needs to be tuned. A worker takes items in blocks of about 10 µs, and between two blocks one relaxed load
//! tells it whether another worker looks for work. Only then it splits the rest in two halves, and publishes one.
//!
//! # Panics and interruption
//!
//! A panic in one part stops the others at their next block, and then continues in the caller.
//! [`try_for_each`](Parallel::try_for_each) stops in the same way at the first error, and when the calling task is
//! interrupted. The other loops run to their end, as loops do.

// | file | what it holds |
// |---|---|
// | `pipeline` | `Parallel`: what users call |
// | `source`, `pairs` | what can be split and iterated over; items with their numbers, and pairs |
// | `stage` | the transformation of each item |
// | `sink` | the result of a part, and how two results are merged |
// | `drive` | the loop of a part: blocks, and when it splits |
// | `sort` | sorting |

mod drive;
mod pairs;
mod pipeline;
mod sink;
mod sort;
mod source;
mod stage;

pub use pairs::{Enumerated, Zipped};
pub use pipeline::{Parallel, chunks, chunks_mut, over};
pub use sort::{sort, sort_by, sort_by_key, sort_unstable, sort_unstable_by, sort_unstable_by_key};
pub use source::{Chunks, ChunksMut, IntoSource, Items, ItemsMut, Owned, Source, Span};
pub use stage::{AsIs, Filter, Map, MapInit, Stage};

pub(super) use drive::{join, run_inside};
