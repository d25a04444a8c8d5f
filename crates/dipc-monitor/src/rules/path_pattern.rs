//! Paths of requests, chosen by patterns.

use std::fmt;

/// A pattern of paths: `**/` matches any number of segments, `*` any text within a segment. Case is ignored.
///
/// ```
/// use dipc_monitor::rules::PathPattern;
///
/// let orders = PathPattern::new("/api/*/orders");
/// assert!(orders.matches("/API/eu/orders") && !orders.matches("/api/eu/west/orders"));
/// assert!(PathPattern::new("**/orders").matches("/api/eu/west/orders"));
/// ```
///
/// # Source
/// `GlobMatcher.cs` of dotnet/diagnostics: `**` without a slash is two `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Sign(char),
    /// Any text within a segment.
    WithinSegment,
    /// Nothing, or any text that ends with a slash.
    Segments,
}

impl PathPattern {
    /// Parses a pattern. Each text is one.
    pub fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(sign) = rest.chars().next() {
            let (part, length) = if rest.starts_with("**/") {
                (Part::Segments, 3)
            } else if sign == '*' {
                (Part::WithinSegment, 1)
            } else {
                (Part::Sign(lower(sign)), sign.len_utf8())
            };
            parts.push(part);
            rest = rest.get(length..).unwrap_or_default();
        }
        Self { text: text.to_owned(), parts }
    }

    /// Returns true if a path matches: its length times that of the pattern in steps.
    pub fn matches(&self, path: &str) -> bool {
        let path: Vec<char> = path.chars().map(lower).collect();
        // The positions of the path that the parts so far can reach.
        let mut reached = vec![false; path.len() + 1];
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        for part in &self.parts {
            let mut next = vec![false; reached.len()];
            let mut is_open = false;
            for (at, slot) in next.iter_mut().enumerate() {
                let is_here = reached.get(at).copied().unwrap_or(false);
                let before = at.checked_sub(1);
                let sign = before.and_then(|at| path.get(at)).copied();
                *slot = match part {
                    Part::Sign(wanted) => {
                        sign == Some(*wanted)
                            && before.and_then(|at| reached.get(at)).copied().unwrap_or(false)
                    }
                    Part::WithinSegment => {
                        is_open = is_here || (is_open && sign != Some('/'));
                        is_open
                    }
                    Part::Segments => {
                        let ends_segment = is_open && sign == Some('/');
                        is_open |= is_here;
                        is_here || ends_segment
                    }
                };
            }
            reached = next;
        }
        reached.last().copied().unwrap_or(false)
    }
}

/// The sign in lower case, if that is one sign.
fn lower(sign: char) -> char {
    let mut lower = sign.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => sign,
    }
}

/// The paths that count: paths that match an include pattern, or all without such patterns, except paths that
/// match an exclude pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct PathFilter {
    /// The paths to include; all if empty.
    pub include: Vec<PathPattern>,
    /// The paths to exclude.
    pub exclude: Vec<PathPattern>,
}

impl fmt::Display for PathFilter {
    /// Writes nothing for all paths, else ` of /a/*, not /b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (patterns, start) in [(&self.include, " of "), (&self.exclude, ", not ")] {
            for (number, pattern) in patterns.iter().enumerate() {
                write!(f, "{}{}", if number > 0 { ", " } else { start }, pattern.text)?;
            }
        }
        Ok(())
    }
}

impl PathFilter {
    /// Returns true if requests of a path count.
    pub fn accepts(&self, path: &str) -> bool {
        let is_in = |patterns: &[PathPattern]| patterns.iter().any(|pattern| pattern.matches(path));
        (self.include.is_empty() || is_in(&self.include)) && !is_in(&self.exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
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
            ("**/a/**/b", "x/a/b", true),
            ("**/a/**/b", "a/y/z/b", true),
        ];
        for (pattern, path, expected) in rows {
            assert_eq!(PathPattern::new(pattern).matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn exclusion_wins() {
        let patterns = |list: &[&str]| list.iter().map(|text| PathPattern::new(text)).collect();
        let filter = PathFilter { include: patterns(&["/api/**/*"]), exclude: patterns(&["**/health"]) };
        let rows = [("/api/a", true), ("/api/health", false), ("/x", false)];
        for (path, expected) in rows {
            assert_eq!(filter.accepts(path), expected, "{path}");
        }
        assert!(PathFilter::default().accepts("/anything"));
    }

    #[test]
    fn hostile_patterns_take_steps_in_proportion() {
        let pattern = PathPattern::new(&"**/*".repeat(500));
        // By backtracking this would take longer than the universe lasts.
        assert!(pattern.matches(&"a/".repeat(4000)));
        assert!(!PathPattern::new(&format!("{}b", "**/*".repeat(500))).matches(&"a/".repeat(4000)));
    }
}
