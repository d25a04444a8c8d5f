//! The fields of events have the values that the target gave them.

use serde_json::{Value, json};

use crate::counts::WORKLOAD;
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

const ROUNDS: usize = 300;

on_each_runtime!(fields_match_the_sent_ones);

fn fields_match_the_sent_ones(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = workload.record(&["--providers", WORKLOAD, "--rundown", "false"]);
    workload.run(&format!("emit {ROUNDS}"));
    let recorded = recording.interrupt();
    recorded.stat(0).assert_whole();
    let events = recorded.events(0, &[]);

    let phases = ["Request/Start", "Request/Stop"];
    for name in ["Ints", "Floats", "Strings", "Bytes", phases[0], phases[1], "Enumy", "Nothing", "Nested"] {
        let of_name: Vec<&Value> = events.iter().filter(|event| event["name"] == name).collect();
        assert_eq!(of_name.len(), ROUNDS, "{name}");
        for (round, event) in of_name.into_iter().enumerate() {
            assert_fields(runtime, name, round, event);
            assert_eq!(event["pid"], workload.pid(), "{event}");
            assert_eq!(event["tid"], workload.pid(), "the workload emits on its main thread: {event}");
        }
    }
    // 3.1 records no opcodes: they are those that the names end with.
    for (opcode, name) in (1..).zip(phases) {
        let found = recorded.events(0, &["--event", name]);
        assert_eq!(found.len(), ROUNDS, "{name}");
        assert!(found.iter().all(|event| event["name"] == name && event["opcode"] == opcode), "{}", found[0]);
    }
    let times: Vec<u64> = events.iter().map(|event| event["time_ns"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "events come in time order");
}

#[expect(clippy::cast_precision_loss, reason = "round numbers are small")]
fn assert_fields(runtime: Runtime, name: &str, round: usize, event: &Value) {
    let fields = &event["fields"];
    match name {
        "Ints" => {
            let expected = json!({ "b": 1, "sb": -2, "s": -3, "us": 4, "i": round, "ui": round, "l": -(round.cast_signed()), "ul": round });
            assert_eq!(*fields, expected, "{event}");
            assert_eq!(event["level"], 4);
        }
        "Floats" => {
            let single = fields["f"].as_f64().unwrap();
            // The shortest text that reads back as the single-precision value.
            let expected: f64 = (round as f32 / 3.0).to_string().parse().unwrap();
            assert!((single - expected).abs() < f64::EPSILON * expected.max(1.0), "{event}");
            let double = fields["d"].as_f64().unwrap();
            assert!((double - round as f64 / 7.0).abs() == 0.0, "{event}");
            assert_eq!(
                (&fields["t"], &fields["c"]),
                (&json!(round.is_multiple_of(2)), &json!("é")),
                "{event}"
            );
        }
        "Strings" => {
            let text = if round.is_multiple_of(3) { String::new() } else { format!("ünï😀 {round}") };
            let guid = format!("{round:08x}-0002-0003-0405-060708090a0b");
            assert_eq!(*fields, json!({ "a": "plain", "b": text, "g": guid }), "{event}");
        }
        "Request/Start" => {
            assert_eq!(*fields, json!({ "id": round, "url": format!("/x/{round}") }));
        }
        "Request/Stop" => assert_eq!(*fields, json!({ "id": round, "status": 200 })),
        "Enumy" => {
            let expected = json!({ "c": 7, "when": "2026-01-02T03:04:05Z", "p": round });
            assert_eq!(*fields, expected, "{event}");
        }
        "Nothing" => assert_eq!((fields, &event["payload_len"]), (&json!({}), &json!(0)), "{event}"),
        // Their metadata has no fields: the bytes are shown instead.
        "Bytes" => assert_eq!((fields, payload(event)), (&Value::Null, bytes_payload()), "{event}"),
        "Nested" => {
            assert_eq!((fields, payload(event)), (&Value::Null, nested_payload(runtime, round)), "{event}");
        }
        other => panic!("{other} has no expectation"),
    }
}

fn payload(event: &Value) -> Vec<u8> {
    let text = event["payload"].as_str().unwrap_or_else(|| panic!("no payload: {event}"));
    text.as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// A name, then an array of bytes: its u32 length and the bytes.
fn bytes_payload() -> Vec<u8> {
    [utf16("raw"), 3_u32.to_le_bytes().to_vec(), vec![1, 2, 255]].concat()
}

/// `Outer` of the workload, self-describing: name, inner object, array of doubles with a u16 count, pair.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "round numbers are small")]
fn nested_payload(runtime: Runtime, round: usize) -> Vec<u8> {
    let number = (round as u32).to_le_bytes().to_vec();
    let doubles = [1.5, round as f64].iter().flat_map(|value| value.to_le_bytes()).collect();
    let (inner, count) = (utf16("ü😀"), 2_u16.to_le_bytes().to_vec());
    // Compiled ahead of time, the pair has lost the properties that only reflection reads.
    let pair =
        if runtime == Runtime::NativeAot9 { Vec::new() } else { [utf16("k"), number.clone()].concat() };
    [utf16(&format!("n{round}")), number, inner, count, doubles, pair].concat()
}
