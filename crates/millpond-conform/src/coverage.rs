//! Which test holds which behaviour: reading the rows, the annotations and the exemptions, and
//! writing the table.
//!
//! A row is held when a body says `Holds: <row>` and its suite is asked for, in `tests/`, by the
//! implementation that the row speaks of. A body that no macro lists, and a suite that is not asked
//! for, hold nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A behaviour: its name, and what it says in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name, `Class.method`.
    pub id: String,
    /// The behaviour that it requires.
    pub says: String,
}

impl Row {
    /// The group that the row belongs to: what stands before the first dot.
    pub fn class(&self) -> &str {
        self.id.split('.').next().unwrap_or(&self.id)
    }
}

/// Reads lines of the form `name | sentence`. Empty lines and lines that begin with `#` are skipped.
///
/// # Errors
///
/// A line of another form, with its number.
pub fn rows(text: &str) -> Result<Vec<Row>, String> {
    let lines = text.lines().zip(1..);
    let wanted = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    wanted
        .map(|(line, number)| match line.split_once(" | ") {
            Some((id, says)) if !id.trim().is_empty() && !says.trim().is_empty() => Ok(Row {
                id: id.trim().to_owned(),
                says: says.trim().to_owned(),
            }),
            _ => Err(format!(
                "line {number}: `{line}` is not of the form `name | sentence`"
            )),
        })
        .collect()
}

/// A test body, and the rows that it says it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The file it is in, without its ending.
    pub room: String,
    /// Its name.
    pub name: String,
    /// The rows.
    pub holds: Vec<String>,
    /// Whether a macro of the file lists it, or it is a test itself.
    pub listed: bool,
}

/// Finds the functions with `Holds:` lines in a source file, and every public one.
pub fn bodies(room: &str, source: &str) -> Vec<Body> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let (mut holds, mut is_test) = (Vec::new(), false);
    for line in &lines {
        if let Some(list) = line.strip_prefix("/// Holds:") {
            holds.extend(list.split(',').map(|id| id.trim().to_owned()));
        } else if *line == "#[test]" {
            is_test = true;
        } else if let Some(name) = function(line) {
            let (holds, is_test) = (std::mem::take(&mut holds), std::mem::take(&mut is_test));
            let public = line.starts_with("pub fn");
            if !holds.is_empty() || (public && lines.contains(&name)) {
                found.push(Body {
                    room: room.to_owned(),
                    name: name.to_owned(),
                    holds,
                    listed: is_test || lines.contains(&name),
                });
            }
        }
    }
    found
}

fn function(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ").unwrap_or(line);
    let rest = rest.strip_prefix("fn ")?;
    let end = rest.find(['(', '<'])?;
    Some(&rest[..end])
}

/// A suite asked for in a line of `tests/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// The suite: `queue` of `queue_suite!`.
    pub suite: String,
    /// The implementation, as the line names it.
    pub module: String,
}

/// Finds which suites are asked for: `ask! { fifo_bounded, |capacity| ..., queue_suite waiting_suite }`.
pub fn instances(source: &str) -> Vec<Instance> {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let mut found = Vec::new();
    for asked in source.split("ask! {").skip(1) {
        let words = words(block(asked));
        let Some(module) = words.first() else {
            continue;
        };
        let suites = words.iter().filter_map(|word| word.strip_suffix("_suite"));
        found.extend(suites.map(|suite| Instance {
            suite: suite.to_owned(),
            module: module.clone(),
        }));
    }
    found
}

/// The text before the brace that closes the block which the text is in.
fn block(text: &str) -> &str {
    let mut depth = 1_u32;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..at];
        }
    }
    text
}

/// Why rows do not apply, by name, or by the beginning of the name and a `*`.
#[derive(Clone, Debug, Default)]
pub struct Exemptions {
    exact: BTreeMap<String, String>,
    beginnings: Vec<(String, String)>,
}

impl Exemptions {
    /// Reads lines of the form `name | reason`.
    ///
    /// # Errors
    ///
    /// As [`rows`].
    pub fn read(text: &str) -> Result<Self, String> {
        let mut read = Exemptions::default();
        for Row { id, says } in rows(text)? {
            match id.strip_suffix('*') {
                Some(beginning) => read.beginnings.push((beginning.to_owned(), says)),
                None => drop(read.exact.insert(id, says)),
            }
        }
        Ok(read)
    }

