//! For small screens: two lines for each pool, and the workers of the chosen one in what is left.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::wording;
use super::panel::worker_line;
use super::state::{PoolState, State};
use super::theme::Theme;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let mut lines = Vec::new();
    for (number, pool) in state.pools.iter().enumerate() {
        lines.push(sizes(number, pool, number == state.chosen, theme));
        lines.push(flow(pool, theme));
    }
    let workers = &state.pools[state.chosen].now.workers;
    lines.extend(workers.iter().map(|worker| worker_line(worker, theme)));
    for (row, line) in area.rows().zip(lines) {
        frame.render_widget(line, row);
    }
}

fn sizes(number: usize, pool: &PoolState, is_chosen: bool, theme: Theme) -> Line<'static> {
    let now = &pool.now.snapshot;
    let name = format!("{} {:6}", number + 1, now.name);
    let name = if is_chosen {
        Span::styled(name, theme.chosen())
    } else {
        Span::styled(name, theme.strong())
    };
    let most = now.capacity.unwrap_or(now.queued);
    Line::from(vec![
        name,
        Span::raw(format!(
            " {}/{} ({}-{}) queue {}/{most} {}",
            now.active, now.workers, now.core, now.max, now.queued, pool.now.policy
        )),
    ])
}

fn flow(pool: &PoolState, theme: Theme) -> Line<'static> {
    let flow = &pool.flow;
    let rejected = if flow.rejected > 0.0 {
        theme.rejected()
    } else {
        theme.plain()
    };
    let wait = flow.wait.map_or("-".into(), |wait| wording::time(wait.p99));
    Line::from(vec![
        Span::styled(format!("  {:>3.0} in ", flow.came), theme.coming()),
        Span::styled(format!("{:>3.0} out ", flow.done), theme.working()),
        Span::styled(format!("{:>3.0} rejected ", flow.rejected), rejected),
        Span::raw(format!("wait {wait}")),
    ])
}
