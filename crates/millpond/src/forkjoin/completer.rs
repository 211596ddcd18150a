//! Counted completers: computations whose last part to end goes on with what follows, for those who come from Java.
//!
//! - **COMPLETER-1** The thread that finds a pending count of zero completes the node, and goes on to its parent;
//!   anybody else takes one off. So of n + 1 arrivals at a node with a count of n the last one completes it, and
//!   exactly one does.
//! - **COMPLETER-2** The jobs of all nodes are spawned in one scope, which `invoke` waits for. So no node outlives the call,
//!   and a root that is not complete when all jobs are over never will be.
//!
//! # Orderings
//!
//! - `[C-part]` Taking one off releases what the part has done; the last one acquires that with the count of zero. And
//!   completing a node releases what was done before; whoever sees that it is complete acquires that.

use super::ForkScope;
use super::install;
use millpond_raw::sync::atomic::{AtomicU32, Ordering};
use std::any::Any;
use std::fmt;
use std::mem;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::Arc;

const OPEN: u32 = 0;
const DONE: u32 = 1;
const FAILED: u32 = 2;

/// A computation that divides itself, and in which nobody waits: the last part to end completes the whole.
///
/// What extends `CountedCompleter` in Java implements this. Each node of the computation is a value of the implementing
/// type, with a count of what is *pending*: how many times [`try_complete`](Completer::try_complete) must be called before
/// it is complete, less one. The root is given to [`invoke`](CountedCompleter::invoke), and comes back when it is complete;
/// its fields are the result. Nodes may borrow what lives longer than the call.
///
/// | Java | here |
/// |---|---|
/// | `root.invoke()`, `root.getRawResult()` | `let root = root.invoke()`, and its fields |
/// | `new Node(this, ..)`, `fork()` | [`this.child(node)`](Completer::child), [`fork`](Completer::fork) |
/// | `addToPendingCount(1)`, then both | [`this.fork_child(node)`](Completer::fork_child) |
/// | `tryComplete`, `propagateCompletion`, `complete` | [`try_complete`](Completer::try_complete), [`propagate_completion`](Completer::propagate_completion), [`complete`](Completer::complete) |
/// | `onCompletion(caller)` | [`on_completion`](CountedCompleter::on_completion) |
/// | `firstComplete`, `nextComplete` | [`first_complete`](Completer::first_complete), [`next_complete`](Completer::next_complete) |
/// | `quietlyCompleteRoot` | [`complete_root`](Completer::complete_root) |
/// | `completeExceptionally(e)`, an exception of `compute` | [`fail`](Completer::fail), a panic: they come out of `invoke` |
/// | a root that nobody completes: waits for ever | panics when all parts are over |
///
/// Take [`join`](super::join) where the parts are combined where they were divided: it is shorter, and much cheaper. Take
/// this where what follows is not a stack frame: a search whose first finder ends it, parts that go on by themselves.
///
/// ```
/// use millpond::forkjoin::{Completer, CountedCompleter};
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// struct Sum<'a> {
///     of: &'a [u64],
///     total: AtomicU64,
/// }
///
/// impl CountedCompleter for Sum<'_> {
///     fn compute(this: &Completer<'_, '_, Self>) {
///         if this.of.len() > 1_000 {
///             let (left, right) = this.of.split_at(this.of.len() / 2);
///             for of in [left, right] {
///                 this.fork_child(Sum { of, total: AtomicU64::new(0) });
///             }
///         } else {
///             this.total.store(this.of.iter().sum(), Relaxed);
///         }
///         this.try_complete();
///     }
///
///     // All parts are there.
///     fn on_completion(this: &Completer<'_, '_, Self>, _caller: &Completer<'_, '_, Self>) {
///         if let Some(parent) = this.completer() {
///             parent.total.fetch_add(this.total.load(Relaxed), Relaxed);
///         }
///     }
/// }
///
/// let all: Vec<u64> = (1..=100_000).collect();
/// let sum = Sum { of: &all, total: AtomicU64::new(0) }.invoke();
/// assert_eq!(sum.total.into_inner(), 5_000_050_000);
/// ```
pub trait CountedCompleter: Sized + Send + Sync {
    /// Computes this node: does it all, or forks children. It says when it is done, usually with
    /// [`try_complete`](Completer::try_complete) at its end.
    fn compute(this: &Completer<'_, '_, Self>);

    /// Nothing is pending any more: called once, before the node counts as complete, by the thread that brought the last
    /// part. `caller` is the child that was completed last, or the node itself.
    #[doc(alias = "onCompletion")]
    fn on_completion(this: &Completer<'_, '_, Self>, caller: &Completer<'_, '_, Self>) {
        let _ = (this, caller);
    }

