//! CPU contention: whether a thread that yields gets its CPU back soon.
//!
//! A thread that expects a short wait may yield for a while before it parks. If no other thread wants the CPU, a yield
//! takes half a microsecond, and parking would help no one. But if another thread wants the CPU, even one of the lowest
//! priority, the kernel lets it run for a whole time slice: 3 ms on Linux. Meanwhile other threads take the yielding
//! thread for awake: a submitter that counts it as searching wakes no worker. So a yield is right on a quiet machine and
//! wrong on a busy one, and the only cheap way to tell them apart is to measure yields.
//!
//! All yields of the library go through [`yield_now`], which measures them. The threads of the process share one state:
//!
//! ```text
//!          a loss: a yield took               MIN_LOSSES in all,       no yields
//!          longer than LOST                   each within PROBATION    for a period
//!   calm ----------------------> probation ----------------------> contended
//!    ^                            |      ^                            |
//!    |   no loss within PROBATION |      |     the period is over     |
//!    +----------------------------+      +----------------------------+
//! ```
//!
//! These are no proof of contention:
//!
//! - **A few losses**, or many among very many yields ([`MAX_KEPT`]): a virtual machine stands still now and then, and
//!   it takes the kernel a moment to spread new threads over the CPUs.
//! - **Losses that our own threads cause.** If they use all CPUs of the process, as producers and consumers on few CPUs
//!   do, a yield lets those go on that are behind. Throughput would suffer without it. So the CPU time of the process is
//!   compared with the CPU time at an earlier loss ([`CpuSample`]). A loss counts if the process has used less than three
//!   fifths of its CPUs since then. Other losses are *excused*.
//! - **The first loss.** It never counts, because there is no earlier one to compare with. The same holds for a loss after
//!   more than [`MAX_SPAN`] without one, or less than [`MIN_SPAN`] after the one that it would be compared with. If the
//!   system does not tell the CPU time of the process, nothing is compared, and every loss counts.
//!
//! One of our own threads may also be one that only computes. A yield to such a thread is as bad as a yield to another
//! process. The tasks that a worker finds when it has its CPU back tell the two apart. If a producer had the CPU, there
//! are many tasks, and throughput gains. A lone task has lost up to a time slice: no worker was woken for it, because this
//! one counted as searching. So an excused loss counts after all if the worker finds few tasks after it
//! ([`record_late`]).
//!
//! If a loss ends a probation that followed a period, the next period is twice as long, up to 64 s. Otherwise it is
//! [`MIN_PERIOD`]. So on a machine that stays busy, losses, which cost milliseconds, happen less and less often.
//!
//! # A look before the loss
//!
//! A loss costs a time slice even if it teaches something. Linux tells how many threads want a CPU ([`run_queue`]), so where
//! latency counts, in searches and joins, a thread that may yield by the above looks first: if more threads want a CPU than
//! there are, the machine is *crowded*, and it does not yield. Waits for an element or for room of a queue do not look: on a
//! crowded machine yields hand the CPU to the other side as well, and eight threads at a queue of capacity 1 took five times
//! as long without. A look takes a few microseconds and holds for [`LOOK_HOLDS`], for the whole process. If our own
//! threads are those that want the CPUs, yields are right (see above), so the machine counts as crowded only if the process
//! has not used most of its CPUs itself. Where the kernel does not tell, losses alone decide; so they do if
//! the process may not use all CPUs of the machine, because then its own threads wait for each other while CPUs are idle: on
//! one of two CPUs a burst of 10,000 tasks took 1.5 times as long when workers parked for that.
//!
//! # Invariants
//!
//! - **CONTENTION-1** A period ends at most 64 s after the loss that began it. If the timestamp counter
//!   goes back, as after a suspend of the machine, the period ends at once.
//! - **CONTENTION-2** Threads that lose their CPUs at about the same time begin one period. The state is one word, and
//!   only a loss outside of a period changes it, by compare-and-swap.
//! - **CONTENTION-3** A look holds for [`LOOK_HOLDS`], or until the timestamp counter goes back. One of the threads that find
//!   it outdated at about the same time looks, and the others go by the old one.
//!
//! All accesses are relaxed: each word is complete in itself and guards no other memory, and a thread that reads an old
//! value yields once more, or once less.

