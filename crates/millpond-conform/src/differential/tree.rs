//! A computation of a fork-join script: a tree, as text and as data.
//!
//! ```text
//! tree := 7                      a value
//!       | !3                     an error
//!       | (two T T)              invokeAll of two
//!       | (all T T T ..)         invokeAll of a list
//!       | (fork:201 T T T)       forks all, joins them in this order, and then throws the first error
//!       | (early:201 T T T)      the same, but the first error leaves the others unjoined
//!       | (try T)                catches an error
//!       | (detach T T ..)        forks all, and joins none
//!       | (cancel T)             forks, cancels and joins
//!       | (quiesce T T ..)       forks all, runs what is queued, and joins
//!       | (parts N)              a computation with counted completers
//! N    := (1ft N N ..)           its number, how it forks its parts, how it ends; and its parts
//! ```
//!
//! How a node forks: `f` one by one, each counted as it is forked; `s` sets the count, then forks; `a` adds to the
//! count, then forks; `i` counts and forks all but the last, and computes that one itself. How it ends: `t` tries to
//! complete, `p` propagates completion, `r` goes from node to node (`firstComplete`, `nextComplete`), `c` completes,
//! `q` has found something and completes the root, `x` throws, `-` leaves it to its parts (with `i`).

use std::fmt;

/// Values are below this, so that nothing overflows.
pub const MODULUS: i64 = 1_000_003;

/// A computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A value.
    Value(i64),
    /// It throws this.
    Error(i64),
    /// Parts that are computed together.
    Parts {
        /// The word, with an order of joins if it has one.
        verb: Verb,
        /// The parts.
        parts: Vec<Tree>,
    },
    /// Counted completers.
    Completers(Node),
}

/// How parts are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `invokeAll` of two.
    Two,
    /// `invokeAll` of many.
    All,
    /// Forked, and all joined in this order.
    Fork(Vec<usize>),
    /// Forked, and joined in this order until one throws.
    Early(Vec<usize>),
    /// Caught.
    Try,
    /// Forked, and never joined.
    Detach,
    /// Forked and cancelled.
    Cancel,
    /// Forked and left to `helpQuiesce`.
    Quiesce,
}

/// A node of a computation with counted completers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub id: i64,
    /// How it forks.
    pub forks: char,
    /// How it ends.
    pub ends: char,
    /// Its parts.
    pub parts: Vec<Node>,
}

impl Node {
    /// Whether one of the nodes ends in this way.
    pub fn has(&self, ends: char) -> bool {
        self.ends == ends || self.parts.iter().any(|part| part.has(ends))
    }

