//! The metadata of a cell: where it was made; and what few have, in a box that is made when it is needed.

use super::error::{Cause, CompletionError, Origin};
use crate::task::Name;
use millpond_raw::once_box::OnceBox;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::panic::Location;

pub(super) struct StageMeta {
    location: &'static Location<'static>,
    extras: OnceBox<Extras>,
}

#[derive(Default)]
struct Extras {
    name: Mutex<Option<Name>>,
    is_linked: AtomicBool,
    waits_for_any: AtomicBool,
}

impl StageMeta {
    #[inline]
    pub(super) fn new(location: &'static Location<'static>) -> Self {
        StageMeta {
            location,
            extras: OnceBox::new(),
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

    fn extras(&self) -> &Extras {
        self.extras.get_or_init(Extras::default)
    }

    pub(super) fn location(&self) -> &'static Location<'static> {
        self.location
    }

    pub(super) fn name(&self) -> Option<Name> {
        self.extras.get()?.name.lock().clone()
    }

    pub(super) fn set_name(&self, name: Name) {
        let former = self.extras().name.lock().replace(name);
        drop(former);
    }

    /// Cancelling it cancels what it waits for. Relaxed: it is set before the stage is shared, or may come too late.
    #[inline]
    pub(super) fn is_linked(&self) -> bool {
        self.extras
            .get()
            .is_some_and(|extras| extras.is_linked.load(Ordering::Relaxed))
    }

    pub(super) fn link(&self) {
        self.extras().is_linked.store(true, Ordering::Relaxed);
    }

    /// One of its sources is enough.
    pub(super) fn waits_for_any(&self) -> bool {
        self.extras
            .get()
            .is_some_and(|extras| extras.waits_for_any.load(Ordering::Relaxed))
    }

    pub(super) fn of_any(self) -> Self {
        self.extras().waits_for_any.store(true, Ordering::Relaxed);
        self
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
