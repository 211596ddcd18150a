//! Watching: what is pending, what a completable waits for, and completables that wait for themselves.
//!
//! Stages with a name are listed while they are pending; others cost nothing for it. What a stage waits for is looked up in
//! its body, when somebody asks.

use super::completable::Completable;
use super::error::{Loop, Origin};
use super::meta::StageMeta;
use super::stage::ReaderOf;
use crate::task::Name;
use crate::time::Clock;
use millpond_raw::promise::{self, Body, Claimed, Queue, Source, Upstream};
use millpond_raw::sync::{Mutex, global};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::panic::Location;
use std::time::{Duration, Instant};

/// How many stages are looked at for a loop, or explained.
const MAX_SEARCHED: usize = 4096;
const MAX_EXPLAINED: usize = 24;

global! {
    static NAMED: Mutex<Named> = Mutex::new(Named { next: 0, pending: BTreeMap::new() });
}

struct Named {
    next: u64,
    pending: BTreeMap<u64, Entry>,
}

#[derive(Clone)]
struct Entry {
    source: Source<StageMeta>,
    name: Option<Name>,
    since: Instant,
}

/// A stage that is not complete yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PendingStage {
    origin: Origin,
    age: Duration,
}

impl PendingStage {
    /// Its name.
    pub fn name(&self) -> Option<&str> {
        self.origin.name()
    }

    /// The source location where it was made.
    pub fn location(&self) -> &'static Location<'static> {
        self.origin.location()
    }

    /// The time since it got its name.
    pub fn age(&self) -> Duration {
        self.age
    }
}

impl fmt::Display for PendingStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, pending for {:.1?}", self.origin, self.age)
    }
}

/// The stages of this process that have a [name](Completable::named) and are not complete, oldest first.
///
/// ```
/// use millpond::future;
///
/// let (promise, flour) = future::promise::<u32, ()>();
/// let flour = flour.named("flour of the day");
/// let is_flour = |stage: &future::PendingStage| stage.name() == Some("flour of the day");
/// assert!(future::pending().iter().any(is_flour));
/// promise.complete(7).unwrap();
/// assert!(!future::pending().iter().any(is_flour));
/// # drop(flour);
/// ```
pub fn pending() -> Vec<PendingStage> {
    let now = Clock::system().now();
    let entries: Vec<Entry> = NAMED.lock().pending.values().cloned().collect();
    let all = entries.iter().filter(|entry| !entry.source.is_complete());
    all.map(|entry| PendingStage {
        origin: Origin::new(entry.name.clone(), entry.source.meta().location()),
        age: now.saturating_duration_since(entry.since),
    })
    .collect()
}

/// Takes a stage off the list.
struct Unlist {
    source: Source<StageMeta>,
    number: u64,
}

impl Body<(), StageMeta> for Unlist {
    fn run(self, _: Option<usize>, claimed: Claimed<(), StageMeta, Self>, queue: &mut Queue) {
        let entry = NAMED.lock().pending.remove(&self.number);
        drop(entry);
        let _ = claimed.complete((), queue);
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
        see(self.source.upstream());
    }
}

pub(super) fn register<T, E>(reader: &ReaderOf<T, E>) {
    if reader.is_complete() {
        return;
    }
    let source = reader.upstream().to_source();
    let entry = Entry {
        source: source.clone(),
        name: reader.meta().name(),
        since: Clock::system().now(),
    };
    let number = {
        let mut named = NAMED.lock();
        let number = named.next;
        named.next += 1;
        named.pending.insert(number, entry);
        number
    };
    let mut queue = Queue::new();
    let meta = StageMeta::new(Location::caller());
    drop(promise::observer(
        Unlist { source, number },
        meta,
        &mut queue,
    ));
    queue.run();
}

