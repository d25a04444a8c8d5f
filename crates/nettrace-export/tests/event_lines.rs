//! Lines of events with hostile fields.

use clr_events::json::push_fields;
use nettrace::{Event, SliceReader};
use nettrace_export::events::{JsonLines, LineContent, TableLines};
use nettrace_synth::v6::Trace;
use nettrace_synth::{self as synth, EventBlock, Field, Metadata, TraceHeader, Type, Value, payload};

/// A recording of an event with an array of objects with one field each; its name has 20,000 letters.
fn long_names(elements: usize) -> Vec<u8> {
    let element = Type::Object(vec![Field::new(&"n".repeat(20_000), Type::Byte)]);
    let fields = vec![Field::new("Items", Type::Array(Box::new(element)))];
    let mut trace = Trace::new(&TraceHeader::default());
    let kind = Metadata { id: 1, provider: "Demo".into(), event_id: 7, fields, ..Metadata::default() };
    trace.metadata_block(&[kind]);
    let items = Value::Array(vec![Value::Object(vec![Value::Byte(7)]); elements]);
    let mut block = EventBlock::v6();
    block.event(&synth::Event { metadata_id: 1, payload: payload(&[items]), ..synth::Event::default() });
    trace.event_block(&block);
    trace.finish()
}

fn of_event<T>(bytes: &[u8], work: impl FnOnce(&Event<'_>) -> T) -> T {
    let mut events = SliceReader::new(bytes).unwrap();
    work(&events.next().unwrap().unwrap())
}

/// A name is recorded once, and is in a line before each field.
#[test]
fn the_names_of_fields_do_not_multiply_a_line() {
    for (elements, shown) in [(50, 50), (60_000, 820)] {
        let bytes = long_names(elements);
        of_event(&bytes, |event| {
            let mut line = Vec::new();
            JsonLines::new(LineContent::default()).push(&mut line, event);
            let object: serde_json::Value = serde_json::from_slice(&line).unwrap();
            let items = object["fields"]["Items"].as_array().unwrap();
            assert!(items.len() == elements || (shown..=shown + 1).contains(&items.len()), "{}", items.len());
            let is_whole = items.len() == elements;
            assert_eq!(is_whole, elements == 50);
            assert_eq!(object["fields_error"].is_string(), !is_whole);
            assert_eq!(object["payload"].is_string(), !is_whole, "all of it is in the payload");
            let mut fields = Vec::new();
            assert_eq!(push_fields(&mut fields, event), is_whole);
            let mut columns = Vec::new();
            TableLines::new(LineContent::default()).push(&mut columns, event);
            for written in [line, fields, columns] {
                assert!(written.len() < 20_000_000, "{} bytes of {}", written.len(), bytes.len());
            }
        });
    }
}