use super::run_queue;
use millpond_raw::cpu_time;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::sync::{global, local, thread};
use millpond_raw::timestamp::{self, Timestamp};
use std::cell::Cell;
use std::time::Duration;

/// A yield that takes longer has lost the CPU. Threads of our own that take turns on a CPU run for some
/// microseconds each; a time slice is 1 ms or more on every system.
const LOST: Duration = Duration::from_micros(200);

/// How long a loss is remembered.
const PROBATION: Duration = Duration::from_millis(250);

/// The first period.
const MIN_PERIOD: Duration = Duration::from_millis(250);

/// How often a period doubles at most.
const MAX_DOUBLINGS: u64 = 8;

/// A loss counts if the thread has yielded less often than this since its last loss. On a busy machine one in about a hundred
/// yields is a loss. On a quiet virtual machine, whose hypervisor takes the CPU now and then, one in more than ten thousand
/// yields was a loss in our measurements.
const MAX_KEPT: u32 = 500;

/// The unit of a [`CpuSample`].
const UNIT: Duration = Duration::from_micros(100);

/// CPU time is compared over at least this time: the kernel brings that of a running thread up to date every few
/// milliseconds only.
const MIN_SPAN: Duration = Duration::from_millis(20);

/// CPU time is compared over at most this time: what the process did before says nothing about this loss.
const MAX_SPAN: Duration = Duration::from_secs(1);

/// How long a look at the run queue holds. Shorter, and a thread that waits often would look all the time; longer, and a thread
/// that starts to compute elsewhere is noticed by a loss.
const LOOK_HOLDS: Duration = Duration::from_micros(500);

/// How long the last look says something to a thread that does not look itself ([`was_crowded`]).
const LOOK_LASTS: Duration = Duration::from_millis(100);

/// This many losses in a row are contention.
const MIN_LOSSES: u64 = 3;

/// The low bits of the word: the number of losses in a row. Those beyond [`MIN_LOSSES`] double the period.
const LEVEL: u64 = 0xff;

global! {
    static STATE: AtomicU64 = AtomicU64::new(0);
}

global! {
    /// The CPU time at an earlier loss; 0 if there was none.
    static SAMPLE: AtomicU64 = AtomicU64::new(0);
}

global! {
    /// The number of CPUs of the process; 0 until it is first read. It only helps to tell who took a CPU and whether spinning
    /// makes sense, so it need not follow changes.
    static CPUS: AtomicU64 = AtomicU64::new(0);
}

global! {
    /// The last look at the run queue; 0 if there was none.
    static LOOK: AtomicU64 = AtomicU64::new(0);
}

global! {
    /// The number of CPUs of the machine, and 1 more; 0 until it is first read, 1 if it is unknown.
    static ONLINE: AtomicU64 = AtomicU64::new(0);
}

local! {
    /// The number of losses of this thread that counted, since the last [`take_losses`].
    static LOSSES: Cell<u64> = Cell::new(0);
}

local! {
    /// How often this thread has yielded since its last loss.
    static KEPT: Cell<u32> = Cell::new(0);
}

/// What is known of losses. The high bits are a timestamp, the end of the period, or the last loss if there was no
/// period; the low bits, some nanoseconds of it, are the [`LEVEL`]. The word is 0 if there was no loss at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Contention(u64);

impl Contention {
    /// The length of the period; zero if there was none.
    fn period(self) -> Duration {
        match (self.0 & LEVEL).checked_sub(MIN_LOSSES) {
            None => Duration::ZERO,
            Some(doublings) => MIN_PERIOD * (1 << doublings.min(MAX_DOUBLINGS)),
        }
    }

    fn end(self) -> Timestamp {
        Timestamp::from_count(self.0 & !LEVEL)
    }

