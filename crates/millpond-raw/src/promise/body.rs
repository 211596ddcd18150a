//! Bodies, and the cells that are made with one. Invariants are in the [module](super).

use super::cell::{self, Header, Links, NoBody, header};
use super::complete;
use super::handles::{Producer, Reader, Upstream};
use super::queue::Queue;
use super::word::{self, BODY, MEMORY, RESULT};
use crate::catch_panic;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// What computes the value of a cell when its sources are complete.
///
/// It holds its sources, mostly as [`Reader`]s, and shows them. If its cell is completed in another way it is dropped.
pub trait Body<V, M>: Send + Sized + 'static {
    /// Computes the value, and completes the cell; or hands `claimed` on to whoever will.
    ///
    /// `from` is the number of the source that has fired first, if the body waits for any of several and that is known. A
    /// panic that leaves this aborts the process.
    fn run(self, from: Option<usize>, claimed: Claimed<V, M, Self>, queue: &mut Queue);

    /// Shows all sources, in the same order every time. It may not panic.
    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, M>));

    /// The cell has been completed in another way. A panic that leaves this aborts the process.
    fn discard(self, meta: &M, queue: &mut Queue) {
        let _ = (meta, queue);
        catch_panic::drop(self);
    }
}

/// The right to complete a cell whose body runs, or to have its body wait once more.
#[must_use = "a cell whose body does not complete it stays incomplete"]
pub struct Claimed<V, M, B> {
    producer: Producer<V, M>,
    _body: PhantomData<fn(B)>,
}

