//! Events that are made up, at a given rate.

use super::kinds::{KINDS, Kind};
use super::object::Output;
use super::{CHUNK, NANOS, Next, convert};
use crate::answer::SessionRequest;
use nettrace_synth::{
    Event, EventBlock, Metadata, SystemTime, TraceHeader, nettrace::Trace, stack_block, stack_bytes,
};
use std::time::Duration;

/// How many threads the events come from, each in turn.
const THREADS: u64 = 4;
/// The id of the first.
const FIRST_THREAD: u64 = 1001;
/// What is due and has not been sent is kept up to this number of events; the rest is lost.
const BUFFER: u64 = 500_000;
/// So many events are made at once.
const BATCH: u64 = 8192;
/// After so much time there is a sequence point.
const SEQUENCE_POINT_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Synthetic {
    rate: u64,
    kinds: Vec<&'static Kind>,
    process_id: u32,
    /// So many events were made or lost.
    so_far: u64,
    /// The number of the last event of each thread.
    sequences: Vec<u32>,
    /// The bytes sent so far.
    offset: u64,
    last_sequence_point: Duration,
    /// When the session was stopped: what happened before is sent, as far as it is kept.
    stopped: Option<Duration>,
    ended: bool,
}

impl Synthetic {
    pub(super) fn new(rate: u64, asked: &SessionRequest, process_id: u32) -> Self {
        let wanted = |kind: &&Kind| asked.providers.iter().any(|provider| kind.is_wanted_by(provider));
        Self {
            rate,
            kinds: KINDS.iter().filter(wanted).collect(),
            process_id,
            so_far: 0,
            sequences: (0..THREADS).map(|_| 0).collect(),
            offset: 0,
            last_sequence_point: Duration::ZERO,
            stopped: None,
            ended: false,
        }
    }

    pub(super) fn next(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Next {
        if self.ended {
            return Next::End;
        }
        if stopped {
            self.stopped.get_or_insert(elapsed);
        }
        let elapsed = self.stopped.unwrap_or(elapsed);
        if self.offset == 0 {
            out.extend(self.beginning());
        }
        let due = if self.kinds.is_empty() { 0 } else { self.due(elapsed).saturating_sub(self.so_far) };
        self.lose(due.saturating_sub(BUFFER));
        let mut left = due.min(BUFFER);
        let sequence_point = elapsed.saturating_sub(self.last_sequence_point) >= SEQUENCE_POINT_EVERY;
        while left > 0 && out.len() < CHUNK {
            let count = left.min(BATCH);
            self.events(count, out);
            left = left.saturating_sub(count);
        }
        let ends = stopped && left == 0;
        if ends || (sequence_point && self.so_far > 0) {
            self.sequence_point(out);
            self.last_sequence_point = elapsed;
        }
        if ends {
            Output::new(out, self.offset).end();
            self.ended = true;
        }
        self.offset = self.offset.saturating_add(out.len() as u64);
        if out.is_empty() { Next::Later } else { Next::Bytes }
    }

    /// So many events have happened once `elapsed` has passed.
    fn due(&self, elapsed: Duration) -> u64 {
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        convert(nanos, NANOS, self.rate)
    }

    /// When an event happens, in nanoseconds since the start.
    fn time(&self, number: u64) -> u64 {
        convert(number, self.rate, NANOS)
    }

    /// Leaves events out, whose numbers are given away all the same.
    fn lose(&mut self, count: u64) {
        let each = u32::try_from(count / THREADS).unwrap_or(u32::MAX);
        let more = usize::try_from(count % THREADS).unwrap_or_default();
        for (thread, sequence) in self.sequences.iter_mut().enumerate() {
            *sequence = sequence.wrapping_add(each).wrapping_add(u32::from(thread < more));
        }
        self.so_far = self.so_far.saturating_add(count);
    }

    /// The header, the metadata, and the stack.
    fn beginning(&self) -> Vec<u8> {
        let mut trace = Trace::new(&TraceHeader {
            start: now(),
            process_id: i32::try_from(self.process_id).unwrap_or_default(),
            ..TraceHeader::default()
        });
        let describe = |(kind, id): (&&Kind, u32)| Metadata {
            id,
            provider: kind.provider.into(),
            event_id: kind.event_id,
            name: kind.name.into(),
            keywords: kind.keywords,
            level: kind.level,
            fields: (kind.fields)(),
            ..Metadata::default()
        };
        let metadata: Vec<_> = self.kinds.iter().zip(1..).map(describe).collect();
        if !metadata.is_empty() {
            trace.metadata_block(&metadata);
        }
        let mut bytes = trace.unfinished();
        self.stack(&mut bytes);
        bytes
    }

    /// The stack, if there is a kind that has it: it is valid up to the next sequence point.
    fn stack(&self, out: &mut Vec<u8>) {
        if self.kinds.iter().any(|kind| kind.stack) {
            let addresses = stack_bytes(&[0x7f00_0000_1010, 0x7f00_0000_2020, 0x7f00_0000_3030], 8);
            Output::new(out, self.offset).named_block("StackBlock", &stack_block(1, &[addresses]));
        }
    }

    fn sequence_point(&self, out: &mut Vec<u8>) {
        let threads = (FIRST_THREAD..).zip(self.sequences.iter().copied()).collect::<Vec<_>>();
        Output::new(out, self.offset).sequence_point(self.time(self.so_far), threads.into_iter());
        self.stack(out);
    }

    /// The next events: a block of each thread that has any.
    fn events(&mut self, count: u64, out: &mut Vec<u8>) {
        let numbers = self.so_far..self.so_far.saturating_add(count);
        let kinds = self.kinds.len().max(1) as u64;
        // The thread whose block is the last.
        let last_thread = numbers.clone().rev().take(id_of(THREADS)).map(|number| number % THREADS).max();
        for (thread, id) in (0..THREADS).zip(FIRST_THREAD..) {
            let mut block = EventBlock::v4();
            let mut sequence = self.sequences.get(id_of(thread)).copied().unwrap_or_default();
            let own = numbers.clone().filter(|number| number % THREADS == thread);
            let mut any = false;
            for number in own {
                let place = (number / THREADS).checked_rem(kinds).unwrap_or_default();
                let Some(kind) = self.kinds.get(id_of(place)) else { continue };
                sequence = sequence.wrapping_add(1);
                any = true;
                let is_last = number.saturating_add(THREADS) >= numbers.end;
                block.event(&Event {
                    metadata_id: u32::try_from(place).unwrap_or_default().wrapping_add(1),
                    sequence,
                    // All that follows is later.
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
                Output::new(out, self.offset).named_block("EventBlock", &block.content());
            }
            if let Some(last) = self.sequences.get_mut(id_of(thread)) {
                *last = sequence;
            }
        }
        self.so_far = numbers.end;
    }
}

/// The time now, as a recording's header has it.
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

/// A small number as an index.
fn id_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
