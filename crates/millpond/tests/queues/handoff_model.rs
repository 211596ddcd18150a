//! Hand-off and transfer queues beside a model that is too simple to be wrong.
//!
//! A history is a list of steps that do not block: offers, polls, futures that begin to wait, look
//! again and give up. All short histories are run, and many long ones from fixed seeds. After each
//! step the queue and the model must have answered the same, and have woken the same; at the end
//! every element must be in one place.

use millpond::queue::{
    AsyncQueue, BlockingQueue, HandOffQueue, SendFuture, Taken, TransferQueue, WaitSlot,
};
use millpond_testkit::CountingWaker;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

type Element = usize;

#[derive(Clone, Copy, Debug)]
enum Step {
    Offer,
    Poll,
    Send,
    Receive,
    PutBack,
    SendersLookAgain,
    ReceiversLookAgain,
    OldestSenderLeaves,
    YoungestSenderLeaves,
    OldestReceiverLeaves,
    YoungestReceiverLeaves,
}

const STEPS: [Step; 11] = [
    Step::Offer,
    Step::Poll,
    Step::Send,
    Step::Receive,
    Step::PutBack,
    Step::SendersLookAgain,
    Step::ReceiversLookAgain,
    Step::OldestSenderLeaves,
    Step::YoungestSenderLeaves,
    Step::OldestReceiverLeaves,
    Step::YoungestReceiverLeaves,
];

/// The result of a step. `Element`s in it belong to the caller again.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    In,
    Out(Element),
    Back(Element),
    Waits,
    Nothing,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Fair,
    Unfair,
    Transfer,
}

/// The model. Waiters are known by when they began: by their element, or by their number.
#[derive(Debug, Default)]
struct Model {
    /// In the order in which they are taken by a fair queue.
    producers: Vec<Element>,
    consumers: Vec<usize>,
    handed: BTreeMap<usize, Element>,
}

impl Model {
    fn next<E>(kind: Kind, line: &mut Vec<E>) -> Option<E> {
        match kind {
            Kind::Unfair => line.pop(),
            _ if line.is_empty() => None,
            _ => Some(line.remove(0)),
        }
    }

    fn hand(&mut self, kind: Kind, element: Element) -> bool {
        let Some(consumer) = Self::next(kind, &mut self.consumers) else {
            return false;
        };
        self.handed.insert(consumer, element);
        true
    }

    fn put_back(&mut self, kind: Kind, element: Element) {
        if !self.hand(kind, element) {
            match kind {
                Kind::Unfair => self.producers.push(element),
                _ => self.producers.insert(0, element),
            }
        }
    }
}

/// The real queue, in the shape that the steps need.
struct Real<'a> {
    queue: &'a dyn BlockingQueue<Element>,
    send: &'a dyn Fn(Element) -> SendFuture<'a, Element, HandOffQueue<Element>>,
    put_back: &'a dyn Fn(Element),
    consumers: &'a dyn Fn() -> usize,
}

struct Sender<'a> {
    element: Element,
    future: SendFuture<'a, Element, HandOffQueue<Element>>,
    bell: Arc<CountingWaker>,
    waker: Waker,
}

struct Receiver {
    number: usize,
    place: WaitSlot,
    bell: Arc<CountingWaker>,
    waker: Waker,
}

/// Both, side by side.
struct Run<'a> {
    kind: Kind,
    real: Real<'a>,
    model: Model,
    senders: Vec<Sender<'a>>,
    receivers: Vec<Receiver>,
    made: usize,
    /// The elements that came out or were returned.
    seen: Vec<Element>,
}

impl<'a> Run<'a> {
    fn fresh(&mut self) -> usize {
        self.made += 1;
        self.made - 1
    }

