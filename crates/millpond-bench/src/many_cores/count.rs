//! From a record of accesses to counts per task.
//!
//! A *visit* is what one thread does between two marks: it submits one task, or takes and runs one. Every
//! count is a mean over visits, for producers and for workers.
//!
//! A line is *contended* if it is written and either two threads access it in a tenth of their visits each, or
//! it moves in a tenth of all visits to it. It moves by the rules of a coherent cache: at a read of a line that
//! another thread wrote last, and at a write of a line that another thread has a copy of. Two counts of
//! transfers:
//!
//! - **recorded**: those that the recorded order needs.
//! - **saturated**: every visit to a contended line moves it once. That is the case when so many threads are
//!   at work that somebody else has always been there in between, and the one that more cores approach.

use millpond_raw::sync::traffic::{Access, Event};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What the threads of one role do, per visit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    /// How many visits were counted.
    pub visits: usize,
    /// Reads that pass the seam.
    pub loads: f64,
    /// Plain writes.
    pub stores: f64,
    /// Locked instructions and fences.
    pub locked: f64,
    /// Transfers in the recorded order.
    pub recorded: f64,
    /// Saturated transfers outside of locks.
    pub outside: f64,
    /// The locks that more than one thread takes, those with the most transfers first.
    pub locks: Vec<Lock>,
    /// Locked instructions and transfers by place in the source, most first.
    pub sites: Vec<Site>,
}

/// One lock, per visit of a role.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// Where it is taken most.
    pub site: String,
    /// How often it is taken.
    pub taken: f64,
    /// Saturated transfers while it is held, its own line included.
    pub transfers: f64,
    /// Accesses while it is held.
    pub accesses: f64,
}

/// One place in the source, per visit of a role.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// File and line.
    pub place: String,
    /// Locked instructions and fences.
    pub locked: f64,
    /// Transfers in the recorded order.
    pub recorded: f64,
}

const LINE: u32 = 6;

/// One visit in so many makes a line contended.
const CONTENDED: usize = 10;

/// Who has a copy of a line, and how it fared.
#[derive(Debug, Default)]
struct Line {
    holders: HashSet<u32>,
    /// For each thread its last visit to this line, and how many there were.
    visits: HashMap<u32, (usize, usize)>,
    is_written: bool,
    moves: usize,
}

impl Line {
    /// Takes note of an access in a thread's n-th visit; true if the line had to move.
    fn access(&mut self, thread: u32, visit: usize, writes: bool) -> bool {
        let others = self.holders.iter().any(|holder| *holder != thread);
        let moves = others && (writes || !self.holders.contains(&thread));
        if writes {
            self.holders.clear();
            self.is_written = true;
        }
        self.holders.insert(thread);
        let (last, count) = self.visits.entry(thread).or_insert((usize::MAX, 0));
        *count += usize::from(*last != visit);
        *last = visit;
        self.moves += usize::from(moves);
        moves
    }

    /// Whether many threads would fight for it, given how many visits each thread made in all.
    fn is_contended(&self, of_threads: &HashMap<u32, usize>) -> bool {
        let regulars = self
            .visits
            .iter()
            .filter(|(thread, (_, count))| count * CONTENDED >= of_threads[thread].max(1))
            .count();
        let visits: usize = self.visits.values().map(|(_, count)| count).sum();
        self.is_written && (regulars > 1 || (self.moves > 0 && self.moves * CONTENDED >= visits))
    }
}

const fn touches(access: Access) -> bool {
    matches!(access, Access::Load | Access::Store | Access::Locked)
}

const fn line_of(event: &Event) -> usize {
    event.address >> LINE
}

/// The lines that are contended, and for every event whether its line moved.
fn follow(events: &[Event]) -> (HashSet<usize>, Vec<bool>) {
    let mut lines: HashMap<usize, Line> = HashMap::new();
    let mut visits: HashMap<u32, usize> = HashMap::new();
    let moved = events
        .iter()
        .map(|event| {
            let visit = visits.entry(event.thread).or_default();
            *visit += usize::from(event.access == Access::Mark);
            touches(event.access)
                && lines.entry(line_of(event)).or_default().access(
                    event.thread,
                    *visit,
                    event.access != Access::Load,
                )
        })
        .collect();
    let contended = lines
        .into_iter()
        .filter(|(_, line)| line.is_contended(&visits))
        .map(|(line, _)| line)
        .collect();
    (contended, moved)
}

