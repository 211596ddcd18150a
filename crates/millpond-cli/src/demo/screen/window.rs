//! The terminal, taken over and given back: on every way out, a panic of any thread included.

use std::panic;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;

use super::state::State;
use super::theme::Theme;
use super::{frame, overlay};

/// Set by the first panic: from then on the terminal is not ours.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

pub(super) struct Window {
    terminal: DefaultTerminal,
}

impl Window {
    pub(super) fn open() -> Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| {
            // It may have gone half of the way.
            let _ = ratatui::try_restore();
        });
        let terminal = terminal.context(
            "cannot use this terminal as a screen: run `millpond demo --plain` for lines of text",
        )?;
        // Ours comes first: nothing is drawn any more once ratatui's has given the terminal back.
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            IS_BROKEN.store(true, Relaxed);
            told(info);
        }));
        Ok(Window { terminal })
    }

    pub(super) fn draw(&mut self, state: &mut State, theme: Theme) -> Result<()> {
        let size = self.terminal.size();
        let size = size.context("cannot measure the terminal")?;
        state.scroll_no_further_than(overlay::last_row(state, size));
        let drawn = self.terminal.draw(|area| frame::draw(area, state, theme));
        drawn.context("cannot draw on the terminal")?;
        Ok(())
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
