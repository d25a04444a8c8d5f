//! Any bytes as a recording of a heap dump: its graph, what that consists of, and the graph again out of its
//! file.

#![no_main]

use gcdump::HeapGraphBuilder;
use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;

fuzz_target!(|input: &[u8]| {
    let bytes = input.get(4..).unwrap_or_default();
    dipc_fuzz::bounded(bytes.len(), || check(bytes));
});

fn check(bytes: &[u8]) {
    let Ok(events) = SliceReader::new(bytes) else { return };
    let mut events = events.in_time_order();
    let mut builder = HeapGraphBuilder::new();
    while let Ok(Some(event)) = events.next() {
        builder.add(&event);
    }
    let Ok(graph) = builder.finish(events.loss().total()) else { return };
    dipc_fuzz::heap::check(&graph);
    let mut file = Vec::new();
    gcdump::file::write(&graph, &mut file).unwrap();
    let read = gcdump::file::read(&file).unwrap();
    assert_eq!(read.object_count(), graph.object_count());
    assert_eq!(read.undefined_count(), graph.undefined_count());
    assert_eq!(read.reference_count(), graph.reference_count());
    assert_eq!(read.root_count(), graph.root_count());
    assert_eq!(read.groups().len(), graph.groups().len());
}
