//! `UnsafeCell` for the backends that do not check memory accesses, with the interface of loom's, which does.

#![allow(clippy::disallowed_types, reason = "this is the seam")]

use crate::sync::traffic::{Access, record};

/// A cell whose accesses have a beginning and an end: loom's counterpart detects overlaps.
#[derive(Debug, Default)]
pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> Self {
        UnsafeCell(core::cell::UnsafeCell::new(value))
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Starts a shared access, which lasts as long as the pointer.
    #[inline]
    #[cfg_attr(millpond_traffic, track_caller)]
    pub fn get(&self) -> ConstPtr<T> {
        record(self.0.get(), Access::Load);
        ConstPtr(self.0.get())
    }

    /// Starts an exclusive access, which lasts as long as the pointer.
    #[inline]
    #[cfg_attr(millpond_traffic, track_caller)]
    pub fn get_mut(&self) -> MutPtr<T> {
        record(self.0.get(), Access::Store);
        MutPtr(self.0.get())
    }

    /// One shared access.
    #[inline]
    #[cfg_attr(millpond_traffic, track_caller)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        record(self.0.get(), Access::Load);
        f(self.0.get())
    }

    /// One exclusive access.
    #[inline]
    #[cfg_attr(millpond_traffic, track_caller)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        record(self.0.get(), Access::Store);
        f(self.0.get())
    }
}

/// A shared access under way.
#[derive(Debug)]
pub struct ConstPtr<T: ?Sized>(*const T);

impl<T: ?Sized> ConstPtr<T> {
    /// One use of the access.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0)
    }
}

/// An exclusive access under way.
#[derive(Debug)]
pub struct MutPtr<T: ?Sized>(*mut T);

impl<T: ?Sized> MutPtr<T> {
    /// One use of the access.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0)
    }
}