    /// Computes in the pool of the worker that calls it, on any other thread in
    /// [`ForkJoinPool::common`](super::ForkJoinPool::common), and returns the root when all its parts are over.
    ///
    /// # Panics
    ///
    /// If a node does, or [was failed](Completer::fail), when all parts are over. If all are over and nobody has completed
    /// the root: a `try_complete` is missing.
    #[track_caller]
    fn invoke(self) -> Self {
        let root = Counted::new(self);
        install::scope(|scope| {
            let root = Completer::new(Place::Root(&root), None, scope);
            root.run();
        });
        let is_complete = root.state.load(Ordering::Relaxed) == DONE;
        let pending = root.pending.load(Ordering::Relaxed);
        assert!(
            is_complete,
            "all parts are over and the root is not complete: a `try_complete` is missing, or its pending count, which is \
             {pending}, was too high"
        );
        root.data
    }
}

/// The fields of a node, and its counts.
struct Counted<T> {
    data: T,
    pending: AtomicU32,
    state: AtomicU32,
}

impl<T> Counted<T> {
    fn new(data: T) -> Self {
        Counted {
            data,
            pending: AtomicU32::new(0),
            state: AtomicU32::new(OPEN),
        }
    }
}

enum Place<'env, T> {
    /// On the stack of `invoke`.
    Root(&'env Counted<T>),
    Child(Counted<T>),
}

struct Node<'scope, 'env, T> {
    place: Place<'env, T>,
    parent: Parent<'scope, 'env, T>,
    scope: &'scope ForkScope<'scope, 'env>,
}

struct Parent<'scope, 'env, T>(Option<Completer<'scope, 'env, T>>);

impl<T> Drop for Parent<'_, '_, T> {
    /// Without recursion: a computation may be a long chain.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(Completer(node)) = next {
            next = Arc::into_inner(node).and_then(|mut node| node.parent.0.take());
        }
    }
}

/// A node of a computation with [`CountedCompleter`]s, which derefs to its fields. Clones are the same node.
pub struct Completer<'scope, 'env, T>(Arc<Node<'scope, 'env, T>>);

impl<T> Clone for Completer<'_, '_, T> {
    fn clone(&self) -> Self {
        Completer(Arc::clone(&self.0))
    }
}

impl<'scope, 'env, T> Completer<'scope, 'env, T> {
    fn new(
        place: Place<'env, T>,
        parent: Option<Self>,
        scope: &'scope ForkScope<'scope, 'env>,
    ) -> Self {
        let parent = Parent(parent);
        Completer(Arc::new(Node {
            place,
            parent,
            scope,
        }))
    }

    fn counted(&self) -> &Counted<T> {
        match &self.0.place {
            Place::Root(counted) => counted,
            Place::Child(counted) => counted,
        }
    }

    /// The node that goes on when this one is complete; `None` of the root.
    #[doc(alias = "getCompleter")]
    pub fn completer(&self) -> Option<&Self> {
        self.0.parent.0.as_ref()
    }

    /// The node that was invoked.
    #[doc(alias = "getRoot")]
    pub fn root(&self) -> &Self {
        let mut node = self;
        while let Some(parent) = node.completer() {
            node = parent;
        }
        node
    }

    /// How many more parts than one must arrive before the node is complete.
    #[doc(alias = "getPendingCount")]
    pub fn pending(&self) -> u32 {
        // [C-part]
        self.counted().pending.load(Ordering::Acquire)
    }

    /// Sets the pending count. For a node of which no part has been forked.
    #[doc(alias = "setPendingCount")]
    pub fn set_pending(&self, count: u32) {
        self.counted().pending.store(count, Ordering::Relaxed);
    }

    /// Adds to the pending count. To be called before the parts are forked, by a part that has not arrived.
    #[doc(alias = "addToPendingCount")]
    pub fn add_pending(&self, parts: u32) {
        // Relaxed: the caller has not arrived, so the count does not come to zero meanwhile.
        self.counted().pending.fetch_add(parts, Ordering::Relaxed);
    }

    /// Sets the pending count, if it is the expected one.
    #[doc(alias = "compareAndSetPendingCount")]
    pub fn compare_and_set_pending(&self, expected: u32, count: u32) -> bool {
        // [C-part]
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let pending = &self.counted().pending;
        pending
            .compare_exchange(expected, count, success, failure)
            .is_ok()
    }

    /// Takes one off the pending count, unless that is zero, and returns what it was.
    #[doc(alias = "decrementPendingCountUnlessZero")]
    pub fn decrement_pending_unless_zero(&self) -> u32 {
        let mut seen = self.pending();
        while seen > 0 && !self.compare_and_set_pending(seen, seen - 1) {
            seen = self.pending();
        }
        seen
    }

    /// Whether it is complete, or failed. A part of a search asks this of the [root](Completer::root), and gives up.
    #[doc(alias = "isDone")]
    pub fn is_completed(&self) -> bool {
        // [C-part]
        self.counted().state.load(Ordering::Acquire) != OPEN
    }

    /// Whether it, or a part of it, has panicked or [was failed](Completer::fail).
    #[doc(alias = "isCompletedAbnormally")]
    pub fn is_failed(&self) -> bool {
        self.counted().state.load(Ordering::Relaxed) == FAILED
    }

    /// A node that goes on with this one when it is complete. It is not counted here: see
    /// [`fork_child`](Completer::fork_child).
    pub fn child(&self, data: T) -> Self {
        let place = Place::Child(Counted::new(data));
        Completer::new(place, Some(self.clone()), self.0.scope)
    }

