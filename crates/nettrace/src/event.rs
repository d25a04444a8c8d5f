//! An event, the same for every version.

use core::ops::Range;

use uuid::Uuid;

use crate::label::{Label, Labels};
use crate::metadata::Metadata;
use crate::raw::{Layout, RowHeader};
use crate::stack::Stack;
use crate::tables::{Epoch, TableLengths, Tables};
use crate::thread::{Thread, ThreadId, ThreadSlot};
use crate::time::{RelativeTime, Ticks};
use crate::value::Fields;

/// An event that borrows its payload and its descriptions from the recording.
///
/// ```
/// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
/// let mut events = nettrace::SliceReader::new(bytes)?;
/// let event = events.next()?.expect("an event");
/// println!("{:?} {} {}", event.relative_time().since_start(), event.thread_id(), event.provider());
/// assert_eq!((event.name(), event.id(), event.level(), event.stack().len()), ("Tick", 1, 4, 2));
/// # Ok::<(), nettrace::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub(crate) header: &'a RowHeader,
    pub(crate) metadata: &'a Metadata,
    pub(crate) tables: &'a Tables,
    pub(crate) epoch: &'a Epoch,
    pub(crate) lengths: TableLengths,
    /// Threads that are not in the tables yet; their slots follow the existing slots.
    pub(crate) new_threads: &'a [Thread],
    /// The block that holds it.
    pub(crate) block: &'a [u8],
    /// Offset of the block in the recording.
    pub(crate) block_offset: u64,
    pub(crate) layout: Layout,
}

