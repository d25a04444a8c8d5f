//! Encoding of the events of many recordings into a single V6 recording.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use hashbrown::HashMap;
use nettrace::{Event, Format, MetadataMap, Thread, Ticks, TraceInfo, Uuid};

use crate::clock::{Clock, ClockRelation, Conversion, scaled};
use crate::encoder::Encoder;
use crate::error::Error;
use crate::event_block::RowHeader;
use crate::labels;
use crate::metadata::{self, Properties};
use crate::omissions::Omissions;
use crate::process_ids::ProcessIds;
use crate::repeated::Repeated;
use crate::version::{Version, is_v6};

/// The decisions about recordings that are merged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MergerOptions {
    /// Processes with the same id are the same process where the recordings have the same clock. Otherwise
    /// they are distinguished, unless the recordings are parts of one: containers of one machine often have
    /// the same ids. Header properties that some recordings lack are taken from the others; if recordings
    /// differ on a property, the first recording that has it counts.
    pub same_processes: bool,
    /// The recordings were made between two starts of one machine: clocks that tick equally fast are one
    /// clock, whatever the headers say. A program that starts a recording reads the clock and the calendar
    /// one after the other, and may be interrupted in between.
    pub same_clock: bool,
    /// The recording that provides the sampling rate, if [`same_processes`](Self::same_processes) is set. By
    /// default that is a V6 recording, if all V6 recordings agree on the rate: runtimes state one before V6
    /// whether or not they sample.
    pub sampling_rate_of: Option<usize>,
    /// The value of [`REQUESTED_EVENTS`] in the merged recording.
    pub requested_events: Option<String>,
    /// Recordings, by index, with the process of all their events: where a recording has the id that a
    /// process has in its own namespace, this is the id of the others.
    pub processes: Vec<(usize, u64)>,
}

/// The header property with the groups of events that dipc requested, separated by spaces: none of them
/// happened unless the recording has events of them. Merged and edited recordings lack it, because events
/// were left out, or were not requested for a part of the time.
pub const REQUESTED_EVENTS: &str = "RequestedEvents";

impl MergerOptions {
    /// With the value of [`same_processes`](Self::same_processes).
    #[must_use]
    pub const fn with_same_processes(mut self, same_processes: bool) -> Self {
        self.same_processes = same_processes;
        self
    }

    /// With the value of [`same_clock`](Self::same_clock).
    #[must_use]
    pub const fn with_same_clock(mut self, same_clock: bool) -> Self {
        self.same_clock = same_clock;
        self
    }

    /// With the value of [`sampling_rate_of`](Self::sampling_rate_of).
    #[must_use]
    pub const fn with_sampling_rate_of(mut self, recording: usize) -> Self {
        self.sampling_rate_of = Some(recording);
        self
    }

    /// With the value of [`requested_events`](Self::requested_events).
    #[must_use]
    pub fn with_requested_events(mut self, groups: impl Into<String>) -> Self {
        self.requested_events = Some(groups.into());
        self
    }

    /// With the process of all events of a recording: see [`processes`](Self::processes).
    #[must_use]
    pub fn with_process_of(mut self, recording: usize, process_id: u64) -> Self {
        self.processes.push((recording, process_id));
        self
    }
}

