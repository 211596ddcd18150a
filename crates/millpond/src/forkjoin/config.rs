//! The parameters of a pool: their table, and where they are while it runs.
//!
//! - **FORKJOIN-CONFIG-1** Those that can change are atomic words, and each is read by itself. A patch writes them under
//!   one lock, so of two patches one is first in all of them.

use super::engine::{ForkJoinEngine, MAX_PARALLELISM};
use super::spares::{DEFAULT_MAX_SPARES, MAX_SPARES};
use crate::machine::Machine;
use crate::manage::{
    Choice, Invalid, ParameterSpec, ParameterTable, Patch, PatchError, Value, ValueType, set,
};
use crate::thread::ThreadFactory;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// How long a worker without work stays.
pub(super) const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(60);

/// The number of task names that metrics are kept of.
pub(super) const DEFAULT_TASK_NAMES: usize = 64;

/// What a worker does while it waits for a job that another worker runs.
///
/// ```
/// use millpond::forkjoin::{ForkJoinPool, HelpPolicy};
///
/// let pool = ForkJoinPool::builder("mill").help(HelpPolicy::Any).build()?;
/// assert_eq!(pool.join(|| 3, || 4), (3, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HelpPolicy {
    /// It runs only what the wait is for: jobs of the scope that it waits for, and jobs that were forked, or spawned in
    /// scopes that were entered, inside of the job that it waits for. So a worker that holds a lock never meets, on the
    /// same stack, a stranger that wants it, unless it asks for that by
    /// [`help_quiesce`](super::ForkJoinPool::help_quiesce) or
    /// [`await_quiescence`](super::ForkJoinPool::await_quiescence). If there is nothing of the kind it sleeps, and a spare
    /// may take its place ([`max_spares`](super::ForkJoinBuilder::max_spares)).
    #[default]
    Descendants,
    /// It runs anything that is queued when it begins to wait, as rayon does, while enough of its stack is left. Once it
    /// sleeps it is woken only as with `Descendants`: what is queued later is for other workers, or for a spare in its
    /// place. Fewer workers sleep; a job that holds a lock while it joins may deadlock, and stacks grow.
    Any,
    /// It runs nothing but jobs of scopes that it has spawned itself, and that the wait is for.
    Never,
}

/// The CPUs that this process may use.
pub(super) fn default_parallelism() -> usize {
    Machine::read().worker_hint().get().min(MAX_PARALLELISM)
}

impl HelpPolicy {
    fn word(self) -> &'static str {
        match self {
            HelpPolicy::Descendants => "descendants",
            HelpPolicy::Any => "any",
            HelpPolicy::Never => "never",
        }
    }
}

/// The parameters of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) parallelism: usize,
    pub(super) max_spares: usize,
    pub(super) keep_alive: Duration,
    pub(super) is_fifo: bool,
    pub(super) help: HelpPolicy,
}

/// All parameters, in the order in which consoles show them.
pub(super) const TABLE: ParameterTable<Settings> = ParameterTable(&[
    ParameterSpec {
        name: "parallelism",
        kind: ValueType::Integer {
            min: 1,
            max: MAX_PARALLELISM as u64,
        },
        unit: Some("workers"),
        default: |_| Some(default_parallelism().into()),
        is_live: true,
        help: "How many workers compute at a time.",
        advice: "",
        get: |settings| settings.parallelism.into(),
        set: |settings, value| set(&mut settings.parallelism, value.as_usize()),
    },
    ParameterSpec {
        name: "max_spares",
        kind: ValueType::Integer {
            min: 0,
            max: MAX_SPARES as u64,
        },
        unit: Some("workers"),
        default: |_| Some(DEFAULT_MAX_SPARES.into()),
        is_live: true,
        help: "How many workers may be started to replace blocked ones.",
        advice: "",
        get: |settings| settings.max_spares.into(),
        set: |settings, value| set(&mut settings.max_spares, value.as_usize()),
    },
    ParameterSpec {
        name: "keep_alive",
        kind: ValueType::ANY_DURATION,
        unit: None,
        default: |_| Some(DEFAULT_KEEP_ALIVE.into()),
        is_live: true,
        help: "How long a worker without work stays; 584 years and more are for ever.",
        advice: "",
        get: |settings| settings.keep_alive.into(),
        set: |settings, value| set(&mut settings.keep_alive, value.as_duration()),
    },
    ParameterSpec {
        name: "fifo",
        kind: ValueType::Boolean,
        unit: None,
        default: |_| Some(false.into()),
        is_live: false,
        help: "Whether workers take their own tasks in the order in which they came.",
        advice: "",
        get: |settings| settings.is_fifo.into(),
        set: |_, _| Ok(()),
    },
    ParameterSpec {
        name: "help",
        kind: ValueType::Choice(HELPS),
        unit: None,
        default: |_| Some(Value::choice(HelpPolicy::default().word())),
        is_live: false,
        help: "What a worker runs while it waits for a job that another one runs.",
        advice: "",
        get: |settings| Value::choice(settings.help.word()),
        set: |_, _| Ok(()),
    },
]);

