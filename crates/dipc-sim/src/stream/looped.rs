//! A recording over and over: one stream, in which time and the numbers of events go on.

use super::layout::{Block, Kind, Layout, sequence_point};
use super::object::{Output, part};
use super::{CHUNK, NANOS, Next, Recording, convert, rows};
use crate::speed::{Speed, scaled};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The first round is the recording as it is. In each later one the times are shifted by the length of a round, each thread
/// goes on counting where it was, and what was said once for all (the metadata) is left out; sequence points between the rounds end
/// what is valid up to there (stacks). When the session is stopped the round is finished, and what the recording ends with follows.
pub(super) struct Looped {
    recording: Arc<Recording>,
    layout: Arc<Layout>,
    speed: Speed,
    /// Where that begins which is sent when the session is stopped: an offset, and the block there.
    tail: (usize, usize),
    /// The length of a round in ticks.
    length: u64,
    round: u64,
    /// The next block.
    next: usize,
    /// The bytes sent so far.
    offset: u64,
    threads: BTreeMap<u64, Count>,
}

/// How far a thread has counted.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// In the recording.
    recorded: u32,
    /// In the stream.
    sent: u32,
}

impl Count {
    /// An event of the first round, whose number stays.
    fn keep(&mut self, recorded: u32) {
        *self = Self { recorded, sent: recorded };
    }

    /// The number in the stream of an event that has this one in the recording.
    fn event(&mut self, recorded: u32) -> u32 {
        // A lower one is that of another thread to which the system has given the id.
        let ahead = recorded.checked_sub(self.recorded).filter(|ahead| *ahead > 0).unwrap_or(recorded);
        self.recorded = recorded;
        self.sent = self.sent.wrapping_add(ahead);
        self.sent
    }

    /// The same of the last event, told by a sequence point.
    fn last(&mut self, recorded: u32) -> u32 {
        if recorded > self.recorded { self.event(recorded) } else { self.sent }
    }
}

impl Looped {
    pub(super) fn new(recording: Arc<Recording>, layout: Arc<Layout>, speed: Speed, tail: usize) -> Self {
        let body = layout.blocks.partition_point(|block| block.object.start < tail);
        let last = body.checked_sub(1).and_then(|last| layout.blocks.get(last));
        let end = last.map_or(layout.start, |block| block.newest);
        let length = end.saturating_sub(layout.start).max(1);
        Self {
            recording,
            layout,
            speed,
            tail: (tail, body),
            length,
            round: 0,
            next: 0,
            offset: 0,
            threads: BTreeMap::new(),
        }
    }

    pub(super) fn next(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Next {
        let layout = Arc::clone(&self.layout);
        let (_, body) = self.tail;
        if self.offset == 0 {
            let begin = layout.blocks.first().map_or(self.tail.0, |block| block.object.start);
            out.extend_from_slice(part(self.recording.bytes(), &(0..begin)));
        }
        while out.len() < CHUNK {
            match layout.blocks.get(self.next) {
                Some(_) if self.next >= body && !stopped => {
                    if body == 0 {
                        break;
                    }
                    self.begin_round(out);
                }
                Some(block) => {
                    if !stopped && !self.is_due(block, elapsed) {
                        break;
                    }
                    self.next = self.next.saturating_add(1);
                    self.send(block, out);
                }
                None if stopped => {
                    if self.next == layout.blocks.len() {
                        self.next = usize::MAX;
                        Output::new(out, self.offset).end();
                    }
                    break;
                }
                None if body > 0 && self.next != usize::MAX => self.begin_round(out),
                None => break,
            }
        }
        self.offset = self.offset.saturating_add(out.len() as u64);
        match () {
            () if !out.is_empty() => Next::Bytes,
            () if self.next == usize::MAX => Next::End,
            () if body == 0 => Next::Idle,
            () => Next::Later,
        }
    }

    /// The time of a block in the stream, in ticks.
    fn shifted(&self, ticks: u64) -> u64 {
        ticks.wrapping_add(self.length.wrapping_mul(self.round))
    }

    fn duration(&self, ticks: u64) -> Duration {
        Duration::from_nanos(convert(ticks, self.layout.frequency, NANOS))
    }

    fn is_due(&self, block: &Block, elapsed: Duration) -> bool {
        let time = self.duration(self.shifted(block.newest).saturating_sub(self.layout.start));
        match self.speed {
            Speed::Max => true,
            Speed::Recorded(factor) => time <= scaled(elapsed, factor),
            Speed::Over(whole) => {
                let round = self.duration(self.length);
                time <= scaled(elapsed, round.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE))
            }
            Speed::BytesPerSecond(_) => self.offset <= self.speed.due(usize::MAX, elapsed) as u64,
        }
    }

    /// Ends a round with a sequence point, and begins the next.
    fn begin_round(&mut self, out: &mut Vec<u8>) {
        self.round = self.round.saturating_add(1);
        let ticks = self.shifted(self.layout.start);
        for count in self.threads.values_mut() {
            count.recorded = 0;
        }
        let threads = self.threads.iter().map(|(thread, count)| (*thread, count.sent));
        Output::new(out, self.offset).sequence_point(ticks, threads);
        self.next = 0;
    }

