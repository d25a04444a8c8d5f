//! Test of the width of markdown and of comments: lines of prose end at 110 columns. The changelog is left
//! out, because its lists are merged by line.

use std::fs;
use std::path::Path;

use crate::task::workspace;

/// Maximum number of characters of a line of prose.
const WIDTH: usize = 110;

/// Returns the numbers of the lines of prose that are too long. Tables, code, comments, and lines that cannot
/// be broken, such as addresses and code spans, may be longer.
fn long_lines(text: &str) -> Vec<usize> {
    let (mut is_code, mut found) = (false, Vec::new());
    for (line, number) in text.lines().zip(1..) {
        let content = line.trim_start();
        if content.starts_with("```") {
            is_code = !is_code;
        }
        let is_prose = !is_code && !content.starts_with(['|', '<', '[', '#']);
        if is_prose && has_break(line, 0) {
            found.push(number);
        }
    }
    found
}

/// Returns the numbers of the lines of comments in Rust that are too long, with the same exceptions and those
/// of indented code.
fn long_comments(text: &str) -> Vec<usize> {
    let (mut is_code, mut found) = (false, Vec::new());
    for (line, number) in text.lines().zip(1..) {
        let comment = line.trim_start();
        let content = ["///", "//!", "//"].iter().find_map(|mark| comment.strip_prefix(mark));
        let Some(content) = content.filter(|content| content.is_empty() || content.starts_with(' ')) else {
            is_code = false;
            continue;
        };
        if content.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let is_prose =
            !is_code && !content.starts_with("     ") && !content.trim_start().starts_with(['|', '#']);
        if is_prose && has_break(line, line.len() - content.len()) {
            found.push(number);
        }
    }
    found
}

/// Returns true if a line is too long and has a blank outside code at which it can be broken in time. `start`
/// is the offset of its text.
fn has_break(line: &str, start: usize) -> bool {
    if line.chars().count() <= WIDTH {
        return false;
    }
    let text = line.get(start..).unwrap_or_default();
    let prefix = start + text.len() - text.trim_start_matches([' ', '-', '*']).len();
    let mut ticks = 0_usize;
    line.char_indices().take(WIDTH + 1).any(|(at, character)| {
        ticks += usize::from(character == '`');
        character == ' ' && at >= prefix && ticks.is_multiple_of(2)
    })
}

fn visit(folder: &Path, faults: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(&*name, "target" | "vendor" | "node_modules" | "generated") && !name.starts_with('.')
            {
                visit(&path, faults);
            }
            continue;
        }
        let long = match path.extension().and_then(|extension| extension.to_str()) {
            Some("md") if name != "CHANGELOG.md" => long_lines,
            Some("rs") => long_comments,
            _ => continue,
        };
        let lines = long(&fs::read_to_string(&path).unwrap());
        faults.extend(lines.iter().map(|line| format!("{}:{line}", path.display())));
    }
}

#[test]
fn prose_ends_at_110_columns() {
    let mut faults = Vec::new();
    visit(workspace::root(), &mut faults);
    assert!(faults.is_empty(), "break these lines before column {WIDTH}:\n{}", faults.join("\n"));
}

#[test]
fn finds_long_lines_of_prose_only() {
    let long = "word ".repeat(30);
    let text = format!("{long}\n| {long}\n```\n{long}\n```\n`{long}`\nshort\n- {long}\n");
    assert_eq!(long_lines(&text), [1, 8]);
}

#[test]
fn finds_long_comments_only() {
    let long = "word ".repeat(30);
    let text = format!(
        "/// {long}\nlet text = \"{long}\";\n// | {long}\n//! ```\n//! {long}\n//! ```\n        // {long}\n///     {long}\n"
    );
    assert_eq!(long_comments(&text), [1, 7]);
}
