//! Executors as spawners of the `futures` crates.

use super::Executor;
use super::future::spawn;
use crate::task::TaskSpec;
use futures_task::{FutureObj, Spawn, SpawnError};

/// Any executor as a [`futures_task::Spawn`], for libraries that ask for one.
///
/// ```
/// use futures_task::{FutureObj, Spawn};
/// use millpond::executor::{DirectExecutor, Spawner};
/// use std::sync::mpsc;
///
/// let (send, receive) = mpsc::channel();
/// let spawner = Spawner::new(DirectExecutor::new());
/// spawner.spawn_obj(FutureObj::new(Box::new(async move { send.send("flour").unwrap() })))?;
/// assert_eq!(receive.recv()?, "flour");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Spawner<E> {
    executor: E,
}

impl<E: Executor + Clone + 'static> Spawner<E> {
    /// Spawns on this executor.
    pub fn new(executor: E) -> Self {
        Spawner { executor }
    }
}

impl<E: Executor + Clone + 'static> Spawn for Spawner<E> {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        // It has no handle, so it does not inherit a deadline. `SpawnError` knows one reason only.
        let spec = TaskSpec::new().without_inherited_deadline();
        let spec = spec.clock_by_default(self.executor.clock());
        match spawn(&self.executor, spec, future) {
            Ok(_) => Ok(()),
            Err(_) => Err(SpawnError::shutdown()),
        }
    }
}
