//! Patterns that frames are chosen by.

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
    parts: Vec<String>,
    at_start: bool,
    at_end: bool,
}

/// The pattern in lower case.
impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (start, end) = (if self.at_start { "^" } else { "" }, if self.at_end { "$" } else { "" });
        write!(f, "{start}{}{end}", self.parts.join("*"))
    }
}

impl Pattern {
    /// Parses a pattern.
    pub fn new(text: &str) -> Self {
        let (text, at_start) = text.strip_prefix('^').map_or((text, false), |rest| (rest, true));
        let (text, at_end) = text.strip_suffix('$').map_or((text, false), |rest| (rest, true));
        Self { parts: text.split('*').map(str::to_lowercase).collect(), at_start, at_end }
    }

    /// Returns true if a name matches the pattern.
    pub fn matches(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let mut rest = name.as_str();
        let last = self.parts.len().saturating_sub(1);
        for (index, part) in self.parts.iter().enumerate() {
            if index == last && self.at_end {
                let fits = rest.ends_with(part.as_str());
                return fits && !(index == 0 && self.at_start && rest.len() != part.len());
            }
            if index == 0 && self.at_start {
                match rest.strip_prefix(part.as_str()) {
                    Some(after) => rest = after,
                    None => return false,
                }
            } else {
                match rest.find(part.as_str()) {
                    Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
                    None => return false,
                }
            }
        }
        true
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
