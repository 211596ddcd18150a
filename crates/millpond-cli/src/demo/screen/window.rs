//! The terminal, taken over and given back: on every way out, a panic of any thread included.

use std::panic;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;

/// Set by the first panic: from then on the terminal is not ours.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

pub(super) struct Window {
    pub(super) terminal: DefaultTerminal,
}

impl Window {
    pub(super) fn open() -> Result<Self> {
        // Outside ratatui's own hook, so that ours is told after the terminal is back.
        let terminal = ratatui::try_init().context(
            "cannot use this terminal as a screen: run `millpond demo --plain` for lines of text",
        )?;
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            IS_BROKEN.store(true, Relaxed);
            told(info);
        }));
        Ok(Window { terminal })
    }

    /// Whether a thread has panicked: its message is on the terminal, and is not to be drawn over.
    pub(super) fn is_broken(&self) -> bool {
        IS_BROKEN.load(Relaxed)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // Once: leaving the screen a second time would put the cursor where it was at the start, and
        // what comes next over the message of the panic.
        if !self.is_broken() {
            ratatui::restore();
        }
    }
}