    fn end(&self, state: u32) {
        let own = &self.counted().state;
        // [C-part]; relaxed on failure: the first end stays
        let _ = own.compare_exchange(OPEN, state, Ordering::Release, Ordering::Relaxed);
    }

    fn end_all_failed(&self) {
        let mut next = Some(self);
        while let Some(node) = next {
            node.end(FAILED);
            next = node.completer();
        }
    }
}

impl<'scope, 'env, T: CountedCompleter> Completer<'scope, 'env, T> {
    /// Lets [`compute`](CountedCompleter::compute) be called, perhaps on another worker. For a node that has not been
    /// forked.
    pub fn fork(&self) {
        let own = self.clone();
        self.0.scope.spawn(move |_| own.run());
    }

    /// Counts a part, makes a node of it and forks that.
    pub fn fork_child(&self, data: T) {
        self.add_pending(1);
        self.child(data).fork();
    }

    fn run(&self) {
        /// It unwinds.
        struct Failing<'a, 'scope, 'env, T>(&'a Completer<'scope, 'env, T>);

        impl<T> Drop for Failing<'_, '_, '_, T> {
            fn drop(&mut self) {
                self.0.end_all_failed();
            }
        }

        if !self.is_completed() {
            let failing = Failing(self);
            T::compute(self);
            mem::forget(failing);
        }
    }

    /// One part has arrived. If it was the last one the node is complete: calls
    /// [`on_completion`](CountedCompleter::on_completion) and goes on with the parent, for which it is a part that has
    /// arrived.
    #[doc(alias = "tryComplete")]
    pub fn try_complete(&self) {
        self.arrive_from(self);
    }

    /// [`try_complete`](Completer::try_complete) without `on_completion`.
    #[doc(alias = "propagateCompletion")]
    pub fn propagate_completion(&self) {
        let mut next = self.first_complete();
        while let Some(node) = next {
            node.end(DONE);
            next = node.next_complete();
        }
    }

    /// Completes the node whatever its pending count is, with `on_completion`, and goes on with the parent as
    /// [`try_complete`](Completer::try_complete) does.
    pub fn complete(&self) {
        T::on_completion(self, self);
        self.end(DONE);
        if let Some(parent) = self.completer() {
            parent.arrive_from(self);
        }
    }

    /// COMPLETER-1
    fn arrive_from(&self, part: &Self) {
        let mut caller = part;
        let mut next = Some(self);
        while let Some(node) = next.filter(|node| node.decrement_pending_unless_zero() == 0) {
            T::on_completion(node, caller);
            node.end(DONE);
            caller = node;
            next = node.completer();
        }
    }

    /// The node, if nothing is pending; otherwise takes one off. For loops that combine parts on their way up:
    ///
    /// ```
    /// use millpond::forkjoin::{Completer, CountedCompleter};
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    ///
    /// /// Counts the leaves of a tree of that depth.
    /// struct Leaves(u32, AtomicU32);
    ///
    /// impl CountedCompleter for Leaves {
    ///     fn compute(this: &Completer<'_, '_, Self>) {
    ///         for _ in 0..if this.0 > 0 { 2 } else { 0 } {
    ///             this.fork_child(Leaves(this.0 - 1, AtomicU32::new(0)));
    ///         }
    ///         if this.0 == 0 {
    ///             this.1.store(1, Relaxed);
    ///         }
    ///         let mut next = this.first_complete();
    ///         while let Some(node) = next {
    ///             if let Some(parent) = node.completer() {
    ///                 parent.1.fetch_add(node.1.load(Relaxed), Relaxed);
    ///             }
    ///             next = node.next_complete();
    ///         }
    ///     }
    /// }
    /// assert_eq!(Leaves(5, AtomicU32::new(0)).invoke().1.into_inner(), 32);
    /// ```
    #[doc(alias = "firstComplete")]
    pub fn first_complete(&self) -> Option<&Self> {
        (self.decrement_pending_unless_zero() == 0).then_some(self)
    }

    /// The parent, if nothing is pending there; otherwise takes one off there. The root it completes.
    #[doc(alias = "nextComplete")]
    pub fn next_complete(&self) -> Option<&Self> {
        match self.completer() {
            Some(parent) => parent.first_complete(),
            None => {
                self.end(DONE);
                None
            }
        }
    }

    /// Completes the root, and no node in between. How a search ends that has found something.
    #[doc(alias = "quietlyCompleteRoot")]
    pub fn complete_root(&self) {
        self.root().end(DONE);
    }

    /// Fails the node and all that go on with it: `invoke` panics with this.
    #[doc(alias = "completeExceptionally")]
    pub fn fail(&self, payload: Box<dyn Any + Send>) {
        self.end_all_failed();
        self.0.scope.spawn(|_| resume_unwind(payload));
    }
}

impl<T> Deref for Completer<'_, '_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.counted().data
    }
}

impl<T> fmt::Debug for Completer<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer")
            .field("pending", &self.pending())
            .field("is_completed", &self.is_completed())
            .finish_non_exhaustive()
    }
}
