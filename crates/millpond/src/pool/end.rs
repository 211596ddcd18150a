//! How a pool ends. The protocol and its invariants are in the [module](super).

use super::engine::Engine;
use crate::executor::Inside;
use crate::manage::RunState;
use crate::task::{Place, Shell, Task};
use millpond_raw::quiet;
use millpond_raw::user_code::{self, Kind};

impl Engine {
    /// Takes no more tasks.
    pub(super) fn shut_down(&self) {
        if self.is_forked() {
            self.ctl().advance(RunState::ShutDown);
            return;
        }
        // S1: sealed first.
        self.line.seal();
        if self.ctl().advance(RunState::ShutDown) {
            self.nudge();
            self.doors.wake_all();
            self.may_be_over();
        }
    }

    /// Takes no more tasks, stops what runs, and hands back what has not started.
    pub(super) fn stop(&self) -> Vec<Task> {
        if self.is_forked() {
            self.ctl().advance(RunState::Stopped);
            return Vec::new();
        }
        self.line.seal();
        let everybody = self.with_crew(|crew| {
            self.ctl().advance(RunState::Stopped);
            crew.everybody()
        });
        let mut unstarted = Vec::new();
        for worker in everybody {
            worker.stop.set();
            unstarted.extend(worker.give_first_back());
        }
        unstarted.extend(self.line.clear_out());
        self.hand_back(&mut unstarted);
        self.nudge();
        self.doors.wake_all();
        self.may_be_over();
        unstarted
    }

    /// Takes tasks out of the queue for one who has submitted them, and is not the pool's end. Those that
    /// begin at this moment stay.
    pub(super) fn take_back_where(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        if self.is_forked() {
            return Vec::new();
        }
        let take = || self.line.remove_where(usize::MAX, wanted);
        // As in `clear_out`: what a queue of the user's does not give out for its panics stays.
        let mut taken = quiet::call(take).unwrap_or_default();
        if !taken.is_empty() {
            self.hand_back(&mut taken);
            self.line_is_shorter();
        }
        taken
    }

    /// Keeps those of the tasks, which are out of the queue, that have something to run, and counts them all.
    fn hand_back(&self, unstarted: &mut Vec<Task>) {
        unstarted.retain(|task| {
            let by_us = task.leave_home();
            let is_gone = task.is_gone();
            if is_gone {
                self.count_shell(match task.shell() {
                    // Whoever claimed it finds that it has left, and does not count it.
                    Shell::InPlace(Place::AtHome) if by_us => Shell::InPlace(Place::Elsewhere),
                    shell => shell,
                });
            }
            !is_gone
        });
        self.rare.handed_back.happened(unstarted.len());
    }

    /// Ends it, if the last task has ended and the last worker is gone: whoever takes something away
    /// that may have been the last calls this (E3).
    pub(super) fn may_be_over(&self) {
        loop {
            let word = self.ctl().read();
            match word.state() {
                RunState::Running | RunState::Tidying | RunState::Terminated => return,
                RunState::ShutDown if !self.line.is_empty() => return,
                RunState::ShutDown | RunState::Stopped => {}
            }
            if word.workers() > 0 {
                return;
            }
            // C3: under the lock under which extra threads are listed.
            let is_ours = self.with_crew(|crew| match crew.extras() + crew.len() {
                0 => Some(self.ctl().tidy(word)),
                _ => None,
            });
            match is_ours {
                // Whoever is still listed comes here when it leaves.
                None => return,
                Some(false) => continue,
                Some(true) => {}
            }
            let inside = Inside::of(self);
            if let Some(hooks) = &self.hooks {
                user_code::check(Kind::Hook);
                let _ = quiet::call(|| hooks.terminated());
            }
            self.let_timer_go();
            self.tell_the_last_of_dropped();
            drop(inside);
            self.ctl().advance(RunState::Terminated);
            self.end.change(|()| ());
            return;
        }
    }
}
