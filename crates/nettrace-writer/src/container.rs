//! The layer of blocks: the header of a recording, and blocks in their frames.
//!
//! | version | before the content of a block | after it |
//! |---|---|---|
//! | 4 | tags 5, 5, 1, versions 2, 2, the type's name, tag 6, the size, zeros up to an offset that is a multiple of 4 | tag 6 |
//! | 6 | the size in 24 bits and the kind in 8 | nothing |
//!
//! # Source
//! microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md` and `NetTraceFormat.md`.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use nettrace::{SystemTime, TraceInfo};

use crate::bytes::{string8, u16, u32, u64};
use crate::error::Error;
use crate::version::{Version, is_v6};

const BEGIN_OBJECT: u8 = 5;
const NULL_REFERENCE: u8 = 1;
const END_OBJECT: u8 = 6;

/// Maximum size of the content of a V6 block: its field has 24 bits.
const MAX_V6_BLOCK: usize = 0xff_ffff;
/// Maximum size of the content of a V4 block: its field is signed.
const MAX_V4_BLOCK: usize = 0x7fff_ffff;

/// The kind of a block that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Event,
    Metadata,
    SequencePoint,
    Stack,
    Thread,
    RemoveThread,
    LabelList,
}

impl Kind {
    const fn number(self) -> u32 {
        match self {
            Self::Event => 2,
            Self::Metadata => 3,
            Self::SequencePoint => 4,
            Self::Stack => 5,
            Self::Thread => 6,
            Self::RemoveThread => 7,
            Self::LabelList => 8,
        }
    }

    /// The name of the object's type; V4 has only these.
    const fn type_name(self) -> &'static str {
        match self {
            Self::Event => "EventBlock",
            Self::Metadata => "MetadataBlock",
            Self::SequencePoint => "SPBlock",
            Self::Stack => "StackBlock",
            Self::Thread | Self::RemoveThread | Self::LabelList => "",
        }
    }
}

/// The bytes of a recording that is being written. They are handed out in parts: `base` of them are gone.
#[derive(Debug)]
pub(crate) struct Container {
    version: Version,
    pub(crate) out: Vec<u8>,
    base: u64,
}

impl Container {
    pub(crate) fn new(version: Version, info: &TraceInfo) -> Result<Self, Error> {
        let mut container = Self { version, out: Vec::new(), base: 0 };
        match version {
            Version::V4 => container.header_v4(info),
            Version::V6 => container.header_v6(info)?,
        }
        Ok(container)
    }

    /// The offset of the next byte in the recording.
    pub(crate) fn offset(&self) -> u64 {
        self.base.saturating_add(self.out.len() as u64)
    }

    /// Drops the pending bytes, which were written.
    pub(crate) fn clear(&mut self) {
        self.base = self.offset();
        self.out.clear();
    }

    /// Passes the pending bytes to `write` and drops them, if there are more than `most`. An error keeps
    /// them.
    #[inline]
    pub(crate) fn drain<E>(
        &mut self,
        most: usize,
        write: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.out.len() <= most {
            return Ok(());
        }
        write(&self.out)?;
        self.clear();
        Ok(())
    }

    /// Writes the pending bytes to `out`, if there are more than `most`.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn drain_to(&mut self, most: usize, out: &mut impl std::io::Write) -> Result<(), Error> {
        let offset = self.base;
        self.drain(most, |bytes| out.write_all(bytes).map_err(|error| Error::Io { offset, error }))
    }

    /// Exchanges the pending bytes, which are then on their way, for an empty buffer.
    pub(crate) fn take(&mut self, mut buffer: Vec<u8>) -> Vec<u8> {
        self.base = self.offset();
        buffer.clear();
        core::mem::replace(&mut self.out, buffer)
    }

    fn header_v4(&mut self, info: &TraceInfo) {
        let out = &mut self.out;
        out.extend_from_slice(b"Nettrace\x14\0\0\0!FastSerialization.1");
        begin_object(out, "Trace", 4);
        clock(out, info);
        u32(out, info.pointer_size.into());
        u32(out, info.process_id.map_or(0, |id| id as u32));
        u32(out, info.processors.unwrap_or(0));
        u32(out, info.sampling_rate.map_or(0, |rate| rate as u32));
        out.push(END_OBJECT);
    }

    fn header_v6(&mut self, info: &TraceInfo) -> Result<(), Error> {
        self.out.extend_from_slice(b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0");
        let mut content = Vec::new();
        clock(&mut content, info);
        u32(&mut content, info.pointer_size.into());
        if is_v6(info) {
            u32(&mut content, info.key_values.len() as u32);
            for (key, value) in &info.key_values {
                string8(&mut content, key.as_bytes());
                string8(&mut content, value.as_bytes());
            }
        } else {
            let pairs = [
                ("HardwareThreadCount", info.processors.map(u64::from)),
                ("ProcessId", info.process_id),
                ("ExpectedCPUSamplingRate", info.sampling_rate),
            ];
            u32(&mut content, pairs.iter().filter(|(_, value)| value.is_some()).count() as u32);
            for (key, value) in pairs {
                if let Some(value) = value {
                    string8(&mut content, key.as_bytes());
                    string8(&mut content, value.to_string().as_bytes());
                }
            }
        }
        self.frame_v6(1, &content)
    }

    /// Writes a block with this content.
    pub(crate) fn block(&mut self, kind: Kind, content: &[u8]) -> Result<(), Error> {
        match self.version {
            Version::V4 => self.frame_v4(kind, content),
            Version::V6 => self.frame_v6(kind.number(), content),
        }
    }

    fn frame_v4(&mut self, kind: Kind, content: &[u8]) -> Result<(), Error> {
        let size = size(content, MAX_V4_BLOCK)?;
        begin_object(&mut self.out, kind.type_name(), 2);
        u32(&mut self.out, size);
        while !self.offset().is_multiple_of(4) {
            self.out.push(0);
        }
        self.out.extend_from_slice(content);
        self.out.push(END_OBJECT);
        Ok(())
    }

    fn frame_v6(&mut self, kind: u32, content: &[u8]) -> Result<(), Error> {
        let size = size(content, MAX_V6_BLOCK)?;
        u32(&mut self.out, kind << 24 | size);
        self.out.extend_from_slice(content);
        Ok(())
    }

    /// Writes the end of the recording.
    pub(crate) fn end(&mut self) {
        match self.version {
            Version::V4 => self.out.push(NULL_REFERENCE),
            Version::V6 => u32(&mut self.out, 0),
        }
    }
}

fn size(content: &[u8], limit: usize) -> Result<u32, Error> {
    u32::try_from(content.len()).ok().filter(|size| *size as usize <= limit).ok_or(Error::TooLarge {
        what: "block",
        size: content.len() as u64,
        limit: limit as u64,
    })
}

fn begin_object(out: &mut Vec<u8>, name: &str, version: u32) {
    out.extend_from_slice(&[BEGIN_OBJECT, BEGIN_OBJECT, NULL_REFERENCE]);
    u32(out, version);
    u32(out, version);
    u32(out, name.len() as u32);
    out.extend_from_slice(name.as_bytes());
    out.push(END_OBJECT);
}

fn clock(out: &mut Vec<u8>, info: &TraceInfo) {
    let SystemTime { year, month, day_of_week, day, hour, minute, second, millisecond } = info.start;
    for part in [year, month, day_of_week, day, hour, minute, second, millisecond] {
        u16(out, part);
    }
    u64(out, info.start_ticks.0);
    u64(out, info.frequency);
}
