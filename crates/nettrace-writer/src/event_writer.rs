//! Recordings of events from other sources than a recording.

use alloc::vec::Vec;

use nettrace::{Metadata, Ticks, TraceInfo, Uuid};

use crate::encoder::Encoder;
use crate::error::Error;
use crate::event_block::RowHeader;
use crate::event_kind::EventKind;
use crate::labels;
use crate::metadata::Properties;
use crate::omissions::Omissions;
use crate::version::Version;

/// The number of stacks or of pairs of activities, and the size of them, after which a sequence point ends
/// their numbers.
const MAX_STACKS: usize = 32_768;
const MAX_STACK_BYTES: usize = 16 << 20;

/// A kind of event that was [defined](EventWriter::define).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventKindId(u32);

/// A thread that was [described](EventWriter::thread).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadIndex(u64);

/// The activities of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_structs, reason = "the two activities that events have")]
pub struct Activities {
    /// The activity that the event belongs to.
    pub activity: Option<Uuid>,
    /// The activity that it is related to, such as the one that started its own.
    pub related: Option<Uuid>,
}

/// An event to be [written](EventWriter::write).
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "the parts of an event")]
pub struct OwnEvent<'a> {
    /// The kind of event.
    pub kind: EventKindId,
    /// The time of the event.
    pub time: Ticks,
    /// The thread of the event.
    pub thread: ThreadIndex,
    /// The processor on which it happened, if it is known.
    pub processor: Option<u32>,
    /// The addresses of its stack, leaf first.
    pub stack: &'a [u64],
    /// The activities of the event.
    pub activities: Activities,
    /// The values of its fields.
    pub payload: &'a [u8],
}

/// Writes a recording of your own events in memory: samples of the kernel, measurements that accompany a
/// recording. The recording is V6, or [V4](Self::of_version) for older readers.
///
/// Events are written in time order. Threads that events refer to are described before; each has its own
/// process.
///
/// ```
/// use nettrace::{SliceReader, Ticks, TraceInfo, TypeCode};
/// use nettrace_writer::{EventKind, EventWriter, FieldKind};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(1_000), vec![("ProcessId".into(), "7".into())]);
/// let mut writer = EventWriter::new(&info)?;
/// let fields = [("Count", FieldKind::Scalar(TypeCode::U32)), ("Text", FieldKind::Text)];
/// let tick = writer.define(&EventKind::new("Demo", 1, "Tick", &fields))?;
/// let thread = writer.thread(7, 8, Some("main"))?;
/// writer.event(tick, Ticks(1_500), thread, Some(0), &[0x1000, 0x2000], &[3, 0, 0, 0, 2, 0, b'h', b'i'])?;
/// writer.finish()?;
///
/// let mut events = SliceReader::new(writer.bytes())?;
/// let event = events.next()?.ok_or("an event")?;
/// assert_eq!((event.name(), event.process_id(), event.stack().len()), ("Tick", Some(7), 2));
/// let (name, value) = event.fields().last().ok_or("a field")??;
/// assert!(name == "Text" && matches!(value, nettrace::Value::Array(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EventWriter {
    encoder: Encoder,
    /// The threads; the [index](ThreadIndex) of each is one more than that here.
    threads: Vec<OwnThread>,
    newest: Ticks,
}

#[derive(Debug, Clone, Copy)]
struct OwnThread {
    /// The number by which rows refer to it: the index in V6, the id of the system's in V4.
    number: u64,
    /// The last sequence number.
    sequence: u32,
}

impl EventWriter {
    /// Creates a recording of V6 with this header.
    ///
    /// # Errors
    /// If the header is larger than a block can be.
    pub fn new(info: &TraceInfo) -> Result<Self, Error> {
        Self::of_version(Version::V6, info)
    }

