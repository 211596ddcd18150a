//! Metrics of the tasks that an engine runs: how many, how long they waited and ran, and what they did meanwhile; of each
//! label by itself.
//!
//! | file | what |
//! |---|---|
//! | `recorder` | how a worker records its tasks |
//! | `worker` | what one worker counts by label, and what it runs |
//! | `label` | a label, and its id |
//! | `label_table` | the labels of an engine, bounded |
//! | `label_cache` | the labels that a worker knows without asking the table |
//! | `label_metrics` | what a worker counts under one label; sums over workers |
//! | `sampler` | computing or blocking: samples of the CPU clock |
//! | `counts` | counters that are kept without metrics, too |
//! | `values` | what readers get |
//!
//! # The hot path
//!
//! Each worker has [`WorkerMetrics`] of its own, with [`LabelMetrics`](label_metrics::LabelMetrics) for every label that
//! it has met. Only the worker writes there, so a task costs two readings of the processor's counter (one when it is
//! accepted, one when it ends; the start is the end of the task before, unless the worker had to wait), two histogram
//! buckets, and a handful of plain stores. No cache line is written by two threads. Readers sum over all workers
//! ([`Metrics`]) and reset nothing. When a worker exits, its metrics are added to those of earlier workers.
//!
//! Tasks of one label mostly come one after the other. So everything about labels is done when the label changes, and
//! everything about samples when the sampler is due: a task of the same label as the one before pays for two comparisons.
//!
//! # Invariants
//!
//! - **METRICS-1** A task is in the metrics of its label when its worker is done with it: soon after its handle is.
//!   Before that it counts as active ([`WorkerMetrics::running`]).
//! - **METRICS-2** Between two tasks a worker shows none. Otherwise the watchdog could take the one that begins for the
//!   one before it, which may have run for long, and interrupt it. That the number, start, label and location that a
//!   reader sees belong to one task is the promise of [`Activity`](millpond_raw::activity::Activity), and is proved and
//!   modelled there: a worker [begins](WorkerMetrics::begin_turn) a turn before it publishes anything of it.

mod counts;
mod label;
mod label_cache;
mod label_metrics;
mod label_table;
mod recorder;
mod sampler;
mod values;
mod worker;

pub use label::Label;
pub use values::{Metrics, TaskMetrics, Usage};

pub(crate) use counts::{Counter, Counts, WorkerStats};
pub(crate) use label::LabelId;
pub(crate) use label_metrics::LabelSums;
pub(crate) use label_table::{LabelTable, MAX_LABELS};
pub(crate) use recorder::{LiveRecorder, NoRecorder, Recorder, TaskStart};
pub(crate) use worker::{RunningTask, WorkerMetrics};
