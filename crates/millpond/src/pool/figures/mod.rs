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
pub(super) use sheet::Sums;

use crate::executor::Fate;
use crate::task::Task;
use crate::time::Ticker;
use millpond_raw::publish::{Once, Shown};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::tick::Tick;
use millpond_raw::turns::Turns;
use names::Memory;
use sample::Sampler;
use sheet::Sheet;
use std::cell::Cell;
use std::panic::Location;
use std::time::Duration;

/// What one worker writes and all may read.
#[derive(Debug)]
pub(super) struct Ledger {
    sheets: Box<[Once<Sheet>]>,
    /// The generation of what is on each sheet (L2 in [`names`]).
    generations: Box<[AtomicU64]>,
    /// While a sheet is cleared nobody reads, so that nobody sees anything twice or not at all.
    clearing: Mutex<()>,
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
            generations: (0..sheets).map(|_| AtomicU64::new(0)).collect(),
            clearing: Mutex::new(()),
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

    /// The sheet of this label, if it still has one here; otherwise that of the others.
    fn sheet_now(&self, id: Id) -> &Sheet {
        match self.generation(id) == id.generation() {
            true => self.sheet(id),
            false => self.sheet(Id::OTHERS),
        }
    }

    #[inline]
    fn generation(&self, id: Id) -> u64 {
        // Relaxed: the worker's own.
        self.generations[id.index()].load(Ordering::Relaxed)
    }

    /// Gets the sheet of this label ready, for its worker. Returns what the label counts under: the others, if
    /// another one has its place by now.
    #[inline]
    fn open_page(&self, id: Id) -> Id {
        match self.generation(id) == id.generation() {
            true => id,
            false => self.turn_page(id),
        }
    }

    #[cold]
    fn turn_page(&self, id: Id) -> Id {
        if self.generation(id) > id.generation() {
            return Id::OTHERS;
        }
        let others = self.sheet(Id::OTHERS);
        let _nobody_reads = self.clearing.lock();
        if let Some(sheet) = self.sheets[id.index()].get() {
            sheet.move_to(others);
        }
        self.generations[id.index()].store(id.generation(), Ordering::Relaxed);
        id
    }

