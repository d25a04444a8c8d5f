//! The header of a recording: its version, and the trace object or block.

use super::frame::ScanResult;
use super::{Layout, fast_serialization, trace, v6};
use crate::cursor::{ReadError, ReadResult};
use crate::error::Error;
use crate::info::{Format, TraceInfo};
use fast_serialization::{FAST_SERIALIZATION, NETTRACE};

/// The newest version that this crate reads.
const NEWEST: u32 = 6;
/// The newest version with a stream of objects.
const NEWEST_OF_OBJECTS: u32 = 4;

/// The bytes that distinguish a recording from anything else. With fewer, the answer would depend on how they
/// were split.
const MAGIC: usize = 8;

/// The header of a recording: everything before its first block.
///
/// | version | content |
/// |---|---|
/// | 1, 2 | `!FastSerialization.1`, the type and the fields of the object `Microsoft.DotNet.Runtime.EventPipeFile` |
/// | 3 | `!FastSerialization.1`, the object `Trace` |
/// | 4, 5 | `Nettrace`, `!FastSerialization.1`, the object `Trace` |
/// | 6 | `Nettrace`, four zeros, major and minor version, the block `Trace` |
///
/// ```
/// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
/// let header = nettrace::raw::Header::parse(bytes)?;
/// println!("version {}, blocks from offset {}", header.info().version, header.size());
/// assert_eq!(header.layout(), nettrace::raw::Layout::V6);
/// # Ok::<(), nettrace::Error>(())
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md` and `NetTraceFormat_v5.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub(crate) info: TraceInfo,
    pub(crate) layout: Layout,
    pub(crate) size: usize,
}

impl Header {
    /// Parses the header at the start of `bytes`, which may be more or less than a header.
    ///
    /// # Errors
    /// If the bytes are not a recording, are of a newer version, or end inside the header.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        match Self::scan(bytes, true)? {
            ScanResult::Found(header) => Ok(header),
            // At the end of input the scan has an answer.
            ScanResult::NeedMore(_) | ScanResult::Invalid(_) => Err(ends_inside(bytes)),
        }
    }

    /// Parses the header, which may be incomplete unless `end` declares the input complete.
    pub(crate) fn scan(bytes: &[u8], end: bool) -> Result<ScanResult<Self>, Error> {
        if bytes.is_empty() && end {
            return Err(Error::Empty);
        }
        let found = match MAGIC.checked_sub(bytes.len()) {
            Some(missing @ 1..) => ScanResult::NeedMore(missing),
            _ => header(bytes)?,
        };
        match found {
            ScanResult::NeedMore(_) if !end => Ok(found),
            ScanResult::NeedMore(_) => Err(ends_inside(bytes)),
            ScanResult::Invalid(what) => Err(bad(0, what)),
            ScanResult::Found(_) => Ok(found),
        }
    }

    /// Format, version, clock and process.
    pub const fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// The layout of the rest of the stream.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The size of the header in bytes: the offset of the first block.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Returns true if events follow one another without blocks, as in V1 and V2.
    pub(crate) const fn is_flat(&self) -> bool {
        self.info.version < 3
    }
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
    // The object's end tag; netperf V1 and V2 have it after the last event.
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
    Ok(ScanResult::Found(Header { info: checked(info, data)?, layout, size: next }))
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
        _ => return Err(bad(v6::VERSION_SIZE, "the first block is not a Trace block")),
    };
    let Some(content) = bytes.get(frame.start..frame.end) else {
        return Ok(ScanResult::NeedMore(frame.end.saturating_sub(bytes.len())));
    };
    let info = checked(trace::v6(content, major, minor), frame.start)?;
    Ok(ScanResult::Found(Header { info, layout: Layout::V6, size: frame.next }))
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

fn ends_inside(bytes: &[u8]) -> Error {
    if bytes.len() < MAGIC {
        return not_a_trace(bytes);
    }
    bad(bytes.len(), "the recording ends inside its header")
}

fn not_a_trace(bytes: &[u8]) -> Error {
    Error::NotATrace { begins: bytes.iter().take(8).copied().collect() }
}
