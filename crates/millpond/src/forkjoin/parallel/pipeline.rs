//! Loops, as users write them.

use super::drive::{Loop, Stop};
use super::pairs::{Enumerated, Zipped};
use super::sink::{Best, Collect, FindAny, Fold, ForEach, Sink, Summed, TryForEach};
use super::source::{Chunks, ChunksMut, IntoSource, Source};
use super::stage::{AsIs, Filter, Map, MapInit, Stage};
use crate::interrupt::{self, Interrupted};
use std::cmp::Ordering;
use std::iter::Sum;
use std::sync::Arc;
use std::task::Waker;

/// A loop over the items of a slice, a vector or a range of integers, whose parts may run at the same time.
///
/// Items are `&T` of `&[T]`, `&mut T` of `&mut [T]`, `T` of `Vec<T>`, integers of a range.
///
/// ```
/// use millpond::forkjoin::{ForkJoinPool, parallel};
///
/// let mut sacks = vec![1, 2, 3];
/// parallel::over(&mut sacks).for_each(|sack| *sack *= 10);
/// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
/// let sum: i32 = pool.install(|| parallel::over(&sacks).sum());
/// assert_eq!(sum, 60);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// If a range has more items than `usize` can count.
#[doc(alias = "parallelStream")]
#[doc(alias = "par_iter")]
pub fn over<I: IntoSource>(items: I) -> Parallel<I::Source, AsIs> {
    Parallel::new(items.into_source())
}

/// A loop over slices of `size` items each; the last one may be shorter.
///
/// # Panics
///
/// If the size is 0.
///
/// ```
/// use millpond::forkjoin::parallel;
///
/// let sums: Vec<i32> = parallel::chunks(&[1, 2, 3, 4, 5], 2).map(|pair| pair.iter().sum()).collect();
/// assert_eq!(sums, [3, 7, 5]);
/// ```
#[doc(alias = "par_chunks")]
pub fn chunks<T: Sync>(slice: &[T], size: usize) -> Parallel<Chunks<'_, T>, AsIs> {
    Parallel::new(Chunks::new(slice, size))
}

/// A loop over slices of `size` items each, to be changed; the last one may be shorter.
///
/// # Panics
///
/// If the size is 0.
///
/// ```
/// use millpond::forkjoin::parallel;
///
/// let mut rows = vec![3, 1, 2, 9, 8, 7];
/// parallel::chunks_mut(&mut rows, 3).for_each(|row| row.sort());
/// assert_eq!(rows, [1, 2, 3, 7, 8, 9]);
/// ```
#[doc(alias = "par_chunks_mut")]
pub fn chunks_mut<T: Send>(slice: &mut [T], size: usize) -> Parallel<ChunksMut<'_, T>, AsIs> {
    Parallel::new(ChunksMut::new(slice, size))
}

/// A loop whose parts may run at the same time: see [`over`].
///
/// Nothing happens before the last method of the chain is called. Closures are called on any worker, several at a time, so
/// they are `Fn` and `Sync`.
#[derive(Debug)]
#[must_use = "a loop does nothing before its last method is called"]
pub struct Parallel<S, O> {
    source: S,
    stage: O,
}

impl<S> Parallel<S, AsIs> {
    fn new(source: S) -> Self {
        let stage = AsIs;
        Parallel { source, stage }
    }
}

impl<S: Source> Parallel<S, AsIs> {
    /// Each item with its number, from 0. It comes first in the chain: behind a filter a part does not know how many items
    /// others have left.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// let mut sacks = vec![0; 4];
    /// parallel::over(&mut sacks).enumerate().for_each(|(number, sack)| *sack = number * 10);
    /// assert_eq!(sacks, [0, 10, 20, 30]);
    /// ```
    pub fn enumerate(self) -> Parallel<Enumerated<S>, AsIs> {
        Parallel::new(Enumerated::new(self.source))
    }

    /// Each item with the one of `other` in the same place, as far as both go. It comes first in the chain, too.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// let (mut sum, more) = (vec![1, 2, 3], [10, 20, 30]);
    /// parallel::over(&mut sum).zip(&more).for_each(|(sum, more)| *sum += more);
    /// assert_eq!(sum, [11, 22, 33]);
    /// ```
    pub fn zip<I: IntoSource>(self, other: I) -> Parallel<Zipped<S, I::Source>, AsIs> {
        Parallel::new(Zipped::new(self.source, other.into_source()))
    }
}

