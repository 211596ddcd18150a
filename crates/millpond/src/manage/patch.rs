//! A patch: parameters that change together.
//!
//! A patch names parameters and says what they are to be. By name it fits engines of any kind; the methods
//! with a parameter's name are for the thread pool, typed and documented. An engine judges a patch as a
//! whole ([`Managed::apply`](super::Managed::apply)).
//!
//! # Invariants
//!
//! - **PATCH-1** A patch that is applied changes all that it names, or nothing.
//! - **PATCH-2** The last setting of a name counts. A text that it replaces must be one of a value, too: a mistake is not
//!   forgiven because something right was said later.

use super::{Growth, OverloadOrder, Value};
use crate::adapt::CoDel;
use std::borrow::Cow;
use std::time::Duration;

/// Parameters to change; those that are not named stay as they are.
///
/// ```
/// use millpond::manage::Patch;
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").core(1).max(2).build()?;
/// pool.apply(&Patch::new().core(4).max(8).capacity(64))?;
/// assert_eq!((pool.core(), pool.max(), pool.capacity()), (4, 8, Some(64)));
///
/// // The same by name, from a file or a console.
/// pool.apply(&Patch::new().set("core", "2").set("keep_alive", "30s"))?;
/// assert_eq!(pool.core(), 2);
///
/// // All or nothing: the capacity stays, because max is below core.
/// let error = pool.apply(&Patch::new().max(1).capacity(7)).unwrap_err();
/// assert!(error.to_string().contains("core 2 is above max 1"));
/// assert_eq!((pool.max(), pool.capacity()), (8, Some(64)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a patch does nothing until it is applied"]
pub struct Patch {
    changes: Vec<(Cow<'static, str>, Setting)>,
    /// Texts that a later setting of the same name has replaced, each once. They are judged by themselves (PATCH-2).
    replaced: Vec<(Cow<'static, str>, Setting)>,
}

/// What a parameter is to be: a value, or the text of one, which is read when it is known of which type the
/// parameter is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// A value.
    Value(Value),
    /// The text of a value.
    Text(String),
}

macro_rules! setting_from_value {
    ($($value:ty),*) => {$(
        impl From<$value> for Setting {
            fn from(value: $value) -> Self {
                Setting::Value(value.into())
            }
        }
    )*};
}

setting_from_value!(
    Value,
    usize,
    u64,
    u32,
    bool,
    Duration,
    Growth,
    OverloadOrder
);
setting_from_value!(Option<usize>, Option<u64>, Option<Duration>);

/// For plain numbers in a program. A negative one is rejected by the engine, as is every text that it cannot
/// read.
impl From<i32> for Setting {
    fn from(number: i32) -> Self {
        Setting::Text(number.to_string())
    }
}

impl From<&str> for Setting {
    fn from(text: &str) -> Self {
        Setting::Text(text.to_owned())
    }
}

impl From<String> for Setting {
    fn from(text: String) -> Self {
        Setting::Text(text)
    }
}

impl Patch {
    /// A patch that changes nothing.
    ///
    /// ```
    /// use millpond::manage::Patch;
    ///
    /// assert!(Patch::new().is_empty());
    /// assert!(!Patch::new().core(2).is_empty());
    /// ```
    pub fn new() -> Self {
        Patch::default()
    }

    /// Changes the parameter of this name, of an engine of any kind. Text is read by the engine, which knows
    /// the type of the parameter.
    ///
    /// If a name is set twice the last setting counts; a text before it that is no value of the parameter is an error
    /// nevertheless.
    ///
    /// ```
    /// use millpond::manage::{Managed, Patch};
    /// use millpond::preset;
    ///
    /// let engines: [Box<dyn Managed>; 2] =
    ///     [Box::new(preset::single("mill").build()?), Box::new(preset::scheduled("bell", 1)?)];
    /// engines[0].apply(&Patch::new().set("keep_alive", "90s").set("rejection", "block(100ms)"))?;
    /// engines[1].apply(&Patch::new().set("max_pending", 10))?;
    ///
    /// let error = engines[1].apply(&Patch::new().set("core", 4)).unwrap_err();
    /// assert!(error.to_string().contains("`core` here: it is one of the executor, `bell-workers`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(mut self, name: impl Into<Cow<'static, str>>, to: impl Into<Setting>) -> Self {
        let (name, to) = (name.into(), to.into());
        // PATCH-2
        if let Some(at) = self.changes.iter().position(|(former, _)| *former == name) {
            let former = self.changes.remove(at);
            if matches!(former.1, Setting::Text(_)) && !self.replaced.contains(&former) {
                self.replaced.push(former);
            }
        }
        self.changes.push((name, to));
        self
    }

    /// Whether it changes nothing.
    ///
    /// ```
    /// assert!(millpond::manage::Patch::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What a parameter is to be, if it is named.
    ///
    /// ```
    /// use millpond::manage::{Patch, Setting, Value};
    ///
    /// let patch = Patch::new().core(3);
    /// assert_eq!(patch.get("core"), Some(&Setting::Value(Value::Integer(3))));
    /// assert_eq!(patch.get("max"), None);
    /// ```
    pub fn get(&self, name: &str) -> Option<&Setting> {
        let found = self.changes.iter().find(|(changed, _)| changed == name);
        found.map(|(_, setting)| setting)
    }

