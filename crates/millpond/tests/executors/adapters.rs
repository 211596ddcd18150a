//! Neighbours as executors, and executors as their spawners.

#![cfg(any(feature = "tokio", feature = "rayon", feature = "futures"))]
#[cfg(feature = "tokio")]
mod tokio_runtime {
    use crate::executor_kit::{LONG, quiet_panic};
    use millpond::executor::{ExecutorExt, SerialExecutor, SpawnFuture, TokioExecutor};
    use millpond::task::{CancelReason, TaskError};
    use std::sync::mpsc;

    fn runtime() -> (tokio::runtime::Runtime, TokioExecutor) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let executor = TokioExecutor::new(runtime.handle().clone());
        (runtime, executor)
    }

    #[test]
    fn values_panics_and_batches_come_through() {
        let (_runtime, executor) = runtime();
        assert_eq!(executor.submit(|| 7).unwrap().join().unwrap(), 7);
        let panicked = executor.submit(|| quiet_panic("no water")).unwrap();
        assert!(panicked.join().unwrap_err().is_panicked());
        let all = executor.invoke_all((0..9).map(|n| move || n)).unwrap();
        assert_eq!(all.into_iter().map(Result::unwrap).sum::<u32>(), 36);
        let any = executor.invoke_any([|| Err("no"), || Ok(2)]).unwrap();
        assert_eq!(any, 2);
    }

    #[test]
    fn a_handle_is_awaited_in_the_runtime_itself() {
        let (runtime, executor) = runtime();
        let value = runtime.block_on(async { executor.submit(|| 7).unwrap().await });
        assert_eq!(value.unwrap(), 7);
    }

    #[test]
    fn a_panic_without_a_handle_goes_to_the_hook() {
        let (_runtime, executor) = runtime();
        let (send, receive) = mpsc::channel();
        let executor = executor.on_panic(move |uncaught| send.send(uncaught).unwrap());
        executor.execute(|| quiet_panic("no water")).unwrap();
        let uncaught = receive.recv_timeout(LONG).unwrap();
        assert_eq!(uncaught.panic().message(), Some("no water"));
    }

    #[test]
    fn a_runtime_that_is_gone_cancels() {
        let (runtime, executor) = runtime();
        drop(runtime);
        let handle = executor.submit(|| 7).unwrap();
        assert!(matches!(
            handle.join(),
            Err(TaskError::Cancelled(CancelReason::Dropped))
        ));
    }

    #[test]
    fn keys_and_futures_run_on_it() {
        let (_runtime, executor) = runtime();
        let serial = SerialExecutor::new(executor.clone());
        let handles: Vec<_> = (0..50)
            .map(|n| serial.key(n % 3).submit(move || n).unwrap())
            .collect();
        for (n, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.join().unwrap(), n);
        }
        let inner = executor.submit(|| 7).unwrap();
        let outer = executor.spawn_future(async { inner.await.unwrap() + 1 });
        assert_eq!(outer.unwrap().join().unwrap(), 8);
    }
}

#[cfg(feature = "rayon")]
mod rayon_pool {
    use crate::executor_kit::{LONG, quiet_panic};
    use millpond::executor::{CompletionService, ExecutorExt, RayonExecutor};
    use std::sync::{Arc, mpsc};

    fn executor() -> RayonExecutor {
        let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build();
        RayonExecutor::new(Arc::new(pool.unwrap()))
    }

    #[test]
    fn values_panics_and_batches_come_through() {
        let executor = executor();
        assert_eq!(executor.submit(|| 7).unwrap().join().unwrap(), 7);
        let panicked = executor.submit(|| quiet_panic("no water")).unwrap();
        assert!(panicked.join().unwrap_err().is_panicked());
        let all = executor.invoke_all((0..9).map(|n| move || n)).unwrap();
        assert_eq!(all.into_iter().map(Result::unwrap).sum::<u32>(), 36);
        let results = CompletionService::new(executor);
        let id = results.submit(|| 1).unwrap();
        assert_eq!(results.take().unwrap().id, id);
    }

    #[test]
    fn a_panic_without_a_handle_goes_to_the_hook_and_not_to_rayon() {
        let (send, receive) = mpsc::channel();
        let executor = executor().on_panic(move |uncaught| send.send(uncaught).unwrap());
        executor.execute(|| quiet_panic("no water")).unwrap();
        let uncaught = receive.recv_timeout(LONG).unwrap();
        assert_eq!(uncaught.panic().message(), Some("no water"));
        assert_eq!(executor.submit(|| 7).unwrap().join().unwrap(), 7);
    }
}

#[cfg(feature = "futures")]
mod futures_spawner {
    use crate::executor_kit::{LONG, PerTask, Rejecting};
    use futures_task::{FutureObj, Spawn};
    use millpond::executor::Spawner;
    use std::sync::{Arc, mpsc};

    #[test]
    fn a_spawned_future_runs_without_its_handle() {
        let per_task = PerTask::of(2);
        let (send, receive) = mpsc::channel();
        let future = FutureObj::new(Box::new(async move { send.send(7).unwrap() }));
        Spawner::new(Arc::clone(&per_task.0))
            .spawn_obj(future)
            .unwrap();
        assert_eq!(receive.recv_timeout(LONG).unwrap(), 7);
    }

    #[test]
    fn a_rejection_is_an_error() {
        let future = FutureObj::new(Box::new(async {}));
        let spawned = Spawner::new(Arc::new(Rejecting)).spawn_obj(future);
        assert!(spawned.is_err());
    }
}