impl<V, M, B> Claimed<V, M, B>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    /// # Safety
    ///
    /// PROMISE-1, PROMISE-3, PROMISE-5: the caller has claimed and taken the body of a cell of these types, and gives a
    /// reference to its memory.
    #[inline]
    pub(super) unsafe fn from_raw(cell: NonNull<Header>) -> Self {
        Claimed {
            producer: Producer {
                cell,
                _of: PhantomData,
            },
            _body: PhantomData,
        }
    }

    /// The metadata of the cell.
    pub fn meta(&self) -> &M {
        self.producer.meta()
    }

    /// Completes the cell.
    ///
    /// # Errors
    ///
    /// The value, if the cell was completed in another way.
    #[inline]
    pub fn complete(self, value: V, queue: &mut Queue) -> Result<(), V> {
        self.producer.complete_and_drop(value, queue)
    }

    /// For a body that hands the rest over.
    pub fn into_producer(self) -> Producer<V, M> {
        self.producer
    }

    /// Puts a body in again, which waits for its first source. If the cell was completed in another way it is dropped. Only
    /// for a cell whose body had one source.
    ///
    /// # Panics
    ///
    /// If the cell was made with several sources, or the body has none.
    pub fn wait_again(self, body: B, queue: &mut Queue) {
        let cell = self.producer.cell;
        let header = &self.producer.front().header;
        assert!(
            header.group.is_none(),
            "a body with one source can wait again"
        );
        let source = first_source(&body);
        let mut seen = header.word.load();
        loop {
            if seen.has(RESULT) {
                return body.discard(self.meta(), queue);
            }
            match header.word.replace(seen, word::waiting_again) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        // SAFETY: PROMISE-3 - the slot is empty, and claimed by this; PROMISE-5 - by the type.
        unsafe { cell::put_body::<V, M, B>(cell, body) };
        // That of the link; the own one lasts until the end.
        header.word.add(MEMORY);
        let link = NonNull::from(&header.link);
        // SAFETY: PROMISE-1 - the body holds the source, and nobody can claim it; PROMISE-4 - the link has fired.
        unsafe { complete::attach(source, link, queue) };
        // SAFETY: PROMISE-1, PROMISE-3 - claimed with PEEK; the own reference.
        unsafe { complete::unpeek(cell, queue) };
    }

    /// Puts a body in again, which no source fires: its holder [claims](Held::claim) it. If the cell is completed in
    /// another way it is dropped. `make` makes the body, and gets its holder.
    pub fn hold<R>(self, make: impl FnOnce(Held<V, M, B>) -> (B, R), queue: &mut Queue) -> R {
        let cell = self.producer.cell;
        let held = Held {
            claimed: Claimed {
                producer: self.producer.another(),
                _body: PhantomData,
            },
        };
        let (body, result) = make(held);
        let header = &self.producer.front().header;
        let mut seen = header.word.load();
        loop {
            if seen.has(RESULT) {
                body.discard(self.meta(), queue);
                return result;
            }
            match header.word.replace(seen, word::waiting_again) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        // SAFETY: PROMISE-3 - the slot is empty, and claimed by this; PROMISE-5 - by the type.
        unsafe { cell::put_body::<V, M, B>(cell, body) };
        // SAFETY: PROMISE-1, PROMISE-3 - claimed with PEEK; the own reference.
        unsafe { complete::unpeek(cell, queue) };
        result
    }
}

/// A cell whose body waits to be claimed by the holder.
#[must_use = "a cell whose body is not claimed stays incomplete"]
pub struct Held<V, M, B> {
    claimed: Claimed<V, M, B>,
}

impl<V, M, B> Held<V, M, B> {
    /// Whether the cell has been completed in another way.
    pub fn is_over(&self) -> bool {
        self.claimed.producer.is_claimed()
    }

    /// The metadata of the cell.
    pub fn meta(&self) -> &M {
        self.claimed.producer.meta()
    }

    /// Identifies the cell among all live ones.
    pub fn address(&self) -> usize {
        self.claimed.producer.address()
    }

    /// Takes the body, and the right to complete the cell. `None` if the cell was completed in another way.
    pub fn claim(self) -> Option<(B, Claimed<V, M, B>)> {
        let header = &self.claimed.producer.front().header;
        let mut seen = header.word.load();
        loop {
            if seen.has(RESULT) {
                return None;
            }
            if seen.has(BODY) {
                // Another thread peeks, or has not put the body in yet, and runs no user code meanwhile.
                crate::sync::thread::yield_now();
                seen = header.word.load();
                continue;
            }
            match header.word.replace(seen, |word| word | BODY) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        // SAFETY: PROMISE-3 - BODY was set here; PROMISE-5 - by the type.
        let body = unsafe { cell::take_body::<V, M, B>(self.claimed.producer.cell) };
        Some((body, self.claimed))
    }
}

impl<V, M, B> fmt::Debug for Held<V, M, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

/// A cell whose body is claimed by its holder. `make` makes the body, and gets the holder.
///
/// ```
/// use millpond_raw::promise::{self, Body, Claimed, Queue, Upstream};
///
/// struct Token(u32);
///
/// impl Body<u32, ()> for Token {
///     fn run(self, _: Option<usize>, _: Claimed<u32, (), Self>, _: &mut Queue) {}
///     fn sources(&self, _: &mut dyn FnMut(Upstream<'_, ()>)) {}
/// }
///
/// let mut queue = Queue::new();
/// let (reader, held) = promise::held((), |held| (Token(21), held), &mut queue);
/// let (token, claimed) = held.claim().expect("nobody else completes it");
/// claimed.complete(2 * token.0, &mut queue).unwrap();
/// assert_eq!(reader.take().unwrap(), 42);
/// ```
pub fn held<V, M, B, R>(
    meta: M,
    make: impl FnOnce(Held<V, M, B>) -> (B, R),
    queue: &mut Queue,
) -> (Reader<V, M>, R)
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    let cell = cell::make_vacant::<V, M, B>(meta);
    let reader = Reader {
        cell,
        _of: PhantomData,
    };
    // SAFETY: PROMISE-1, PROMISE-3, PROMISE-5 - a new cell of these types, whose slot is empty and claimed, and which was
    // made with a reference for this.
    let claimed: Claimed<V, M, B> = unsafe { Claimed::from_raw(cell) };
    let result = claimed.hold(make, queue);
    (reader, result)
}

impl<V, M, B> fmt::Debug for Claimed<V, M, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claimed")
    }
}

fn first_source<V, M>(body: &impl Body<V, M>) -> NonNull<Header> {
    let mut first = None;
    body.sources(&mut |source| {
        first.get_or_insert(source.cell);
    });
    first.expect("a body waits for something")
}

/// A cell that is completed by hand.
///
/// ```
/// use millpond_raw::promise::{self, Queue};
///
/// let (producer, reader) = promise::pair::<u32, ()>(());
/// assert!(reader.get().is_none());
/// let mut queue = Queue::new();
/// assert_eq!(producer.complete(7, &mut queue), Ok(()));
/// assert_eq!(producer.complete(8, &mut queue), Err(8));
/// assert_eq!(reader.take().unwrap(), 7);
/// ```
pub fn pair<V, M>(meta: M) -> (Producer<V, M>, Reader<V, M>)
where
    V: Send + 'static,
    M: Send + Sync + 'static,
{
    let cell = cell::make::<V, M, NoBody>(meta, NoBody, Links::None, 1, 1);
    let (producer, reader) = (PhantomData, PhantomData);
    (
        Producer {
            cell,
            _of: producer,
        },
        Reader { cell, _of: reader },
    )
}

