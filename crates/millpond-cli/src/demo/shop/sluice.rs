//! The sluice: how much of what could come does come, and the time of the shop, which stands still
//! while the sluice is shut.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use millpond::time::Clock;

/// The load that can be chosen, in percent.
pub(crate) const MOST_LOAD: u32 = 500;

#[derive(Debug)]
pub(crate) struct Sluice {
    clock: Clock,
    setting: Mutex<Setting>,
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    percent: u32,
    /// When the shop opened, moved on by all pauses since.
    began: Instant,
    paused_at: Option<Instant>,
    is_closed: bool,
}

impl Sluice {
    pub(super) fn new(clock: Clock, percent: u32) -> Self {
        let began = clock.now();
        Sluice {
            clock,
            setting: Mutex::new(Setting {
                percent,
                began,
                paused_at: None,
                is_closed: false,
            }),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Setting) -> R) -> R {
        // No thread panics while holding it.
        f(&mut self.setting.lock().expect("a setting is always whole"))
    }

    /// The time of the shop.
    pub(crate) fn time(&self) -> Duration {
        let now = self.clock.now();
        self.with(|setting| {
            let now = setting.paused_at.unwrap_or(now);
            now.saturating_duration_since(setting.began)
        })
    }

    /// In percent of the usual.
    pub(crate) fn load(&self) -> u32 {
        self.with(|setting| setting.percent)
    }

    pub(crate) fn set_load(&self, percent: u32) {
        self.with(|setting| setting.percent = percent.min(MOST_LOAD));
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.with(|setting| setting.paused_at.is_some())
    }

    /// No customer comes, and the shop's time stands still; or it goes on where it stood.
    pub(crate) fn pause_or_go_on(&self) {
        let now = self.clock.now();
        self.with(|setting| match setting.paused_at.take() {
            Some(since) => setting.began += now.saturating_duration_since(since),
            None => setting.paused_at = Some(now),
        });
    }

    /// No customer comes any more.
    pub(super) fn close(&self) {
        self.with(|setting| setting.is_closed = true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.with(|setting| setting.is_closed)
    }
}

#[cfg(test)]
mod tests {
    use millpond::time::ManualClock;

    use super::*;

    #[test]
    fn the_time_of_the_shop_stands_still_during_a_pause() {
        let hand = ManualClock::new();
        let sluice = Sluice::new(hand.clock(), 100);
        let second = Duration::from_secs(1);
        hand.advance(3 * second);
        sluice.pause_or_go_on();
        hand.advance(10 * second);
        assert_eq!((sluice.time(), sluice.is_paused()), (3 * second, true));
        sluice.pause_or_go_on();
        hand.advance(second);
        assert_eq!((sluice.time(), sluice.is_paused()), (4 * second, false));
    }

    #[test]
    fn the_load_has_a_limit() {
        let sluice = Sluice::new(ManualClock::new().clock(), 100);
        sluice.set_load(u32::MAX);
        assert_eq!(sluice.load(), MOST_LOAD);
        sluice.set_load(0);
        assert_eq!(sluice.load(), 0);
    }
}
