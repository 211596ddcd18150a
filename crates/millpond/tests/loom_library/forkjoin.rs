//! Every interleaving of the steps in which workers of a fork-join pool depend on each other, weak memory included.
//!
//! The steps are in `src/forkjoin/models.rs`, because they are not public.

use crate::model;
use millpond::forkjoin::models;

/// Makes a test of every model, with so many preemptions.
macro_rules! walk {
    ($($preemptions:literal $name:ident,)*) => { $(
        #[test]
        fn $name() {
            model($preemptions, models::$name);
        }
    )* };
}

walk! {
    3 a_worker_that_falls_asleep_meets_a_task,
    3 a_worker_that_falls_asleep_meets_a_task_of_another,
    3 an_exchange_of_front_and_back_hides_nothing,
    3 a_worker_that_stops_searching_meets_a_task,
    3 a_worker_that_blocks_meets_a_task,
    3 a_request_that_is_taken_back_meets_a_worker_that_falls_asleep,
    3 a_request_that_is_taken_back_meets_a_worker_that_blocks,
    3 a_request_that_is_taken_back_meets_a_higher_parallelism,
    3 a_worker_that_waits_meets_a_published_job,
    3 a_worker_that_waits_meets_a_job_of_one_that_blocks,
    3 a_slot_that_is_used_is_there,
    3 a_quiescent_pool_has_nothing_in_hand,
    3 a_thread_that_waits_for_quiescence_meets_the_last_worker,
    2 a_worker_that_waits_for_quiescence_meets_the_last_other,
    3 the_last_part_sees_all_others,
    3 a_search_that_is_over_shows_what_was_found,
}