/// Writes the events of many recordings into a single V6 recording, in memory.
///
/// Recordings with the same start, clock and process in their headers are parts of one recording: they share
/// their threads, and events that several of them have are written once. The processes of other recordings
/// are distinguished; a process gets a new id if its own is taken.
///
/// The header lists the processes of recordings of processes, as `ProcessId` or as `ProcessIds`. The clock is
/// that of the recording that begins first, with the highest frequency of all. Pass events in the order of
/// their times on it, as [`MergeOrder`](crate::MergeOrder) has them, and written as sorted.
///
/// Memory: a block of events, the stacks and label lists between two sequence points, and the threads of all
/// recordings.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace::SliceReader;
/// use nettrace_writer::{MergeOrder, Merger, MergerOptions};
///
/// let mut merger = Merger::new(&[info], MergerOptions::default())?;
/// let mut order = MergeOrder::new([SliceReader::new(&recording)?]);
/// while let Some((source, event)) = order.next(&merger).map_err(|(_, error)| error)? {
///     merger.event(source, &event)?;
/// }
/// merger.finish(order.events().map(|events| events.threads()))?;
/// assert!(merger.bytes().starts_with(b"Nettrace"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Merger {
    info: TraceInfo,
    encoder: Encoder,
    sources: Vec<MergedSource>,
    /// The numbers of kinds of events, by description.
    kinds: HashMap<Vec<u8>, u32>,
    process_ids: ProcessIds,
    repeated: Repeated,
    /// The last sequence number of each thread of the new recording. A thread's index is one more than its
    /// index here.
    last_numbers: Vec<u32>,
    /// The indexes of threads that the parts of a recording share.
    shared_threads: HashMap<ThreadKey, u64>,
    newest: Ticks,
    is_point_due: bool,
}

/// A recording that is merged.
#[derive(Debug)]
struct MergedSource {
    group: usize,
    /// True if others are parts of the same recording.
    is_part: bool,
    /// The number of the group of recordings that share processes with this one.
    process_group: usize,
    conversion: Conversion,
    from_v6: bool,
    is_numbered: bool,
    /// Before V6: the process of all threads.
    process_id: Option<u64>,
    /// True if that is the process of all threads whatever they say.
    is_of_one: bool,
    /// The numbers of kinds of events.
    kinds: MetadataMap<u32>,
    /// By [`Event::thread_slot`].
    threads: Vec<MergedThread>,
    /// Before V6: the last activities and their list.
    last_activities: (Option<Uuid>, Option<Uuid>, u32),
    written: u64,
    repeated: u64,
}

/// A thread of a recording that is merged.
#[derive(Debug, Clone, Copy, Default)]
struct MergedThread {
    /// The index in the new recording; 0 before it is described there.
    index: u64,
    last_read: u32,
    /// Losses that the new recording has so far.
    lost: u64,
}

/// The description of a thread: group, process, number and name.
type ThreadKey = (usize, Option<u64>, u64, Option<String>);

/// The number of stacks and label lists, and the size of them, after which a sequence point is due.
const MAX_INTERNED: usize = 32_768;
const MAX_INTERNED_BYTES: usize = 16 << 20;

