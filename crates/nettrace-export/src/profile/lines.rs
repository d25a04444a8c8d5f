//! Source lines of frames, from a source of symbols that the caller provides.

use std::fmt;

use clr_events::code::{Code, Method};

/// A line of a source file. Prints as the last part of the file's path and the line: `File.cs:12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceLine<'a> {
    /// The file, as it was given to the compiler.
    pub file: &'a str,
    /// The line, from 1 on.
    pub line: u32,
}

impl<'a> SourceLine<'a> {
    /// The line of that number in a file.
    pub const fn new(file: &'a str, line: u32) -> Self {
        Self { file, line }
    }
}

impl fmt::Display for SourceLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(self.file);
        write!(f, "{name}:{}", self.line)
    }
}

/// Maps IL to source lines. Recordings lack this: it is in the PDB of a method's module.
///
/// ```
/// use nettrace_export::{SourceLine, SourceLines, clr_events::code::Method};
///
/// /// Lines of one file, 16 bytes of IL each.
/// struct Lines;
///
/// impl SourceLines for Lines {
///     fn line(&mut self, _: &Method<'_>, il_offset: u32) -> Option<SourceLine<'_>> {
///         Some(SourceLine::new("/src/Cart.cs", 1 + il_offset / 16))
///     }
/// }
/// assert_eq!(SourceLine::new("/src/Cart.cs", 12).to_string(), "Cart.cs:12");
/// ```
pub trait SourceLines: Send {
    /// Returns the source line of a method's IL, at an offset in bytes; `None` if it is unknown.
    fn line(&mut self, method: &Method<'_>, il_offset: u32) -> Option<SourceLine<'_>>;
}

/// Counts of frames with and without a line; each frame of each distinct stack counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineCounts {
    /// The line is known.
    pub found: u64,
    /// The recording maps the code to an IL offset, but the source of symbols lacks a line for it.
    pub without_line: u64,
    /// The recording does not map the code to IL. Runtimes do so only for jitted code; native code lacks IL.
    pub without_il: u64,
}

impl LineCounts {
    /// Returns the line of a frame of a stack, given the frame's `code`; the outcome is counted.
    ///
    /// The address of a thread is where it continues after a call, or after it was stopped. Its current work
    /// precedes that and may be on another line, so the code before the address is looked up.
    pub fn find<'l>(
        &mut self,
        lines: &'l mut dyn SourceLines,
        code: &Code<'_>,
        address: u64,
    ) -> Option<SourceLine<'l>> {
        let il = match code {
            Code::Method(method) => method.il_offset(address.saturating_sub(1)).map(|il| (method, il)),
            _ => None,
        };
        let line = il.and_then(|(method, il_offset)| lines.line(method, il_offset));
        let count = match (il, line) {
            (None, _) => &mut self.without_il,
            (_, None) => &mut self.without_line,
            _ => &mut self.found,
        };
        *count = count.saturating_add(1);
        line
    }
}