/// Counts what the given threads do. Events before a thread's first mark and after its last are left out.
pub fn count(events: &[Event], threads: &[u32]) -> Role {
    let (contended, moved) = follow(events);
    let mut tally = Tally::default();
    for thread in threads {
        let own: Vec<usize> = (0..events.len())
            .filter(|at| events[*at].thread == *thread)
            .collect();
        let marks: Vec<usize> = (0..own.len())
            .filter(|at| events[own[*at]].access == Access::Mark)
            .collect();
        for pair in marks.windows(2) {
            tally.visit(events, &own[pair[0] + 1..pair[1]], &moved, &contended);
        }
    }
    tally.into_role(&locks_of_many(events))
}

/// The locks that more than one thread takes.
fn locks_of_many(events: &[Event]) -> HashSet<usize> {
    let mut takers: HashMap<usize, HashSet<u32>> = HashMap::new();
    for event in events.iter().filter(|e| e.access == Access::Acquired) {
        takers
            .entry(event.address)
            .or_default()
            .insert(event.thread);
    }
    takers
        .into_iter()
        .filter(|(_, threads)| threads.len() > 1)
        .map(|(lock, _)| lock)
        .collect()
}

#[derive(Debug, Default)]
struct LockTally {
    taken: usize,
    transfers: usize,
    accesses: usize,
    sites: BTreeMap<String, usize>,
}

#[derive(Debug, Default)]
struct Tally {
    visits: usize,
    loads: usize,
    stores: usize,
    locked: usize,
    recorded: usize,
    outside: usize,
    locks: HashMap<usize, LockTally>,
    sites: BTreeMap<String, (usize, usize)>,
}

impl Tally {
    fn visit(
        &mut self,
        events: &[Event],
        own: &[usize],
        moved: &[bool],
        contended: &HashSet<usize>,
    ) {
        self.visits += 1;
        let mut held: Vec<usize> = Vec::new();
        // A line that moved once in this visit stays: nobody else comes in between two of its instructions.
        let mut visited: HashSet<usize> = HashSet::new();
        for (position, at) in own.iter().enumerate() {
            let event = &events[*at];
            match event.access {
                Access::Load => self.loads += 1,
                Access::Store => self.stores += 1,
                Access::Locked | Access::Fence => {
                    self.locked += 1;
                    self.sites.entry(place(event)).or_default().0 += 1;
                }
                Access::Acquired => {
                    held.push(event.address);
                    let lock = self.locks.entry(event.address).or_default();
                    lock.taken += 1;
                    *lock.sites.entry(place(event)).or_default() += 1;
                    continue;
                }
                Access::Released => {
                    held.retain(|lock| *lock != event.address);
                    continue;
                }
                Access::Mark => continue,
            }
            if moved[*at] {
                self.recorded += 1;
                self.sites.entry(place(event)).or_default().1 += 1;
            }
            if event.access == Access::Fence {
                continue;
            }
            let is_transfer = contended.contains(&line_of(event)) && visited.insert(line_of(event));
            // The instruction that takes a lock is part of what the lock serialises.
            let taking = own
                .get(position + 1)
                .map(|next| &events[*next])
                .filter(|next| next.access == Access::Acquired && next.address == event.address)
                .map(|next| next.address);
            match taking.or(held.last().copied()) {
                Some(lock) => {
                    let lock = self.locks.entry(lock).or_default();
                    lock.transfers += usize::from(is_transfer);
                    lock.accesses += 1;
                }
                None => self.outside += usize::from(is_transfer),
            }
        }
    }

    fn into_role(self, shared_locks: &HashSet<usize>) -> Role {
        let per_visit = |count: usize| count as f64 / self.visits.max(1) as f64;
        let mut locks: Vec<Lock> = self
            .locks
            .iter()
            .filter(|(address, _)| shared_locks.contains(address))
            .map(|(_, lock)| Lock {
                site: lock
                    .sites
                    .iter()
                    .max_by_key(|(_, times)| **times)
                    .map(|(site, _)| site.clone())
                    .unwrap_or_default(),
                taken: per_visit(lock.taken),
                transfers: per_visit(lock.transfers),
                accesses: per_visit(lock.accesses),
            })
            .collect();
        locks.sort_by(|a, b| b.transfers.total_cmp(&a.transfers));
        let mut sites: Vec<Site> = self
            .sites
            .iter()
            .map(|(place, (locked, recorded))| Site {
                place: place.clone(),
                locked: per_visit(*locked),
                recorded: per_visit(*recorded),
            })
            .collect();
        sites.sort_by(|a, b| (b.locked + b.recorded).total_cmp(&(a.locked + a.recorded)));
        Role {
            visits: self.visits,
            loads: per_visit(self.loads),
            stores: per_visit(self.stores),
            locked: per_visit(self.locked),
            recorded: per_visit(self.recorded),
            outside: per_visit(self.outside),
            locks,
            sites,
        }
    }
}

