//! Types of exceptions.

use clr_events::Glob;

/// A set of exception types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExceptionTypes(pub(crate) Vec<Glob>);

impl ExceptionTypes {
    /// Returns true if a type is in the set; an empty set contains every type. A name without a namespace
    /// matches types in any namespace.
    pub(crate) fn contains(&self, name: &str) -> bool {
        let short = name.rsplit(['.', '+']).next().unwrap_or(name);
        self.0.is_empty()
            || self.0.iter().any(|pattern| {
                pattern.matches(name) || !pattern.lower().contains('.') && pattern.matches(short)
            })
    }
}
