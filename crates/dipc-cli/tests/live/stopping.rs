//! Recordings that an event ends, and the flags of dotnet-trace in all their forms.

use std::path::Path;

use crate::program::{Finished, Recorded, run};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

on_each_runtime!(an_event_of_a_name_ends_the_recording, an_event_with_fields_ends_the_recording);

const TYPED: [&str; 2] = ["--providers", "Workload-Typed:FFFFFFFFFFFFFFFF:5"];
const PROVIDER: &str = "--stopping-event-provider-name:Workload-Typed";

/// The recording is whole, and names the event that ended it.
fn assert_stopped_by(recorded: &Recorded, runtime: Runtime, name: &str) {
    let stderr = &recorded.program.stderr;
    assert!(stderr.contains(&format!("Stopping event : {name}\n")), "{stderr}");
    let stat = recorded.stat(0);
    stat.assert_whole();
    // The session was stopped as it is otherwise: with what comes at its end.
    let rundown = stat.provider("Microsoft-Windows-DotNETRuntimeRundown");
    assert_eq!(rundown > 0, runtime != Runtime::NativeAot9, "{}", stat.0);
}

fn an_event_of_a_name_ends_the_recording(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let name = ["--stopping-event-event-name", "nothing"];
    let recording = workload.record(&[&TYPED[..], &[PROVIDER], &name].concat());
    workload.run("flood 1 100");
    workload.run("emit 1");
    assert_stopped_by(&recording.finish(), runtime, "Workload-Typed/Nothing");
}

fn an_event_with_fields_ends_the_recording(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let filter = ["--stopping-event-event-name=Tick", "--stopping-event-payload-filter:thread:1,i:70"];
    let recording = workload.record(&[&TYPED[..], &[PROVIDER], &filter].concat());
    // A thread 0 alone has no such event.
    workload.run("flood 1 100");
    workload.run("flood 2 100");
    let recorded = recording.finish();
    assert_stopped_by(&recorded, runtime, "Workload-Typed/Tick");
    let ticks = recorded.events(0, &["--event", "Tick"]);
    assert!(ticks.iter().any(|tick| tick["fields"]["thread"] == 1 && tick["fields"]["i"] == 70));
}

/// The example of dotnet-trace's documentation: an event of the runtime, whose name is not in the recording.
#[test]
fn an_event_of_the_runtime_ends_the_recording() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let arguments = [
        "--clrevents:gc",
        "--stopping-event-provider-name:Microsoft-Windows-DotNETRuntime",
        "--stopping-event-event-name:GC/Start",
        "--stopping-event-payload-filter:Depth:2,Reason:Induced",
    ];
    let recording = workload.record(&arguments);
    workload.run("gc 0 1");
    workload.run("gc 2 1");
    let recorded = recording.finish();
    assert_stopped_by(&recorded, Runtime::Net9_0, "Microsoft-Windows-DotNETRuntime/GC/Start");
    let starts = recorded.events(0, &["--event", "GC/Start"]);
    assert!(starts.iter().any(|start| start["fields"]["Depth"] == 2), "{starts:?}");
}

fn trace(arguments: &[&str]) -> Finished {
    run(["trace"].iter().chain(arguments).copied())
}

#[test]
fn reports_an_impossible_stopping_event() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    let short = ["-p", &pid, "-o", "/dev/null", "--duration", "100ms", "--rundown:false"];
    let other = trace(&[&short[..], &["--stopping-event-provider-name", "Other"]].concat());
    assert!(other.stderr.contains("provider Other is not recorded"), "{}", other.stderr);
    trace(&[&short[..], &["--stopping-event-event-name", "x"]].concat())
        .with_code(2)
        .assert_error_names(&["--stopping-event-provider-name"]);
    trace(
        &[
            &short[..],
            &[PROVIDER, "--stopping-event-event-name", "x", "--stopping-event-payload-filter", "x"],
        ]
        .concat(),
    )
    .with_code(2)
    .assert_error_names(&["FIELD:VALUE"]);
}

#[test]
fn flags_take_values_after_a_colon() {
    let Some(target) = crate::workload::Target::start_suspended(Runtime::Net9_0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.nettrace");
    let (pid, path) = (format!("-p:{}", target.pid()), format!("-o:{}", output.display()));
    let trace =
        trace(&[&pid, &path, "--duration:00:00:01", "--resume-runtime:False", "--show-child-io:false"]);
    // A runtime that waits sends nothing.
    trace.with_code(6);
    assert!(Path::new(&output).exists());
    // It still waits, because nothing has resumed it.
    let info = run(["info", "-p", &target.pid().to_string(), "--format:json"]).with_code(0).json();
    assert!(!info["command_line"].as_str().unwrap().contains("workload.dll"), "{info}");
}

#[test]
fn dsrouter_names_its_replacement() {
    let router = trace(&["--dsrouter", "android"]).with_code(2);
    router.assert_error_names(&["--dsrouter android"]);
    assert!(router.stderr.contains("help: start 'dotnet-dsrouter android'"), "{}", router.stderr);
}
