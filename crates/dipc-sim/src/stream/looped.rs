//! The stream of a recording that is played in a loop.

use super::block_index::{BlockIndex, IndexedBlock, sequence_point};
use super::object::{BlockWriter, slice};
use super::recording::Recording;
use super::rewrite;
use super::source::{CHUNK_LEN, Progress, Source};
use super::ticks::{NANOS_PER_SECOND, convert_ticks};
use crate::speed::{Speed, scale};
use nettrace::raw::BlockKind;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A recording that is played in rounds, as one stream with continuing times and sequence numbers.
///
/// The first round is the unchanged recording. Each later round shifts the times by the length of a round,
/// maps the sequence numbers ([`SequenceMap`]), and leaves out the metadata blocks, which are valid for the
/// whole stream. A sequence point between two rounds ends the validity of stacks. When the session is
/// stopped, the round is finished, and the rundown follows.
pub(super) struct Looped {
    recording: Arc<Recording>,
    index: Arc<BlockIndex>,
    speed: Speed,
    /// The offset in the recording from which blocks are sent when the session is stopped.
    rundown_start: usize,
    /// The index of the block at `rundown_start`; the number of blocks if it is the end mark.
    rundown_block: usize,
    /// The length of a round in ticks.
    round_ticks: u64,
    /// The number of the round, from 0 on.
    round: u64,
    /// The index of the next block.
    next_block: usize,
    /// The length of the stream so far.
    offset: u64,
    threads: BTreeMap<u64, SequenceMap>,
    ended: bool,
}

/// A map of a thread's sequence numbers in the recording to its sequence numbers in the stream.
#[derive(Clone, Copy, Debug, Default)]
struct SequenceMap {
    /// The last sequence number in the recording.
    recorded: u32,
    /// The last sequence number in the stream.
    sent: u32,
}

impl SequenceMap {
    /// Sets both numbers: in the first round they are the same.
    fn set(&mut self, recorded: u32) {
        *self = Self { recorded, sent: recorded };
    }

    /// Returns the number of the next event in the stream.
    fn map_event(&mut self, recorded: u32) -> u32 {
        // A lower number belongs to a new thread to which the system has given the same id.
        let ahead = recorded.checked_sub(self.recorded).filter(|ahead| *ahead > 0).unwrap_or(recorded);
        self.recorded = recorded;
        self.sent = self.sent.wrapping_add(ahead);
        self.sent
    }

    /// Returns the number of the last event in the stream, from the number in a sequence point.
    fn map_last(&mut self, recorded: u32) -> u32 {
        if recorded > self.recorded { self.map_event(recorded) } else { self.sent }
    }
}

impl Source for Looped {
    fn next_chunk(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Progress {
        if self.ended {
            return Progress::Ended;
        }
        let index = Arc::clone(&self.index);
        if self.offset == 0 {
            let first_block = index.blocks.first().map_or(self.rundown_start, |block| block.object.start);
            out.extend_from_slice(slice(self.recording.bytes(), &(0..first_block)));
        }
        while out.len() < CHUNK_LEN {
            if !stopped && self.next_block >= self.rundown_block {
                if self.rundown_block == 0 {
                    break;
                }
                self.begin_round(out);
                continue;
            }
            let Some(block) = index.blocks.get(self.next_block) else {
                BlockWriter::new(out, self.offset).write_end();
                self.ended = true;
                break;
            };
            if !stopped && !self.is_due(block, elapsed) {
                break;
            }
            self.next_block = self.next_block.saturating_add(1);
            self.write_block(block, out);
        }
        self.offset = self.offset.saturating_add(out.len() as u64);
        if !out.is_empty() {
            Progress::Written
        } else if self.rundown_block == 0 {
            Progress::AwaitingStop
        } else {
            Progress::Pending
        }
    }
}

impl Looped {
    pub(super) fn new(
        recording: Arc<Recording>,
        index: Arc<BlockIndex>,
        speed: Speed,
        rundown_start: usize,
    ) -> Self {
        let rundown_block = index.blocks.partition_point(|block| block.object.start < rundown_start);
        let last = rundown_block.checked_sub(1).and_then(|last| index.blocks.get(last));
        let end = last.map_or(index.start, |block| block.newest);
        let round_ticks = end.saturating_sub(index.start).max(1);
        Self {
            recording,
            index,
            speed,
            rundown_start,
            rundown_block,
            round_ticks,
            round: 0,
            next_block: 0,
            offset: 0,
            threads: BTreeMap::new(),
            ended: false,
        }
    }

    /// Converts a time of the recording to a time of the stream, in ticks.
    fn stream_time(&self, ticks: u64) -> u64 {
        ticks.wrapping_add(self.round_ticks.wrapping_mul(self.round))
    }

    fn duration(&self, ticks: u64) -> Duration {
        Duration::from_nanos(convert_ticks(ticks, self.index.frequency, NANOS_PER_SECOND))
    }

