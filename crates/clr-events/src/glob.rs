//! Names in filters and conditions: complete, or with `*` for any text.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// A name, or a pattern of names; case is ignored. The whole name has to match.
///
/// | sign | matches |
/// |---|---|
/// | `*` | any text; in [paths](Glob::path), any text within a segment |
/// | `**/` | in paths, any number of segments; in other names, as `*/` |
/// | any other | itself |
///
/// ```
/// use clr_events::Glob;
///
/// let requests = Glob::new("Request*");
/// assert!(requests.matches("requeststop") && !requests.matches("MyRequest"));
/// assert!(Glob::new("RequestStart").matches_event("Request/Start"));
/// let orders = Glob::path("/api/*/orders");
/// assert!(orders.matches("/API/eu/orders") && !orders.matches("/api/eu/west/orders"));
/// assert!(Glob::path("**/orders").matches("/api/eu/west/orders"));
/// ```
///
/// # Source
/// Paths: `GlobMatcher.cs` of dotnet/diagnostics. A `**` without a slash is two `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    lower: String,
    is_path: bool,
}

impl Glob {
    /// Parses a name, with `*` for any text.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), lower: lower(text), is_path: false }
    }

    /// Parses a path, with `*` for any text within a segment and `**/` for any number of segments.
    pub fn path(text: &str) -> Self {
        Self { is_path: true, ..Self::new(text) }
    }

    /// The name or pattern as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name or pattern in lower case.
    pub fn lower(&self) -> &str {
        &self.lower
    }

    /// Returns true if it matches more than one name.
    pub fn is_pattern(&self) -> bool {
        self.text.contains('*')
    }

    /// Returns true if it matches the whole name. Takes at most time proportional to the product of both
    /// lengths.
    pub fn matches(&self, name: &str) -> bool {
        let name = lower(name);
        if self.is_path { matches_path(&self.lower, &name) } else { Self::is_match(&self.lower, &name) }
    }

    /// Returns true if it matches the name of an event with or without its slash: `Request/Start`,
    /// `RequestStart`.
    pub fn matches_event(&self, name: &str) -> bool {
        self.matches(name) || name.contains('/') && self.matches(&name.replacen('/', "", 1))
    }

    /// Returns true if a name matches a pattern with `*` for any text. Case counts. Takes at most time
    /// proportional to the product of both lengths.
    ///
    /// ```
    /// assert!(clr_events::Glob::is_match("gc-*-size", "gc-heap-size"));
    /// assert!(!clr_events::Glob::is_match("gc-*-size", "GC-heap-size"));
    /// ```
    pub fn is_match(pattern: &str, name: &str) -> bool {
        let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
        let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
        let inner = name.strip_prefix(start).and_then(|name| name.strip_suffix(end));
        let Some(mut inner) = inner else { return false };
        // Matching each part at its first occurrence leaves the most for the others.
        for part in middle.split('*') {
            let Some((_, after)) = inner.split_once(part) else { return false };
            inner = after;
        }
        true
    }
}

/// The text in lower case, each character by itself: a part of a name is lowered as the name is.
fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Matches a path, by the positions in it that the pattern up to a part can reach.
fn matches_path(pattern: &str, path: &str) -> bool {
    let path: Vec<char> = path.chars().collect();
    let mut reached = vec![false; path.len().saturating_add(1)];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    let mut rest = pattern;
    while let Some(sign) = rest.chars().next() {
        let is_segments = rest.starts_with("**/");
        rest = rest.get(if is_segments { 3 } else { sign.len_utf8() }..).unwrap_or_default();
        // True after a position that the pattern reached before this part, as long as a `*` lasts.
        let mut is_open = false;
        let mut was_reached = false;
        for (at, slot) in reached.iter_mut().enumerate() {
            let before = at.checked_sub(1).and_then(|at| path.get(at)).copied();
            let is_here = *slot;
            *slot = if is_segments {
                let ends_segment = is_open && before == Some('/');
                is_open |= is_here;
                is_here || ends_segment
            } else if sign == '*' {
                is_open = is_here || is_open && before != Some('/');
                is_open
            } else {
                was_reached && before == Some(sign)
            };
            was_reached = is_here;
        }
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (glob, name) in [
            ("System.Runtime", "system.runtime"),
            ("Microsoft*", "Microsoft-Windows-DotNETRuntime"),
            ("*runtime", "Microsoft-Windows-DotNETRuntime"),
            ("m*windows*net*", "Microsoft-Windows-DotNETRuntime"),
            ("*", ""),
            ("**", "x"),
            ("a*a", "aa"),
            ("a*b*c", "a-b-b-c"),
            ("GC/*", "GC/Start"),
            ("**/Start", "GC/Start"),
            ("*ä*", "xÄx"),
            ("*Σ*", "ΟΔΟΣ"),
        ] {
            assert!(Glob::new(glob).matches(name), "{glob} {name}");
        }
        for (glob, name) in [
            ("System", "System.Runtime"),
            ("Microsoft*", "My-Microsoft"),
            ("a*a", "a"),
            ("a*b*c", "acb"),
            ("*ab*ba*", "aba"),
            ("ab*ba", "aba"),
            ("", "x"),
        ] {
            assert!(!Glob::new(glob).matches(name), "{glob} {name}");
        }
    }

    #[test]
    fn names_of_events_match_with_and_without_their_slash() {
        for glob in ["Request/Start", "requeststart", "Request*", "*st/Start", "*tStart"] {
            assert!(Glob::new(glob).matches_event("Request/Start"), "{glob}");
        }
        assert!(!Glob::new("Request/Start").matches_event("RequestStart"));
        assert!(!Glob::new("*t/Stop").matches_event("Request/Start"));
    }

    #[test]
    fn stars_of_paths_stay_within_segments() {
        let rows = [
            ("/api/*", "/api/orders", true),
            ("/api/*", "/api/orders/7", false),
            ("/api/**", "/api/orders", true),
            ("/api/**", "/api/orders/7", false),
            ("/api/**/*", "/api/orders/7", true),
            ("/api/**/items", "/api/items", true),
            ("/api/**/items", "/api/orders/7/items", true),
            ("/api/**/items", "/api/ordersitems", false),
            ("**/index.html", "/a/b/INDEX.html", true),
            ("**/index.html", "index.html", true),
            ("/", "/", true),
            ("/", "/x", false),
            ("", "", true),
            ("*", "", true),
            ("*", "a/b", false),
            ("/a*c/*", "/abbc/", true),
            ("a***/b", "axb", true),
            ("**/a/**/b", "x/a/b", true),
            ("**/a/**/b", "a/y/z/b", true),
        ];
        for (pattern, path, expected) in rows {
            assert_eq!(Glob::path(pattern).matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn hostile_patterns_take_steps_in_proportion() {
        let pattern = Glob::path(&"**/*".repeat(500));
        // By backtracking this would take longer than the universe lasts.
        assert!(pattern.matches(&"a/".repeat(4000)));
        assert!(!Glob::path(&alloc::format!("{}b", "**/*".repeat(500))).matches(&"a/".repeat(4000)));
    }
}
