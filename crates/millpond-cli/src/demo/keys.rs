//! Which key does what. One table: the screen's help is made from it, too.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::knob::{Knob, Turn};

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Choose(usize),
    ChooseNext,
    ChooseLast,
    Turn(Knob, Turn),
    Load(Turn),
    Pause,
    Explain,
    Stacks,
    Help,
    /// Closes whatever lies over the screen.
    Back,
    /// So many lines down.
    Scroll(i16),
    Nothing,
}

/// A line of the help: keys, and what they do.
pub(super) const HELP: &[(&str, &str)] = &[
    (
        "Tab, 1 2 3",
        "choose a pool: the keys below change that one",
    ),
    ("c, C", "core: one more, one less; workers that stay"),
    ("m, M", "max: one more, one less; workers there may be"),
    ("x, X", "queue: twice, half the capacity"),
    ("r", "rejection: the next policy for what is too much"),
    ("g", "growth: when the core is busy, queue or threads first"),
    ("+, -", "load: more, less of everything"),
    ("p, Space", "pause: nobody comes, and the tide stands still"),
    ("e", "explain the chosen pool, in sentences"),
    ("s", "stacks: where its workers are in the code"),
    ("Up, Down", "scroll what lies over the screen"),
    ("?, Esc", "this help; close what lies over the screen"),
    ("q, Ctrl-C", "shut down, in order; twice: at once"),
];

/// The action of this key.
pub(super) fn action(key: KeyEvent) -> Action {
    if key.kind == KeyEventKind::Release {
        return Action::Nothing;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'd') => Action::Quit,
            _ => Action::Nothing,
        };
    }
    match key.code {
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Tab | KeyCode::Right => Action::ChooseNext,
        KeyCode::BackTab | KeyCode::Left => Action::ChooseLast,
        KeyCode::Char('1') => Action::Choose(0),
        KeyCode::Char('2') => Action::Choose(1),
        KeyCode::Char('3') => Action::Choose(2),
        KeyCode::Char('c') => Action::Turn(Knob::Core, Turn::Up),
        KeyCode::Char('C') => Action::Turn(Knob::Core, Turn::Down),
        KeyCode::Char('m') => Action::Turn(Knob::Max, Turn::Up),
        KeyCode::Char('M') => Action::Turn(Knob::Max, Turn::Down),
        KeyCode::Char('x') => Action::Turn(Knob::Capacity, Turn::Up),
        KeyCode::Char('X') => Action::Turn(Knob::Capacity, Turn::Down),
        KeyCode::Char('r') => Action::Turn(Knob::Policy, Turn::Up),
        KeyCode::Char('g') => Action::Turn(Knob::Growth, Turn::Up),
        KeyCode::Char('+' | '=') => Action::Load(Turn::Up),
        KeyCode::Char('-' | '_') => Action::Load(Turn::Down),
        KeyCode::Char('p' | ' ') => Action::Pause,
        KeyCode::Char('e') => Action::Explain,
        KeyCode::Char('s') => Action::Stacks,
        KeyCode::Char('?' | 'h') => Action::Help,
        KeyCode::Esc | KeyCode::Enter => Action::Back,
        KeyCode::Up | KeyCode::Char('k') => Action::Scroll(-1),
        KeyCode::PageUp => Action::Scroll(-10),
        KeyCode::Down | KeyCode::Char('j') => Action::Scroll(1),
        KeyCode::PageDown => Action::Scroll(10),
        _ => Action::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(code: KeyCode) -> Action {
        action(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn small_letters_raise_and_capitals_lower() {
        for (letter, knob) in [('c', Knob::Core), ('m', Knob::Max), ('x', Knob::Capacity)] {
            let capital = letter.to_ascii_uppercase();
            let shifted = KeyEvent::new(KeyCode::Char(capital), KeyModifiers::SHIFT);
            assert_eq!(plain(KeyCode::Char(letter)), Action::Turn(knob, Turn::Up));
            assert_eq!(action(shifted), Action::Turn(knob, Turn::Down));
        }
    }

    #[test]
    fn control_c_quits_and_is_not_core() {
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(key), Action::Quit);
        let key = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::CONTROL);
        assert_eq!(action(key), Action::Nothing);
    }

    #[test]
    fn letting_a_key_go_does_nothing() {
        let mut key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(action(key), Action::Nothing);
    }

    #[test]
    fn every_key_that_the_help_names_does_something() {
        for (keys, _) in HELP {
            for name in keys.split([',', ' ']).filter(|name| !name.is_empty()) {
                let code = match name {
                    "Tab" => KeyCode::Tab,
                    "Esc" => KeyCode::Esc,
                    "Up" => KeyCode::Up,
                    "Down" => KeyCode::Down,
                    "Space" => KeyCode::Char(' '),
                    // Tested above.
                    "Ctrl-C" => continue,
                    letter => KeyCode::Char(letter.chars().next().unwrap()),
                };
                assert_ne!(plain(code), Action::Nothing, "{name}");
            }
        }
    }
}
