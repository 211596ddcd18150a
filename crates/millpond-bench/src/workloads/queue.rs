//! What does a message cost, from a thread that sends to one that receives, both of which wait when
//! they must?
//!
//! Every producer sends its share of the numbers from 1 to n, then a 0. Every consumer receives until
//! it gets a 0. There are as many of the one as of the other, and messages of one producer stay in
//! order, so when the last 0 is out everything is out. No channel needs to be closed, and no consumer
//! has a quota: a fast one takes more.
//!
//! Messages are one word. Larger ones measure `memcpy`, boxed ones the allocator.

use crate::crew::{self, Member};
use crate::figure::Figure;
use crate::harness::{Candidate, Sample, Standing, Suite, Workload};
use crate::peers::concurrent_queue::SPINS;
use crate::peers::{Channel, Ends, Receive, Send};
use crate::peers::{concurrent_queue, crossbeam, flume, kanal, millpond, std_mpsc};
use anyhow::{Result, ensure};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "queue",
    about: "what a message costs, sent and received with waiting",
    workloads,
    notes: |_| Vec::new(),
};

/// Producers and consumers. There must be as many of the one as of the other.
const THREADS: [usize; 3] = [1, 2, 4];

const BOUNDS: [Option<usize>; 3] = [Some(1), Some(1024), None];

/// Without a bound the queue may grow by a whole round: this many words are no matter.
const MOST_MESSAGES: u64 = 1_000_000;

/// One way to send messages, and where it makes sense.
struct Entry {
    name: &'static str,
    standing: Standing,
    fits: fn(Ends) -> bool,
    run: fn(Ends, u64) -> Result<Sample>,
}

const fn entry<C: Channel>(standing: Standing, fits: fn(Ends) -> bool) -> Entry {
    Entry {
        name: C::NAME,
        standing,
        fits,
        run: run::<C>,
    }
}

/// THE table of candidates.
const ENTRIES: &[Entry] = &[
    entry::<millpond::Bounded>(Standing::Ours, |ends| ends.bound.is_some()),
    entry::<millpond::Growing>(Standing::Ours, |_| true),
    entry::<crossbeam::Crossbeam>(Standing::Peer, |_| true),
    entry::<flume::Flume>(Standing::Peer, |_| true),
    entry::<kanal::Kanal>(Standing::Peer, |_| true),
    entry::<std_mpsc::StdMpsc>(Standing::Peer, |ends| ends.consumers == 1),
    entry::<concurrent_queue::Concurrent>(Standing::Reference { because: SPINS }, |_| true),
];

fn workloads() -> Vec<Workload> {
    let all = THREADS.into_iter().flat_map(|threads| {
        BOUNDS.map(|bound| Ends {
            producers: threads,
            consumers: threads,
            bound,
        })
    });
    all.map(workload).collect()
}

fn workload(ends: Ends) -> Workload {
    let bound = ends
        .bound
        .map_or("unbounded".into(), |bound| format!("capacity {bound}"));
    let candidates = ENTRIES.iter().filter(|entry| (entry.fits)(ends));
    Workload {
        suite: SUITE.name,
        name: format!("{}p{}c, {bound}", ends.producers, ends.consumers),
        figures: vec![Figure::nanos("message")],
        most_operations: MOST_MESSAGES,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates: candidates.map(|entry| candidate(entry, ends)).collect(),
    }
}

fn candidate(entry: &'static Entry, ends: Ends) -> Candidate {
    Candidate {
        name: entry.name,
        standing: entry.standing,
        counts_allocations: true,
        run: Box::new(move |messages| (entry.run)(ends, messages)),
    }
}

/// The checksum that a consumer keeps of its messages.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    messages: u64,
    sum: u64,
}

/// Moves `messages` messages, or as many more as share out evenly, and checks that they arrived.
fn run<C: Channel>(ends: Ends, messages: u64) -> Result<Sample> {
    let share = messages.div_ceil(ends.producers as u64).max(1);
    let sent = share * ends.producers as u64;
    let (tallies, done) = move_all::<C, Tally>(ends, share, |tally, message| {
        tally.messages += 1;
        tally.sum += message;
    });
    let arrived: u64 = tallies.iter().map(|tally| tally.messages).sum();
    let sum: u64 = tallies.iter().map(|tally| tally.sum).sum();
    ensure!(
        arrived == sent,
        "{sent} messages were sent and {arrived} arrived"
    );
    ensure!(
        sum == sent * (sent + 1) / 2,
        "{sent} messages arrived, but they are not the ones that were sent"
    );
    Ok(Sample {
        operations: sent,
        ..done
    })
}

/// The result of a thread: a consumer's checksum, and its end of the channel. The end stays
/// open until all are done, so that no send fails.
type Left<A, R> = Option<(A, R)>;

