//! `rayon`: a pool of its own.

use super::ForkJoin;
use anyhow::Result;
use rayon::prelude::*;

/// `rayon::ThreadPool`.
#[derive(Debug)]
pub struct Rayon(pub(crate) rayon::ThreadPool);

impl ForkJoin for Rayon {
    const NAME: &'static str = "rayon";
    type Context<'a> = ();

    fn open(threads: usize) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        Ok(Rayon(pool.build()?))
    }

    fn run<R: Send>(&self, f: impl FnOnce(&mut ()) -> R + Send) -> R {
        self.0.install(|| f(&mut ()))
    }

    #[inline]
    fn join<A: Send, B: Send>(
        _context: &mut (),
        first: impl FnOnce(&mut ()) -> A + Send,
        second: impl FnOnce(&mut ()) -> B + Send,
    ) -> (A, B) {
        rayon::join(|| first(&mut ()), || second(&mut ()))
    }

    fn sum(items: &[u64]) -> u64 {
        items.par_iter().sum()
    }

    fn sort(items: &mut [u64]) {
        items.par_sort();
    }

    fn sort_unstable(items: &mut [u64]) {
        items.par_sort_unstable();
    }

    /// Its threads end by themselves soon after.
    fn close(self) {
        drop(self.0);
    }
}
