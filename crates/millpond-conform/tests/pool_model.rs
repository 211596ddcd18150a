//! A pool does what its model does, whatever is done to it in whatever order.
//!
//! Every task waits at a gate of its own, time is moved by hand, and after each step the script waits
//! until all threads of the pool sleep, as the kernel sees it ([`Stillness`]). So each step begins and
//! ends at rest, and all figures must be exactly those of the model: how many workers, who runs, who
//! waits, what was counted. What each handle says is compared, too.
//!
//! Deadlines are left out; they have tests of their own. The seed is fixed; `MILLPOND_SEED` and
//! `MILLPOND_CASES` change it and the number of scripts, as `cargo xtask soak` does.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

mod pool_reference;
#[path = "../../millpond/tests/proptest_kit/mod.rs"]
mod proptest_kit;

use millpond::executor::{ExecutorExt, Lifecycle, RejectReason};
use millpond::manage::{Growth, Patch, RunState, Setting};
use millpond::pool::{Hooks, PoolSnapshot, Queue, RejectionPolicy, ThreadPool};
use millpond::queue::FifoQueue;
use millpond::task::{TaskError, TaskHandle, TaskSpec};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::ManualClock;
use millpond_conform::kit::{Gate, Stillness, Watchdog, delays};
use pool_reference::{Fate, Figures, Flavor, Model, Policy, Why};
use proptest::collection::vec;
use proptest::prelude::*;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

/// Scripts, unless somebody says otherwise.
const CASES: u32 = 500;

/// One step of a script. Numbers that choose among what is there are taken modulo its length.
#[derive(Clone, Debug)]
enum Op {
    Submit { after: Option<u64>, panics: bool },
    Release(usize),
    Cancel(usize),
    Remove(usize),
    Purge,
    Resize(Sizes),
    SetCapacity(usize),
    SetRejection(Policy),
    ThreadsFail(bool),
    Pass(u64),
    Prestart,
    PrestartAll,
    Shutdown,
    ShutdownNow,
}

#[derive(Clone, Debug)]
struct Sizes {
    core: Option<usize>,
    max: Option<usize>,
    keep_alive: Option<u64>,
    core_may_time_out: Option<bool>,
    threads_first: Option<bool>,
    capacity: Option<usize>,
}

fn sizes() -> impl Strategy<Value = Sizes> {
    let some = proptest::option::of::<std::ops::Range<usize>>;
    (
        some(0..4),
        some(0..5),
        proptest::option::of(0..20_u64),
        proptest::option::weighted(0.3, any::<bool>()),
        proptest::option::weighted(0.4, any::<bool>()),
        proptest::option::weighted(0.2, 0..4_usize),
    )
        .prop_map(
            |(core, max, keep_alive, core_may_time_out, threads_first, capacity)| Sizes {
                core,
                max,
                keep_alive,
                core_may_time_out,
                threads_first,
                capacity,
            },
        )
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Abort),
        Just(Policy::CallerRuns),
        Just(Policy::Discard),
        Just(Policy::DiscardOldest),
        Just(Policy::BlockForNothing),
        (1..3_usize).prop_map(Policy::NewThread),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    // A worker may start for a task that turns out to be too late when its turn comes, or may not:
    // both are within the rules, so scripts have no deadlines.
    let after = Just(None);
    prop_oneof![
        24 => (after, proptest::bool::weighted(0.15))
            .prop_map(|(after, panics)| Op::Submit { after, panics }),
        14 => any::<usize>().prop_map(Op::Release),
        5 => any::<usize>().prop_map(Op::Cancel),
        3 => any::<usize>().prop_map(Op::Remove),
        2 => Just(Op::Purge),
        6 => sizes().prop_map(Op::Resize),
        2 => (0..5_usize).prop_map(Op::SetCapacity),
        3 => policy().prop_map(Op::SetRejection),
        2 => any::<bool>().prop_map(Op::ThreadsFail),
        6 => (1..15_u64).prop_map(Op::Pass),
        2 => Just(Op::Prestart),
        1 => Just(Op::PrestartAll),
        1 => Just(Op::Shutdown),
        1 => Just(Op::ShutdownNow),
    ]
}

/// A pool to begin with.
#[derive(Clone, Debug)]
struct Shape {
    flavor: Flavor,
    core: usize,
    more: usize,
    capacity: Option<usize>,
}