    fn send(&mut self, block: &Block, out: &mut Vec<u8>) {
        let recording = Arc::clone(&self.recording);
        let content = recording.bytes().get(block.content.clone()).unwrap_or_default();
        let is_tail = block.object.start >= self.tail.0;
        let shift = self.shifted(0);
        let threads = &mut self.threads;
        let content = match block.kind {
            Kind::SequencePoint => return self.send_sequence_point(block, content, out),
            Kind::Event if self.round == 0 => {
                rows::for_each(content, |event| {
                    threads.entry(event.capture_thread).or_default().keep(event.sequence);
                });
                None
            }
            _ if self.round == 0 => None,
            Kind::Event => rows::changed(content, |event| {
                event.sequence = threads.entry(event.capture_thread).or_default().event(event.sequence);
                event.timestamp = event.timestamp.wrapping_add(shift);
            }),
            // It stands for all rounds.
            Kind::Metadata if !is_tail => return,
            Kind::Metadata => {
                rows::changed(content, |event| event.timestamp = event.timestamp.wrapping_add(shift))
            }
            Kind::Other => Some(content.to_vec()),
        };
        let mut output = Output::new(out, self.offset);
        match content {
            Some(content) => output.block(part(recording.bytes(), &block.head), &content),
            None => output.raw(part(recording.bytes(), &block.object)),
        }
    }

    fn send_sequence_point(&mut self, block: &Block, content: &[u8], out: &mut Vec<u8>) {
        // That it can be read was seen when the layout was.
        let (ticks, mut threads) = sequence_point(content).unwrap_or_default();
        let ticks = self.shifted(ticks);
        for (thread, sequence) in &mut threads {
            let count = self.threads.entry(*thread).or_default();
            if self.round == 0 {
                count.keep(*sequence);
            } else {
                *sequence = count.last(*sequence);
            }
        }
        let mut output = Output::new(out, self.offset);
        if self.round == 0 {
            output.raw(part(self.recording.bytes(), &block.object));
        } else {
            output.sequence_point(ticks, threads.into_iter());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, nettrace::Trace};

    /// Two threads, one of which ends so that another gets its id; a sequence point; a rundown.
    fn recording() -> Vec<u8> {
        let mut trace = Trace::new(&TraceHeader { sync_ticks: 1000, ..TraceHeader::default() });
        let metadata = |id, provider: &str| Metadata { id, provider: provider.into(), ..Metadata::default() };
        trace.metadata_block(&[metadata(1, "P")]);
        let event = |metadata_id, thread, sequence, timestamp| Event {
            metadata_id,
            thread,
            capture_thread: thread,
            sequence,
            timestamp,
            payload: vec![1, 2, 3],
            ..Event::default()
        };
        let block = |events: &[Event]| {
            let mut block = EventBlock::v4();
            for event in events {
                block.event(event);
            }
            block
        };
        trace.event_block(&block(&[event(1, 7, 1, 1100), event(1, 7, 2, 1200), event(1, 8, 1, 1300)]));
        trace.sequence_point(1400, &[(7, 2), (8, 1)]);
        trace.event_block(&block(&[event(1, 7, 1, 1500), event(1, 8, 2, 1600)]));
        trace.metadata_block(&[metadata(2, "Microsoft-Windows-DotNETRuntimeRundown")]);
        trace.event_block(&block(&[event(2, 8, 3, 1700)]));
        trace.sequence_point(1800, &[(7, 1), (8, 3)]);
        trace.finish()
    }

    /// Three rounds or so, and the end; `None` if the recording cannot be played over and over.
    fn play(bytes: &[u8]) -> Option<Vec<u8>> {
        let recording = Arc::new(Recording::new(bytes.into()));
        let (layout, tail) = (recording.layout().ok()?, recording.tail());
        let mut looped = Looped::new(recording, layout, Speed::Max, tail);
        let mut stream = Vec::new();
        for calls in 0..1000 {
            let mut out = Vec::new();
            let stopped = looped.round >= 2 || calls > 100;
            let next = looped.next(Duration::from_secs(1), stopped, &mut out);
            stream.extend(out);
            if next == Next::End {
                return Some(stream);
            }
        }
        panic!("no end after {} bytes", stream.len());
    }

    #[test]
    fn threads_go_on_counting_and_the_rundown_comes_once() {
        let stream = play(&recording()).unwrap();
        let mut reader = nettrace::SliceReader::new(&stream).unwrap();
        let (mut rundown, mut events, mut last) = (0, 0_u64, 0);
        while let Some(event) = reader.next().unwrap() {
            rundown += u64::from(event.provider().ends_with("Rundown"));
            events += 1;
            assert!(event.time_ns() >= last, "{events}");
            last = event.time_ns();
        }
        assert_eq!((rundown, events % 5, reader.loss().total()), (1, 1, 0));
        assert!(reader.damage().is_empty() && reader.truncated().is_none() && events > 1000);
    }

    #[test]
    fn no_byte_makes_it_fail() {
        let whole = recording();
        for place in 0..whole.len() {
            for change in [1, 0x40, 0xff] {
                let mut bytes = whole.clone();
                bytes[place] ^= change;
                // Played or refused, but never a panic, and never without end.
                let _ = play(&bytes);
            }
        }
    }
}
