//! What a pool knows of the tasks that it runs: how many, how long they waited, how long they ran, and
//! what they did meanwhile; of each name by itself.
//!
//! # How it is kept
//!
//! Each worker has a [`Ledger`] of its own with a [`Sheet`] for every label it has met. Only the worker
//! writes there, so a task costs two looks at the processor's counter (one when it is accepted, one when
//! it ends; the start is the end of the one before, unless the worker had to wait), two buckets, and a
//! handful of plain stores. No line is written by two threads. Readers add the sheets of all workers up
//! ([`Figures`]) and reset nothing. When a worker leaves, its sheets are added to those of the ones that
//! have gone before.
//!
//! Tasks of one label come one after the other more often than not. So whatever has to do with labels is
//! done when the label changes ([`Pen::turns_to`]), and whatever has to do with samples when the time for
//! that has come ([`Sampler`]): a task of the same label as the one before pays for two comparisons.
//!
//! # Invariants
//!
//! - **F1** A task is in the figures of its label when its worker is done with it: soon after its handle
//!   is. Before it is counted as active ([`Ledger::now_running`]).
//! - **F2** Between two tasks a worker shows none. Otherwise the watch could take the one that begins for
//!   the one before it, which may have run for long, and interrupt it. That what is seen belongs to one
//!   task, its number, its start, its label and its place, is the promise of [`Turns`], and is proved and
//!   modelled there: a worker [begins](Ledger::begins) a turn before it shows anything of it.

mod names;
mod sample;
mod sheet;

pub use names::Label;
pub use sheet::{Figures, NamedFigures, Usage};

pub(super) use names::{Id, Names};

use crate::executor::Fate;
use crate::task::Task;
use crate::time::Ticker;
use millpond_raw::publish::{Once, Shown};
use millpond_raw::tick::Tick;
use millpond_raw::turns::Turns;
use names::Memory;
use sample::Sampler;
use sheet::Sheet;
use std::cell::Cell;
use std::panic::Location;

/// What one worker writes and all may read.
#[derive(Debug)]
pub(super) struct Ledger {
    sheets: Box<[Once<Sheet>]>,
    /// The tasks of the worker, those aside that it ran in place: the tick at which the present one started,
    /// and its label.
    turns: Turns,
    made_at: Shown<Location<'static>>,
}

/// What a worker runs now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// The how manieth task of its worker it is.
    pub(super) turn: u64,
    pub(super) since: Tick,
    pub(super) id: Id,
    pub(super) made_at: Option<&'static Location<'static>>,
}

impl Ledger {
    /// With room for `sheets` labels; 0 if nothing is to be kept.
    pub(super) fn new(sheets: usize) -> Self {
        Ledger {
            sheets: (0..sheets).map(|_| Once::new()).collect(),
            turns: Turns::new(),
            made_at: Shown::nothing(),
        }
    }

    #[inline]
    fn sheet(&self, id: Id) -> &Sheet {
        match self.sheets[id.index()].get() {
            Some(sheet) => sheet,
            None => self.open(id),
        }
    }

    /// A task is over.
    #[inline]
    pub(super) fn note(&self, id: Id, fate: Fate, waited: u64, ran: u64) {
        self.sheet(id).note(fate, waited, ran);
    }

    #[cold]
    fn open(&self, id: Id) -> &Sheet {
        self.sheets[id.index()].get_or_fill(Sheet::new)
    }

    /// Adds what is in it to sums, by number.
    pub(super) fn add_to(&self, sums: &mut Vec<Figures>) {
        for (index, sheet) in self.sheets.iter().enumerate() {
            if let Some(sheet) = sheet.get() {
                if sums.len() <= index {
                    sums.resize_with(index + 1, Figures::default);
                }
                sheet.add_to(&mut sums[index]);
            }
        }
    }

    /// A task comes, of which nothing is shown yet.
    #[inline]
    pub(super) fn begins(&self) {
        self.turns.begin();
    }

    /// The how manieth task it is that the worker runs, or has run last; for the worker.
    pub(super) fn turn(&self) -> u64 {
        self.turns.number()
    }

    fn shows_label(&self, id: Id, task: &Task) {
        self.turns.set_kind(id.bits());
        self.made_at.show(task.made_at());
    }

    #[inline]
    fn shows_start(&self, since: Tick) {
        // The last: whoever sees the start sees which task it is of.
        self.turns.set_since(since.count());
    }

