//! Recordings that `dipc edit`, `merge` and `repair` write, read by Microsoft's library.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::clients::Clients;
use crate::recording;
use crate::targets::Simulated;

/// Runs `dipc`, which must end with this code, and returns what it prints.
pub(crate) fn dipc(folder: &Path, arguments: &[&str], code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn another_reader_finds_the_same_events_in_rewritten_recordings() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("out.nettrace");
    for (name, version) in [
        ("net3-everything.nettrace", "4"),
        ("net9-everything.nettrace", "4"),
        ("net9-everything.nettrace", "6"),
        ("net10-tinybuf.nettrace", "4"),
        ("v6-record-trace.nettrace", "6"),
    ] {
        let whole = recording(name, folder.path());
        dipc(folder.path(), &["edit", name, "-o", "out.nettrace", "--upgrade", version], 0);
        assert!(clients.dump(&whole) == clients.dump(&written), "{name} in version {version}");
        assert_eq!(clients.count(&whole), clients.count(&written), "{name} in version {version}");
    }
}

#[test]
fn another_reader_finds_the_events_of_all_recordings_in_a_merged_one() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("out.nettrace");
    let sorted = |dump: &str| {
        let mut lines: Vec<_> = dump.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for name in [
        "net3-everything.nettrace",
        "net9-everything.nettrace",
        "net10-tinybuf.nettrace",
        "v6-record-trace.nettrace",
    ] {
        let whole = recording(name, folder.path());
        dipc(folder.path(), &["merge", name, "-o", "out.nettrace"], 0);
        assert!(sorted(&clients.dump(&whole)) == sorted(&clients.dump(&written)), "{name}");
        // In version 6 the library counts what every thread has lost; in version 4 not what threads without
        // any event have.
        let told = dipc(folder.path(), &["stat", name, "--format", "json"], 0);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let (events, lost) = clients.count(&written);
        assert_eq!((events, Some(lost)), (clients.count(&whole).0, told["lost"].as_u64()), "{name}");
    }
    let names = [
        "net10-sample.nettrace",
        "net10-gcverbose.nettrace",
        "net9-everything.nettrace",
        "v6-record-trace.nettrace",
    ];
    let all: Vec<_> = names.iter().map(|name| clients.count(&recording(name, folder.path()))).collect();
    dipc(folder.path(), &[&["merge", "-o", "out.nettrace"], &names[..]].concat(), 0);
    let sums = all.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    assert_eq!(clients.count(&written), sums);
    // The profile of the official tool has the samples of every process.
    let converted = |file: &str| {
        clients.dotnet_trace(
            folder.path(),
            &[
                "convert",
                folder.path().join(file).to_str().unwrap(),
                "--format",
                "Speedscope",
                "-o",
                folder.path().join("out").to_str().unwrap(),
            ],
        );
        fs::read_to_string(folder.path().join("out.speedscope.json")).unwrap().len()
    };
    dipc(folder.path(), &["merge", "-o", "out.nettrace", names[0], names[2]], 0);
    assert!(converted("out.nettrace") > converted(names[0]).max(converted(names[2])));
}

#[test]
fn another_reader_finds_the_chosen_events_of_a_part() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let whole = recording("net9-everything.nettrace", folder.path());
    let part = folder.path().join("out.nettrace");
    let all = clients.dump(&whole);
    for (filter, mark) in [("GC/*", "\"name\":\"GC/"), ("Thread/Sample", "\"name\":\"Thread/Sample\"")] {
        dipc(
            folder.path(),
            &["edit", "net9-everything.nettrace", "-o", "out.nettrace", "--event", filter],
            0,
        );
        let chosen = |dump: &str| -> Vec<String> {
            dump.lines().filter(|line| line.contains(mark)).map(str::to_owned).collect()
        };
        assert!(chosen(&all) == chosen(&clients.dump(&part)), "{filter}");
        assert_eq!(clients.count(&part).1, 0, "{filter}");
    }
}

#[test]
fn another_reader_finds_every_whole_event_of_a_repaired_recording() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(recording("net9-everything.nettrace", folder.path())).unwrap();
    let repaired = folder.path().join("out.nettrace");
    for (share, flipped) in [(3, None), (2, Some(700_001)), (1, Some(1_234_567))] {
        let mut bytes = whole[..whole.len() / share - 7].to_vec();
        if let Some(byte) = flipped.and_then(|at| bytes.get_mut(at)) {
            *byte ^= 0xff;
        }
        fs::write(folder.path().join("cut.nettrace"), bytes).unwrap();
        let told =
            dipc(folder.path(), &["repair", "cut.nettrace", "-o", "out.nettrace", "--format", "json"], 6);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(Some(clients.count(&repaired).0), told["events"].as_u64(), "1/{share}");
    }
}

#[test]
fn another_reader_finds_the_events_of_a_snapshot() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let whole = recording("net9-everything.nettrace", folder.path());
    let replay = ["--replay", whole.to_str().unwrap(), "--speed", "max"];
    // A ring that keeps all of a stream, and one that keeps the last of it.
    for (arguments, capacity) in [(&replay[..], "64MB"), (&["--rate", "50000"], "1MiB")] {
        let simulated = Simulated::start(arguments);
        let output = folder.path().join("ring.nettrace");
        let providers = "Dipc-Simulated:FFFFFFFFFFFFFFFF:5";
        let fixed = ["--keep", capacity, "--no-names", "--duration", "2s", "--providers", providers];
        simulated.record(&[&fixed[..], &["-o", output.to_str().unwrap()]].concat());
        let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let snapshots: Vec<_> = files.filter(|path| path.to_string_lossy().contains("/ring_")).collect();
        let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
        let mut reader = nettrace::Reader::new(fs::File::open(snapshot).unwrap()).unwrap();
        let mut events = 0;
        reader.for_each(|_| events += 1).unwrap();
        assert!(events > 10_000 && reader.damage().is_empty() && reader.truncated_at().is_none());
        assert_eq!((events, reader.loss().total()), clients.count(snapshot), "{arguments:?}");
        assert_eq!(reader.loss().total(), 0, "{arguments:?}");
        if arguments == replay {
            assert!(clients.dump(&whole) == clients.dump(snapshot), "the whole stream");
        }
        fs::remove_file(snapshot).unwrap();
    }
}
