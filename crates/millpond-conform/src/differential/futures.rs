//! The steps of scripts for completable futures.
//!
//! A step makes a *node* of a graph, or does something to one: `combine 3 of=1,2 throws on=queue` makes node 3 from the nodes
//! 1 and 2; its function throws, and runs on an executor that keeps the task until `go 3`.

use super::script::Number;
use std::fmt;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FutureStep {
    /// What is done.
    pub verb: Verb,
    /// The node that is made, or to which it is done.
    pub node: Number,
    /// The nodes it speaks of: its sources, then the one that its function returns, or the node itself.
    pub names: Vec<Number>,
    /// Whether its function throws.
    pub throws: bool,
    /// Where its function runs.
    pub place: Place,
}

/// Where the function of a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the thread that completes the source.
    InPlace,
    /// On an executor that runs it at once.
    Direct,
    /// On an executor that keeps it until the script says `go`.
    Queue,
    /// On an executor that rejects it.
    Rejects,
}

impl Place {
    /// All of them, with their names in scripts.
    pub const ALL: [(Place, &'static str); 4] = [
        (Place::InPlace, "here"),
        (Place::Direct, "direct"),
        (Place::Queue, "queue"),
        (Place::Rejects, "rejects"),
    ];
}

macro_rules! verbs {
    ($($verb:ident $name:literal $shape:ident)*) => {
        /// What a step does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "they have Java's names")]
        pub enum Verb {
            $($verb),*
        }

        impl Verb {
            /// All of them.
            pub const ALL: &'static [Verb] = &[$(Verb::$verb),*];

            /// Its name in scripts.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Verb::$verb => $name),*
                }
            }

            /// How many nodes it speaks of.
            pub const fn shape(self) -> Shape {
                match self {
                    $(Verb::$verb => Shape::$shape),*
                }
            }
        }
    };
}

/// What a step speaks of besides its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It makes a node from nothing.
    Root,
    /// It makes a node from one, without a function.
    Plain,
    /// It makes a node from one by a function.
    One,
    /// It makes a node from one by a function that returns another.
    Composed,
    /// It makes a node from two by a function.
    Two,
    /// It makes a node from any number.
    Many,
    /// It does something to the node.
    Act,
}

verbs! {
    New "new" Root
    Completed "completed" Root
    Failed "failed" Root
    Apply "apply" One
    Accept "accept" One
    Run "run-after" One
    Handle "handle" One
    WhenComplete "when-complete" One
    Exceptionally "exceptionally" One
    Compose "compose" Composed
    ExceptionallyCompose "exceptionally-compose" Composed
    Combine "combine" Two
    AcceptBoth "accept-both" Two
    RunAfterBoth "run-after-both" Two
    ApplyToEither "apply-to-either" Two
    AcceptEither "accept-either" Two
    RunAfterEither "run-after-either" Two
    Copy "copy" Plain
    Minimal "minimal" Plain
    AllOf "all-of" Many
    AnyOf "any-of" Many
    Complete "complete" Act
    Fail "fail-with" Act
    Cancel "cancel-node" Act
    OrTimeout "or-timeout" Act
    DefaultOnTimeout "complete-on-timeout" Act
    TimeOut "time-out" Act
    DefaultNow "default-now" Act
    Go "go" Act
}

impl Verb {
    /// Whether the first of several sources wins.
    pub fn races(self) -> bool {
        matches!(
            self,
            Verb::ApplyToEither | Verb::AcceptEither | Verb::RunAfterEither | Verb::AnyOf
        )
    }
}

impl FutureStep {
    /// Whether it makes its node.
    pub fn makes(&self) -> bool {
        self.verb.shape() != Shape::Act
    }

    /// The sources of the node it makes.
    pub fn sources(&self) -> &[Number] {
        match self.verb.shape() {
            Shape::Composed => &self.names[..1],
            _ => &self.names,
        }
    }