    #[inline]
    fn shows_nothing(&self) {
        self.turns.end();
    }

    /// What it runs; `None` if it rests, or is between two tasks.
    pub(super) fn now_running(&self) -> Option<Running> {
        let seen = self.turns.read(|| self.made_at.get())?;
        Some(Running {
            turn: seen.number,
            since: Tick::from_count(seen.since),
            id: Id::from_bits(seen.kind),
            made_at: seen.more,
        })
    }
}

/// What a worker needs to write its ledger, and nobody else has.
pub(super) struct Pen {
    memory: Memory,
    sampler: Option<Sampler>,
    /// When the sampler is to be asked again; never, if there is none.
    due: Cell<u64>,
    /// The end of the last task, if the next one may start with it; else 0.
    last: Cell<u64>,
    /// Where the last task was made, if it counted under that; else 0.
    place: Cell<usize>,
    /// What the last task counted under.
    id: Cell<Id>,
    /// How long tasks of that label have run since the sampler last heard of it.
    ran: Cell<u64>,
}

/// Where a pen writes, and by which clock.
#[derive(Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) names: &'a Names,
    pub(super) ticker: &'a Ticker,
}

/// A task that is about to run, as the figures know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    id: Id,
    pub(super) tick: Tick,
    /// For how long it has waited, in nanoseconds.
    pub(super) waited: u64,
}

/// How a worker keeps its figures: at a desk, or not at all. That is settled when its life begins, so that
/// no task has to ask.
pub(super) trait Clerk {
    /// A task has come.
    fn starts(&self, task: &Task) -> Option<Start>;

    /// It is over. Returns for how long it ran, in nanoseconds.
    fn ended(&self, start: Option<Start>, fate: Fate) -> u64;

    /// The worker found nothing at once: the next task starts later than the last one ended.
    fn looks_out(&self);

    /// The worker is about to rest.
    fn rests(&self);
}

/// A worker that keeps figures.
pub(super) struct AtDesk<'a> {
    pub(super) pen: &'a Pen,
    pub(super) desk: Desk<'a>,
}

impl Clerk for AtDesk<'_> {
    #[inline(always)]
    fn starts(&self, task: &Task) -> Option<Start> {
        Some(self.pen.starts(self.desk, task))
    }

    #[inline(always)]
    fn ended(&self, start: Option<Start>, fate: Fate) -> u64 {
        match start {
            Some(start) => self.pen.ended(self.desk, start, fate),
            None => 0,
        }
    }

    #[inline]
    fn looks_out(&self) {
        self.pen.looks_out();
    }

    fn rests(&self) {
        self.pen.rests(self.desk);
    }
}

/// A worker that keeps none.
pub(super) struct WithoutFigures;

impl Clerk for WithoutFigures {
    #[inline]
    fn starts(&self, _: &Task) -> Option<Start> {
        None
    }

    #[inline]
    fn ended(&self, _: Option<Start>, _: Fate) -> u64 {
        0
    }

    fn looks_out(&self) {}

    fn rests(&self) {}
}

impl Pen {
    pub(super) fn new(ticker: &Ticker) -> Self {
        let sampler = Sampler::new(ticker);
        Pen {
            memory: Memory::new(),
            due: Cell::new(if sampler.is_some() { 0 } else { u64::MAX }),
            sampler,
            last: Cell::new(0),
            place: Cell::new(0),
            id: Cell::new(Id::OTHERS),
            ran: Cell::new(0),
        }
    }

    /// A task has come.
    #[inline(always)]
    fn starts(&self, desk: Desk<'_>, task: &Task) -> Start {
        let tick = match self.last.get() {
            0 => desk.ticker.now(),
            last => Tick::from_count(last),
        };
        let place = std::ptr::from_ref(task.made_at()).addr();
        if place != self.place.get() || task.name().is_some() {
            self.turns_to(desk, task, place);
        }
        desk.ledger.shows_start(tick);
        if tick.count() >= self.due.get() {
            self.sample_from(tick);
        }
        let waited = task
            .waits_since()
            .map_or(0, |stamp| desk.ticker.nanos_from(stamp, tick));
        Start {
            id: self.id.get(),
            tick,
            waited,
        }
    }

