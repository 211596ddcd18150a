//! Chains of [`STAGES`] maps, each of which adds one, made again and again on one thread.
//!
//! The source is complete before the first stage is made; or it is completed when the whole chain hangs on it. A future
//! does nothing until it is polled, so the chain is polled once before its source is completed: then somebody waits, as
//! everywhere else.

use super::alone::{alone, begin};
use crate::harness::Sample;
use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::{BoxFuture, Shared, ready};
use millpond::future::{self, Completable};
use std::hint::black_box;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// How long a chain is.
pub const STAGES: u64 = 1_000;

/// Something that can be chained.
pub trait Chain: Sized {
    /// Its name.
    const NAME: &'static str;

    /// What it takes.
    ///
    /// # Errors
    ///
    /// If it is not there.
    fn open() -> Result<Self>;

    /// The end of a chain whose source is complete.
    ///
    /// # Errors
    ///
    /// If there is no result.
    fn done(&self, first: u64) -> Result<u64>;

    /// The end of a chain whose source is completed when the chain is there.
    ///
    /// # Errors
    ///
    /// If there is no result.
    fn pending(&self, first: u64) -> Result<u64>;
}

/// So many stages, in whole chains.
///
/// # Errors
///
/// If the end of a chain is not what it should be.
pub fn round<C: Chain>(is_done: bool, stages: u64) -> Result<Sample> {
    let chains = stages.div_ceil(STAGES).max(1);
    let chain = C::open()?;
    alone(chains * STAGES, || {
        for first in 0..chains {
            let first = black_box(first);
            let last = if is_done {
                chain.done(first)?
            } else {
                chain.pending(first)?
            };
            ensure!(
                last == first + STAGES,
                "the end of a chain from {first} is {last}"
            );
        }
        Ok(())
    })
}

/// Ours.
#[derive(Debug)]
pub struct Millpond;

fn mapped(source: Completable<u64>) -> Completable<u64> {
    (0..STAGES).fold(source, |last, _| last.map(|value| value + 1))
}

impl Chain for Millpond {
    const NAME: &'static str = "millpond map";

    fn open() -> Result<Self> {
        Ok(Millpond)
    }

    fn done(&self, first: u64) -> Result<u64> {
        Ok(mapped(Completable::completed(first)).join()?)
    }

    fn pending(&self, first: u64) -> Result<u64> {
        let (promise, source) = future::promise();
        let last = mapped(source);
        promise.complete(first).ok().context("it is complete")?;
        Ok(last.join()?)
    }
}

/// `futures`: a box for each stage, because a loop needs one type.
#[derive(Debug)]
pub struct Boxed;

fn boxed(source: BoxFuture<'static, u64>) -> BoxFuture<'static, u64> {
    (0..STAGES).fold(source, |last, _| last.map(|value| value + 1).boxed())
}

/// The value that the channel brings.
fn received(value: Result<u64, oneshot::Canceled>) -> u64 {
    value.expect("the sender sends")
}

impl Chain for Boxed {
    const NAME: &'static str = "futures map, boxed";

    fn open() -> Result<Self> {
        Ok(Boxed)
    }

    fn done(&self, first: u64) -> Result<u64> {
        Ok(block_on(boxed(ready(first).boxed())))
    }

    fn pending(&self, first: u64) -> Result<u64> {
        let (sender, receiver) = oneshot::channel();
        let mut last = boxed(receiver.map(received).boxed());
        block_on(async {
            begin(&mut last).await?;
            sender.send(first).ok().context("it is received")?;
            Ok(last.await)
        })
    }
}

/// `futures`: each stage can have several readers, as a completable can.
#[derive(Debug)]
pub struct SharedMaps;

type SharedMap = Shared<BoxFuture<'static, u64>>;

fn shared(source: BoxFuture<'static, u64>) -> SharedMap {
    (0..STAGES).fold(source.shared(), |last, _| {
        last.map(|value| value + 1).boxed().shared()
    })
}

impl Chain for SharedMaps {
    const NAME: &'static str = "futures map, boxed and Shared";

    fn open() -> Result<Self> {
        Ok(SharedMaps)
    }

    fn done(&self, first: u64) -> Result<u64> {
        Ok(block_on(shared(ready(first).boxed())))
    }

    fn pending(&self, first: u64) -> Result<u64> {
        let (sender, receiver) = oneshot::channel();
        let mut last = shared(receiver.map(received).boxed());
        block_on(async {
            begin(&mut last).await?;
            sender.send(first).ok().context("it is received")?;
            Ok(last.await)
        })
    }
}

/// `tokio`: a task for each stage, which awaits the one before, in a runtime of one thread.
#[derive(Debug)]
pub struct Hops(Runtime);

async fn hops(source: JoinHandle<u64>) -> Result<u64> {
    let last = (0..STAGES).fold(source, |last, _| {
        tokio::spawn(async move { last.await.expect("it does not panic") + 1 })
    });
    Ok(last.await?)
}

impl Chain for Hops {
    const NAME: &'static str = "tokio spawn for each stage";

    fn open() -> Result<Self> {
        Ok(Hops(Builder::new_current_thread().build()?))
    }

    fn done(&self, first: u64) -> Result<u64> {
        self.0
            .block_on(async { hops(tokio::spawn(ready(first))).await })
    }

    /// The runtime runs the tasks in their order while the last is awaited, and the one that sends is the last of them.
    fn pending(&self, first: u64) -> Result<u64> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.0.block_on(async {
            let source = tokio::spawn(async { receiver.await.expect("the sender sends") });
            let last = (0..STAGES).fold(source, |last, _| {
                tokio::spawn(async move { last.await.expect("it does not panic") + 1 })
            });
            tokio::spawn(async move { sender.send(first) });
            Ok(last.await?)
        })
    }
}
