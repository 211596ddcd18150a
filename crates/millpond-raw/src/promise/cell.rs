//! The memory of a cell: making it, reading its value, counting and freeing. Invariants PROMISE-1 to PROMISE-5 are in the
//! [module](super).

use super::body::{Body, Claimed};
use super::complete;
use super::handles::Upstream;
use super::queue::Queue;
use super::word::{BODY, DONE, MEMORY, PEEK, READER, RESULT, Word};
use crate::catch_panic;
use crate::recycle::Recycled;
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use core::marker::PhantomData;
use core::mem::{MaybeUninit, needs_drop};
use core::ops::Deref;
use core::ptr::{self, NonNull};

/// How many dead links a list may have, if it has no more live ones.
pub(super) const BUDGET: u32 = if crate::sync::IN_MODEL { 1 } else { 32 };

/// A place in the list of a source.
pub(super) struct Link {
    pub(super) next: UnsafeCell<*const Link>,
    /// The cell that it is a part of.
    pub(super) owner: NonNull<Header>,
}

impl Link {
    fn of(owner: NonNull<Header>) -> Self {
        Link {
            next: UnsafeCell::new(ptr::null()),
            owner,
        }
    }
}

/// The links of a cell with several sources.
pub(super) struct Group {
    /// How many links are still in a list or a queue.
    pub(super) left: AtomicU32,
    /// The body runs after all of them have fired; otherwise, after the first.
    pub(super) waits_for_all: bool,
    pub(super) links: Box<[Link]>,
}

/// What every cell begins with.
#[repr(C)]
pub(super) struct Header {
    /// The newest link in the list, or the mark that the cell is complete.
    pub(super) head: AtomicPtr<Link>,
    pub(super) word: Word,
    pub(super) table: &'static Table,
    /// How many more dead links make a sweep.
    pub(super) budget: AtomicU32,
    /// Writers whose end would leave the cell without any.
    pub(super) writers: AtomicU32,
    /// How to clone the value: a `fn(&V) -> V`, or null.
    cloner: AtomicPtr<()>,
    pub(super) group: Option<NonNull<Group>>,
    pub(super) link: Link,
}

/// Is shown the sources of a body.
pub(super) type Visitor<'a> = dyn FnMut(NonNull<Header>) + 'a;

/// Functions of the types of a cell. The caller owns what they consume: a claimed body, or the last reference.
pub(super) struct Table {
    /// Runs a body that the caller has claimed, with a reference to the memory.
    pub(super) run: unsafe fn(NonNull<Header>, Option<usize>, &mut Queue),
    /// Drops a body that the caller has claimed.
    pub(super) discard: unsafe fn(NonNull<Header>, &mut Queue),
    /// Shows the sources of a body that the caller peeks into.
    pub(super) visit: unsafe fn(NonNull<Header>, &mut Visitor<'_>),
    /// Frees a cell without references.
    pub(super) free: unsafe fn(NonNull<Header>),
}

/// The part that is reached without knowing the type of the value.
#[repr(C)]
pub(super) struct Prefix<M> {
    pub(super) header: Header,
    pub(super) meta: M,
}

/// The part that handles can reach: of a known value and metadata, and any body.
#[repr(C)]
pub(super) struct Front<V, M> {
    prefix: Prefix<M>,
    value: UnsafeCell<MaybeUninit<V>>,
}

impl<V, M> Deref for Front<V, M> {
    type Target = Prefix<M>;

    #[inline]
    fn deref(&self) -> &Prefix<M> {
        &self.prefix
    }
}

#[repr(C)]
struct Node<V, M, B> {
    front: Front<V, M>,
    body: UnsafeCell<MaybeUninit<B>>,
}

/// The body of a cell that has none.
pub(super) struct NoBody;

impl<V: Send + 'static, M: Send + Sync + 'static> Body<V, M> for NoBody {
    fn run(self, _: Option<usize>, _: Claimed<V, M, Self>, _: &mut Queue) {}

