//! dotnet-counters' files for two sessions of .NET 10, against this crate's results for the same streams.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clr_counters::dotnet_counters::{
    CSV_HEAD, JsonHead, rows, write_csv_row, write_json_end, write_json_head, write_json_row,
};
use clr_counters::{Counters, Sample, Selection};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/counters").join(name)
}

fn recording(name: &str) -> Vec<u8> {
    testdata::bytes_at(&file(name))
}

/// The number of samples in a recording of testdata, without and with samples that are held at its end.
fn sample_counts(name: &str) -> (u32, u32) {
    let bytes = recording(&format!("../traces/{name}.nettrace.xz"));
    let mut counters = Counters::new(Selection::everything());
    let mut events = nettrace::Reader::new(&*bytes).unwrap().in_time_order();
    let (mut added, mut all) = (0, 0);
    events.for_each(|event| counters.add(&event, |_| added += 1)).unwrap();
    read(&bytes, |_| all += 1);
    (added, all)
}

#[test]
fn a_recording_that_is_read_at_once_has_the_samples_that_wait_at_its_end() {
    // Counters requested each second, in a recording that ends before the second value.
    assert_eq!(sample_counts("net10-all"), (0, 31));
    assert_eq!(sample_counts("net10-counters"), (126, 126));
}

fn read(bytes: &[u8], emit: impl FnMut(Sample<'_>)) -> Counters {
    let mut counters = Counters::new(Selection::everything());
    let mut events = nettrace::Reader::new(bytes).unwrap().in_time_order();
    counters.read_all(&mut events, emit).unwrap();
    counters
}

#[test]
fn csv_is_that_of_the_tool() {
    let expected = fs::read_to_string(file("net10-csv.csv")).unwrap();
    let mut csv = CSV_HEAD.as_bytes().to_vec();
    // 09:18:45.056, and the nanoseconds of the event.
    let start = 45_056_000_000;
    let counters = read(&recording("net10-csv.nettrace.xz"), |sample| {
        let time = format!("11/21/2026 09:18:{:02}", (start + sample.time.as_nanos()) / 1_000_000_000);
        for row in rows(&sample, Duration::from_secs(1)) {
            write_csv_row(&mut csv, &time, &row).unwrap();
        }
    });
    assert_eq!(String::from_utf8(csv).unwrap(), expected);
    assert_eq!((counters.left_out(), counters.notice_count()), (0, 0));
}

/// The tool writes the time of receipt, which the stream does not have: times are taken from the tool's file.
#[test]
fn json_is_that_of_the_tool() {
    let expected = fs::read_to_string(file("net10-json.json")).unwrap();
    let mut times =
        expected.split("\"timestamp\": \"").skip(1).map(|rest| rest.split_once('"').unwrap().0.to_owned());
    let mut json = Vec::new();
    let head = JsonHead::new("dotnet", "2026-11-21T09:19:35.8802524+00:00");
    write_json_head(&mut json, head).unwrap();
    let mut is_first = true;
    read(&recording("net10-json.nettrace.xz"), |sample| {
        for row in rows(&sample, Duration::from_secs(1)) {
            write_json_row(&mut json, is_first, &times.next().unwrap(), &row).unwrap();
            is_first = false;
        }
    });
    write_json_end(&mut json).unwrap();
    assert_eq!(String::from_utf8(json).unwrap(), expected);
}
