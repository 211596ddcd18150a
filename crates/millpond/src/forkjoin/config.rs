//! The parameters of a pool: their table, and where they are while it runs.
//!
//! - **FORKJOIN-CONFIG-1** Parameters that can change are atomic words, and each is read by itself. A patch writes them
//!   under one lock, so two patches at the same time have the same order for all parameters. A reader that holds the lock
//!   never sees half of a patch.

pub(super) use crate::engine::parameters::{DEFAULT_KEEP_ALIVE, DEFAULT_TASK_NAMES};

use super::engine::{ForkJoinEngine, MAX_PARALLELISM};
use super::spares::{DEFAULT_MAX_SPARES, MAX_SPARES};
use crate::engine::events::EventSource;
use crate::engine::metrics::LabelTable;
use crate::engine::parameters::{self, KeepAlive};
use crate::engine::watchdog::{RunWarning, Supervised};
use crate::machine::Machine;
use crate::manage::{
    Change, Choice, Invalid, Parameter, ParameterSpec, ParameterTable, Patch, PatchError, Value,
    ValueError, ValueType, set,
};
use crate::thread::ThreadFactory;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

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
    /// It runs only parts of what it waits for: jobs of the scope that it waits for, and jobs that were forked inside of the
    /// job that it waits for, or spawned in scopes that were entered there. So a job that holds a lock while it waits never finds, on the same stack,
    /// an unrelated job that wants the lock. The exceptions are [`help_quiesce`](super::ForkJoinPool::help_quiesce) and
    /// [`await_quiescence`](super::ForkJoinPool::await_quiescence), which run everything. If there is no such part the
    /// worker sleeps, and a spare may take its place ([`max_spares`](super::ForkJoinBuilder::max_spares)).
    #[default]
    Descendants,
    /// It runs anything that is queued when it begins to wait, as rayon does, while enough of its stack is left. Once it
    /// sleeps it is woken only as with `Descendants`: other workers, or a spare in its place, run what is queued later.
    /// Fewer workers sleep, but a job that holds a lock while it joins may deadlock, and stacks grow.
    Any,
    /// It runs only jobs that it has spawned itself in scopes, and of these only those that the wait depends on.
    Never,
}

/// The CPUs that this process may use.
pub(super) fn default_parallelism() -> usize {
    Machine::read_worker_hint().get().min(MAX_PARALLELISM)
}

/// The same as a builder found it last, which is cheap to ask for.
fn usual_parallelism() -> usize {
    Machine::last_worker_hint().get().min(MAX_PARALLELISM)
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

/// As in patches and in the list of parameters.
///
/// ```
/// assert_eq!(millpond::forkjoin::HelpPolicy::Any.to_string(), "any");
/// ```
impl fmt::Display for HelpPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Reads a name, in any spelling.
///
/// ```
/// use millpond::forkjoin::HelpPolicy;
///
/// assert_eq!("Never".parse(), Ok(HelpPolicy::Never));
/// assert!("always".parse::<HelpPolicy>().unwrap_err().to_string().ends_with("any or never"));
/// ```
impl FromStr for HelpPolicy {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const WORDS: ValueType = ValueType::Choice(HELPS);
        let value = WORDS.parse(text)?.to_string();
        let all = [HelpPolicy::Descendants, HelpPolicy::Any, HelpPolicy::Never];
        let found = all.into_iter().find(|policy| policy.word() == value);
        found.ok_or_else(|| WORDS.error(text.to_owned(), false))
    }
}

/// The parameters of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) parallelism: usize,
    pub(super) max_spares: usize,
    pub(super) keep_alive: Duration,
    pub(super) is_fifo: bool,
    pub(super) help: HelpPolicy,
    pub(super) run_warning: Option<RunWarning>,
    /// `None` if nothing is measured.
    pub(super) task_names: Option<usize>,
}

/// All parameters, in the order in which consoles show them.
pub(super) const TABLE: ParameterTable<Config> = ParameterTable(&[
    ParameterSpec {
        name: "parallelism",
        kind: ValueType::Integer {
            min: 1,
            max: MAX_PARALLELISM as u64,
        },
        unit: Some("workers"),
        default: |_| Some(usual_parallelism().into()),
        is_live: true,
        help: "How many workers compute at a time.",
        advice: "",
        get: |config| config.parallelism.into(),
        set: |config, value| set(&mut config.parallelism, value.as_usize()),
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
        get: |config| config.max_spares.into(),
        set: |config, value| set(&mut config.max_spares, value.as_usize()),
    },
    parameters::keep_alive(
        "How long a worker without work stays; 584 years and more are for ever.",
        |config| config.keep_alive.into(),
        |config, value| set(&mut config.keep_alive, value.as_duration()),
    ),
    ParameterSpec {
        name: "fifo",
        kind: ValueType::Boolean,
        unit: None,
        default: |_| Some(false.into()),
        is_live: false,
        help: "Whether workers take their own tasks in the order in which they came.",
        advice: "",
        get: |config| config.is_fifo.into(),
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
        get: |config| Value::choice(config.help.word()),
        set: |_, _| Ok(()),
    },
    parameters::run_warning(
        |config| config.run_warning.map(RunWarning::limit).into(),
        // Whether it interrupts stays as it is.
        |config, value| {
            config.run_warning = RunWarning::with_limit(config.run_warning, value.as_duration());
            Ok(())
        },
    ),
    parameters::task_names(|config| config.task_names.into()),
]);

