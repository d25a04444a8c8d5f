//! Words and signs in a condition.

use crate::error::ParseError;
use clr_counters::Comparison;

/// Maximum length of a condition, in bytes.
pub(crate) const MAX_LENGTH: usize = 8192;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word(String),
    /// A quoted text.
    Quoted(String),
    Comparison(Comparison),
    Comma,
    Open,
    Close,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// In bytes.
    pub(crate) offset: usize,
    pub(crate) kind: TokenKind,
}

/// Splits a condition into tokens.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    if text.len() > MAX_LENGTH {
        return Err(ParseError::new(text, MAX_LENGTH, format!("a condition has {MAX_LENGTH} bytes at most")));
    }
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        let rest = text.get(offset..).unwrap_or_default();
        let kind = match c {
            c if c.is_whitespace() => continue,
            '(' => TokenKind::Open,
            ')' => TokenKind::Close,
            ',' => TokenKind::Comma,
            '\'' | '"' => {
                let mut content = String::new();
                loop {
                    match chars.next() {
                        Some((_, end)) if end == c => break TokenKind::Quoted(content),
                        Some((_, inner)) => content.push(inner),
                        None => return Err(ParseError::new(text, offset, "a quote has no end")),
                    }
                }
            }
            '>' | '<' | '=' | '!' => {
                let (comparison, length) = Comparison::at_start(rest)
                    .ok_or_else(|| ParseError::new(text, offset, "'!' is not a comparison; '!=' is"))?;
                if length == 2 {
                    chars.next();
                }
                TokenKind::Comparison(comparison)
            }
            first => {
                let mut word = String::from(first);
                // `EventID(80)` is one word.
                let mut depth = 0_u32;
                while let Some((_, next)) = chars.peek().copied() {
                    match next {
                        '(' => depth = depth.saturating_add(1),
                        ')' if depth > 0 => depth = depth.saturating_sub(1),
                        ')' | ',' | '>' | '<' | '=' | '!' => break,
                        next if next.is_whitespace() => break,
                        // `reason:'out of stock'`
                        '\'' | '"' if word.ends_with(':') => break,
                        _ => {}
                    }
                    word.push(next);
                    chars.next();
                }
                TokenKind::Word(word)
            }
        };
        tokens.push(Token { offset, kind });
    }
    Ok(tokens)
}
