//! Completables of several: all of them, any of them.

use super::completable::Completable;
use super::error::Outcome;
use super::meta::StageMeta;
use super::stage::{ReaderOf, cancel_upstream, gather, relayed, take};
use millpond_raw::catch_panic;
use millpond_raw::promise::{self, Body, Queue, Upstream};
use std::panic::Location;

type Claimed<T, E, B> = promise::Claimed<Outcome<T, E>, StageMeta, B>;

/// Several completables, as [`all_of`] takes them: a vector or an array of one type, a slice of ones that can be cloned, or a
/// tuple of up to eight types.
pub trait Group: sealed::Sealed {
    /// What their values are together.
    type Values: Send + 'static;
    /// The type of their errors.
    type Error: Send + Sync + 'static;

    #[doc(hidden)]
    fn all(self, location: &'static Location<'static>) -> Completable<Self::Values, Self::Error>;
}

mod sealed {
    pub trait Sealed {}
}

/// The values of all of them; complete when the last of them is. If some fail it fails as the first of those, in the order of
/// the group, but not before all others are complete. [`try_all_of`](super::try_all_of) does not wait for them.
///
/// ```
/// use millpond::future::{self, Completable};
///
/// let (sacks, kind) = (Completable::supply_async(|| 7), Completable::supply_async(|| "rye"));
/// assert_eq!(future::all_of((sacks, kind)).join()?, (7, "rye"));
///
/// let squares = (0..100).map(|n: u64| Completable::supply_async(move || n * n));
/// let squares: Vec<u64> = future::all_of(squares.collect::<Vec<_>>()).join()?;
/// assert_eq!(squares[99], 9801);
/// # Ok::<(), millpond::future::CompletionError>(())
/// ```
#[doc(alias = "allOf")]
#[track_caller]
pub fn all_of<G: Group>(group: G) -> Completable<G::Values, G::Error> {
    group.all(Location::caller())
}

/// The outcome of the first of them that is complete, be it a value or a failure. Of none it is never complete.
///
/// What the others come to is dropped, and nothing of the result stays with those that are never complete.
///
/// ```
/// use millpond::future::{self, Completable};
///
/// let (_slow, rye) = future::promise();
/// let wheat = Completable::<_, ()>::completed("wheat");
/// assert_eq!(future::any_of([rye, wheat]).join().unwrap(), "wheat");
/// ```
#[doc(alias = "anyOf")]
#[track_caller]
pub fn any_of<T, E>(members: impl IntoIterator<Item = Completable<T, E>>) -> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    let meta = StageMeta::new(Location::caller());
    let mut readers: Vec<_> = members.into_iter().map(Completable::into_reader).collect();
    if let Some(first) = readers.iter().position(|reader| reader.is_complete()) {
        let first = readers.swap_remove(first);
        let outcome = gather(&meta, || relayed(take(first)));
        return Completable::of_outcome(outcome, meta);
    }
    if readers.is_empty() {
        return Completable::never();
    }
    if readers.iter().any(|reader| reader.meta().is_linked()) {
        meta.link();
    }
    let (count, mut queue) = (readers.len(), Queue::new());
    let reader = promise::stage_of_any(Any(readers), count, meta.of_any(), &mut queue);
    queue.run();
    Completable::from_reader(reader)
}

struct Any<T, E>(Vec<ReaderOf<T, E>>);

impl<T, E> Body<Outcome<T, E>, StageMeta> for Any<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn run(self, from: Option<usize>, claimed: Claimed<T, E, Self>, queue: &mut Queue) {
        let Any(mut readers) = self;
        let is_first = |reader: &ReaderOf<T, E>| reader.is_complete();
        let Some(first) = from.or_else(|| readers.iter().position(is_first)) else {
            return;
        };
        let first = readers.swap_remove(first);
        let outcome = gather(claimed.meta(), || relayed(take(first)));
        if let Err(unwanted) = claimed.complete(outcome, queue) {
            catch_panic::drop(unwanted);
        }
        catch_panic::drop(readers);
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
        self.0.iter().for_each(|reader| see(reader.upstream()));
    }

    fn discard(self, meta: &StageMeta, _: &mut Queue) {
        self.0
            .iter()
            .for_each(|reader| cancel_upstream(meta, reader));
        catch_panic::drop(self);
    }
}

/// The members, and what their values are made into.
struct All<T, E, V>(Vec<ReaderOf<T, E>>, fn(Vec<T>) -> V);

impl<T, E, V> All<T, E, V>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn collect(self) -> Outcome<V, E> {
        let All(readers, into) = self;
        let mut outcomes = readers.into_iter().map(|reader| relayed(take(reader)));
        let mut values = Vec::with_capacity(outcomes.len());
        // The first failure counts; the others are dropped.
        for outcome in &mut outcomes {
            values.push(outcome?);
        }
        Ok(into(values))
    }
}

