//! A panel for each pool: sizes, flow, times, and what its workers do.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::super::reading::{Times, Working};
use super::super::wording;
use super::drawing::{bar, sparkline};
use super::state::{History, PoolState, State};
use super::theme::Theme;

/// How wide the names in front of the lines are.
const NAME: usize = 8;
/// The least width of the text about a worker.
const WORKER: usize = 25;
/// How many rows the figures take.
const FIGURES: u16 = 4;
/// Fewer rows are not worth a heading.
const LEAST_WORDS: u16 = 4;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let mut heights: Vec<Constraint> = state
        .pools
        .iter()
        .map(|pool| Constraint::Length(height(pool, area.width)))
        .collect();
    heights.push(Constraint::Fill(1));
    let wanted: u16 = state
        .pools
        .iter()
        .map(|pool| height(pool, area.width))
        .sum();
    if wanted > area.height {
        heights = vec![Constraint::Fill(1); state.pools.len()];
        heights.push(Constraint::Length(0));
    }
    let areas = Layout::vertical(heights).split(area);
    for (number, (pool, area)) in state.pools.iter().zip(areas.iter()).enumerate() {
        let is_chosen = number == state.chosen;
        let block = Block::new()
            .borders(Borders::TOP)
            .border_style(if is_chosen {
                theme.title()
            } else {
                theme.faint()
            })
            .title(title(number, pool, is_chosen, theme));
        let inner = block.inner(*area);
        frame.render_widget(block, *area);
        fill(frame, inner, pool, theme);
    }
    if let Some(rest) = areas.last().filter(|rest| rest.height >= LEAST_WORDS) {
        words(frame, *rest, state, theme);
    }
}

/// How many rows a pool needs to show all of its workers.
fn height(pool: &PoolState, width: u16) -> u16 {
    let columns = (usize::from(width) / WORKER).max(1);
    let workers = pool.now.workers.len().div_ceil(columns);
    // At least two: workers come and go, and the panels should not jump.
    let rows = u16::try_from(workers).unwrap_or(u16::MAX).clamp(2, 12);
    1 + FIGURES + rows
}

/// The explanation of the chosen pool, where there is room for it.
fn words(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let name = &state.pools[state.chosen].now.snapshot.name;
    let block = Block::new()
        .borders(Borders::TOP)
        .border_style(theme.title())
        .title(Span::styled(
            format!(" {name} in sentences "),
            theme.strong(),
        ));
    let text = state.sentences.join("\n");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), inner);
}

fn title(number: usize, pool: &PoolState, is_chosen: bool, theme: Theme) -> Line<'static> {
    let now = &pool.now.snapshot;
    let name = format!(" {} {} ", number + 1, now.name);
    let name = if is_chosen {
        Span::styled(name, theme.chosen())
    } else {
        Span::styled(name, theme.on_a_line(theme.strong()))
    };
    let capacity = now
        .capacity
        .map_or("no bound".into(), |most| most.to_string());
    let sizes = format!(
        " core {}  max {}  queue {capacity}  {}  policy {} ",
        now.core, now.max, now.growth, pool.now.policy
    );
    Line::from(vec![
        name,
        Span::styled(sizes, theme.on_a_line(theme.plain())),
    ])
}

fn fill(frame: &mut Frame<'_>, area: Rect, pool: &PoolState, theme: Theme) {
    let [figures, workers] =
        Layout::vertical([Constraint::Length(FIGURES), Constraint::Fill(1)]).areas(area);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)])
        .spacing(2)
        .areas(figures);
    let width = usize::from(left.width);
    lines(
        frame,
        left,
        vec![
            threads(pool, width, theme),
            queue(pool, width, theme),
            times("wait", pool.flow.wait, &pool.wait, width, theme.waiting()),
            times("run", pool.flow.run, &pool.run, width, theme.working()),
        ],
    );
    let width = usize::from(right.width);
    let (flow, rejected) = (&pool.flow, pool.flow.rejected > 0.0);
    let rejected = if rejected {
        theme.rejected()
    } else {
        theme.plain()
    };
    lines(
        frame,
        right,
        vec![
            rate("in", flow.came, &pool.came, width, theme.coming()),
            rate("out", flow.done, &pool.done, width, theme.working()),
            rate("rejected", flow.rejected, &pool.rejected, width, rejected),
            so_far(pool, theme),
        ],
    );
    self::workers(frame, workers, &pool.now.workers, theme);
}

fn lines(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'_>>) {
    for (row, line) in area.rows().zip(lines) {
        frame.render_widget(line, row);
    }
}