    fn sources(&self, _: &mut dyn FnMut(Upstream<'_, M>)) {}
}

/// How many sources the body of a new cell waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    None,
    One,
    All(usize),
    Any(usize),
}

/// The mark of a complete cell in the place of its newest link.
pub(super) fn closed() -> *mut Link {
    ptr::without_provenance_mut(align_of::<Link>())
}

/// The header of a cell.
///
/// # Safety
///
/// PROMISE-1: the caller has a reference to the memory for as long as it uses the result.
#[inline]
pub(super) unsafe fn header<'a>(cell: NonNull<Header>) -> &'a Header {
    // SAFETY: PROMISE-1 - by contract.
    unsafe { cell.as_ref() }
}

/// The front of a cell.
///
/// # Safety
///
/// As [`header`], and PROMISE-5: the cell was made with this `V` and `M`.
#[inline]
pub(super) unsafe fn front<'a, V, M>(cell: NonNull<Header>) -> &'a Front<V, M> {
    // SAFETY: PROMISE-1, PROMISE-5 - by contract.
    unsafe { cell.cast::<Front<V, M>>().as_ref() }
}

/// The body of a cell.
///
/// # Safety
///
/// As [`header`], and PROMISE-5: the cell was made with these types.
#[inline]
unsafe fn body<'a, V: 'a, M: 'a, B>(cell: NonNull<Header>) -> &'a UnsafeCell<MaybeUninit<B>> {
    // SAFETY: PROMISE-1, PROMISE-5 - by contract.
    &unsafe { cell.cast::<Node<V, M, B>>().as_ref() }.body
}

struct TableOf<V, M, B>(PhantomData<(V, M, B)>);

impl<V, M, B> TableOf<V, M, B>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    const TABLE: Table = Table {
        run: run::<V, M, B>,
        discard: discard::<V, M, B>,
        visit: visit::<V, M, B>,
        free: free::<V, M, B>,
    };
}

/// # Safety
///
/// PROMISE-1, PROMISE-3, PROMISE-5: the caller has claimed the body of a cell of these types, and gives a reference.
unsafe fn run<V, M, B>(cell: NonNull<Header>, from: Option<usize>, queue: &mut Queue)
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    // SAFETY: PROMISE-3 - by contract.
    let body = unsafe { take_body::<V, M, B>(cell) };
    // SAFETY: PROMISE-1, PROMISE-5 - by contract.
    let claimed = unsafe { Claimed::from_raw(cell) };
    body.run(from, claimed, queue);
}

/// # Safety
///
/// PROMISE-3, PROMISE-5: the caller has claimed the body of a cell of these types.
#[inline]
pub(super) unsafe fn take_body<V, M, B>(cell: NonNull<Header>) -> B {
    // SAFETY: PROMISE-1 - by contract.
    let slot = unsafe { body::<V, M, B>(cell) };
    // SAFETY: PROMISE-3 - it was full, and is read once.
    slot.with_mut(|slot| unsafe { slot.cast::<B>().read() })
}

/// # Safety
///
/// PROMISE-3, PROMISE-5: the caller has claimed the body of a cell of these types.
unsafe fn discard<V, M, B>(cell: NonNull<Header>, queue: &mut Queue)
where
    B: Body<V, M>,
{
    // SAFETY: PROMISE-3 - by contract.
    let body = unsafe { take_body::<V, M, B>(cell) };
    body.sources(&mut |source| {
        // SAFETY: PROMISE-1 - the body holds it.
        unsafe { complete::record_dead(source.cell(), queue) }
    });
    // SAFETY: PROMISE-1, PROMISE-5 - by contract.
    let front = unsafe { front::<V, M>(cell) };
    body.discard(&front.meta, queue);
}

