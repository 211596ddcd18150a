//! The parameters of a scheduled pool: reading them, and changing them while it runs.

use super::ScheduledPool;
use crate::executor::Executor;

impl<E: Executor + 'static> ScheduledPool<E> {
    /// How many may wait for their time; `None` is any number.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// assert_eq!(timers.most_pending(), Some(1 << 20), "unless told otherwise");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn most_pending(&self) -> Option<usize> {
        self.core.live_books()?.most
    }

    /// Changes how many may wait for their time. Those beyond it stay.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// timers.set_most_pending(0);
    /// let refused = timers.schedule(Duration::ZERO, || "flour").unwrap_err();
    /// assert_eq!((refused.task)(), "flour", "the closure comes back");
    /// timers.set_most_pending(None);
    /// assert_eq!(timers.schedule(Duration::ZERO, || "flour")?.join()?, "flour");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_most_pending(&self, most: impl Into<Option<usize>>) {
        if let Some(mut books) = self.core.live_books() {
            books.most = most.into();
        }
    }

    /// Whether tasks that wait for their time still run after a shutdown.
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
        self.core
            .live_books()
            .is_some_and(|books| books.runs_delayed)
    }

    /// Changes whether tasks that wait for their time still run after a shutdown. After one, those that may
    /// not are cancelled at once.
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
        if let Some(mut books) = self.core.live_books() {
            books.runs_delayed = run;
            drop(books);
            self.core.sweep();
        }
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
        self.core
            .live_books()
            .is_some_and(|books| books.runs_periodic)
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
        if let Some(mut books) = self.core.live_books() {
            books.runs_periodic = run;
            drop(books);
            self.core.sweep();
        }
    }
}