fn threads(pool: &PoolState, width: usize, theme: Theme) -> Line<'static> {
    let now = &pool.now.snapshot;
    let idle = now.workers.saturating_sub(now.active);
    let mut text = format!(" {} busy, {idle} idle", now.active);
    if now.extra_threads > 0 {
        text += &format!(", {} extra", now.extra_threads);
    }
    let room = width.saturating_sub(NAME + 19.max(text.chars().count()));
    let [busy, idle, none] = bar(room, now.active, idle, now.max);
    Line::from(vec![
        Span::raw(format!("{:NAME$}", "threads")),
        Span::styled(busy, theme.working()),
        Span::styled(idle, theme.plain()),
        Span::styled(none, theme.faint()),
        Span::raw(text),
    ])
}

fn queue(pool: &PoolState, width: usize, theme: Theme) -> Line<'static> {
    let now = &pool.now.snapshot;
    let most = now.capacity.unwrap_or(now.queued);
    let text = format!(" {} of {most}", wording::count(now.queued as u64));
    let room = width.saturating_sub(NAME + 19.max(text.chars().count()));
    let [filled, _, none] = bar(room, now.queued, 0, most);
    let is_full = now.queued >= most;
    Line::from(vec![
        Span::raw(format!("{:NAME$}", "queue")),
        Span::styled(
            filled,
            if is_full {
                theme.rejected()
            } else {
                theme.waiting()
            },
        ),
        Span::styled(none, theme.faint()),
        Span::raw(text),
        Span::styled(if is_full { " full" } else { "" }, theme.rejected()),
    ])
}

fn times(
    name: &str,
    times: Option<Times>,
    history: &History,
    width: usize,
    style: Style,
) -> Line<'static> {
    let text = |of: fn(&Times) -> std::time::Duration| {
        times.map_or("-".to_owned(), |times| wording::time(of(&times)))
    };
    let (p50, p99) = (text(|times| times.p50), text(|times| times.p99));
    let text = format!("{name:NAME$}p50 {p50:>6}  p99 {p99:>6} ");
    let room = width.saturating_sub(text.chars().count());
    Line::from(vec![
        Span::raw(text),
        Span::styled(sparkline(history.values(), room), style),
    ])
}

fn rate(name: &str, rate: f64, history: &History, width: usize, style: Style) -> Line<'static> {
    let text = format!("{name:NAME$}{rate:>5.0}/s ");
    let room = width.saturating_sub(text.chars().count());
    Line::from(vec![
        Span::raw(text),
        Span::styled(sparkline(history.values(), room), style),
    ])
}

fn so_far(pool: &PoolState, theme: Theme) -> Line<'static> {
    let counts = &pool.now.counts;
    let mut text = format!(
        "so far {} in, {} out, {} rejected",
        wording::count(counts.came),
        wording::count(counts.done),
        wording::count(counts.turned_away())
    );
    if pool.now.late.as_millis() >= 100 {
        text = format!(
            "callers wait {} at the door, {} gave up",
            wording::time(pool.now.late),
            wording::count(counts.gave_up)
        );
        return Line::styled(text, theme.rejected());
    }
    Line::styled(text, theme.faint())
}

/// The activity of each worker, side by side in as many columns as fit.
fn workers(frame: &mut Frame<'_>, area: Rect, workers: &[Working], theme: Theme) {
    let columns = (usize::from(area.width) / WORKER).max(1);
    let shown = columns * usize::from(area.height);
    let width = usize::from(area.width) / columns;
    for (number, worker) in workers.iter().take(shown).enumerate() {
        let (column, row) = (number % columns, number / columns);
        let place = Rect {
            x: area.x + (column * width) as u16,
            y: area.y + row as u16,
            width: width as u16 - 1,
            height: 1,
        };
        let is_last = number + 1 == shown;
        let line = match workers.len() - number {
            hidden @ 2.. if is_last => Line::styled(format!("and {hidden} more"), theme.faint()),
            _ => worker_line(worker, theme),
        };
        frame.render_widget(line, place);
    }
}

pub(super) fn worker_line(worker: &Working, theme: Theme) -> Line<'static> {
    let thread = worker.thread.rsplit('-').next().unwrap_or_default();
    let thread = Span::styled(format!("{thread:>2} "), theme.faint());
    match &worker.task {
        None => Line::from(vec![thread, Span::styled("idle", theme.faint())]),
        Some((task, since)) => Line::from(vec![
            thread,
            Span::styled(task.clone(), theme.working()),
            Span::raw(format!(" {}", wording::time(*since))),
        ]),
    }
}
