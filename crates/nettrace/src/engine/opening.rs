//! The beginning of a recording: which version it is, and what it says about itself.

use crate::block::trace;
use crate::container::fast_serialization::{self, FAST_SERIALIZATION, NETTRACE};
use crate::container::{Found, v6};
use crate::cursor::{Bad, Parsed};
use crate::engine::{Engine, State, Step};
use crate::error::Error;
use crate::event::Layout;
use crate::info::{Format, TraceInfo};

/// The newest version that this crate reads.
const NEWEST: u32 = 6;
/// The newest version whose stream is one of objects.
const NEWEST_OF_OBJECTS: u32 = 4;

/// How many bytes tell what the rest is.
const MAGIC: usize = 8;

impl Engine {
    /// Reads the header. Nothing is consumed until all of it is there.
    pub(super) fn start(&mut self, bytes: &[u8], end: bool) -> Result<Option<Step>, Error> {
        if bytes.is_empty() && end {
            return Err(Error::Empty);
        }
        // Eight bytes tell a recording from anything else; with fewer the answer would depend on how they were split.
        let found = match MAGIC.checked_sub(bytes.len()) {
            Some(missing @ 1..) => Found::NeedMore(missing),
            _ => header(bytes)?,
        };
        match found {
            Found::Whole(header) => {
                self.layout = header.layout;
                self.state = header.state;
                self.at = header.size;
                self.tables.threads.are_described = header.layout == Layout::V6;
                self.tables.info = Some(header.info);
                Ok(None)
            }
            Found::NeedMore(more) if !end => Ok(Some(Step::NeedMore(more))),
            Found::NeedMore(_) if bytes.len() < MAGIC => Err(not_a_trace(bytes)),
            Found::NeedMore(_) => Err(bad(bytes.len(), "the recording ends inside its header")),
            Found::Bad(what) => Err(bad(0, what)),
        }
    }
}

struct Header {
    info: TraceInfo,
    layout: Layout,
    state: State,
    size: usize,
}

fn header(bytes: &[u8]) -> Result<Found<Header>, Error> {
    if let Some(rest) = bytes.strip_prefix(NETTRACE) {
        return match rest.first_chunk::<4>() {
            None => Ok(Found::NeedMore(4usize.saturating_sub(rest.len()))),
            Some([0, 0, 0, 0]) => blocks_header(bytes),
            Some(_) => objects_header(bytes, NETTRACE.len(), Format::Nettrace),
        };
    }
    objects_header(bytes, 0, Format::Netperf)
}

/// The part of the header that names the serialization, and the first object.
fn objects_header(bytes: &[u8], magic: usize, format: Format) -> Result<Found<Header>, Error> {
    let rest = bytes.get(magic..).unwrap_or_default();
    if !rest.starts_with(FAST_SERIALIZATION) {
        if FAST_SERIALIZATION.starts_with(rest) {
            return Ok(Found::NeedMore(FAST_SERIALIZATION.len().saturating_sub(rest.len())));
        }
        return Err(not_a_trace(bytes));
    }
    let object = magic.saturating_add(FAST_SERIALIZATION.len());
    let (found, data) = match fast_serialization::item(bytes, object) {
        Found::Whole(fast_serialization::Item::Object(found, data)) => (found, data),
        Found::NeedMore(more) => return Ok(Found::NeedMore(more)),
        _ => return Err(bad(object, "no object follows")),
    };
    let expected: &[u8] =
        if found.version < 3 { b"Microsoft.DotNet.Runtime.EventPipeFile" } else { b"Trace" };
    if found.name != expected {
        return Err(bad(object, "the first object is of another type than Trace or EventPipeFile"));
    }
    if found.least_reader_version > NEWEST_OF_OBJECTS {
        return Err(Error::UnsupportedVersion { major: found.version, minor: 0, offset: object as u64 });
    }
    let flat = found.version < 3;
    let size = if flat { trace::NETPERF_V1_SIZE } else { trace::V4_SIZE };
    let end = data.saturating_add(size);
    // The object's end tag; netperf V1 and V2 have it behind the last event.
    let next = end.saturating_add(usize::from(!flat));
    let Some(content) = bytes.get(data..end).filter(|_| bytes.len() >= next) else {
        return Ok(Found::NeedMore(next.saturating_sub(bytes.len())));
    };
    if !flat && fast_serialization::ends_at(bytes, end) != Some(true) {
        return Err(bad(end, "the Trace object has no end"));
    }
    let info = if flat {
        trace::netperf_v1(content, found.version)
    } else {
        trace::v4(content, format, found.version)
    };
    let layout = if format == Format::Netperf { Layout::Netperf } else { Layout::V4 };
    let state = if flat { State::Flat } else { State::Objects };
    Ok(Found::Whole(Header { info: checked(info, data)?, layout, state, size: next }))
}

/// The version of V6, and the first block.
fn blocks_header(bytes: &[u8]) -> Result<Found<Header>, Error> {
    let (major, minor) = match v6::version(bytes) {
        Found::Whole(version) => version,
        Found::NeedMore(more) => return Ok(Found::NeedMore(more)),
        Found::Bad(what) => return Err(bad(0, what)),
    };
    if major > NEWEST {
        return Err(Error::UnsupportedVersion { major, minor, offset: 12 });
    }
    if major < NEWEST {
        return Err(bad(12, "a version before 6 has another header"));
    }
    let frame = match v6::item(bytes, v6::VERSION_SIZE) {
        Found::Whole(v6::Item::Trace(frame)) => frame,
        Found::NeedMore(more) => return Ok(Found::NeedMore(more)),
        _ => return Err(bad(v6::VERSION_SIZE, "the first block is no Trace block")),
    };
    let Some(content) = bytes.get(frame.start..frame.end) else {
        return Ok(Found::NeedMore(frame.end.saturating_sub(bytes.len())));
    };
    let info = checked(trace::v6(content, major, minor), frame.start)?;
    Ok(Found::Whole(Header { info, layout: Layout::V6, state: State::Blocks, size: frame.next }))
}

fn checked(info: Parsed<TraceInfo>, offset: usize) -> Result<TraceInfo, Error> {
    info.map_err(|error| match error {
        Bad::Short => bad(offset, "it is shorter than its own fields"),
        Bad::Invalid(what) => bad(offset, what),
    })
}

fn bad(offset: usize, what: &'static str) -> Error {
    Error::BadHeader { offset: offset as u64, what }
}

fn not_a_trace(bytes: &[u8]) -> Error {
    Error::NotATrace { begins: bytes.iter().take(8).copied().collect() }
}
