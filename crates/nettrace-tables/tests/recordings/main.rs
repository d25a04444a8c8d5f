//! Recordings of real runtimes as tables.

#[path = "../../../nettrace-writer/tests/recordings/files.rs"]
mod files;
mod promoted;
mod rewritten;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nettrace::{Reader, SliceReader};
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, nettrace as synth, stack_bytes};
use nettrace_tables::{Dataset, Error, Input, Labels, Options, TABLES};
use nettrace_writer::Version;
use parquet::record::Field;
use tables::{contents, export, field, inputs};

/// Two recordings in one shard.
const PAIR: [&str; 2] = ["net10-sample.nettrace", "net10-gcverbose.nettrace"];

/// The number of events of a recording.
fn count(bytes: &[u8]) -> i64 {
    let mut count = 0;
    SliceReader::new(bytes).unwrap().for_each(|_| count += 1).unwrap();
    count
}

fn recording(name: &str) -> Vec<u8> {
    let mut found = None;
    files::each(|recording| {
        if recording.name == name {
            found = Some(recording.bytes.clone());
        }
    });
    found.expect("a recording of testdata")
}

#[test]
fn each_event_is_one_row_or_is_counted() {
    files::each(|recording| {
        let events = count(&recording.bytes);
        for options in [Options::default(), Options::default().with_rundown(true).with_drop_fields(true)] {
            let written = export(&[(&recording.name, &recording.bytes)], options);
            let (rows, samples) = (written.count("events"), written.count("samples"));
            let left_out = written.sum("recordings", "left_out");
            assert_eq!(rows + samples + left_out, events, "{}", recording.name);
            assert_eq!(written.sum("recordings", "events"), rows);
            assert_eq!(written.sum("recordings", "samples"), samples);
            assert!(left_out == 0 || !options.rundown, "{}", recording.name);
            let lost = SliceReader::new(&recording.bytes).map(|mut events| {
                events.for_each(|_| {}).unwrap();
                events.loss().total()
            });
            assert_eq!(written.sum("losses", "events"), lost.unwrap().cast_signed());
            if options.drop_fields {
                assert!(written.column("events", "fields").iter().all(|field| *field == Field::Null));
            }
        }
    });
}

#[test]
fn all_stacks_and_frames_that_rows_name_are_there() {
    let bytes = [recording("net9-everything.nettrace"), recording("v6-record-trace.nettrace")];
    let written = export(&[("a", &bytes[0]), ("b", &bytes[1])], Options::default());
    let ids = |table, column| -> BTreeSet<_> {
        written.column(table, column).iter().map(|id| format!("{id}")).filter(|id| id != "null").collect()
    };
    let stacks = ids("stacks", "stack_id");
    assert!(stacks.len() > 1000);
    let used: BTreeSet<_> = ids("events", "stack_id").union(&ids("samples", "stack_id")).cloned().collect();
    assert_eq!(stacks, used);
    let frames = ids("frames", "frame_id");
    for row in written.rows("stacks") {
        let Field::ListInternal(list) = field(&row, "frames") else { panic!("no list") };
        let elements: Vec<_> = list.elements().iter().map(|id| format!("{id}")).collect();
        assert!(elements.iter().all(|id| frames.contains(id)));
        assert_eq!(elements.first(), Some(&format!("{}", field(&row, "leaf"))));
        assert_eq!(field(&row, "depth"), Field::Int(i32::try_from(elements.len()).unwrap()));
    }
}

#[test]
fn a_stack_has_one_id_in_all_versions() {
    for name in ["net10-netperf.netperf", "net10-sample.nettrace"] {
        let bytes = recording(name);
        let transcoded = |version| {
            let mut out = Vec::new();
            let events = Reader::new(&bytes[..]).unwrap();
            let write = |bytes: &[u8]| -> Result<(), nettrace_writer::Error> {
                out.extend_from_slice(bytes);
                Ok(())
            };
            nettrace_writer::transcode(events, version, write).unwrap();
            out
        };
        let ids = |bytes: &[u8]| {
            let written = export(&[("x", bytes)], Options::default());
            let mut count = BTreeMap::new();
            for table in ["events", "samples"] {
                for id in written.column(table, "stack_id") {
                    *count.entry(format!("{id}")).or_insert(0) += 1;
                }
            }
            count
        };
        let expected = ids(&bytes);
        assert!(expected.len() > 20, "{name}");
        assert_eq!(ids(&transcoded(Version::V4)), expected, "{name}");
        assert_eq!(ids(&transcoded(Version::V6)), expected, "{name}");
    }
}

