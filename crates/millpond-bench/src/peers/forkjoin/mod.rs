//! Fork-join pools behind one trait.
//!
//! | file | what |
//! |---|---|
//! | [`millpond`] | ours |
//! | [`rayon`], [`chili`] | crates |
//! | [`sequential`] | no pool at all, as a reference |
//!
//! Each is called as its users call it: `chili` hands a scope through every call, the others know their worker by the
//! thread.
//!
//! # How many threads
//!
//! A number of threads is the number of those that compute. Ours and `rayon` have so many workers, and the caller waits.
//! With `chili` the caller computes beside one worker less; its thread for the heartbeat is not among them.
//!
//! # Which closure is first
//!
//! [`ForkJoin::join`] calls its first closure at once, and lets others have the second. `chili` calls the *second* of its
//! own `join` first, so here it gets them the other way round. A tree that is laid out in memory in the order in which it
//! is walked is read twice as fast as one that is not: every candidate walks it in its best order.
//!
//! # Left out
//!
//! `forte`: of its versions Rust 1.95 builds 1.0.0-alpha.4 and older ones, and in an earlier measurement it hung in two of
//! five runs. A candidate that may hang has to be a guest, which can be ended: see [`crate::peers::guest`].

pub mod chili;
pub mod millpond;
pub mod rayon;
pub mod sequential;

use anyhow::Result;

/// A fork-join pool.
pub trait ForkJoin: Sized + Sync + 'static {
    /// Its name.
    const NAME: &'static str;

    /// What is handed from call to call.
    type Context<'a>;

    /// Opens one in which so many threads compute.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    fn open(threads: usize) -> Result<Self>;

    /// Runs a computation in it, and waits for its end.
    fn run<R: Send>(&self, f: impl FnOnce(&mut Self::Context<'_>) -> R + Send) -> R;

    /// Runs both closures, the second one perhaps elsewhere.
    fn join<A: Send, B: Send>(
        context: &mut Self::Context<'_>,
        first: impl FnOnce(&mut Self::Context<'_>) -> A + Send,
        second: impl FnOnce(&mut Self::Context<'_>) -> B + Send,
    ) -> (A, B);

    /// Its own sum over a slice, inside of [`run`](Self::run).
    fn sum(items: &[u64]) -> u64 {
        items.iter().sum()
    }

    /// Its own stable sort, inside of [`run`](Self::run).
    fn sort(items: &mut [u64]) {
        items.sort();
    }

    /// Its own sort, inside of [`run`](Self::run).
    fn sort_unstable(items: &mut [u64]) {
        items.sort_unstable();
    }

    /// Ends its threads.
    fn close(self);
}