fn shape() -> impl Strategy<Value = Shape> {
    let flavor = prop_oneof![
        4 => Just(Flavor::Plain),
        1 => Just(Flavor::HandOff),
        2 => Just(Flavor::Own),
    ];
    (
        flavor,
        0..3_usize,
        0..3_usize,
        proptest::option::weighted(0.8, 1..4_usize),
    )
        .prop_map(|(flavor, core, more, capacity)| Shape {
            flavor,
            core,
            more,
            capacity,
        })
}

/// Starts threads that are watched, or none.
#[derive(Clone, Debug)]
struct Factory {
    threads: Arc<Threads>,
    still: Stillness,
    fails: Arc<AtomicBool>,
}

impl ThreadFactory for Factory {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => self.threads.start(Box::new(self.still.watch(body))),
        }
    }
}

struct Ends(Arc<AtomicUsize>);

impl Hooks for Ends {
    fn terminated(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A task of the script.
struct Item {
    gate: Gate,
    handle: Option<TaskHandle<()>>,
}

impl Drop for Item {
    fn drop(&mut self) {
        // A script that fails leaves nobody at a gate.
        self.gate.open();
    }
}

/// The pool under test, beside its model.
struct Rig {
    pool: ThreadPool,
    model: Model,
    hand: ManualClock,
    factory: Factory,
    items: Vec<Item>,
    ends: Arc<AtomicUsize>,
    alive: Arc<()>,
}

fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

impl Rig {
    fn new(shape: &Shape) -> Self {
        let max = (shape.core + shape.more).max(1);
        let model = Model::new(shape.flavor, shape.core, max, shape.capacity);
        let hand = ManualClock::new();
        let factory = Factory {
            threads: Arc::new(Threads::named("model")),
            still: Stillness::new(),
            fails: Arc::default(),
        };
        let queue = match (shape.flavor, shape.capacity) {
            (Flavor::HandOff, _) => Queue::hand_off(),
            (Flavor::Plain, None) => Queue::unbounded(),
            (Flavor::Plain, Some(most)) => Queue::bounded(most),
            (Flavor::Own, None) => Queue::custom(FifoQueue::unbounded()),
            (Flavor::Own, Some(most)) => Queue::custom(FifoQueue::bounded_growing(most).unwrap()),
        };
        let ends = Arc::new(AtomicUsize::new(0));
        let pool = ThreadPool::builder("model")
            .core(shape.core)
            .max(max)
            .keep_alive(millis(model.keep_alive))
            .queue(queue)
            .threads(factory.clone())
            .hooks(Ends(Arc::clone(&ends)))
            .clock(hand.clock())
            .build()
            .unwrap();
        Rig {
            pool,
            model,
            hand,
            factory,
            items: Vec::new(),
            ends,
            alive: Arc::new(()),
        }
    }

    fn submit(&mut self, after: Option<u64>, panics: bool) {
        let gate = Gate::new();
        let here = std::thread::current().id();
        let body = body(gate.clone(), here, panics, Arc::clone(&self.alive));
        let clock = self.hand.clock();
        let mut spec = TaskSpec::new().clock(clock.clone());
        if let Some(after) = after {
            spec = spec.deadline(clock.deadline(millis(after)));
        }
        let expected = self.model.submit(after, panics);
        let (handle, done) = match self.pool.submit_with(spec, body) {
            Ok(handle) => (Some(handle), Ok(())),
            Err(refused) => (None, Err(why(&refused.reason))),
        };
        assert_eq!(done, expected);
        self.items.push(Item { gate, handle });
    }

    fn run(&mut self, op: Op) {
        let chosen = |number: usize, from: &[usize]| from.get(number % from.len().max(1)).copied();
        let all: Vec<usize> = (0..self.items.len())
            .filter(|id| self.items[*id].handle.is_some())
            .collect();
        match op {
            Op::Submit { after, panics } => self.submit(after, panics),
            Op::Release(number) => {
                if let Some(id) = chosen(number, &self.model.at_their_gates()) {
                    self.release(id);
                }
            }
            Op::Cancel(number) => {
                if let Some(id) = chosen(number, &all) {
                    let handle = self.items[id].handle.as_ref().unwrap();
                    assert_eq!(handle.cancel(), self.model.cancel(id));
                }
            }
            Op::Remove(number) => {
                if let Some(id) = chosen(number, &all) {
                    let handle = self.items[id].handle.as_ref().unwrap();
                    assert_eq!(self.pool.remove(handle), self.model.remove(id));
                }
            }
            Op::Purge => assert_eq!(self.pool.purge(), self.model.purge()),
            Op::Resize(sizes) => self.resize(&sizes),
            Op::SetCapacity(capacity) => {
                let done = self.pool.set_capacity(capacity).is_ok();
                // A hand-off has 0, and keeps it.
                let may = (self.model.flavor == Flavor::HandOff) == (capacity == 0);
                assert_eq!(done, may);
                if may {
                    self.model.capacity = Some(capacity);
                    self.model.limits_changed(self.model.eager());
                }
            }
            Op::SetRejection(policy) => {
                self.model.policy = policy;
                self.pool.set_rejection(match policy {
                    Policy::Abort => RejectionPolicy::Abort,
                    Policy::CallerRuns => RejectionPolicy::CallerRuns,
                    Policy::Discard => RejectionPolicy::Discard,
                    Policy::DiscardOldest => RejectionPolicy::DiscardOldest,
                    Policy::BlockForNothing => RejectionPolicy::Block(Duration::ZERO),
                    Policy::NewThread(at_most) => RejectionPolicy::NewThread { at_most },
                });
            }
            Op::ThreadsFail(fail) => {
                self.model.threads_fail = fail;
                self.factory.fails.store(fail, Ordering::SeqCst);
            }
            Op::Pass(time) => {
                self.model.pass(time);
                self.hand.advance(millis(time));
            }
            Op::Prestart => {
                let expected = self.model.prestart().ok();
                assert_eq!(self.pool.prestart_core().ok(), expected);
            }
            Op::PrestartAll => {
                let mut expected = Some(0);
                loop {
                    match self.model.prestart() {
                        Ok(true) => expected = expected.map(|started| started + 1),
                        Ok(false) => break,
                        Err(_) => {
                            expected = None;
                            break;
                        }
                    }
                }
                assert_eq!(self.pool.prestart_all_core().ok(), expected);
            }
            Op::Shutdown => {
                self.model.shut_down();
                self.pool.shutdown();
            }
            Op::ShutdownNow => {
                let expected = self.model.stop().len();
                assert_eq!(self.pool.shutdown_now().len(), expected);
            }
        }
    }

    fn release(&mut self, id: usize) {
        self.model.release(id);
        self.items[id].gate.open();
    }

    fn resize(&mut self, sizes: &Sizes) {
        let growth = sizes.threads_first.map(|first| match first {
            true => Growth::ThreadsFirst,
            false => Growth::QueueFirst,
        });
        let named: [(&str, Option<Setting>); 6] = [
            ("core", sizes.core.map(Setting::from)),
            ("max", sizes.max.map(Setting::from)),
            (
                "keep_alive",
                sizes.keep_alive.map(|time| millis(time).into()),
            ),
            (
                "core_may_time_out",
                sizes.core_may_time_out.map(Setting::from),
            ),
            ("growth", growth.map(Setting::from)),
            ("capacity", sizes.capacity.map(Setting::from)),
        ];
        let mut patch = Patch::new();
        for (name, setting) in named {
            if let Some(setting) = setting {
                patch = patch.set(name, setting);
            }
        }
        let model = &mut self.model;
        let core = sizes.core.unwrap_or(model.core);
        let max = sizes.max.unwrap_or(model.max);
        let keep_alive = sizes.keep_alive.unwrap_or(model.keep_alive);
        let may_time_out = sizes.core_may_time_out.unwrap_or(model.core_may_time_out);
        let capacity_fits = match sizes.capacity {
            None => true,
            Some(most) => (model.flavor == Flavor::HandOff) == (most == 0),
        };
        let fits = max > 0 && core <= max && !(may_time_out && keep_alive == 0) && capacity_fits;
        assert_eq!(self.pool.apply(&patch).is_ok(), fits, "{patch:?}");
        if !fits {
            return;
        }
        let eager_before = model.eager();
        (model.core, model.max, model.keep_alive) = (core, max, keep_alive);
        model.core_may_time_out = may_time_out;
        model.growth = growth.unwrap_or(model.growth);
        model.capacity = sizes.capacity.or(model.capacity);
        model.limits_changed(eager_before);
    }

    /// Waits until nothing moves, and compares everything.
    fn look(&mut self) {
        self.factory.still.wait(delays::longer()).unwrap();
        self.model.check();
        let now = self.pool.snapshot();
        let (mut seen, mut expected) = (figures(&now), self.model.figures());
        // How often a thread is tried in vain, for a task that may wait as well, is not a promise.
        (seen.thread_failures, expected.thread_failures) = (0, 0);
        assert_eq!(seen, expected, "{now:?}");
        assert_eq!(now.state, self.model.state);
        let settings = (now.core, now.max, now.growth, now.capacity);
        let model = &self.model;
        assert_eq!(
            settings,
            (model.core, model.max, model.growth, model.capacity)
        );
        let terminated = usize::from(self.model.state == RunState::Terminated);
        assert_eq!(self.ends.load(Ordering::SeqCst), terminated);
        for (id, item) in self.items.iter().enumerate() {
            if let Some(handle) = &item.handle {
                let is_open = self.model.fates[id] == Fate::Open;
                assert_eq!(handle.is_finished(), !is_open, "task {id}");
            }
        }
    }

    /// Ends the pool, lets all tasks go, and asks every handle.
    fn end(mut self, drops: bool) {
        self.model.shut_down();
        let pool = match drops {
            false => {
                self.pool.shutdown();
                Some(self.pool)
            }
            true => {
                drop(self.pool);
                None
            }
        };
        while let Some(id) = self.model.at_their_gates().first().copied() {
            self.model.release(id);
            self.items[id].gate.open();
            self.factory.still.wait(delays::longer()).unwrap();
        }
        self.factory.still.wait(delays::longer()).unwrap();
        assert_eq!(self.model.state, RunState::Terminated);
        assert_eq!(self.ends.load(Ordering::SeqCst), 1);
        if let Some(pool) = pool {
            assert!(pool.is_terminated());
            assert_eq!(pool.snapshot().workers, 0);
        }
        for (id, item) in self.items.iter_mut().enumerate() {
            let said = match item.handle.take().map(TaskHandle::join) {
                None => Fate::Refused,
                Some(Ok(())) => Fate::Ran,
                Some(Err(TaskError::Panicked(_))) => Fate::Panicked,
                Some(Err(TaskError::Cancelled(reason))) => Fate::Cancelled(reason),
                Some(Err(other)) => panic!("task {id}: {other}"),
            };
            assert_eq!(said, self.model.fates[id], "task {id}");
        }
        assert_eq!(Arc::strong_count(&self.alive), 1, "no closure is left");
    }
}

/// What a task does: it waits at its gate, unless its caller runs it.
fn body(
    gate: Gate,
    script: ThreadId,
    panics: bool,
    alive: Arc<()>,
) -> impl FnOnce() + Send + 'static {
    move || {
        let _alive = alive;
        if std::thread::current().id() != script {
            gate.wait();
        }
        if panics {
            // Without a line on the terminal.
            std::panic::resume_unwind(Box::new("as the script says"));
        }
    }
}

fn why(reason: &RejectReason) -> Why {
    match reason {
        RejectReason::Saturated { .. } => Why::Saturated,
        RejectReason::ShutDown => Why::ShutDown,
        RejectReason::SpawnFailed(_) => Why::NoThread,
        other => panic!("{other}"),
    }
}

fn figures(now: &PoolSnapshot) -> Figures {
    let dropped = now.expired + now.shed + now.discarded + now.handed_back;
    Figures {
        workers: now.workers,
        active: now.active,
        largest: now.largest,
        extra_threads: now.extra_threads,
        queued: now.queued,
        completed: now.completed_by_workers(),
        panicked: now.panicked - now.panicked_outside,
        cancelled: now.cancelled - dropped,
        expired: now.expired,
        rejected: now.left_to_policy,
        blocked: now.waited_for_room,
        discarded: now.discarded,
        caller_ran: now.caller_ran,
        handed_back: now.handed_back,
        threads_started: now.threads_started,
        thread_failures: now.thread_failures,
    }
}

#[test]
fn a_pool_does_what_its_model_does() {
    let scripts = (shape(), vec(op(), 1..50), any::<bool>());
    proptest_kit::ask(CASES, &scripts, |(shape, script, drops)| {
        let _watchdog = Watchdog::arm("a script of the pool", delays::longer() * 10);
        let mut rig = Rig::new(&shape);
        for op in script {
            rig.run(op);
            rig.look();
        }
        rig.end(drops);
    });
}
