//! Microsoft's clients against `dipc sim`: their results for a real runtime and for a simulated one.
//!
//! They are where `$DIPC_SHARED` names the folder that has them packed, and need a .NET 9 as
//! `cargo xtask runtimes` sets it up. Without either these tests say that they are not run; `dipc-sim`'s own
//! tests then replay what these clients were seen to send.

#![cfg(unix)]

mod agreement;
mod clients;
mod kernel_samples;
mod machine;
mod targets;
mod written;

use clients::Clients;
use std::fs;
use std::path::{Path, PathBuf};
use targets::{Real, Simulated};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// A recording of the repository, unpacked into a folder.
fn recording(name: &str, folder: &Path) -> PathBuf {
    recording_of("traces", name, folder)
}

/// The same, of a folder of testdata.
fn recording_of(group: &str, name: &str, folder: &Path) -> PathBuf {
    let path = folder.join(name);
    let packed = fs::read(testdata().join(group).join(format!("{name}.xz"))).unwrap();
    fs::write(&path, clients::unpacked(&packed)).unwrap();
    path
}

/// What `ncc all` says of each command, without what differs from process to process.
fn outcomes(report: &str) -> Vec<String> {
    let comparable = |line: &str| match line.split_once('\t') {
        // The environment is as long as it is, and so is a stream.
        Some((name @ ("env" | "trace"), outcome)) if outcome.starts_with("ok") => format!("{name} ok"),
        _ => line.trim_end().to_owned(),
    };
    report.lines().map(comparable).collect()
}

/// Every command of the client's library: the simulated runtime's answers are the real one's.
#[test]
fn every_command_has_the_outcome_that_a_real_runtime_gives_it() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let replayed = recording("net10-typed.nettrace", folder.path());
    for version in ["3.1", "9"] {
        let Some(real) = Real::start(version) else { continue };
        let simulated = Simulated::start(&[
            "--version",
            version,
            "--speed",
            "max",
            "--replay",
            replayed.to_str().unwrap(),
        ]);
        let expected = outcomes(&clients.every_command(real.pid(), real.folder()));
        assert_eq!(expected.len(), 10, "{expected:?}");
        let found = clients.every_command(simulated.pid(), simulated.folder());
        assert_eq!(outcomes(&found), expected, ".NET {version}");
        let recorded = fs::read(simulated.folder().join("ncc.nettrace")).unwrap();
        assert!(recorded == fs::read(&replayed).unwrap(), ".NET {version}: not what was replayed");
    }
}

#[test]
fn dotnet_trace_lists_it_records_it_and_reports_on_it() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let replayed = recording("net10-sample.nettrace", folder.path());
    let simulated = Simulated::start(&["--replay", replayed.to_str().unwrap()]);
    let pid = simulated.pid().to_string();

    let list = clients.processes(simulated.folder());
    let line = list.lines().find(|line| line.split_whitespace().next() == Some(&pid));
    assert!(line.is_some_and(|line| line.contains("dipc")), "{list}");

    let output = folder.path().join("recorded.nettrace");
    let output = output.to_str().unwrap();
    let told = clients.dotnet_trace(
        simulated.folder(),
        &["collect", "-p", &pid, "--duration", "00:00:00:01", "-o", output],
    );
    assert!(told.contains("Trace completed."), "{told}");
    assert!(fs::read(output).unwrap() == fs::read(&replayed).unwrap(), "not what was replayed");

    let report = clients.dotnet_trace(simulated.folder(), &["report", output, "topN", "-n", "3"]);
    assert!(report.contains("Monitor.Wait(class System.Object,int32)"), "{report}");
}

/// A recording that is played over and over, and one that is made up: Microsoft's reader finds as many events
/// as ours, and none lost.
#[test]
fn another_reader_finds_no_loss_in_looped_and_synthetic_streams() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let replayed = recording("net10-all.nettrace", folder.path());
    let looped = ["--replay", replayed.to_str().unwrap(), "--loop", "--speed", "10"];
    for (arguments, loses) in
        [(&looped[..], false), (&["--rate", "50000"], false), (&["--fault", "flood"], true)]
    {
        let simulated = Simulated::start(arguments);
        let output = folder.path().join("recorded.nettrace");
        let providers =
            "Dipc-Simulated:FFFFFFFFFFFFFFFF:5,Microsoft-DotNETCore-SampleProfiler:F00000000000:4";
        simulated.record(&["--duration", "1s", "--providers", providers, "-o", output.to_str().unwrap()]);
        let mut reader = nettrace::Reader::new(fs::File::open(&output).unwrap()).unwrap();
        let mut events = 0;
        reader.for_each(|_| events += 1).unwrap();
        assert!(events > 10_000 && reader.damage().is_empty(), "{arguments:?}: {events} events");
        let lost = reader.loss().total();
        assert_eq!(lost > 0, loses, "{arguments:?}: {lost} lost");
        assert_eq!(clients.count(&output), (events, lost), "{arguments:?}");
    }
}

#[test]
fn a_port_of_the_clients_library_has_it_again_and_again() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    // Who comes first waits for the other.
    let simulated = Simulated::start(&["--connect", port.to_str().unwrap()]);
    assert_eq!(clients.port(&port, 3), "port\tok 2\n".repeat(3));
    drop(simulated);
}