const HELPS: &[Choice] = &[
    Choice::plain("descendants"),
    Choice::plain("any"),
    Choice::plain("never"),
];

/// What does not change while the pool runs, and the words that do.
#[derive(Debug)]
pub(super) struct LiveConfig {
    pub(super) factory: Arc<dyn ThreadFactory>,
    pub(super) help: HelpPolicy,
    /// Whether workers take their own tasks first in, first out.
    pub(super) is_fifo: bool,
    parallelism: AtomicUsize,
    max_spares: AtomicUsize,
    keep_alive: KeepAlive,
    /// FORKJOIN-CONFIG-1
    changing: Mutex<()>,
}

impl LiveConfig {
    pub(super) fn new(config: Config, factory: Arc<dyn ThreadFactory>) -> Self {
        let live = LiveConfig {
            factory,
            help: config.help,
            is_fifo: config.is_fifo,
            parallelism: AtomicUsize::new(0),
            max_spares: AtomicUsize::new(0),
            keep_alive: KeepAlive::default(),
            changing: Mutex::new(()),
        };
        live.write(config);
        live
    }

    #[inline]
    pub(super) fn parallelism(&self) -> usize {
        self.parallelism.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn max_spares(&self) -> usize {
        self.max_spares.load(Ordering::Relaxed)
    }

    /// Huge durations mean for ever.
    pub(super) fn keep_alive(&self) -> Duration {
        self.keep_alive.get()
    }

    fn read(&self, task_names: Option<usize>, run_warning: Option<RunWarning>) -> Config {
        Config {
            parallelism: self.parallelism(),
            max_spares: self.max_spares(),
            keep_alive: self.keep_alive(),
            is_fifo: self.is_fifo,
            help: self.help,
            run_warning,
            task_names,
        }
    }

    fn write(&self, config: Config) {
        self.keep_alive.set(config.keep_alive);
        self.max_spares.store(config.max_spares, Ordering::Relaxed);
        self.parallelism
            .store(config.parallelism, Ordering::Relaxed);
    }
}

impl Config {
    /// All that is wrong with a builder's values.
    pub(super) fn problems(&self, name: &str) -> Vec<Invalid> {
        let mut problems = TABLE.check(self);
        problems.extend(Invalid::of_name(name));
        problems
    }
}

impl ForkJoinEngine {
    /// Its parameters now.
    pub(super) fn read_config(&self) -> Config {
        let names = self.labels.as_ref().map(LabelTable::max_labels);
        // In a forked process a lock may have been copied while it was held.
        let run_warning = (!self.is_forked()).then(|| self.watchdog.limit_of_all());
        self.config.read(names, run_warning.flatten())
    }

    /// The parameters, described. Without the lock in a forked process, where it may be held by a thread that is not there.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let turn = (!self.is_forked()).then(|| self.config.changing.lock());
        let config = self.read_config();
        drop(turn);
        TABLE.describe(&config)
    }

    /// What the patch would change.
    pub(super) fn check(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        let (now, next) = self.resolve(patch, |_| ())?;
        Ok(TABLE.changes(&now, &next))
    }

    /// The parameters now, and those that the patch leads to, which are left to `then` under the lock.
    fn resolve(
        &self,
        patch: &Patch,
        then: impl FnOnce(&Config),
    ) -> Result<(Config, Config), PatchError> {
        let mut problems = TABLE.unknown(patch);
        if self.is_forked() {
            return Err(PatchError::of(Invalid::Forked));
        }
        let _changing = self.config.changing.lock();
        let now = self.read_config();
        let (next, further) = TABLE.resolve_known(&now, patch);
        problems.extend(further);
        PatchError::unless_none(problems)?;
        then(&next);
        Ok((now, next))
    }

    /// Changes all parameters that the patch names, or none. Returns the former ones and the new ones.
    pub(super) fn apply(&self, patch: &Patch) -> Result<(Config, Config), PatchError> {
        let names_warning = patch.get("run_warning").is_some();
        let (now, next) = self.resolve(patch, |next| {
            self.config.write(*next);
            if names_warning {
                self.watchdog
                    .write_limits(|limits| limits.of_all = next.run_warning);
            }
        })?;
        if let Some(own) = self.this().upgrade().filter(|_| names_warning) {
            own.heed_limits();
        }
        let limits = |config: &Config| (config.parallelism, config.max_spares);
        if limits(&next) != limits(&now) {
            self.release_spares();
        }
        if next.parallelism > now.parallelism || next.max_spares > now.max_spares {
            self.ask_for_new_workers();
            self.start_workers_for_queued();
        }
        // Surplus workers leave, and others sleep for another time.
        self.wake_all();
        Ok((now, next))
    }
}
