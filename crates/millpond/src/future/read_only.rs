//! A completable that can only be composed.

use super::completable::Completable;
use std::convert::Infallible;
use std::fmt;

/// A completable that its holder can compose, but neither wait for nor complete nor cancel: for callers that shall hear of
/// a result and not touch it.
///
/// ```
/// use millpond::future::{self, ReadOnly};
///
/// let (promise, flour) = future::promise::<u32, ()>();
/// let stage: ReadOnly<u32, ()> = flour.read_only();
/// let own = stage.to_completable();
/// own.cancel(); // is a copy
/// promise.complete(7).unwrap();
/// assert_eq!(stage.to_completable().join().unwrap(), 7);
/// ```
#[doc(alias = "CompletionStage")]
#[doc(alias = "minimalCompletionStage")]
pub struct ReadOnly<T, E = Infallible>(Completable<T, E>);

impl<T, E> ReadOnly<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// A copy that can be waited for, completed and cancelled, which has no effect on this one.
    #[doc(alias = "toCompletableFuture")]
    #[track_caller]
    pub fn to_completable(&self) -> Completable<T, E> {
        self.0.copy()
    }
}

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// The same, for callers that shall not touch it.
    #[doc(alias = "minimalCompletionStage")]
    pub fn read_only(self) -> ReadOnly<T, E> {
        ReadOnly(self)
    }
}

impl<T, E> Clone for ReadOnly<T, E>
where
    T: Clone + Sync,
    E: Send + Sync,
{
    fn clone(&self) -> Self {
        ReadOnly(self.0.clone())
    }
}

impl<T, E: fmt::Debug + Send + Sync> fmt::Debug for ReadOnly<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadOnly").field(&self.0).finish()
    }
}