impl<T, E, V> Body<Outcome<V, E>, StageMeta> for All<T, E, V>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
    V: Send + 'static,
{
    fn run(self, _: Option<usize>, claimed: Claimed<V, E, Self>, queue: &mut Queue) {
        let outcome = gather(claimed.meta(), || self.collect());
        if let Err(unwanted) = claimed.complete(outcome, queue) {
            catch_panic::drop(unwanted);
        }
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
        self.0.iter().for_each(|reader| see(reader.upstream()));
    }

    fn discard(self, meta: &StageMeta, _: &mut Queue) {
        self.0
            .iter()
            .for_each(|reader| cancel_upstream(meta, reader));
        catch_panic::drop(self);
    }
}

fn all<T, E, V>(
    members: impl IntoIterator<Item = Completable<T, E>>,
    location: &'static Location<'static>,
    into: fn(Vec<T>) -> V,
) -> Completable<V, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
    V: Send + 'static,
{
    let meta = StageMeta::new(location);
    let readers: Vec<_> = members.into_iter().map(Completable::into_reader).collect();
    if readers.is_empty() {
        return Completable::of_outcome(Ok(into(Vec::new())), meta);
    }
    if readers.iter().any(|reader| reader.meta().is_linked()) {
        meta.link();
    }
    let (count, mut queue) = (readers.len(), Queue::new());
    let reader = promise::stage_of_all(All(readers, into), count, meta, &mut queue);
    queue.run();
    Completable::from_reader(reader)
}

impl<T, E> sealed::Sealed for Vec<Completable<T, E>> {}
impl<T, E, const N: usize> sealed::Sealed for [Completable<T, E>; N] {}
impl<T, E> sealed::Sealed for &[Completable<T, E>] {}

impl<T, E> Group for Vec<Completable<T, E>>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    type Values = Vec<T>;
    type Error = E;

    fn all(self, location: &'static Location<'static>) -> Completable<Vec<T>, E> {
        all(self, location, |values| values)
    }
}

impl<T, E> Group for &[Completable<T, E>]
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    type Values = Vec<T>;
    type Error = E;

    fn all(self, location: &'static Location<'static>) -> Completable<Vec<T>, E> {
        all(self.iter().cloned(), location, |values| values)
    }
}

impl<T, E, const N: usize> Group for [Completable<T, E>; N]
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    type Values = [T; N];
    type Error = E;

    fn all(self, location: &'static Location<'static>) -> Completable<[T; N], E> {
        all(self, location, |values| match values.try_into() {
            Ok(values) => values,
            Err(_) => unreachable!("there are as many values as members"),
        })
    }
}

/// The body of a tuple: the readers are another tuple.
struct Tuple<R>(R);

macro_rules! tuples {
    ($(($($type:ident $reader:ident $count:tt),*);)*) => { $(
        impl<E, $($type),*> Body<Outcome<($($type,)*), E>, StageMeta> for Tuple<($(ReaderOf<$type, E>,)*)>
        where
            E: Send + Sync + 'static,
            $($type: Send + 'static,)*
        {
            fn run(self, _: Option<usize>, claimed: Claimed<($($type,)*), E, Self>, queue: &mut Queue) {
                let outcome = gather(claimed.meta(), || {
                    let Tuple(($($reader,)*)) = self;
                    $(let $reader = relayed(take($reader));)*
                    Ok(($($reader?,)*))
                });
                if let Err(unwanted) = claimed.complete(outcome, queue) {
                    catch_panic::drop(unwanted);
                }
            }

            fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
                let Tuple(($($reader,)*)) = self;
                $(see($reader.upstream());)*
            }

            fn discard(self, meta: &StageMeta, _: &mut Queue) {
                {
                    let Tuple(($($reader,)*)) = &self;
                    $(cancel_upstream(meta, $reader);)*
                }
                catch_panic::drop(self);
            }
        }

        impl<E, $($type),*> sealed::Sealed for ($(Completable<$type, E>,)*) {}

        impl<E, $($type),*> Group for ($(Completable<$type, E>,)*)
        where
            E: Send + Sync + 'static,
            $($type: Send + 'static,)*
        {
            type Values = ($($type,)*);
            type Error = E;

            fn all(self, location: &'static Location<'static>) -> Completable<($($type,)*), E> {
                let ($($reader,)*) = self;
                let count = [$($count),*].len();
                let linked = [$($reader.meta().is_linked()),*];
                let body = Tuple(($($reader.into_reader(),)*));
                let meta = StageMeta::new(location);
                if linked.contains(&true) {
                    meta.link();
                }
                let mut queue = Queue::new();
                let reader = promise::stage_of_all(body, count, meta, &mut queue);
                queue.run();
                Completable::from_reader(reader)
            }
        }
    )* };
}

tuples! {
    (A a 1, B b 2);
    (A a 1, B b 2, C c 3);
    (A a 1, B b 2, C c 3, D d 4);
    (A a 1, B b 2, C c 3, D d 4, F f 5);
    (A a 1, B b 2, C c 3, D d 4, F f 5, G g 6);
    (A a 1, B b 2, C c 3, D d 4, F f 5, G g 6, H h 7);
    (A a 1, B b 2, C c 3, D d 4, F f 5, G g 6, H h 7, I i 8);
}
