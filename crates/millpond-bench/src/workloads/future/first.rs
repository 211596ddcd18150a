//! The first of several results, on one thread; and timeouts, which are a race with a clock.
//!
//! | work | what is done |
//! |---|---|
//! | any | [`MEMBERS`] results are awaited, one of them comes, and the others are dropped |
//! | race | a result is awaited beside one that never comes, which is the same all the time: nothing may pile up there |
//! | time-out | a result is limited to an hour, and comes at once |
//! | time-outs | the same, with [`BATCH`] results that wait at the same time |
//!
//! Peers that are polled are polled once before anything comes, so that they wait for everything.

use super::Work;
use super::alone::{alone, begin};
use crate::harness::Sample;
use anyhow::{Context, Result, bail, ensure};
use async_io::Timer;
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::{Either, select, select_all};
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, future::Shared};
use millpond::future::{Completable, any_of, promise};
use std::hint::black_box;
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How many results are awaited at the same time.
pub const MEMBERS: u64 = 10;

/// How many timeouts run at the same time.
pub const BATCH: u64 = 1_000;

/// No timeout comes.
const FAR: Duration = Duration::from_secs(3_600);

/// So many links to what is over may stay at a result that never comes.
const FEW: usize = 100;

fn same(got: u64, expected: u64) -> Result<()> {
    ensure!(got == expected, "{got} came instead of {expected}");
    Ok(())
}

fn batches(operations: u64) -> u64 {
    operations.div_ceil(BATCH).max(1)
}

/// The number of operations that are really done.
fn rounded(work: Work, operations: u64) -> u64 {
    match work {
        Work::TimeOuts => batches(operations) * BATCH,
        _ => operations.max(1),
    }
}

fn not_asked<T>(work: Work) -> Result<T> {
    bail!("it is not asked for {work:?}")
}

/// Ours.
///
/// # Errors
///
/// If another result comes than should.
pub fn millpond(work: Work, operations: u64) -> Result<Sample> {
    let operations = rounded(work, operations);
    let numbers = (0..operations).map(black_box);
    const OPEN: &str = "nobody else completes it";
    match work {
        Work::Any => alone(operations, || {
            for number in numbers {
                let (promises, members): (Vec<_>, Vec<Completable<u64>>) =
                    (0..MEMBERS).map(|_| promise()).unzip();
                let first = any_of(members);
                let promise = &promises[(number % MEMBERS) as usize];
                promise.complete(number).ok().context(OPEN)?;
                same(first.join()?, number)?;
            }
            Ok(())
        }),
        Work::Race => alone(operations, || {
            let (_kept, never): (_, Completable<u64>) = promise();
            for number in numbers {
                let (promise, source) = promise();
                let first = never.clone().race(source);
                promise.complete(number).ok().context(OPEN)?;
                same(first.join()?, number)?;
            }
            let kept = Completable::dependents(&never);
            ensure!(kept <= FEW, "{kept} races that are over are kept");
            Ok(())
        }),
        Work::TimeOut => alone(operations, || {
            for number in numbers {
                let (promise, source): (_, Completable<u64>) = promise();
                let limited = source.or_timeout(FAR);
                promise.complete(number).ok().context(OPEN)?;
                same(limited.join()?, number)?;
            }
            Ok(())
        }),
        Work::TimeOuts => alone(operations, || {
            let mut limited = Vec::new();
            for batch in 0..batches(operations) {
                limited.extend((0..BATCH).map(|_| {
                    let (promise, source): (_, Completable<u64>) = promise();
                    (promise, source.or_timeout(FAR))
                }));
                for (number, (promise, limited)) in (batch..).zip(limited.drain(..)) {
                    promise.complete(number).ok().context(OPEN)?;
                    same(limited.join()?, number)?;
                }
            }
            Ok(())
        }),
        _ => not_asked(work),
    }
}

const RECEIVED: &str = "it is received";

/// `futures`: `select_all`, and `select` with a future that is `Shared`.
///
/// # Errors
///
/// If another result comes than should.
pub fn select_futures(work: Work, operations: u64) -> Result<Sample> {
    let numbers = (0..operations).map(black_box);
    match work {
        Work::Any => alone(operations, || {
            block_on(async {
                for number in numbers {
                    let (mut senders, receivers): (Vec<_>, Vec<_>) =
                        (0..MEMBERS).map(|_| oneshot::channel()).unzip();
                    let mut first = select_all(receivers);
                    begin(&mut first).await?;
                    let sender = senders.swap_remove((number % MEMBERS) as usize);
                    sender.send(number).ok().context(RECEIVED)?;
                    same(first.await.0?, number)?;
                }
                Ok(())
            })
        }),
        Work::Race => alone(operations, || {
            block_on(async {
                let (_kept, never) = oneshot::channel();
                let never: Shared<oneshot::Receiver<u64>> = never.shared();
                for number in numbers {
                    let (sender, receiver) = oneshot::channel();
                    let mut first = select(never.clone(), receiver);
                    begin(&mut first).await?;
                    sender.send(number).ok().context(RECEIVED)?;
                    let (Either::Left((got, _)) | Either::Right((got, _))) = first.await;
                    same(got?, number)?;
                }
                Ok(())
            })
        }),
        _ => not_asked(work),
    }
}

