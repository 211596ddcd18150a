//! From state to screen: which layout fits, and what frames it. Draws, and changes nothing.
//!
//! | screen | layout |
//! |---|---|
//! | 76 x 23 and more | a panel for each pool, `panel.rs`; what is higher shows more workers, and what the chosen pool says of itself |
//! | 40 x 9 and more | two lines for each pool, `compact.rs` |
//! | less | a sentence |

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::super::wording;
use super::drawing::sparkline;
use super::state::{Message, State};
use super::theme::Theme;
use super::{compact, overlay, panel};

/// The least width and height of the layout with panels, and of the compact one.
const PANELS: (u16, u16) = (76, 23);
const COMPACT: (u16, u16) = (40, 9);

const KEYS: &[(&str, &str)] = &[
    ("Tab", "pool"),
    ("c", "core"),
    ("m", "max"),
    ("x", "queue"),
    ("r", "policy"),
    ("+-", "load"),
    ("p", "pause"),
    ("e", "explain"),
    ("?", "help"),
    ("q", "quit"),
];

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    let fits = |least: (u16, u16)| area.width >= least.0 && area.height >= least.1;
    if !fits(COMPACT) {
        return too_small(frame, area);
    }
    let said = said(state, theme, area.width);
    // A sentence that says why a patch was rejected may need a second line.
    let is_long = said.width() > usize::from(area.width);
    let [head, middle, message, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1 + u16::from(is_long)),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(header(state, theme, head.width), head);
    if fits(PANELS) {
        panel::draw(frame, middle, state, theme);
    } else {
        compact::draw(frame, middle, state, theme);
    }
    frame.render_widget(Paragraph::new(said).wrap(Wrap { trim: true }), message);
    frame.render_widget(footer(theme, keys.width), keys);
    overlay::draw(frame, state, theme);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let text = format!(
        "Too small: this is {} x {}, and {} x {} are needed. Make it larger, or press q and use \
         --plain.",
        area.width, area.height, COMPACT.0, COMPACT.1
    );
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
}

fn header(state: &State, theme: Theme, width: u16) -> Line<'static> {
    let mut spans = vec![
        Span::styled("millpond demo", theme.title()),
        Span::raw("  "),
        Span::raw(wording::clock(state.open_for)),
    ];
    if let Some(limit) = state.limit {
        spans.push(Span::raw(format!(" of {}", wording::clock(limit))));
    }
    if state.is_paused {
        spans.push(Span::raw("  "));
        spans.push(Span::styled(" PAUSED: p goes on ", theme.chosen()));
    }
    let load = format!("load {} %", state.load);
    if width < PANELS.0 {
        spans.push(Span::raw(format!("  {}  {load}", state.level)));
        return Line::from(spans);
    }
    // The tide takes what is left, up to a point.
    let level = format!(" {:8}", state.level);
    let tide = state.tide.values().next_back().copied().unwrap_or(0.0);
    let tide = format!("{tide:.1} x  ");
    let taken: usize = spans.iter().map(Span::width).sum();
    let fixed = taken + "   tide ".len() + level.len() + tide.len() + load.len();
    let room = usize::from(width).saturating_sub(fixed).min(40);
    spans.push(Span::raw("   tide "));
    spans.push(Span::styled(
        sparkline(state.tide.values(), room),
        theme.coming(),
    ));
    spans.push(Span::styled(level, theme.strong()));
    spans.push(Span::raw(tide));
    spans.push(Span::raw(load));
    Line::from(spans)
}

fn said(state: &State, theme: Theme, width: u16) -> Line<'static> {
    if let Some(inside) = state.closing {
        let text = format!("closing: {inside} tasks inside; q again to stop at once");
        return Line::styled(text, theme.chosen());
    }
    match &state.message {
        Some(Message::Done(text)) => Line::styled(text.clone(), theme.working()),
        Some(Message::Rejected(text)) => Line::styled(text.clone(), theme.rejected()),
        None if width < PANELS.0 => Line::default(),
        None => Line::styled(
            "Customers come and go with the tide, however the pools are doing.",
            theme.faint(),
        ),
    }
}

fn footer(theme: Theme, width: u16) -> Line<'static> {
    let mut spans = Vec::new();
    let mut taken = 0;
    // The last ones are the most needed: those in front make room.
    let fitting = KEYS.iter().rev().take_while(|(key, what)| {
        taken += key.len() + what.len() + 2;
        taken <= usize::from(width) + 1
    });
    for (key, what) in KEYS.iter().skip(KEYS.len() - fitting.count()) {
        if !spans.is_empty() {
            spans.push(Span::raw(" "));
        }
        spans.push(Span::styled(*key, theme.key()));
        spans.push(Span::styled(format!(" {what}"), theme.faint()));
    }
    Line::from(spans)
}