    /// Why this row does not apply.
    pub fn reason(&self, id: &str) -> Option<&str> {
        let beginning = || {
            let mut found = self.beginnings.iter().filter(|(b, _)| id.starts_with(b));
            found.next().map(|(_, reason)| reason)
        };
        self.exact.get(id).or_else(beginning).map(String::as_str)
    }
}

/// Everything that the table is made of.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Title and rows of each page.
    pub pages: Vec<(String, Vec<Row>)>,
    /// All bodies.
    pub bodies: Vec<Body>,
    /// All suites that are asked for.
    pub instances: BTreeSet<Instance>,
    /// Why rows do not apply.
    pub exemptions: Exemptions,
    /// Which implementation the rows of a class speak of: class, beginning of the module's name.
    pub subjects: Vec<(&'static str, &'static str)>,
}

impl Coverage {
    /// The tests that hold a row, by name.
    fn holders(&self, row: &Row) -> Vec<String> {
        let subject = self
            .subjects
            .iter()
            .find(|(class, _)| *class == row.class());
        let mut holders = Vec::new();
        for body in self
            .bodies
            .iter()
            .filter(|body| body.holds.contains(&row.id))
        {
            let asked = self.instances.iter().filter(|one| one.suite == body.room);
            let modules: Vec<&str> = asked
                .map(|one| one.module.as_str())
                .filter(|module| subject.is_none_or(|(_, begin)| module.starts_with(begin)))
                .collect();
            let is_suite = self.instances.iter().any(|one| one.suite == body.room);
            match (is_suite, modules.as_slice()) {
                (true, []) => {}
                (true, modules) => holders.push(format!(
                    "`{}::{}` ({})",
                    body.room,
                    body.name,
                    modules.join(", ")
                )),
                (false, _) => holders.push(format!("`{}::{}`", body.room, body.name)),
            }
        }
        holders
    }

    /// Everything that is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let rows: Vec<&Row> = self.pages.iter().flat_map(|(_, rows)| rows).collect();
        let known: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        for body in &self.bodies {
            let name = format!("{}::{}", body.room, body.name);
            for id in body.holds.iter().filter(|id| !known.contains(id.as_str())) {
                problems.push(format!("`{name}` holds `{id}`, which is no row"));
            }
            if !body.listed {
                problems.push(format!("`{name}` is listed by no suite: nobody runs it"));
            }
        }
        for id in self.exemptions.exact.keys() {
            if !known.contains(id.as_str()) {
                problems.push(format!("`{id}` is exempt, but it is no row"));
            }
        }
        for row in rows {
            let held = !self.holders(row).is_empty();
            if !held && self.exemptions.reason(&row.id).is_none() {
                problems.push(format!(
                    "`{}` is neither held nor exempt: {}",
                    row.id, row.says
                ));
            }
            if held && self.exemptions.exact.contains_key(&row.id) {
                problems.push(format!("`{}` is held and exempt: strike one out", row.id));
            }
        }
        problems
    }

    /// The table.
    pub fn render(&self) -> String {
        let mut text = String::from(HEAD);
        for (title, rows) in &self.pages {
            let held = rows.iter().filter(|row| !self.holders(row).is_empty());
            let _ = write!(
                text,
                "\n## {title}\n\n{} of {} rows are held here.\n",
                held.count(),
                rows.len()
            );
            let mut class = "";
            for row in rows {
                if row.class() != class {
                    class = row.class();
                    let _ = write!(
                        text,
                        "\n### {class}\n\n| row | what it says | held by |\n|---|---|---|\n"
                    );
                }
                let name = row
                    .id
                    .split_once('.')
                    .map_or(row.id.as_str(), |(_, name)| name);
                let holders = self.holders(row);
                let held = match holders.as_slice() {
                    [] => self
                        .exemptions
                        .reason(&row.id)
                        .unwrap_or("nobody")
                        .to_owned(),
                    holders => holders.join("; "),
                };
                let _ = writeln!(text, "| {name} | {} | {held} |", row.says);
            }
        }
        text
    }
}

