//! Text over the screen: the help, and details of a pool.

use ratatui::Frame;
use ratatui::layout::{Margin, Position, Rect, Size};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::super::keys::HELP;
use super::state::{Overlay, State};
use super::theme::Theme;

/// Lines that are longer are hard to read.
const WIDEST: u16 = 96;

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let Some(overlay) = &state.overlay else {
        return;
    };
    let (title, scrolled) = match overlay {
        Overlay::Help => ("keys", 0),
        Overlay::Text {
            title, scrolled, ..
        } => (&**title, *scrolled),
    };
    let lines = lines(overlay, theme);
    let Sizes { area, rows, shown } = Sizes::new(&lines, frame.area().as_size());
    let below = rows.saturating_sub(scrolled + shown);
    let mut block = Block::bordered()
        .border_style(theme.title())
        .title(Span::styled(format!(" {title} "), theme.strong()))
        .title_bottom(" Esc closes ");
    if below > 0 {
        block = block.title_bottom(format!(" Down: {below} more lines "));
    }
    let paragraph = Paragraph::new(lines)
        .wrap(Wrap { trim: true })
        .scroll((scrolled, 0));
    frame.render_widget(Clear, area);
    let within = block.inner(area).inner(Margin::new(1, 0));
    frame.render_widget(block, area);
    frame.render_widget(paragraph, within);
}

/// How far what lies over the screen can be scrolled until its last line is in sight.
pub(super) fn last_row(state: &State, screen: Size) -> u16 {
    let Some(overlay) = &state.overlay else {
        return 0;
    };
    let sizes = Sizes::new(&lines(overlay, Theme::new(false)), screen);
    sizes.rows.saturating_sub(sizes.shown)
}

struct Sizes {
    area: Rect,
    /// How many rows the text takes, and how many of them fit.
    rows: u16,
    shown: u16,
}

impl Sizes {
    fn new(lines: &[Line<'_>], screen: Size) -> Self {
        let area = Rect::from((Position::ORIGIN, screen)).inner(Margin::new(2, 1));
        let width = area.width.min(WIDEST);
        let rows = height(lines, usize::from(width.saturating_sub(4)));
        Sizes {
            rows,
            shown: area.height.saturating_sub(2),
            area: Rect {
                x: area.x + (area.width - width) / 2,
                width,
                height: rows.saturating_add(2).min(area.height),
                ..area
            },
        }
    }
}

fn lines(overlay: &Overlay, theme: Theme) -> Vec<Line<'static>> {
    match overlay {
        Overlay::Help => help(theme),
        Overlay::Text { paragraphs, .. } => text(paragraphs),
    }
}

fn help(theme: Theme) -> Vec<Line<'static>> {
    let line = |(keys, what): &(&'static str, &'static str)| {
        Line::from(vec![
            Span::styled(format!("{keys:<11}"), theme.key()),
            Span::raw(*what),
        ])
    };
    HELP.iter().map(line).collect()
}

fn text(paragraphs: &[String]) -> Vec<Line<'static>> {
    let lines = paragraphs.iter().flat_map(|each| each.lines());
    lines.map(|line| Line::raw(line.to_owned())).collect()
}

/// How many rows the lines take when they are wrapped at words. `Paragraph` knows, but does not tell
/// without an unstable feature of it.
fn height(lines: &[Line<'_>], width: usize) -> u16 {
    let rows = |line: &Line<'_>| {
        let text: String = line.spans.iter().map(|span| &*span.content).collect();
        let (mut rows, mut taken) = (1_usize, 0);
        for word in text.split_whitespace() {
            let mut length = word.chars().count();
            let space = usize::from(taken > 0);
            if taken + space + length <= width {
                taken += space + length;
                continue;
            }
            rows += usize::from(taken > 0);
            while length > width && width > 0 {
                length -= width;
                rows += 1;
            }
            taken = length;
        }
        rows
    };
    let all: usize = lines.iter().map(rows).sum();
    u16::try_from(all).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_counted_as_they_will_be_shown() {
        let rows = |text: &'static str, width| height(&[Line::raw(text)], width);
        assert_eq!(rows("", 10), 1);
        assert_eq!(rows("one two", 10), 1);
        assert_eq!(rows("one two three", 10), 2);
        assert_eq!(rows("0123456789 a", 10), 2);
        assert_eq!(rows("01234567890123456789x", 10), 3);
    }
}
