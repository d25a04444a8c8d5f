//! Memory does not grow with the recording.

use nettrace_synth::{
    Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, nettrace as synth, payload, stack_bytes,
};
use nettrace_tables::{Dataset, Input, Labels, Options};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const BLOCKS: u32 = 50;
const EVENTS: u32 = 4000;

/// Writes a recording in which each event has a string and a stack of its own.
fn write(path: &std::path::Path) {
    use std::io::Write as _;

    let tick = |id: u32, provider: &str, name: &str| Metadata {
        id,
        provider: provider.into(),
        event_id: 7 * (id - 1),
        name: name.into(),
        fields: vec![Field::new("text", Type::String16)],
        ..Metadata::default()
    };
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut number = 0u64;
    for block in 0..BLOCKS {
        let mut trace = if block == 0 {
            let mut trace = synth::Trace::new(&TraceHeader::default());
            trace.metadata_block(&[
                tick(1, "Microsoft-DotNETCore-SampleProfiler", ""),
                tick(2, "Demo", "Tick"),
            ]);
            trace
        } else {
            synth::Trace::without_header()
        };
        let stack = |of: u64| {
            let address = |depth| 0x1000 + (number + of) * 64 + depth;
            stack_bytes(&(0..40).map(address).collect::<Vec<_>>(), 8)
        };
        let stacks: Vec<_> = (0..u64::from(EVENTS)).map(stack).collect();
        trace.stack_block(1, &stacks);
        let mut events = EventBlock::v4();
        for event in 0..EVENTS {
            number += 1;
            let is_sample = event % 2 == 0;
            let text =
                format!("a text that no other event has: {:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            events.event(&Event {
                metadata_id: if is_sample { 1 } else { 2 },
                sequence: u32::try_from(number).unwrap(),
                thread: 1 + number % 50,
                capture_thread: 9,
                timestamp: number * 1000,
                stack_id: event + 1,
                payload: if is_sample { vec![1, 0, 0, 0] } else { payload(&[Value::string16(&text)]) },
                ..Event::default()
            });
        }
        trace.event_block(&events);
        trace.sequence_point(number * 1000, &[(9, u32::try_from(number).unwrap())]);
        file.write_all(&if block + 1 == BLOCKS { trace.finish() } else { trace.unfinished() }).unwrap();
    }
    file.flush().unwrap();
}

#[test]
fn memory_does_not_grow_with_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.nettrace");
    write(&path);
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size > 60 << 20, "{size} bytes");
    let dataset = Dataset::new(folder.path().join("data"), Options::default());
    let plan = dataset.plan(vec![Input::open(&path, Labels::default()).unwrap()]).unwrap();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let summary = dataset.export(&plan.shards[0]).unwrap();
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    let counts = &summary.recordings[0];
    assert_eq!(counts.events + counts.samples, u64::from(BLOCKS * EVENTS), "{counts:?}");
    assert!(counts.samples > 0);
    println!("{size} bytes in {peak} bytes of memory");
    // The memory of zstd's C library is not included: less than 8 MB.
    assert!(peak < 56 << 20, "{peak} bytes");
}
