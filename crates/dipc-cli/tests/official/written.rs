//! Recordings that `dipc edit` and `dipc repair` write, read by Microsoft's library.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::clients::Clients;
use crate::recording;

/// Runs `dipc`, which must end with this code, and returns what it prints.
fn dipc(folder: &Path, arguments: &[&str], code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn another_reader_finds_the_same_events_in_what_is_written_again() {
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