impl<S: Source, O: Stage<S::Item>> Parallel<S, O> {
    /// Turns each item into another one.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// let names: Vec<String> = parallel::over(1..4).map(|n| format!("sack {n}")).collect();
    /// assert_eq!(names, ["sack 1", "sack 2", "sack 3"]);
    /// ```
    pub fn map<T, F: Fn(O::Out) -> T + Sync>(self, f: F) -> Parallel<S, Map<O, F>> {
        let (source, previous) = (self.source, self.stage);
        let stage = Map { previous, f };
        Parallel { source, stage }
    }

    /// Turns each item into another one, with a value that `init` makes for each part of the loop: a buffer, a random number
    /// generator. The number of parts depends on how many workers are idle.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    /// use std::fmt::Write;
    ///
    /// let lengths: Vec<usize> = parallel::over(vec![7, 42, 365])
    ///     .map_init(String::new, |buffer, number| {
    ///         buffer.clear();
    ///         write!(buffer, "{number}").unwrap();
    ///         buffer.len()
    ///     })
    ///     .collect();
    /// assert_eq!(lengths, [1, 2, 3]);
    /// ```
    pub fn map_init<A, T, G, F>(self, init: G, f: F) -> Parallel<S, MapInit<O, G, F>>
    where
        G: Fn() -> A + Sync,
        F: Fn(&mut A, O::Out) -> T + Sync,
    {
        let (source, previous) = (self.source, self.stage);
        let stage = MapInit { previous, init, f };
        Parallel { source, stage }
    }

    /// Keeps the items for which `f` returns true.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// assert_eq!(parallel::over(0..10).filter(|n| n % 3 == 0).collect(), [0, 3, 6, 9]);
    /// ```
    pub fn filter<F: Fn(&O::Out) -> bool + Sync>(self, f: F) -> Parallel<S, Filter<O, F>> {
        let (source, previous) = (self.source, self.stage);
        let stage = Filter { previous, f };
        Parallel { source, stage }
    }

    fn run<K: Sink<O::Out>>(self, sink: &K, stop: &Stop) -> K::Part {
        let Parallel { source, stage } = self;
        let stage = &stage;
        Loop { stage, sink, stop }.run(source)
    }

    /// Calls `f` with each item.
    ///
    /// # Panics
    ///
    /// If `f` panics, when all parts have ended. The same holds for all methods that take closures.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// let mut sacks = vec![1, 2, 3];
    /// parallel::over(&mut sacks).for_each(|sack| *sack += 1);
    /// assert_eq!(sacks, [2, 3, 4]);
    /// ```
    #[doc(alias = "forEach")]
    pub fn for_each<F: Fn(O::Out) + Sync>(self, f: F) {
        self.run(&ForEach(&f), &Stop::default());
    }

    /// Calls `f` with each item, until one call fails or the calling task is [interrupted](crate::interrupt). Then no part
    /// begins another block of items.
    ///
    /// # Errors
    ///
    /// The error of the first item, in order, among those that failed; or [`Interrupted`].
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    /// use std::error::Error;
    ///
    /// type Failure = Box<dyn Error + Send + Sync>;
    ///
    /// let parse = |text: &&str| -> Result<(), Failure> {
    ///     text.parse::<u32>()?;
    ///     Ok(())
    /// };
    /// assert!(parallel::over(&["7", "42"]).try_for_each(parse).is_ok());
    /// assert!(parallel::over(&["7", "seven"]).try_for_each(parse).is_err());
    /// ```
    pub fn try_for_each<E, F>(self, f: F) -> Result<(), E>
    where
        E: From<Interrupted> + Send,
        F: Fn(O::Out) -> Result<(), E> + Sync,
    {
        let stop = Arc::new(Stop::default());
        let sink = TryForEach { f: &f, stop: &stop };
        let waker = || Waker::from(Arc::clone(&stop));
        let done = interrupt::forward_to(waker, || self.run(&sink, &stop));
        if done.is_ok() && stop.has_cut() {
            // No call has failed, so it was the interrupt. This reports it, unless a closure has done so.
            let _ = interrupt::check();
            return Err(Interrupted.into());
        }
        done
    }