    /// CONTENTION-1: if the period would end later than it can, the counter has gone back.
    fn is_contended(self, now: Timestamp) -> bool {
        now < self.end() && u128::from(self.end().nanos_since(now)) <= self.period().as_nanos()
    }

    /// Whether another loss proves contention.
    fn is_on_probation(self, now: Timestamp) -> bool {
        let probation = PROBATION.max(self.period());
        self.0 != 0
            && now >= self.end()
            && u128::from(now.nanos_since(self.end())) <= probation.as_nanos()
    }

    /// The state after a loss that ended at `now`, outside of a period.
    fn after_loss(self, now: Timestamp) -> Contention {
        let level = if self.is_on_probation(now) {
            ((self.0 & LEVEL) + 1).min(MIN_LOSSES + MAX_DOUBLINGS)
        } else {
            1
        };
        let period = Contention(level).period();
        let end = now.count().saturating_add(timestamp::ticks(period));
        Contention(end & !LEVEL | level)
    }
}

fn state() -> Contention {
    Contention(STATE.load(Ordering::Relaxed))
}

/// Whether a thread may yield, by the losses of late. If not, it spins for a moment without yielding, or parks.
#[inline]
pub(crate) fn may_yield() -> bool {
    let state = state();
    state.0 == 0 || !state.is_contended(timestamp::now())
}

/// Whether other processes want CPUs of this machine, more than there are. Looks at the run queue if the last look is
/// outdated.
#[inline]
pub(crate) fn is_crowded() -> bool {
    let now = timestamp::now();
    let seen = Look(LOOK.load(Ordering::Relaxed));
    if seen.is_within(now, LOOK_HOLDS) {
        seen.is_crowded()
    } else {
        look(seen, now).is_crowded()
    }
}

/// Whether the machine was crowded, by a look that was taken a while ago at most. Takes no look.
pub(crate) fn was_crowded() -> bool {
    let seen = Look(LOOK.load(Ordering::Relaxed));
    seen.is_crowded() && seen.is_within(timestamp::now(), LOOK_LASTS)
}

/// A look at the run queue. The high bits are a timestamp, the two low ones, less than two nanoseconds of it, what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look(u64);

impl Look {
    /// More threads want a CPU than there are, and not because of ours.
    const CROWDED: u64 = 1;

    /// When CPU time was last compared, the process had used most of its CPUs itself.
    const OWN_LOAD: u64 = 2;

    fn new(now: Timestamp, is_long: bool, is_own_load: bool) -> Look {
        let time = now.count() & !(Look::CROWDED | Look::OWN_LOAD);
        let crowded = if is_long && !is_own_load {
            Look::CROWDED
        } else {
            0
        };
        let own_load = if is_own_load { Look::OWN_LOAD } else { 0 };
        Look(time | crowded | own_load)
    }

    fn is_crowded(self) -> bool {
        self.0 & Look::CROWDED != 0
    }

    fn is_own_load(self) -> bool {
        self.0 & Look::OWN_LOAD != 0
    }

    /// Whether it was taken less than `time` ago. False if the counter has gone back (CONTENTION-3).
    fn is_within(self, now: Timestamp, time: Duration) -> bool {
        let taken = Timestamp::from_count(self.0 & !(Look::CROWDED | Look::OWN_LOAD));
        self.0 != 0 && now >= taken && u128::from(now.nanos_since(taken)) < time.as_nanos()
    }
}