const HEAD: &str = "\
# Which test holds which behaviour

The rows are what `java.util.concurrent` is tested for, in our words. A row is held by tests, or it
says why it does not apply to us, or with what it will come. `suite::body (implementations)` is a
body in `src/suites/`; `file::test` is a test in `tests/`.

This file is generated: `MILLPOND_RENEW=1 cargo test -p millpond-conform --test coverage`.
";

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "
        macro_rules! mill_suite { bodies! { m, mill;
            it_grinds
        } }
        /// Says more.
        ///
        /// Holds: Mill.grind, Mill.stop
        /// Holds: Wheel.turn
        pub fn it_grinds(mill: &Mill) {}
        /// Holds: Mill.rest
        pub fn it_rests<T>(mill: &T) {}
        fn helper() {}
    ";

    fn coverage(rows_text: &str, exempt: &str, tests: &str) -> Coverage {
        Coverage {
            pages: vec![("Mills".into(), rows(rows_text).unwrap())],
            bodies: bodies("mill", &SUITE.replace("it_rests", "it_grinds")),
            instances: instances(tests).into_iter().collect(),
            exemptions: Exemptions::read(exempt).unwrap(),
            subjects: vec![("Mill", "water")],
        }
    }

    #[test]
    fn bodies_are_found_with_their_rows_and_missed_when_no_macro_lists_them() {
        let found = bodies("mill", SUITE);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].holds, ["Mill.grind", "Mill.stop", "Wheel.turn"]);
        assert!(found[0].listed && !found[1].listed);
        let test = "/// Holds: Mill.grind\n#[test]\nfn it_grinds() {}";
        assert!(bodies("mill", test)[0].listed);
    }

    #[test]
    fn instances_are_found_on_one_line_or_more() {
        let found = instances(
            "ask! { water, |grain| { grind(grain) }, mill_suite\n hand_mill_suite }\nfn other_suite() {}",
        );
        let found: Vec<_> = found.iter().map(|i| (&*i.suite, &*i.module)).collect();
        assert_eq!(found, [("mill", "water"), ("hand_mill", "water")]);
    }

    #[test]
    fn a_row_without_a_test_is_a_problem_until_it_is_exempt() {
        let rows = "Mill.grind | It grinds.\nMill.stop | It stops.\nMill.rest | It rests.\n\
                    Wheel.turn | It turns.\nMill.burn | It burns.";
        let asked = "ask! { water, f, mill_suite }";
        let problems = coverage(rows, "", asked).problems();
        assert_eq!(
            problems,
            ["`Mill.burn` is neither held nor exempt: It burns."]
        );
        assert!(
            coverage(rows, "Mill.b* | wet stone", asked)
                .problems()
                .is_empty()
        );
        let both = coverage(rows, "Mill.b* | wet stone\nMill.stop | no", asked).problems();
        assert_eq!(both, ["`Mill.stop` is held and exempt: strike one out"]);
    }

    #[test]
    fn a_suite_that_the_right_implementation_does_not_ask_for_holds_nothing() {
        let rows = "Mill.grind | It grinds.\nMill.stop | It stops.\nMill.rest | It rests.\n\
                    Wheel.turn | It turns.";
        let problems = coverage(rows, "", "ask! { wind, f, mill_suite }").problems();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems.iter().all(|problem| problem.contains("`Mill.")));
    }

    #[test]
    fn an_annotation_of_an_unknown_row_is_a_problem() {
        let problems = coverage(
            "Mill.grind | It grinds.",
            "",
            "ask! { water, f, mill_suite }",
        )
        .problems();
        let unknown = problems
            .iter()
            .filter(|problem| problem.ends_with("which is no row"));
        assert_eq!(unknown.count(), 3, "{problems:?}");
    }

    #[test]
    fn a_line_without_a_sentence_is_an_error_with_its_number() {
        let problem = rows("# head\n\nMill.grind | It grinds.\nMill.stop").unwrap_err();
        assert!(problem.starts_with("line 4"), "{problem}");
    }
}
