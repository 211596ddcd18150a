//! Completing a cell, firing the links of those that depend on it, and sweeping dead links. Invariants and orderings are in
//! the [module](super).

use super::cell::{self, BUDGET, Group, Header, Link, closed, front, header};
use super::queue::Queue;
use super::word::{BODY, DONE, FIRED, MEMORY, PEEK, RESULT, TAKEN};
use crate::catch_panic;
use crate::sync::atomic::Ordering;
use crate::sync::thread;
use core::ptr::NonNull;

/// Completes the cell, unless that has happened: its links go to the queue. If `gives`, the reference of the caller is given
/// back if the call succeeds.
///
/// # Errors
///
/// The value, if another thread was faster. The cell is complete then.
///
/// # Safety
///
/// PROMISE-1, PROMISE-5: the caller has a reference to a cell of these types.
#[inline]
pub(super) unsafe fn complete<V, M>(
    cell: NonNull<Header>,
    value: V,
    gives: bool,
    queue: &mut Queue,
) -> Result<(), V> {
    // SAFETY: PROMISE-1, PROMISE-5 - by contract.
    let front = unsafe { front::<V, M>(cell) };
    let header = &front.header;
    let before = header.word.set(RESULT | BODY);
    if before.has(RESULT) {
        while !front.is_complete() {
            // The thread that completes it runs no user code before it has closed the list.
            thread::yield_now();
        }
        return Err(value);
    }
    let mut unwanted = None;
    if before.readers() == 0 {
        // No reader can come any more.
        unwanted = Some(value);
    } else {
        // SAFETY: PROMISE-2 - RESULT was set here.
        unsafe { front.write(value) };
    }
    // [V-list] [V-value]
    let newest = header.head.swap(closed(), Ordering::AcqRel);
    // SAFETY: PROMISE-4 - the list is the caller's now.
    unsafe { queue.push_list(newest) };
    if !before.has(BODY) {
        // SAFETY: PROMISE-3 - BODY was set here.
        unsafe { (header.table.discard)(cell, queue) };
    }
    if let Some(value) = unwanted {
        let _ = header.word.set(DONE | TAKEN);
        if gives {
            // SAFETY: PROMISE-1 - the caller gives it.
            unsafe { cell::release(cell) };
        }
        catch_panic::drop(value);
        return Ok(());
    }
    let given = if gives { MEMORY } else { 0 };
    let mut seen = header.word.relaxed();
    while seen.readers() > 0 {
        // PROMISE-2: the readers that are left drop the value, and have a reference to the memory.
        match header.word.replace(seen, |word| (word | DONE) - given) {
            Ok(()) => return Ok(()),
            Err(now) => seen = now,
        }
    }
    if !header.word.set(DONE).has(TAKEN) {
        // SAFETY: PROMISE-2 - there is no reader, and TAKEN is not set.
        unsafe { front.drop_value() };
    }
    if gives {
        // SAFETY: PROMISE-1 - the caller gives it.
        unsafe { cell::release(cell) };
    }
    Ok(())
}

/// Puts a link into the list of a source, or into the queue if the source is complete.
///
/// # Safety
///
/// PROMISE-1, PROMISE-4: the source is alive during the call, and the link is the caller's.
pub(super) unsafe fn attach(source: NonNull<Header>, link: NonNull<Link>, queue: &mut Queue) {
    // SAFETY: PROMISE-1 - by contract.
    let source = unsafe { header(source) };
    // Relaxed here and below: whoever reads the value of a complete source acquires it.
    let mut newest = source.head.load(Ordering::Relaxed);
    while newest != closed() {
        // SAFETY: PROMISE-4 - the caller's, until it is in the list.
        unsafe { set_next(link, newest) };
        let pushed = source.head.compare_exchange_weak(
            newest,
            link.as_ptr(),
            Ordering::Release, // [V-list]
            Ordering::Relaxed,
        );
        match pushed {
            Ok(_) => return,
            Err(now) => newest = now,
        }
    }
    // SAFETY: PROMISE-4 - by contract.
    unsafe { queue.push(link) };
}

