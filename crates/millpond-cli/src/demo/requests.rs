//! Requests to end that come as signals (Ctrl-C, `kill`): each is heard once, in the main loop, so
//! that the shop is closed in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result};
use signal_hook::consts::TERM_SIGNALS;
use signal_hook::flag;

#[derive(Debug, Default)]
pub(super) struct Requests {
    is_asked: Arc<AtomicBool>,
}

impl Requests {
    /// From here on such signals end nothing by themselves.
    pub(super) fn listen() -> Result<Self> {
        let requests = Requests::default();
        for signal in TERM_SIGNALS {
            flag::register(*signal, Arc::clone(&requests.is_asked))
                .context("cannot listen for Ctrl-C")?;
        }
        Ok(requests)
    }

    /// Whether it was asked to end since the last call.
    pub(super) fn take(&self) -> bool {
        self.is_asked.swap(false, Relaxed)
    }
}
