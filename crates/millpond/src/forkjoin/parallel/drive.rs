//! The loop of a part: it takes items in blocks, and splits the rest when another worker looks for work.
//!
//! ```text
//!   a part: | done | done | block |            rest            |
//!                                 ^ between blocks: does a worker look for work?
//!                                   no:  the next block
//!                                   yes: | left, goes on here | right, can be stolen |
//! ```
//!
//! An older job serves a thief as well as half of the rest, and is usually larger. So a part splits only if its worker has no
//! private job left. Otherwise the worker publishes the oldest private job.
//!
//! - **PARALLEL-1** Results of parts are merged in the order of their items, whichever worker has run them.
//! - **PARALLEL-2** A part that unwinds sets [`Stop`]. A part that sees it returns early, with a partial result. So only
//!   callers that set it, or that unwind themselves, see partial results.

use super::super::context::Context;
use super::super::install::install_outside;
use super::sink::Sink;
use super::source::Source;
use super::stage::Stage;
use millpond_raw::forkjoin as raw;
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use millpond_raw::timestamp::{self, Timestamp};
use std::mem;
use std::sync::Arc;
use std::task::Wake;

/// A block that took less than this, in nanoseconds, is followed by a larger one.
const MIN_BLOCK: u64 = 5_000;
/// A block that took longer is followed by a smaller one.
const MAX_BLOCK: u64 = 20_000;

/// The most items of a block. Inside of a block nothing checks the clock, [`Stop`] or requests of others, and later items may
/// take much longer than earlier ones.
const MAX_ITEMS: usize = 1_024;

/// The longest time that [`offer_older`] takes, in nanoseconds: twice the least wake delay of a worker.
const MAX_OFFER: u64 = 10_000;

/// Whether all parts of a loop should end early. It can be a waker.
#[derive(Debug, Default)]
pub(super) struct Stop {
    is_set: AtomicBool,
    has_cut: AtomicBool,
}

impl Stop {
    #[inline]
    pub(super) fn set(&self) {
        // Relaxed: what the parts have made comes to the caller through joins.
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether a part with items left has ended early. Called when all parts have ended.
    pub(super) fn has_cut(&self) -> bool {
        self.has_cut.load(Ordering::Relaxed)
    }

    /// Ends a part with items left, if it is set.
    #[inline]
    fn cut(&self) -> bool {
        let is_set = self.is_set.load(Ordering::Relaxed);
        if is_set {
            self.has_cut.store(true, Ordering::Relaxed);
        }
        is_set
    }
}

impl Wake for Stop {
    fn wake(self: Arc<Self>) {
        self.set();
    }
}

/// Runs `f` on this thread if it is a worker of any pool, or else in the pool that serves it.
pub(in super::super) fn run_inside<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    if raw::with_current(|here| here.is_some()) {
        return f();
    }
    install_outside(f)
}

/// Joins on a worker; on any other thread, one after the other. The first closure stays on this thread.
#[inline]
pub(in super::super) fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    raw::with_current(|here| match here {
        Some(here) => here.join(a, b),
        None => {
            let left = a();
            (left, b())
        }
    })
}

/// Whether the rest should be split for others.
fn is_split_wanted() -> bool {
    raw::with_current(|here| {
        let Some(local) = here else {
            return false;
        };
        let Some(context) = local.host().downcast_ref::<Context>() else {
            return false;
        };
        if context.slot().demand.get() == 0 {
            return false;
        }
        // Blocks are long, so the host may be called after each.
        local.reset_skip();
        if local.is_empty() {
            return true;
        }
        // A join lets the host publish the oldest job.
        local.join(|| (), || ());
        false
    })
}

/// Called before a long stretch without joins: publishes older jobs if another worker is looking for work.
///
/// The host decides at joins only. While all other workers sleep, it publishes nothing before its wake delay is over. So this
/// makes empty joins until then.
pub(super) fn offer_older() {
    raw::with_current(|here| {
        let Some(local) = here else {
            return;
        };
        let Some(context) = local.host().downcast_ref::<Context>() else {
            return;
        };
        let slot = context.slot();
        let begin = timestamp::now();
        while slot.demand.get() != 0 && slot.deque.jobs() == 0 && !local.is_empty() {
            local.reset_skip();
            local.join(|| (), || ());
            if timestamp::now().nanos_since(begin) > MAX_OFFER {
                return;
            }
            std::hint::spin_loop();
        }
    });
}

/// How many items there are in a block.
#[derive(Clone, Copy)]
struct Pace {
    block: usize,
    since: Timestamp,
}

impl Pace {
    fn new(block: usize) -> Self {
        let since = timestamp::now();
        Pace { block, since }
    }

    /// A block is over.
    fn step(&mut self) {
        let now = timestamp::now();
        let nanos = now.nanos_since(self.since);
        self.since = now;
        if nanos < MIN_BLOCK / 4 {
            self.block = (self.block * 4).min(MAX_ITEMS);
        } else if nanos < MIN_BLOCK {
            self.block = (self.block * 2).min(MAX_ITEMS);
        } else if nanos > MAX_BLOCK && self.block > 1 {
            self.block /= 2;
        }
    }
}

/// A loop, without its items.
pub(super) struct Loop<'a, O, K> {
    pub(super) stage: &'a O,
    pub(super) sink: &'a K,
    pub(super) stop: &'a Stop,
}

impl<O, K> Loop<'_, O, K> {
    /// Runs the loop over these items, in the pool of this worker or the common one.
    pub(super) fn run<S: Source>(&self, items: S) -> K::Part
    where
        O: Stage<S::Item>,
        K: Sink<O::Out>,
    {
        run_inside(|| self.part(items, 1))
    }

    /// Begins a part.
    fn part<S: Source>(&self, items: S, block: usize) -> K::Part
    where
        O: Stage<S::Item>,
        K: Sink<O::Out>,
    {
        let unwinding = SetOnUnwind(self.stop);
        let len = O::IS_EXACT.then(|| items.len());
        let part = self.sink.begin(len);
        let part = self.go_on(items, self.stage.begin(), part, Pace::new(block));
        mem::forget(unwinding);
        part
    }

    /// Goes on with a part.
    fn go_on<S: Source>(
        &self,
        mut rest: S,
        mut state: O::State,
        mut part: K::Part,
        mut pace: Pace,
    ) -> K::Part
    where
        O: Stage<S::Item>,
        K: Sink<O::Out>,
    {
        // In this frame, and not in an outer one: a join that unwinds waits for its other side first.
        let unwinding = SetOnUnwind(self.stop);
        loop {
            let len = rest.len();
            if len == 0 || self.stop.cut() {
                break;
            }
            // Less than a block is not worth a wake-up, unless it is one long item.
            if len > pace.block && is_split_wanted() {
                let (left, right) = rest.split();
                let block = pace.block;
                let (left, right) = join(
                    || self.go_on(left, state, part, pace),
                    || self.part(right, block),
                );
                part = self.sink.merge(left, right);
                break;
            }
            let count = len.min(pace.block);
            let block = rest.take(count);
            part = self.sink.feed(part, self.stage.run(&mut state, block));
            if count < len {
                pace.step();
            }
        }
        mem::forget(unwinding);
        part
    }
}

struct SetOnUnwind<'a>(&'a Stop);

impl Drop for SetOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}
