//! When the runs of a series are due: pure functions over plain times, without a clock.

#[cfg(feature = "cron")]
use super::cron::Cron;
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

/// How a series repeats.
///
/// ```
/// use millpond::schedule::Every;
/// use std::time::Duration;
///
/// let beat = Every::rate(Duration::from_secs(5)); // start to start
/// let pause = Every::delay(Duration::from_secs(5)); // end to start
/// assert_eq!(beat.to_string(), "every 5s");
/// assert_eq!(pause.to_string(), "5s after each run");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Every(pub(super) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rate(Duration),
    Delay(Duration),
    #[cfg(feature = "cron")]
    Cron(Box<Cron>),
}

impl Every {
    /// At a fixed rate: so much time from the due time of one run to that of the next.
    ///
    /// ```
    /// use millpond::schedule::Every;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Every::rate(Duration::from_millis(250)).to_string(), "every 250ms");
    /// ```
    pub fn rate(period: Duration) -> Self {
        Every(Kind::Rate(period))
    }

    /// With a fixed delay: so much time from the end of one run to the due time of the next.
    ///
    /// ```
    /// use millpond::schedule::Every;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Every::delay(Duration::from_secs(1)).to_string(), "1s after each run");
    /// ```
    pub fn delay(delay: Duration) -> Self {
        Every(Kind::Delay(delay))
    }

    /// At the times of a calendar.
    ///
    /// ```
    /// use millpond::schedule::{Cron, Every};
    ///
    /// let daily: Cron = "30 7 * * *".parse()?;
    /// assert_ne!(Every::cron(daily).to_string(), "");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "cron")]
    pub fn cron(cron: Cron) -> Self {
        Every(Kind::Cron(Box::new(cron)))
    }

    /// Why it is invalid, if it is.
    pub(super) fn problem(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::Rate(Duration::ZERO) => Some(
                "a period of 0 would run without end in no time: give it at least a nanosecond, or \
                 use a fixed delay",
            ),
            Kind::Delay(Duration::ZERO) => Some(
                "a delay of 0 would run without end in no time: give it at least a nanosecond, or \
                 loop inside one task",
            ),
            _ => None,
        }
    }

    /// Whether runs of it can overlap at all.
    pub(super) fn may_overlap(&self) -> bool {
        !matches!(self.0, Kind::Delay(_))
    }

    /// Whether it goes by the wall clock.
    pub(super) fn is_calendar(&self) -> bool {
        match self.0 {
            Kind::Rate(_) | Kind::Delay(_) => false,
            #[cfg(feature = "cron")]
            Kind::Cron(_) => true,
        }
    }

    pub(super) fn default_catchup(&self) -> Catchup {
        match self.0 {
            Kind::Rate(_) | Kind::Delay(_) => Catchup::All,
            #[cfg(feature = "cron")]
            Kind::Cron(_) => Catchup::Skip,
        }
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Rate(period) => write!(f, "every {period:?}"),
            Kind::Delay(delay) => write!(f, "{delay:?} after each run"),
            #[cfg(feature = "cron")]
            Kind::Cron(cron) => cron.fmt(f),
        }
    }
}

/// What becomes of a run that is due while one of the same series still runs, or waits for a worker.
///
/// A run every 5 seconds, of which `b` takes 12; each column is a second:
///
/// ```text
///  due          a    b    c    d    e    f
///  Queue        aa   bbbbbbbbbbbbccddee  ff
///  Skip         aa   bbbbbbbbbbbb   ee   ff
///  Concurrent   aa   bbbbbbbbbbbb   ee   ff
///                         cc   dd
/// ```
///
/// ```
/// use millpond::preset;
/// use millpond::schedule::{Every, Overlap};
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 2)?;
/// let every = Every::rate(Duration::from_secs(5));
/// let sample = timers.series(every).overlap(Overlap::Skip).start(|| println!("a sample"))?;
/// # sample.cancel();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// It is skipped, and counted as such.
    Skip,
    /// It waits until the run before it has ended. What Java does.
    #[default]
    Queue,
    /// It starts beside the other one. The closure is called by several threads at once then, so such
    /// a series is started with [`start_shared`](super::SeriesBuilder::start_shared).
    Concurrent,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Overlap::Skip => "skip",
            Overlap::Queue => "queue",
            Overlap::Concurrent => "concurrent",
        })
    }
}

