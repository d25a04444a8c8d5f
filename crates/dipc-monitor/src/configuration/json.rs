//! JSON settings as .NET's configuration reads them: with comments and trailing commas, each value a string.

use std::cell::Cell;

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions};

use super::finding::{Findings, Location};
use super::tree::Node;

/// Lines of a document, for locations.
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// The offset of each line.
    starts: Vec<usize>,
    source: u32,
    /// The last location: its offset, its line, and the characters before it in the line. A file of one line
    /// is read once, not once a key.
    last: Cell<(usize, usize, usize)>,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str, source: u32) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Self { text, starts, source, last: Cell::new((0, 1, 0)) }
    }

    pub(crate) fn location(&self, offset: usize) -> Location {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let (last, last_line, before) = self.last.get();
        let (from, before) = if last_line == line && last <= offset {
            (last, before)
        } else {
            (self.starts.get(line - 1).copied().unwrap_or_default(), 0)
        };
        let column = before + self.text.get(from..offset).map_or(0, |text| text.chars().count());
        self.last.set((offset, line, column));
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Location { source: self.source, line: number(line), column: number(column.saturating_add(1)) }
    }
}

/// Merges a JSON document into a tree. Faults are added to the findings; input that is not JSON adds nothing
/// to the tree.
pub(crate) fn merge(text: &str, source: u32, root: &mut Node, findings: &mut Findings) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = Lines::new(text, source);
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    let collect = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: false };
    let value = match jsonc_parser::parse_to_ast(text, &collect, &options) {
        Ok(parsed) => parsed.value,
        Err(error) => {
            let location = lines.location(error.range().start);
            // The beginning of an object, a list, a string or a comment.
            let is_cut = error.kind().to_string().starts_with("Unterminated");
            let help = is_cut.then(|| {
                let Location { line, column, .. } = lines.location(text.len());
                format!("it begins here, and the file ends before it does, at line {line}, column {column}")
            });
            findings.error(location, "", format!("not JSON: {}", error.kind()), help);
            return;
        }
    };
    let location = Location { source, line: 1, column: 1 };
    match value {
        Some(value @ Value::Object(_)) => add(&value, "", root, &lines, findings),
        Some(other) => {
            let location = lines.location(other.range().start);
            findings.error(location, "", "expected an object, as '{ … }'".to_owned(), None);
        }
        None => {
            findings.error(location, "", "the file is empty: expected an object, as '{}'".to_owned(), None);
        }
    }
}

/// Adds a value below a node. The parser bounds the depth of values, and [`MAX_DEPTH`] that of keys.
fn add(value: &Value<'_>, path: &str, node: &mut Node, lines: &Lines<'_>, findings: &mut Findings) {
    let depth = if path.is_empty() { 0 } else { path.split(':').count() };
    if depth > MAX_DEPTH {
        let location = lines.location(value.range().start);
        findings.error(location, "", format!("nested deeper than {MAX_DEPTH} levels"), None);
        return;
    }
    match value {
        Value::Object(object) => {
            let mut seen: Vec<String> = Vec::new();
            for property in &object.properties {
                let (name, range) = match &property.name {
                    ObjectPropName::String(name) => (&*name.value, name.range),
                    ObjectPropName::Word(name) => (name.value, name.range),
                };
                let path = join(path, name);
                let location = lines.location(range.start);
                let lower = name.to_lowercase();
                if seen.contains(&lower) {
                    findings.error(
                        location,
                        &path,
                        "the key is written twice in one object".to_owned(),
                        Some("remove one of them; keys are compared without regard to case".to_owned()),
                    );
                    continue;
                }
                if seen.len() < MAX_COMPARED {
                    seen.push(lower);
                }
                // A colon separates levels, as in .NET's own paths.
                let child = node.at_path(name.split(':').take(MAX_DEPTH + 1 - depth), location);
                add(&property.value, &path, child, lines, findings);
            }
        }
        Value::Array(array) => {
            node.is_list = true;
            for (number, element) in array.elements.iter().enumerate() {
                let name = number.to_string();
                let location = lines.location(element.range().start);
                let path = join(path, &name);
                add(element, &path, node.child(&name, location), lines, findings);
            }
        }
        Value::StringLit(text) => node.value = Some(text.value.clone().into_owned()),
        Value::NumberLit(number) => node.value = Some(number.value.to_owned()),
        Value::BooleanLit(boolean) => node.value = Some(boolean.value.to_string()),
        Value::NullKeyword(_) => node.value = None,
    }
}

/// Maximum number of keys of an object to compare with each other.
const MAX_COMPARED: usize = 10_000;
/// Maximum nesting depth of keys.
pub(crate) const MAX_DEPTH: usize = 64;

/// Joins a path and a name.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}:{name}") }
}
