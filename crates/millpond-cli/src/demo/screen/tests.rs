//! Screens without a terminal: what they show, at every size, and what keys do to a real shop.
//!
//! `MILLPOND_RENEW=1 cargo test -p millpond-cli` writes the pictures in `tests/screens` anew.

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::super::knob::{Knob, Turn};
use super::state::tests::flood;
use super::state::{Message, Overlay, State};
use super::*;

fn drawn(state: &State, width: u16, height: u16, has_colours: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let theme = Theme::new(has_colours);
    terminal
        .draw(|area| frame::draw(area, state, theme))
        .unwrap();
    terminal.backend().buffer().clone()
}

/// The characters alone.
fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width.max(1));
    let row = |cells: &[ratatui::buffer::Cell]| {
        let row: String = cells.iter().map(|cell| cell.symbol()).collect();
        row.trim_end().to_owned() + "\n"
    };
    rows.map(row).collect()
}

fn shown(state: &State, width: u16, height: u16) -> String {
    text(&drawn(state, width, height, true))
}

fn explained() -> State {
    let mut state = flood();
    let sentence = "Tasks wait because all workers are busy, and there may be no more of them.";
    state.overlay = Some(Overlay::Text {
        title: "orders, explained".into(),
        paragraphs: vec![sentence.into(); 30],
        scrolled: 0,
    });
    state
}

