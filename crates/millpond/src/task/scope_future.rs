//! Task-local values in async code: they are set for every poll of a future, and for its destructor.

use super::TaskLocal;
use super::context;
use super::spec::TaskSpec;
use super::task_local::{TaskLocals, Value};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;

impl<T: Send + Sync + 'static> TaskLocal<T> {
    /// A future that runs `future` with this value: in all its polls, whichever thread makes them, and in its destructor.
    /// What the future submits has the value, too, and so do futures that it awaits. It is for the body of a handler, of
    /// which [`scope`](TaskLocal::scope) would enclose no more than the call that makes the future.
    ///
    /// A future that is spawned on an async runtime meanwhile is another one: give it a scope of its own.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// use millpond::executor::ExecutorExt;
    /// use millpond::preset;
    /// use millpond::task::TaskLocal;
    ///
    /// static REQUEST: TaskLocal<u64> = TaskLocal::new();
    ///
    /// let pool = preset::single("mill").build()?;
    /// let handler = async || {
    ///     let number = pool.submit(|| REQUEST.get().map(|number| *number))?.await?;
    ///     Ok::<_, Box<dyn std::error::Error>>((number, REQUEST.get().is_some()))
    /// };
    /// let answer = REQUEST.scope_future(42, handler());
    /// # let mut answer = pin!(answer);
    /// # let answer = loop {
    /// #     let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    /// #     match polled { Poll::Ready(answer) => break answer, Poll::Pending => std::thread::yield_now() }
    /// # };
    /// assert_eq!(answer?, (Some(42), true)); // answer.await?
    /// assert!(REQUEST.get().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope_future<V: Into<Arc<T>>, F: Future>(
        &self,
        value: V,
        future: F,
    ) -> impl Future<Output = F::Output> + use<T, V, F> {
        let value: Arc<T> = value.into();
        let scope = PollScope {
            id: self.id(),
            value,
            last: None,
        };
        scoped(scope, future)
    }
}

impl TaskSpec {
    /// The value of a task-local in the task, and in all that it creates; other values are those that it inherits.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::preset;
    /// use millpond::task::{TaskLocal, TaskSpec};
    ///
    /// static REQUEST: TaskLocal<u64> = TaskLocal::new();
    ///
    /// let pool = preset::single("mill").build()?;
    /// let spec = TaskSpec::new().name("grind").local(&REQUEST, 42);
    /// let number = pool.submit_with(spec, || REQUEST.get().map(|number| *number))?;
    /// assert_eq!(number.join()?, Some(42));
    /// assert!(REQUEST.get().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn local<T: Send + Sync + 'static>(
        mut self,
        local: &TaskLocal<T>,
        value: impl Into<Arc<T>>,
    ) -> Self {
        let value: Arc<T> = value.into();
        let locals = &mut self.extras().inherited.locals;
        let former = std::mem::replace(locals, TaskLocals::empty());
        *locals = former.with(local.id(), value);
        self
    }
}

/// The values for the polls of a future.
struct PollScope {
    id: u64,
    value: Value,
    /// The values around the last poll and in it. Mostly they are the same at the next one.
    last: Option<(TaskLocals, TaskLocals)>,
}

impl PollScope {
    fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let outside = context::task_locals();
        let inside = match &self.last {
            Some((known, inside)) if known.is_same(&outside) => inside.clone(),
            _ => {
                let inside = outside.with(self.id, Arc::clone(&self.value));
                self.last = Some((outside, inside.clone()));
                inside
            }
        };
        context::with_task_locals(inside, f)
    }
}

/// A future that is polled and dropped inside of a scope.
struct Scoped<'a, F> {
    scope: PollScope,
    future: Pin<&'a mut Option<F>>,
}

impl<F> Drop for Scoped<'_, F> {
    fn drop(&mut self) {
        let Scoped { scope, future } = self;
        if future.is_some() {
            scope.enter(|| future.set(None));
        }
    }
}

async fn scoped<F: Future>(scope: PollScope, future: F) -> F::Output {
    let future = pin!(Some(future));
    let mut scoped = Scoped { scope, future };
    poll_fn(move |context| {
        let Scoped { scope, future } = &mut scoped;
        scope.enter(|| {
            let inner = future.as_mut().as_pin_mut();
            let polled = inner
                .expect("a future that was ready is polled again")
                .poll(context);
            if polled.is_ready() {
                future.set(None);
            }
            polled
        })
    })
    .await
}
