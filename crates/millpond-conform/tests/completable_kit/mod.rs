//! Stages in their three forms, and sources that are completed before or after the stage is made.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test uses some of it"
)]

use millpond::executor::ThreadPerTask;
use millpond::future::{self, Completable, CompletionError, Promise};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

/// A number, or an error that is a word.
pub(crate) type Number = Completable<u32, &'static str>;
pub(crate) type Outcome = Result<u32, CompletionError<&'static str>>;

pub(crate) static THREADS: LazyLock<Arc<ThreadPerTask>> =
    LazyLock::new(|| Arc::new(ThreadPerTask::builder("stages", 256).build().unwrap()));

/// How a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    InPlace,
    Async,
    On,
}

pub(crate) const FORMS: [Form; 3] = [Form::InPlace, Form::Async, Form::On];

/// Calls an operation in one of its forms.
macro_rules! in_form {
    ($form:expr, $source:expr, $name:ident, $async:ident, $on:ident, $f:expr) => {
        match $form {
            $crate::completable_kit::Form::InPlace => $source.$name($f),
            $crate::completable_kit::Form::Async => $source.$async($f),
            $crate::completable_kit::Form::On => {
                $source.$on(&*$crate::completable_kit::THREADS, $f)
            }
        }
    };
}

pub(crate) use in_form;

/// What a source comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Value(u32),
    Failure,
    Cancelled,
}

/// A source that is complete, or will be.
pub(crate) struct Source {
    promise: Promise<u32, &'static str>,
    end: End,
    late: bool,
}

impl Source {
    /// The source and its reader. If it is not `late` it is complete now.
    pub(crate) fn new(end: End, late: bool) -> (Source, Number) {
        let (promise, reader) = future::promise();
        let source = Source { promise, end, late };
        if !late {
            source.end();
        }
        (source, reader)
    }

    fn end(&self) {
        match self.end {
            End::Value(value) => self.promise.complete(value).unwrap(),
            End::Failure => self.promise.fail("no wind").unwrap(),
            End::Cancelled => assert!(self.promise.cancel()),
        }
    }

    /// Completes it, if it was late.
    pub(crate) fn now(&self) {
        if self.late {
            self.end();
        }
    }
}

/// Runs a body for every form, with sources that come before and after the stage.
pub(crate) fn every_way(mut body: impl FnMut(Form, bool)) {
    for form in FORMS {
        for late in [false, true] {
            body(form, late);
        }
    }
}

/// Counts calls.
#[derive(Debug, Default)]
pub(crate) struct Calls(AtomicU32);

impl Calls {
    pub(crate) const fn new() -> Self {
        Calls(AtomicU32::new(0))
    }

    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

#[track_caller]
pub(crate) fn assert_value(reader: Number, expected: u32) {
    assert_eq!(reader.join().expect("it has a value"), expected);
}

/// It has failed as its source did.
#[track_caller]
pub(crate) fn assert_passed_on(reader: Number, end: End) {
    assert!(
        !reader.is_cancelled(),
        "a stage further down is not itself cancelled"
    );
    let failure = reader.join().unwrap_err();
    assert!(failure.is_propagated(), "{failure:?}");
    match end {
        End::Failure => assert_eq!(failure.error(), Some(&"no wind")),
        End::Cancelled => assert!(failure.is_cancelled()),
        End::Value(_) => panic!("that is no failure"),
    }
}

/// It has failed by the panic of its own closure.
#[track_caller]
pub(crate) fn assert_panicked(reader: Number) {
    let failure = reader.join().unwrap_err();
    assert!(
        failure.is_panicked() && !failure.is_propagated(),
        "{failure:?}"
    );
}