impl Merger {
    /// Begins the recording of these.
    ///
    /// # Errors
    /// If the list of recordings is empty, if the sizes of their addresses differ, or if the header is larger
    /// than a block can be.
    pub fn new(infos: &[TraceInfo], options: MergerOptions) -> Result<Self, Error> {
        let mut given = infos.to_vec();
        for (index, process_id) in &options.processes {
            if let Some(info) = given.get_mut(*index) {
                info.process_id = Some(*process_id);
            }
        }
        let infos = &given;
        let earliest = infos.iter().min_by_key(|info| info.start.unix_milliseconds().unwrap_or(i64::MAX));
        let first = earliest.ok_or(Error::Read(nettrace::Error::Empty))?;
        if let Some(other) = infos.iter().find(|info| info.pointer_size != first.pointer_size) {
            return Err(Error::PointerSizes { sizes: (first.pointer_size, other.pointer_size) });
        }
        let frequency = infos.iter().map(|info| info.frequency).max().unwrap_or(first.frequency);
        let own = Clock::of(first);
        let start_ticks = scaled(own.start_ticks.into(), own.frequency, frequency);
        let start_ticks = i64::try_from(start_ticks).unwrap_or(own.start_ticks);
        let clock = Clock { start_ticks, frequency, ..own };
        let mut process_ids = ProcessIds::default();
        let mut sources = Vec::<MergedSource>::new();
        for (index, info) in infos.iter().enumerate() {
            let earlier = infos.get(..index).unwrap_or_default();
            let part_of = earlier.iter().position(|other| is_part_of_same(info, other));
            let conversion = Conversion::new(Clock::of(info), clock, options.same_clock);
            let same_clock = |other: &MergedSource| {
                options.same_processes
                    && conversion.relation == ClockRelation::Same
                    && other.conversion.relation == ClockRelation::Same
            };
            let whole = part_of.and_then(|of| sources.get_mut(of));
            let (group, process_group) = match whole {
                Some(whole) => {
                    whole.is_part = true;
                    (whole.group, whole.process_group)
                }
                None => {
                    (index, sources.iter().find(|it| same_clock(it)).map_or(index, |it| it.process_group))
                }
            };
            if let Some(id) = info.process_id {
                process_ids.give(process_group, id);
            }
            sources.push(MergedSource {
                group,
                is_part: part_of.is_some(),
                process_group,
                conversion,
                from_v6: is_v6(info),
                is_numbered: info.format != Format::Netperf,
                process_id: info.process_id,
                is_of_one: options.processes.iter().any(|(of, _)| *of == index),
                kinds: MetadataMap::new(),
                threads: Vec::new(),
                last_activities: (None, None, 0),
                written: 0,
                repeated: 0,
            });
        }
        let (info, dropped) = header(first, infos, clock, &sources, &mut process_ids, options);
        let mut encoder = Encoder::new(Version::V6, &info)?;
        encoder.omissions.key_values = dropped;
        Ok(Self {
            info,
            encoder,
            sources,
            kinds: HashMap::default(),
            process_ids,
            repeated: Repeated::default(),
            last_numbers: Vec::new(),
            shared_threads: HashMap::default(),
            newest: Ticks(0),
            is_point_due: false,
        })
    }

    /// The header of the new recording.
    pub const fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// The bytes of the recording that were not [cleared](Self::clear_bytes) yet.
    pub fn bytes(&self) -> &[u8] {
        &self.encoder.container.out
    }

    /// Drops the pending bytes.
    pub fn clear_bytes(&mut self) {
        self.encoder.container.clear();
    }

    /// Passes the pending bytes to `write` and drops them, if there are more than `most`. An error keeps
    /// them.
    #[inline]
    pub(crate) fn drain<E>(
        &mut self,
        most: usize,
        write: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.encoder.container.drain(most, write)
    }

    /// Writes the pending bytes to `out` and drops them, if there are more than `most`.
    ///
    /// # Errors
    /// [`Error::Io`]; the bytes are kept then.
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[inline]
    pub fn drain_to(&mut self, most: usize, out: &mut impl std::io::Write) -> Result<(), Error> {
        self.encoder.container.drain_to(most, out)
    }

    /// The number of bytes so far, including dropped bytes.
    pub fn offset(&self) -> u64 {
        self.encoder.container.offset()
    }

    /// The things that the new recording cannot say, so far.
    pub const fn omissions(&self) -> &Omissions {
        &self.encoder.omissions
    }

    /// Returns a time of a recording on the clock of the new one.
    #[inline]
    pub fn time(&self, source: usize, time: Ticks) -> Ticks {
        self.sources.get(source).map_or(time, |source| source.conversion.convert(time))
    }

    /// The relation of a recording's clock to the new recording's clock; `None` for an unknown recording.
    pub fn clock(&self, source: usize) -> Option<ClockRelation> {
        self.sources.get(source).map(|source| source.conversion.relation)
    }

    /// The processes of a recording so far, and the same processes of others: the id there, and the id in the
    /// new recording.
    pub fn processes(&self, source: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let group = self.sources.get(source).map_or(usize::MAX, |source| source.process_group);
        self.process_ids.of_group(group)
    }

    /// The index of the first recording that is a part of the same one; `source` itself if that is the first.
    pub fn part_of(&self, source: usize) -> usize {
        self.sources.get(source).map_or(source, |source| source.group)
    }

