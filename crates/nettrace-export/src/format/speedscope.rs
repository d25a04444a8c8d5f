//! Speedscope's file format: an evented profile for each thread.
//!
//! # Source
//! <https://www.speedscope.app/file-format-schema.json>

use std::io::{self, Write};

use crate::format::nesting::{self, Change};
use crate::profile::measure::Unit;
use crate::profile::{Profile, Thread};
use crate::text::{decimal, json_string};
use crate::write_options::WriteOptions;
use clr_events::StackId;

/// The number of decimals of a millisecond.
const MILLISECOND: u32 = 6;

/// Frames between the process and the thread, which the existing tools write and views rely on.
const BETWEEN: [&str; 2] = ["(Non-Activities)", "Threads"];

pub(super) fn write(profile: &Profile, options: WriteOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":")?;
    json_string(out, options.exporter)?;
    write!(out, ",\"name\":")?;
    json_string(out, options.title)?;
    write!(out, ",\"activeProfileIndex\":0,\n\"shared\":{{\"frames\":[")?;
    frames(profile, out)?;
    write!(out, "]}},\n\"profiles\":[")?;
    let depths = nesting::depths(&profile.stacks);
    let mut separator = "\n";
    for (index, thread) in profile.threads.iter().enumerate() {
        if has_anything(profile, thread) {
            out.write_all(separator.as_bytes())?;
            one_thread(profile, &depths, index, thread, out)?;
            separator = ",\n";
        }
    }
    out.write_all(b"\n]}\n")
}

fn has_anything(profile: &Profile, thread: &Thread) -> bool {
    thread.track.as_ref().is_some_and(|track| track.iter().any(|span| profile.shown(span.total).is_some()))
}

/// The frames of methods, then of causes in between, then of processes, then of threads.
fn frames(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let methods = profile.frames.iter().map(|(id, name)| (name, profile.frames.line(id)));
    let processes = profile.processes.iter().map(|process| &*process.frame);
    let threads = profile.threads.iter().map(|thread| &*thread.frame);
    let others = BETWEEN.into_iter().chain(processes).chain(threads).map(|name| (name, None));
    for (index, (name, source)) in methods.chain(others).enumerate() {
        out.write_all(if index == 0 { b"\n{\"name\":" } else { b",\n{\"name\":" })?;
        // The line is in the name, too: lists of frames show nothing else.
        json_string(out, name)?;
        if let Some(source) = source {
            out.write_all(b",\"file\":")?;
            json_string(out, source.file)?;
            write!(out, ",\"line\":{}", source.line)?;
        }
        out.write_all(b"}")?;
    }
    Ok(())
}

fn one_thread(
    profile: &Profile,
    depths: &[u32],
    index: usize,
    thread: &Thread,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(track) = &thread.track else { return Ok(()) };
    let (unit, digits) = match profile.measure.unit {
        Unit::Nanoseconds => ("milliseconds", MILLISECOND),
        Unit::Bytes => ("bytes", 0),
        Unit::Count => ("none", 0),
    };
    write!(out, "{{\"type\":\"evented\",\"unit\":\"{unit}\",\"name\":")?;
    json_string(out, &thread.frame)?;
    out.write_all(b",\"events\":[")?;
    let first = profile.frames.len();
    let processes = first + BETWEEN.len();
    let threads = processes + profile.processes.len();
    let roots = [processes + thread.process.index(), first, first + 1, threads + index];
    let frame = |node: StackId| profile.stacks.leaf(node).map_or(0, |frame| frame.0 as usize);
    let mut bounds: Option<(u64, u64)> = None;
    let mut separator = "\n";
    nesting::walk(profile, depths, track, |at, change| {
        bounds = Some((bounds.map_or(at, |(start, _)| start), at));
        let mut event = |kind: &str, frame: usize| {
            out.write_all(separator.as_bytes())?;
            separator = ",\n";
            out.write_all(kind.as_bytes())?;
            out.write_all(itoa::Buffer::new().format(frame).as_bytes())?;
            out.write_all(b",\"at\":")?;
            decimal(out, at, digits)?;
            out.write_all(b"}")
        };
        match change {
            Change::Begin => roots.iter().try_for_each(|root| event(OPEN, *root)),
            Change::Open(node) => event(OPEN, frame(node)),
            Change::Close(node) => event(CLOSE, frame(node)),
            Change::End => roots.iter().rev().try_for_each(|root| event(CLOSE, *root)),
        }
    })?;
    let (start, end) = bounds.unwrap_or_default();
    out.write_all(b"\n],\"startValue\":")?;
    decimal(out, start, digits)?;
    out.write_all(b",\"endValue\":")?;
    decimal(out, end, digits)?;
    out.write_all(b"}")
}

const OPEN: &str = "{\"type\":\"O\",\"frame\":";
const CLOSE: &str = "{\"type\":\"C\",\"frame\":";
