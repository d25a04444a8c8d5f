//! Streams for unit tests.

use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader};

/// A stream of one thread, piece by piece.
pub(super) struct TestStream {
    trace: Trace,
    /// The number of bytes already returned.
    taken: usize,
    sequence: u32,
}

impl TestStream {
    pub(super) fn new() -> Self {
        let mut trace = Trace::new(&TraceHeader::default());
        let kinds = [
            (1, "Microsoft-Windows-DotNETRuntimeRundown", 144, "MethodDCEndVerbose"),
            (2, "Test", 1, "Tick"),
        ];
        trace.metadata_block(&kinds.map(|(id, provider, event_id, name)| Metadata {
            id,
            provider: provider.into(),
            event_id,
            name: name.into(),
            ..Metadata::default()
        }));
        Self { trace, taken: 0, sequence: 0 }
    }

    /// An event that names a method, with a payload of `bytes` bytes.
    pub(super) fn name(&mut self, bytes: usize) -> Vec<u8> {
        self.add(1, bytes)
    }

    /// An event with a payload of `bytes` bytes.
    pub(super) fn event(&mut self, bytes: usize) -> Vec<u8> {
        self.add(2, bytes)
    }

    /// The end of the stream.
    pub(super) fn end(self) -> Vec<u8> {
        self.trace.finish().split_off(self.taken)
    }

    /// A whole stream with the name of a method, with a payload of `bytes` bytes.
    pub(super) fn list(bytes: usize) -> Vec<u8> {
        let mut stream = Self::new();
        let name = stream.name(bytes);
        [name, stream.end()].concat()
    }

    fn add(&mut self, metadata_id: u32, bytes: usize) -> Vec<u8> {
        self.sequence += 1;
        let mut block = EventBlock::v4();
        block.event(&Event {
            metadata_id,
            sequence: self.sequence,
            thread: 1,
            capture_thread: 1,
            sorted: true,
            timestamp: 1_000 * u64::from(self.sequence),
            payload: vec![0; bytes],
            ..Event::default()
        });
        self.trace.event_block(&block);
        // A reader holds an event back until no older one can arrive.
        self.trace.sequence_point(1_000 * u64::from(self.sequence), &[(1, self.sequence)]);
        let all = self.trace.clone().unfinished();
        let piece = all[self.taken..].to_vec();
        self.taken = all.len();
        piece
    }
}