    /// The number of a recording's events that were written so far, and the number that repeated an event of
    /// another part.
    pub fn events(&self, source: usize) -> (u64, u64) {
        self.sources.get(source).map_or((0, 0), |source| (source.written, source.repeated))
    }

    /// Writes an event of a recording.
    ///
    /// # Errors
    /// If something in it is larger than the format can say.
    pub fn event(&mut self, source: usize, event: &Event<'_>) -> Result<(), Error> {
        self.event_with(source, event, event.payload())
    }

    /// Writes an event of a recording with another payload.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn event_with(&mut self, source: usize, event: &Event<'_>, payload: &[u8]) -> Result<(), Error> {
        let Some(of) = self.sources.get(source) else { return Ok(()) };
        let (group, is_part, is_numbered) = (of.group, of.is_part, of.is_numbered);
        let time = of.conversion.convert(event.time());
        self.end_ids_if_many(time)?;
        let metadata_id = self.kind(source, event)?;
        let (slot, capture_slot) = (event.thread_slot(), event.capture_thread_slot());
        let thread = self.thread_index(source, slot, event.thread())?;
        let capture_thread = if capture_slot == slot {
            thread
        } else {
            self.thread_index(source, capture_slot, event.capture_thread())?
        };
        let bytes = event.stack().as_bytes();
        let mut row = RowHeader {
            metadata_id,
            capture_thread,
            processor: event.capture_processor().unwrap_or(u32::MAX),
            thread,
            stack_id: if bytes.is_empty() { 0 } else { self.encoder.stacks.intern(bytes)? },
            label_list: self.label_list(source, event)?,
            time,
            is_sorted: time >= self.newest,
            ..RowHeader::default()
        };
        let is_repeated = is_part && self.repeated.has((group, source), &row, payload);
        let lost = self.lost_before(source, capture_slot, event, is_numbered);
        let number = self.last_number(capture_thread);
        *number = number.wrapping_add(lost).wrapping_add(u32::from(!is_repeated));
        row.sequence = *number;
        if let Some(source) = self.sources.get_mut(source) {
            let count = if is_repeated { &mut source.repeated } else { &mut source.written };
            *count = count.saturating_add(1);
        }
        if is_repeated {
            return Ok(());
        }
        self.newest = self.newest.max(time);
        self.is_point_due = true;
        self.encoder.push(&row, payload)
    }

    /// Ends the recording. `threads` are [those](nettrace::Events::threads) of each reader, in the order of
    /// the recordings.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn finish<'t>(&mut self, threads: impl IntoIterator<Item = &'t [Thread]>) -> Result<(), Error> {
        let mut ended = BTreeMap::new();
        for (source, threads) in threads.into_iter().enumerate() {
            let Some(from_v6) = self.sources.get(source).map(|source| source.from_v6) else { break };
            for (slot, thread) in threads.iter().enumerate() {
                if !from_v6 && thread.lost() == 0 && self.thread_mut(source, slot).index == 0 {
                    continue;
                }
                let index = self.thread_index(source, slot, Some(thread))?;
                let state = self.thread_mut(source, slot);
                let lost = thread.lost().saturating_sub(state.lost);
                state.lost = thread.lost();
                let number = self.last_number(index);
                *number = number.wrapping_add(lost as u32);
                self.is_point_due |= lost > 0;
                *ended.entry(index).or_insert(true) &= thread.has_ended();
            }
        }
        if self.is_point_due {
            let ended = ended.into_iter().filter(|(_, has_ended)| *has_ended);
            let ended: Vec<_> = ended.map(|(index, _)| (index, *self.last_number(index))).collect();
            self.sequence_point(&ended)?;
        }
        self.encoder.end()
    }

    /// Writes a sequence point once the tables of stacks and label lists are large: at the next later time
    /// or, without one, before they are four times as large.
    fn end_ids_if_many(&mut self, time: Ticks) -> Result<(), Error> {
        let Encoder { stacks, labels, .. } = &self.encoder;
        let count = stacks.len().saturating_add(labels.len());
        let bytes = stacks.size().saturating_add(labels.size());
        let share = (count / MAX_INTERNED).max(bytes / MAX_INTERNED_BYTES);
        if share == 0 || (share < 4 && time == self.newest) {
            return Ok(());
        }
        self.sequence_point(&[])
    }

    fn sequence_point(&mut self, ended: &[(u64, u32)]) -> Result<(), Error> {
        let has_ended = |index| ended.binary_search_by_key(&index, |(index, _)| *index).is_ok();
        let numbers = (1u64..).zip(self.last_numbers.iter().copied());
        let numbers: Vec<_> = numbers.filter(|(index, last)| *last != 0 && !has_ended(*index)).collect();
        self.encoder.remove_threads(ended)?;
        self.encoder.sequence_point(self.newest, &numbers)?;
        self.repeated.clear();
        for source in &mut self.sources {
            source.last_activities = (None, None, 0);
        }
        self.is_point_due = false;
        Ok(())
    }

    /// Returns the number of events that a thread lost before this one and that the new recording does not
    /// have yet.
    fn lost_before(&mut self, source: usize, slot: usize, event: &Event<'_>, is_numbered: bool) -> u32 {
        let Some(sequence) = event.sequence().filter(|_| is_numbered) else { return 0 };
        let all = event.capture_thread().map_or(0, Thread::lost);
        let state = self.thread_mut(source, slot);
        let ahead = sequence.wrapping_sub(state.last_read).cast_signed();
        state.last_read = sequence;
        if ahead == 1 {
            return 0;
        }
        // Backwards: another thread with the same number.
        let gap = if ahead > 0 { ahead.unsigned_abs().saturating_sub(1) } else { sequence.saturating_sub(1) };
        // The reader is ahead of the order of time. It has counted every loss up to here.
        let lost = u64::from(gap).min(all.saturating_sub(state.lost));
        state.lost = state.lost.saturating_add(lost);
        lost as u32
    }

    fn last_number(&mut self, index: u64) -> &mut u32 {
        let place = usize::try_from(index.saturating_sub(1)).unwrap_or(0);
        if place >= self.last_numbers.len() {
            self.last_numbers.resize(place.saturating_add(1), 0);
        }
        #[expect(clippy::indexing_slicing, reason = "the table was made long enough")]
        &mut self.last_numbers[place]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "callers have seen the source, and the table is made long enough"
    )]
    fn thread_mut(&mut self, source: usize, slot: usize) -> &mut MergedThread {
        let threads = &mut self.sources[source].threads;
        if slot >= threads.len() {
            threads.resize(slot.saturating_add(1), MergedThread::default());
        }
        &mut threads[slot]
    }

    /// Returns the index of a thread in the new recording, where it is described if it is new.
    fn thread_index(&mut self, source: usize, slot: usize, thread: Option<&Thread>) -> Result<u64, Error> {
        let index = self.thread_mut(source, slot).index;
        match thread {
            Some(thread) if index == 0 => self.new_thread_index(source, slot, thread),
            _ => Ok(index),
        }
    }

    #[inline(never)]
    fn new_thread_index(&mut self, source: usize, slot: usize, thread: &Thread) -> Result<u64, Error> {
        let Some(of) = self.sources.get(source) else { return Ok(0) };
        let process_id = thread.process_id().filter(|_| !of.is_of_one).or(of.process_id);
        let process_id = process_id.map(|id| self.process_ids.give(of.process_group, id));
        let key = (of.group, process_id, thread.id().0, thread.name().map(ToString::to_string));
        let shared = if of.is_part { self.shared_threads.get(&key).copied() } else { None };
        let is_part = of.is_part;
        let index = if let Some(index) = shared {
            index
        } else {
            let index = (self.last_numbers.len() as u64).saturating_add(1);
            self.last_number(index);
            self.encoder.describe(index, thread, process_id)?;
            if is_part {
                self.shared_threads.insert(key, index);
            }
            index
        };
        self.thread_mut(source, slot).index = index;
        Ok(index)
    }

    /// Returns the number of the event's kind, which is defined if it is new.
    fn kind(&mut self, source: usize, event: &Event<'_>) -> Result<u32, Error> {
        let index = event.metadata_index();
        let Some(of) = self.sources.get_mut(source) else { return Ok(0) };
        if let Some(id) = of.kinds.get(index) {
            return Ok(*id);
        }
        let (metadata, properties) = (event.metadata(), Properties::of(event.metadata()));
        let key = metadata::v6(0, metadata, &properties, of.from_v6, &mut Omissions::default())?;
        let id = if let Some(id) = self.kinds.get(&key) {
            *id
        } else {
            self.encoder.from_v6 = of.from_v6;
            let id = self.encoder.define(metadata, &properties)?;
            self.kinds.insert(key, id);
            id
        };
        of.kinds.insert(index, id);
        Ok(id)
    }

    /// Returns the number of the event's labels, 0 for none.
    fn label_list(&mut self, source: usize, event: &Event<'_>) -> Result<u32, Error> {
        let Some(of) = self.sources.get_mut(source) else { return Ok(0) };
        let mut intern = |list: &[u8]| if list.is_empty() { Ok(0) } else { self.encoder.labels.intern(list) };
        if of.from_v6 {
            return if event.label_list_id() == 0 { Ok(0) } else { intern(&labels::list(event.labels())) };
        }
        let (activity, related) = (event.activity(), event.related_activity());
        let (last_activity, last_related, list) = of.last_activities;
        if activity == last_activity && related == last_related {
            return Ok(list);
        }
        let list = intern(&labels::of_activities(activity, related))?;
        of.last_activities = (activity, related, list);
        Ok(list)
    }
}

