//! The metadata of a cell: where it was made, its name, and what is special about it.

use super::error::{Cause, CompletionError, Origin};
use crate::task::Name;
use millpond_raw::once_box::OnceBox;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU8, Ordering};
use std::fmt;
use std::panic::Location;

/// Cancelling it cancels what it waits for.
const LINKED: u8 = 1;
/// One of its sources is enough.
const ANY: u8 = 2;
/// Only the stage below it knows it, and is the end of it.
const INNER: u8 = 4;

pub(super) struct StageMeta {
    location: &'static Location<'static>,
    name: OnceBox<Mutex<Name>>,
    flags: AtomicU8,
}

impl StageMeta {
    #[inline]
    pub(super) fn new(location: &'static Location<'static>) -> Self {
        StageMeta {
            location,
            name: OnceBox::new(),
            flags: AtomicU8::new(0),
        }
    }

    /// Of a stage of this one.
    #[inline]
    pub(super) fn below(&self, location: &'static Location<'static>) -> Self {
        let meta = StageMeta::new(location);
        if self.is_linked() {
            meta.link();
        }
        meta
    }

    /// Relaxed: flags are set before a stage is shared, or may come too late.
    #[inline]
    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    fn set(&self, flag: u8) {
        self.flags.fetch_or(flag, Ordering::Relaxed);
    }

    pub(super) fn location(&self) -> &'static Location<'static> {
        self.location
    }

    pub(super) fn name(&self) -> Option<Name> {
        Some(self.name.get()?.lock().clone())
    }

    pub(super) fn set_name(&self, name: Name) {
        let own = self.name.get_or_init(|| Mutex::new(name.clone()));
        let former = std::mem::replace(&mut *own.lock(), name);
        drop(former);
    }

    #[inline]
    pub(super) fn is_linked(&self) -> bool {
        self.has(LINKED)
    }

    pub(super) fn link(&self) {
        self.set(LINKED);
    }

    pub(super) fn waits_for_any(&self) -> bool {
        self.has(ANY)
    }

    pub(super) fn of_any(self) -> Self {
        self.set(ANY);
        self
    }

    #[inline]
    pub(super) fn is_inner(&self) -> bool {
        self.has(INNER)
    }

    pub(super) fn set_inner(&self) {
        self.set(INNER);
    }

    pub(super) fn origin(&self) -> Origin {
        Origin::new(self.name(), self.location)
    }

    #[cold]
    pub(super) fn error<E>(&self, cause: Cause<E>) -> CompletionError<E> {
        CompletionError::new(cause, self.origin())
    }
}

impl fmt::Debug for StageMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin().fmt(f)
    }
}
