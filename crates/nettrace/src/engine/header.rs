//! The beginning of a recording: which version it is, and what it says about itself.

use crate::block::trace;
use crate::container::fast_serialization::{self, FAST_SERIALIZATION, NETTRACE};
use crate::container::{ScanResult, v6};
use crate::cursor::{ReadError, ReadResult};
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
            Some(missing @ 1..) => ScanResult::NeedMore(missing),
            _ => header(bytes)?,
        };
        match found {
            ScanResult::Found(header) => {
                self.layout = header.layout;
                self.state = header.state;
                self.at = header.size;
                self.tables.threads.are_described = header.layout == Layout::V6;
                self.tables.info = Some(header.info);
                Ok(None)
            }
            ScanResult::NeedMore(more) if !end => Ok(Some(Step::NeedMore(more))),
            ScanResult::NeedMore(_) if bytes.len() < MAGIC => Err(not_a_trace(bytes)),
            ScanResult::NeedMore(_) => Err(bad(bytes.len(), "the recording ends inside its header")),
            ScanResult::Invalid(what) => Err(bad(0, what)),
        }
    }
}

struct Header {
    info: TraceInfo,
    layout: Layout,
    state: State,
    size: usize,
}

fn header(bytes: &[u8]) -> Result<ScanResult<Header>, Error> {
    if let Some(rest) = bytes.strip_prefix(NETTRACE) {
        return match rest.first_chunk::<4>() {
            None => Ok(ScanResult::NeedMore(4usize.saturating_sub(rest.len()))),
            Some([0, 0, 0, 0]) => blocks_header(bytes),
            Some(_) => objects_header(bytes, NETTRACE.len(), Format::Nettrace),
        };
    }
    objects_header(bytes, 0, Format::Netperf)
}

/// The part of the header that names the serialization, and the first object.
fn objects_header(bytes: &[u8], magic: usize, format: Format) -> Result<ScanResult<Header>, Error> {
    let rest = bytes.get(magic..).unwrap_or_default();
    if !rest.starts_with(FAST_SERIALIZATION) {
        if FAST_SERIALIZATION.starts_with(rest) {
            return Ok(ScanResult::NeedMore(FAST_SERIALIZATION.len().saturating_sub(rest.len())));
        }
        return Err(not_a_trace(bytes));
    }
    let object = magic.saturating_add(FAST_SERIALIZATION.len());
    let (found, data) = match fast_serialization::item(bytes, object) {
        ScanResult::Found(fast_serialization::Item::Object(found, data)) => (found, data),
        ScanResult::NeedMore(more) => return Ok(ScanResult::NeedMore(more)),
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
        return Ok(ScanResult::NeedMore(next.saturating_sub(bytes.len())));
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
    Ok(ScanResult::Found(Header { info: checked(info, data)?, layout, state, size: next }))
}

/// The version of V6, and the first block.
fn blocks_header(bytes: &[u8]) -> Result<ScanResult<Header>, Error> {
    let (major, minor) = match v6::version(bytes) {
        ScanResult::Found(version) => version,
        ScanResult::NeedMore(more) => return Ok(ScanResult::NeedMore(more)),
        ScanResult::Invalid(what) => return Err(bad(0, what)),
    };
    if major > NEWEST {
        return Err(Error::UnsupportedVersion { major, minor, offset: 12 });
    }
    if major < NEWEST {
        return Err(bad(12, "a version before 6 has another header"));
    }
    let frame = match v6::item(bytes, v6::VERSION_SIZE) {
        ScanResult::Found(v6::Item::Trace(frame)) => frame,
        ScanResult::NeedMore(more) => return Ok(ScanResult::NeedMore(more)),
        _ => return Err(bad(v6::VERSION_SIZE, "the first block is no Trace block")),
    };
    let Some(content) = bytes.get(frame.start..frame.end) else {
        return Ok(ScanResult::NeedMore(frame.end.saturating_sub(bytes.len())));
    };
    let info = checked(trace::v6(content, major, minor), frame.start)?;
    Ok(ScanResult::Found(Header { info, layout: Layout::V6, state: State::Blocks, size: frame.next }))
}

fn checked(info: ReadResult<TraceInfo>, offset: usize) -> Result<TraceInfo, Error> {
    info.map_err(|error| match error {
        ReadError::UnexpectedEnd => bad(offset, "it is shorter than its own fields"),
        ReadError::Invalid(what) => bad(offset, what),
    })
}

fn bad(offset: usize, what: &'static str) -> Error {
    Error::BadHeader { offset: offset as u64, what }
}

fn not_a_trace(bytes: &[u8]) -> Error {
    Error::NotATrace { begins: bytes.iter().take(8).copied().collect() }
}