/// # Safety
///
/// PROMISE-3, PROMISE-5: the caller peeks into the body of a cell of these types.
unsafe fn visit<V, M, B>(cell: NonNull<Header>, see: &mut Visitor<'_>)
where
    B: Body<V, M>,
{
    // SAFETY: PROMISE-1 - by contract.
    let slot = unsafe { body::<V, M, B>(cell) };
    slot.with(|slot| {
        // SAFETY: PROMISE-3 - it is full, and the caller's alone until it gives it back.
        let body = unsafe { &*slot.cast::<B>() };
        body.sources(&mut |source| see(source.cell()));
    });
}

/// # Safety
///
/// PROMISE-1, PROMISE-5: the cell has these types and no references.
unsafe fn free<V, M, B>(cell: NonNull<Header>) {
    // SAFETY: PROMISE-1 - it is still there.
    if !unsafe { header(cell) }.word.relaxed().has(BODY) {
        // Nobody can complete it any more.
        // SAFETY: PROMISE-3 - it is full, and nobody else can claim it.
        catch_panic::drop(unsafe { take_body::<V, M, B>(cell) });
    }
    // SAFETY: PROMISE-1 - as above.
    let header = unsafe { header(cell) };
    // SAFETY: PROMISE-1 - there is no reference any more.
    unsafe { remove_dead(header) };
    // SAFETY: PROMISE-1 - by contract; the pointer came from `into_raw`.
    let node = unsafe { Recycled::from_raw(cell.cast::<Node<V, M, B>>()) };
    if let Some(group) = node.front.header.group {
        // SAFETY: PROMISE-1 - it came from a box, and goes with its cell.
        drop(unsafe { Box::from_raw(group.as_ptr()) });
    }
    // Value and body are gone: `MaybeUninit` drops nothing. The metadata may be the user's.
    catch_panic::drop(node);
}

/// Gives back the references of the links that are left in the list of a cell that was never complete. All of them are dead:
/// a body that waits for this cell would have a reference to it.
///
/// # Safety
///
/// PROMISE-1: the cell has no references.
unsafe fn remove_dead(header: &Header) {
    // Relaxed: the thread that gave the last reference back has acquired what all others did (`[V-count]`).
    let newest = header.head.load(Ordering::Relaxed);
    let mut rest = NonNull::new(newest).filter(|_| newest != closed());
    while let Some(link) = rest {
        // SAFETY: PROMISE-4 - the list is gone with its cell.
        rest = NonNull::new(unsafe { complete::next(link) }.cast_mut());
        // SAFETY: PROMISE-1 - a link has a reference to its cell.
        let owner = unsafe { link.as_ref() }.owner;
        // SAFETY: PROMISE-4 - the link is in no place any more.
        unsafe { complete::remove(owner) };
    }
}

/// Makes a cell. If it has a body that waits for several sources, the body is claimed with PEEK, for their links to be
/// attached.
pub(super) fn make<V, M, B>(
    meta: M,
    body: B,
    links: Links,
    readers: u64,
    others: u64,
) -> NonNull<Header>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    let flags = match links {
        Links::None => BODY,
        Links::One => 0,
        Links::All(_) | Links::Any(_) => BODY | PEEK,
    };
    let attached = u64::from(links != Links::None);
    let memory = u64::from(readers > 0) + attached + others;
    let cell = allocate::<V, M, B>(
        meta,
        MaybeUninit::uninit(),
        MaybeUninit::new(body),
        ptr::null_mut(),
        Word::new(flags, readers, memory),
    );
    let (count, waits_for_all) = match links {
        Links::None | Links::One => return cell,
        Links::All(count) => (count, true),
        Links::Any(count) => (count, false),
    };
    let group = Box::new(Group {
        left: AtomicU32::new(u32::try_from(count).expect("a group has less than 2^32 members")),
        waits_for_all,
        links: (0..count).map(|_| Link::of(cell)).collect(),
    });
    let group = NonNull::from(Box::leak(group));
    // SAFETY: PROMISE-1 - nobody else knows the cell yet.
    unsafe { (*cell.as_ptr()).group = Some(group) };
    cell
}

/// Makes a cell with one reader, an empty slot that the caller has claimed, and a reference for the caller.
pub(super) fn make_vacant<V, M, B>(meta: M) -> NonNull<Header>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    allocate::<V, M, B>(
        meta,
        MaybeUninit::uninit(),
        MaybeUninit::uninit(),
        ptr::null_mut(),
        Word::new(BODY, 1, 2),
    )
}

