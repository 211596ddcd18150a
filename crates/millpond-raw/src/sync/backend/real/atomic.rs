//! Atomics, orderings and fences.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is the seam"
)]

use crate::sync::chaos::point;
use crate::sync::traffic::{Access, record};
use std::sync::atomic as real;

pub use real::Ordering;

/// Orders memory without touching an atomic.
#[inline]
#[cfg_attr(millpond_traffic, track_caller)]
pub fn fence(order: Ordering) {
    point("atomic.fence");
    record(core::ptr::null::<()>(), Access::Fence);
    real::fence(order);
}

/// The methods of all atomics.
macro_rules! atomic {
    ($name:ident $(<$param:ident>)?, $value:ty) => {
        #[doc = concat!("std's `", stringify!($name), "`, method for method.")]
        #[repr(transparent)]
        pub struct $name $(<$param>)? (real::$name $(<$param>)?);

        impl $(<$param>)? $name $(<$param>)? {
            /// An atomic that holds `value`.
            #[inline]
            pub const fn new(value: $value) -> Self {
                $name(real::$name::new(value))
            }

            /// Reads it.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn load(&self, order: Ordering) -> $value {
                point("atomic.load");
                record(self.as_ptr(), Access::Load);
                self.0.load(order)
            }

            /// Writes it.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn store(&self, value: $value, order: Ordering) {
                point("atomic.store");
                record(self.as_ptr(), Access::Store);
                self.0.store(value, order);
            }

            /// Writes it and returns the old value.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                point("atomic.swap");
                record(self.as_ptr(), Access::Locked);
                self.0.swap(value, order)
            }

            /// Writes `new` if the value is `seen`; returns the old value.
            ///
            /// # Errors
            ///
            /// The value that was there instead.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn compare_exchange(
                &self,
                seen: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                point("atomic.compare_exchange");
                record(self.as_ptr(), Access::Locked);
                self.0.compare_exchange(seen, new, success, failure)
            }

            /// As [`compare_exchange`](Self::compare_exchange), but may fail spuriously.
            ///
            /// # Errors
            ///
            /// The value that was there, which may be `seen`.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn compare_exchange_weak(
                &self,
                seen: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                point("atomic.compare_exchange_weak");
                record(self.as_ptr(), Access::Locked);
                self.0.compare_exchange_weak(seen, new, success, failure)
            }

            /// Its address, for a system call.
            #[inline]
            pub const fn as_ptr(&self) -> *mut $value {
                self.0.as_ptr()
            }
        }

        impl $(<$param>)? std::fmt::Debug for $name $(<$param>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

/// The further methods of atomic integers.
macro_rules! atomic_number {
    ($($name:ident, $value:ty;)*) => {$(
        atomic!($name, $value);

        impl $name {
            /// Adds, wrapping, and returns the old value.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                point("atomic.fetch_add");
                record(self.as_ptr(), Access::Locked);
                self.0.fetch_add(value, order)
            }

            /// Subtracts, wrapping, and returns the old value.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                point("atomic.fetch_sub");
                record(self.as_ptr(), Access::Locked);
                self.0.fetch_sub(value, order)
            }

            /// Sets bits and returns the old value.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                point("atomic.fetch_or");
                record(self.as_ptr(), Access::Locked);
                self.0.fetch_or(value, order)
            }

            /// Keeps bits and returns the old value.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                point("atomic.fetch_and");
                record(self.as_ptr(), Access::Locked);
                self.0.fetch_and(value, order)
            }

            /// Raises it to `value` if that is more, and returns the old value.
            #[inline]
            #[cfg_attr(millpond_traffic, track_caller)]
            pub fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                point("atomic.fetch_max");
                record(self.as_ptr(), Access::Locked);
                self.0.fetch_max(value, order)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }
    )*};
}

atomic!(AtomicBool, bool);

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

atomic!(AtomicPtr<T>, *mut T);
atomic_number! {
    AtomicU8, u8;
    AtomicU32, u32;
    AtomicU64, u64;
    AtomicUsize, usize;
    AtomicI64, i64;
}
