//! The drawings in `docs/guide/scheduling.md`, drawn again from what a pool does.
//!
//! The pool's executor is a shelf: tasks stay there until the test runs them, and whoever runs
//! something for a while runs what comes meanwhile. So runs overlap in one thread, on a manual clock, and
//! every second of every run is known.

use crate::kit::SECOND;
use millpond::executor::{Executor, Rejected, TryExecuteError};
#[cfg(feature = "cron")]
use millpond::schedule::Cron;
use millpond::schedule::{Catchup, Every, Overlap, RunInfo, ScheduledPool};
use millpond::task::Task;
use millpond::time::{Clock, ManualClock};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

const GUIDE: &str = include_str!("../../../../docs/guide/scheduling.md");

/// How many seconds a drawing has.
const WIDTH: u64 = 40;
const HALF: Duration = Duration::from_millis(500);

/// A row of a drawing: where it stands, and how to come to it.
struct Row {
    section: &'static str,
    label: &'static str,
    every: Every,
    overlap: Overlap,
    /// `None` is the usual one.
    catchup: Option<Catchup>,
    /// The second in which the series is made.
    made: u32,
    /// Whether the second run takes twelve seconds.
    is_long: bool,
    /// Whether nothing can begin from 4 to 21.
    is_paused: bool,
    /// Whether a run has its letter from its due time, and not from its number.
    by_due: bool,
}

impl Row {
    fn new(section: &'static str, label: &'static str, every: Every) -> Self {
        Row {
            section,
            label,
            every,
            overlap: Overlap::Queue,
            catchup: None,
            made: 0,
            is_long: section == LONG,
            is_paused: section == PAUSE,
            by_due: false,
        }
    }

    fn made(mut self, second: u32) -> Self {
        self.made = second;
        self
    }

    fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    fn catchup(mut self, catchup: Catchup) -> Self {
        self.catchup = Some(catchup);
        self
    }

    fn by_due(mut self) -> Self {
        self.by_due = true;
        self
    }
}

const WELL: &str = "### When every run is short";
const LONG: &str = "### When a run takes 12 seconds";
const PAUSE: &str = "### After a pause";

/// All rows of all drawings.
fn rows() -> Vec<Row> {
    let rate = |section, label| Row::new(section, label, Every::rate(5 * SECOND)).by_due();
    let delay = |section| Row::new(section, "fixed delay", Every::delay(5 * SECOND));
    #[allow(unused_mut, reason = "cron adds to it")]
    let mut rows = vec![
        Row::new(WELL, "fixed rate", Every::rate(5 * SECOND)).made(3),
        delay(WELL).made(3),
        rate(LONG, "Overlap::Queue"),
        rate(LONG, "Overlap::Skip").overlap(Overlap::Skip),
        rate(LONG, "Overlap::Concurrent").overlap(Overlap::Concurrent),
        rate(LONG, "Catchup::All"),
        rate(LONG, "Catchup::Skip").catchup(Catchup::Skip),
        Row::new(LONG, "Catchup::Delay", Every::rate(5 * SECOND)).catchup(Catchup::Delay),
        delay(LONG),
        rate(PAUSE, "Catchup::All"),
        rate(PAUSE, "Catchup::Skip").catchup(Catchup::Skip),
        Row::new(PAUSE, "Catchup::Delay", Every::rate(5 * SECOND)).catchup(Catchup::Delay),
        delay(PAUSE),
        rate(PAUSE, "All and Skip").overlap(Overlap::Skip),
        rate(PAUSE, "All and Concurrent").overlap(Overlap::Concurrent),
    ];
    #[cfg(feature = "cron")]
    {
        let cron = |section, label| {
            let each_five = Cron::parse("*/5 * * * * *").unwrap();
            Row::new(section, label, Every::cron(each_five))
        };
        rows.extend([
            cron(WELL, "cron */5").made(3),
            cron(LONG, "cron, Overlap::Queue").by_due(),
            cron(LONG, "cron, Overlap::Skip")
                .overlap(Overlap::Skip)
                .by_due(),
        ]);
    }
    rows
}

/// Where tasks lie until somebody runs them.
#[derive(Clone, Debug)]
struct Shelf {
    manual: ManualClock,
    tasks: Arc<Mutex<VecDeque<Task>>>,
}

impl Shelf {
    fn run_all(&self) {
        loop {
            let task = self.tasks.lock().unwrap().pop_front();
            match task {
                Some(task) => task.run(),
                None => return,
            };
        }
    }

    /// Lets time pass until then, and runs what comes meanwhile, which takes its time, too.
    fn pass_until(&self, end: Instant) {
        self.run_all();
        while self.clock().now() < end {
            self.manual.advance(SECOND);
            self.run_all();
        }
    }
}

impl Executor for Shelf {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.tasks.lock().unwrap().push_back(task);
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }

    fn clock(&self) -> Clock {
        self.manual.clock()
    }
}

/// A run: its letter, and its seconds from and to.
struct Run {
    letter: u64,
    begin: u64,
    end: u64,
}

/// Why nothing begins for a while.
#[derive(Clone, Copy, PartialEq)]
enum Pause {
    /// The process stands still.
    Stopped,
    /// The workers are busy with other tasks: submitted tasks stay on the shelf.
    Busy,
}

