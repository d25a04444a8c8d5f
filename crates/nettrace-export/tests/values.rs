//! Values of events as programs wrote them.

use clr_activity::Spans;
use nettrace::SliceReader;
use nettrace_export::events::{JsonLines, LineContent};
use nettrace_synth::v6::{Label, Trace};
use nettrace_synth::{Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, payload};

/// The lines of a provider's events with this name.
fn lines(bytes: &[u8], provider: &str, name: &str) -> Vec<serde_json::Value> {
    let mut lines = JsonLines::new(LineContent::default());
    let mut found = Vec::new();
    let add = |event: nettrace::Event<'_>| {
        if event.provider() == provider && event.name() == name {
            let mut line = Vec::new();
            lines.push(&mut line, &event);
            found.push(serde_json::from_slice(&line).unwrap());
        }
    };
    SliceReader::new(bytes).unwrap().for_each(add).unwrap();
    assert!(!found.is_empty(), "{provider}/{name}");
    found
}

/// A recording of one event of `Demo`, of an activity.
fn one_event(kind: Metadata, payload: Vec<u8>) -> Vec<u8> {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..kind }]);
    trace.label_list_block(1, &[vec![Label::Activity([7; 16])]]);
    let mut block = EventBlock::v6();
    block.event(&Event { metadata_id: 1, label_list: 1, payload, ..Event::default() });
    trace.event_block(&block);
    trace.finish()
}

#[test]
fn booleans_have_the_width_that_the_payload_has() {
    let bytes = testdata::bytes("events/self-describing-bools.nettrace.xz");
    for line in lines(&bytes, "Sd-Bools", "B") {
        let expected = serde_json::json!({"a": true, "b": false, "s": "self", "i": 7, "c": true});
        assert_eq!((&line["fields"], &line["fields_error"]), (&expected, &serde_json::Value::Null));
    }
    for line in lines(&bytes, "Sd-Bools", "Plain anon") {
        let expected = serde_json::json!({"": {"A": 1, "C": true, "B": "two", "E": 7, "D": 2.5}});
        assert_eq!(line["fields"], expected);
    }
}

#[test]
fn a_string_with_a_nul_is_reported() {
    let fields = vec![Field::new("a", Type::String16), Field::new("b", Type::String16)];
    let kind = Metadata { name: "Nul".into(), fields, ..Metadata::default() };
    let texts = payload(&[Value::string16("a"), Value::string16("b"), Value::string16("")]);
    for line in lines(&one_event(kind, texts), "Demo", "Nul") {
        let error = "2 bytes follow the last field: a string has a NUL, or values are wrong";
        assert_eq!(line["fields_error"], error);
        assert_eq!(line["payload"], "61000000620000000000");
    }
}

#[test]
fn a_span_without_a_task_has_the_name_of_its_start() {
    let kind = Metadata { name: "BeginOrder".into(), opcode: Some(1), ..Metadata::default() };
    let bytes = one_event(kind, Vec::new());
    let mut spans = Spans::default();
    SliceReader::new(&bytes).unwrap().for_each(|event| spans.add(&event, |_| ())).unwrap();
    let mut names = Vec::new();
    spans.finish(|span| names.push((span.task.to_owned(), span.name.to_owned())));
    assert_eq!(names, [(String::new(), "BeginOrder".to_owned())]);
}
