//! Values of events as programs wrote them, in recordings of .NET.

use clr_activity::Spans;
use nettrace::SliceReader;
use nettrace_export::events::{JsonLines, LineContent};

/// The lines of the events of a provider and of this name.
fn lines(file: &str, provider: &str, name: &str) -> Vec<serde_json::Value> {
    let bytes = testdata::bytes(file);
    let mut lines = JsonLines::new(LineContent::default());
    let mut found = Vec::new();
    SliceReader::new(&bytes)
        .unwrap()
        .for_each(|event| {
            if event.provider() == provider && event.name() == name {
                let mut line = Vec::new();
                lines.push(&mut line, &event);
                found.push(serde_json::from_slice(&line).unwrap());
            }
        })
        .unwrap();
    assert!(!found.is_empty(), "{provider}/{name}");
    found
}

#[test]
fn booleans_have_the_width_that_the_payload_has() {
    let file = "events/self-describing-bools.nettrace.xz";
    for (provider, text) in [("Sd-Bools", "self"), ("Mf-Bools", "mani")] {
        for line in lines(file, provider, "B") {
            let expected = serde_json::json!({"a": true, "b": false, "s": text, "i": 7, "c": true});
            assert_eq!(line["fields"], expected, "{provider}");
            assert_eq!(line["fields_error"], serde_json::Value::Null, "{provider}");
        }
    }
    for line in lines(file, "Sd-Bools", "Outer") {
        assert_eq!(line["fields"]["Bools"], serde_json::json!([true, false]));
    }
}

#[test]
fn a_string_with_a_nul_is_reported() {
    for line in lines("events/self-describing-bools.nettrace.xz", "Mf-Bools", "Nul") {
        let error = line["fields_error"].as_str().unwrap();
        assert_eq!(error, "2 bytes follow the last field: a string has a NUL, or values are wrong");
        assert!(line["payload"].is_string(), "{line}");
    }
}

#[test]
fn spans_with_explicit_opcodes_have_the_names_of_their_events() {
    let bytes = testdata::bytes("events/span-without-name-3.1.nettrace.xz");
    let mut spans = Spans::default();
    let mut names = Vec::new();
    let mut events = SliceReader::new(&bytes).unwrap();
    events
        .for_each(|event| spans.add(&event, |span| names.push((span.task.to_owned(), span.name.to_owned()))))
        .unwrap();
    names.sort();
    names.dedup();
    assert_eq!(names, [(String::new(), "BeginOrder".to_owned())]);
}
