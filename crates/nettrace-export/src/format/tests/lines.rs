//! Frames that are lines, in the formats that have a place for them.

use std::io::Read as _;

use prost::Message as _;

use super::{profile, text, written};
use crate::Metric;
use crate::format::Format;
use crate::format::protobuf::{perfetto, pprof};
use crate::page::tests::page_data;
use crate::profile::lines::SourceLine;
use crate::profile::{Profile, StackTotal};

/// `App!Work<T>()` at line 7 calls itself at line 9.
fn with_lines() -> Profile {
    let mut profile = profile(Metric::Wall);
    let at = |line| SourceLine { file: "/src/a \"b\"/Work.cs", line };
    let frames = [7, 9].map(|line| profile.frames.intern_line("App!Work<T>()", at(line)));
    let stack = profile.stacks.add(frames);
    profile.stack_totals =
        profile.stack_totals.iter().map(|total| StackTotal { stack: Some(stack), ..*total }).collect();
    profile
}

#[test]
fn pprof_has_lines_of_one_function() {
    let mut bytes = Vec::new();
    let packed = written(&with_lines(), Format::Pprof);
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    let out = pprof::Profile::decode(&bytes[..]).unwrap();
    let text = |number: i64| &*out.string_table[usize::try_from(number).unwrap()];
    let of = |id: &u64| {
        let location = out.location.iter().find(|location| location.id == *id).unwrap();
        let function = out.function.iter().find(|it| it.id == location.line[0].function_id).unwrap();
        (function.id, text(function.name), text(function.filename), location.line[0].line)
    };
    let places: Vec<_> = out.sample[0].location_id.iter().map(of).collect();
    let (id, file) = (places[0].0, "/src/a \"b\"/Work.cs");
    assert_eq!(places, [(id, "Work<T>()", file, 9), (id, "Work<T>()", file, 7)]);
    assert!(out.function.iter().any(|it| text(it.name) == "Work<T>()" && text(it.filename).is_empty()));
}

#[test]
fn speedscope_and_perfetto_have_files_and_lines() {
    let json: serde_json::Value = serde_json::from_str(&text(&with_lines(), Format::Speedscope)).unwrap();
    let frames = json["shared"]["frames"].as_array().unwrap();
    let lines: Vec<_> = frames.iter().filter(|frame| frame.get("line").is_some()).collect();
    assert_eq!(lines.len(), 2);
    let expected = serde_json::json!(
        {"name": "App!Work<T>() (Work.cs:7)", "file": "/src/a \"b\"/Work.cs", "line": 7}
    );
    assert_eq!(*lines[0], expected);

    let trace = perfetto::Trace::decode(&written(&with_lines(), Format::Perfetto)[..]).unwrap();
    let locations = &trace.packet[0].interned.as_ref().unwrap().source_locations;
    let opened: Vec<_> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.track_event.as_ref()?.source_location_iid)
        .take(2)
        .map(|iid| locations.iter().find(|location| location.iid == Some(iid)).unwrap())
        .map(|location| (location.function_name.as_deref().unwrap(), location.line_number.unwrap()))
        .collect();
    assert_eq!(opened, [("App!Work<T>()", 7), ("App!Work<T>()", 9)]);
}

#[test]
fn the_others_have_them_in_names() {
    let folded = text(&with_lines(), Format::Folded);
    assert_eq!(folded, format!("App!Work<T>() (Work.cs:7);App!Work<T>() (Work.cs:9) {}\n", super::TOTAL));
    for format in [Format::Csv, Format::Chromium, Format::Firefox] {
        assert!(text(&with_lines(), format).contains("() (Work.cs:9)"), "{format:?}");
    }
    assert!(page_data(&text(&with_lines(), Format::Flamegraph)).contains("() (Work.cs:9)"));
}