    /// Folds the items of each part, starting with the value of `init`, and merges the results of the parts in order.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// let words = ["mill", "pond", "wheel"];
    /// let text = parallel::over(&words).fold(String::new, |text, word| text + word, |left, right| left + &right);
    /// assert_eq!(text, "millpondwheel");
    /// ```
    #[doc(alias = "reduce")]
    pub fn fold<A, G, F, M>(self, init: G, f: F, merge: M) -> A
    where
        A: Send,
        G: Fn() -> A + Sync,
        F: Fn(A, O::Out) -> A + Sync,
        M: Fn(A, A) -> A + Sync,
    {
        let (init, f, merge) = (&init, &f, &merge);
        self.run(&Fold { init, f, merge }, &Stop::default())
    }

    /// Combines all items into one. `f` must be associative, and the value of `identity` must be neutral.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// assert_eq!(parallel::over(1..=5_u64).reduce(|| 1, |left, right| left * right), 120);
    /// ```
    pub fn reduce<G, F>(self, identity: G, f: F) -> O::Out
    where
        O::Out: Send,
        G: Fn() -> O::Out + Sync,
        F: Fn(O::Out, O::Out) -> O::Out + Sync,
    {
        self.fold(identity, &f, &f)
    }

    /// The sum. A sum of floats may differ in its last digits from one run to the next, because parts are summed first.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// assert_eq!(parallel::over(&[1, 2, 3]).sum::<i32>(), 6);
    /// ```
    pub fn sum<T: Send + Sum<O::Out> + Sum<T>>(self) -> T {
        self.run(&Summed::new(), &Stop::default())
    }

    /// How many items there are.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// assert_eq!(parallel::over(0..100).filter(|n| n % 7 == 0).count(), 15);
    /// ```
    pub fn count(self) -> usize {
        self.fold(|| 0, |count, _| count + 1, |left, right| left + right)
    }

    /// The first of the smallest items.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// let sacks = [("rye", 28.5_f64), ("oats", 23.0), ("wheat", 23.0)];
    /// let lightest = parallel::over(&sacks).min_by(|a, b| a.1.total_cmp(&b.1));
    /// assert_eq!(lightest, Some(&("oats", 23.0)));
    /// ```
    #[doc(alias = "min")]
    pub fn min_by<F: Fn(&O::Out, &O::Out) -> Ordering + Sync>(self, compare: F) -> Option<O::Out>
    where
        O::Out: Send,
    {
        let (compare, replaces) = (&compare, Ordering::is_lt as fn(_) -> _);
        self.run(&Best { compare, replaces }, &Stop::default())
    }

    /// The last of the greatest items.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// assert_eq!(parallel::over(&["mill", "pond", "wheel"]).max_by(|a, b| a.len().cmp(&b.len())), Some(&"wheel"));
    /// ```
    #[doc(alias = "max")]
    pub fn max_by<F: Fn(&O::Out, &O::Out) -> Ordering + Sync>(self, compare: F) -> Option<O::Out>
    where
        O::Out: Send,
    {
        let (compare, replaces) = (&compare, Ordering::is_ge as fn(_) -> _);
        self.run(&Best { compare, replaces }, &Stop::default())
    }

    /// An item for which `wanted` returns true: the one that is found first, or none. When it is found, no part begins
    /// another block of items.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// let found = parallel::over(2..1_000_000_u64).find_any(|n| 999_983 % n == 0);
    /// assert_eq!(found, Some(999_983));
    /// ```
    #[doc(alias = "findAny")]
    #[doc(alias = "anyMatch")]
    pub fn find_any<F: Fn(&O::Out) -> bool + Sync>(self, wanted: F) -> Option<O::Out>
    where
        O::Out: Send,
    {
        let stop = &Stop::default();
        let wanted = &wanted;
        self.run(&FindAny { wanted, stop }, stop)
    }

    /// All items, in their order. Other collections are made of the vector: `.collect().into_iter().collect()`.
    ///
    /// ```
    /// use millpond::forkjoin::parallel;
    ///
    /// let squares = parallel::over(&[1, 2, 3]).map(|n| n * n).collect();
    /// assert_eq!(squares, [1, 4, 9]);
    /// ```
    #[doc(alias = "toList")]
    pub fn collect(self) -> Vec<O::Out>
    where
        O::Out: Send,
    {
        self.run(&Collect, &Stop::default()).into_vec()
    }
}