/// `futures`: the first of a `FuturesUnordered`.
///
/// # Errors
///
/// If another result comes than should.
pub fn unordered(work: Work, operations: u64) -> Result<Sample> {
    let Work::Any = work else {
        return not_asked(work);
    };
    alone(operations, || {
        block_on(async {
            for number in (0..operations).map(black_box) {
                let (mut senders, mut receivers): (Vec<_>, FuturesUnordered<_>) =
                    (0..MEMBERS).map(|_| oneshot::channel()).unzip();
                let mut first = receivers.next();
                begin(&mut first).await?;
                let sender = senders.swap_remove((number % MEMBERS) as usize);
                sender.send(number).ok().context(RECEIVED)?;
                same(first.await.context("there are members")??, number)?;
            }
            Ok(())
        })
    })
}

/// `tokio`: a `JoinSet`, a `CancellationToken` for what never comes, and `timeout`; in a runtime of this thread. Where many
/// wait, each does so in a task of its own.
///
/// # Errors
///
/// If another result comes than should.
pub fn tokio(work: Work, operations: u64) -> Result<Sample> {
    use tokio::sync::oneshot;
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let operations = rounded(work, operations);
    let numbers = (0..operations).map(black_box);
    match work {
        Work::Any => alone(operations, || {
            runtime.block_on(async {
                for number in numbers {
                    let (mut senders, receivers): (Vec<_>, Vec<_>) =
                        (0..MEMBERS).map(|_| oneshot::channel()).unzip();
                    let mut members: JoinSet<_> = receivers.into_iter().collect();
                    let sender = senders.swap_remove((number % MEMBERS) as usize);
                    sender.send(number).ok().context(RECEIVED)?;
                    let first = members.join_next().await.context("there are members")?;
                    same(first??, number)?;
                }
                Ok(())
            })
        }),
        Work::Race => alone(operations, || {
            runtime.block_on(async {
                let never = CancellationToken::new();
                for number in numbers {
                    let (sender, receiver) = oneshot::channel();
                    let cancelled = pin!(never.cancelled());
                    let mut first = select(cancelled, receiver);
                    begin(&mut first).await?;
                    sender.send(number).ok().context(RECEIVED)?;
                    let Either::Right((got, _)) = first.await else {
                        bail!("what never comes has come");
                    };
                    same(got?, number)?;
                }
                Ok(())
            })
        }),
        Work::TimeOut => alone(operations, || {
            runtime.block_on(async {
                for number in numbers {
                    let (sender, receiver) = oneshot::channel();
                    let mut limited = pin!(timeout(FAR, receiver));
                    begin(&mut limited).await?;
                    sender.send(number).ok().context(RECEIVED)?;
                    same(limited.await??, number)?;
                }
                Ok(())
            })
        }),
        Work::TimeOuts => alone(operations, || {
            runtime.block_on(async {
                let mut limited = Vec::new();
                for batch in 0..batches(operations) {
                    limited.extend((0..BATCH).map(|_| {
                        let (sender, receiver) = oneshot::channel();
                        (sender, tokio::spawn(timeout(FAR, receiver)))
                    }));
                    // All of them begin to wait.
                    tokio::spawn(std::future::ready(())).await?;
                    for (number, (sender, limited)) in (batch..).zip(limited.drain(..)) {
                        sender.send(number).ok().context(RECEIVED)?;
                        same(limited.await???, number)?;
                    }
                }
                Ok(())
            })
        }),
        _ => not_asked(work),
    }
}

/// smol: `or` with a `Timer`.
///
/// # Errors
///
/// If another result comes than should.
pub fn smol(work: Work, operations: u64) -> Result<Sample> {
    let Work::TimeOut = work else {
        return not_asked(work);
    };
    alone(operations, || {
        block_on(async {
            for number in (0..operations).map(black_box) {
                let (sender, receiver) = oneshot::channel();
                let received = async { receiver.await.ok() };
                let late = async {
                    Timer::after(FAR).await;
                    None
                };
                let mut limited = pin!(futures_lite::future::or(received, late));
                begin(&mut limited).await?;
                sender.send(number).ok().context(RECEIVED)?;
                same(limited.await.context("it is in time")?, number)?;
            }
            Ok(())
        })
    })
}
