//! How things look. The terminal's own sixteen colours on its own background, so that it can be read
//! on light and on dark ones; and nothing is shown by colour alone, for terminals without (`NO_COLOR`).

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    has_colours: bool,
}

impl Theme {
    pub(super) fn new(has_colours: bool) -> Self {
        Theme { has_colours }
    }

    fn colour(self, colour: Color) -> Style {
        if self.has_colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Stands on a line that may be faint, and is not.
    pub(super) fn on_a_line(self, style: Style) -> Style {
        style.remove_modifier(Modifier::DIM)
    }

    /// The name of the program.
    pub(super) fn title(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Parameters that keys change.
    pub(super) fn chosen(self) -> Style {
        self.colour(Color::Cyan)
            .add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// Arriving tasks.
    pub(super) fn coming(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// Completed tasks.
    pub(super) fn working(self) -> Style {
        self.colour(Color::Green)
    }

    /// Waiting tasks.
    pub(super) fn waiting(self) -> Style {
        self.colour(Color::Magenta)
    }

    /// Rejected tasks.
    pub(super) fn rejected(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A key in the help.
    pub(super) fn key(self) -> Style {
        self.strong()
    }
}
