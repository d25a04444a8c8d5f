//! The stream of synthetic events, at a given rate.

use super::event_kinds::{EVENT_KINDS, EventKind};
use super::object::BlockWriter;
use super::source::{CHUNK_LEN, Progress, Source};
use super::ticks::{NANOS_PER_SECOND, convert_ticks};
use dipc_wire::FilteredProviderConfig;
use nettrace_synth::{
    Event, EventBlock, Metadata, SystemTime, TraceHeader, nettrace::Trace, stack_block, stack_bytes,
};
use std::time::Duration;

/// The number of threads that emit events, in turn.
const THREADS: u64 = 4;
/// The id of the first thread.
const FIRST_THREAD: u64 = 1001;
/// The capacity of the simulated runtime's buffer: events that are due beyond it are lost.
const BUFFER_EVENTS: u64 = 500_000;
/// The number of events written before the length of the chunk is checked again.
const BATCH: u64 = 8192;
/// Minimum time between two sequence points.
const SEQUENCE_POINT_INTERVAL: Duration = Duration::from_secs(1);

/// The source of synthetic events.
pub(super) struct Synthetic {
    /// Events per second.
    rate: u64,
    kinds: Vec<&'static EventKind>,
    process_id: u32,
    /// The number of events written or lost.
    produced: u64,
    /// The sequence number of each thread's last event.
    sequences: Vec<u32>,
    /// The length of the stream so far.
    offset: u64,
    last_sequence_point: Duration,
    /// The time at which the session was stopped. Events before it are still sent.
    stopped_at: Option<Duration>,
    ended: bool,
}

impl Source for Synthetic {
    fn next_chunk(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Progress {
        if self.ended {
            return Progress::Ended;
        }
        if stopped {
            self.stopped_at.get_or_insert(elapsed);
        }
        let elapsed = self.stopped_at.unwrap_or(elapsed);
        if self.offset == 0 {
            out.extend(self.beginning());
        }
        let due =
            if self.kinds.is_empty() { 0 } else { self.events_due(elapsed).saturating_sub(self.produced) };
        self.skip_lost(due.saturating_sub(BUFFER_EVENTS));
        let mut left = due.min(BUFFER_EVENTS);
        let sequence_point_due = elapsed.saturating_sub(self.last_sequence_point) >= SEQUENCE_POINT_INTERVAL;
        while left > 0 && out.len() < CHUNK_LEN {
            let count = left.min(BATCH);
            self.write_events(count, out);
            left = left.saturating_sub(count);
        }
        let ends = stopped && left == 0;
        if ends || (sequence_point_due && self.produced > 0) {
            self.write_sequence_point(out);
            self.last_sequence_point = elapsed;
        }
        if ends {
            BlockWriter::new(out, self.offset).write_end();
            self.ended = true;
        }
        self.offset = self.offset.saturating_add(out.len() as u64);
        if out.is_empty() { Progress::Pending } else { Progress::Written }
    }
}

impl Synthetic {
    pub(super) fn new(rate: u64, providers: &[FilteredProviderConfig], process_id: u32) -> Self {
        let enabled = |kind: &&EventKind| providers.iter().any(|provider| kind.is_enabled_by(provider));
        Self {
            rate,
            kinds: EVENT_KINDS.iter().filter(enabled).collect(),
            process_id,
            produced: 0,
            sequences: vec![0; to_index(THREADS)],
            offset: 0,
            last_sequence_point: Duration::ZERO,
            stopped_at: None,
            ended: false,
        }
    }

    /// Returns the number of events that happen in `elapsed`.
    fn events_due(&self, elapsed: Duration) -> u64 {
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        convert_ticks(nanos, NANOS_PER_SECOND, self.rate)
    }

    /// Returns the time of an event, in nanoseconds since the start.
    fn time(&self, number: u64) -> u64 {
        convert_ticks(number, self.rate, NANOS_PER_SECOND)
    }

    /// Skips lost events, which have sequence numbers nevertheless.
    fn skip_lost(&mut self, count: u64) {
        let each = u32::try_from(count / THREADS).unwrap_or(u32::MAX);
        let more = usize::try_from(count % THREADS).unwrap_or_default();
        for (thread, sequence) in self.sequences.iter_mut().enumerate() {
            *sequence = sequence.wrapping_add(each).wrapping_add(u32::from(thread < more));
        }
        self.produced = self.produced.saturating_add(count);
    }

