//! Perfetto's protobuf traces: a track for each thread, frames as slices.
//!
//! # Source
//! `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto` and `interned_data.proto` of
//! google/perfetto.

use std::io::{self, Write};

use prost::Message as _;

use crate::format::nesting::{self, Change};
use crate::format::protobuf::perfetto::{
    Annotation, Interned, Name, Packet, Process, SourceLocation, Thread as ThreadOut, Trace, Track,
    TrackEvent,
};
use crate::profile::frame::FrameId;
use crate::profile::{Profile, Thread};
use clr_events::StackId;

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
/// The sequence's interned names are all new.
const INCREMENTAL_STATE_CLEARED: u32 = 1;
/// The packet refers to interned names.
const NEEDS_INCREMENTAL_STATE: u32 = 2;
/// All packets are of one sequence.
const SEQUENCE: u32 = 1;

pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let mut packets = Packets { out, buffer: Vec::new() };
    let names = profile
        .frames
        .iter()
        .map(|(frame, name)| Name { iid: Some(name_iid(frame)), name: Some(name.to_owned()) });
    let source_locations = profile.frames.iter().filter_map(|(frame, _)| {
        let source = profile.frames.line(frame)?;
        Some(SourceLocation {
            iid: Some(name_iid(frame)),
            file_name: Some(source.file.to_owned()),
            function_name: Some(profile.frames.method(frame).to_owned()),
            line_number: Some(source.line),
        })
    });
    packets.write(Packet {
        interned: Some(Interned { names: names.collect(), source_locations: source_locations.collect() }),
        sequence_flags: Some(INCREMENTAL_STATE_CLEARED),
        ..Packet::default()
    })?;
    descriptors(profile, &mut packets)?;
    let depths = nesting::depths(&profile.stacks);
    for (index, thread) in profile.threads.iter().enumerate() {
        if profile.measure.unit.is_time() {
            nested(profile, &depths, index, thread, &mut packets)?;
        } else {
            points(profile, index, thread, &mut packets)?;
        }
    }
    Ok(())
}

struct Packets<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
}

impl Packets<'_> {
    fn write(&mut self, packet: Packet) -> io::Result<()> {
        self.buffer.clear();
        let packet = Packet { sequence_id: Some(SEQUENCE), ..packet };
        // A trace is its packets, one after the other.
        Trace { packet: vec![packet] }.encode_raw(&mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    fn event(&mut self, at: u64, event: TrackEvent) -> io::Result<()> {
        self.write(Packet {
            timestamp: Some(at),
            track_event: Some(event),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE),
            ..Packet::default()
        })
    }
}

fn descriptors(profile: &Profile, packets: &mut Packets<'_>) -> io::Result<()> {
    for (index, process) in profile.processes.iter().enumerate() {
        let name = process.name.clone().unwrap_or_else(|| process.frame.clone());
        let process = Process { pid: Some(number(process.id)), name: Some(name) };
        let track = Track { uuid: Some(uuid(index, PROCESS)), process: Some(process), thread: None };
        packets.write(Packet { track: Some(track), ..Packet::default() })?;
    }
    for (index, thread) in profile.threads.iter().enumerate() {
        let pid = profile.process_of(thread).map_or(0, |process| process.id);
        let named = ThreadOut {
            pid: Some(number(pid)),
            tid: Some(number(thread.id)),
            name: Some(thread.frame.clone()),
        };
        let track = Track { uuid: Some(uuid(index, THREAD)), process: None, thread: Some(named) };
        packets.write(Packet { track: Some(track), ..Packet::default() })?;
    }
    Ok(())
}

fn nested(
    profile: &Profile,
    depths: &[u32],
    index: usize,
    thread: &Thread,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let Some(track) = &thread.track else { return Ok(()) };
    let event = |kind, node: Option<StackId>| TrackEvent {
        kind: Some(kind),
        name_iid: node.and_then(|node| frame_iid(profile, node)),
        track_uuid: Some(uuid(index, THREAD)),
        source_location_iid: node.and_then(|node| line_iid(profile, node)),
        ..TrackEvent::default()
    };
    nesting::walk(profile, depths, track, |at, change| match change {
        Change::Open(node) => packets.event(at, event(SLICE_BEGIN, Some(node))),
        Change::Close(_) => packets.event(at, event(SLICE_END, None)),
        Change::Begin | Change::End => Ok(()),
    })
}

fn points(profile: &Profile, index: usize, thread: &Thread, packets: &mut Packets<'_>) -> io::Result<()> {
    let Some(track) = &thread.track else { return Ok(()) };
    let unit = profile.measure.unit.name();
    for span in track.iter() {
        let Some((_, stack)) = profile.shown(span.total) else { continue };
        let weight = Annotation { number: Some(span.weight), name: Some(unit.to_owned()) };
        let event = TrackEvent {
            annotations: vec![weight],
            kind: Some(INSTANT),
            name_iid: frame_iid(profile, stack),
            track_uuid: Some(uuid(index, THREAD)),
            source_location_iid: line_iid(profile, stack),
        };
        packets.event(span.start.as_nanos().max(0).unsigned_abs(), event)?;
    }
    Ok(())
}

fn name_iid(frame: FrameId) -> u64 {
    // 0 means no name.
    u64::from(frame.0) + 1
}

fn frame_iid(profile: &Profile, node: StackId) -> Option<u64> {
    profile.stacks.leaf(node).map(name_iid)
}

/// The line of a frame has the number of its name.
fn line_iid(profile: &Profile, node: StackId) -> Option<u64> {
    profile.stacks.leaf(node).filter(|frame| profile.frames.line(*frame).is_some()).map(name_iid)
}

const PROCESS: u64 = 1;
const THREAD: u64 = 2;

/// The number of a track; 0 is the trace's own.
fn uuid(index: usize, kind: u64) -> u64 {
    (index as u64) << 2 | kind
}

fn number(id: u64) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}
