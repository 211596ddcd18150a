//! Reading and changing the parameters of a running pool. They are described in [`super::config`].

use super::config::TABLE;
use super::{ForkJoinPool, RunWarning};
use crate::manage::{Change, Parameter, Patch, PatchError};

impl ForkJoinPool {
    /// How many workers compute at a time.
    #[doc(alias = "getParallelism")]
    pub fn parallelism(&self) -> usize {
        self.engine.parallelism()
    }

    /// Changes how many workers compute at a time, and returns the former number. Surplus workers leave when they have
    /// nothing to do.
    ///
    /// # Errors
    ///
    /// The number is out of range; then the old one stays.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(4).build()?;
    /// assert_eq!(pool.set_parallelism(2)?, 4);
    /// assert!(pool.set_parallelism(0).is_err());
    /// assert_eq!(pool.parallelism(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setParallelism")]
    pub fn set_parallelism(&self, parallelism: usize) -> Result<usize, PatchError> {
        let patch = Patch::new().set("parallelism", parallelism);
        Ok(self.engine.apply(&patch)?.0.parallelism)
    }

    /// How many workers may be started to replace blocked ones.
    #[doc(alias = "maximumPoolSize")]
    pub fn max_spares(&self) -> usize {
        self.engine.config.max_spares()
    }

    /// Changes how many workers may be started to replace blocked ones, and returns the former number.
    ///
    /// # Errors
    ///
    /// The number is out of range; then the old one stays.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").max_spares(4).build()?;
    /// assert_eq!(pool.set_max_spares(8)?, 4);
    /// assert!(pool.set_max_spares(1_000_000).is_err());
    /// assert_eq!(pool.max_spares(), 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_max_spares(&self, max_spares: usize) -> Result<usize, PatchError> {
        let patch = Patch::new().set("max_spares", max_spares);
        Ok(self.engine.apply(&patch)?.0.max_spares)
    }

    /// The limit on the run time of tasks whose name has none of its own; `None` is no limit.
    pub fn run_warning(&self) -> Option<RunWarning> {
        self.engine.read_config().run_warning
    }

    /// Changes several parameters together, or none if one of them cannot have its new value. Returns what has changed.
    ///
    /// # Errors
    ///
    /// All that is wrong with the patch; then nothing has changed.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    /// use millpond::manage::Patch;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
    /// pool.apply(&Patch::new().set("parallelism", 4).set("max_spares", 8))?;
    /// assert_eq!((pool.parallelism(), pool.max_spares()), (4, 8));
    /// let error = pool.apply(&Patch::new().set("paralelism", 3)).unwrap_err();
    /// assert!(error.to_string().contains("parallelism"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        let (before, after) = self.engine.apply(patch)?;
        Ok(TABLE.changes(&before, &after))
    }

    /// Its parameters, described, with their values now.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
    /// let first = &pool.parameters()[0];
    /// assert_eq!((&*first.name, first.value.to_string().as_str(), first.is_live), ("parallelism", "2", true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parameters(&self) -> Vec<Parameter> {
        self.engine.parameters()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::manage::Managed;

    #[test]
    fn parameters_are_listed_and_changed_together_or_not_at_all() {
        let pool = ForkJoinPool::builder("mill")
            .parallelism(2)
            .build()
            .unwrap();
        let names: Vec<_> = pool
            .parameters()
            .into_iter()
            .map(|each| each.name)
            .collect();
        assert_eq!(
            names,
            [
                "parallelism",
                "max_spares",
                "keep_alive",
                "fifo",
                "help",
                "run_warning",
                "max_task_names"
            ]
        );
        let patch = Patch::new().set("parallelism", 3_usize).set("fifo", true);
        let error = Managed::apply(&pool, &patch).unwrap_err();
        assert_eq!(error.problems()[0].parameter(), "fifo");
        assert_eq!(pool.parallelism(), 2);
        Managed::apply(&pool, &Patch::new().set("parallelism", 3_usize)).unwrap();
        assert_eq!(pool.parallelism(), 3);
    }
}