/// Returns true if two headers belong to parts of one recording.
fn is_part_of_same(one: &TraceInfo, other: &TraceInfo) -> bool {
    (one.start, one.start_ticks, one.frequency, one.process_id)
        == (other.start, other.start_ticks, other.frequency, other.process_id)
}

/// Returns the header of the new recording, and the number of pairs that do not fit in it: for recordings of
/// several processes, the pairs on which they differ.
fn header(
    first: &TraceInfo,
    infos: &[TraceInfo],
    clock: Clock,
    sources: &[MergedSource],
    process_ids: &mut ProcessIds,
    options: MergerOptions,
) -> (TraceInfo, u64) {
    let all: Vec<_> = infos.iter().map(pairs).collect();
    let is_one_group = sources.windows(2).all(|pair| match pair {
        [one, other] => one.process_group == other.process_group,
        _ => true,
    });
    let (mut kept, dropped) = if options.same_processes && is_one_group {
        joined_pairs(infos, &all, &options)
    } else {
        common_pairs(pairs(first), &all, &options)
    };
    if let Some(groups) = options.requested_events {
        kept.push((REQUESTED_EVENTS.to_string(), groups));
    }
    let mut processes = Vec::new();
    for (info, source) in infos.iter().zip(sources) {
        let given = process_list(info).into_iter().map(|id| process_ids.give(source.process_group, id));
        let before = processes.len();
        processes.extend(given);
        if processes.len() == before {
            // A recording with the processes of a whole machine.
            processes.clear();
            break;
        }
    }
    let mut seen = BTreeSet::new();
    processes.retain(|id| seen.insert(*id));
    if let [id] = processes[..] {
        kept.push((PROCESS_ID.to_string(), id.to_string()));
    } else if !processes.is_empty() {
        let list: Vec<_> = processes.iter().map(ToString::to_string).collect();
        kept.push((PROCESS_IDS.to_string(), list.join(" ")));
    }
    let mut info = first.clone();
    info.format = Format::Nettrace;
    info.version = 6;
    info.minor_version = 0;
    info.frequency = clock.frequency;
    info.start_ticks = Ticks(clock.start_ticks.cast_unsigned());
    info.process_id = None;
    info.key_values = kept;
    (info, dropped)
}

