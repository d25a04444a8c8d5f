//! Faults of a configuration, with their places.

use std::fmt;
use std::sync::Arc;

/// The place of a key: a source, and for files a line and a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Location {
    /// The number of the source, in the order of their precedence.
    pub(crate) source: u32,
    /// The line, from 1; 0 for sources without lines.
    pub line: u32,
    /// The column in characters, from 1; 0 for sources without lines.
    pub column: u32,
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a caller decides on each: what is not refused is let through")]
pub enum Severity {
    /// The key does not need an effect here, and is ignored.
    Ignored,
    /// The key means something that this program does not do.
    Unsupported,
    /// The key or its value is wrong: the part that it belongs to is not used.
    Error,
}

impl Severity {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Unsupported => "unsupported",
            Self::Error => "error",
        }
    }
}

/// A fault of a configuration, or a part of it without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The weight of the finding.
    pub severity: Severity,
    /// The name of the file or the environment variable.
    pub source: Arc<str>,
    /// The place in it.
    pub location: Location,
    /// The path of the key, joined by colons; empty for a file that cannot be read.
    pub key: String,
    /// The fault. It includes untrusted strings of the source.
    pub message: String,
    /// The fix, if known.
    pub help: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if self.location.line > 0 {
            write!(f, ":{}:{}", self.location.line, self.location.column)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The findings of one reading, and the names of the sources.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) sources: Vec<Arc<str>>,
    pub(crate) list: Vec<Finding>,
    pub(crate) left_out: u64,
    /// True if a part of a configuration is read, which refers to parts that are elsewhere.
    pub(crate) is_part: bool,
}

/// Maximum number of findings to keep; further ones are counted.
const MAX_FINDINGS: usize = 1000;

impl Findings {
    /// Adds a source, and returns its number.
    pub(crate) fn add_source(&mut self, name: &str) -> u32 {
        self.sources.push(name.into());
        u32::try_from(self.sources.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    pub(crate) fn source(&self, location: Location) -> Arc<str> {
        let known = usize::try_from(location.source).ok().and_then(|number| self.sources.get(number));
        known.cloned().unwrap_or_else(|| "".into())
    }

    pub(crate) fn add(
        &mut self,
        severity: Severity,
        location: Location,
        key: &str,
        message: String,
        help: Option<String>,
    ) {
        if self.list.len() >= MAX_FINDINGS {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let source = self.source(location);
        self.list.push(Finding { severity, source, location, key: key.to_owned(), message, help });
    }

    pub(crate) fn error(&mut self, location: Location, key: &str, message: String, help: Option<String>) {
        self.add(Severity::Error, location, key, message, help);
    }
}