/// Makes a complete cell with one reader.
pub(super) fn make_complete<V, M>(meta: M, value: V) -> NonNull<Header>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
{
    allocate::<V, M, NoBody>(
        meta,
        MaybeUninit::new(value),
        MaybeUninit::uninit(),
        closed(),
        Word::new(RESULT | BODY | DONE, 1, 1),
    )
}

#[inline]
fn allocate<V, M, B>(
    meta: M,
    value: MaybeUninit<V>,
    body: MaybeUninit<B>,
    head: *mut Link,
    word: Word,
) -> NonNull<Header>
where
    V: Send + 'static,
    M: Send + Sync + 'static,
    B: Body<V, M>,
{
    let node = Recycled::new_with(move || Node {
        front: Front {
            prefix: Prefix {
                header: Header {
                    head: AtomicPtr::new(head),
                    word,
                    table: &TableOf::<V, M, B>::TABLE,
                    budget: AtomicU32::new(BUDGET),
                    writers: AtomicU32::new(1),
                    cloner: AtomicPtr::new(ptr::null_mut()),
                    group: None,
                    link: Link::of(NonNull::dangling()),
                },
                meta,
            },
            value: UnsafeCell::new(value),
        },
        body: UnsafeCell::new(body),
    });
    let cell = node.into_raw().cast::<Header>();
    // SAFETY: PROMISE-1 - nobody else knows the cell yet.
    unsafe { (*cell.as_ptr()).link.owner = cell };
    cell
}

/// Puts a body into the slot.
///
/// # Safety
///
/// PROMISE-3, PROMISE-5: the caller has claimed the body of a cell of these types, and taken it.
pub(super) unsafe fn put_body<V, M, B>(cell: NonNull<Header>, value: B) {
    // SAFETY: PROMISE-1 - by contract.
    let slot = unsafe { body::<V, M, B>(cell) };
    // SAFETY: PROMISE-3 - the slot is empty, and the caller's.
    slot.with_mut(|slot| unsafe { slot.write(MaybeUninit::new(value)) });
}

/// Gives a reference to the memory back.
///
/// # Safety
///
/// PROMISE-1: the caller has it, and does not use the cell afterwards.
#[inline]
pub(super) unsafe fn release(cell: NonNull<Header>) {
    // SAFETY: PROMISE-1 - by contract.
    let header = unsafe { header(cell) };
    if header.word.sub(MEMORY).memory() == 1 {
        // SAFETY: PROMISE-1 - it was the last.
        unsafe { (header.table.free)(cell) };
    }
}

impl<V, M> Front<V, M> {
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        // [V-value]
        self.header.head.load(Ordering::Acquire) == closed()
    }

    /// Writes the value.
    ///
    /// # Safety
    ///
    /// PROMISE-2: the caller has set RESULT, and not closed the list yet.
    #[inline]
    pub(super) unsafe fn write(&self, value: V) {
        // SAFETY: PROMISE-2 - by contract.
        self.value
            .with_mut(|slot| unsafe { slot.write(MaybeUninit::new(value)) });
    }

    /// The value.
    ///
    /// # Safety
    ///
    /// PROMISE-2: the caller is a reader, has seen the list closed, and stays a reader for as long as it uses the result.
    pub(super) unsafe fn read(&self) -> &V {
        // SAFETY: PROMISE-2 - it is written, and not moved as long as there is another reader than the one who moves it.
        self.value.with(|slot| unsafe { &*slot.cast::<V>() })
    }

    /// Moves the value out.
    ///
    /// # Safety
    ///
    /// PROMISE-2: it is there, and there is no reader but the caller.
    #[inline]
    unsafe fn move_out(&self) -> V {
        // SAFETY: PROMISE-2 - by contract.
        self.value
            .with_mut(|slot| unsafe { slot.cast::<V>().read() })
    }

    /// Drops the value that no reader can reach.
    ///
    /// # Safety
    ///
    /// As [`Front::move_out`].
    #[inline]
    pub(super) unsafe fn drop_value(&self) {
        if needs_drop::<V>() {
            // SAFETY: PROMISE-2 - by contract.
            catch_panic::drop(unsafe { self.move_out() });
        }
    }

    /// Says how to clone the value.
    pub(super) fn set_cloner(&self, cloner: fn(&V) -> V) {
        // Relaxed: whoever finds that it is not the sole reader has, or had from another thread, the handle that was
        // cloned.
        self.header
            .cloner
            .store(cloner as *mut (), Ordering::Relaxed);
    }

    fn cloner(&self) -> Option<fn(&V) -> V> {
        let cloner = self.header.cloner.load(Ordering::Relaxed);
        if cloner.is_null() {
            return None;
        }
        // SAFETY: PROMISE-5 - it was a function of this type.
        Some(unsafe { core::mem::transmute::<*mut (), fn(&V) -> V>(cloner) })
    }
}

