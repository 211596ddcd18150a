//! The shop and what is shown of it: what each key does to the two.

use std::time::Duration;

use millpond::executor::{ExecutorExt, ThreadPerTask};
use millpond::pool::ThreadPool;
use millpond::task::TaskHandle;

use super::super::keys::Action;
use super::super::knob;
use super::super::shop::Shop;
use super::super::wording;
use super::state::{Message, Overlay, State};

pub(super) struct Show<'a> {
    pub(super) shop: &'a mut Shop,
    pub(super) state: State,
    /// Stacks that have been asked for. To name the functions on them takes a while, the first time
    /// even seconds, and the screen does not wait for it.
    stacks: Option<TaskHandle<Vec<String>>>,
}

impl<'a> Show<'a> {
    pub(super) fn new(shop: &'a mut Shop, limit: Option<Duration>) -> Self {
        let state = State::new(shop, limit);
        Show {
            shop,
            state,
            stacks: None,
        }
    }

    /// Whether the doors are shut and all tasks have ended.
    pub(super) fn is_over(&self) -> bool {
        self.state.closing.is_some() && self.shop.is_empty()
    }

    /// Looks at everything anew.
    pub(super) fn look(&mut self) {
        self.state.look(self.shop);
        let answer = self.stacks.as_mut().and_then(TaskHandle::try_join);
        let Some(answer) = answer else { return };
        self.stacks = None;
        if let Some(Overlay::Text { paragraphs, .. }) = &mut self.state.overlay {
            *paragraphs = answer.unwrap_or_else(|error| vec![format!("no stacks: {error}")]);
        }
    }

    pub(super) fn act(&mut self, action: Action) {
        let (shop, state) = (&mut *self.shop, &mut self.state);
        let many = state.pools.len();
        match action {
            Action::Nothing => {}
            Action::Quit => self.quit(),
            Action::Choose(number) => state.choose(number, shop),
            Action::ChooseNext => state.choose((state.chosen + 1) % many, shop),
            Action::ChooseLast => state.choose((state.chosen + many - 1) % many, shop),
            Action::Turn(knob, turn) => {
                state.message = Some(match knob::turn(shop, state.chosen, knob, turn) {
                    Ok(text) => Message::Done(text),
                    Err(text) => Message::Rejected(text),
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
            Action::Explain => self.explain(),
            Action::Stacks => self.ask_for_stacks(),
            Action::Help => {
                let is_open = state.overlay == Some(Overlay::Help);
                self.cover((!is_open).then_some(Overlay::Help));
            }
            Action::Back => self.cover(None),
            Action::Scroll(lines) => state.scroll(lines),
        }
    }

    /// In order the first time, at once the second time.
    fn quit(&mut self) {
        if self.state.closing.is_some() {
            return self.shop.stop();
        }
        self.cover(None);
        self.shop.shut_doors();
        self.state.closing = Some(self.shop.inside());
    }

    /// Lays something else over the screen, or nothing. Stacks that come later come too late.
    fn cover(&mut self, overlay: Option<Overlay>) {
        self.stacks = None;
        self.state.overlay = overlay;
    }

    fn chosen(&self) -> &ThreadPool {
        &self.shop.departments[self.state.chosen].pool
    }

    fn explain(&mut self) {
        let at = wording::clock(self.shop.open_for());
        let text = Overlay::Text {
            title: format!("{} at {at}, explained (e: again)", self.chosen().name()),
            paragraphs: self.chosen().explain().sentences().to_vec(),
            scrolled: 0,
        };
        self.cover(Some(text));
    }

    fn ask_for_stacks(&mut self) {
        let pool = self.chosen().clone();
        let title = format!("{}: where its workers are (s: again)", pool.name());
        let threads = ThreadPerTask::builder("stacks", 1).build();
        let asked = threads
            .map_err(|error| error.to_string())
            .and_then(|threads| {
                let asked = threads.submit(move || {
                    let workers = pool.workers().into_iter().zip(pool.stacks());
                    let text = workers.map(|(worker, stack)| format!("{worker}\n{stack}"));
                    text.collect()
                });
                asked.map_err(|rejected| rejected.to_string())
            });
        let (said, stacks) = match asked {
            Ok(handle) => ("asking the workers ...".to_owned(), Some(handle)),
            Err(error) => (format!("no stacks: {error}"), None),
        };
        self.cover(Some(Overlay::Text {
            title,
            paragraphs: vec![said],
            scrolled: 0,
        }));
        self.stacks = stacks;
    }
}