    /// Texts that were given for a parameter before the setting that counts (PATCH-2).
    pub(super) fn replaced(&self, name: &str) -> impl Iterator<Item = &Setting> {
        let named = self
            .replaced
            .iter()
            .filter(move |(former, _)| former == name);
        named.map(|(_, setting)| setting)
    }

    /// What it changes, in the order in which it was said.
    ///
    /// ```
    /// use millpond::manage::Patch;
    ///
    /// let patch = Patch::new().core(3).set("max", "8");
    /// let names: Vec<_> = patch.changes().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["core", "max"]);
    /// ```
    pub fn changes(&self) -> impl Iterator<Item = (&str, &Setting)> {
        let changes = self.changes.iter();
        changes.map(|(name, setting)| (&**name, setting))
    }
}

/// The parameters of a thread pool.
impl Patch {
    /// Workers that are kept, also when they are idle.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// pool.apply(&Patch::new().core(2))?;
    /// assert_eq!((pool.core(), pool.max()), (2, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn core(self, core: usize) -> Self {
        self.set("core", core)
    }

    /// The most workers there may be.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// pool.apply(&Patch::new().max(8))?;
    /// assert_eq!((pool.core(), pool.max()), (1, 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max(self, max: usize) -> Self {
        self.set("max", max)
    }

    /// How long an idle worker above the core stays.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.apply(&Patch::new().keep_alive(Duration::from_secs(5)))?;
    /// assert_eq!(pool.keep_alive(), Duration::from_secs(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_alive(self, keep_alive: Duration) -> Self {
        self.set("keep_alive", keep_alive)
    }

    /// Whether idle workers of the core leave as well.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.apply(&Patch::new().core_may_time_out(true))?;
    /// assert!(pool.core_may_time_out());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn core_may_time_out(self, may: bool) -> Self {
        self.set("core_may_time_out", may)
    }

    /// Whether a task that finds the core busy is queued or starts another worker.
    ///
    /// ```
    /// use millpond::manage::{Growth, Patch};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// pool.apply(&Patch::new().max(4).growth(Growth::ThreadsFirst))?;
    /// assert_eq!((pool.max(), pool.growth()), (4, Growth::ThreadsFirst));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growth(self, growth: Growth) -> Self {
        self.set("growth", growth)
    }

    /// The most tasks that may wait in the queue.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::{Queue, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").queue(Queue::bounded(16)).build()?;
    /// pool.apply(&Patch::new().capacity(64))?;
    /// assert_eq!(pool.capacity(), Some(64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn capacity(self, capacity: usize) -> Self {
        self.set("capacity", capacity)
    }

    /// The longest that a task may wait in the queue; `None` is forever.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").max_queue_wait(Duration::from_secs(1)).build()?;
    /// pool.apply(&Patch::new().max_queue_wait(Duration::from_secs(3)))?;
    /// assert_eq!(pool.max_queue_wait(), Some(Duration::from_secs(3)));
    /// pool.apply(&Patch::new().max_queue_wait(None))?;
    /// assert_eq!(pool.max_queue_wait(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_queue_wait(self, most: impl Into<Option<Duration>>) -> Self {
        self.set("max_queue_wait", most.into())
    }

    /// When the pool counts as overloaded and sheds tasks; `None` is never.
    ///
    /// ```
    /// use millpond::manage::{CoDel, Patch};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.apply(&Patch::new().shedding(CoDel::default()))?;
    /// assert_eq!(pool.shedding(), Some(CoDel::default()));
    /// pool.apply(&Patch::new().shedding(None))?;
    /// assert_eq!(pool.shedding(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shedding(self, shedding: impl Into<Option<CoDel>>) -> Self {
        let shedding = shedding.into();
        self.set("shedding_target", shedding.map(|codel| codel.target))
            .set("shedding_interval", shedding.map(|codel| codel.interval))
    }

    /// The longest that a task may run before it is reported; `None` is no limit. Whether it is interrupted, too, stays
    /// as it is.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// let warning = RunWarning::after(second).interrupts();
    /// let pool = ThreadPool::builder("mill").run_warning(warning).build()?;
    /// pool.apply(&Patch::new().run_warning(2 * second))?;
    /// assert_eq!(pool.run_warning(), Some(RunWarning::after(2 * second).interrupts()));
    /// pool.apply(&Patch::new().run_warning(None))?;
    /// assert_eq!(pool.run_warning(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_warning(self, limit: impl Into<Option<Duration>>) -> Self {
        self.set("run_warning", limit.into())
    }

    /// Which task comes next while the pool is overloaded.
    ///
    /// ```
    /// use millpond::manage::{CoDel, OverloadOrder, Patch};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// let newest_first = Patch::new().overload_order(OverloadOrder::NewestFirst);
    /// pool.apply(&newest_first).unwrap_err(); // nothing says what an overload is
    /// pool.apply(&newest_first.shedding(CoDel::default()))?;
    /// assert_eq!(pool.overload_order(), OverloadOrder::NewestFirst);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn overload_order(self, order: OverloadOrder) -> Self {
        self.set("overload_order", order)
    }

    /// The percentile of run times that a task with a [`finish_by`](crate::task::TaskSpec::finish_by) must have time for.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.apply(&Patch::new().finish_percentile(90))?;
    /// assert_eq!(pool.finish_percentile(), 90);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_percentile(self, percent: u8) -> Self {
        self.set("finish_percentile", u32::from(percent))
    }
}
