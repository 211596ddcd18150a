//! One closure after the other.

use super::ForkJoin;
use anyhow::Result;

/// No pool.
#[derive(Debug)]
pub struct Sequential;

impl ForkJoin for Sequential {
    const NAME: &'static str = "sequential";
    type Context<'a> = ();

    fn open(_threads: usize) -> Result<Self> {
        Ok(Sequential)
    }

    fn run<R: Send>(&self, f: impl FnOnce(&mut ()) -> R + Send) -> R {
        f(&mut ())
    }

    #[inline]
    fn join<A: Send, B: Send>(
        context: &mut (),
        first: impl FnOnce(&mut ()) -> A + Send,
        second: impl FnOnce(&mut ()) -> B + Send,
    ) -> (A, B) {
        let left = first(context);
        (left, second(context))
    }

    fn close(self) {}
}
