//! The scripts of `queue_model.rs`: what can be done to a queue, at random and from a file.
//!
//! A file says on its first line which queue it is, `Delay bound 1` or `FifoGrowing unbounded`, and then has
//! one step on each line, written as a failure prints it: `OfferAfter(0, 1)`, `Remove { divisor: 2,
//! limit: 1 }`. Lines that begin with `#` are for people.

use crate::queue_kit::Flavor;
use proptest::prelude::*;
use std::str::FromStr;

/// One step of a script. Numbers that choose among what is there are taken modulo its length.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Offer(u8),
    OfferFirst(u8),
    OfferAfter(u8, u64),
    Poll,
    PollLast,
    Remove { divisor: u8, limit: usize },
    Drain(usize),
    SetCapacity(usize),
    Advance(u64),
    PutLater(u8),
    TakeLater,
    Putter(usize),
    Taker(usize),
    PutterLeaves(usize),
    TakerLeaves(usize),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..24_u8).prop_map(Step::Offer),
        2 => (0..24_u8).prop_map(Step::OfferFirst),
        2 => (0..24_u8, 0..20_u64).prop_map(|(value, after)| Step::OfferAfter(value, after)),
        4 => Just(Step::Poll),
        2 => Just(Step::PollLast),
        1 => (1..5_u8, 0..4_usize).prop_map(|(divisor, limit)| Step::Remove { divisor, limit }),
        1 => (0..4_usize).prop_map(Step::Drain),
        1 => (0..30_usize).prop_map(Step::SetCapacity),
        2 => (0..12_u64).prop_map(Step::Advance),
        4 => (0..24_u8).prop_map(Step::PutLater),
        4 => Just(Step::TakeLater),
        3 => any::<usize>().prop_map(Step::Putter),
        3 => any::<usize>().prop_map(Step::Taker),
        1 => any::<usize>().prop_map(Step::PutterLeaves),
        1 => any::<usize>().prop_map(Step::TakerLeaves),
    ]
}

/// A script from a file.
pub(crate) struct Script {
    pub(crate) flavor: Flavor,
    pub(crate) bound: Option<usize>,
    pub(crate) steps: Vec<Step>,
}

/// The words and the numbers of a line; everything else is punctuation.
fn words(line: &str) -> (Vec<&str>, Vec<u64>) {
    let all = line.split(|letter: char| !letter.is_alphanumeric());
    let (numbers, words): (Vec<&str>, Vec<&str>) = all
        .filter(|word| !word.is_empty())
        .partition(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let numbers = numbers.into_iter().filter_map(|word| word.parse().ok());
    (words, numbers.collect())
}

impl FromStr for Step {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (words, numbers) = words(line);
        let name = words.first().copied().unwrap_or_default();
        let byte = |number: u64| u8::try_from(number).map_err(|_| format!("too large: {line}"));
        Ok(match (name, numbers.as_slice()) {
            ("Offer", [value]) => Step::Offer(byte(*value)?),
            ("OfferFirst", [value]) => Step::OfferFirst(byte(*value)?),
            ("OfferAfter", [value, after]) => Step::OfferAfter(byte(*value)?, *after),
            ("Poll", []) => Step::Poll,
            ("PollLast", []) => Step::PollLast,
            ("Remove", [divisor, limit]) => Step::Remove {
                divisor: byte(*divisor)?,
                limit: *limit as usize,
            },
            ("Drain", [max]) => Step::Drain(*max as usize),
            ("SetCapacity", [capacity]) => Step::SetCapacity(*capacity as usize),
            ("Advance", [by]) => Step::Advance(*by),
            ("PutLater", [value]) => Step::PutLater(byte(*value)?),
            ("TakeLater", []) => Step::TakeLater,
            ("Putter", [which]) => Step::Putter(*which as usize),
            ("Taker", [which]) => Step::Taker(*which as usize),
            ("PutterLeaves", [which]) => Step::PutterLeaves(*which as usize),
            ("TakerLeaves", [which]) => Step::TakerLeaves(*which as usize),
            _ => return Err(format!("no step of a queue: {line}")),
        })
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let first = lines.next().ok_or("there is no line")?;
        let (words, numbers) = words(first);
        let flavor = match words.first().copied() {
            Some("FifoBounded") => Flavor::FifoBounded,
            Some("FifoGrowing") => Flavor::FifoGrowing,
            Some("Deque") => Flavor::Deque,
            Some("Priority") => Flavor::Priority,
            Some("Aging") => Flavor::Aging,
            Some("Delay") => Flavor::Delay,
            Some("Weighed") => Flavor::Weighed,
            _ => return Err(format!("the first line says which queue it is: {first}")),
        };
        Ok(Script {
            flavor,
            bound: numbers.first().map(|bound| *bound as usize),
            steps: lines.map(str::parse).collect::<Result<_, _>>()?,
        })
    }
}

/// What a failure prints can be played from a file.
#[test]
fn every_step_is_read_as_it_is_printed() {
    crate::proptest_kit::ask(300, &step(), |step| {
        let printed = format!("{step:?}");
        let read: Step = printed.parse().unwrap();
        assert_eq!(format!("{read:?}"), printed);
    });
}
