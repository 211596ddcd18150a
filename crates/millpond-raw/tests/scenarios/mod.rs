//! The races of this crate, as small programs.
//!
//! Each scenario is one race with its own assertions. Three drivers run it: `loom_models.rs` (every
//! interleaving, few threads), `shuttle_models.rs` (PCT schedules, more threads) and `stress_threads.rs`
//! (real threads, many rounds, also under sanitizers and chaos). So the code that a checker explores is the
//! code that users run, with the same expectations. [`drive!`] lists all scenarios.
//!
//! Nothing may leak: a scenario counts its [`Probe`]s at the end.

#![allow(
    dead_code,
    reason = "each driver is a crate of its own and lists what it drives"
)]

pub(crate) mod activity;
pub(crate) mod biased;
pub(crate) mod forkjoin;
pub(crate) mod lock;
pub(crate) mod mailbox;
pub(crate) mod once_box;
pub(crate) mod park;
pub(crate) mod promise;
pub(crate) mod scope;
pub(crate) mod slabs;
pub(crate) mod stop;
pub(crate) mod task;
pub(crate) mod token;

use millpond_raw::sync::thread::{JoinHandle, spawn};
use std::sync::Arc;

/// Counts its live clones. The count is std's, so a checker does not branch on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe(Arc<()>);

impl Probe {
    /// The number of other clones.
    pub(crate) fn others(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

/// Starts `count` threads, numbered from 0. Each gets its own clone of the body, so that only the scenario
/// itself orders what they drop.
pub(crate) fn spawn_all<R: Send + 'static>(
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

/// Joins the threads and collects what they return; a panic of theirs goes on here.
pub(crate) fn join_all<R>(threads: Vec<JoinHandle<R>>) -> Vec<R> {
    threads
        .into_iter()
        .map(|thread| thread.join().expect("a thread of the scenario ends well"))
        .collect()
}

/// As `mem::forget`, but tells leak checkers that the leak is intended.
pub(crate) fn forget<T: 'static>(value: T) {
    leak(value);
}

/// As [`forget`], and returns a reference to the value.
pub(crate) fn leak<T: 'static>(value: T) -> &'static T {
    let place: &'static T = Box::leak(Box::new(value));
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    {
        static LEAKED: millpond_raw::sync::Mutex<Vec<usize>> =
            millpond_raw::sync::Mutex::new(Vec::new());
        LEAKED
            .lock()
            .push(std::ptr::from_ref(place).expose_provenance());
    }
    place
}

/// The number of threads: `few` under loom, which explores every interleaving.
pub(crate) fn few_or_many(few: usize, many: usize) -> usize {
    if cfg!(millpond_loom) { few } else { many }
}

/// Makes a test of every scenario, run by the function `$driver`.
macro_rules! drive {
    ($driver:ident) => {
        scenarios::drive! {
            @tests $driver
            biased: {
                keeper_and_strangers_follow_one_another,
                a_stranger_that_settles_meets_what_the_keeper_orders,
                the_next_keeper_sees_what_the_last_one_did,
            }
            lock: {
                owners_follow_one_another,
                try_lock_shows_what_the_last_owner_wrote,
            }
            park: {
                a_token_brings_what_was_written_before_the_wake,
                no_wake_is_lost,
                a_wake_at_the_deadline_is_taken_or_kept,
            }
            token: {
                an_interrupt_reaches_all_blocked_threads,
                first_waiters_that_race_make_one_queue,
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
                a_task_run_inline_runs_once,
                dropping_and_running_inline_agree,
                a_witness_that_runs_it_and_a_handle_that_drops_agree,
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
                each_body_reports_a_stop_once,
                a_masked_stop_is_noticed_afterwards,
                an_inline_body_and_the_enclosing_one_are_both_interrupted,
                an_inline_body_does_not_report_what_the_enclosing_one_has,
                an_inline_body_has_its_own_token,
                a_stop_reaches_through_an_engine_inside,
                a_second_engines_stop_is_reported_as_well,
                an_interrupt_and_a_stop_are_both_obeyed,
                an_interrupted_body_sees_what_the_stopper_wrote,
                a_stop_against_an_ending_body_leaves_nothing_behind,
            }
            scope: {
                two_claimers_run_a_job_once,
                the_owner_waits_for_every_body,
                a_panic_in_the_scope_waits_for_every_body,
                a_job_made_by_a_job_is_waited_for,
                a_joiner_gets_the_value_and_sees_the_bodys_writes,
                a_value_that_is_not_taken_is_dropped_by_the_end,
                the_owner_waits_for_destructors_too,
                cancelling_and_running_agree,
                a_joiner_of_a_cancelled_job_is_released,
                a_job_with_a_dropped_stub_is_left_to_a_waiter,
                a_stop_rejects_or_finds_every_job,
                a_waiting_owner_is_woken_by_new_jobs,
                a_panic_goes_to_the_handle_or_to_the_scope,
            }
            promise: {
                attaching_and_completing_agree,
                stages_that_are_attached_at_once_all_run,
                one_completer_wins_and_the_value_is_whole,
                the_sole_reader_moves_the_value_out,
                dropping_the_reader_and_completing_agree,
                readers_that_share_a_value_leave_nothing_behind,
                completing_a_stage_by_hand_and_firing_it_agree,
                of_two_sources_one_claims_the_body,
                the_last_of_two_sources_runs_the_body,
                waiting_again_meets_the_second_source,
                waiting_again_and_completing_by_hand_agree,
                peeking_and_firing_agree,
                peeking_and_completing_by_hand_agree,
                sweeping_and_completing_agree,
                sweeping_and_attaching_agree,
                claiming_a_held_body_and_completing_by_hand_agree,
                one_of_several_writers_is_the_last,
            }
            forkjoin: {
                stealing_and_reclaiming_agree,
                a_job_that_comes_back_is_run_by_its_owner,
                a_job_that_is_handed_over_runs_elsewhere_or_comes_back,
                a_scope_waits_for_all_jobs_and_sees_what_they_did,
                a_job_spawned_by_a_job_is_waited_for,
                a_share_of_a_scope_that_is_given_back_may_end_it,
                a_job_of_another_thread_is_a_part_of_the_task_of_its_scope,
            }
            activity: {
                a_snapshot_belongs_to_one_run,
                what_was_done_before_a_run_is_seen_by_whoever_sees_it_begun,
            }
            once_box: {
                of_many_initialisers_one_wins_and_all_see_a_whole_value,
                a_published_reference_leads_to_a_whole_value,
            }
            slabs: {
                an_object_has_one_owner_at_a_time,
                all_free_slabs_go_back_while_other_threads_allocate,
                a_thread_that_ends_leaves_its_objects_to_the_others,
                threads_with_and_without_magazines_share_a_depot,
            }
            mailbox: {
                serving_and_timing_out_agree,
                serving_and_withdrawing_agree,
                two_requesters_take_turns,
                closing_and_requesting_agree,
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
