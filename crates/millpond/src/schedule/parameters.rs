//! Reading and changing the parameters of a running pool. They are described in [`super::config`].

use super::ScheduledPool;
use super::config::{Config, TABLE};
use super::state::PoolState;
use crate::executor::Executor;
use crate::manage::{Change, Invalid, Parameter, Patch, PatchError, Value};

impl<E: Executor + 'static> ScheduledPool<E> {
    /// The most tasks and series that may wait for their time; `None` is any number.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// assert_eq!(timers.max_pending(), Some(1 << 20), "unless told otherwise");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_pending(&self) -> Option<usize> {
        self.engine.readable_state()?.pending.max
    }

    /// Changes how many tasks and series may wait for their time. Those above it stay.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// timers.set_max_pending(0);
    /// let refused = timers.schedule(Duration::ZERO, || "flour").unwrap_err();
    /// assert_eq!((refused.task)(), "flour", "the closure comes back");
    /// timers.set_max_pending(None);
    /// assert_eq!(timers.schedule(Duration::ZERO, || "flour")?.join()?, "flour");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_max_pending(&self, most: impl Into<Option<usize>>) {
        self.change("max_pending", most.into());
    }

    /// Whether delayed tasks still run after a shutdown.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// assert!(timers.runs_delayed_after_shutdown(), "unless told otherwise");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn runs_delayed_after_shutdown(&self) -> bool {
        self.engine
            .readable_state()
            .is_some_and(|state| state.runs_delayed)
    }

    /// Changes whether delayed tasks still run after a shutdown. After one, those that may not are cancelled
    /// at once. A task that is due runs in any case.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let later = timers.schedule(Duration::from_secs(3600), || ())?;
    /// timers.shutdown();
    /// assert!(!later.is_finished()); // it would still run, in an hour
    /// timers.set_run_delayed_after_shutdown(false);
    /// assert!(later.is_cancelled());
    /// timers.close()?; // at once
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn set_run_delayed_after_shutdown(&self, run: bool) {
        self.change("run_delayed_after_shutdown", run);
    }

    /// Whether series go on after a shutdown.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// assert!(!timers.runs_series_after_shutdown(), "unless told so");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn runs_series_after_shutdown(&self) -> bool {
        self.engine
            .readable_state()
            .is_some_and(|state| state.runs_periodic)
    }

    /// Changes whether series go on after a shutdown. After one, if they may not, they are cancelled at
    /// once.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::Every;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// timers.set_run_series_after_shutdown(true);
    /// let bell = timers.series(Every::rate(Duration::from_secs(3600))).start(|| ())?;
    /// timers.shutdown();
    /// assert!(!bell.is_finished(), "it goes on");
    /// timers.set_run_series_after_shutdown(false);
    /// assert!(bell.is_cancelled());
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn set_run_series_after_shutdown(&self, run: bool) {
        self.change("run_series_after_shutdown", run);
    }

    /// Its parameters, described, with their values now. In a forked process they are as by default if a thread of the parent
    /// was using them at the fork.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let names: Vec<_> = timers.parameters().into_iter().map(|each| each.name).collect();
    /// assert_eq!(names, ["max_pending", "run_delayed_after_shutdown", "run_series_after_shutdown"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parameters(&self) -> Vec<Parameter> {
        let config = self.engine.readable_state().map(|state| Config::of(&state));
        TABLE.describe(&config.unwrap_or_default())
    }

    /// Changes all parameters that the patch names, or none. Returns what has changed.
    ///
    /// # Errors
    ///
    /// All that is wrong with the patch; then nothing has changed.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::preset;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let patch = Patch::new().set("max_pending", 100).set("run_series_after_shutdown", true);
    /// timers.apply(&patch)?;
    /// assert_eq!((timers.max_pending(), timers.runs_series_after_shutdown()), (Some(100), true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        let (now, next) = self.resolve(patch, Config::write)?;
        let max_pending = now.max_pending;
        if now
            != (Config {
                max_pending,
                ..next
            })
        {
            self.engine.cancel_unwanted();
        }
        Ok(TABLE.changes(&now, &next))
    }

    /// What the patch would change.
    pub(super) fn check(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        let (now, next) = self.resolve(patch, |_, _| ())?;
        Ok(TABLE.changes(&now, &next))
    }

    /// The parameters now, and those that the patch leads to, which are left to `then` under the lock.
    fn resolve(
        &self,
        patch: &Patch,
        then: impl FnOnce(Config, &mut PoolState),
    ) -> Result<(Config, Config), PatchError> {
        let below = |problem: Invalid| match self.executor_with(problem.parameter()) {
            Some(executor) => problem.known_below(executor),
            None => problem,
        };
        let unknown = TABLE.unknown(patch);
        let mut problems: Vec<_> = unknown.into_iter().map(below).collect();
        let Some(mut state) = self.engine.live_state() else {
            return Err(PatchError::of(Invalid::Forked));
        };
        let now = Config::of(&state);
        let (next, further) = TABLE.resolve_known(&now, patch);
        problems.extend(further);
        PatchError::unless_none(problems)?;
        then(next, &mut state);
        Ok((now, next))
    }

    /// The name of the executor, if it has the parameter.
    fn executor_with(&self, parameter: &str) -> Option<&str> {
        self.executor.internals().parameter_owner(parameter)
    }

    /// The name of the engine that has the parameter: this one, or one below.
    pub(super) fn owner_of(&self, parameter: &str) -> Option<&str> {
        if TABLE.has(parameter) {
            Some(self.name())
        } else {
            self.executor_with(parameter)
        }
    }

    /// Changes one parameter to a value of its type. In a forked process nothing changes.
    fn change(&self, name: &'static str, value: impl Into<Value>) {
        let changed = self.apply(&Patch::new().set(name, value.into()));
        debug_assert!(changed.is_ok() || self.engine.is_forked(), "{changed:?}");
    }
}
