//! The unwinder of platforms where no stack can be copied: it has nothing to unwind.

use crate::Stack;
use millpond_raw::stack::StackSnapshot;

pub(crate) struct Unwinder;

impl Unwinder {
    pub(crate) fn new() -> Self {
        Unwinder
    }

    pub(crate) fn unwind(&mut self, snapshot: &StackSnapshot) -> Stack {
        match *snapshot {}
    }
}