/// File and line, from the crate's `src` on.
fn place(event: &Event) -> String {
    let file = event.site.file();
    let short = file.split("crates/").last().unwrap_or(file);
    format!("{}:{}", short.replace("/src/", "/"), event.site.line())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    const PRODUCER: u32 = 1;
    const WORKER: u32 = 2;
    const LOCK: usize = 0x1000;
    const DATA: usize = 0x2000;
    const PRIVATE: usize = 0x3000;

    #[track_caller]
    fn event(thread: u32, address: usize, access: Access) -> Event {
        Event {
            thread,
            address,
            access,
            site: Location::caller(),
        }
    }

    /// A visit that writes `DATA` under `LOCK` and something of its own outside.
    fn visit(thread: u32) -> Vec<Event> {
        vec![
            event(thread, PRIVATE + 64 * thread as usize, Access::Store),
            event(thread, LOCK, Access::Locked),
            event(thread, LOCK, Access::Acquired),
            event(thread, DATA, Access::Store),
            event(thread, DATA + 8, Access::Load),
            event(thread, LOCK, Access::Released),
            event(thread, LOCK, Access::Locked),
            event(thread, 0, Access::Mark),
        ]
    }

    fn alternating(rounds: usize) -> Vec<Event> {
        let mut events = vec![
            event(PRODUCER, 0, Access::Mark),
            event(WORKER, 0, Access::Mark),
        ];
        for _ in 0..rounds {
            events.extend(visit(PRODUCER));
            events.extend(visit(WORKER));
        }
        events
    }

    #[test]
    fn two_threads_that_alternate_move_the_lock_and_its_data_once_a_visit() {
        let role = count(&alternating(100), &[PRODUCER]);
        assert_eq!(role.visits, 100);
        assert_eq!(role.locked, 2.0);
        assert_eq!(role.stores, 2.0);
        assert_eq!(role.loads, 1.0);
        // The first visit finds lines that nobody has.
        assert_eq!(role.recorded, 1.98);
        assert_eq!(role.outside, 0.0);
        assert_eq!(role.locks.len(), 1);
        assert_eq!(role.locks[0].taken, 1.0);
        assert_eq!(role.locks[0].transfers, 2.0);
    }

    #[test]
    fn a_thread_that_works_in_batches_moves_lines_less_often_and_saturated_as_often() {
        const BATCH: usize = 10;
        let mut events = vec![
            event(PRODUCER, 0, Access::Mark),
            event(WORKER, 0, Access::Mark),
        ];
        for _ in 0..10 {
            for thread in [PRODUCER, WORKER] {
                for _ in 0..BATCH {
                    events.extend(visit(thread));
                }
            }
        }
        let role = count(&events, &[PRODUCER]);
        assert_eq!(role.recorded, 0.18);
        assert_eq!(role.locks[0].transfers, 2.0);
    }

    #[test]
    fn a_line_that_hardly_ever_moves_is_not_contended() {
        let mut events = vec![event(PRODUCER, 0, Access::Mark)];
        for _ in 0..10 {
            events.push(event(WORKER, LOCK, Access::Load));
            (0..100).for_each(|_| events.extend(visit(PRODUCER)));
        }
        let role = count(&events, &[PRODUCER]);
        assert_eq!(role.recorded, 0.01);
        assert_eq!(role.outside, 0.0);
        assert!(role.locks.is_empty(), "one thread takes it");
    }

    #[test]
    fn what_one_thread_alone_accesses_is_not_contended() {
        let mut events = vec![event(PRODUCER, 0, Access::Mark)];
        (0..10).for_each(|_| events.extend(visit(PRODUCER)));
        let role = count(&events, &[PRODUCER]);
        assert_eq!((role.recorded, role.outside), (0.0, 0.0));
        assert!(role.locks.is_empty());
    }
}
