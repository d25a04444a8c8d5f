//! Patterns that frames are chosen by.

use clr_events::Glob;

/// Text that a name must contain, ignoring case; `*` matches any text, `^` at the beginning the name's
/// beginning, and `$` at the end its end.
///
/// ```
/// use nettrace_export::Pattern;
///
/// let name = "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)";
/// assert!(Pattern::new("thread.sleep").matches(name));
/// assert!(Pattern::new("^System*Sleep").matches(name) && !Pattern::new("^Thread").matches(name));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    glob: Glob,
}

/// The pattern in lower case.
impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Pattern {
    /// Parses a pattern.
    pub fn new(text: &str) -> Self {
        let (inner, start) = text.strip_prefix('^').map_or((text, "*"), |rest| (rest, ""));
        let (inner, end) = inner.strip_suffix('$').map_or((inner, "*"), |rest| (rest, ""));
        Self { text: text.to_lowercase(), glob: Glob::new(&format!("{start}{inner}{end}")) }
    }

    /// Returns true if a name matches the pattern.
    pub fn matches(&self, name: &str) -> bool {
        self.glob.matches(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let name = "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)";
        for (pattern, fits) in [
            ("thread.sleep", true),
            ("Sleep", true),
            ("", true),
            ("*", true),
            ("^System.Private", true),
            ("^Threading", false),
            ("Sleep(int32)$", true),
            ("Sleep$", false),
            ("corelib!*sleep", true),
            ("sleep*corelib", false),
            ("^System*int32)$", true),
            ("^System.Private.CoreLib!System.Threading.Thread.Sleep(int32)$", true),
            ("^Sleep(int32)$", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), fits, "{pattern}");
        }
    }
}