    /// Reads the words of a step; `None` if the first is no verb of futures.
    pub(super) fn read(words: &[&str]) -> Option<Result<Self, String>> {
        let (first, rest) = words.split_first()?;
        let verb = *Verb::ALL.iter().find(|verb| verb.name() == *first)?;
        // `run 1` and so on are steps of pools.
        Some(Self::read_as(verb, rest))
    }

    fn read_as(verb: Verb, words: &[&str]) -> Result<Self, String> {
        let number = |word: &str| {
            word.parse::<Number>()
                .map_err(|_| format!("`{word}` should be a number"))
        };
        let (node, rest) = words
            .split_first()
            .ok_or("a step needs the number of a node")?;
        let mut step = FutureStep {
            verb,
            node: number(node)?,
            names: Vec::new(),
            throws: false,
            place: Place::InPlace,
        };
        for word in rest {
            match word.split_once('=') {
                None if *word == "throws" => step.throws = true,
                Some(("of" | "to", "")) => {}
                Some(("of" | "to", nodes)) => {
                    for node in nodes.split(',') {
                        step.names.push(number(node)?);
                    }
                }
                Some(("on", place)) => {
                    let mut all = Place::ALL.iter();
                    let found = all.find(|(_, name)| *name == place);
                    step.place = found
                        .ok_or_else(|| format!("no place is called `{place}`"))?
                        .0;
                }
                _ => return Err(format!("`{word}` belongs to no step of futures")),
            }
        }
        let wanted = match verb.shape() {
            Shape::Root | Shape::Act => 0..=0,
            Shape::One | Shape::Plain => 1..=1,
            Shape::Two | Shape::Composed => 2..=2,
            Shape::Many => 0..=usize::MAX,
        };
        if !wanted.contains(&step.names.len()) {
            return Err(format!("`{}` of so many nodes makes no sense", verb.name()));
        }
        if step.names.contains(&step.node) {
            return Err(format!("node {} cannot be made of itself", step.node));
        }
        if verb.shape() == Shape::Act {
            step.names.push(step.node);
        }
        Ok(step)
    }
}

impl fmt::Display for FutureStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.name(), self.node)?;
        let list = |nodes: &[Number]| {
            let words: Vec<String> = nodes.iter().map(Number::to_string).collect();
            words.join(",")
        };
        match self.verb.shape() {
            Shape::Root | Shape::Act => {}
            Shape::Composed => {
                write!(
                    f,
                    " of={} to={}",
                    list(&self.names[..1]),
                    list(&self.names[1..])
                )?;
            }
            _ => write!(f, " of={}", list(&self.names))?,
        }
        if self.throws {
            f.write_str(" throws")?;
        }
        match self.place {
            Place::InPlace => Ok(()),
            place => {
                let name = Place::ALL.iter().find(|(one, _)| *one == place);
                write!(f, " on={}", name.map_or("", |(_, name)| name))
            }
        }
    }
}

/// The nodes that a node may be completed with: by the same call, because it depends on them, or on what they depend on.
#[derive(Debug, Default)]
pub(super) struct Ancestors(Vec<(Number, Vec<Number>)>);

impl Ancestors {
    fn of(&self, node: Number) -> Vec<Number> {
        let known = self.0.iter().find(|(known, _)| *known == node);
        known.map(|(_, all)| all.clone()).unwrap_or_default()
    }

    /// Notes the node that this step makes.
    pub(super) fn add(&mut self, step: &FutureStep) {
        let mut all = vec![step.node];
        for &name in &step.names {
            all.extend(self.of(name));
        }
        all.sort_unstable();
        all.dedup();
        self.0.push((step.node, all));
    }

    /// Whether one call can complete several of these (DIFF-19).
    pub(super) fn share(&self, nodes: &[Number]) -> bool {
        let mut all: Vec<Number> = nodes.iter().flat_map(|&node| self.of(node)).collect();
        let before = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() < before
    }
}
