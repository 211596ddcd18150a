//! Parsed Markdown: links, headings, code spans and tables.

use std::ops::Range;

use pulldown_cmark::{BrokenLink, Event, LinkType, Options, Parser, Tag, TagEnd};

/// A reference in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// A link or image, by its target.
    Link(String),
    /// `[text][name]` without a definition of `name`.
    Undefined(String),
    /// Text in backticks.
    Code(String),
}

/// A parsed document.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Its references, each with its line.
    pub pointers: Vec<(usize, Pointer)>,
    /// The anchors of its headings.
    pub anchors: Vec<String>,
    /// The text of its headings, each with its line.
    pub headings: Vec<(usize, String)>,
    /// Its tables: rows of cells, the first row is the head. Each row with its line.
    pub tables: Vec<Vec<(usize, Vec<Cell>)>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Its code spans.
    pub codes: Vec<String>,
}

impl Document {
    /// Parses Markdown.
    pub fn parse(text: &str) -> Self {
        let mut undefined: Vec<(usize, Pointer)> = Vec::new();
        let mut document = Self::default();
        let report = |broken: BrokenLink<'_>| {
            // `[x]` alone is prose (a label, an index); `[x][y]` can only be meant as a link.
            if broken.link_type == LinkType::Reference {
                let name = Pointer::Undefined(broken.reference.to_string());
                undefined.push((line_at(text, &broken.span), name));
            }
            None
        };
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        let parser = Parser::new_with_broken_link_callback(text, options, Some(report));
        let mut reader = Reader {
            text,
            document: &mut document,
            heading: None,
            in_table: false,
            bare_from: None,
        };
        for (event, span) in parser.into_offset_iter() {
            reader.read(event, &span);
        }
        document.pointers.extend(undefined);
        document
    }
}

struct Reader<'a> {
    text: &'a str,
    document: &'a mut Document,
    heading: Option<String>,
    in_table: bool,
    /// Where the present link ends: its text is no bare address.
    bare_from: Option<usize>,
}

impl Reader<'_> {
    fn read(&mut self, event: Event<'_>, span: &Range<usize>) {
        let line = line_at(self.text, span);
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                self.bare_from = Some(span.end);
                self.point(line, Pointer::Link(dest_url.to_string()));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                self.point(line, Pointer::Link(dest_url.to_string()));
            }
            Event::Start(Tag::Heading { .. }) => self.heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let heading = self.heading.take().unwrap_or_default();
                let anchor = unique(slug(&heading), &self.document.anchors);
                self.document.anchors.push(anchor);
                self.document.headings.push((line, heading));
            }
            Event::Start(Tag::Table(_)) => {
                self.in_table = true;
                self.document.tables.push(Vec::new());
            }
            Event::End(TagEnd::Table) => self.in_table = false,
            Event::Start(Tag::TableHead | Tag::TableRow) => {
                if let Some(table) = self.document.tables.last_mut() {
                    table.push((line, Vec::new()));
                }
            }
            Event::Start(Tag::TableCell) => {
                if let Some((_, row)) = self.row() {
                    row.push(Cell::default());
                }
            }
            Event::Code(code) => {
                self.write(&code);
                if let Some((_, row)) = self.row()
                    && let Some(cell) = row.last_mut()
                {
                    cell.codes.push(code.to_string());
                }
                self.point(line, Pointer::Code(code.to_string()));
            }
            Event::Text(text) => {
                self.write(&text);
                if self.bare_from.is_none_or(|end| span.start >= end) {
                    self.bare_addresses(&text, line);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => self.html(&html, line),
            _ => {}
        }
    }

    fn row(&mut self) -> Option<&mut (usize, Vec<Cell>)> {
        if !self.in_table {
            return None;
        }
        self.document.tables.last_mut()?.last_mut()
    }

    fn write(&mut self, text: &str) {
        if let Some(heading) = &mut self.heading {
            heading.push_str(text);
        }
        if let Some((_, row)) = self.row()
            && let Some(cell) = row.last_mut()
        {
            cell.text.push_str(text);
        }
    }

    fn point(&mut self, line: usize, pointer: Pointer) {
        self.document.pointers.push((line, pointer));
    }

    fn bare_addresses(&mut self, text: &str, line: usize) {
        for word in text.split_whitespace() {
            let start = ["http://", "https://"]
                .iter()
                .filter_map(|scheme| word.find(scheme))
                .min();
            if let Some(start) = start {
                let address = word[start..].trim_end_matches(['.', ',', ';', ':', ')', '"', '\'']);
                self.point(line, Pointer::Link(address.to_string()));
            }
        }
    }

    fn html(&mut self, html: &str, line: usize) {
        for attribute in ["href=\"", "src=\""] {
            for piece in html.split(attribute).skip(1) {
                let target = piece.split('"').next().unwrap_or_default();
                self.point(line, Pointer::Link(target.to_string()));
            }
        }
        for piece in html.split("id=\"").skip(1) {
            let id = piece.split('"').next().unwrap_or_default();
            self.document.anchors.push(id.to_string());
        }
    }
}

fn line_at(text: &str, span: &Range<usize>) -> usize {
    1 + text[..span.start].matches('\n').count()
}

/// The anchor of a heading, by GitHub's rule: lower case, spaces to hyphens, punctuation gone.
pub fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// A second heading of the same name gets `-1`, a third `-2`.
fn unique(anchor: String, taken: &[String]) -> String {
    if !taken.contains(&anchor) {
        return anchor;
    }
    let mut number = 1;
    while taken.contains(&format!("{anchor}-{number}")) {
        number += 1;
    }
    format!("{anchor}-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_follow_the_rule_of_the_forge() {
        assert_eq!(
            slug("The layers: workspace, seams & `gates`"),
            "the-layers-workspace-seams--gates"
        );
        assert_eq!(slug("  1. Why_so - really?  "), "1-why_so---really");
    }

    #[test]
    fn headings_of_one_name_are_numbered() {
        let document = Document::parse("# A\n\n## A\n\n## `A`\n");
        assert_eq!(document.anchors, ["a", "a-1", "a-2"]);
    }

    #[test]
    fn a_link_in_code_is_no_link() {
        let document = Document::parse("```text\n[a](b.md)\n```\n\n`[c](d.md)` [e](f.md)\n");
        let links: Vec<_> = document
            .pointers
            .iter()
            .filter(|(_, p)| matches!(p, Pointer::Link(_)))
            .collect();
        assert_eq!(links, [&(5, Pointer::Link("f.md".into()))]);
    }

    #[test]
    fn cells_keep_their_code_spans() {
        let document =
            Document::parse("| a | b |\n|---|---|\n| `x` | y `z` and `w` |\n\nNot `in` it.\n");
        let (line, row) = &document.tables[0][1];
        assert_eq!(*line, 3);
        assert_eq!(row[0].codes, ["x"]);
        assert_eq!(row[1].codes, ["z", "w"]);
    }
}