/// The loop that a wait for this stage would close: the stage waits for a stage that the caller runs, or for itself.
///
/// It is found by following what each stage waits for. A stage that waits for any of several is not followed: one that
/// leads elsewhere is enough for it.
pub(super) fn find_loop(source: &Source<StageMeta>) -> Option<Loop> {
    let mut running = BTreeSet::new();
    promise::running(|cell| {
        running.insert(cell);
    });
    let (mut queue, mut seen) = (Queue::new(), BTreeSet::new());
    // Each with its depth; `path` leads to the last one that was looked at.
    let mut rest = vec![(0_usize, source.clone())];
    let mut path: Vec<Source<StageMeta>> = Vec::new();
    while let Some((depth, stage)) = rest.pop() {
        path.truncate(depth);
        let address = stage.address();
        let first = path.iter().position(|other| other.address() == address);
        if running.contains(&address) || first.is_some() {
            let from = first.unwrap_or(0);
            if first.is_none() {
                path.push(stage);
            }
            let stages = path[from..].iter().map(|stage| stage.meta().origin());
            return Some(Loop {
                stages: stages.collect(),
            });
        }
        if !seen.insert(address) || seen.len() > MAX_SEARCHED || stage.meta().waits_for_any() {
            continue;
        }
        for upstream in stage.sources(&mut queue) {
            if !upstream.is_complete() {
                rest.push((depth + 1, upstream));
            }
        }
        path.push(stage);
    }
    None
}

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// What it waits for, in sentences: for people, in logs and at incidents.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (_promise, flour) = future::promise::<u32, ()>();
    /// let bread = flour.named("flour").map(|sacks| sacks * 40);
    /// let text = bread.explain();
    /// assert!(text.contains("waits for") && text.contains("`flour`"), "{text}");
    /// ```
    pub fn explain(&self) -> String {
        let source = self.reader().upstream().to_source();
        let mut text = describe(&source, self.failure().as_ref().map(|_| "failed"));
        if source.is_complete() {
            return text;
        }
        let mut queue = Queue::new();
        let (mut rest, mut seen) = (vec![(1_usize, source)], BTreeSet::new());
        while let Some((depth, stage)) = rest.pop() {
            if !seen.insert(stage.address()) {
                continue;
            }
            let sources = stage.sources(&mut queue);
            let pending = sources
                .iter()
                .filter(|source| !source.is_complete())
                .count();
            for upstream in sources.into_iter().filter(|source| !source.is_complete()) {
                if seen.len() + rest.len() >= MAX_EXPLAINED {
                    let _ = write!(text, "\n{:depth$}and so on", "", depth = 2 * depth);
                    return text;
                }
                let how = match (stage.meta().waits_for_any(), pending) {
                    (true, 2..) => "waits, among others, for",
                    (false, 2..) => "waits for all, also for",
                    _ => "waits for",
                };
                let line = describe(&upstream, None);
                let _ = write!(text, "\n{:depth$}{how} {line}", "", depth = 2 * depth);
                rest.push((depth + 1, upstream));
            }
        }
        if let Some(found) = find_loop(&self.reader().upstream().to_source()) {
            let _ = write!(text, "\nit will never be complete: {found}");
        }
        text
    }
}

fn describe(stage: &Source<StageMeta>, outcome: Option<&str>) -> String {
    let origin = stage.meta().origin();
    if stage.is_complete() {
        let outcome = outcome.unwrap_or("has a value");
        return format!("{origin} is complete: {outcome}");
    }
    if stage.is_running() {
        return format!("{origin}, which is computed or is a promise");
    }
    format!("{origin}, which is pending")
}

pub(super) fn debug<T, E>(reader: &ReaderOf<T, E>, f: &mut fmt::Formatter<'_>) -> fmt::Result
where
    E: fmt::Debug + Send + Sync,
{
    let mut debug = f.debug_struct("Completable");
    debug.field("origin", &reader.meta().origin());
    match (reader.is_complete(), reader.get_err()) {
        (false, _) => {
            let mut queue = Queue::new();
            let dependents = reader.upstream().to_source().dependents(&mut queue);
            debug
                .field("state", &"not complete")
                .field("dependents", &dependents)
        }
        (true, None) => debug.field("state", &"completed normally"),
        (true, Some(failure)) => debug
            .field("state", &"completed exceptionally")
            .field("failure", failure),
    }
    .finish()
}
