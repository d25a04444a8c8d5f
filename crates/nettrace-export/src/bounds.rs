//! Bounds of the output for a recording: a stack is recorded once, but every event may refer to it.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// Maximum length of a frame's name, in bytes.
pub const MAX_NAME_LENGTH: usize = 2048;

/// Bytes that any recording may become.
const FREE_OUTPUT: u64 = 64 << 20;

/// Bytes that each byte of a recording may become on top of that.
const OUTPUT_PER_BYTE: u64 = 2048;

/// Stacks that any profile may have, and how many more for each frame and place of the recording.
const FREE_STACKS: usize = 1 << 19;
const STACKS_PER_PLACE: usize = 8;

/// The same if stacks are below their causes.
const JOINED_STACKS_PER_PLACE: usize = 64;

/// Frames that are named for each stack that may be kept.
const LOOKUPS_PER_STACK: u64 = 8;

/// Maximum output for a number of recorded bytes: 64 MB, plus 2,048 bytes for each.
pub const fn most_output(recorded: u64) -> u64 {
    recorded.saturating_mul(OUTPUT_PER_BYTE).saturating_add(FREE_OUTPUT)
}

/// Maximum number of stacks for a number of frames of address stacks and of places where they were seen.
pub(crate) fn most_stacks(places: usize, is_joined: bool) -> u32 {
    let each = if is_joined { JOINED_STACKS_PER_PLACE } else { STACKS_PER_PLACE };
    let most = places.saturating_mul(each).saturating_add(FREE_STACKS).min(1 << 26);
    u32::try_from(most).unwrap_or(1 << 26)
}

/// Maximum number of named frames for a limit of stacks.
pub(crate) fn most_lookups(stacks: u32) -> u64 {
    u64::from(stacks).saturating_mul(LOOKUPS_PER_STACK)
}

/// Appends a name, cut at [`MAX_NAME_LENGTH`] bytes: a longer one ends in `…`. Returns whether it is whole.
pub fn push_name(text: &mut String, name: impl fmt::Display) -> bool {
    let mut bounded = Bounded { text, left: MAX_NAME_LENGTH };
    write!(bounded, "{name}").is_ok()
}

struct Bounded<'a> {
    text: &'a mut String,
    left: usize,
}

impl fmt::Write for Bounded<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if let Some(left) = self.left.checked_sub(part.len()) {
            self.left = left;
            self.text.push_str(part);
            return Ok(());
        }
        let end = (0..=self.left).rev().find(|end| part.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(part.get(..end).unwrap_or_default());
        self.text.push('…');
        self.left = 0;
        Err(fmt::Error)
    }
}

/// The result would have been larger than [`most_output`] allows. It is the source of the [`io::Error`] of
/// [`write`](crate::write).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooLarge {
    /// Bytes that were allowed.
    pub limit: u64,
}

impl TooLarge {
    /// The error of a result of more than `limit` bytes.
    pub const fn new(limit: u64) -> Self {
        Self { limit }
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.limit >> 20;
        write!(
            f,
            "the recording would become more than {megabytes} MB (64 MB and {OUTPUT_PER_BYTE} times its samples and stacks)"
        )
    }
}

impl std::error::Error for TooLarge {}

impl From<TooLarge> for io::Error {
    fn from(error: TooLarge) -> Self {
        Self::other(error)
    }
}

/// Passes on a limited number of bytes.
pub(crate) struct Limited<'a> {
    out: &'a mut dyn Write,
    limit: u64,
    left: u64,
}

impl<'a> Limited<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, limit: u64) -> Self {
        Self { out, limit, left: limit }
    }
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            return Err(TooLarge { limit: self.limit }.into());
        };
        let written = self.out.write(bytes)?;
        self.left = left.saturating_add(bytes.len().saturating_sub(written) as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters_and_marked() {
        let mut text = String::from("before ");
        assert!(push_name(&mut text, "n".repeat(MAX_NAME_LENGTH)));
        assert_eq!(text.len(), 7 + MAX_NAME_LENGTH);
        for name in ["n".repeat(MAX_NAME_LENGTH + 1), format!("n{}", "ü".repeat(MAX_NAME_LENGTH))] {
            let mut text = String::new();
            assert!(!push_name(&mut text, &name));
            let kept = text.strip_suffix('…').unwrap();
            assert!(name.starts_with(kept) && kept.len() > MAX_NAME_LENGTH - 2, "{}", kept.len());
        }
    }

    #[test]
    fn no_more_is_written_than_allowed() {
        let mut out = Vec::new();
        let mut limited = Limited::new(&mut out, 10);
        limited.write_all(b"0123456789").unwrap();
        let error = limited.write_all(b"x").unwrap_err();
        assert_eq!(error.get_ref().and_then(|source| source.downcast_ref()), Some(&TooLarge { limit: 10 }));
        assert_eq!(out, b"0123456789");
    }
}