/// Looks at the run queue, unless another thread looks at this moment: then the old look holds for that long (CONTENTION-3).
#[cold]
fn look(seen: Look, now: Timestamp) -> Look {
    let renewed =
        Look(Look::new(now, false, false).0 | (seen.0 & (Look::CROWDED | Look::OWN_LOAD)));
    if LOOK
        .compare_exchange(seen.0, renewed.0, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
    {
        return renewed;
    }
    let is_long = online_cpus()
        .filter(|&online| cpus() >= online)
        .zip(run_queue::runnable_threads())
        .is_some_and(|(online, threads)| threads > online);
    // CPU time matters only if the queue is long. What was found earlier holds until it can be compared anew.
    let was_own_load = seen.is_own_load() && seen.is_within(now, MAX_SPAN);
    let is_own_load = if is_long {
        compare_cpu_time(now).unwrap_or(was_own_load)
    } else {
        was_own_load
    };
    let look = Look::new(now, is_long, is_own_load);
    LOOK.store(look.0, Ordering::Relaxed);
    look
}

/// The number of CPUs of the machine.
fn online_cpus() -> Option<u64> {
    let known = ONLINE.load(Ordering::Relaxed);
    if known > 0 {
        return known.checked_sub(1).filter(|&cpus| cpus > 0);
    }
    let online = run_queue::online_cpus();
    ONLINE.store(1 + online.unwrap_or(0), Ordering::Relaxed);
    online
}

/// The outcome of a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Yielded {
    /// The thread had its CPU back soon, or at once.
    Kept,
    /// It has lost its CPU, and should not go on yielding.
    Lost,
    /// The same, but threads of our own seem to be the cause: it has not been counted.
    Excused,
}

/// Yields and measures the yield, whether or not a thread [may yield](may_yield): callers check that first.
#[inline]
pub(crate) fn yield_now() -> Yielded {
    let before = timestamp::now();
    thread::yield_now();
    let after = timestamp::now();
    if u128::from(after.nanos_since(before)) > LOST.as_nanos() {
        return record_loss(after, KEPT.with(|own| own.replace(0)));
    }
    KEPT.with(|own| own.set(own.get().saturating_add(1)));
    Yielded::Kept
}

/// Records a loss that ended at `now`, after so many yields without one, if it counts.
#[cold]
fn record_loss(now: Timestamp, kept: u32) -> Yielded {
    if kept >= MAX_KEPT {
        return Yielded::Lost;
    }
    if !is_others_load(now) {
        return Yielded::Excused;
    }
    count_loss(now);
    Yielded::Lost
}

/// A task has waited for a worker whose last yield was [excused](Yielded::Excused): it counts as a loss.
#[cold]
pub(crate) fn record_late() {
    count_loss(timestamp::now());
}

/// Counts a loss that ended at `now`, unless a period has begun meanwhile.
fn count_loss(now: Timestamp) {
    let state = state();
    if state.is_contended(now) {
        return;
    }
    LOSSES.with(|losses| losses.set(losses.get().wrapping_add(1)));
    advance(&STATE, state, now);
}

