//! Names for the addresses of stacks.

use std::fmt::Write as _;

use clr_events::code::Names;
use clr_events::{FrameId, Frames};
use nettrace::Event;

use crate::json;

/// Names, each put into words once.
#[derive(Debug)]
pub(crate) struct Symbols<'m> {
    frames: Frames<'m>,
    /// By frame: the name, then the name as a JSON string.
    written: Vec<[Box<[u8]>; 2]>,
    text: String,
}

impl<'m> Symbols<'m> {
    pub(crate) fn new(names: Names<'m>) -> Self {
        Self { frames: Frames::new(names), written: Vec::new(), text: String::new() }
    }

    /// Appends what an address of an event's stack is called, or the address.
    pub(crate) fn push_text(&mut self, out: &mut Vec<u8>, event: &Event<'_>, address: u64) {
        let frame = self.frame(event, address);
        out.extend_from_slice(&self.written[frame.index()][0]);
    }

    /// Appends it as a JSON string.
    pub(crate) fn push_json(&mut self, out: &mut Vec<u8>, event: &Event<'_>, address: u64) {
        let frame = self.frame(event, address);
        out.extend_from_slice(&self.written[frame.index()][1]);
    }

    fn frame(&mut self, event: &Event<'_>, address: u64) -> FrameId {
        let frame = self.frames.at(event.process_id(), address, event.time());
        for code in &self.frames.all()[self.written.len()..] {
            self.text.clear();
            // Writing into a `String` does not fail.
            let _ = write!(self.text, "{code}");
            let mut string = Vec::with_capacity(self.text.len() + 2);
            json::push_str(&mut string, &self.text);
            // People are told at least which file it is.
            if !code.is_named() && !code.module().is_empty() {
                self.text.insert(0, '!');
                self.text.insert_str(0, code.module());
            }
            self.written.push([self.text.as_bytes().into(), string.into()]);
        }
        frame
    }
}
