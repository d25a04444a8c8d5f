//! Types of exceptions.

use crate::pattern::Pattern;

/// Types of exceptions, one of which is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExceptionTypes(pub(crate) Vec<Pattern>);

impl ExceptionTypes {
    /// Whether a type is among them; every type is if none is named. A name without a namespace is that of a type in any.
    pub(crate) fn contains(&self, name: &str) -> bool {
        let short = name.rsplit(['.', '+']).next().unwrap_or(name);
        self.0.is_empty()
            || self.0.iter().any(|pattern| {
                pattern.matches(name) || !pattern.text().contains('.') && pattern.matches(short)
            })
    }
}