/// Changes the state that was read as `seen` after a loss, unless another thread has changed it meanwhile: then the loss of
/// that thread stands for both (CONTENTION-2).
fn advance(word: &AtomicU64, seen: Contention, now: Timestamp) {
    let next = seen.after_loss(now).0;
    let _ = word.compare_exchange(seen.0, next, Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether other processes have used the CPUs since an earlier loss. True if CPU time is unknown; false if there is no loss
/// to compare with.
fn is_others_load(now: Timestamp) -> bool {
    match cpu_time::process_cpu_now() {
        None => true,
        Some(cpu) => compare_sample(now, cpu) == Some(false),
    }
}

/// Whether the process has used most of its CPUs itself since an earlier sample; `None` if there is none to compare with.
fn compare_cpu_time(now: Timestamp) -> Option<bool> {
    compare_sample(now, cpu_time::process_cpu_now()?)
}

fn compare_sample(now: Timestamp, cpu: Duration) -> Option<bool> {
    let earlier = CpuSample(SAMPLE.load(Ordering::Relaxed));
    let sample = CpuSample::new(now, cpu);
    let span = sample.wall_since(earlier);
    if earlier.0 == 0 || span >= MIN_SPAN {
        let _ = SAMPLE.compare_exchange(earlier.0, sample.0, Ordering::Relaxed, Ordering::Relaxed);
    }
    let is_comparable = earlier.0 != 0 && (MIN_SPAN..=MAX_SPAN).contains(&span);
    is_comparable.then(|| sample.is_own_load_since(earlier, cpus()))
}

/// The CPU time of the process at some time, both in units of [`UNIT`], 32 bits each: one word, so that they belong
/// together. They wrap around after five days, and are compared over a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuSample(u64);

impl CpuSample {
    fn new(now: Timestamp, cpu: Duration) -> Self {
        let wall = u128::from(now.nanos_since(Timestamp::from_count(0))) / UNIT.as_nanos();
        let cpu = cpu.as_nanos() / UNIT.as_nanos();
        CpuSample(u64::from(wall as u32) << 32 | u64::from(cpu as u32))
    }

    fn wall(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn cpu(self) -> u32 {
        self.0 as u32
    }

    fn wall_since(self, earlier: CpuSample) -> Duration {
        UNIT * self.wall().wrapping_sub(earlier.wall())
    }

    /// Whether the process has used its CPUs itself, or most of them. It may use less than it could while some of its threads
    /// are parked because of an earlier loss.
    fn is_own_load_since(self, earlier: CpuSample, cpus: u64) -> bool {
        let used = u64::from(self.cpu().wrapping_sub(earlier.cpu()));
        let wall = u64::from(self.wall().wrapping_sub(earlier.wall()));
        used * 5 >= wall * cpus * 3
    }
}

fn cpus() -> u64 {
    let known = CPUS.load(Ordering::Relaxed);
    if known > 0 {
        return known;
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    CPUS.store(cpus, Ordering::Relaxed);
    cpus
}

/// Whether the process has one CPU only. Then nothing that a thread waits for can happen while it spins.
#[inline]
pub(crate) fn has_one_cpu() -> bool {
    cpus() == 1
}

/// The number of losses of the calling thread that counted, since it last asked.
pub(crate) fn take_losses() -> u64 {
    LOSSES.with(|losses| losses.replace(0))
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    const MAX_PERIOD: Duration = Duration::from_secs(64);
    const MOMENT: Duration = Duration::from_millis(1);

    fn after(start: Timestamp, time: Duration) -> Timestamp {
        Timestamp::from_count(start.count() + timestamp::ticks(time))
    }

    /// The state after `losses` losses, each a moment after the period of the one before it, and that time.
    fn after_losses(start: Timestamp, losses: u32) -> (Contention, Timestamp) {
        let mut state = (Contention(0), start);
        for _ in 0..losses {
            let next = state.0.after_loss(state.1);
            state = (next, after(next.end(), MOMENT));
        }
        state
    }

    #[test]
    fn a_few_losses_forbid_nothing() {
        let now = timestamp::now();
        assert!(!Contention(0).is_contended(now));
        let (state, now) = after_losses(now, MIN_LOSSES as u32 - 1);
        assert!(!state.is_contended(state.end()));
        assert!(state.is_on_probation(now));
        let later = after(now, PROBATION + MOMENT);
        let again = state.after_loss(later);
        assert!(!again.is_contended(later), "the others are forgotten");
        assert_eq!(again.0 & LEVEL, 1);
    }

    #[test]
    fn nobody_yields_for_a_period_after_enough_losses() {
        let (few, now) = after_losses(timestamp::now(), MIN_LOSSES as u32 - 1);
        let state = few.after_loss(now);
        assert_eq!(state.period(), MIN_PERIOD);
        assert!(state.is_contended(now));
        assert!(state.is_contended(after(now, MIN_PERIOD - MOMENT)));
        assert!(!state.is_contended(after(now, MIN_PERIOD + MOMENT)));
    }

    #[test]
    fn a_loss_soon_after_a_period_doubles_the_next_one_up_to_the_longest() {
        let start = timestamp::now();
        let periods: Vec<u128> = (2..=13)
            .map(|losses| after_losses(start, losses).0.period().as_millis())
            .collect();
        assert_eq!(
            periods,
            [
                0, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 64_000, 64_000
            ]
        );
    }

    #[test]
    fn a_loss_after_another_calm_period_begins_anew() {
        let (state, soon) = after_losses(timestamp::now(), 7);
        assert_eq!(state.period(), Duration::from_secs(4));
        let later = after(soon, state.period());
        assert_eq!(state.after_loss(later).period(), Duration::ZERO);
    }

    #[test]
    fn threads_that_lose_their_cpus_at_the_same_time_count_as_one() {
        let now = timestamp::now();
        let word = AtomicU64::new(0);
        let seen = Contention(0);
        for _ in 0..9 {
            advance(&word, seen, now);
        }
        let state = Contention(word.load(Ordering::Relaxed));
        assert_eq!(state, seen.after_loss(now));
        assert!(!state.is_contended(now));
    }

    /// A sample of a process that has used `cpu` microseconds at `wall`.
    fn sample(wall: u64, cpu: u64) -> CpuSample {
        let now = Timestamp::from_count(timestamp::ticks(Duration::from_micros(wall)));
        CpuSample::new(now, Duration::from_micros(cpu))
    }

    #[test]
    fn a_process_that_uses_its_cpus_itself_has_lost_none() {
        let start = sample(1_000_000, 500_000);
        let is_own =
            |used: u64, cpus| sample(1_050_000, 500_000 + used).is_own_load_since(start, cpus);
        // A producer and two workers on two CPUs; the same with a worker parked now and then.
        assert!(is_own(100_000, 2));
        assert!(is_own(65_000, 2));
        // A caller that spins, and a worker whose CPU another process has.
        assert!(!is_own(50_000, 2));
        assert!(!is_own(2_000, 2));
        // All threads of the process on one CPU.
        assert!(is_own(50_000, 1));
        assert!(!is_own(0, 1));
    }

    #[test]
    fn samples_that_wrap_around_are_compared_all_the_same() {
        let unit = UNIT.as_micros() as u64;
        let start = (1_u64 << 32) * unit - 20_000;
        let (before, after) = (sample(start, start), sample(start + 50_000, start + 90_000));
        assert!(after.wall() < before.wall() && after.cpu() < before.cpu());
        let span = after.wall_since(before);
        assert!(
            span.abs_diff(Duration::from_millis(50)) <= 2 * UNIT,
            "{span:?}"
        );
        assert!(after.is_own_load_since(before, 2));
        assert!(!after.is_own_load_since(before, 4));
    }

    #[test]
    fn a_period_is_over_if_the_counter_goes_back() {
        let now = after(timestamp::now(), 10 * MAX_PERIOD);
        let (state, _) = after_losses(now, MIN_LOSSES as u32);
        let earlier = Timestamp::from_count(now.count() - timestamp::ticks(2 * MAX_PERIOD));
        assert!(!state.is_contended(earlier));
        assert_eq!(state.after_loss(earlier).period(), Duration::ZERO);
    }

    #[test]
    fn the_machine_is_crowded_if_others_want_the_cpus() {
        let now = timestamp::now();
        for (is_long, is_own_load) in [(false, false), (false, true), (true, true)] {
            assert!(!Look::new(now, is_long, is_own_load).is_crowded());
        }
        assert!(Look::new(now, true, false).is_crowded());
        assert!(Look::new(now, true, true).is_own_load());
    }

    #[test]
    fn a_look_holds_for_its_time_and_not_if_the_counter_goes_back() {
        let now = timestamp::now();
        let look = Look::new(now, true, false);
        let is_valid_at = |at| look.is_within(at, LOOK_HOLDS);
        assert!(is_valid_at(now));
        assert!(is_valid_at(after(now, LOOK_HOLDS / 2)));
        assert!(!is_valid_at(after(now, LOOK_HOLDS * 2)));
        assert!(!is_valid_at(Timestamp::from_count(now.count() - 1_000)));
        assert!(
            !Look(0).is_within(Timestamp::from_count(0), LOOK_HOLDS),
            "no look"
        );
    }

    #[test]
    fn a_counter_near_its_limit_ends_the_period_at_the_limit() {
        let now = Timestamp::from_count(u64::MAX - 1);
        let mut state = Contention(0);
        for _ in 0..MIN_LOSSES {
            state = state.after_loss(now);
        }
        assert_eq!(state.period(), MIN_PERIOD);
        assert_eq!(state.end(), Timestamp::from_count(!LEVEL));
    }
}