    /// Creates a recording of a version with this header. What V4 cannot express is left out, and
    /// [counted](Self::omissions): names and processes of threads, [string](crate::FieldKind::Text) fields,
    /// and pairs of the header.
    ///
    /// ```
    /// use nettrace::{SliceReader, Ticks, TraceInfo};
    /// use nettrace_writer::{EventWriter, Version};
    ///
    /// let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), Vec::new());
    /// let mut writer = EventWriter::of_version(Version::V4, &info)?;
    /// writer.finish()?;
    /// assert_eq!(SliceReader::new(writer.bytes())?.info().map(|info| info.version), Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_version(version: Version, info: &TraceInfo) -> Result<Self, Error> {
        Ok(Self { encoder: Encoder::new(version, info)?, threads: Vec::new(), newest: info.start_ticks })
    }

    /// Defines a kind of event.
    ///
    /// # Errors
    /// If the description is larger than the format allows.
    pub fn define(&mut self, kind: &EventKind<'_>) -> Result<EventKindId, Error> {
        Ok(EventKindId(self.encoder.define_kind(kind)?))
    }

    /// Defines a kind of event by a description of V5, such as [`ParsedMetadata::of_definition`] returns.
    ///
    /// [`ParsedMetadata::of_definition`]: nettrace::raw::ParsedMetadata::of_definition
    ///
    /// # Errors
    /// As [`define`](Self::define).
    pub fn define_as(&mut self, kind: &Metadata) -> Result<EventKindId, Error> {
        Ok(EventKindId(self.encoder.define_from(kind, &Properties::of(kind), false)?))
    }

    /// Describes a thread of a process. V4 knows a thread by `thread_id` alone: describing it again returns
    /// the same.
    ///
    /// # Errors
    /// If the name is longer than the format allows.
    pub fn thread(
        &mut self,
        process_id: u64,
        thread_id: u64,
        name: Option<&str>,
    ) -> Result<ThreadIndex, Error> {
        let next = (self.threads.len() as u64).saturating_add(1);
        let number = match self.encoder.version {
            Version::V4 => {
                let known = self.threads.iter().position(|thread| thread.number == thread_id);
                if let Some(place) = known {
                    return Ok(ThreadIndex((place as u64).saturating_add(1)));
                }
                let omissions = &mut self.encoder.omissions;
                omissions.thread_descriptions = omissions.thread_descriptions.saturating_add(1);
                thread_id
            }
            Version::V6 => {
                self.encoder.describe_thread(next, name, Some(process_id), thread_id, [])?;
                next
            }
        };
        self.threads.push(OwnThread { number, sequence: 0 });
        Ok(ThreadIndex(next))
    }

    /// Writes an event with a stack of addresses, leaf first.
    ///
    /// # Errors
    /// If the payload is larger than the format allows.
    pub fn event(
        &mut self,
        kind: EventKindId,
        time: Ticks,
        thread: ThreadIndex,
        processor: Option<u32>,
        stack: &[u64],
        payload: &[u8],
    ) -> Result<(), Error> {
        let activities = Activities::default();
        self.write(&OwnEvent { kind, time, thread, processor, stack, activities, payload })
    }

    /// Writes an event with all its parts.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn write(&mut self, event: &OwnEvent<'_>) -> Result<(), Error> {
        let OwnEvent { kind, time, thread, processor, stack, activities, payload } = *event;
        let Encoder { stacks, labels, .. } = &self.encoder;
        if [stacks, labels].iter().any(|of| of.len() >= MAX_STACKS || of.size() >= MAX_STACK_BYTES) {
            self.sequence_point()?;
        }
        let stack_id = if stack.is_empty() {
            0
        } else {
            let bytes: Vec<u8> = stack.iter().flat_map(|address| address.to_le_bytes()).collect();
            self.encoder.stacks.intern(&bytes)?
        };
        let (number, sequence) = self.thread_mut(thread).map_or((0, 0), |thread| {
            thread.sequence = thread.sequence.wrapping_add(1);
            (thread.number, thread.sequence)
        });
        let mut row = RowHeader {
            metadata_id: kind.0,
            sequence,
            capture_thread: number,
            processor: processor.unwrap_or(u32::MAX),
            thread: number,
            stack_id,
            time,
            is_sorted: time >= self.newest,
            ..RowHeader::default()
        };
        let Activities { activity, related } = activities;
        match self.encoder.version {
            Version::V4 => (row.activity, row.related) = (activity, related),
            Version::V6 if activity.is_some() || related.is_some() => {
                row.label_list = self.encoder.labels.intern(&labels::of_activities(activity, related))?;
            }
            Version::V6 => {}
        }
        self.newest = self.newest.max(time);
        self.encoder.push(&row, payload)
    }

    /// Counts events of a thread that the source lost: a gap in its sequence numbers, which readers report as
    /// lost events.
    ///
    /// ```
    /// use nettrace::{SliceReader, Ticks, TraceInfo};
    /// use nettrace_writer::{EventKind, EventWriter};
    ///
    /// let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), Vec::new());
    /// let mut writer = EventWriter::new(&info)?;
    /// let tick = writer.define(&EventKind::new("Demo", 1, "Tick", &[]))?;
    /// let thread = writer.thread(7, 8, None)?;
    /// writer.event(tick, Ticks(5), thread, None, &[], &[])?;
    /// // The source dropped three events.
    /// writer.lost(thread, 3);
    /// writer.event(tick, Ticks(9), thread, None, &[], &[])?;
    /// writer.finish()?;
    /// let mut events = SliceReader::new(writer.bytes())?;
    /// events.for_each(|_| {})?;
    /// assert_eq!(events.loss().total(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lost(&mut self, thread: ThreadIndex, count: u32) {
        if let Some(thread) = self.thread_mut(thread) {
            thread.sequence = thread.sequence.wrapping_add(count);
        }
    }

    fn thread_mut(&mut self, thread: ThreadIndex) -> Option<&mut OwnThread> {
        let place = usize::try_from(thread.0.checked_sub(1)?).ok()?;
        self.threads.get_mut(place)
    }

    /// The content that the version cannot represent.
    pub const fn omissions(&self) -> &Omissions {
        &self.encoder.omissions
    }

    /// Moves everything held to the [bytes](Self::bytes), for a reader that wants the events so far.
    ///
    /// ```
    /// use nettrace::{Decoder, Ticks, TraceInfo};
    /// use nettrace_writer::{EventKind, EventWriter};
    ///
    /// let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), Vec::new());
    /// let mut writer = EventWriter::new(&info)?;
    /// let tick = writer.define(&EventKind::new("Demo", 1, "Tick", &[]))?;
    /// let thread = writer.thread(7, 8, None)?;
    /// writer.event(tick, Ticks(5), thread, None, &[], &[])?;
    /// // For a reader that shows events while they are written.
    /// writer.flush()?;
    /// let mut live = Decoder::new();
    /// live.feed(writer.bytes());
    /// assert_eq!(live.next()?.map(|event| event.time()), Some(Ticks(5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn flush(&mut self) -> Result<(), Error> {
        self.encoder.flush()
    }

    /// Ends the recording: the last sequence number of each thread, and the end of the stream.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn finish(&mut self) -> Result<(), Error> {
        self.sequence_point()?;
        self.encoder.end()
    }

    fn sequence_point(&mut self) -> Result<(), Error> {
        let threads = self.threads.iter().map(|thread| (thread.number, thread.sequence));
        let threads: Vec<_> = threads.filter(|(_, last)| *last != 0).collect();
        self.encoder.sequence_point(self.newest, &threads)
    }

    /// The bytes of the recording that were not [cleared](Self::clear_bytes) yet.
    pub fn bytes(&self) -> &[u8] {
        &self.encoder.container.out
    }

    /// Drops the pending bytes.
    pub fn clear_bytes(&mut self) {
        self.encoder.container.clear();
    }

    /// Writes the pending bytes to `out` and drops them, if there are more than `most`.
    ///
    /// ```
    /// use nettrace::{Ticks, TraceInfo};
    /// use nettrace_writer::{EventKind, EventWriter};
    ///
    /// # let mut file = Vec::new();
    /// let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), Vec::new());
    /// let mut writer = EventWriter::new(&info)?;
    /// let tick = writer.define(&EventKind::new("Demo", 1, "Tick", &[]))?;
    /// let thread = writer.thread(7, 8, None)?;
    /// for time in 0..1000 {
    ///     writer.event(tick, Ticks(time), thread, None, &[], &[])?;
    ///     // Memory stays small.
    ///     writer.drain_to(4096, &mut file)?;
    /// }
    /// writer.finish()?;
    /// writer.drain_to(0, &mut file)?;
    /// # assert!(file.starts_with(b"Nettrace"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`]; the bytes are kept then.
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    pub fn drain_to(&mut self, most: usize, out: &mut impl std::io::Write) -> Result<(), Error> {
        self.encoder.container.drain_to(most, out)
    }
}
