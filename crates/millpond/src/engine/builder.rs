//! The common part of builders.
//!
//! A builder has public methods of its own, with the words and examples that fit its engine. What they set is kept here,
//! with its defaults, and becomes what an engine is built of: [`CommonBuilder`] for every engine, [`WorkerBuilder`] for
//! those with workers of their own.

use super::events::Listener;
use super::metrics::LabelTable;
use super::watchdog::{Limits, RunWarning, Watchdog};
use crate::executor::{Runner, UncaughtPanic};
use crate::manage::Invalid;
use crate::thread::{ThreadFactory, Threads};
use crate::time::{Clock, TimestampClock};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What the builder of any engine can be told.
pub(crate) struct CommonBuilder<Event> {
    pub(crate) name: Cow<'static, str>,
    pub(crate) clock: Clock,
    pub(crate) listener: Option<Listener<Event>>,
}

impl<Event> CommonBuilder<Event> {
    /// Without a listener. An empty name is found by the engine, among its other problems.
    pub(crate) fn new(name: Cow<'static, str>, clock: Clock) -> Self {
        CommonBuilder {
            name,
            clock,
            listener: None,
        }
    }

    /// Sets the name, or the default in place of an empty one: for engines whose `build` cannot fail.
    pub(crate) fn set_name_or(&mut self, name: Cow<'static, str>, default: Cow<'static, str>) {
        let is_wrong = Invalid::of_name(&name).is_some();
        self.name = if is_wrong { default } else { name };
    }

    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    pub(crate) fn set_listener(&mut self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.listener = Some(Arc::new(listener));
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Begins the debug output of a builder: its name is first.
    pub(crate) fn debug<'a, 'f>(
        &self,
        builder: &str,
        f: &'a mut fmt::Formatter<'f>,
    ) -> fmt::DebugStruct<'a, 'f> {
        let mut output = f.debug_struct(builder);
        output.field("name", &self.name);
        output
    }
}

/// What the builder of an engine with workers can be told about them and about the tasks that they run.
pub(crate) struct WorkerBuilder {
    factory: Option<Arc<dyn ThreadFactory>>,
    runner: Runner,
    /// The number of names it keeps metrics of; `None` for no metrics at all.
    task_names: Option<usize>,
    run_warnings: Limits,
}

/// What an engine with workers is built of.
pub(crate) struct WorkerParts {
    pub(crate) runner: Runner,
    pub(crate) timestamps: TimestampClock,
    /// The labels of its metrics; `None` if it keeps none.
    pub(crate) labels: Option<LabelTable>,
    pub(crate) watchdog: Watchdog,
}

impl WorkerBuilder {
    /// Threads of the engine's name, no hook, no limits. How many names are measured by default is in the engine's table
    /// of parameters.
    pub(crate) fn new(task_names: usize) -> Self {
        WorkerBuilder {
            factory: None,
            runner: Runner::default(),
            task_names: Some(task_names),
            run_warnings: Limits::default(),
        }
    }

    pub(crate) fn set_factory(&mut self, factory: impl ThreadFactory) {
        self.factory = Some(factory.into_shared());
    }

    pub(crate) fn set_panic_hook(&mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) {
        self.runner = Runner::with_hook(hook);
    }

    pub(crate) fn set_run_warning(&mut self, warning: RunWarning) {
        self.run_warnings.of_all = Some(warning);
    }

    pub(crate) fn set_run_warning_for(&mut self, name: impl Into<String>, warning: RunWarning) {
        let name = name.into().into_boxed_str();
        self.run_warnings.by_name.insert(name, warning);
    }

    /// More than there can be labels are a problem that the engine finds.
    pub(crate) fn set_max_task_names(&mut self, most: usize) {
        self.task_names = Some(most);
    }

    pub(crate) fn unset_metrics(&mut self) {
        self.task_names = None;
    }

    pub(crate) fn task_names(&self) -> Option<usize> {
        self.task_names
    }

    pub(crate) fn run_warning(&self) -> Option<RunWarning> {
        self.run_warnings.of_all
    }

    /// The factory that was given, or threads of the engine's name.
    pub(crate) fn factory<Event>(&self, common: &CommonBuilder<Event>) -> Arc<dyn ThreadFactory> {
        match &self.factory {
            Some(factory) => Arc::clone(factory),
            None => Arc::new(Threads::named(common.name.clone())),
        }
    }

    pub(crate) fn into_parts(self, clock: &Clock) -> WorkerParts {
        WorkerParts {
            runner: self.runner,
            timestamps: TimestampClock::of(clock),
            labels: self.task_names.map(LabelTable::new),
            watchdog: Watchdog::new(self.run_warnings),
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_replaced_where_a_build_cannot_fail() {
        let mut common = CommonBuilder::<()>::new("mill".into(), Clock::system());
        common.set_name_or("orders".into(), "default".into());
        assert_eq!(common.name(), "orders");
        common.set_name_or(" ".into(), "default".into());
        assert_eq!(common.name(), "default");
    }

    #[test]
    fn a_factory_that_is_shared_already_is_taken_as_it_is() {
        let threads: Arc<dyn ThreadFactory> = Arc::new(Threads::named("wheel"));
        let mut workers = WorkerBuilder::new(1);
        workers.set_factory(Arc::clone(&threads));
        let common = CommonBuilder::<()>::new("mill".into(), Clock::system());
        assert!(Arc::ptr_eq(&workers.factory(&common), &threads));
    }

    #[test]
    fn without_metrics_no_names_are_measured() {
        let mut workers = WorkerBuilder::new(1);
        assert_eq!(workers.task_names(), Some(1));
        workers.set_max_task_names(7);
        assert_eq!(workers.task_names(), Some(7));
        workers.unset_metrics();
        let parts = workers.into_parts(&Clock::system());
        assert!(parts.labels.is_none());
    }
}