/// # Safety
///
/// PROMISE-4: the caller owns the place of the link.
#[inline]
pub(super) unsafe fn set_next(link: NonNull<Link>, next: *const Link) {
    // SAFETY: PROMISE-1 - a link is a part of a live cell.
    let link = unsafe { link.as_ref() };
    // SAFETY: PROMISE-4 - by contract.
    link.next.with_mut(|place| unsafe { place.write(next) });
}

/// # Safety
///
/// PROMISE-4: the caller owns the place of the link.
#[inline]
pub(super) unsafe fn next(link: NonNull<Link>) -> *const Link {
    // SAFETY: PROMISE-1 - a link is a part of a live cell.
    let link = unsafe { link.as_ref() };
    // SAFETY: PROMISE-4 - by contract.
    link.next.with(|place| unsafe { place.read() })
}

/// Fires a link: runs the body of its cell, if it was the one that the body waited for.
///
/// # Safety
///
/// PROMISE-4: the link is the caller's, and one of its sources is complete. It is not used afterwards.
pub(super) unsafe fn fire(link: NonNull<Link>, queue: &mut Queue) {
    // SAFETY: PROMISE-1 - a link has a reference to its cell.
    let cell = unsafe { link.as_ref() }.owner;
    // SAFETY: PROMISE-1 - as above.
    let header = unsafe { header(cell) };
    // SAFETY: PROMISE-1 - the group lives as long as its cell.
    let group = header.group.map(|group| unsafe { &*group.as_ptr() });
    if let Some(group) = group.filter(|group| !group.waits_for_all) {
        let first = group.links.as_ptr().addr();
        let from = (link.addr().get() - first) / size_of::<Link>();
        // SAFETY: PROMISE-1, PROMISE-4 - by contract.
        return unsafe { fire_any(cell, from, queue) };
    }
    if group.is_some_and(|group| !count_down(group)) {
        return;
    }
    if header.word.set(BODY | FIRED).has(BODY) {
        // It is gone, or the thread that peeks runs it.
        // SAFETY: PROMISE-1 - that of the link, or of the whole group.
        unsafe { cell::release(cell) };
    } else {
        // SAFETY: PROMISE-3 - BODY was set here; the reference is that of the link, or of the whole group.
        unsafe { (header.table.run)(cell, None, queue) };
    }
}

/// # Safety
///
/// As [`fire`], for the link with this number in the group of the cell.
unsafe fn fire_any(cell: NonNull<Header>, from: usize, queue: &mut Queue) {
    // SAFETY: PROMISE-1 - by contract.
    let header = unsafe { header(cell) };
    if !header.word.set(BODY | FIRED).has(BODY) {
        // SAFETY: PROMISE-1, PROMISE-3 - BODY was set here; the link has a share of a reference.
        unsafe { run_any(cell, Some(from), queue) };
    }
    // SAFETY: PROMISE-1 - the share of the link.
    unsafe { remove(cell) };
}

/// Runs the body of a cell that waits for any of its sources, whose other links are dead now.
///
/// # Safety
///
/// PROMISE-1, PROMISE-3: the caller has claimed the body, and has a reference.
unsafe fn run_any(cell: NonNull<Header>, from: Option<usize>, queue: &mut Queue) {
    // SAFETY: PROMISE-1 - by contract.
    let header = unsafe { header(cell) };
    let mut see = |source: NonNull<Header>| {
        // SAFETY: PROMISE-1 - the body holds it.
        if unsafe { self::header(source) }.head.load(Ordering::Relaxed) != closed() {
            // SAFETY: PROMISE-1 - the body holds it.
            unsafe { record_dead(source, queue) };
        }
    };
    // SAFETY: PROMISE-3 - by contract.
    unsafe { (header.table.visit)(cell, &mut see) };
    header.word.add(MEMORY);
    // SAFETY: PROMISE-3 - by contract; PROMISE-1 - the reference was added for it.
    unsafe { (header.table.run)(cell, from, queue) };
}