#[test]
fn two_runtimes_share_stacks() {
    let bytes = [recording("net8-typed.nettrace"), recording("net10-typed.nettrace")];
    let ids = |bytes: &[u8]| -> BTreeSet<_> {
        let options = Options::default();
        export(&[("x", bytes)], options)
            .column("frames", "frame_id")
            .iter()
            .map(|id| format!("{id}"))
            .collect()
    };
    let (one, other) = (ids(&bytes[0]), ids(&bytes[1]));
    assert!(one.intersection(&other).count() > 0, "{one:?} {other:?}");
}

#[test]
fn the_same_recordings_are_the_same_bytes_in_any_order() {
    let names = ["net10-sample.nettrace", "net10-gcverbose.nettrace", "net9-joined.nettrace"];
    let bytes = names.map(recording);
    let list: Vec<_> = names.into_iter().zip(&bytes).map(|(name, bytes)| (name, &bytes[..])).collect();
    let written = export(&list, Options::default());
    let reversed: Vec<_> = list.iter().rev().chain(&list).copied().collect();
    let again = export(&reversed, Options::default());
    assert_eq!(again.plan.duplicates, 3);
    let paths =
        |text: Vec<(std::path::PathBuf, Vec<u8>)>| text.into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    // Except for the recordings' own paths, which differ.
    let without = |folder: &std::path::Path| {
        let mut all = contents(folder);
        all.retain(|(path, _)| !path.starts_with("recordings"));
        all
    };
    assert_eq!(without(&written.root()), without(&again.root()));
    assert_eq!(paths(contents(&written.root())), paths(contents(&again.root())));

    // A second export has nothing to do, and one with a further recording exports only that.
    let dataset = Dataset::new(written.root(), Options::default());
    let before = contents(&written.root());
    let plan = dataset.plan(inputs(written.folder.path(), &list)).unwrap();
    assert_eq!((plan.shards.len(), plan.done), (0, 3));
    let more = recording("net10-counters.nettrace");
    let plan = dataset.plan(inputs(written.folder.path(), &[list[0], ("more", &more)])).unwrap();
    assert_eq!((plan.shards.len(), plan.shards[0].inputs.len(), plan.done), (1, 1, 1));
    dataset.export(&plan.shards[0]).unwrap();
    let after = contents(&written.root());
    assert!(before.iter().all(|file| after.contains(file)));
    assert_eq!(after.len(), before.len() + TABLES.len() + 1);
}

#[test]
fn an_export_that_was_killed_while_files_moved_is_done_again_as_it_was() {
    let bytes = PAIR.map(recording);
    let list: Vec<_> = PAIR.into_iter().zip(&bytes).map(|(name, bytes)| (name, &bytes[..])).collect();
    let written = export(&list, Options::default());
    let whole = contents(&written.root());
    let shard = &written.plan.shards[0];
    for table in ["recordings", "losses"] {
        let path = &tables::files(&written.root().join(table))[0];
        fs::remove_file(path).unwrap();
    }
    // A further recording does not change the shard's recordings.
    let more = recording("net9-background.nettrace");
    let dataset = Dataset::new(written.root(), Options::default());
    let mut all = list.clone();
    all.push(("more", &more));
    let plan = dataset.plan(inputs(written.folder.path(), &all)).unwrap();
    let again = plan.shards.iter().find(|other| other.name == shard.name).expect("the same shard");
    assert_eq!(again.inputs.len(), shard.inputs.len());
    dataset.export(again).unwrap();
    assert_eq!(contents(&written.root()), whole);
}

