//! Chromium's trace events: a track for each thread, frames as pairs of begin and end.
//!
//! # Source
//! "Trace Event Format", section "JSON Object Format", event types B, E, i and M; stack frames.

use std::io::{self, Write};

use crate::format::nesting::{self, Change};
use crate::profile::{Profile, Thread};
use crate::text::{decimal, json_string};
use crate::write_options::WriteOptions;
use clr_events::StackId;

/// The number of decimals of a microsecond.
const MICROSECOND: u32 = 3;

pub(super) fn write(profile: &Profile, options: WriteOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"name\":")?;
    json_string(out, options.title)?;
    out.write_all(b",\"exporter\":")?;
    json_string(out, options.exporter)?;
    out.write_all(b"},\n\"traceEvents\":[")?;
    let mut lines = Lines { out, profile, any: false };
    lines.names()?;
    let depths = nesting::depths(&profile.stacks);
    for thread in &profile.threads {
        if profile.measure.unit.is_time() {
            lines.nested(&depths, thread)?;
        } else {
            lines.points(thread)?;
        }
    }
    out.write_all(b"\n],\n\"stackFrames\":{")?;
    stack_frames(profile, out)?;
    out.write_all(b"\n}}\n")
}

struct Lines<'a> {
    out: &'a mut dyn Write,
    profile: &'a Profile,
    any: bool,
}

impl Lines<'_> {
    /// The separator, and the beginning of every event.
    fn event(&mut self, phase: char, thread: &Thread) -> io::Result<()> {
        let process = self.profile.process_of(thread).map_or(0, |process| process.id);
        let separator = if self.any { ",\n" } else { "\n" };
        self.any = true;
        write!(self.out, "{separator}{{\"ph\":\"{phase}\",\"pid\":{process},\"tid\":{}", thread.id)
    }

    fn names(&mut self) -> io::Result<()> {
        let profile = self.profile;
        for (index, process) in profile.processes.iter().enumerate() {
            let Some(thread) = profile.threads.iter().find(|thread| thread.process.index() == index) else {
                continue;
            };
            self.event('M', thread)?;
            self.out.write_all(b",\"name\":\"process_name\",\"args\":{\"name\":")?;
            json_string(self.out, process.name.as_deref().unwrap_or(&process.frame))?;
            self.out.write_all(b"}}")?;
        }
        for thread in &profile.threads {
            self.event('M', thread)?;
            self.out.write_all(b",\"name\":\"thread_name\",\"args\":{\"name\":")?;
            json_string(self.out, &thread.frame)?;
            self.out.write_all(b"}}")?;
        }
        Ok(())
    }

    fn time(&mut self, nanoseconds: u64) -> io::Result<()> {
        self.out.write_all(b",\"ts\":")?;
        decimal(self.out, nanoseconds, MICROSECOND)
    }

    /// Some readers match the end of a frame to its name.
    fn name(&mut self, node: StackId) -> io::Result<()> {
        self.out.write_all(b",\"cat\":\"sampleEvent\",\"name\":")?;
        json_string(self.out, frame_name(self.profile, node))
    }

    fn frame(&mut self, node: StackId) -> io::Result<()> {
        self.name(node)?;
        write!(self.out, ",\"sf\":{}", node.index())
    }

    fn nested(&mut self, depths: &[u32], thread: &Thread) -> io::Result<()> {
        let Some(track) = &thread.track else { return Ok(()) };
        let profile = self.profile;
        nesting::walk(profile, depths, track, |at, change| {
            match change {
                Change::Open(node) => {
                    self.event('B', thread)?;
                    self.time(at)?;
                    self.frame(node)?;
                }
                Change::Close(node) => {
                    self.event('E', thread)?;
                    self.time(at)?;
                    self.name(node)?;
                }
                Change::Begin | Change::End => return Ok(()),
            }
            self.out.write_all(b"}")
        })
    }

    fn points(&mut self, thread: &Thread) -> io::Result<()> {
        let Some(track) = &thread.track else { return Ok(()) };
        let profile = self.profile;
        let unit = profile.measure.unit.name();
        for span in track.iter() {
            let Some((_, stack)) = profile.shown(span.total) else { continue };
            self.event('i', thread)?;
            self.time(span.start.as_nanos().max(0).unsigned_abs())?;
            self.frame(stack)?;
            write!(self.out, ",\"s\":\"t\",\"args\":{{\"{unit}\":{}}}}}", span.weight)?;
        }
        Ok(())
    }
}

fn frame_name(profile: &Profile, node: StackId) -> &str {
    profile.stacks.leaf(node).map_or("", |frame| profile.frames.parts(frame).1)
}

fn stack_frames(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    for (index, stack) in profile.stacks.stacks().enumerate() {
        let (module, name) = profile.stacks.leaf(stack).map_or(("", ""), |frame| profile.frames.parts(frame));
        write!(out, "{}\n\"{}\":{{\"name\":", if index == 0 { "" } else { "," }, stack.index())?;
        json_string(out, name)?;
        out.write_all(b",\"category\":")?;
        json_string(out, module)?;
        if let Some(caller) = profile.stacks.caller(stack).filter(|caller| *caller != StackId::EMPTY) {
            write!(out, ",\"parent\":{}", caller.index())?;
        }
        out.write_all(b"}")?;
    }
    Ok(())
}
