//! Thread factories with every fault.

use super::Gate;
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond_raw::user_code::{self, Kind};
use std::fmt;
use std::io;
use std::panic::panic_any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The fault of a [`Factory`] when it is asked for a thread.
#[derive(Clone, Debug)]
pub enum Start {
    /// What it was asked for.
    Well,
    /// Says no, as an operating system does that has run out of threads.
    Refuse,
    /// Panics.
    Panic,
    /// Says yes, and drops the body.
    DropBody,
    /// Says yes, and keeps the body until [`Factory::drop_kept`].
    KeepBody,
    /// Starts the thread, and says no all the same.
    StartAndRefuse,
    /// Starts the thread, and panics.
    StartAndPanic,
    /// Says yes, and the thread dies before it runs the body, when the gate is open.
    Die(Gate),
    /// Says yes, and the thread runs the body when the gate is open.
    At(Gate),
}

type Decide = Box<dyn Fn(u64) -> Start + Send + Sync>;

/// A thread factory with a chosen fault for each thread, counted from 1.
pub struct Factory {
    threads: Threads,
    decide: Decide,
    asked: AtomicU64,
    kept: Mutex<Vec<Body>>,
}

impl Factory {
    /// A factory of threads `name-1`, `name-2` and so on.
    pub fn new(
        name: impl Into<String>,
        decide: impl Fn(u64) -> Start + Send + Sync + 'static,
    ) -> Self {
        Factory {
            threads: Threads::named(name.into()),
            decide: Box::new(decide),
            asked: AtomicU64::new(0),
            kept: Mutex::default(),
        }
    }

    /// How many threads it has been asked for.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// Drops the bodies that it has kept, and returns how many they were.
    pub fn drop_kept(&self) -> usize {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        kept.len()
    }
}

impl ThreadFactory for Factory {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        user_code::check(Kind::Factory);
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        match (self.decide)(number) {
            Start::Well => self.threads.start(body),
            Start::Refuse => Err(io::ErrorKind::WouldBlock.into()),
            Start::Panic => panic_any("the loom is broken"),
            Start::DropBody => {
                drop(body);
                self.threads.start(Box::new(|| ()))
            }
            Start::KeepBody => {
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push(body);
                drop(kept);
                self.threads.start(Box::new(|| ()))
            }
            Start::StartAndRefuse => {
                drop(self.threads.start(body)?);
                Err(io::ErrorKind::WouldBlock.into())
            }
            Start::StartAndPanic => {
                drop(self.threads.start(body)?);
                panic_any("the loom is broken")
            }
            Start::Die(gate) => self.threads.start(Box::new(move || {
                gate.wait();
                drop(body);
            })),
            Start::At(gate) => self.threads.start(Box::new(move || {
                gate.wait();
                body();
            })),
        }
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factory")
            .field("asked", &self.asked())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DropCount;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn each_thread_has_the_fault_that_was_asked_for() {
        let count = DropCount::new();
        let body = || -> Body {
            let token = count.token();
            Box::new(move || drop(token))
        };
        let factory = Factory::new("vice", |number| match number {
            1 => Start::Well,
            2 => Start::Refuse,
            3 => Start::DropBody,
            4 => Start::KeepBody,
            5 => Start::StartAndRefuse,
            _ => Start::Panic,
        });
        factory.start(body()).unwrap().join().unwrap();
        assert!(factory.start(body()).is_err());
        factory.start(body()).unwrap().join().unwrap();
        factory.start(body()).unwrap().join().unwrap();
        assert!(factory.start(body()).is_err());
        crate::until("the kept one is left", || count.alive() == 1);
        assert_eq!(factory.drop_kept(), 1);
        assert!(catch_unwind(AssertUnwindSafe(|| factory.start(body()))).is_err());
        assert_eq!(factory.asked(), 6);
    }
}