    fn is_due(&self, block: &IndexedBlock, elapsed: Duration) -> bool {
        let time = self.duration(self.stream_time(block.newest).saturating_sub(self.index.start));
        match self.speed {
            Speed::Max => true,
            Speed::Recorded(factor) => time <= scale(elapsed, factor),
            Speed::Over(whole) => {
                let round = self.duration(self.round_ticks);
                time <= scale(elapsed, round.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE))
            }
            Speed::BytesPerSecond(_) => self.offset <= self.speed.bytes_due(usize::MAX, elapsed) as u64,
        }
    }

    /// Ends the round with a sequence point, and begins the next.
    fn begin_round(&mut self, out: &mut Vec<u8>) {
        self.round = self.round.saturating_add(1);
        let ticks = self.stream_time(self.index.start);
        for numbers in self.threads.values_mut() {
            numbers.recorded = 0;
        }
        let threads = self.threads.iter().map(|(thread, numbers)| (*thread, numbers.sent));
        BlockWriter::new(out, self.offset).write_sequence_point(ticks, threads);
        self.next_block = 0;
    }

    fn write_block(&mut self, block: &IndexedBlock, out: &mut Vec<u8>) {
        let recording = Arc::clone(&self.recording);
        let content = recording.bytes().get(block.content.clone()).unwrap_or_default();
        let is_rundown = block.object.start >= self.rundown_start;
        let shift = self.stream_time(0);
        let threads = &mut self.threads;
        let content = match block.kind {
            BlockKind::SequencePoint => return self.write_sequence_point(block, content, out),
            BlockKind::Event if self.round == 0 => {
                rewrite::for_each(content, |event| {
                    threads.entry(event.capture_thread).or_default().set(event.sequence);
                });
                None
            }
            _ if self.round == 0 => None,
            BlockKind::Event => rewrite::changed(content, |event| {
                event.sequence = threads.entry(event.capture_thread).or_default().map_event(event.sequence);
                event.timestamp = event.timestamp.wrapping_add(shift);
            }),
            // The first round has written it for all rounds.
            BlockKind::Metadata if !is_rundown => return,
            BlockKind::Metadata => {
                rewrite::changed(content, |event| event.timestamp = event.timestamp.wrapping_add(shift))
            }
            _ => Some(content.to_vec()),
        };
        let mut writer = BlockWriter::new(out, self.offset);
        match content {
            Some(content) => writer.write_block(slice(recording.bytes(), &block.head), &content),
            None => writer.write_raw(slice(recording.bytes(), &block.object)),
        }
    }

    fn write_sequence_point(&mut self, block: &IndexedBlock, content: &[u8], out: &mut Vec<u8>) {
        // The index has only sequence points that can be read.
        let (ticks, mut threads) = sequence_point(content).unwrap_or_default();
        let ticks = self.stream_time(ticks);
        for (thread, sequence) in &mut threads {
            let numbers = self.threads.entry(*thread).or_default();
            if self.round == 0 {
                numbers.set(*sequence);
            } else {
                *sequence = numbers.map_last(*sequence);
            }
        }
        let mut writer = BlockWriter::new(out, self.offset);
        if self.round == 0 {
            writer.write_raw(slice(self.recording.bytes(), &block.object));
        } else {
            writer.write_sequence_point(ticks, threads.into_iter());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, nettrace::Trace};

    /// Two threads, the first of which ends so that the other gets its id; a sequence point; a rundown.
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

    /// Returns about three rounds and the end; `None` if the recording cannot be played in a loop.
    fn play(bytes: &[u8]) -> Option<Vec<u8>> {
        let recording = Arc::new(Recording::new(bytes.into()));
        let (index, rundown) = (recording.index().ok()?, recording.rundown_start());
        let mut looped = Looped::new(recording, index, Speed::Max, rundown);
        let mut stream = Vec::new();
        for calls in 0..1000 {
            let mut out = Vec::new();
            let stopped = looped.round >= 2 || calls > 100;
            let progress = looped.next_chunk(Duration::from_secs(1), stopped, &mut out);
            stream.extend(out);
            if progress == Progress::Ended {
                return Some(stream);
            }
        }
        panic!("no end after {} bytes", stream.len());
    }

    #[test]
    fn sequence_numbers_continue_across_rounds_and_the_rundown_comes_once() {
        let stream = play(&recording()).unwrap();
        let mut reader = nettrace::SliceReader::new(&stream).unwrap();
        let (mut rundown, mut events, mut last) = (0, 0_u64, 0);
        while let Some(event) = reader.next().unwrap() {
            rundown += u64::from(event.provider().ends_with("Rundown"));
            events += 1;
            assert!(event.relative_time().as_nanos() >= last, "{events}");
            last = event.relative_time().as_nanos();
        }
        assert_eq!((rundown, events % 5, reader.loss().total()), (1, 1, 0));
        assert!(reader.damage().is_empty() && reader.truncated_at().is_none() && events > 1000);
    }

    #[test]
    fn a_recording_with_any_byte_changed_is_played_to_its_end_or_refused() {
        let whole = recording();
        for place in 0..whole.len() {
            for change in [1, 0x40, 0xff] {
                let mut bytes = whole.clone();
                bytes[place] ^= change;
                // Panics if the stream does not end.
                let _ = play(&bytes);
            }
        }
    }
}
