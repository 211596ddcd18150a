//! Every interleaving of the steps in which workers of a fork-join pool depend on each other, weak memory included.
//!
//! The steps are in `src/forkjoin/models.rs`, because they are not public.

use crate::model;
use millpond::forkjoin::models;

/// Makes a test of every model.
macro_rules! walk {
    ($($name:ident,)*) => { $(
        #[test]
        fn $name() {
            model(3, models::$name);
        }
    )* };
}

walk! {
    a_worker_that_falls_asleep_meets_a_task,
    a_worker_that_stops_searching_meets_a_task,
    a_worker_that_blocks_meets_a_task,
    a_request_that_is_taken_back_meets_a_worker_that_falls_asleep,
    a_request_that_is_taken_back_meets_a_worker_that_blocks,
    a_request_that_is_taken_back_meets_a_higher_parallelism,
    a_worker_that_waits_meets_a_published_job,
    a_slot_that_is_used_is_there,
    a_quiescent_pool_has_nothing_in_hand,
    a_thread_that_waits_for_quiescence_meets_the_last_worker,
    a_worker_that_waits_for_quiescence_meets_the_last_other,
    the_last_part_sees_all_others,
    a_search_that_is_over_shows_what_was_found,
}