#[test]
fn a_partially_listed_shard_is_removed() {
    let bytes = PAIR.map(recording);
    let list: Vec<_> = PAIR.into_iter().zip(&bytes).map(|(name, bytes)| (name, &bytes[..])).collect();
    let written = export(&list, Options::default());
    fs::remove_file(&tables::files(&written.root().join("recordings"))[0]).unwrap();
    let dataset = Dataset::new(written.root(), Options::default());
    for listed in &list {
        let plan = dataset.plan(inputs(written.folder.path(), &[*listed])).unwrap();
        assert_eq!((plan.shards.len(), plan.done), (1, 0));
        dataset.export(&plan.shards[0]).unwrap();
    }
    let whole = bytes.iter().map(|bytes| count(bytes)).sum::<i64>();
    let rows = written.count("events") + written.count("samples");
    assert_eq!(rows + written.sum("recordings", "left_out"), whole);
    assert_eq!(written.count("recordings"), 2);
}

/// The recordings of `inputs`, with labels that they did not have before.
fn relabelled(mut inputs: Vec<Input>) -> Vec<Input> {
    for input in &mut inputs {
        input.labels = Labels::from_json(r#"{"service": "shop"}"#).unwrap();
    }
    inputs
}

#[test]
fn changed_labels_do_not_export_a_recording_again() {
    let bytes = PAIR.map(recording);
    let list: Vec<_> = PAIR.into_iter().zip(&bytes).map(|(name, bytes)| (name, &bytes[..])).collect();
    let written = export(&list, Options::default());
    let dataset = Dataset::new(written.root(), Options::default());
    let plan = dataset.plan(relabelled(inputs(written.folder.path(), &list))).unwrap();
    assert_eq!((plan.shards.len(), plan.done), (0, 2));
    // A partly exported recording is exported again to its present place.
    fs::remove_file(&tables::files(&written.root().join("recordings"))[0]).unwrap();
    let plan = dataset.plan(relabelled(inputs(written.folder.path(), &list))).unwrap();
    assert_eq!((plan.shards.len(), plan.done), (1, 0));
    dataset.export(&plan.shards[0]).unwrap();
    assert_eq!(written.count("recordings"), 2);
    let files = tables::files(&written.root().join("events"));
    assert!(files.len() == 1 && files[0].to_string_lossy().contains("/service=shop/"), "{files:?}");
    let rows = written.count("events") + written.count("samples");
    let whole = bytes.iter().map(|bytes| count(bytes)).sum::<i64>();
    assert_eq!(rows + written.sum("recordings", "left_out"), whole);
}

/// The situation of two containers that share a folder, one of which was believed dead.
#[test]
fn exports_at_the_same_time_do_not_disturb_each_other() {
    let bytes = recording("net10-sample.nettrace");
    let list = [("sample", &bytes[..])];
    let expected = contents(&export(&list, Options::default()).root());
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::new(folder.path().join("data"), Options::default());
    let plan = dataset.plan(inputs(folder.path(), &list)).unwrap();
    std::thread::scope(|scope| {
        let export = || (0..5).for_each(|_| drop(dataset.export(&plan.shards[0]).unwrap()));
        (0..4).for_each(|_| drop(scope.spawn(export)));
    });
    let without_path = |mut all: Vec<(std::path::PathBuf, Vec<u8>)>| {
        all.retain(|(path, _)| !path.starts_with("recordings"));
        all
    };
    let written = contents(&folder.path().join("data"));
    assert_eq!(written.len(), expected.len());
    assert_eq!(without_path(written), without_path(expected));
}

/// Stacks that recur among many that do not: the set of known stacks must not depend on the run.
#[test]
fn eviction_is_deterministic() {
    const EVENTS: u64 = 8000;
    let mut trace = synth::Trace::new(&TraceHeader::default());
    let metadata = Metadata { id: 1, provider: "Demo".into(), event_id: 1, ..Metadata::default() };
    trace.metadata_block(&[metadata]);
    let stack = |number: u64| {
        // One of 100 depths, or unique addresses.
        let (first, depth) = if number.is_multiple_of(2) { (0, 1 + number % 100) } else { (number * 64, 60) };
        stack_bytes(&(0..depth).map(|frame| 0x1000 + first + frame).collect::<Vec<_>>(), 8)
    };
    trace.stack_block(1, &(0..EVENTS).map(stack).collect::<Vec<_>>());
    let mut events = EventBlock::v4();
    for number in 0..EVENTS {
        events.event(&Event {
            metadata_id: 1,
            sequence: u32::try_from(number).unwrap() + 1,
            thread: 1,
            capture_thread: 1,
            timestamp: number,
            stack_id: u32::try_from(number).unwrap() + 1,
            ..Event::default()
        });
    }
    trace.event_block(&events);
    let bytes = trace.finish();
    let stacks = || {
        let written = export(&[("many", &bytes)], Options::default());
        assert_eq!(written.count("events"), i64::try_from(EVENTS).unwrap());
        assert!(written.count("stacks") > 100, "some were forgotten");
        fs::read(&tables::files(&written.root().join("stacks"))[0]).unwrap()
    };
    assert!(stacks() == stacks());
}

#[test]
fn damaged_recordings_are_exported_as_far_as_they_are_whole() {
    let bytes = recording("net10-sample.nettrace");
    let cut = &bytes[..bytes.len() / 2];
    let written = export(&[("cut", cut)], Options::default());
    let rows = written.count("events") + written.count("samples");
    assert_eq!(rows + written.sum("recordings", "left_out"), count(cut));
    assert_eq!(written.column("recordings", "truncated"), [Field::Bool(true)]);
    let mut damaged = bytes.clone();
    let middle = bytes.len() / 2;
    damaged[middle..middle + 2000].fill(0xff);
    let written = export(&[("damaged", &damaged)], Options::default());
    let rows = written.count("events") + written.count("samples");
    assert_eq!(rows + written.sum("recordings", "left_out"), count(&damaged));
    assert_eq!(written.sum("recordings", "damages"), written.count("damages"));
    assert!(!written.rows("damages").is_empty());
}

#[test]
fn rejects_non_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Input::open(&path, Labels::default()).unwrap_err()
    };
    assert!(matches!(open(b"no recording at all, but text"), Error::Recording { .. }));
    assert!(matches!(open(&recording("net10-typed.nettrace")[..30]), Error::CutHeader { .. }));
    assert!(matches!(Input::open(&folder.path().join("none"), Labels::default()), Err(Error::File { .. })));
    // A file that grows after it was hashed.
    let bytes = recording("net10-typed.nettrace");
    let inputs = inputs(folder.path(), &[("y", &bytes)]);
    fs::write(folder.path().join("y"), [&bytes[..], b"x"].concat()).unwrap();
    let dataset = Dataset::new(folder.path().join("data"), Options::default());
    let plan = dataset.plan(inputs).unwrap();
    assert!(matches!(dataset.export(&plan.shards[0]), Err(Error::Changed { .. })));
    assert!(tables::files(&folder.path().join("data")).is_empty());
}

/// The kernel's samples are rows of their own kinds, with the times of the profile.
#[test]
fn times_off_the_processors_are_samples() {
    let bytes = recording("net9-kernel.nettrace");
    let written = export(&[("net9-kernel.nettrace", &bytes)], Options::default());
    let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for (kind, ns) in written.column("samples", "kind").iter().zip(written.column("samples", "ns")) {
        let Field::Str(kind) = kind else { panic!("{kind:?}") };
        let sum = sums.entry(kind.clone()).or_default();
        sum.0 += 1;
        if let Field::Long(ns) = ns {
            sum.1 += ns;
        }
    }
    assert_eq!(sums["processor"], (210, 210_000_000));
    let (waits, ready) = (sums["off_cpu"], sums["ready"]);
    // As the recorder counted.
    assert_eq!(waits.0 + ready.0, 441);
    assert!((16_255_000_000..16_265_000_000).contains(&(waits.1 + ready.1)), "{sums:?}");
    assert!((330_000_000..350_000_000).contains(&ready.1), "{sums:?}");
}