fn assert_like_picture(name: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens");
    let file = folder.join(name);
    if std::env::var_os("MILLPOND_RENEW").is_some() {
        std::fs::write(&file, found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "{name} has changed: look at it, then run this test with MILLPOND_RENEW=1\n{found}"
    );
}

#[test]
fn a_usual_screen_has_a_panel_for_each_pool() {
    assert_like_picture("80x24.txt", &shown(&flood(), 80, 24));
}

#[test]
fn a_large_screen_shows_sentences_too() {
    assert_like_picture("120x36.txt", &shown(&flood(), 120, 36));
}

#[test]
fn a_small_screen_has_two_lines_for_each_pool() {
    assert_like_picture("44x12.txt", &shown(&flood(), 44, 12));
}

#[test]
fn an_explanation_lies_over_the_screen() {
    assert_like_picture("explained.txt", &shown(&explained(), 80, 24));
}

#[test]
fn the_help_names_every_key_on_the_smallest_usual_screen() {
    let mut state = flood();
    state.overlay = Some(Overlay::Help);
    let text = shown(&state, 80, 24);
    for (keys, what) in keys::HELP {
        assert!(
            text.contains(keys) && text.contains(what),
            "{keys}:\n{text}"
        );
    }
}

#[test]
fn the_text_of_a_rejected_patch_is_shown_to_its_end() {
    let mut state = flood();
    let end = "both at once";
    let why = format!(
        "images: rejected, nothing has changed: core 2 is above max 1: raise max or lower core, or change {end}"
    );
    state.message = Some(Message::Rejected(why));
    let text = shown(&state, 80, 24);
    assert!(text.contains(end), "{text}");
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    let text = shown(&flood(), 39, 8);
    assert!(text.contains("Too small: this is 39 x 8"), "{text}");
}

#[test]
fn there_is_no_size_that_it_cannot_be_drawn_at() {
    let mut helped = flood();
    helped.overlay = Some(Overlay::Help);
    let mut closing = flood();
    closing.closing = Some(7);
    closing.is_paused = true;
    for state in [flood(), helped, explained(), closing] {
        for width in (1..130).step_by(7) {
            for height in [1, 2, 5, 8, 9, 10, 22, 23, 24, 40] {
                shown(&state, width, height);
            }
        }
        shown(&state, 400, 100);
    }
}

#[test]
fn without_colours_there_are_none_and_the_text_is_the_same() {
    for (width, height) in [(80, 24), (50, 12), (120, 50)] {
        let plain = drawn(&flood(), width, height, false);
        for cell in &plain.content {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
        }
        assert_eq!(text(&plain), shown(&flood(), width, height));
    }
}

#[test]
fn no_colour_is_of_a_kind_that_light_or_dark_terminals_cannot_show() {
    let wanted = [
        Color::Reset,
        Color::Cyan,
        Color::Green,
        Color::Magenta,
        Color::Red,
    ];
    for cell in &drawn(&flood(), 120, 50, true).content {
        assert!(wanted.contains(&cell.fg), "{:?}", cell.fg);
        assert_eq!(cell.bg, Color::Reset);
    }
}

#[test]
fn text_that_is_longer_than_the_screen_can_be_scrolled_to_its_end_and_no_further() {
    let mut state = explained();
    let first = shown(&state, 80, 24);
    assert!(first.contains("more lines"), "{first}");
    state.scroll(1000);
    let size = ratatui::layout::Size::new(80, 24);
    state.scroll_no_further_than(overlay::last_row(&state, size));
    let last = shown(&state, 80, 24);
    assert!(!last.contains("more lines"), "{last}");
    assert!(last.contains("Tasks wait because"), "{last}");
    state.scroll(-1);
    assert!(shown(&state, 80, 24).contains("Down: 1 more lines"));
    state.scroll(-2000);
    assert_eq!(shown(&state, 80, 24), first);
}

#[test]
fn keys_change_the_chosen_pool_and_the_screen_shows_it_at_once() {
    let mut shop = Shop::open(7, 0).unwrap();
    let mut show = Show::new(&mut shop, None);
    let mut press = |action| {
        show.act(action);
        shown(&show.state, 80, 24)
    };
    assert!(press(Action::Nothing).contains("1 orders  core 2  max 6  queue 40"));
    assert!(press(Action::Turn(Knob::Core, Turn::Up)).contains("1 orders  core 3  max 6"));
    press(Action::ChooseLast);
    assert!(press(Action::Turn(Knob::Capacity, Turn::Up)).contains("queue 100  queue first"));
    assert!(press(Action::Turn(Knob::Growth, Turn::Up)).contains("queue 100  threads first"));
    assert!(press(Action::Turn(Knob::Policy, Turn::Up)).contains("policy caller runs"));
    press(Action::Choose(1));
    let rejected = press(Action::Turn(Knob::Core, Turn::Up));
    assert!(rejected.contains("core 2 is above max 1"), "{rejected}");
    assert!(rejected.contains("2 images  core 1  max 1"), "{rejected}");
    assert!(press(Action::Load(Turn::Up)).contains("load 25 %"));
    assert!(press(Action::Pause).contains("PAUSED"));
    assert!(!press(Action::Pause).contains("PAUSED"));
    assert!(press(Action::Explain).contains("images is running"));
    assert!(press(Action::Stacks).contains("asking the workers"));
    assert!(!press(Action::Back).contains("asking the workers"));
    assert!(press(Action::Help).contains("choose a pool"));
    assert!(!press(Action::Help).contains("choose a pool"));
    assert!(press(Action::Quit).contains("closing: 0 tasks inside"));
    drop(show);
    assert!(shop.wait_until_empty(Duration::from_secs(60)));
    assert!(shop.books().balanced);
}

#[test]
fn stacks_are_shown_when_they_have_come() {
    let mut shop = Shop::open(7, 0).unwrap();
    shop.departments[0].pool.prestart_core().unwrap();
    let clock = millpond::time::Clock::system();
    let deadline = clock.deadline(Duration::from_secs(60));
    // A worker that has not started has no stack, and it is requested once.
    while shop.departments[0]
        .pool
        .workers()
        .iter()
        .all(|one| one.tid.is_none())
    {
        assert!(!deadline.has_passed(clock.now()), "no worker has begun");
        millpond::interrupt::sleep(Duration::from_millis(1)).unwrap();
    }
    let mut show = Show::new(&mut shop, None);
    show.act(Action::Stacks);
    // With the feature it is a stack, without it a line that says how to get one.
    while !shown(&show.state, 80, 24).contains("orders-1") {
        assert!(!deadline.has_passed(clock.now()), "no stacks have come");
        millpond::interrupt::sleep(Duration::from_millis(5)).unwrap();
        show.look();
    }
}

#[test]
fn the_books_balance_whatever_keys_are_pressed() {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    const SEED: u64 = 20_261_116;
    let mut shop = Shop::open(SEED, 500).unwrap();
    let mut show = Show::new(&mut shop, None);
    let mut random = SEED;
    for press in 0..250 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let keys = b"123ccCmmMxXrrgg++-pe?sjk\x1b";
        let key = char::from(keys[(random >> 33) as usize % keys.len()]);
        let code = match key {
            '\x1b' => KeyCode::Esc,
            letter => KeyCode::Char(letter),
        };
        show.act(keys::action(KeyEvent::new(code, KeyModifiers::NONE)));
        if press % 5 == 0 {
            show.look();
            shown(&show.state, 80, 24);
        }
    }
    show.act(Action::Quit);
    drop(show);
    assert!(
        shop.wait_until_empty(Duration::from_secs(60)),
        "seed {SEED}"
    );
    let books = shop.books();
    assert!(books.balanced, "seed {SEED}: {books:?}");
    assert!(books.pools[0].counts.done > 0, "seed {SEED}: {books:?}");
}
