//! PCT schedules of the library: queues, executors, scopes, alarms, whole pools and scheduled ones.
//!
//! Run with `cargo xtask models shuttle [NAME]`. Each scenario runs under a few hundred schedules for
//! each depth from 1 to 4; its file says how many, `MILLPOND_SCHEDULES` changes the number.

#![cfg(millpond_shuttle)]

#[path = "../graph_kit/mod.rs"]
mod graph_kit;
#[path = "../queue_kit/mod.rs"]
mod queue_kit;
#[path = "../shuttle_drive/mod.rs"]
mod shuttle_drive;
#[path = "../shuttle_kit/mod.rs"]
mod shuttle_kit;

mod alarm;
mod executor;
mod forkjoin;
mod forkjoin_blocking;
mod future;
mod handoff;
mod on_demand;
mod pool;
mod pool_end;
mod pool_growing;
mod pool_line;
mod pool_refuse;
mod pool_room;
mod pool_watch;
mod queue;
mod schedule;
mod schedule_dispatcher;
mod schedule_kit;
mod schedule_leader;
mod schedule_reserve;
mod schedule_series;
mod scope;