/// What becomes of due times that were missed: the machine slept, the executor had no room, a run took
/// long. The late run itself takes place in any case; this is about those after it.
///
/// A run every 5 seconds, of which `b` takes 12, with [`Overlap::Queue`]; each column is a second:
///
/// ```text
///  due          a    b    c    d    e    f
///  All          aa   bbbbbbbbbbbbccddee  ff
///  Skip         aa   bbbbbbbbbbbb   ee   ff
///  Delay        aa   bbbbbbbbbbbb     cc   dd
/// ```
///
/// ```
/// use millpond::preset;
/// use millpond::schedule::{Catchup, Every};
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 1)?;
/// let every = Every::rate(Duration::from_secs(5));
/// let beat = timers.series(every).catchup(Catchup::Skip).start(|| println!("beat"))?;
/// # beat.cancel();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catchup {
    /// All of them take place, at once, one after the other. What Java does. If the executor rejects one, the other
    /// missed ones are skipped with it: it would reject them, too.
    All,
    /// None of them: the next one is the first that is still to come.
    #[doc(alias = "MissedTickBehavior")]
    Skip,
    /// None of them, and the series is shifted: the next one is a period after it is computed.
    /// With [`Overlap::Queue`] that is when the late run has ended, otherwise when it is handed over. For
    /// the times of a calendar this is the same as `Skip`.
    Delay,
}

impl fmt::Display for Catchup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Catchup::All => "all",
            Catchup::Skip => "skip",
            Catchup::Delay => "delay",
        })
    }
}

/// A due time, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueTime {
    pub(super) due: Instant,
    /// By the calendar; without meaning for a series without one.
    pub(super) wall: SystemTime,
}

/// The time, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) instant: Instant,
    pub(super) wall: SystemTime,
}

/// When the next run is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Further away than time can be told, or the calendar has no such time.
    Never,
    At(DueTime),
}

/// A wall clock that is further back than this has been set; less is noise.
const STEP: Duration = Duration::from_secs(60);

impl Every {
    /// The run after the one that was due at `last`. For a fixed delay `now` is the end of that run.
    pub(super) fn next(&self, catchup: Catchup, last: DueTime, now: Now) -> Next {
        let due = match &self.0 {
            Kind::Delay(delay) => now.instant.checked_add(*delay),
            Kind::Rate(period) => after(last.due, *period, catchup, now.instant),
            #[cfg(feature = "cron")]
            Kind::Cron(cron) => return next_of(cron, catchup, last, now),
        };
        let wall = now.wall;
        due.map_or(Next::Never, |due| Next::At(DueTime { due, wall }))
    }

    /// The first run of a series that starts now.
    pub(super) fn first(&self, initial: Option<Duration>, now: Now) -> Next {
        let wall = now.wall;
        let delay = match &self.0 {
            Kind::Rate(own) | Kind::Delay(own) => initial.unwrap_or(*own),
            #[cfg(feature = "cron")]
            Kind::Cron(cron) => {
                let from = wall.checked_add(initial.unwrap_or(Duration::ZERO));
                let target = from.and_then(|from| cron.next_after(from));
                return target.map_or(Next::Never, |target| at_wall(target, now));
            }
        };
        let due = now.instant.checked_add(delay);
        due.map_or(Next::Never, |due| Next::At(DueTime { due, wall }))
    }
}

fn after(last: Instant, period: Duration, catchup: Catchup, now: Instant) -> Option<Instant> {
    let regular = last.checked_add(period)?;
    if regular >= now {
        return Some(regular);
    }
    match catchup {
        Catchup::All => Some(regular),
        Catchup::Delay => now.checked_add(period),
        Catchup::Skip => {
            // How far into its period it is now; what is left of it is the way to the next.
            let gone = now.duration_since(last).as_nanos() % period.as_nanos();
            now.checked_add(period - from_nanos(gone))
        }
    }
}

/// What `Duration::from_nanos` does, for as many as an `Instant` can be away from another.
fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    match u64::try_from(nanos / SECOND) {
        Ok(seconds) => Duration::new(seconds, (nanos % SECOND) as u32),
        Err(_) => Duration::MAX,
    }
}

#[cfg(feature = "cron")]
fn next_of(cron: &Cron, catchup: Catchup, last: DueTime, now: Now) -> Next {
    let from = match catchup {
        // Times that come again because the clock was set back are times like any other.
        _ if is_set_back(last.wall, now.wall) => now.wall,
        Catchup::All => last.wall,
        Catchup::Skip | Catchup::Delay => last.wall.max(now.wall),
    };
    let target = cron.next_after(from);
    target.map_or(Next::Never, |target| at_wall(target, now))
}

/// Whether somebody has set the wall clock back that showed `before`.
pub(super) fn is_set_back(before: SystemTime, now: SystemTime) -> bool {
    now.checked_add(STEP).is_some_and(|later| later < before)
}

/// The moment at which the wall clock will show `target`, if nobody sets it.
pub(super) fn at_wall(target: SystemTime, now: Now) -> Next {
    let left = target.duration_since(now.wall).unwrap_or(Duration::ZERO);
    match now.instant.checked_add(left) {
        Some(due) => Next::At(DueTime { due, wall: target }),
        None => Next::Never,
    }
}
