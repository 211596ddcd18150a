//! The demo on a terminal: reads keys, takes readings, draws.
//!
//! - `state.rs` is what there is to show; `frame.rs`, `panel.rs`, `compact.rs` and `overlay.rs` show it,
//!   and can be tested without a terminal.
//! - `window.rs` takes the terminal and gives it back.

mod compact;
mod drawing;
mod frame;
mod overlay;
mod panel;
mod state;
mod theme;
mod window;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ratatui::crossterm::event::{self, Event};

use super::keys::{self, Action};
use super::knob;
use super::requests::Requests;
use super::shop::Shop;
use super::wording;
use crate::terminal::colours_are_refused;
use state::{Message, Overlay, State};
use theme::Theme;
use window::Window;

/// How often everything is read and drawn.
const TICK: Duration = Duration::from_millis(200);
/// The least time between two frames, however fast keys come.
const FRAME: Duration = Duration::from_millis(90);

/// Shows the shop until it is closed and empty.
pub(super) fn run(shop: &mut Shop, limit: Option<Duration>, requests: &Requests) -> Result<()> {
    let mut window = Window::open()?;
    let theme = Theme::new(!colours_are_refused());
    let mut state = State::new(shop, limit);
    let (mut next_look, mut next_frame) = (Instant::now(), Instant::now());
    let mut is_stale = true;
    while !(state.closing.is_some() && shop.is_empty()) {
        if window.is_broken() {
            bail!("a thread of the demo has panicked: that is a bug, its message is above");
        }
        let now = Instant::now();
        if now >= next_look {
            state.look(shop);
            next_look = now + TICK;
            is_stale = true;
        }
        if is_stale && now >= next_frame {
            let size = window
                .terminal
                .size()
                .context("cannot measure the terminal")?;
            state.scroll_no_further_than(overlay::last_row(&state, size));
            let drawn = window
                .terminal
                .draw(|area| frame::draw(area, &state, theme));
            drawn.context("cannot draw on the terminal")?;
            next_frame = now + FRAME;
            is_stale = false;
        }
        let wake = if is_stale {
            next_frame.min(next_look)
        } else {
            next_look
        };
        let mut patience = wake.saturating_duration_since(Instant::now());
        // Everything that is there, before the next frame.
        while event::poll(patience).context("cannot read keys")? {
            if let Event::Key(key) = event::read().context("cannot read keys")? {
                act(keys::action(key), shop, &mut state);
            }
            is_stale = true;
            patience = Duration::ZERO;
        }
        let is_over = limit.is_some_and(|limit| shop.open_for() >= limit);
        if requests.take() || is_over && state.closing.is_none() {
            act(Action::Quit, shop, &mut state);
        }
    }
    Ok(())
}

fn act(action: Action, shop: &mut Shop, state: &mut State) {
    match action {
        Action::Nothing => {}
        Action::Quit => quit(shop, state),
        Action::Choose(number) => state.choose(number, shop),
        Action::ChooseNext => state.choose((state.chosen + 1) % state.pools.len(), shop),
        Action::ChooseLast => {
            let many = state.pools.len();
            state.choose((state.chosen + many - 1) % many, shop);
        }
        Action::Turn(knob, turn) => {
            state.message = Some(match knob::turn(shop, state.chosen, knob, turn) {
                Ok(text) => Message::Done(text),
                Err(text) => Message::Refused(text),
            });
            state.refresh(shop);
        }
        Action::Load(turn) => {
            state.message = Some(Message::Done(knob::turn_load(shop, turn)));
            state.refresh(shop);
        }
        Action::Pause => {
            shop.sluice.pause_or_go_on();
            state.refresh(shop);
        }
        Action::Explain => state.overlay = Some(explanation(shop, state)),
        Action::Stacks => state.overlay = Some(stacks(shop, state)),
        Action::Help => {
            let is_open = state.overlay == Some(Overlay::Help);
            state.overlay = (!is_open).then_some(Overlay::Help);
        }
        Action::Back => state.overlay = None,
        Action::Scroll(lines) => state.scroll(lines),
    }
}

/// In order the first time, at once the second time.
fn quit(shop: &mut Shop, state: &mut State) {
    if state.closing.is_some() {
        shop.stop();
        return;
    }
    state.overlay = None;
    shop.shut_doors();
    state.closing = Some(shop.inside());
}

fn explanation(shop: &Shop, state: &State) -> Overlay {
    let pool = &shop.departments[state.chosen].pool;
    let at = wording::clock(shop.open_for());
    Overlay::Text {
        title: format!("{} at {at}, explained (e: again)", pool.name()),
        paragraphs: pool.explain().sentences().to_vec(),
        scrolled: 0,
    }
}

fn stacks(shop: &Shop, state: &State) -> Overlay {
    let pool = &shop.departments[state.chosen].pool;
    let views = pool.workers().into_iter();
    let stacks = views
        .zip(pool.stacks())
        .map(|(worker, stack)| format!("{worker}\n{stack}"));
    Overlay::Text {
        title: format!("{}: where its workers are (s: again)", pool.name()),
        paragraphs: stacks.collect(),
        scrolled: 0,
    }
}

#[cfg(test)]
mod tests;