    /// Returns the header, the metadata and the stack.
    fn beginning(&self) -> Vec<u8> {
        let mut trace = Trace::new(&TraceHeader {
            start: now(),
            process_id: i32::try_from(self.process_id).unwrap_or_default(),
            ..TraceHeader::default()
        });
        let describe = |(kind, id): (&&EventKind, u32)| Metadata {
            id,
            provider: kind.provider.into(),
            event_id: kind.event_id,
            name: kind.name.into(),
            keywords: kind.keywords,
            level: kind.level.0,
            fields: (kind.fields)(),
            ..Metadata::default()
        };
        let metadata: Vec<_> = self.kinds.iter().zip(1..).map(describe).collect();
        if !metadata.is_empty() {
            trace.metadata_block(&metadata);
        }
        let mut bytes = trace.unfinished();
        self.write_stack(&mut bytes);
        bytes
    }

    /// Writes the stack if a kind has one. It is valid up to the next sequence point.
    fn write_stack(&self, out: &mut Vec<u8>) {
        if self.kinds.iter().any(|kind| kind.stack) {
            let addresses = stack_bytes(&[0x7f00_0000_1010, 0x7f00_0000_2020, 0x7f00_0000_3030], 8);
            BlockWriter::new(out, self.offset).write_named_block("StackBlock", &stack_block(1, &[addresses]));
        }
    }

    /// Writes a sequence point, and the stack anew.
    fn write_sequence_point(&self, out: &mut Vec<u8>) {
        let threads = (FIRST_THREAD..).zip(self.sequences.iter().copied()).collect::<Vec<_>>();
        BlockWriter::new(out, self.offset)
            .write_sequence_point(self.time(self.produced), threads.into_iter());
        self.write_stack(out);
    }

    /// Writes the next events: a block for each thread that has any.
    fn write_events(&mut self, count: u64, out: &mut Vec<u8>) {
        let numbers = self.produced..self.produced.saturating_add(count);
        let kinds = self.kinds.len().max(1) as u64;
        // The thread of the last block.
        let last_thread = numbers.clone().rev().take(to_index(THREADS)).map(|number| number % THREADS).max();
        for (thread, id) in (0..THREADS).zip(FIRST_THREAD..) {
            let mut block = EventBlock::v4();
            let mut sequence = self.sequences.get(to_index(thread)).copied().unwrap_or_default();
            let own = numbers.clone().filter(|number| number % THREADS == thread);
            let mut any = false;
            for number in own {
                let place = (number / THREADS).checked_rem(kinds).unwrap_or_default();
                let Some(kind) = self.kinds.get(to_index(place)) else { continue };
                sequence = sequence.wrapping_add(1);
                any = true;
                let is_last = number.saturating_add(THREADS) >= numbers.end;
                block.event(&Event {
                    metadata_id: u32::try_from(place).unwrap_or_default().wrapping_add(1),
                    sequence,
                    // All events after the last block are later.
                    sorted: is_last && Some(thread) == last_thread,
                    thread: id,
                    capture_thread: id,
                    processor: u32::try_from(thread).unwrap_or_default(),
                    stack_id: kind.stack.into(),
                    timestamp: self.time(number),
                    payload: (kind.payload)(thread, number),
                    ..Event::default()
                });
            }
            if any {
                BlockWriter::new(out, self.offset).write_named_block("EventBlock", &block.content());
            }
            if let Some(last) = self.sequences.get_mut(to_index(thread)) {
                *last = sequence;
            }
        }
        self.produced = numbers.end;
    }
}

/// Returns the current time in the form of a recording's header.
fn now() -> SystemTime {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let number = |part: i8| u16::try_from(part).unwrap_or_default();
    SystemTime {
        year: u16::try_from(now.year()).unwrap_or_default(),
        month: number(now.month()),
        day_of_week: number(now.weekday().to_sunday_zero_offset()),
        day: number(now.day()),
        hour: number(now.hour()),
        minute: number(now.minute()),
        second: number(now.second()),
        millisecond: u16::try_from(now.millisecond()).unwrap_or_default(),
    }
}

/// Converts a small number to an index.
fn to_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
