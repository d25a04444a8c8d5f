//! Counters of merged recordings: each process has those of its own recording, with their intervals and
//! rates.

use serde_json::{Value, json};

use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Field, Metadata, TraceHeader, Type, Value as SynthValue, payload};

use super::{dipc, folder_with, printed};

/// Escapes, line ends and overrides in names and tags steer no terminal, forge no row, and leave JSON as it
/// is.
#[test]
fn names_from_outside_are_escaped_in_every_format() {
    const NAME: &str = "a\"b\nc\u{1b}]0;x\u{7}\u{202e}";
    const TAGS: &str = "k=\u{1b}[2J\r\n11/24/2026 10:00:00,Forged,row,Metric,666";
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = Trace::new(&TraceHeader::default());
    let names = ["sessionId", "meterName", "meterVersion", "instrumentName", "unit", "tags", "rate", "value"];
    trace.metadata_block(&[Metadata {
        id: 1,
        provider: "System.Diagnostics.Metrics".into(),
        event_id: 4,
        name: "CounterRateValuePublished".into(),
        fields: names.map(|name| Field::new(name, Type::String16)).into(),
        ..Metadata::default()
    }]);
    let values = ["s", "M\u{9b}2J", "", NAME, "", TAGS, "1", "1"];
    let mut block = EventBlock::v4();
    block.event(&Event {
        metadata_id: 1,
        sequence: 1,
        thread: 1,
        capture_thread: 1,
        sorted: true,
        timestamp: 1000,
        payload: payload(&values.map(|value| SynthValue::String16(value.encode_utf16().collect()))),
        ..Event::default()
    });
    trace.event_block(&block);
    std::fs::write(folder.path().join("in.nettrace"), trace.finish()).expect("a file");
    let is_safe = |text: &str| !text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}');
    for (format, lines) in [("table", 3), ("csv", 2), ("json", 1), ("jsonl", 1)] {
        let text = printed(&folder, &format!("counters read in.nettrace --format {format}"), 0);
        assert!(is_safe(&text) && text.contains("\\u001b]0;x\\u0007\\u202e"), "{format}: {text:?}");
        assert_eq!(text.lines().count(), lines, "{format}: {text}");
        if format != "table" {
            printed(&folder, &format!("counters read in.nettrace --format {format} -o out"), 0);
            let written = std::fs::read_to_string(folder.path().join("out")).expect("text");
            assert_eq!(written, text, "{format}");
        }
        let (name, tags) = match format {
            "json" => {
                let value: Value = serde_json::from_str(&text).expect("an object");
                let event = &value["Events"][0];
                (event["name"].clone(), event["tags"].clone())
            }
            "jsonl" => {
                let value: Value = serde_json::from_str(&text).expect("an object");
                (value["name"].clone(), json!(format!("k={}", value["tags"]["k"].as_str().expect("a tag"))))
            }
            _ => continue,
        };
        assert!(name.as_str().is_some_and(|name| name.starts_with(NAME)), "{format}: {name}");
        assert_eq!(tags, TAGS, "{format}");
    }
}

#[test]
fn a_merged_recording_has_the_counters_of_its_processes() {
    let folder = folder_with("net8-counters.nettrace");
    let other = folder_with("net10-counters.nettrace");
    std::fs::copy(other.path().join("in.nettrace"), folder.path().join("other.nettrace")).expect("a copy");
    let merged = dipc(&folder, "merge in.nettrace other.nettrace -o both.nettrace");
    assert!(merged.status.success(), "{merged:?}");
    // What counts from the start of a recording is another number there.
    let samples = |file: &str| -> Vec<Value> {
        let text = printed(&folder, &format!("counters read {file} --format jsonl"), 0);
        let samples = text.lines().map(|line| serde_json::from_str(line).expect("an object"));
        samples
            .map(|mut sample: Value| {
                sample["time_ns"] = json!(null);
                sample["time"] = json!(null);
                sample
            })
            .collect()
    };
    let both = samples("both.nettrace");
    for file in ["in.nettrace", "other.nettrace"] {
        let own = samples(file);
        assert!(own.iter().any(|sample| sample["kind"] == "counter" && sample["rate"].is_number()), "{file}");
        let of_both: Vec<_> = both.iter().filter(|sample| sample["pid"] == own[0]["pid"]).cloned().collect();
        assert_eq!(of_both, own, "{file}");
    }
}