/// A complete cell.
///
/// ```
/// let reader = millpond_raw::promise::ready("flour", ());
/// assert_eq!(reader.get(), Some(&"flour"));
/// ```
#[inline]
pub fn ready<V, M>(value: V, meta: M) -> Reader<V, M>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
{
    Reader {
        cell: cell::make_complete(meta, value),
        _of: PhantomData,
    }
}

/// A cell whose body waits for one source.
///
/// ```
/// use millpond_raw::promise::{self, Body, Claimed, Queue, Reader, Upstream};
///
/// struct Double(Reader<u32, ()>);
///
/// impl Body<u32, ()> for Double {
///     fn run(self, _: Option<usize>, claimed: Claimed<u32, (), Self>, queue: &mut Queue) {
///         let value = self.0.take().expect("it has fired");
///         claimed.complete(2 * value, queue).expect("nobody else completes it");
///     }
///     fn sources(&self, see: &mut dyn FnMut(Upstream<'_, ()>)) {
///         see(self.0.upstream());
///     }
/// }
///
/// let (producer, reader) = promise::pair(());
/// let mut queue = Queue::new();
/// let double = promise::stage(Double(reader), (), &mut queue);
/// producer.complete(21, &mut queue).unwrap();
/// queue.run();
/// assert_eq!(double.take().unwrap(), 42);
/// ```
///
/// # Panics
///
/// If the body has no source.
#[inline]
pub fn stage<V, M, B>(body: B, meta: M, queue: &mut Queue) -> Reader<V, M>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    let source = first_source(&body);
    let cell = cell::make::<V, M, B>(meta, body, Links::One, 1, 0);
    // SAFETY: PROMISE-1 - its only references are below.
    let link = NonNull::from(&unsafe { header(cell) }.link);
    // SAFETY: PROMISE-1 - the body holds the source, and is not known before the link is attached; PROMISE-4 - it is new.
    unsafe { complete::attach(source, link, queue) };
    Reader {
        cell,
        _of: PhantomData,
    }
}

/// A cell that nobody reads, whose body waits for one source: for its effect.
///
/// # Panics
///
/// If the body has no source.
pub fn observer<M, B>(body: B, meta: M, queue: &mut Queue) -> Producer<(), M>
where
    M: Send + Sync + 'static,
    B: Body<(), M>,
{
    let source = first_source(&body);
    let cell = cell::make::<(), M, B>(meta, body, Links::One, 0, 1);
    // SAFETY: PROMISE-1 - its only references are below.
    let link = NonNull::from(&unsafe { header(cell) }.link);
    // SAFETY: PROMISE-1, PROMISE-4 - as in `stage`.
    unsafe { complete::attach(source, link, queue) };
    Producer {
        cell,
        _of: PhantomData,
    }
}

/// A cell whose body waits for all of its `count` sources.
///
/// # Panics
///
/// If the body has another number of sources, or none.
pub fn stage_of_all<V, M, B>(body: B, count: usize, meta: M, queue: &mut Queue) -> Reader<V, M>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    stage_of_group(body, Links::All(count), meta, queue)
}

/// A cell whose body waits for any of its `count` sources.
///
/// # Panics
///
/// If the body has another number of sources, or none.
pub fn stage_of_any<V, M, B>(body: B, count: usize, meta: M, queue: &mut Queue) -> Reader<V, M>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    stage_of_group(body, Links::Any(count), meta, queue)
}

fn stage_of_group<V, M, B>(body: B, links: Links, meta: M, queue: &mut Queue) -> Reader<V, M>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    let mut sources = 0;
    body.sources(&mut |_| sources += 1);
    assert!(
        sources > 0 && matches!(links, Links::All(count) | Links::Any(count) if count == sources),
        "a body has as many sources as its cell is made for"
    );
    let reader = Reader {
        cell: cell::make::<V, M, B>(meta, body, links, 1, 0),
        _of: PhantomData,
    };
    // SAFETY: PROMISE-1, PROMISE-3, PROMISE-4 - the cell is new, and the reader outlives the call.
    unsafe { complete::attach_group(reader.cell, queue) };
    reader
}