/// Plays a row, and says which runs there were.
fn play(row: &Row, pause: Pause) -> Vec<Run> {
    let manual = ManualClock::new();
    let shelf = Shelf {
        manual: manual.clone(),
        tasks: Arc::default(),
    };
    let clock = manual.clock();
    // Second 0 is a full minute; what begins then is made a little before.
    let zero = clock.now() + HALF;
    manual.set_wall(SystemTime::UNIX_EPOCH + 60 * SECOND - HALF);

    let runs = Arc::new(Mutex::new(Vec::new()));
    let (seen, stage, by_due, is_long) =
        (Arc::clone(&runs), shelf.clone(), row.by_due, row.is_long);
    let timers = ScheduledPool::on(shelf.clone())
        .decorator(move |info: &RunInfo, run: &mut dyn FnMut()| {
            let begin = stage.clock().now();
            let letter = if by_due {
                (info.due - zero).as_secs() / 5
            } else {
                info.number - 1
            };
            let takes = if is_long && letter == 1 { 12 } else { 2 };
            run();
            let end = begin + takes * SECOND;
            stage.pass_until(end);
            let [begin, end] = [begin, end].map(|time| (time - zero).as_secs());
            seen.lock().unwrap().push(Run { letter, begin, end });
        })
        .build();

    manual.advance(row.made * SECOND);
    let mut series = timers.series(row.every.clone()).overlap(row.overlap);
    if let Some(catchup) = row.catchup {
        series = series.catchup(catchup);
    }
    if !row.label.starts_with("cron") {
        series = series.first_after(HALF);
    }
    let series = series.start_shared(|| ()).unwrap();
    manual.advance(HALF);
    if row.is_paused {
        shelf.pass_until(zero + 4 * SECOND);
        match pause {
            Pause::Stopped => manual.advance(17 * SECOND),
            Pause::Busy => (0..17).for_each(|_| manual.advance(SECOND)),
        }
    }
    shelf.pass_until(zero + Duration::from_secs(WIDTH));
    series.cancel();
    std::mem::take(&mut *runs.lock().unwrap())
}

/// The lines of a row: a run is in the first that is free when it begins.
fn draw(label: &str, mut runs: Vec<Run>) -> Vec<String> {
    runs.sort_by_key(|run| (run.begin, run.letter));
    let mut lanes: Vec<Vec<char>> = Vec::new();
    for run in runs {
        let free = |lane: &Vec<char>| lane[run.begin as usize] == ' ';
        let place = lanes.iter().position(free).unwrap_or_else(|| {
            lanes.push(vec![' '; 2 * WIDTH as usize]);
            lanes.len() - 1
        });
        let letter = char::from(b'a' + u8::try_from(run.letter).unwrap());
        lanes[place][run.begin as usize..run.end as usize].fill(letter);
    }
    let names = std::iter::once(label).chain(std::iter::repeat(""));
    let lines = names.zip(lanes).map(|(name, lane)| {
        let seconds: String = lane[..WIDTH as usize].iter().collect();
        format!(" {name:<21}{seconds}").trim_end().to_owned()
    });
    lines.collect()
}

/// The lines of the drawings in a section of the guide.
fn drawings_in(section: &str) -> Vec<&'static str> {
    let from = GUIDE.lines().skip_while(|line| *line != section).skip(1);
    let lines: Vec<_> = from.take_while(|line| !line.starts_with('#')).collect();
    assert!(!lines.is_empty(), "the guide has no section {section}");
    let drawn = lines.split(|line| line.starts_with("```"));
    drawn.skip(1).step_by(2).flatten().copied().collect()
}

#[test]
fn every_row_of_the_drawings_is_what_the_pool_does() {
    let mut wrong = Vec::new();
    for row in rows() {
        let drawn = draw(row.label, play(&row, Pause::Stopped));
        let guide = drawings_in(row.section);
        if !guide.windows(drawn.len()).any(|lines| lines == drawn) {
            wrong.push(format!("{}\n{}", row.section, drawn.join("\n")));
        }
    }
    assert!(
        wrong.is_empty(),
        "the guide should have\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_small_drawings_in_the_documentation_are_the_same() {
    let plan = include_str!("../../src/schedule/plan.rs");
    let mut compared = 0;
    let rows = rows();
    // Those of a cron are drawn for its own way of catching up.
    let long = rows
        .iter()
        .filter(|row| row.section == LONG && !row.label.starts_with("cron"));
    for row in long {
        let Some((_, choice)) = row.label.split_once("::") else {
            continue;
        };
        let drawn = &draw("", play(row, Pause::Stopped))[0];
        let begin = format!("///  {choice:<13}");
        for small in plan.lines().filter_map(|line| line.strip_prefix(&begin)) {
            assert_eq!(drawn.trim_start().get(..small.len()), Some(small));
            compared += 1;
        }
    }
    // Skip is the name of two choices, and is drawn for each.
    assert_eq!(compared, 8);
}

#[test]
fn workers_that_are_busy_are_a_pause_like_any_other() {
    for row in rows().iter().filter(|row| row.is_paused) {
        let [stopped, busy] = [Pause::Stopped, Pause::Busy].map(|pause| play(row, pause));
        assert_eq!(draw(row.label, stopped), draw(row.label, busy));
    }
}

#[test]
fn every_row_of_the_drawings_is_played() {
    let rows = rows();
    for section in [WELL, LONG, PAUSE] {
        for line in drawings_in(section) {
            let label = line.get(..22).unwrap_or(line).trim();
            // The last of these are the further lines of a row.
            let is_row = !["seconds", "due", ""].contains(&label);
            let needs_cron = label.starts_with("cron") && cfg!(not(feature = "cron"));
            let is_played = rows
                .iter()
                .any(|row| (row.section, row.label) == (section, label));
            assert!(!is_row || needs_cron || is_played, "{section}: {label}");
        }
    }
}
