//! Conditions over synthetic events.

use clr_conditions::{Condition, Evaluator};
use nettrace_synth::clr::Recording;
use nettrace_synth::{Field, Metadata, Type, Value};

/// Returns each match of a condition in events of one activity.
fn matches(condition: &str, events: Vec<(Metadata, &[Value])>) -> Vec<String> {
    let mut recording = Recording::new();
    for (time, (metadata, values)) in (1..).zip(events) {
        recording.at(time).described(metadata, values).activity([1; 16]);
    }
    let bytes = recording.bytes();
    let mut events = nettrace::Reader::new(&*bytes).unwrap().in_time_order();
    let mut evaluator = Evaluator::new(Condition::parse(condition).unwrap());
    let mut found = Vec::new();
    events.for_each(|event| evaluator.event(&event, |met| found.push(met.what))).unwrap();
    evaluator.finish(|met| found.push(met.what));
    found
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
        assert_eq!(matches(condition, vec![(change(), &[Value::Int32(7)])]).len(), expected, "{condition}");
    }
}

#[test]
fn texts_of_requests_that_have_not_ended_are_bounded() {
    let request = |event_id, name: &str, fields: &[&str]| Metadata {
        provider: "Microsoft.AspNetCore.Hosting".into(),
        event_id,
        name: name.into(),
        fields: fields.iter().map(|name| Field::new(name, Type::String16)).collect(),
        ..Metadata::default()
    };
    let texts = ["GET", &"a".repeat(8000)].map(Value::string16);
    for (path, expected) in
        [("a".repeat(256) + "…", 1), ("a".repeat(256), 0), ("a".repeat(8000), 0), ("a".repeat(256) + "*", 1)]
    {
        let start = request(3, "RequestStart", &["method", "path"]);
        let stop = request(4, "RequestStop", &[]);
        let condition = format!("request path {path}");
        assert_eq!(matches(&condition, vec![(start, &texts), (stop, &[])]).len(), expected, "{path}");
    }
}

#[test]
fn bounds_the_text_of_a_match() {
    let event = Metadata {
        provider: "P".repeat(9000),
        event_id: 1,
        name: "N".repeat(9000),
        fields: vec![Field::new("Count", Type::Byte); 5000],
        ..Metadata::default()
    };
    let values = vec![Value::Byte(7); 5000];
    let found = matches("event */* where Count:7", vec![(event, &values)]);
    let expected = format!("event {}…/{}…{}", "P".repeat(120), "N".repeat(120), " Count=7".repeat(16));
    assert!(found == [expected.clone()], "{} bytes, not {}", found[0].len(), expected.len());
}
