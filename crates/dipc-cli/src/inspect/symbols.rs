//! Names for the addresses of stacks.

use std::fmt::Write as _;

use clr_events::code::Symbolizer;
use clr_events::{CodeFrameId, CodeFrames, json};
use nettrace::Event;
use nettrace_export::events::StackSymbols;
use nettrace_export::{LineCounts, push_name};

use crate::inspect::lines::PdbLines;

/// A cache of names, which are formatted once each.
#[derive(Debug)]
pub(crate) struct Symbols<'m> {
    names: Symbolizer<'m>,
    frames: CodeFrames<'m>,
    /// The formatted names by frame: as text, and as a JSON string.
    written: Vec<[Box<[u8]>; 2]>,
    lines: Option<PdbLines>,
    counts: LineCounts,
    text: String,
}

impl<'m> Symbols<'m> {
    /// Creates symbols, with lines if a source of them is given.
    pub(crate) fn new(names: Symbolizer<'m>, lines: Option<PdbLines>) -> Self {
        Self {
            names,
            frames: CodeFrames::new(names),
            written: Vec::new(),
            lines,
            counts: LineCounts::default(),
            text: String::new(),
        }
    }

    /// Returns the counts of line lookups so far.
    pub(crate) const fn counts(&self) -> LineCounts {
        self.counts
    }

    fn frame(&mut self, event: &Event<'_>, address: u64) -> CodeFrameId {
        let frame = self.frames.resolve(event.process_id(), address, event.time());
        for code in &self.frames.frames()[self.written.len()..] {
            self.text.clear();
            // Truncated names are marked as such.
            push_name(&mut self.text, code);
            let mut string = Vec::with_capacity(self.text.len() + 2);
            json::push_str(&mut string, &self.text);
            // Text output shows at least the file.
            if !code.is_named() && !code.module().is_empty() {
                let address = std::mem::take(&mut self.text);
                push_name(&mut self.text, format_args!("{}!{address}", code.module()));
            }
            self.written.push([self.text.as_bytes().into(), string.into()]);
        }
        frame
    }

    /// Formats the line for an address. Returns false if it is not wanted or not known.
    fn format_line(&mut self, event: &Event<'_>, address: u64) -> bool {
        let Some(lines) = &mut self.lines else { return false };
        let code = self.names.resolve(event.process_id(), address, event.time());
        let line = self.counts.find(lines, &code, address);
        self.text.clear();
        line.is_some_and(|line| write!(self.text, " ({line})").is_ok())
    }
}

impl StackSymbols for Symbols<'_> {
    fn push_text(&mut self, out: &mut Vec<u8>, event: &Event<'_>, address: u64) {
        let frame = self.frame(event, address);
        out.extend_from_slice(&self.written[frame.index()][0]);
        if self.format_line(event, address) {
            out.extend_from_slice(self.text.as_bytes());
        }
    }

    fn push_json(&mut self, out: &mut Vec<u8>, event: &Event<'_>, address: u64) {
        let frame = self.frame(event, address);
        out.extend_from_slice(&self.written[frame.index()][1]);
        if self.format_line(event, address) {
            // Joins both strings into one.
            out.pop();
            let quote = out.len();
            json::push_str(out, &self.text);
            out.remove(quote);
        }
    }
}
