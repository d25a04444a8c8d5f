//! The items, imports and paths of a file of source code.

use std::collections::{BTreeMap, BTreeSet};

/// Words after which an item's name follows.
const KEYWORDS: [&str; 10] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod", "macro_rules"];

/// A path such as `crate::a::B`, in parts.
pub(in crate::task) type Names = Vec<String>;
/// A file of a crate.
#[derive(Debug, Default)]
pub(in crate::task) struct Module {
    pub(in crate::task) items: BTreeSet<String>,
    /// The names that it imports, and their paths.
    pub(in crate::task) imports: BTreeMap<String, Names>,
    /// Paths of which it imports everything.
    pub(in crate::task) globs: Vec<Names>,
    /// The paths that it uses.
    pub(in crate::task) paths: BTreeSet<Names>,
}

/// Splits code into words and punctuation without comments, strings and lifetimes.
pub(in crate::task) fn tokens(source: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let hashes = rest[word..].bytes().take_while(|byte| *byte == b'#').count();
        let is_raw = matches!(&rest[..word], "r" | "br" | "cr") && rest[word + hashes..].starts_with('"');
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if is_raw {
            let begin = word + hashes + 1;
            let end = format!("\"{}", "#".repeat(hashes));
            rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len())
        } else if first == '"' || first == '\'' && is_character(rest) {
            quoted(rest, first)
        } else if word > 0 {
            tokens.push(&rest[..word]);
            word
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                tokens.push(&rest[..length]);
            }
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// Returns true if an apostrophe begins a character, not a lifetime.
fn is_character(text: &str) -> bool {
    text[1..].starts_with('\\') || text.chars().nth(2) == Some('\'')
}

/// Returns the length of a quoted text at the beginning.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the number of tokens of an item: to its `;`, or to the end of its first group in braces.
fn item_length(tokens: &[&str]) -> usize {
    let is_use = tokens.iter().take_while(|token| **token != ";").any(|token| *token == "use");
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (*token == ";" || *token == "}" && !is_use) {
            return at + 1;
        }
    }
    tokens.len()
}

/// Removes the items that only tests compile.
pub(in crate::task) fn without_tests<'t>(mut tokens: &[&'t str]) -> Vec<&'t str> {
    let mut kept = Vec::new();
    while let Some(first) = tokens.first() {
        let is_test = tokens.starts_with(&["#", "[", "cfg", "(", "test", ")"])
            || tokens.starts_with(&["#", "[", "cfg", "(", "all", "(", "test", ","])
            || tokens.starts_with(&["#", "[", "cfg", "(", "doctest"]);
        if is_test {
            let end = tokens.iter().position(|token| *token == "]").unwrap_or_default() + 1;
            tokens = &tokens[end + item_length(&tokens[end..])..];
        } else {
            kept.push(*first);
            tokens = &tokens[1..];
        }
    }
    kept
}

impl Module {
    /// Reads the tokens of a file.
    pub(in crate::task) fn read(tokens: &[&str]) -> Self {
        let mut module = Self::default();
        let (mut at, mut depth, mut inline) = (0, 0_usize, Vec::new());
        while let Some(token) = tokens.get(at) {
            let next = tokens.get(at + 1).copied().unwrap_or_default();
            match *token {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    inline.pop_if(|begin| *begin == depth);
                }
                "use" if next != "<" => {
                    let end = at + item_length(&tokens[at..]);
                    let is_reexport = at > 0 && matches!(tokens[at - 1], "pub" | ")");
                    module.import(&tokens[at + 1..end], inline.len(), is_reexport);
                    at = end;
                    continue;
                }
                _ if KEYWORDS.contains(token) => {
                    if *token == "mod" && tokens.get(at + 2) == Some(&"{") {
                        inline.push(depth);
                    }
                    let name =
                        if next == "!" { tokens.get(at + 2).copied().unwrap_or_default() } else { next };
                    module.items.insert(name.to_owned());
                }
                _ if next == "::" && is_name(token) && (at == 0 || tokens[at - 1] != "::") => {
                    let path = tokens[at..].chunks(2).take_while(|pair| is_name(pair[0]));
                    let mut names = Names::new();
                    for pair in path {
                        names.push(pair[0].to_owned());
                        if pair.get(1) != Some(&"::") {
                            break;
                        }
                    }
                    module.paths.extend(outside(names, inline.len()));
                }
                _ => {}
            }
            at += 1;
        }
        module
    }

    /// Reads a `use` declaration after that word.
    fn import(&mut self, tokens: &[&str], inline: usize, is_reexport: bool) {
        let (mut path, mut groups) = (Names::new(), vec![0]);
        for token in tokens {
            match *token {
                "::" => {}
                "{" => groups.push(path.len()),
                "," | "}" | ";" => {
                    if groups.last().is_some_and(|begin| path.len() > *begin) {
                        self.import_one(path.clone(), inline, is_reexport);
                    }
                    if *token == "}" {
                        groups.pop();
                    }
                    path.truncate(groups.last().copied().unwrap_or_default());
                }
                name => path.push(name.to_owned()),
            }
        }
    }

    fn import_one(&mut self, mut path: Names, inline: usize, is_reexport: bool) {
        let mut name = path.last().cloned().unwrap_or_default();
        match &*name {
            "self" | "*" => _ = path.pop(),
            _ if path.iter().any(|name| name == "as") => path.truncate(path.len() - 2),
            _ => {}
        }
        if name == "self" {
            name = path.last().cloned().unwrap_or_default();
        }
        let Some(path) = outside(path, inline) else { return };
        if name == "*" {
            self.globs.push(path.clone());
        } else {
            self.imports.insert(name, path.clone());
        }
        if !is_reexport {
            self.paths.insert(path);
        }
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Returns a path in a number of inline modules as the file has it; `None` if it does not leave them.
fn outside(mut path: Names, inline: usize) -> Option<Names> {
    let up = path.iter().take_while(|name| *name == "super").count().min(inline);
    path.drain(..up);
    (up == inline || path.first().is_some_and(|name| name == "crate")).then_some(path)
}
