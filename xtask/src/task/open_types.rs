//! Test of the types of all packages: extensible types are `#[non_exhaustive]` or have private fields, so
//! that a new variant or field does not break users. Other types state the reason:
//! `#[allow(clippy::exhaustive_…, reason = "…")]`.

use std::fs;
use std::path::Path;

use crate::task::workspace;

/// Returns the names of the enumerations and of the structs with public fields alone in a source file that
/// are open and do not state a reason.
fn faults(source: &str) -> Vec<&str> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        // Indented items are in macros: messages of the protocol, which decide for all of them.
        let (is_enum, rest) = match (line.strip_prefix("pub enum "), line.strip_prefix("pub struct ")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => continue,
        };
        let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let before = lines[..at].iter().rev().take_while(|line| !line.is_empty());
        let is_decided =
            before.clone().any(|line| line.contains("non_exhaustive") || line.contains("exhaustive_"));
        if is_decided || !is_enum && !has_public_fields(&lines[at..]) {
            continue;
        }
        found.push(name);
    }
    found
}

/// Returns true if a struct has fields with names, all of them public.
fn has_public_fields(lines: &[&str]) -> bool {
    if !lines[0].ends_with('{') {
        return false;
    }
    let fields = lines[1..].iter().take_while(|line| **line != "}").map(|line| line.trim_start());
    let mut fields = fields.filter(|line| !line.starts_with("//") && !line.starts_with('#')).peekable();
    fields.peek().is_some() && fields.all(|line| line.starts_with("pub ") || line.starts_with(')'))
}

fn visit(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            found.extend(faults(&source).into_iter().map(|name| format!("{}: {name}", path.display())));
        }
    }
}

#[test]
fn types_that_are_open_say_why() {
    let none: [&str; 0] = [];
    assert_eq!(faults("#[derive(Debug)]\npub enum A {\n    B,\n}"), ["A"]);
    assert_eq!(faults("/// A.\npub struct A<'a> {\n    /// B.\n    pub b: &'a u8,\n}"), ["A"]);
    assert_eq!(faults("#[non_exhaustive]\npub enum A {\n    B,\n}"), none);
    assert_eq!(faults("#[allow(clippy::exhaustive_enums, reason = \"b\")]\npub enum A {\n}"), none);
    assert_eq!(faults("pub struct A {\n    pub b: u8,\n    c: u8,\n}\n\npub struct D(pub u8);"), none);

    let mut found = Vec::new();
    for entry in fs::read_dir(workspace::root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        // A program, what tests use, a writer of rows that tests fill with anything, and messages of a
        // protocol, which give their reason once.
        if !["dipc-cli", "testdata", "nettrace-synth", "otlp-messages"]
            .iter()
            .any(|name| folder.ends_with(name))
        {
            visit(&folder.join("src"), &mut found);
        }
    }
    assert_eq!(found, none);
}
