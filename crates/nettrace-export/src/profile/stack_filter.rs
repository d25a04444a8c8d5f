//! Filters of stacks.

use crate::profile::pattern::Pattern;

/// A filter of stacks and their frames.
///
/// ```
/// use nettrace_export::{Metric, Options, Pattern, StackFilter};
///
/// let filter = StackFilter::default()
///     .with_roots(vec![Pattern::new("Cart.")])
///     .with_hidden(vec![Pattern::new("System.Linq")])
///     .with_fold_recursion(true);
/// let options = Options::new(Metric::Wall).with_filter(filter);
/// assert_eq!(options.filter.roots.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackFilter {
    /// Only stacks with a frame that matches any of these, from the first such frame on; all if empty.
    pub roots: Vec<Pattern>,
    /// Frames that match one of these disappear: their weight goes to their callers.
    pub hidden: Vec<Pattern>,
    /// A frame that calls itself is one.
    pub fold_recursion: bool,
}

impl StackFilter {
    /// With these [`roots`](Self::roots).
    #[must_use]
    pub fn with_roots(self, roots: Vec<Pattern>) -> Self {
        Self { roots, ..self }
    }

    /// With these [`hidden`](Self::hidden) frames.
    #[must_use]
    pub fn with_hidden(self, hidden: Vec<Pattern>) -> Self {
        Self { hidden, ..self }
    }

    /// With or without [`fold_recursion`](Self::fold_recursion).
    #[must_use]
    pub fn with_fold_recursion(self, fold_recursion: bool) -> Self {
        Self { fold_recursion, ..self }
    }

    /// Returns true if a stack begins with this frame.
    pub(crate) fn is_root(&self, name: &str) -> bool {
        self.roots.is_empty() || self.roots.iter().any(|pattern| pattern.matches(name))
    }

    pub(crate) fn is_hidden(&self, name: &str) -> bool {
        self.hidden.iter().any(|pattern| pattern.matches(name))
    }
}
