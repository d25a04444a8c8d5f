//! Filters of stacks.

use crate::pattern::Pattern;

/// A filter of stacks and their frames.
#[derive(Debug, Clone, Default)]
pub struct StackFilter {
    /// Only stacks with a frame that one of these matches, from the first such frame on; all if empty.
    pub roots: Vec<Pattern>,
    /// Frames that one of these matches disappear: what they weigh goes to their callers.
    pub hidden: Vec<Pattern>,
    /// A frame that calls itself is one.
    pub fold_recursion: bool,
}

impl StackFilter {
    /// Whether a stack begins with this frame.
    pub(crate) fn is_root(&self, name: &str) -> bool {
        self.roots.is_empty() || self.roots.iter().any(|pattern| pattern.matches(name))
    }

    pub(crate) fn is_hidden(&self, name: &str) -> bool {
        self.hidden.iter().any(|pattern| pattern.matches(name))
    }
}
