//! Errors in conditions.

/// An error in a condition, and its position.
///
/// ```
/// let text = "gc pause > soon";
/// let error = clr_conditions::Condition::parse(text).expect_err("not a time");
/// eprintln!("{text}\n{:>1$}\n{error}", "^", error.position() + 1);
/// assert_eq!(&text[error.position()..], "soon");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}, at character {}{}", .position.saturating_add(1), .near.as_ref().map(|near| format!(": {near:?}")).unwrap_or_default())]
pub struct ParseError {
    /// In characters, from 0.
    position: usize,
    message: String,
    /// The text there; `None` at the end.
    near: Option<String>,
}

/// Characters of the text that a message repeats.
const NEAR: usize = 40;

impl ParseError {
    /// The error at a byte offset of `text`.
    pub(crate) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let near: String = text.get(offset..).unwrap_or_default().chars().take(NEAR).collect();
        Self {
            position: before.chars().count(),
            message: message.into(),
            near: Some(near).filter(|near| !near.is_empty()),
        }
    }

    /// The position of the error in characters, from 0; the length of the text if something is missing at its
    /// end.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The error message, without the position.
    pub fn message(&self) -> &str {
        &self.message
    }
}