    fn agree(&mut self, real: Answer, model: Answer) {
        assert_eq!(real, model);
        if let Answer::Out(element) | Answer::Back(element) = real {
            self.seen.push(element);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Offer => self.offer(),
            Step::Poll => {
                let model = Model::next(self.kind, &mut self.model.producers);
                self.agree(out(self.real.queue.poll()), out(model));
            }
            Step::Send => self.send(),
            Step::Receive => self.receive(),
            Step::PutBack => {
                let element = self.fresh();
                (self.real.put_back)(element);
                self.model.put_back(self.kind, element);
            }
            Step::SendersLookAgain => self.senders_look_again(),
            Step::ReceiversLookAgain => self.receivers_look_again(),
            Step::OldestSenderLeaves => self.sender_leaves(0),
            Step::YoungestSenderLeaves => self.sender_leaves(self.senders.len().wrapping_sub(1)),
            Step::OldestReceiverLeaves => self.receiver_leaves(0),
            Step::YoungestReceiverLeaves => {
                self.receiver_leaves(self.receivers.len().wrapping_sub(1));
            }
        }
        self.check();
    }

    fn offer(&mut self) {
        let element = self.fresh();
        let model = if self.model.hand(self.kind, element) {
            Answer::In
        } else if matches!(self.kind, Kind::Transfer) {
            self.model.producers.push(element);
            Answer::In
        } else {
            Answer::Back(element)
        };
        let real = match self.real.queue.offer(element) {
            Ok(()) => Answer::In,
            Err(rejected) => Answer::Back(rejected.element),
        };
        self.agree(real, model);
    }

    fn send(&mut self) {
        let element = self.fresh();
        let (bell, waker) = CountingWaker::new();
        let mut future = (self.real.send)(element);
        let ready = Pin::new(&mut future)
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        assert_eq!(ready, self.model.hand(self.kind, element));
        if !ready {
            self.model.producers.push(element);
            self.senders.push(Sender {
                element,
                future,
                bell,
                waker,
            });
        }
    }

    fn receive(&mut self) {
        let number = self.fresh();
        // A number is not an element: it is accounted for at once.
        self.seen.push(number);
        let (bell, waker) = CountingWaker::new();
        let mut place = WaitSlot::default();
        let real = self.real.queue.poll_take(&mut place, &waker);
        match Model::next(self.kind, &mut self.model.producers) {
            Some(element) => self.agree(taken(real), Answer::Out(element)),
            None => {
                self.agree(taken(real), Answer::Waits);
                self.model.consumers.push(number);
                self.receivers.push(Receiver {
                    number,
                    place,
                    bell,
                    waker,
                });
            }
        }
    }

    fn senders_look_again(&mut self) {
        let model = &self.model;
        self.senders.retain_mut(|sender| {
            let ready = Pin::new(&mut sender.future)
                .poll(&mut Context::from_waker(&sender.waker))
                .is_ready();
            assert_eq!(ready, !model.producers.contains(&sender.element));
            !ready
        });
    }

    fn receivers_look_again(&mut self) {
        for mut receiver in std::mem::take(&mut self.receivers) {
            let real = self
                .real
                .queue
                .poll_take(&mut receiver.place, &receiver.waker);
            match self.model.handed.remove(&receiver.number) {
                Some(element) => self.agree(taken(real), Answer::Out(element)),
                None => {
                    self.agree(taken(real), Answer::Waits);
                    self.receivers.push(receiver);
                }
            }
        }
    }

    fn sender_leaves(&mut self, at: usize) {
        if at >= self.senders.len() {
            return;
        }
        let Sender {
            element, future, ..
        } = self.senders.remove(at);
        let before = self.model.producers.len();
        self.model.producers.retain(|producer| *producer != element);
        let model = if self.model.producers.len() < before {
            Answer::Back(element)
        } else {
            Answer::Nothing
        };
        let real = future.into_element().map_or(Answer::Nothing, Answer::Back);
        self.agree(real, model);
    }

    fn receiver_leaves(&mut self, at: usize) {
        if at >= self.receivers.len() {
            return;
        }
        let mut receiver = self.receivers.remove(at);
        self.model
            .consumers
            .retain(|consumer| *consumer != receiver.number);
        let model = self.model.handed.remove(&receiver.number);
        self.agree(
            out(self.real.queue.leave_take(&mut receiver.place)),
            out(model),
        );
        assert!(receiver.place.node.is_none(), "the place is given up");
    }

