//! The examples, run on testdata and on a log.

#[path = "../examples/keep.rs"]
#[expect(dead_code, reason = "its main")]
mod keep;
#[path = "../examples/measurements.rs"]
#[expect(dead_code, reason = "its main")]
mod measurements;

use std::fs::{self, File};
use std::path::Path;

use nettrace::{Reader, Value};

#[test]
fn only_the_events_of_the_provider_are_kept_and_no_event_counts_as_lost() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [from, to] = ["all.nettrace", "kept.nettrace"].map(|name| folder.join(name));
    testdata::write("traces/net10-all.nettrace.xz", &from);
    let mut lines = Vec::new();
    let arguments = [from.to_str().unwrap(), to.to_str().unwrap(), "Microsoft-DotNETCore-SampleProfiler"];
    keep::run(&arguments.map(str::to_owned), &mut lines).unwrap();

    let (mut kept, mut removed) = (0, 0);
    Reader::new(File::open(&from).unwrap())
        .unwrap()
        .for_each(|event| *if event.provider() == arguments[2] { &mut kept } else { &mut removed } += 1)
        .unwrap();
    assert!(kept > 0 && removed > 0, "{kept} and {removed}");
    assert_eq!(String::from_utf8(lines).unwrap(), format!("{removed} events removed, 0 lost before\n"));
    let mut events = Reader::new(File::open(&to).unwrap()).unwrap();
    let mut written = 0;
    while let Some(event) = events.next().unwrap() {
        assert_eq!(event.provider(), arguments[2]);
        written += 1;
    }
    assert_eq!((written, events.loss().total()), (kept, 0));
}

#[test]
fn each_line_of_a_log_is_an_event_in_the_order_of_time() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let paths = ["log.txt", "log.nettrace"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    fs::write(&paths[0], "1795251731500 queue 3\n1795251731123 load 0.75\n").unwrap();
    measurements::run(&paths).unwrap();
    let mut events = Reader::new(File::open(&paths[1]).unwrap()).unwrap();
    let mut read = Vec::new();
    while let Some(event) = events.next().unwrap() {
        assert_eq!((event.provider(), event.name()), ("Log", "Measurement"));
        let values: Vec<_> = event.fields().map(|field| field.unwrap().1).collect();
        let [Value::Array(name), Value::F64(value)] = &values[..] else { panic!("{values:?}") };
        let name = str::from_utf8(name.as_bytes().unwrap()).unwrap();
        read.push((event.time().0 / 1_000_000, name.to_owned(), *value));
    }
    assert_eq!(read, [(0, "load".to_owned(), 0.75), (377, "queue".to_owned(), 3.0)]);

    fs::write(&paths[0], "today load 1\n").unwrap();
    assert!(measurements::run(&paths).is_err());
    fs::write(&paths[0], "").unwrap();
    assert_eq!(measurements::run(&paths).unwrap_err().to_string(), "the log is empty");
}