    /// It is over. Returns for how long it ran, in nanoseconds.
    #[inline(always)]
    fn ended(&self, desk: Desk<'_>, start: Start, fate: Fate) -> u64 {
        let end = desk.ticker.now();
        let ran = desk.ticker.nanos(start.tick, end);
        desk.ledger.note(start.id, fate, start.waited, ran);
        self.ran.set(self.ran.get().wrapping_add(ran));
        if end.count() >= self.due.get() {
            self.sample_until(desk, end);
        }
        self.last.set(end.count());
        // F2.
        desk.ledger.shows_nothing();
        ran
    }

    /// The label is another one than that of the task before, or is a name.
    #[inline(never)]
    fn turns_to(&self, desk: Desk<'_>, task: &Task, place: usize) {
        let id = self.memory.id_of(desk.names, task);
        if let Some(sampler) = self.sampler.as_ref().filter(|_| id != self.id.get()) {
            let due = sampler.hears(desk.ledger, self.id.get(), self.ran.take());
            self.due.set(due);
        }
        self.id.set(id);
        self.place
            .set(if task.name().is_none() { place } else { 0 });
        desk.ledger.shows_label(id, task);
    }

    #[cold]
    fn sample_from(&self, start: Tick) {
        if let Some(due) = self.sampler.as_ref().and_then(|one| one.begins(start)) {
            self.ran.set(0);
            self.due.set(due);
        }
    }

    #[cold]
    fn sample_until(&self, desk: Desk<'_>, end: Tick) {
        if let Some(sampler) = &self.sampler {
            sampler.hears(desk.ledger, self.id.get(), self.ran.take());
            self.due.set(sampler.ends(desk.ledger, end));
        }
    }

    /// The worker found nothing at once: the next task starts later than the last one ended.
    #[inline]
    fn looks_out(&self) {
        self.last.set(0);
    }

    /// The worker is about to rest.
    fn rests(&self, desk: Desk<'_>) {
        if let Some(sampler) = &self.sampler {
            sampler.hears(desk.ledger, self.id.get(), self.ran.take());
            self.due.set(sampler.rests(desk.ledger));
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::task::TaskSpec;
    use crate::time::{Clock, ManualClock};
    use std::time::Duration;

    /// What a pen writes in, by this clock.
    struct Study {
        ledger: Ledger,
        names: Names,
        ticker: Ticker,
    }

    impl Study {
        fn new(clock: &Clock) -> Self {
            let names = Names::new(8);
            Study {
                ledger: Ledger::new(names.sheets()),
                names,
                ticker: Ticker::of(clock),
            }
        }

        fn desk(&self) -> Desk<'_> {
            Desk {
                ledger: &self.ledger,
                names: &self.names,
                ticker: &self.ticker,
            }
        }

        fn shown(&self) -> Option<(u64, Label)> {
            let running = self.ledger.now_running()?;
            Some((running.since.count(), self.names.label(running.id)))
        }
    }

    #[test]
    fn between_two_tasks_that_follow_at_once_none_is_shown() {
        let hand = ManualClock::new();
        let study = Study::new(&hand.clock());
        let pen = Pen::new(&study.ticker);
        let mut since = Vec::new();
        for name in ["grind", "sift", "sift"] {
            let task = TaskSpec::new().name(name).build_detached(|| ());
            study.ledger.begins();
            let start = pen.starts(study.desk(), &task);
            let (tick, label) = study.shown().unwrap();
            assert_eq!(label, Label::Name(name.into()));
            since.push(tick);
            hand.advance(Duration::from_secs(10));
            assert_eq!(
                pen.ended(study.desk(), start, Fate::Completed),
                10_000_000_000
            );
            assert_eq!(study.shown(), None, "F2");
        }
        // Each starts when the one before ended.
        assert!(
            since
                .windows(2)
                .all(|two| two[1] - two[0] == 10_000_000_000)
        );
    }

    #[test]
    fn a_pause_that_outlasts_a_sample_loses_nothing_of_it() {
        let study = Study::new(&Clock::system());
        let pen = Pen::new(&study.ticker);
        let long = study.ticker.ticks(Duration::from_millis(50));
        let early = study.ticker.now();
        let late = Tick::from_count(early.count() + long);
        pen.sample_from(early);
        pen.ran.set(7_000);
        // Another task starts when the stretch should be over: it is still the same stretch.
        pen.sample_from(late);
        pen.ran.set(pen.ran.get() + 3_000);
        pen.sample_until(study.desk(), late);
        let mut sums = Vec::new();
        study.ledger.add_to(&mut sums);
        assert_eq!(sums[0].usage.sampled(), Duration::from_micros(10));
    }
}
