//! Promises: cells that are completed once, and the cells that depend on them.
//!
//! A cell has a value, which one of several threads may set, once, and at most one *body*: what computes the value when
//! other cells, its *sources*, are complete. Cell, body and the links into the lists of the sources are one piece of
//! memory. The library above decides what values and bodies are; this page says which thread owns what, and when.
//!
//! ```text
//!    cell A                          cell B                        cell C
//!   +--------------------+          +------------------+          +-----------+
//!   | list of links -----|--------->| link             |   +----->| link ...  |
//!   | word: flags, counts|          | list of links ---|---+      +-----------+
//!   | value              |<---------|- body: a reader  |
//!   +--------------------+          +------------------+
//! ```
//!
//! | file | what |
//! |---|---|
//! | `word` | flags and counts of a cell in one word |
//! | `cell` | memory of a cell: making, reading, freeing |
//! | `complete` | completing, firing, sweeping |
//! | `queue` | links that have fired and wait for their turn; the loop that serves them |
//! | `handles` | readers, producers and sources |
//! | `body` | bodies, and how cells are made with them |
//!
//! # The life of a cell
//!
//! ```text
//!   pending --- RESULT claimed ---> value written ---> list closed ---> DONE
//!                                                      (complete: readers see the value)
//! ```
//!
//! The thread that sets RESULT first completes the cell; all others get their value back. It writes the value, closes the list by
//! putting a mark in the place of the newest link, and owns the links that were in it: it *fires* each of them. A link that
//! comes later finds the mark, and is fired by the thread that brings it.
//!
//! To fire a link is to claim the body of its cell (BODY) and to run it, once enough of its sources are complete: one or
//! any of them, or all of them. A body that completes its own cell appends that cell's links to the [`Queue`] that it is
//! called with, and returns. So a chain of any length is completed in a loop, on a small stack.
//!
//! A cell that is completed in another way (cancelled, say) claims its body and drops it. Its link stays in the list of the
//! source, *dead*. Every list has a budget of dead links; the thread that uses it up sweeps the list. So a source that is never
//! complete keeps at most as many dead links as live ones, or 32, and of each of them nothing but the memory of its cell.
//!
//! To look into a body without running it (what does this cell wait for?) a thread claims it with PEEK. A link that fires
//! meanwhile leaves FIRED, and the peeking thread runs the body when it is through. In the same state a body is put in
//! while its links are attached: it cannot vanish under the attaching thread.
//!
//! # Nested completions
//!
//! A body is user code, which may complete further promises. Each of these is a loop inside of a loop, because the code
//! after it may depend on what it did. Beyond 32 of them the links are left to the outermost loop of the thread
//! ([`Queue::run`]); and a thread that is about to wait serves them first ([`run_left_over`]).
//!
//! # Invariants
//!
//! - **PROMISE-1** The memory of a cell is counted: one reference for all readers together, one for the link or links that
//!   are in a list or in a queue, one for each [`Producer`] and each [`Source`]. The thread that gives the last one back frees it.
//! - **PROMISE-2** The value is written once, by the thread that set RESULT, before it closes the list. Readers that have
//!   seen the list closed may read it. The sole reader may move it out, and sets TAKEN. If the last reader goes after
//!   DONE it drops the value; if it goes before, the thread that sets DONE does.
//! - **PROMISE-3** The slot of the body is full if BODY is clear. The thread that sets BODY owns the body. With PEEK it
//!   gives it back by clearing both, in one step, and only if neither FIRED nor RESULT is set then.
//! - **PROMISE-4** A link is in one place: with the thread that makes or attaches it, in one list, or in one queue. Only the
//!   owner of that place accesses its `next`; a thread that closes or sweeps a list owns what was in it.
//! - **PROMISE-5** A cell is accessed as the types it was made with: handles carry the type of the value and of the
//!   metadata, and the function table carries that of the body.
//! - **PROMISE-6** A frame is on the stack of its thread, and leaves the thread's list before it ends.
//!
//! # Orderings
//!
//! - `[V-list]` A link is pushed with a release; a thread that closes or sweeps the list acquires the links, with bodies and all.
//! - `[V-value]` Closing the list releases the value; readers that see the mark acquire it.
//! - `[V-body]` Giving a body back after PEEK releases it; claiming a body acquires it. A thread that leaves FIRED or RESULT for
//!   the peeking thread releases what it did, and that one acquires it.
//! - `[V-count]` References are given back with a release, and the thread that finds that it is the last one acquires.
//! - `[V-all]` A link of a group that waits for all counts down with a release; the last one acquires.

mod body;
mod cell;
mod complete;
mod handles;
mod queue;
mod word;

pub use body::{
    Body, Claimed, Held, held, observer, pair, ready, stage, stage_of_all, stage_of_any,
};
pub use handles::{Producer, Reader, Source, Upstream};
pub use queue::{Queue, enter, run_left_over, running};
