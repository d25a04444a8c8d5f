//! Test of the errors of all crates: each prints its cause or returns it as source. Reports that print all
//! sources would have it twice if an error did both, and it would be lost if it did neither.

use std::fs;
use std::path::Path;

use crate::task::workspace;

/// A field of an error.
#[derive(Debug, PartialEq, Eq)]
struct Field<'t> {
    attributes: &'t str,
    /// The name, or the number in a tuple.
    name: String,
    kind: &'t str,
}

impl Field<'_> {
    /// Returns true if the field has the error that caused this one.
    fn is_cause(&self) -> bool {
        let mut words = self.kind.split(|c: char| !c.is_alphanumeric());
        self.is_returned() || words.any(|word| word.ends_with("Error") || word == "Missing")
    }

    /// Returns true if `Error::source` returns it. A field called `source` does not need an attribute.
    fn is_returned(&self) -> bool {
        self.name == "source" || self.attributes.contains("#[source]") || self.attributes.contains("#[from]")
    }

    /// Returns true if the message has it: `{name}`, `{name:…}`, or an argument `.name`.
    fn is_printed(&self, message: &str) -> bool {
        ["{", "."].iter().any(|before| {
            let text = format!("{before}{}", self.name);
            let mut after = message.match_indices(&text).map(|(at, _)| &message[at + text.len()..]);
            after.any(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    }
}

/// Returns the content of the bracketed group that the text begins with, and the rest.
fn group(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_string = !is_string,
            '(' | '{' | '[' if !is_string => depth += 1,
            ')' | '}' | ']' if !is_string => {
                depth -= 1;
                if depth == 0 {
                    return Some((&text[1..at], &text[at + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits attributes from the text after them.
fn attributes(text: &str) -> (&str, &str) {
    let mut rest = text.trim_start();
    while let Some((_, after)) = rest.strip_prefix('#').and_then(group) {
        rest = after.trim_start();
    }
    (&text[..text.len() - rest.len()], rest)
}

/// Splits fields at their commas.
fn fields(text: &str) -> Vec<Field<'_>> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' | ']' | '>' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty()).enumerate();
    parts.map(|(number, part)| field(number, part)).collect()
}

fn field(number: usize, text: &str) -> Field<'_> {
    let (attributes, rest) = attributes(text);
    let rest = rest.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
    match rest.split_once(": ") {
        Some((name, kind)) => Field { attributes, name: name.to_owned(), kind },
        None => Field { attributes, name: number.to_string(), kind: rest },
    }
}

/// Returns the fields with causes that are both printed and returned, or neither, of the errors in a source
/// file without comments.
fn faults(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices("#[error(") {
        let Some((message, rest)) = group(&source[at + "#[error".len()..]) else { continue };
        let (_, item) = attributes(rest.trim_start_matches(']'));
        let item =
            ["pub ", "pub(crate) ", "struct "].iter().fold(item, |item, word| item.trim_start_matches(word));
        let name = item.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let item = &item[name.len()..];
        let item = item.trim_start();
        let Some((text, _)) = item.starts_with(['(', '{']).then(|| group(item)).flatten() else { continue };
        let causes = fields(text).into_iter().filter(Field::is_cause);
        let wrong = causes
            .filter(|field| message != "transparent" && field.is_printed(message) == field.is_returned());
        found.extend(wrong.map(|field| format!("{name}: {}", field.name)));
    }
    // Without thiserror, a cause would be printed and returned by hand: no such error has one.
    for (at, text) in source.match_indices("Error for ") {
        let name = source[at + text.len()..].split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let is_impl = source[..at].ends_with("error::") || source[..at].ends_with("impl ");
        for kind in ["struct", "enum"].map(|kind| format!("{kind} {name}")) {
            let definition = source
                .match_indices(&kind)
                .map(|(at, _)| &source[at + kind.len()..])
                .find(|rest| is_impl && rest.trim_start().starts_with(['(', '{']));
            let Some((text, _)) = definition.and_then(|rest| group(rest.trim_start())) else { continue };
            let causes = fields(text).into_iter().filter(Field::is_cause);
            found.extend(causes.map(|field| format!("{name}: {}: written by hand", field.name)));
        }
    }
    found
}

/// Returns the number of errors with messages in a folder, and adds the faults.
fn visit(folder: &Path, found: &mut Vec<String>) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += visit(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
            let source: String = lines.flat_map(|line| [line, "\n"]).collect();
            count += source.matches("#[error(").count();
            found.extend(faults(&source).into_iter().map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    count
}

#[test]
fn errors_print_their_cause_or_return_it() {
    let none: [&str; 0] = [];
    assert_eq!(faults("#[error(\"a: {0}\")]\nA(#[from] B),"), ["A: 0"]);
    assert_eq!(
        faults("#[error(\n    \"a {}: {error}\",\n    b(c)\n)]\nA {\n    #[source]\n    error: B,\n},"),
        ["A: error"]
    );
    assert_eq!(faults("#[error(\"a: {source}\")]\nA { source: B },"), ["A: source"]);
    assert_eq!(faults("#[error(\"a {number}\")]\nA { number: u8, error: Box<io::Error> },"), ["A: error"]);
    assert_eq!(
        faults("#[error(\"a\")]\n#[non_exhaustive]\npub struct A {\n    error: ReadError,\n}"),
        ["A: error"]
    );
    let by_hand = "pub enum A { B(io::Error) }\nimpl std::error::Error for A {}";
    assert_eq!(faults(by_hand), ["A: 0: written by hand"]);
    assert_eq!(faults("#[error(transparent)]\nA(#[from] B),"), none);
    assert_eq!(faults("#[error(\"a: {}\", .error)]\nA { error: io::Error },"), none);
    assert_eq!(faults("#[error(\"a\")]\nA(#[source] io::Error),\n#[error(\"b: {0}\")]\nB(u8, u8),"), none);

    let mut found = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(workspace::root().join("crates")).unwrap() {
        count += visit(&entry.unwrap().path().join("src"), &mut found);
    }
    assert!(count > 150, "{count}");
    assert_eq!(found, none);
}