/// Returns the properties that all recordings have, and the number of the first recording's properties that
/// are left out.
fn common_pairs(own: Pairs, all: &[Pairs], options: &MergerOptions) -> (Pairs, u64) {
    let mut own = own;
    if options.same_processes {
        for pair in all.iter().flatten() {
            if value(&own, &pair.0).is_none() {
                own.push(pair.clone());
            }
        }
    }
    let agrees = |pairs: &Pairs, (key, own): &(String, String)| {
        value(pairs, key).map_or(options.same_processes, |value| value == own)
    };
    let count = own.len();
    own.retain(|pair| all.iter().all(|pairs| agrees(pairs, pair)));
    let dropped = count.saturating_sub(own.len()) as u64;
    (own, dropped)
}

/// Returns the properties of recordings of the same process, which complete one another, and the number of
/// properties that are left out: the sampling rate if samples differ in it.
fn joined_pairs(infos: &[TraceInfo], all: &[Pairs], options: &MergerOptions) -> (Pairs, u64) {
    let mut joined = Pairs::new();
    for (key, own) in all.iter().flatten() {
        if value(&joined, key).is_none() {
            joined.push((key.clone(), own.clone()));
        }
    }
    let rate_of = |pairs| value(pairs, SAMPLING_RATE);
    let chosen = options.sampling_rate_of.and_then(|index| all.get(index)).and_then(rate_of);
    let of_v6 = infos.iter().zip(all).filter(|(info, _)| is_v6(info));
    let rates: BTreeSet<_> = match chosen {
        Some(rate) => [rate].into(),
        None => of_v6.filter_map(|(_, pairs)| rate_of(pairs)).collect(),
    };
    let first = rates.first().copied();
    let differ = rates.len() > 1;
    joined.retain(|(key, _)| !differ || key != SAMPLING_RATE);
    if let (Some(rate), Some(place)) = (first, joined.iter_mut().find(|(key, _)| key == SAMPLING_RATE)) {
        place.1 = rate.to_string();
    }
    (joined, u64::from(differ))
}

