//! `std::sync::mpsc`: one consumer only.

use super::{Channel, Ends, Opened, Receive, Send};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// `std::sync::mpsc::sync_channel` and `channel`.
#[derive(Debug)]
pub struct StdMpsc;

/// std has a type of sender for each kind of channel.
#[derive(Clone, Debug)]
pub enum StdSender {
    /// Of a channel with a bound.
    Bounded(SyncSender<u64>),
    /// Of a channel without.
    Unbounded(Sender<u64>),
}

impl Channel for StdMpsc {
    const NAME: &'static str = "std::sync::mpsc";
    type Sender = StdSender;
    type Receiver = Receiver<u64>;

    /// # Panics
    ///
    /// If more than one consumer is asked for.
    fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver> {
        assert_eq!(ends.consumers, 1, "std's channel has one consumer");
        let (sender, receiver) = match ends.bound {
            Some(bound) => {
                let (sender, receiver) = sync_channel(bound);
                (StdSender::Bounded(sender), receiver)
            }
            None => {
                let (sender, receiver) = channel();
                (StdSender::Unbounded(sender), receiver)
            }
        };
        Opened {
            senders: vec![sender; ends.producers],
            receivers: vec![receiver],
        }
    }
}

impl Send for StdSender {
    fn send(&mut self, message: u64) {
        let sent = match self {
            StdSender::Bounded(sender) => sender.send(message),
            StdSender::Unbounded(sender) => sender.send(message),
        };
        sent.expect("the receiver is there");
    }
}

impl Receive for Receiver<u64> {
    fn receive(&mut self) -> u64 {
        self.recv().expect("a sender is there, or a message")
    }
}