/// Takes the value of a complete cell: moved out by its sole reader, otherwise cloned. The reader is gone then.
///
/// # Safety
///
/// PROMISE-1, PROMISE-2, PROMISE-5: the caller is a reader of a complete cell of these types, and gives that up.
#[inline]
pub(super) unsafe fn take<V, M>(cell: NonNull<Header>) -> V {
    // SAFETY: PROMISE-1, PROMISE-5 - by contract.
    let front = unsafe { front::<V, M>(cell) };
    let seen = front.header.word.load();
    if seen.readers() != 1 {
        // SAFETY: PROMISE-2 - by contract.
        return unsafe { clone_out::<V, M>(cell) };
    }
    // SAFETY: PROMISE-2 - the sole reader, and no other can come.
    let value = unsafe { front.move_out() };
    if seen.has(DONE) && seen.memory() == 1 {
        // SAFETY: PROMISE-1 - all readers together have the only reference.
        unsafe { (front.header.table.free)(cell) };
        return value;
    }
    let _ = front.header.word.take();
    // SAFETY: PROMISE-1 - that of the readers.
    unsafe { release(cell) };
    value
}

/// # Safety
///
/// As [`take`], and there was another reader, so the cell has a cloner.
#[cold]
unsafe fn clone_out<V, M>(cell: NonNull<Header>) -> V {
    struct Leave<V, M>(NonNull<Header>, PhantomData<(V, M)>);

    impl<V, M> Drop for Leave<V, M> {
        fn drop(&mut self) {
            // SAFETY: PROMISE-1, PROMISE-2 - the reader of the caller.
            unsafe { leave::<V, M>(self.0) };
        }
    }

    let leave = Leave::<V, M>(cell, PhantomData);
    // SAFETY: PROMISE-1, PROMISE-5 - by contract.
    let front = unsafe { front::<V, M>(cell) };
    let cloner = front
        .cloner()
        .expect("a cell with several readers has been shared");
    // SAFETY: PROMISE-2 - a reader until `leave` drops.
    let value = cloner(unsafe { front.read() });
    drop(leave);
    value
}

/// A reader goes, without the value.
///
/// # Safety
///
/// PROMISE-1, PROMISE-2, PROMISE-5: the caller is a reader of a cell of these types, and gives that up.
#[inline]
pub(super) unsafe fn leave<V, M>(cell: NonNull<Header>) {
    // SAFETY: PROMISE-1, PROMISE-5 - by contract.
    let front = unsafe { front::<V, M>(cell) };
    let seen = front.header.word.load();
    let before = if seen.has(DONE) && seen.readers() == 1 && seen.memory() == 1 {
        // The only reference: nobody else can change the word.
        seen
    } else {
        front.header.word.sub(READER)
    };
    if before.readers() != 1 {
        return;
    }
    if before.has(DONE) && !before.has(super::word::TAKEN) {
        // SAFETY: PROMISE-2 - no reader is left, and who completed it has left the value to them.
        unsafe { front.drop_value() };
    }
    if before.has(DONE) && before.memory() == 1 {
        // SAFETY: PROMISE-1 - the readers had the only reference, and nobody can get another.
        unsafe { (front.header.table.free)(cell) };
    } else {
        // SAFETY: PROMISE-1 - that of the readers.
        unsafe { release(cell) };
    }
}
