//! What can go wrong on the ground floor, as small programs.
//!
//! Each scenario is one race with its own assertions. It is run by three drivers: `loom_models.rs`
//! (every interleaving, few threads), `shuttle_models.rs` (PCT schedules, more threads) and
//! `stress_threads.rs` (real threads, many rounds, under sanitizers and chaos too). So what a checker
//! proves and what users run is the same code, with the same expectations. [`drive!`] is the one
//! list of all of them.
//!
//! Nothing may leak: a scenario counts its [`Probe`]s at the end.

#![allow(
    dead_code,
    reason = "each driver is a crate of its own and lists what it drives"
)]

pub(crate) mod lock;
pub(crate) mod park;
pub(crate) mod publish;
pub(crate) mod scope;
pub(crate) mod stop;
pub(crate) mod task;
pub(crate) mod token;
pub(crate) mod tray;
pub(crate) mod turns;

use millpond_raw::sync::thread::{JoinHandle, spawn};
use std::sync::Arc;

/// Counts how many of its clones live. The count is std's, so a checker does not branch on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe(Arc<()>);

impl Probe {
    /// How many clones there are besides this one.
    pub(crate) fn others(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

/// Starts `count` threads with numbers from 0. Each gets a copy of the body, so that nothing but the
/// scenario itself orders what they drop.
pub(crate) fn crew<R: Send + 'static>(
    count: usize,
    body: impl Fn(usize) -> R + Clone + Send + 'static,
) -> Vec<JoinHandle<R>> {
    (0..count)
        .map(|number| {
            let body = body.clone();
            spawn(move || body(number))
        })
        .collect()
}

/// Waits for threads and collects what they return; their panics go on here.
pub(crate) fn gather<R>(crew: Vec<JoinHandle<R>>) -> Vec<R> {
    crew.into_iter()
        .map(|thread| thread.join().expect("a thread of the scenario ends well"))
        .collect()
}

/// As `mem::forget`, but on real threads where a leak checker finds it: this one was leaked on purpose.
pub(crate) fn forget<T>(value: T) {
    #[cfg(any(millpond_loom, millpond_shuttle))]
    std::mem::forget(value);
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    {
        static FORGOTTEN: millpond_raw::sync::Mutex<Vec<usize>> =
            millpond_raw::sync::Mutex::new(Vec::new());
        let place = Box::into_raw(Box::new(value));
        FORGOTTEN.lock().push(place.expose_provenance());
    }
}

/// How many threads take part: loom explores every interleaving, so it gets the fewest that race.
pub(crate) fn few_or_many(few: usize, many: usize) -> usize {
    if cfg!(millpond_loom) { few } else { many }
}

/// Makes a test of every scenario, run by the function `$driver`.
macro_rules! drive {
    ($driver:ident) => {
        scenarios::drive! {
            @tests $driver
            lock: {
                owners_follow_one_another,
                a_lock_had_by_trying_shows_what_the_last_owner_left,
            }
            park: {
                a_token_brings_what_was_written_before_the_wake,
                no_wake_is_lost,
                a_wake_at_the_deadline_is_taken_or_kept,
            }
            token: {
                an_interrupt_reaches_everyone_who_blocks,
                blocking_together_for_the_first_time_makes_one_list,
            }
            task: {
                a_join_gets_the_value_and_sees_the_bodys_writes,
                a_pending_poll_is_woken,
                a_poll_from_another_task_is_woken_there,
                running_and_cancelling_agree,
                a_cancelled_joiner_is_released,
                dropping_the_handle_against_completing_leaks_nothing,
                dropping_a_pending_handle_takes_its_waker_out,
                dropping_the_task_releases_the_joiner,
                dropping_and_cancelling_agree,
                a_task_run_in_place_runs_once,
                dropping_and_running_in_place_agree,
                a_witness_that_runs_it_and_a_handle_that_goes_agree,
                an_interrupt_reaches_the_body_that_blocks,
                a_joiner_and_a_body_that_blocks_are_both_reached,
                many_joiners_see_one_value,
                a_joiner_that_gives_up_leaves_nothing_behind,
                a_panic_is_delivered_and_dropped_once,
                reclaiming_and_running_agree,
                reclaiming_releases_the_joiner,
            }
            stop: {
                a_stop_reaches_the_body_that_blocks,
                a_stop_before_the_body_starts_is_seen_by_it,
                a_stop_between_two_tasks_reaches_the_second,
                each_body_is_told_of_a_stop_once,
                a_masked_stop_is_noticed_afterwards,
                a_body_in_place_and_the_one_around_it_are_both_told,
                a_body_in_place_is_not_told_what_the_one_around_it_knows,
                a_body_in_place_has_a_token_of_its_own,
                a_stop_reaches_through_an_engine_inside,
                a_second_engines_stop_is_told_as_well,
                an_interrupt_and_a_stop_are_both_obeyed,
                a_body_that_is_told_sees_what_the_stopper_wrote,
                a_stop_against_an_ending_body_leaves_nothing_behind,
            }
            scope: {
                two_who_claim_a_job_run_it_once,
                the_owner_waits_for_every_body,
                a_panic_in_the_scope_waits_for_every_body,
                a_job_made_by_a_job_is_waited_for,
                a_joiner_gets_the_value_and_sees_the_bodys_writes,
                a_value_that_nobody_takes_is_dropped_by_the_end,
                the_owner_waits_for_destructors_too,
                cancelling_and_running_agree,
                a_joiner_of_a_cancelled_job_is_released,
                a_stray_is_left_to_whoever_waits,
                a_stop_refuses_or_finds_every_job,
                an_owner_that_waits_hears_of_new_jobs,
                a_panic_goes_to_the_handle_or_to_the_scope,
            }
            turns: {
                what_is_seen_of_a_turn_belongs_to_it,
            }
            publish: {
                of_many_who_fill_one_gets_in_and_all_see_it_whole,
            }
            tray: {
                serving_and_giving_up_agree,
                serving_and_withdrawing_agree,
                two_who_ask_take_turns,
                the_end_and_an_asker_agree,
            }
        }
    };
    (@tests $driver:ident $($room:ident: { $($name:ident,)* })*) => {
        $(mod $room { $(
            #[test]
            fn $name() {
                super::$driver(super::scenarios::$room::$name);
            }
        )* })*
    };
}

pub(crate) use drive;
