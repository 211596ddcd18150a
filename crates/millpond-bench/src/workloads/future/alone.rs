//! Work that one thread does alone.

use crate::harness::Sample;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

/// What it takes this thread to do the work, which is so many operations.
///
/// # Errors
///
/// That of the work.
pub fn alone(operations: u64, work: impl FnOnce() -> Result<()>) -> Result<Sample> {
    let ((done, elapsed), usage) = Usage::during(|| {
        let start = Instant::now();
        let done = work();
        (done, start.elapsed())
    });
    done?;
    Ok(Sample {
        operations,
        elapsed,
        usage,
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// Polls a future once, so that it waits for what it needs.
///
/// # Errors
///
/// If it does not wait.
pub async fn begin<F: Future + Unpin>(future: &mut F) -> Result<()> {
    let is_waiting =
        poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending())).await;
    ensure!(is_waiting, "a result is there before its source");
    Ok(())
}
