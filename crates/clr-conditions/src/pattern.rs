//! Texts in which `*` matches any text.

/// A text or a pattern of texts, in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    written: String,
    lower: String,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self { written: text.to_owned(), lower: text.to_lowercase() }
    }

    /// Whether it matches more than one text.
    pub(crate) fn has_star(&self) -> bool {
        self.lower.contains('*')
    }

    /// The text, as written.
    pub(crate) fn as_written(&self) -> &str {
        &self.written
    }

    /// The text, in lower case.
    pub(crate) fn text(&self) -> &str {
        &self.lower
    }

    /// Whether it matches all of a text. The time is bounded by the product of both lengths.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let Some((start, rest)) = self.lower.split_once('*') else { return text == self.lower };
        let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(mut inner) = text.strip_prefix(start).and_then(|text| text.strip_suffix(end)) else {
            return false;
        };
        // Matching each part at its first occurrence leaves most of the text for the others.
        for part in middle.split('*') {
            let Some((_, behind)) = inner.split_once(part) else { return false };
            inner = behind;
        }
        true
    }
}
