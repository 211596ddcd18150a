//! The state of the screen, as plain values: made from readings and keys, and drawn by `frame.rs`.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::reading::{Flow, Reading};
use super::super::shop::{Level, Shop};

/// How far back rates and percentiles look.
const WINDOW: Duration = Duration::from_secs(1);
/// How many values the sparklines can show: as many as the widest screen has room for.
const MEMORY: usize = 300;

/// The latest of something, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct History(VecDeque<f64>);

impl History {
    fn push(&mut self, value: f64) {
        if self.0.len() == MEMORY {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    pub(super) fn values(
        &self,
    ) -> impl DoubleEndedIterator<Item = &f64> + ExactSizeIterator + Clone {
        self.0.iter()
    }
}

/// A pool, as the screen knows it.
#[derive(Clone, Debug)]
pub(super) struct PoolState {
    pub(super) now: Reading,
    /// The flow of the last second.
    pub(super) flow: Flow,
    pub(super) came: History,
    pub(super) done: History,
    pub(super) rejected: History,
    /// The 99th percentiles, in milliseconds.
    pub(super) wait: History,
    pub(super) run: History,
    /// The readings of the last second, oldest first.
    recent: VecDeque<Reading>,
}

impl PoolState {
    pub(super) fn new(first: Reading) -> Self {
        PoolState {
            now: first.clone(),
            flow: Flow::default(),
            came: History::default(),
            done: History::default(),
            rejected: History::default(),
            wait: History::default(),
            run: History::default(),
            recent: VecDeque::from([first]),
        }
    }

    pub(super) fn add(&mut self, reading: Reading) {
        let from = reading.at.saturating_sub(WINDOW);
        // One that is a full second old stays: the flow is counted from there.
        while self.recent.get(1).is_some_and(|next| next.at <= from) {
            self.recent.pop_front();
        }
        if let Some(oldest) = self.recent.front() {
            self.flow = reading.since(oldest);
        }
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        self.came.push(self.flow.came);
        self.done.push(self.flow.done);
        self.rejected.push(self.flow.rejected);
        let wait = self.flow.wait.map_or(0.0, |times| millis(times.p99));
        let run = self.flow.run.map_or(0.0, |times| millis(times.p99));
        self.wait.push(wait);
        self.run.push(run);
        self.recent.push_back(reading.clone());
        self.now = reading;
    }
}

/// Something that lies over the screen until it is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Overlay {
    Help,
    /// Text about the chosen pool, as of the moment it was asked for.
    Text {
        title: String,
        paragraphs: Vec<String>,
        scrolled: u16,
    },
}

/// The last message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Done(String),
    Rejected(String),
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) pools: Vec<PoolState>,
    pub(super) chosen: usize,
    pub(super) overlay: Option<Overlay>,
    pub(super) message: Option<Message>,
    /// The explanation of the chosen pool.
    pub(super) sentences: Vec<String>,
    pub(super) open_for: Duration,
    /// When it ends by itself.
    pub(super) limit: Option<Duration>,
    pub(super) tide: History,
    pub(super) level: Level,
    /// In percent.
    pub(super) load: u32,
    pub(super) is_paused: bool,
    /// How many tasks are inside, once the doors are shut.
    pub(super) closing: Option<u64>,
}

impl State {
    pub(super) fn new(shop: &Shop, limit: Option<Duration>) -> Self {
        let at = shop.open_for();
        let first = |each| PoolState::new(Reading::take(at, each));
        let mut state = State {
            pools: shop.departments.iter().map(first).collect(),
            chosen: 0,
            overlay: None,
            message: None,
            sentences: Vec::new(),
            open_for: at,
            limit,
            tide: History::default(),
            level: Level::Ebb,
            load: 0,
            is_paused: false,
            closing: None,
        };
        state.look_at_sluice(shop);
        state.listen(shop);
        state
    }

    /// Takes a new reading of everything.
    pub(super) fn look(&mut self, shop: &Shop) {
        self.open_for = shop.open_for();
        for (pool, department) in self.pools.iter_mut().zip(&shop.departments) {
            pool.add(Reading::take(self.open_for, department));
        }
        self.listen(shop);
        self.closing = self.closing.map(|_| shop.inside());
        self.look_at_sluice(shop);
        self.tide.push(self.tide_now(shop));
    }

    fn listen(&mut self, shop: &Shop) {
        let said = shop.departments[self.chosen].pool.explain();
        self.sentences = said.sentences().to_vec();
    }

    fn tide_now(&self, shop: &Shop) -> f64 {
        shop.tide.height(shop.sluice.time())
    }