    /// Whether the order of its nodes is told: not if the root may end before its parts (DIFF-14).
    pub fn is_traced(&self) -> bool {
        !self.has('x') && !self.has('q')
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Value(value) => write!(f, "{value}"),
            Tree::Error(code) => write!(f, "!{code}"),
            Tree::Completers(node) => write!(f, "(parts {node})"),
            Tree::Parts { verb, parts } => {
                write!(f, "({verb}")?;
                parts.iter().try_for_each(|part| write!(f, " {part}"))?;
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, order) = match self {
            Verb::Two => ("two", None),
            Verb::All => ("all", None),
            Verb::Fork(order) => ("fork", Some(order)),
            Verb::Early(order) => ("early", Some(order)),
            Verb::Try => ("try", None),
            Verb::Detach => ("detach", None),
            Verb::Cancel => ("cancel", None),
            Verb::Quiesce => ("quiesce", None),
        };
        f.write_str(word)?;
        if let Some(order) = order {
            f.write_str(":")?;
            order.iter().try_for_each(|index| write!(f, "{index}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}{}{}", self.id, self.forks, self.ends)?;
        self.parts
            .iter()
            .try_for_each(|part| write!(f, " {part}"))?;
        f.write_str(")")
    }
}

/// Reads a tree from the words of a step.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn read(words: &[&str]) -> Result<Tree, String> {
    let text = words.join(" ");
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let mut tokens = spaced.split_whitespace();
    let tree = tree(&mut tokens).ok_or_else(|| format!("`{text}` is no computation"))?;
    match tokens.next() {
        None => Ok(tree),
        Some(more) => Err(format!("`{more}` is too much after `{tree}`")),
    }
}

type Tokens<'a> = std::str::SplitWhitespace<'a>;

fn tree(tokens: &mut Tokens<'_>) -> Option<Tree> {
    tree_from(tokens.next()?, tokens)
}

fn tree_from(first: &str, tokens: &mut Tokens<'_>) -> Option<Tree> {
    if first != "(" {
        let code = first.strip_prefix('!').map(str::parse);
        return match code {
            Some(code) => code.ok().map(Tree::Error),
            None => first.parse().ok().map(Tree::Value),
        };
    }
    let word = tokens.next()?;
    if word == "parts" {
        let node = (tokens.next()? == "(").then(|| node(tokens))??;
        return (tokens.next()? == ")").then_some(Tree::Completers(node));
    }
    let mut parts = Vec::new();
    loop {
        match tokens.next()? {
            ")" => break,
            first => parts.push(tree_from(first, tokens)?),
        }
    }
    let verb = verb(word, parts.len())?;
    Some(Tree::Parts { verb, parts })
}

fn verb(word: &str, parts: usize) -> Option<Verb> {
    let order = |digits: &str| {
        let digits = digits.chars().map(|digit| digit.to_digit(10));
        let order: Vec<usize> = digits
            .map(|it| it.map(|it| it as usize))
            .collect::<Option<_>>()?;
        (order.len() == parts && (0..parts).all(|part| order.contains(&part))).then_some(order)
    };
    Some(match (word.split_once(':'), parts) {
        (Some(("fork", digits)), _) => Verb::Fork(order(digits)?),
        (Some(("early", digits)), _) => Verb::Early(order(digits)?),
        (None, 2) if word == "two" => Verb::Two,
        (None, 1) if word == "try" => Verb::Try,
        (None, 1) if word == "cancel" => Verb::Cancel,
        (None, 1..) if word == "all" => Verb::All,
        (None, 1..) if word == "detach" => Verb::Detach,
        (None, 1..) if word == "quiesce" => Verb::Quiesce,
        _ => return None,
    })
}

fn node(tokens: &mut Tokens<'_>) -> Option<Node> {
    let word = tokens.next()?;
    let [forks, ends] = word
        .get(word.len().checked_sub(2)?..)?
        .chars()
        .collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let id = word[..word.len() - 2].parse().ok()?;
    let mut parts = Vec::new();
    loop {
        match tokens.next()? {
            ")" => break,
            "(" => parts.push(node(tokens)?),
            _ => return None,
        }
    }
    let is_known = "fsai".contains(forks) && "tprcqx-".contains(ends);
    // A node that computes a part itself leaves its end to that part; and only leaves end without their parts.
    let is_fit = (forks == 'i') == (ends == '-')
        && (forks != 'i' || !parts.is_empty())
        && (!"cqx".contains(ends) || parts.is_empty());
    (is_known && is_fit).then_some(Node {
        id,
        forks,
        ends,
        parts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_is_read_as_it_is_written() {
        let texts = [
            "7",
            "!3",
            "(two 1 (try !2))",
            "(all 1 2 3)",
            "(fork:201 1 2 (detach 4))",
            "(early:10 1 (cancel 2))",
            "(quiesce 1 2)",
            "(parts (1ft (2st) (3i- (4ax) (5fq))))",
        ];
        for text in texts {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(read(&words).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_computation_is_named() {
        let wrong = [
            "x",
            "(two 1)",
            "(fork:00 1 2)",
            "(all)",
            "1 2",
            "(parts 1)",
            "(parts (1zt))",
            "(parts (1fc (2ft)))",
            "(two 1 2",
        ];
        for text in wrong {
            let words: Vec<&str> = text.split(' ').collect();
            assert!(read(&words).is_err(), "{text}");
        }
    }
}
