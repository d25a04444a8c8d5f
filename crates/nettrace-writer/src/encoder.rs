//! From rows and definitions to the blocks of a recording: in memory, without input or output.

use alloc::vec::Vec;

use nettrace::{Metadata, Thread, Ticks, TraceInfo};

use crate::bytes::{string8, u16, u32, u64, varuint};
use crate::container::{Container, Kind};
use crate::error::Error;
use crate::event_block::{EventBlock, RowHeader};
use crate::event_kind::EventKind;
use crate::interner::Interner;
use crate::metadata::{self, Properties};
use crate::omissions::Omissions;
use crate::version::{Version, is_v6};

/// The size at which an event block and its definitions are written: that of the runtimes' own blocks.
const BLOCK_SIZE: usize = 100 * 1024;

/// The blocks of one recording: definitions are written before the events that refer to them.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) version: Version,
    pub(crate) container: Container,
    pub(crate) omissions: Omissions,
    /// True if the events are from a V6 recording.
    pub(crate) from_v6: bool,
    pub(crate) start: Ticks,
    events: EventBlock,
    /// V4: rows of metadata.
    metadata_v4: EventBlock,
    /// V6: rows of metadata and of threads.
    metadata_v6: Vec<u8>,
    threads: Vec<u8>,
    last_metadata: u32,
    pub(crate) stacks: Interner,
    pub(crate) labels: Interner,
}

impl Encoder {
    pub(crate) fn new(version: Version, info: &TraceInfo) -> Result<Self, Error> {
        let mut omissions = Omissions::default();
        if version == Version::V4 {
            let is_said =
                |key: &str| ["ProcessId", "HardwareThreadCount", "ExpectedCPUSamplingRate"].contains(&key);
            omissions.key_values = info.key_values.iter().filter(|(key, _)| !is_said(key)).count() as u64;
        }
        Ok(Self {
            version,
            container: Container::new(version, info)?,
            omissions,
            from_v6: is_v6(info),
            start: info.start_ticks,
            events: EventBlock::new(),
            metadata_v4: EventBlock::new(),
            metadata_v6: Vec::new(),
            threads: Vec::new(),
            last_metadata: 0,
            stacks: Interner::default(),
            labels: Interner::default(),
        })
    }

    /// Returns the number for a new kind of event.
    pub(crate) fn next_metadata_id(&mut self) -> Result<u32, Error> {
        self.last_metadata = self
            .last_metadata
            .checked_add(1)
            .ok_or(Error::TooMany { what: "kinds of events", limit: u32::MAX.into() })?;
        Ok(self.last_metadata)
    }

    /// Defines a kind of event of the source and returns its number.
    pub(crate) fn define(&mut self, metadata: &Metadata, properties: &Properties) -> Result<u32, Error> {
        self.define_from(metadata, properties, self.from_v6)
    }

    /// Defines a kind of event that was described in V6, or before, and returns its number.
    pub(crate) fn define_from(
        &mut self,
        metadata: &Metadata,
        properties: &Properties,
        from_v6: bool,
    ) -> Result<u32, Error> {
        let id = self.next_metadata_id()?;
        match self.version {
            Version::V4 => {
                if self.metadata_v4.len() >= BLOCK_SIZE {
                    self.flush()?;
                }
                let payload = metadata::v4(id, metadata, properties, from_v6, &mut self.omissions);
                self.metadata_row_v4(&payload);
            }
            Version::V6 => {
                let row = metadata::v6(id, metadata, properties, from_v6, &mut self.omissions)?;
                self.metadata_row_v6(&row)?;
            }
        }
        Ok(id)
    }

    /// Defines a kind of event of the caller's own and returns its number.
    pub(crate) fn define_kind(&mut self, kind: &EventKind<'_>) -> Result<u32, Error> {
        let id = self.next_metadata_id()?;
        match self.version {
            Version::V4 => {
                let payload = metadata::v4_of_kind(id, kind, &mut self.omissions);
                self.metadata_row_v4(&payload);
            }
            Version::V6 => {
                let row = metadata::v6_of_kind(id, kind, &mut self.omissions)?;
                self.metadata_row_v6(&row)?;
            }
        }
        Ok(id)
    }

    /// V4: adds a row of metadata.
    fn metadata_row_v4(&mut self, payload: &[u8]) {
        let row = RowHeader {
            processor: u32::MAX,
            // The form in which runtimes write it: their encoder counts from the row before.
            sequence: 0,
            time: self.start,
            is_sorted: true,
            ..RowHeader::default()
        };
        self.metadata_v4.push(&row, payload);
    }

    /// V6: adds a row of metadata, its size included.
    pub(crate) fn metadata_row_v6(&mut self, row: &[u8]) -> Result<(), Error> {
        if self.metadata_v6.len() >= BLOCK_SIZE {
            self.flush()?;
        }
        if self.metadata_v6.is_empty() {
            // The size of the block's header, which has nothing.
            u16(&mut self.metadata_v6, 0);
        }
        self.metadata_v6.extend_from_slice(row);
        Ok(())
    }

