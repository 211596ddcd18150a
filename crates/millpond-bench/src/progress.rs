//! How far measuring is, and whether it still goes on.

use indicatif::{ProgressBar, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// A listener for the progress of measuring.
pub trait Progress: fmt::Debug {
    /// The next step begins.
    fn step(&self, label: &str);
}

/// No listener.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _label: &str) {}
}

/// A bar on standard error, if that is a terminal. It draws between rounds only, and from this
/// thread: a drawing thread of its own would disturb what is measured.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar of so many steps.
    ///
    /// # Panics
    ///
    /// Never: the template is a constant.
    pub fn new(steps: u64) -> Self {
        if !io::stderr().is_terminal() {
            return Bar(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("measuring [{bar:30}] {pos}/{len} {msg}")
            .expect("the template is a constant")
            .progress_chars("=> ");
        Bar(ProgressBar::new(steps).with_style(style))
    }

    /// Takes the bar away while `f` prints.
    pub fn aside<T>(&self, f: impl FnOnce() -> T) -> T {
        self.0.suspend(f)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn step(&self, label: &str) {
        self.0.set_message(label.to_owned());
        self.0.inc(1);
    }
}

/// Passes steps on, and calls for help if one does not end.
///
/// Candidates that wait can wait for ever: a lost wake-up is the classic bug of a queue. A run that hangs
/// would not say which one it was. The watching thread sleeps between steps, and so disturbs nothing.
#[derive(Debug)]
pub struct Watched<'a> {
    inner: &'a dyn Progress,
    steps: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl<'a> Watched<'a> {
    /// Watches until it is dropped, and calls `help` with the label of a step that takes longer than
    /// `timeout`.
    pub fn new(
        inner: &'a dyn Progress,
        timeout: Duration,
        help: impl Fn(&str) + Send + 'static,
    ) -> Self {
        let (steps, begun) = mpsc::channel::<String>();
        let thread = std::thread::spawn(move || {
            let mut label = String::from("the start");
            loop {
                match begun.recv_timeout(timeout) {
                    Ok(next) => label = next,
                    Err(RecvTimeoutError::Timeout) => help(&label),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Watched {
            inner,
            steps: Some(steps),
            thread: Some(thread),
        }
    }
}

impl Progress for Watched<'_> {
    fn step(&self, label: &str) {
        self.inner.step(label);
        if let Some(steps) = &self.steps {
            // It is gone only if `help` panicked; measuring can go on.
            let _ = steps.send(label.to_owned());
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.steps = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_does_not_end_is_reported_by_its_label() {
        let (sender, called) = mpsc::channel();
        let watched = Watched::new(&Silent, Duration::from_millis(1), move |label| {
            let _ = sender.send(label.to_owned());
        });
        watched.step("queue 1p1c: lossy");
        // The step goes on until it has been reported.
        while called.recv().unwrap() != "queue 1p1c: lossy" {}
        drop(watched);
        // No report is awaited any more: the caller is gone with the watched steps.
        assert!(called.iter().all(|label| label == "queue 1p1c: lossy"));
    }

    #[test]
    fn steps_that_end_are_not_reported() {
        let watched = Watched::new(&Silent, Duration::MAX, |label| panic!("{label} ended"));
        watched.step("a");
        watched.step("b");
        drop(watched);
    }
}