    fn look_at_sluice(&mut self, shop: &Shop) {
        self.level = shop.tide.level(shop.sluice.time());
        self.load = shop.sluice.load();
        self.is_paused = shop.sluice.is_paused();
    }

    /// Reads the chosen pool's parameters again, so that a change shows before the next reading.
    pub(super) fn refresh(&mut self, shop: &Shop) {
        let fresh = Reading::take(shop.open_for(), &shop.departments[self.chosen]);
        let pool = &mut self.pools[self.chosen].now;
        (pool.snapshot, pool.policy) = (fresh.snapshot, fresh.policy);
        self.look_at_sluice(shop);
    }

    pub(super) fn choose(&mut self, chosen: usize, shop: &Shop) {
        if chosen < self.pools.len() {
            self.chosen = chosen;
            self.listen(shop);
        }
    }

    pub(super) fn scroll(&mut self, lines: i16) {
        if let Some(Overlay::Text { scrolled, .. }) = &mut self.overlay {
            *scrolled = scrolled.saturating_add_signed(lines);
        }
    }

    /// Or as many keys would be needed to come back as were pressed at the end.
    pub(super) fn scroll_no_further_than(&mut self, last: u16) {
        if let Some(Overlay::Text { scrolled, .. }) = &mut self.overlay {
            *scrolled = (*scrolled).min(last);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::reading::Working;
    use super::super::super::reading::tests::planted;
    use super::super::super::shop::Counts;
    use super::*;

    const TICK: Duration = Duration::from_millis(200);

    fn counted(came: u64) -> Counts {
        Counts {
            came,
            gave_up: 0,
            done: came,
            rejected: 0,
            dropped: 0,
        }
    }

    #[test]
    fn a_flow_is_that_of_the_last_second() {
        let mut pool = PoolState::new(planted("orders", Duration::ZERO));
        // Ten at each look, five times a second; then none.
        for look in 1..=20_u32 {
            let mut reading = planted("orders", TICK * look);
            reading.counts = counted(10 * u64::from(look.min(10)));
            pool.add(reading);
            let expected = match look {
                0..=10 => 50.0,
                15.. => 0.0,
                _ => continue,
            };
            assert_eq!(pool.flow.came, expected, "look {look}");
        }
        assert_eq!(pool.came.values().len(), 20);
    }

    #[test]
    fn memory_is_bounded() {
        let mut pool = PoolState::new(planted("orders", Duration::ZERO));
        for look in 1..=400 {
            pool.add(planted("orders", TICK * look));
        }
        assert_eq!(pool.came.values().len(), MEMORY);
        assert!(pool.recent.len() <= 7, "{}", pool.recent.len());
    }

    /// Three pools in the middle of a flood, the same each time.
    pub(in super::super) fn flood() -> State {
        let names = ["orders", "images", "mails"];
        let pools = names.iter().enumerate().map(|(number, name)| {
            let mut pool = PoolState::new(planted(name, Duration::ZERO));
            for look in 1..=40_u32 {
                let mut reading = planted(name, TICK * look);
                let came = u64::from(look * look) * (3 - number as u64) / 2;
                reading.counts = Counts {
                    came,
                    gave_up: 0,
                    done: came * 8 / 10,
                    rejected: came / 10,
                    dropped: 0,
                };
                for wait in 1..=look {
                    reading.wait.add(Duration::from_millis(u64::from(wait * 2)));
                    reading
                        .run
                        .add(Duration::from_millis(u64::from(8 + wait % 5)));
                }
                reading.snapshot.core = 2;
                reading.snapshot.max = 6;
                reading.snapshot.workers = 4;
                reading.snapshot.active = 3;
                reading.snapshot.queued = 23;
                reading.snapshot.capacity = Some(40);
                reading.workers = (1..=4)
                    .map(|worker| Working {
                        thread: format!("{name}-{worker}"),
                        task: (worker < 4)
                            .then(|| ("charge card".into(), Duration::from_millis(7 * worker))),
                    })
                    .collect();
                pool.add(reading);
            }
            pool
        });
        let mut tide = History::default();
        for step in 0..30 {
            tide.push(f64::from(step) / 5.0);
        }
        State {
            pools: pools.collect(),
            chosen: 0,
            overlay: None,
            message: None,
            sentences: vec![
                "orders is running: 3 of 4 workers busy.".into(),
                "Tasks wait because of the flood.".into(),
            ],
            open_for: Duration::from_secs(8),
            limit: None,
            tide,
            level: Level::Flood,
            load: 100,
            is_paused: false,
            closing: None,
        }
    }
}
