//! Ours: [`ForkJoinPool`].

use super::ForkJoin;
use anyhow::Result;
use millpond::executor::Lifecycle;
use millpond::forkjoin::{self, ForkJoinPool, parallel};

/// [`ForkJoinPool`], as it is built by default.
#[derive(Debug)]
pub struct Millpond(pub(crate) ForkJoinPool);

impl ForkJoin for Millpond {
    const NAME: &'static str = "millpond";
    type Context<'a> = ();

    fn open(threads: usize) -> Result<Self> {
        let pool = ForkJoinPool::builder("bench").parallelism(threads);
        Ok(Millpond(pool.build()?))
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
        forkjoin::join(|| first(&mut ()), || second(&mut ()))
    }

    fn sum(items: &[u64]) -> u64 {
        parallel::over(items).sum()
    }

    fn sort(items: &mut [u64]) {
        parallel::sort(items);
    }

    fn sort_unstable(items: &mut [u64]) {
        parallel::sort_unstable(items);
    }

    fn close(self) {
        self.0
            .close()
            .expect("no task of the bench closes its pool");
    }
}