    /// V6: describes the thread with that index, of that process.
    pub(crate) fn describe(
        &mut self,
        index: u64,
        thread: &Thread,
        process_id: Option<u64>,
    ) -> Result<(), Error> {
        let pairs = thread.key_values().iter().map(|(key, value)| (&**key, &**value));
        self.describe_thread(index, thread.name(), process_id, thread.id().0, pairs)
    }

    /// V6: describes the thread with that index, without a reader's description of it.
    pub(crate) fn describe_thread<'p>(
        &mut self,
        index: u64,
        name: Option<&str>,
        process_id: Option<u64>,
        thread_id: u64,
        key_values: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> Result<(), Error> {
        let mut row = Vec::new();
        varuint(&mut row, index);
        if let Some(name) = name {
            row.push(1);
            string8(&mut row, name.as_bytes());
        }
        if let Some(id) = process_id {
            row.push(2);
            varuint(&mut row, id);
        }
        row.push(3);
        varuint(&mut row, thread_id);
        for (key, value) in key_values {
            row.push(4);
            string8(&mut row, key.as_bytes());
            string8(&mut row, value.as_bytes());
        }
        self.thread_row(&row)
    }

    /// V6: adds a row that describes a thread.
    fn thread_row(&mut self, row: &[u8]) -> Result<(), Error> {
        let size = u16::try_from(row.len()).map_err(|_| Error::TooLarge {
            what: "description of a thread",
            size: row.len() as u64,
            limit: u16::MAX.into(),
        })?;
        if self.threads.len() >= BLOCK_SIZE {
            self.flush()?;
        }
        u16(&mut self.threads, size);
        self.threads.extend_from_slice(row);
        Ok(())
    }

    /// Adds an event.
    #[inline]
    pub(crate) fn push(&mut self, row: &RowHeader, payload: &[u8]) -> Result<(), Error> {
        // Microsoft's reader looks at the capture thread of an event that is marked as sorted, and of the
        // first event of a block.
        if !row.is_sorted
            && row.capture_thread != self.events.last_capture_thread()
            && !self.events.is_empty()
        {
            self.flush()?;
        }
        self.events.push(row, payload);
        if self.events.len() >= BLOCK_SIZE { self.flush() } else { self.flush_if_much_is_defined() }
    }

    #[inline]
    fn flush_if_much_is_defined(&mut self) -> Result<(), Error> {
        let pending = self.stacks.pending_bytes().max(self.labels.pending_bytes());
        if pending >= BLOCK_SIZE { self.flush() } else { Ok(()) }
    }

    /// Writes everything that is held.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if !self.metadata_v4.is_empty() {
            self.container.block(Kind::Metadata, self.metadata_v4.content())?;
            self.metadata_v4.clear();
        }
        for (kind, content) in [(Kind::Metadata, &mut self.metadata_v6), (Kind::Thread, &mut self.threads)] {
            if !content.is_empty() {
                self.container.block(kind, content)?;
                content.clear();
            }
        }
        if let Some(content) = self.labels.take_pending(false) {
            self.container.block(Kind::LabelList, &content)?;
        }
        if let Some(content) = self.stacks.take_pending(true) {
            self.container.block(Kind::Stack, &content)?;
        }
        if !self.events.is_empty() {
            self.container.block(Kind::Event, self.events.content())?;
            self.events.clear();
        }
        Ok(())
    }

    /// Writes a sequence point: threads, each with its last sequence number. Numbers of stacks and label
    /// lists end.
    pub(crate) fn sequence_point(&mut self, time: Ticks, threads: &[(u64, u32)]) -> Result<(), Error> {
        self.flush()?;
        let mut content = Vec::new();
        u64(&mut content, time.0);
        match self.version {
            Version::V4 => {
                u32(&mut content, threads.len() as u32);
                for (thread, sequence) in threads {
                    u64(&mut content, *thread);
                    u32(&mut content, *sequence);
                }
            }
            Version::V6 => {
                u32(&mut content, 0);
                u32(&mut content, threads.len() as u32);
                sequence_numbers(&mut content, threads);
            }
        }
        self.stacks.clear();
        self.labels.clear();
        self.container.block(Kind::SequencePoint, &content)
    }

    /// V6: ends the indexes of threads, each with its last sequence number.
    pub(crate) fn remove_threads(&mut self, threads: &[(u64, u32)]) -> Result<(), Error> {
        if threads.is_empty() {
            return Ok(());
        }
        self.flush()?;
        let mut content = Vec::new();
        sequence_numbers(&mut content, threads);
        self.container.block(Kind::RemoveThread, &content)
    }

    /// Writes everything that is held, and the end of the recording.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.container.end();
        Ok(())
    }
}

fn sequence_numbers(out: &mut Vec<u8>, threads: &[(u64, u32)]) {
    for (thread, sequence) in threads {
        varuint(out, *thread);
        varuint(out, (*sequence).into());
    }
}