impl<'a> Event<'a> {
    /// The kind of event.
    #[inline]
    pub const fn metadata(&self) -> &'a Metadata {
        self.metadata
    }

    /// The index of [`metadata`](Self::metadata) in [`Events::metadata`](crate::Events::metadata), for tables
    /// with an entry for each kind of event.
    #[inline]
    pub const fn metadata_index(&self) -> usize {
        self.header.metadata.0 as usize
    }

    /// Name of the provider (EventSource).
    #[inline]
    pub fn provider(&self) -> &'a str {
        self.metadata.provider()
    }

    /// Id of the event within its provider.
    #[inline]
    pub const fn id(&self) -> u32 {
        self.metadata.event_id()
    }

    /// Name of the event; empty for the runtime's own events.
    #[inline]
    pub fn name(&self) -> &'a str {
        self.metadata.name()
    }

    /// Version of the event. A label (V6) precedes the metadata.
    pub fn version(&self) -> u32 {
        self.label(|label| if let Label::Version(version) = label { Some(u32::from(version)) } else { None })
            .unwrap_or_else(|| self.metadata.version())
    }

    /// Verbosity: 1 is critical, 5 is verbose, 0 is always. A label (V6) precedes the metadata.
    pub fn level(&self) -> u32 {
        self.label(|label| if let Label::Level(level) = label { Some(u32::from(level)) } else { None })
            .unwrap_or_else(|| self.metadata.level())
    }

    /// The groups that the event belongs to, as bits. A label (V6) precedes the metadata.
    pub fn keywords(&self) -> u64 {
        self.label(|label| if let Label::Keywords(keywords) = label { Some(keywords) } else { None })
            .unwrap_or_else(|| self.metadata.keywords())
    }

    /// The opcode, such as 1 for start and 2 for stop; `None` if missing in the recording. A label (V6)
    /// precedes the metadata.
    pub fn opcode(&self) -> Option<u8> {
        self.label(|label| if let Label::Opcode(opcode) = label { Some(opcode) } else { None })
            .or_else(|| self.metadata.opcode())
    }

    /// Time of the event in ticks.
    #[inline]
    pub const fn time(&self) -> Ticks {
        self.header.time
    }

    /// Time of the event relative to the recording's start.
    pub fn relative_time(&self) -> RelativeTime {
        self.tables.info.as_ref().map_or(RelativeTime::START, |info| info.relative_time(self.header.time))
    }

    /// The nanoseconds between two samples of a processor, by the [header](crate::TraceInfo::sampling_rate)
    /// of the recording.
    pub fn sampling_rate(&self) -> Option<u64> {
        self.tables.info.as_ref()?.sampling_rate
    }

    /// The thread that it is about.
    #[inline]
    pub fn thread_id(&self) -> ThreadId {
        self.thread().map(Thread::id).unwrap_or_default()
    }

    /// The thread that it is about, with its description.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// let event = events.next()?.expect("an event");
    /// let thread = event.thread().expect("a described thread");
    /// assert_eq!((thread.name(), thread.process_id()), (Some("main"), Some(7)));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    #[inline]
    pub fn thread(&self) -> Option<&'a Thread> {
        self.thread_at(self.header.thread)
    }

    /// The index of [`thread`](Self::thread) in [`Events::threads`](crate::Events::threads), for tables with
    /// an entry for each thread. Unlike its number it is never given to another one.
    ///
    /// In `par_fold` that holds only for threads that precede the blocks decoded at the same time. Each block
    /// numbers the others from there on, so different threads have the same index in different blocks. There,
    /// key tables over several blocks by [`thread_id`](Self::thread_id) and [`process_id`](Self::process_id).
    #[inline]
    pub const fn thread_slot(&self) -> usize {
        self.header.thread.0 as usize
    }

    /// The index in [`Events::threads`](crate::Events::threads) of the thread that wrote the event, as
    /// [`thread_slot`](Self::thread_slot).
    #[inline]
    pub const fn capture_thread_slot(&self) -> usize {
        self.header.capture_thread.0 as usize
    }

    #[inline]
    fn thread_at(&self, slot: ThreadSlot) -> Option<&'a Thread> {
        self.tables.threads.get(slot).or_else(|| {
            let new = slot.0.checked_sub(self.tables.threads.len())?;
            self.new_threads.get(usize::try_from(new).ok()?)
        })
    }

    /// The thread that wrote the event, to which the sequence number belongs.
    #[inline]
    pub fn capture_thread_id(&self) -> ThreadId {
        self.thread_at(self.header.capture_thread).map(Thread::id).unwrap_or_default()
    }

    /// The process: in V6 its thread's, where that is known, before V6 the recording's.
    pub fn process_id(&self) -> Option<u64> {
        self.thread()
            .and_then(Thread::process_id)
            .or_else(|| self.tables.info.as_ref().and_then(|info| info.process_id))
    }

    /// The thread that wrote it, with its description.
    pub fn capture_thread(&self) -> Option<&'a Thread> {
        self.thread_at(self.header.capture_thread)
    }

    /// The processor that [`thread_id`](Self::thread_id) ran on; `None` where the recording does not say, for
    /// example if another thread captured the event: a sampler's processor is not the sampled thread's.
    /// Recorders of whole machines (V6) name no capturing thread, so the processor belongs to the event
    /// itself.
    pub fn processor(&self) -> Option<u32> {
        let is_of_thread = self.header.thread == self.header.capture_thread
            || self.capture_thread_id() == ThreadId::default();
        self.capture_processor().filter(|_| is_of_thread)
    }

    /// The processor that [`capture_thread_id`](Self::capture_thread_id) ran on; `None` where the recording
    /// does not say. Runtimes write -1 for a processor that they do not know, which is the case on Linux;
    /// netperf does not record it.
    pub fn capture_processor(&self) -> Option<u32> {
        (self.layout != Layout::Netperf && self.header.processor != u32::MAX).then_some(self.header.processor)
    }

    /// Sequence number of the event within its capturing thread; `None` in netperf.
    pub fn sequence(&self) -> Option<u32> {
        (self.layout != Layout::Netperf).then_some(self.header.sequence)
    }

    /// Nothing later in the recording is older than this event.
    pub const fn is_sorted(&self) -> bool {
        self.header.is_sorted
    }

    /// Offset of the event in the recording, in bytes.
    pub fn offset(&self) -> u64 {
        self.block_offset.saturating_add(u64::from(self.header.start))
    }

    /// The offsets in the recording of the event: header, payload and, in netperf, its stack.
    pub fn range(&self) -> Range<u64> {
        let header = self.header;
        let end = if self.layout == Layout::Netperf {
            let size = at(self.block, header.start, 4).and_then(|size| size.first_chunk::<4>());
            size.map(|size| {
                u64::from(u32::from_le_bytes(*size)).saturating_add(4).saturating_add(u64::from(header.start))
            })
        } else {
            Some(u64::from(header.payload).saturating_add(u64::from(header.payload_len)))
        };
        self.offset()..self.block_offset.saturating_add(end.unwrap_or(u64::from(header.start)))
    }

    /// The activity that the event belongs to; `None` if that is zero.
    #[inline]
    pub fn activity(&self) -> Option<Uuid> {
        match self.layout {
            Layout::V6 => self
                .label(|label| if let Label::Activity(id) = label { Some(id) } else { None })
                .filter(not_nil),
            _ => self.guid(self.header.activity),
        }
    }

    /// The activity that caused this one; `None` if that is zero.
    #[inline]
    pub fn related_activity(&self) -> Option<Uuid> {
        match self.layout {
            Layout::V6 => self
                .label(|label| if let Label::RelatedActivity(id) = label { Some(id) } else { None })
                .filter(not_nil),
            _ => self.guid(self.header.related),
        }
    }

    /// V6: the labels of the event, in addition to its fields.
    #[inline]
    pub fn labels(&self) -> Labels<'a> {
        if self.layout == Layout::V6 && self.header.activity != 0 {
            Labels::new(self.epoch.labels.get(self.header.activity, self.lengths.labels).unwrap_or_default())
        } else {
            Labels::new(&[])
        }
    }

    /// The call stack of [`thread_id`](Self::thread_id); empty if it was not recorded.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// let event = events.next()?.expect("an event");
    /// assert!(event.stack().eq([0x1010, 0x2020]));
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn stack(&self) -> Stack<'a> {
        let bytes = match self.layout {
            Layout::Netperf => self.netperf_stack(),
            _ => self.epoch.stacks.get(self.header.stack, self.lengths.stacks),
        };
        Stack::new(bytes.unwrap_or_default(), self.tables.pointer_size())
    }

    /// The number of the stack in the recording: until the next [record](crate::Record) other than an event,
    /// the same number is the same stack. `None` in netperf, where each event has a stack of its own; 0
    /// without a stack.
    #[inline]
    pub fn stack_id(&self) -> Option<u32> {
        (self.layout != Layout::Netperf).then_some(self.header.stack)
    }

    /// V6: the number of the list of [`labels`](Self::labels), which is valid as long as a stack's number; 0
    /// without labels.
    #[inline]
    pub fn label_list_id(&self) -> u32 {
        if self.layout == Layout::V6 { self.header.activity } else { 0 }
    }

    /// Bytes of a pointer in the traced process: 4 or 8.
    #[inline]
    pub fn pointer_size(&self) -> u8 {
        self.tables.pointer_size()
    }

    /// The bytes of the fields.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        at(self.block, self.header.payload, self.header.payload_len).unwrap_or_default()
    }

    /// The fields of the payload, each decoded when the iterator reaches it.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// use nettrace::Value;
    ///
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// let event = events.next()?.expect("an event");
    /// for field in event.fields() {
    ///     let (name, value) = field.expect("a payload as described");
    ///     assert!(name == "Count" && matches!(value, Value::U32(1)));
    /// }
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn fields(&self) -> Fields<'a> {
        let wide = self.pointer_size() != 4;
        Fields::recorded(self.metadata, self.payload(), self.layout == Layout::V6, wide)
    }

    fn label<T>(&self, pick: impl Fn(Label<'a>) -> Option<T>) -> Option<T> {
        // The last of repeated labels counts, as the newest information.
        self.labels().filter_map(pick).last()
    }

    #[inline]
    fn guid(&self, offset: u32) -> Option<Uuid> {
        if offset == 0 {
            return None;
        }
        let bytes = at(self.block, offset, 16)?.first_chunk::<16>()?;
        Some(Uuid::from_bytes_le(*bytes)).filter(not_nil)
    }

    fn netperf_stack(&self) -> Option<&'a [u8]> {
        let size = at(self.block, self.header.stack, 4)?.first_chunk::<4>()?;
        at(self.block, self.header.stack.checked_add(4)?, u32::from_le_bytes(*size))
    }
}

fn not_nil(id: &Uuid) -> bool {
    !id.is_nil()
}

#[inline]
pub(crate) fn at(block: &[u8], offset: u32, length: u32) -> Option<&[u8]> {
    let offset = usize::try_from(offset).ok()?;
    let length = usize::try_from(length).ok()?;
    block.get(offset..offset.checked_add(length)?)
}
