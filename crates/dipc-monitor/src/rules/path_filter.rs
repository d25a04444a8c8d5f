//! Paths of requests, chosen by patterns.

use std::fmt;

use clr_events::Glob;

/// The paths that count: paths that match an include pattern, or all without such patterns, except paths that
/// match an exclude pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct PathFilter {
    /// The paths to include ([`Glob::path`]); all if empty.
    pub include: Vec<Glob>,
    /// The paths to exclude.
    pub exclude: Vec<Glob>,
}

impl fmt::Display for PathFilter {
    /// Writes nothing for all paths, else ` of /a/*, not /b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (patterns, start) in [(&self.include, " of "), (&self.exclude, ", not ")] {
            for (number, pattern) in patterns.iter().enumerate() {
                write!(f, "{}{}", if number > 0 { ", " } else { start }, pattern.text())?;
            }
        }
        Ok(())
    }
}

impl PathFilter {
    /// Returns true if requests of a path count.
    pub fn accepts(&self, path: &str) -> bool {
        let is_in = |patterns: &[Glob]| patterns.iter().any(|pattern| pattern.matches(path));
        (self.include.is_empty() || is_in(&self.include)) && !is_in(&self.exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusion_wins() {
        let patterns = |list: &[&str]| list.iter().map(|text| Glob::path(text)).collect();
        let filter = PathFilter { include: patterns(&["/api/**/*"]), exclude: patterns(&["**/health"]) };
        let rows = [("/api/a", true), ("/api/health", false), ("/x", false)];
        for (path, expected) in rows {
            assert_eq!(filter.accepts(path), expected, "{path}");
        }
        assert!(PathFilter::default().accepts("/anything"));
    }
}
