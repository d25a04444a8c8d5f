//! Names in filters and conditions: complete, or with `*` for any text.

use alloc::borrow::ToOwned as _;
use alloc::string::String;

/// A name, or a pattern of names; case is ignored.
///
/// ```
/// use clr_events::Glob;
///
/// let requests = Glob::new("Request*");
/// assert!(requests.matches("requeststop") && !requests.matches("MyRequest"));
/// assert!(Glob::new("RequestStart").matches_event("Request/Start"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    lower: String,
}

impl Glob {
    /// Parses a name, with `*` for any text.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), lower: text.to_lowercase() }
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
        let name = name.to_lowercase();
        let Some((start, rest)) = self.lower.split_once('*') else { return name == self.lower };
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

    /// Returns true if it matches the name of an event with or without its slash: `Request/Start`,
    /// `RequestStart`.
    pub fn matches_event(&self, name: &str) -> bool {
        self.matches(name) || name.contains('/') && self.matches(&name.replacen('/', "", 1))
    }
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
            ("GC/*", "GC/Start"),
            ("*ä*", "xÄx"),
        ] {
            assert!(Glob::new(glob).matches(name), "{glob} {name}");
        }
        for (glob, name) in [
            ("System", "System.Runtime"),
            ("Microsoft*", "My-Microsoft"),
            ("a*a", "a"),
            ("a*b*c", "acb"),
            ("*ab*ba*", "aba"),
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
}
