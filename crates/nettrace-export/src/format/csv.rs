//! A line for each span: when, how much, where.

use std::io::{self, Write};

use crate::profile::Profile;
use crate::profile::measure::Unit;
use crate::text::one_line;
use crate::write_options::WriteOptions;
use clr_events::StackId;

pub(super) fn write(profile: &Profile, options: WriteOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
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
            let Some((_, stack)) = profile.shown(span.total) else { continue };
            if stack_text.0 != Some(stack) {
                stack_text.0 = Some(stack);
                profile.frames_of(stack, &mut frames);
                stack_text.1.clear();
                for (index, frame) in frames.iter().enumerate() {
                    if index > 0 {
                        stack_text.1.push(b';');
                    }
                    quoted(&mut stack_text.1, profile.frames.name(*frame))?;
                }
                if options.for_spreadsheets && is_formula(&stack_text.1) {
                    stack_text.1.insert(0, b'\'');
                }
            }
            write!(
                out,
                "{},{},{},{process},{},\"",
                span.start.as_nanos(),
                span.weight,
                span.samples,
                thread.id
            )?;
            out.write_all(&stack_text.1)?;
            out.write_all(b"\"\n")?;
        }
    }
    Ok(())
}

/// Appends a frame between quotes: RFC 4180 doubles quotes in it.
fn quoted(text: &mut Vec<u8>, name: &str) -> io::Result<()> {
    one_line(text, &name.replace('"', "\"\""), ';')
}

/// Returns true if a spreadsheet takes the cell for a formula. Tabs and line ends, which it would skip first,
/// are escaped already.
fn is_formula(cell: &[u8]) -> bool {
    matches!(cell.first(), Some(b'=' | b'+' | b'-' | b'@'))
}