/// One link of a group is in no list or queue any more. Returns whether it was the last.
fn count_down(group: &Group) -> bool {
    // [V-all]
    if group.left.fetch_sub(1, Ordering::Release) != 1 {
        return false;
    }
    // [V-all]
    let _ = group.left.load(Ordering::Acquire);
    true
}

/// One link in the list of this source is dead.
///
/// # Safety
///
/// PROMISE-1: the source is alive during the call.
pub(super) unsafe fn record_dead(source: NonNull<Header>, queue: &mut Queue) {
    // SAFETY: PROMISE-1 - by contract.
    let source = unsafe { header(source) };
    // Relaxed: a hint. It may go below zero, until the sweep that is under way sets it again.
    if source.budget.fetch_sub(1, Ordering::Relaxed) == 1 {
        sweep(source, queue);
    }
}

/// Removes the dead links from the list of a source. Returns the number of live ones that it has found.
pub(super) fn sweep(source: &Header, queue: &mut Queue) -> u32 {
    // Relaxed here and below: whoever reads the value of a complete source acquires it.
    let mut newest = source.head.load(Ordering::Relaxed);
    loop {
        if newest == closed() {
            return 0;
        }
        let taken = source.head.compare_exchange_weak(
            newest,
            core::ptr::null_mut(),
            Ordering::Acquire, // [V-list]
            Ordering::Relaxed,
        );
        match taken {
            Ok(_) => break,
            Err(now) => newest = now,
        }
    }
    let (mut live, mut ends) = (0_u32, None::<(NonNull<Link>, NonNull<Link>)>);
    let mut rest = NonNull::new(newest);
    while let Some(link) = rest {
        // SAFETY: PROMISE-4 - the list was taken.
        rest = NonNull::new(unsafe { next(link) }.cast_mut());
        // SAFETY: PROMISE-1 - a link has a reference to its cell.
        let owner = unsafe { link.as_ref() }.owner;
        // SAFETY: PROMISE-1 - as above.
        if unsafe { header(owner) }.word.relaxed().is_dead() {
            // SAFETY: PROMISE-4 - the list was taken, and the link is in no place any more.
            unsafe { remove(owner) };
            continue;
        }
        live += 1;
        match &mut ends {
            None => ends = Some((link, link)),
            Some((_, oldest)) => {
                // SAFETY: PROMISE-4 - as above.
                unsafe { set_next(*oldest, link.as_ptr()) };
                *oldest = link;
            }
        }
    }
    source.budget.store(live.max(BUDGET), Ordering::Relaxed);
    if let Some((newest, oldest)) = ends {
        // SAFETY: PROMISE-4 - the links that were kept.
        unsafe { put_back(source, newest, oldest, queue) };
    }
    live
}

/// # Safety
///
/// PROMISE-4: the links from `newest` to `oldest` are the caller's.
unsafe fn put_back(
    source: &Header,
    newest: NonNull<Link>,
    oldest: NonNull<Link>,
    queue: &mut Queue,
) {
    // Relaxed here and below: whoever reads the value of a complete source acquires it.
    let mut others = source.head.load(Ordering::Relaxed);
    while others != closed() {
        // SAFETY: PROMISE-4 - by contract.
        unsafe { set_next(oldest, others) };
        let pushed = source.head.compare_exchange_weak(
            others,
            newest.as_ptr(),
            Ordering::Release, // [V-list]
            Ordering::Relaxed,
        );
        match pushed {
            Ok(_) => return,
            Err(now) => others = now,
        }
    }
    // It has been completed meanwhile, without these.
    // SAFETY: PROMISE-4 - by contract.
    unsafe { set_next(oldest, core::ptr::null()) };
    // SAFETY: PROMISE-4 - by contract.
    unsafe { queue.push_list(newest.as_ptr()) };
}