/// Lets every producer send `share` numbers, and every consumer fold what it gets.
fn move_all<C: Channel, A: Default + std::marker::Send>(
    ends: Ends,
    share: u64,
    fold: impl Fn(&mut A, u64) + Copy + std::marker::Send,
) -> (Vec<A>, Sample) {
    let opened = C::open(ends);
    let mut members: Vec<Member<'_, Left<A, C::Receiver>>> = Vec::new();
    for (index, mut sender) in (0..).zip(opened.senders) {
        members.push(Box::new(move || {
            for number in 1..=share {
                sender.send(index * share + number);
            }
            sender.send(0);
            None
        }));
    }
    for mut receiver in opened.receivers {
        members.push(Box::new(move || {
            let mut kept = A::default();
            loop {
                match receiver.receive() {
                    0 => return Some((kept, receiver)),
                    message => fold(&mut kept, message),
                }
            }
        }));
    }
    let done = crew::run(members);
    let sample = Sample {
        operations: share * ends.producers as u64,
        elapsed: done.elapsed,
        usage: done.usage,
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    };
    let left = done.results.into_iter().flatten();
    (left.map(|(kept, _receiver)| kept).collect(), sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn small(threads: usize, bound: Option<usize>) -> Ends {
        Ends {
            producers: threads,
            consumers: threads,
            bound,
        }
    }

    #[test]
    fn every_candidate_of_every_workload_moves_the_messages_it_was_given() {
        for workload in workloads() {
            for candidate in &workload.candidates {
                let sample = (candidate.run)(101).unwrap();
                let name = format!("{}: {}", workload.name, candidate.name);
                assert!(
                    (101..=104).contains(&sample.operations),
                    "{name}: {sample:?}"
                );
                assert!(!sample.elapsed.is_zero(), "{name}");
            }
        }
    }

    fn moves_each_once_and_in_order<C: Channel>(threads: usize, bound: Option<usize>) {
        const SHARE: u64 = 50;
        let ends = small(threads, bound);
        let (got, _) = move_all::<C, Vec<u64>>(ends, SHARE, Vec::push);
        for one in &got {
            let mut latest = HashMap::new();
            for &message in one {
                let producer = (message - 1) / SHARE;
                let before = latest.insert(producer, message).unwrap_or_default();
                assert!(before < message, "{}: {ends:?}: {one:?}", C::NAME);
            }
        }
        let mut all = got.concat();
        all.sort_unstable();
        let sent: Vec<u64> = (1..=SHARE * threads as u64).collect();
        assert_eq!(all, sent, "{}: {ends:?}", C::NAME);
    }

    #[test]
    fn messages_arrive_once_each_and_in_the_order_of_their_producer() {
        for (threads, bound) in [(1, Some(1)), (2, Some(1024)), (4, Some(1)), (4, None)] {
            if bound.is_some() {
                moves_each_once_and_in_order::<millpond::Bounded>(threads, bound);
            }
            moves_each_once_and_in_order::<millpond::Growing>(threads, bound);
            moves_each_once_and_in_order::<crossbeam::Crossbeam>(threads, bound);
            moves_each_once_and_in_order::<flume::Flume>(threads, bound);
            moves_each_once_and_in_order::<kanal::Kanal>(threads, bound);
            moves_each_once_and_in_order::<concurrent_queue::Concurrent>(threads, bound);
        }
        moves_each_once_and_in_order::<std_mpsc::StdMpsc>(1, Some(1));
        moves_each_once_and_in_order::<std_mpsc::StdMpsc>(1, None);
    }

    /// Loses the tenth message, and invents one in its place.
    struct Forger;

    struct Forged<S>(S, u64);

    impl Channel for Forger {
        const NAME: &'static str = "forger";
        type Sender = Forged<crossbeam_channel::Sender<u64>>;
        type Receiver = crossbeam_channel::Receiver<u64>;

        fn open(ends: Ends) -> crate::peers::Opened<Self::Sender, Self::Receiver> {
            let opened = crossbeam::Crossbeam::open(ends);
            crate::peers::Opened {
                senders: opened
                    .senders
                    .into_iter()
                    .map(|sender| Forged(sender, 0))
                    .collect(),
                receivers: opened.receivers,
            }
        }
    }

    impl Send for Forged<crossbeam_channel::Sender<u64>> {
        fn send(&mut self, message: u64) {
            self.1 += 1;
            let message = if self.1 == 10 { 9 } else { message };
            Send::send(&mut self.0, message);
        }
    }

    #[test]
    fn a_channel_that_forges_a_message_is_detected() {
        let error = run::<Forger>(small(1, Some(4)), 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "20 messages arrived, but they are not the ones that were sent"
        );
    }

    #[test]
    fn the_rows_are_those_that_were_asked_for() {
        let names: Vec<_> = workloads()
            .into_iter()
            .map(|workload| workload.name)
            .collect();
        assert_eq!(names.len(), 9);
        for name in ["1p1c, capacity 1", "2p2c, capacity 1024", "4p4c, unbounded"] {
            assert!(
                names.iter().any(|one| one == name),
                "{name} is not among {names:?}"
            );
        }
    }
}
