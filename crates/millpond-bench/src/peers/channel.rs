//! A channel, as a workload uses it.

use std::fmt::Debug;
use std::marker::Send as StdSend;

/// A way for messages from some threads to others.
pub trait Channel {
    /// Its name.
    const NAME: &'static str;

    /// The sending end. Each producer has one.
    type Sender: Send + StdSend;

    /// The receiving end. Each consumer has one.
    type Receiver: Receive + StdSend;

    /// Opens one.
    fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver>;
}

/// The ends that a channel should connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// How many threads send.
    pub producers: usize,
    /// How many threads receive.
    pub consumers: usize,
    /// How many messages it may hold; `None` if it has no bound.
    pub bound: Option<usize>,
}

/// Sends a message, and waits as long as there is no room.
pub trait Send {
    /// Sends `message`.
    fn send(&mut self, message: u64);
}

/// Receives a message, and waits as long as there is none.
pub trait Receive {
    /// Receives the next message.
    fn receive(&mut self) -> u64;
}

/// The ends of an open channel, one for each thread.
#[derive(Debug)]
pub struct Opened<S, R> {
    /// One for each producer.
    pub senders: Vec<S>,
    /// One for each consumer.
    pub receivers: Vec<R>,
}

impl<S: Clone, R: Clone> Opened<S, R> {
    /// Clones the ends of a channel that any number of threads can hold.
    pub(super) fn cloned(ends: Ends, sender: S, receiver: R) -> Self {
        Opened {
            senders: vec![sender; ends.producers],
            receivers: vec![receiver; ends.consumers],
        }
    }
}

/// A peer that is a crate with `bounded`, `unbounded` and ends that can be cloned.
macro_rules! cloned_channel {
    ($(#[$doc:meta])* $peer:ident, $library:ident, $name:literal) => {
        use super::{Channel, Ends, Opened, Receive, Send};
        use $library::{Receiver, Sender, bounded, unbounded};

        $(#[$doc])*
        #[derive(Debug)]
        pub struct $peer;

        impl Channel for $peer {
            const NAME: &'static str = $name;
            type Sender = Sender<u64>;
            type Receiver = Receiver<u64>;

            fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver> {
                let (sender, receiver) = ends.bound.map_or_else(unbounded, bounded);
                Opened::cloned(ends, sender, receiver)
            }
        }

        impl Send for Sender<u64> {
            fn send(&mut self, message: u64) {
                Sender::send(self, message).expect("a receiver is there");
            }
        }

        impl Receive for Receiver<u64> {
            fn receive(&mut self) -> u64 {
                self.recv().expect("a sender is there, or a message")
            }
        }
    };
}

pub(super) use cloned_channel;
