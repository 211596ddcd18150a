//! `chili`: a heartbeat, every 100 µs by default, makes one job of each thread visible to the others.

use super::ForkJoin;
use anyhow::{Context as _, Result};
use chili::{Config, Scope, ThreadPool};
use std::num::NonZero;

/// `chili::ThreadPool`.
#[derive(Debug)]
pub struct Chili(ThreadPool);

impl ForkJoin for Chili {
    const NAME: &'static str = "chili";
    type Context<'a> = Scope<'a>;

    fn open(threads: usize) -> Result<Self> {
        let threads = NonZero::new(threads).context("a pool has at least one thread")?;
        // Its workers are one less.
        Ok(Chili(ThreadPool::with_config(Config {
            thread_count: Some(threads),
            ..Config::default()
        })))
    }

    /// On the calling thread.
    fn run<R: Send>(&self, f: impl FnOnce(&mut Scope<'_>) -> R + Send) -> R {
        f(&mut self.0.scope())
    }

    /// It calls the second of its two first.
    #[inline]
    fn join<A: Send, B: Send>(
        context: &mut Scope<'_>,
        first: impl FnOnce(&mut Scope<'_>) -> A + Send,
        second: impl FnOnce(&mut Scope<'_>) -> B + Send,
    ) -> (A, B) {
        let (right, left) = context.join(second, first);
        (left, right)
    }

    fn close(self) {
        drop(self.0);
    }
}
