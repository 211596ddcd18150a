//! What the engines of this library know of each other, beside [`Executor`](super::Executor).
//!
//! A scheduled pool can let an idle worker of its executor wait for the next due time, and takes unstarted tasks back when
//! it is stopped; a serial executor passes the reports of dropped tasks on to the executor below. None of that is for
//! users. So it is behind one hidden method, [`Executor::internals`](super::Executor::internals), whose result only this
//! crate can use. References, boxes and `Arc`s pass it on. An executor of the user's has the defaults.

use super::dropped::{self, DroppedTask};
use super::timer_source::TimerSourceOffer;
use crate::task::Task;
use std::fmt;

/// The internal side of an executor.
#[derive(Clone, Copy)]
pub struct Internals<'a> {
    address: usize,
    engine: Option<&'a dyn EngineInternals>,
}

impl<'a> Internals<'a> {
    /// Of an executor that has nothing to add to the defaults.
    pub(super) fn defaults<E: ?Sized>(executor: &'a E) -> Self {
        Internals::at(std::ptr::from_ref(executor).cast::<()>().addr())
    }

    /// As [`defaults`](Internals::defaults), with an address that all handles of the executor have in common.
    pub(crate) fn at(address: usize) -> Self {
        Internals {
            address,
            engine: None,
        }
    }

    pub(crate) fn of(address: usize, engine: &'a dyn EngineInternals) -> Self {
        Internals {
            address,
            engine: Some(engine),
        }
    }

    /// Identifies the executor: an address that its handles have in common, as far as they know it. Jobs that may have to
    /// wait for the executor are kept together by it; see `time/deferred.rs`.
    pub(crate) fn address(self) -> usize {
        self.address
    }

    /// Lets one of the idle workers lead the timer source; see `timer_source.rs`.
    pub(crate) fn offer_timer_source(self, offer: TimerSourceOffer) {
        if let Some(engine) = self.engine {
            engine.offer_timer_source(offer);
        }
    }

    /// Takes back accepted tasks that have not started, if they are `wanted`: for a submitter that is being stopped.
    /// `wanted` may be called under the lock of a queue.
    pub(crate) fn take_back(self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        self.engine
            .map_or_else(Vec::new, |engine| engine.take_back(wanted))
    }

    /// The name of the engine that has the parameter: this one, or one below.
    pub(crate) fn parameter_owner(self, parameter: &str) -> Option<&'a str> {
        self.engine?.parameter_owner(parameter)
    }

    /// A task without a handle was accepted, by the executor or by a wrapper of it, and dropped unrun.
    pub(crate) fn report_dropped(self, dropped: DroppedTask) {
        match self.engine {
            Some(engine) => engine.report_dropped(dropped),
            None => dropped::log_dropped(dropped),
        }
    }
}

impl fmt::Debug for Internals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Internals").finish_non_exhaustive()
    }
}

/// An engine of this library, as [`Internals`] use it.
pub(crate) trait EngineInternals {
    /// An engine without idle workers drops the offer.
    fn offer_timer_source(&self, offer: TimerSourceOffer) {
        drop(offer);
    }

    /// An engine that cannot find its unstarted tasks returns none.
    fn take_back(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        let _ = wanted;
        Vec::new()
    }

    /// A wrapper asks the executor below; an engine without parameters has none.
    fn parameter_owner(&self, parameter: &str) -> Option<&str> {
        let _ = parameter;
        None
    }

    /// A wrapper tells the executor below; an engine without listeners logs a line.
    fn report_dropped(&self, dropped: DroppedTask) {
        dropped::log_dropped(dropped);
    }
}