    /// A task is over that ran inside another one, which has yet to be counted where it began (L2).
    pub(super) fn note_nested(&self, id: Id, fate: Fate, waited: u64, ran: u64) {
        let outer = Id::from_bits(self.turns.kind());
        let id = match outer.index() == id.index() {
            true => id,
            false => self.open_page(id),
        };
        self.sheet_now(id).note(fate, waited, ran);
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

    /// Adds what is in it to sums, by the ids of labels.
    pub(super) fn add_to(&self, sums: &mut Sums) {
        let _nothing_is_cleared = self.clearing.lock();
        for (index, sheet) in self.sheets.iter().enumerate() {
            if let Some(sheet) = sheet.get() {
                let generation = self.generations[index].load(Ordering::Relaxed);
                sums.add(Id::new(index, generation), |sum| sheet.add_to(sum));
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

/// How often a worker without a sampler checks what it knows of labels.
const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

/// What a worker needs to write its ledger, and nobody else has.
pub(super) struct Pen {
    memory: Memory,
    sampler: Option<Sampler>,
    /// When the sampler is to be asked again; or, if there is none, what it knows of labels to be checked.
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
            due: Cell::new(0),
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
            self.sample_from(desk, tick);
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
        let id = desk.ledger.open_page(id);
        self.id.set(id);
        self.place
            .set(if task.name().is_none() { place } else { 0 });
        desk.ledger.shows_label(id, task);
    }

    #[cold]
    fn sample_from(&self, desk: Desk<'_>, start: Tick) {
        let Some(sampler) = &self.sampler else {
            self.checks_labels(desk);
            let pause = desk.ticker.ticks(BETWEEN_CHECKS);
            return self.due.set(start.count().saturating_add(pause));
        };
        if let Some(due) = sampler.begins(start) {
            self.ran.set(0);
            self.due.set(due);
        }
    }

    /// Asks again for the label of the next task, if a round has begun ([`names`]). Here, and not for every
    /// task: tasks of one label that come one after the other ask for nothing.
    fn checks_labels(&self, desk: Desk<'_>) {
        if self.memory.is_outdated(desk.names) {
            self.place.set(0);
        }
    }

    #[cold]
    fn sample_until(&self, desk: Desk<'_>, end: Tick) {
        if let Some(sampler) = &self.sampler {
            sampler.hears(desk.ledger, self.id.get(), self.ran.take());
            self.due.set(sampler.ends(desk.ledger, end));
            self.checks_labels(desk);
        }
    }

    /// The worker found nothing at once: the next task starts later than the last one ended.
    #[inline]
    fn looks_out(&self) {
        self.last.set(0);
    }

    /// The worker is about to rest.
    fn rests(&self, desk: Desk<'_>) {
        self.checks_labels(desk);
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
        pen.sample_from(study.desk(), early);
        pen.ran.set(7_000);
        // Another task starts when the stretch should be over: it is still the same stretch.
        pen.sample_from(study.desk(), late);
        pen.ran.set(pen.ran.get() + 3_000);
        pen.sample_until(study.desk(), late);
        let mut sums = Sums::default();
        study.ledger.add_to(&mut sums);
        assert_eq!(sums.rest().usage.sampled(), Duration::from_micros(10));
    }

    /// Three workers, ten labels and places for three, in an order that is drawn: whatever happens, nothing is
    /// lost, nothing is counted twice, and nothing is counted under a label that is not its own. Tasks of
    /// the label `n` take `n` seconds, so times tell whose they are.
    #[test]
    fn whoever_loses_its_place_sums_are_exact_and_nobody_has_the_figures_of_another() {
        let (hand, second) = (ManualClock::new(), Duration::from_secs(1));
        let (names, ticker) = (Names::new(3), Ticker::of(&hand.clock()));
        let mut ledgers = [(); 3].map(|()| Ledger::new(names.sheets()));
        let mut pens = [(); 3].map(|()| Pen::new(&ticker));
        let (mut gone, mut folded) = (Sums::default(), 0);
        let mut drawn = 7_u64;
        let mut draw = |below: u64| {
            drawn = drawn
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (drawn >> 33) % below
        };
        let mut ran = [0_u64; 11];
        for round in 1..6_000 {
            let worker = draw(3) as usize;
            let (ledger, pen) = (&ledgers[worker], &pens[worker]);
            let desk = Desk {
                ledger,
                names: &names,
                ticker: &ticker,
            };
            // Labels come in fashion and go out of it.
            let number = 1 + (round / 300 + draw(4)) % 10;
            let spec = TaskSpec::new().name(number.to_string());
            pen.looks_out();
            let start = pen.starts(desk, &spec.build_detached(|| ()));
            hand.advance(second * number as u32);
            if draw(4) == 0 {
                // One that is joined in place, inside.
                let nested = 1 + draw(10);
                let id = names.id_of(Some(&nested.to_string()), Location::caller());
                ledger.note_nested(id, Fate::Completed, 0, nested * 1_000_000_000);
                ran[nested as usize] += 1;
            }
            pen.ended(desk, start, Fate::Completed);
            ran[number as usize] += 1;
            match draw(20) {
                0 => names.renew(hand.clock().now(), &[], |_| 0),
                1 => pen.rests(desk),
                2 => {
                    // It leaves, and another comes.
                    ledger.add_to(&mut gone);
                    ledgers[worker] = Ledger::new(names.sheets());
                    pens[worker] = Pen::new(&ticker);
                }
                _ => {}
            }
            let mut sums = gone.clone();
            for ledger in &ledgers {
                ledger.add_to(&mut sums);
            }
            let mut all = 0;
            for known in names.all() {
                let figures = sums.take(known.id);
                all += figures.completed;
                if let Label::Name(name) = &known.label {
                    let number: u32 = name.parse().unwrap();
                    let own = second * number * figures.completed as u32;
                    assert_eq!(figures.run.total(), own, "of {name}, in round {round}");
                    assert!(figures.completed <= ran[number as usize]);
                }
                folded = folded.max(known.labels);
            }
            all += sums.rest().completed;
            assert_eq!(all, ran.iter().sum::<u64>(), "in round {round}");
        }
        assert!(folded > 10, "places have changed hands: {folded}");
    }
}