const HELPS: &[Choice] = &[
    Choice::plain("descendants"),
    Choice::plain("any"),
    Choice::plain("never"),
];

/// What does not change while the pool runs, and the words that do.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) factory: Arc<dyn ThreadFactory>,
    pub(super) help: HelpPolicy,
    /// Workers take their own tasks in the order in which they came.
    pub(super) is_fifo: bool,
    parallelism: AtomicUsize,
    max_spares: AtomicUsize,
    keep_alive: AtomicU64,
    /// FORKJOIN-CONFIG-1
    changing: Mutex<()>,
}

impl Config {
    pub(super) fn new(settings: Settings, factory: Arc<dyn ThreadFactory>) -> Self {
        let config = Config {
            factory,
            help: settings.help,
            is_fifo: settings.is_fifo,
            parallelism: AtomicUsize::new(0),
            max_spares: AtomicUsize::new(0),
            keep_alive: AtomicU64::new(0),
            changing: Mutex::new(()),
        };
        config.write(settings);
        config
    }

    #[inline]
    pub(super) fn parallelism(&self) -> usize {
        self.parallelism.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn max_spares(&self) -> usize {
        self.max_spares.load(Ordering::Relaxed)
    }

    /// Huge ones mean for ever.
    pub(super) fn keep_alive(&self) -> Duration {
        match self.keep_alive.load(Ordering::Relaxed) {
            u64::MAX => Duration::MAX,
            nanos => Duration::from_nanos(nanos),
        }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            parallelism: self.parallelism(),
            max_spares: self.max_spares(),
            keep_alive: self.keep_alive(),
            is_fifo: self.is_fifo,
            help: self.help,
        }
    }

    fn write(&self, settings: Settings) {
        let nanos = u64::try_from(settings.keep_alive.as_nanos()).unwrap_or(u64::MAX);
        self.keep_alive.store(nanos, Ordering::Relaxed);
        self.max_spares
            .store(settings.max_spares, Ordering::Relaxed);
        self.parallelism
            .store(settings.parallelism, Ordering::Relaxed);
    }
}

impl Settings {
    /// All that is wrong with a builder's values.
    pub(super) fn problems(&self, name: &str) -> Vec<Invalid> {
        let mut problems = TABLE.check(self);
        problems.extend(Invalid::of_name(name));
        problems
    }
}

impl ForkJoinEngine {
    /// Changes all parameters that the patch names, or none. Returns the former ones.
    pub(super) fn apply(&self, patch: &Patch) -> Result<Settings, PatchError> {
        let mut problems = TABLE.unknown(patch);
        if self.is_forked() {
            PatchError::unless_none(vec![Invalid::Forked])?;
        }
        let changing = self.config.changing.lock();
        let now = self.config.settings();
        let (next, further) = TABLE.resolve_known(&now, patch);
        problems.extend(further);
        PatchError::unless_none(problems)?;
        self.config.write(next);
        drop(changing);
        let limits = |settings: &Settings| (settings.parallelism, settings.max_spares);
        if limits(&next) != limits(&now) {
            self.release_spares();
        }
        if next.parallelism > now.parallelism || next.max_spares > now.max_spares {
            self.ask_for_new_workers();
            self.start_workers_for_queued();
        }
        // Surplus workers leave, and others sleep for another time.
        self.wake_all();
        Ok(now)
    }
}