/// A link is in no place any more, and its cell's body is claimed.
///
/// # Safety
///
/// PROMISE-1: the caller gives the reference of the link, or its share of that of the group.
pub(super) unsafe fn remove(cell: NonNull<Header>) {
    // SAFETY: PROMISE-1 - by contract.
    let header = unsafe { header(cell) };
    // SAFETY: PROMISE-1 - the group lives as long as its cell.
    let group = header.group.map(|group| unsafe { &*group.as_ptr() });
    if group.is_none_or(count_down) {
        // SAFETY: PROMISE-1 - that of the link, or of the whole group.
        unsafe { cell::release(cell) };
    }
}

/// Claims the body to look into it, if it is there and unclaimed.
pub(super) fn peek(header: &Header) -> bool {
    let mut seen = header.word.load();
    while !seen.has(BODY) {
        match header.word.replace(seen, |word| word | BODY | PEEK) {
            Ok(()) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// Gives the body back after a peek; or runs or drops it, if a source has fired or the cell was completed meanwhile.
///
/// # Safety
///
/// PROMISE-1, PROMISE-3: the caller has set PEEK, and has a reference to the memory.
pub(super) unsafe fn unpeek(cell: NonNull<Header>, queue: &mut Queue) {
    // SAFETY: PROMISE-1 - by contract.
    let header = unsafe { header(cell) };
    let mut seen = header.word.load();
    loop {
        let keeps = seen.has(RESULT) || seen.has(FIRED);
        let cleared = if keeps { PEEK } else { PEEK | BODY };
        match header.word.replace(seen, |word| word & !cleared) {
            Ok(()) if !keeps => return,
            Ok(()) => break,
            Err(now) => seen = now,
        }
    }
    if seen.has(RESULT) {
        // SAFETY: PROMISE-3 - the caller has kept it.
        unsafe { (header.table.discard)(cell, queue) };
        return;
    }
    // SAFETY: PROMISE-1 - the group lives as long as its cell.
    let group = header.group.map(|group| unsafe { &*group.as_ptr() });
    if group.is_some_and(|group| !group.waits_for_all) {
        // SAFETY: PROMISE-1, PROMISE-3 - the caller has kept it, and has a reference.
        return unsafe { run_any(cell, None, queue) };
    }
    header.word.add(MEMORY);
    // SAFETY: PROMISE-3 - the caller has kept it; PROMISE-1 - the reference was added for it.
    unsafe { (header.table.run)(cell, None, queue) };
}

/// Attaches the links of a new cell to the sources of its body, which the caller has claimed with PEEK.
///
/// # Safety
///
/// PROMISE-1, PROMISE-3, PROMISE-4: nobody else knows the cell, and it has a reference that outlives the call.
pub(super) unsafe fn attach_group(cell: NonNull<Header>, queue: &mut Queue) {
    // SAFETY: PROMISE-1 - by contract.
    let header = unsafe { header(cell) };
    // SAFETY: PROMISE-1 - the group lives as long as its cell.
    let Some(group) = header.group.map(|group| unsafe { &*group.as_ptr() }) else {
        return;
    };
    let mut links = group.links.iter();
    let mut see = |source| {
        if let Some(link) = links.next() {
            // SAFETY: PROMISE-1 - the body holds the source, and nobody can claim it; PROMISE-4 - the link is new.
            unsafe { attach(source, NonNull::from(link), queue) };
        }
    };
    // SAFETY: PROMISE-3 - claimed with PEEK, by contract.
    unsafe { (header.table.visit)(cell, &mut see) };
    assert!(
        links.next().is_none(),
        "a body has as many sources as it was made with"
    );
    // SAFETY: PROMISE-3 - by contract.
    unsafe { unpeek(cell, queue) };
}