/// The properties of a recording.
type Pairs = Vec<(String, String)>;

fn value<'p>(pairs: &'p Pairs, key: &str) -> Option<&'p str> {
    pairs.iter().find(|(other, _)| other == key).map(|(_, value)| &**value)
}

const PROCESS_ID: &str = "ProcessId";
const SAMPLING_RATE: &str = "ExpectedCPUSamplingRate";
/// The processes of a recording that was merged from recordings of processes, separated by spaces.
const PROCESS_IDS: &str = "ProcessIds";

/// Returns the processes that a header names; none for a recording of a whole machine.
fn process_list(info: &TraceInfo) -> Vec<u64> {
    if let Some(id) = info.process_id {
        return [id].to_vec();
    }
    let list = info.key_values.iter().find(|(key, _)| key == PROCESS_IDS);
    let ids = list.into_iter().flat_map(|(_, ids)| ids.split(' '));
    ids.filter_map(|id| id.parse().ok()).collect()
}

/// Returns the properties of a recording in the form of V6, except its process.
fn pairs(info: &TraceInfo) -> Pairs {
    if is_v6(info) {
        return info
            .key_values
            .iter()
            .filter(|(key, _)| ![PROCESS_ID, PROCESS_IDS, REQUESTED_EVENTS].contains(&&**key))
            .cloned()
            .collect();
    }
    let pairs =
        [("HardwareThreadCount", info.processors.map(u64::from)), (SAMPLING_RATE, info.sampling_rate)];
    // The fixed places of these versions have zero for an unknown number.
    let known = pairs.into_iter().filter_map(|(key, value)| Some((key, value.filter(|value| *value > 0)?)));
    known.map(|(key, value)| (key.to_string(), value.to_string())).collect()
}
