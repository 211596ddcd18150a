//! The demo on a terminal: reads keys, takes readings, draws.
//!
//! - `state.rs` is what there is to show; `frame.rs`, `panel.rs`, `compact.rs` and `overlay.rs` show it,
//!   and can be tested without a terminal.
//! - `show.rs` does what keys ask for.
//! - `window.rs` takes the terminal and gives it back.

mod compact;
mod drawing;
mod frame;
mod overlay;
mod panel;
mod show;
mod state;
mod theme;
mod window;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ratatui::crossterm::event::{self, Event};

use super::keys::{self, Action};
use super::requests::Requests;
use super::shop::Shop;
use crate::terminal::colours_are_unwanted;
use show::Show;
use theme::Theme;
use window::Window;

/// How often everything is read and drawn.
const TICK: Duration = Duration::from_millis(200);
/// The least time between two frames, however fast keys come.
const FRAME: Duration = Duration::from_millis(90);

/// Shows the shop until it is closed and empty.
pub(super) fn run(shop: &mut Shop, limit: Option<Duration>, requests: &Requests) -> Result<()> {
    let mut window = Window::open()?;
    let theme = Theme::new(!colours_are_unwanted());
    let mut show = Show::new(shop, limit);
    let (mut next_look, mut next_frame) = (Instant::now(), Instant::now());
    let mut is_stale = true;
    while !show.is_over() {
        if window.is_broken() {
            bail!("a thread of the demo has panicked: that is a bug, its message is above");
        }
        let now = Instant::now();
        if now >= next_look {
            show.look();
            next_look = now + TICK;
            is_stale = true;
        }
        if is_stale && now >= next_frame {
            window.draw(&mut show.state, theme)?;
            next_frame = now + FRAME;
            is_stale = false;
        }
        let wake = if is_stale {
            next_frame.min(next_look)
        } else {
            next_look
        };
        let mut timeout = wake.saturating_duration_since(Instant::now());
        // Everything that is there, before the next frame.
        while event::poll(timeout).context("cannot read keys")? {
            if let Event::Key(key) = event::read().context("cannot read keys")? {
                show.act(keys::action(key));
            }
            is_stale = true;
            timeout = Duration::ZERO;
        }
        let is_late = limit.is_some_and(|limit| show.shop.open_for() >= limit);
        if requests.take() || is_late && show.state.closing.is_none() {
            show.act(Action::Quit);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
