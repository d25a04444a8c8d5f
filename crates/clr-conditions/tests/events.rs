//! Conditions over events that are made up.

use clr_conditions::{Condition, Evaluator};
use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, payload};

/// The number of times that a condition is met by one event.
fn matches(condition: &str, metadata: Metadata, values: &[Value]) -> usize {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, ..metadata }]);
    let mut block = EventBlock::v4();
    block.event(&Event { metadata_id: 1, sequence: 1, payload: payload(values), ..Event::default() });
    trace.event_block(&block);
    let bytes = trace.finish();
    let mut events = nettrace::Reader::new(&*bytes).unwrap();
    let mut evaluator = Evaluator::new(Condition::parse(condition).unwrap());
    let mut count = 0;
    events.for_each(|event| count += usize::from(evaluator.event(&event).is_some())).unwrap();
    count
}

#[test]
fn names_of_other_alphabets_are_found_as_they_are_written() {
    let change = || Metadata {
        provider: "Größen".into(),
        event_id: 1,
        name: "ÄnderungStart".into(),
        fields: vec![Field::new("Übermaß", Type::Int32)],
        ..Metadata::default()
    };
    for (condition, expected) in [
        ("event Größen/ÄnderungStart", 1),
        ("event GRÖSSEN/ÄnderungStart", 0),
        ("event Größen/Änderungstart Übermaß > 6", 1),
        ("event Größen/Änderung/Start Übermaß > 7", 0),
        ("event GRÖßEN/Ä*start Übermaß:7", 1),
    ] {
        assert_eq!(matches(condition, change(), &[Value::Int32(7)]), expected, "{condition}");
    }
}