    /// Checked after every step.
    fn check(&self) {
        let len = match self.kind {
            Kind::Transfer => self.model.producers.len(),
            _ => 0,
        };
        assert_eq!(self.real.queue.len(), len);
        assert_eq!((self.real.consumers)(), self.model.consumers.len());
        for sender in &self.senders {
            let matched = !self.model.producers.contains(&sender.element);
            assert_eq!(sender.bell.count(), usize::from(matched));
        }
        for receiver in &self.receivers {
            let matched = self.model.handed.contains_key(&receiver.number);
            assert_eq!(receiver.bell.count(), usize::from(matched));
        }
    }

    /// All waiters give up, and every element must have been seen once.
    fn finish(mut self) {
        while !self.receivers.is_empty() {
            self.receiver_leaves(0);
        }
        while !self.model.producers.is_empty() {
            self.step(Step::Poll);
        }
        self.senders_look_again();
        assert!(self.senders.is_empty());
        assert_eq!(self.real.queue.poll(), None);
        self.seen.sort_unstable();
        assert!(self.seen.into_iter().eq(0..self.made));
    }
}

fn out(element: Option<Element>) -> Answer {
    element.map_or(Answer::Nothing, Answer::Out)
}

fn taken(taken: Taken<Element>) -> Answer {
    match taken {
        Taken::Got(element) => Answer::Out(element),
        Taken::Wait(_) => Answer::Waits,
    }
}

fn run(kind: Kind, history: impl Iterator<Item = Step>) {
    let follow = |real: Real<'_>| {
        let mut run = Run {
            kind,
            real,
            model: Model::default(),
            senders: Vec::new(),
            receivers: Vec::new(),
            made: 0,
            seen: Vec::new(),
        };
        history.for_each(|step| run.step(step));
        run.finish();
    };
    match kind {
        Kind::Transfer => {
            let queue = TransferQueue::unbounded();
            follow(Real {
                queue: &queue,
                send: &|element| queue.deliver(element),
                put_back: &|element| queue.put_back(element),
                consumers: &|| queue.waiting_consumers(),
            });
        }
        Kind::Fair | Kind::Unfair => {
            let queue = match kind {
                Kind::Unfair => HandOffQueue::unfair(),
                _ => HandOffQueue::fair(),
            };
            follow(Real {
                queue: &queue,
                send: &|element| queue.send(element),
                put_back: &|element| queue.put_back(element),
                consumers: &|| queue.waiting_consumers(),
            });
        }
    }
}

/// The `code`-th history of this many steps.
fn history(code: usize, length: u32) -> impl Iterator<Item = Step> {
    (0..length).map(move |at| STEPS[code / STEPS.len().pow(at) % STEPS.len()])
}

const SHORT: u32 = 5;

#[test]
fn a_fair_hand_off_answers_as_the_model_does_in_every_short_history() {
    (0..STEPS.len().pow(SHORT)).for_each(|code| run(Kind::Fair, history(code, SHORT)));
}

#[test]
fn an_unfair_hand_off_answers_as_the_model_does_in_every_short_history() {
    (0..STEPS.len().pow(SHORT)).for_each(|code| run(Kind::Unfair, history(code, SHORT)));
}

#[test]
fn a_transfer_queue_answers_as_the_model_does_in_every_short_history() {
    (0..STEPS.len().pow(SHORT)).for_each(|code| run(Kind::Transfer, history(code, SHORT)));
}

#[test]
fn all_answer_as_the_model_does_in_long_histories() {
    for seed in 1..=500_u64 {
        for kind in [Kind::Fair, Kind::Unfair, Kind::Transfer] {
            // Xorshift: any generator will do that gives the same history for the same seed.
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let history = std::iter::repeat_with(|| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                STEPS[usize::try_from(state % STEPS.len() as u64).expect("it is small")]
            });
            run(kind, history.take(200));
        }
    }
}
