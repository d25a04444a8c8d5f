//! A line for each span: when, how much, where.

use std::io::{self, Write};

use crate::measure::Unit;
use crate::profile::Profile;
use clr_events::StackId;

pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let weight = match profile.measure.unit {
        Unit::Nanoseconds => "duration_ns",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    };
    writeln!(out, "time_ns,{weight},samples,pid,tid,stack")?;
    // One thread has the same stack many times.
    let mut stack_text: (Option<StackId>, Vec<u8>) = (None, Vec::new());
    let mut frames = Vec::new();
    for thread in &profile.threads {
        let process = profile.process_of(thread).map_or(0, |process| process.id);
        let Some(track) = &thread.track else { continue };
        for span in track.iter() {
            let Some((_, stack)) = profile.shown(span.site) else { continue };
            if stack_text.0 != Some(stack) {
                stack_text.0 = Some(stack);
                profile.frames_of(stack, &mut frames);
                stack_text.1.clear();
                for (index, frame) in frames.iter().enumerate() {
                    if index > 0 {
                        stack_text.1.push(b';');
                    }
                    quoted(&mut stack_text.1, profile.frames.name(*frame));
                }
            }
            write!(out, "{},{},{},{process},{},\"", span.start, span.weight, span.samples, thread.id)?;
            out.write_all(&stack_text.1)?;
            out.write_all(b"\"\n")?;
        }
    }
    Ok(())
}

/// What stands between quotes: RFC 4180 doubles those within.
fn quoted(text: &mut Vec<u8>, name: &str) {
    for byte in name.bytes() {
        match byte {
            b'"' => text.extend_from_slice(b"\"\""),
            b';' => text.push(b':'),
            0..=0x1f => text.push(b' '),
            byte => text.push(byte),
        }
    }
}
