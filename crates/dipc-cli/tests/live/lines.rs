//! Source lines of frames, compared with the runtime's own output (`testdata/workload/lines/Lines.cs`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bad_files::recording;
use crate::program::{Finished, Recorded, Recording, run};
use crate::runtime::{Runtime, program_of_8_with_pdb, program_of_10_with_pdb, testdata};
use crate::workload::{Target, await_providers};

fn lines_of(name: &str) -> PathBuf {
    testdata().join("workload/lines").join(name)
}

/// The recording of testdata, and the PDB of its program in a folder of its own.
fn recorded() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Lines.nettrace");
    fs::write(&file, recording("../workload/lines/Lines.nettrace.xz")).unwrap();
    fs::create_dir(folder.path().join("symbols")).unwrap();
    fs::copy(lines_of("Lines.pdb"), folder.path().join("symbols/Lines.pdb")).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// The lines of each exception's stack, up to the method that caught it.
fn thrown(events: &Finished) -> Vec<Vec<String>> {
    let stacks = events.json_lines().map(|event| {
        let frames: Vec<_> = event["stack"].as_array().unwrap().iter().filter_map(line).collect();
        let caught = frames.iter().position(|line| line == CAUGHT).map_or(frames.len(), |at| at + 1);
        frames[..caught].to_vec()
    });
    stacks.collect()
}

const CAUGHT: &str = "Lines.cs:37";

/// The line of a frame: what stands behind it in parentheses.
fn line(frame: &Value) -> Option<String> {
    let (_, line) = frame.as_str()?.strip_suffix(')')?.rsplit_once(" (")?;
    line.contains(".cs:").then(|| line.to_owned())
}

/// Everything that the runtime printed must have been thrown; `leaf` says whether that goes for where it was
/// thrown, too.
fn compare(printed: &str, thrown: &[Vec<String>], leaf: bool) {
    let mut checked = 0;
    for row in printed.lines() {
        let (name, places) = row.split_once('|').unwrap();
        let mut expected: Vec<_> = places.split('|').map(place).collect();
        if name == "handler" {
            // For code in a handler, runtimes record the address at which the handled code was left.
            "Lines.cs:107".clone_into(&mut expected[0]);
        }
        // An exception that is rethrown at its await counts as two.
        let joined = thrown.windows(2).map(<[_]>::concat);
        let is_there = thrown.iter().cloned().chain(joined).any(|stack| {
            let from = usize::from(!leaf);
            stack.len() == expected.len() && stack[from..] == expected[from..]
        });
        assert!(is_there, "{name}: {expected:?} is not among {thrown:?}");
        checked += expected.len() - usize::from(!leaf);
    }
    assert!(checked >= 16, "{checked}: {printed}");
}

/// `Lines.cs:line 7`, or what the runtime puts before a path without folders, as `Lines.cs:7`.
fn place(text: &str) -> String {
    let (file, line) = text.rsplit_once(":line ").unwrap();
    format!("{}:{line}", file.rsplit(' ').next().unwrap())
}

#[test]
fn exception_lines_match_the_runtimes() {
    let (folder, file) = recorded();
    let symbols = path(&folder, "symbols");
    let arguments = ["events", &file, "--format", "jsonl", "--event", "Exception/Start"];
    let events = run(arguments.into_iter().chain(["--symbol-path", &symbols])).with_code(0);
    let printed = fs::read_to_string(lines_of("Lines.stacks.txt")).unwrap();
    compare(&printed, &thrown(&events), true);
    let plain = run(arguments.into_iter().chain(["--symbols"])).with_code(0);
    assert_eq!(thrown(&plain).concat(), Vec::<String>::new());
}

#[test]
fn lines_are_frames_of_their_own() {
    let (folder, file) = recorded();
    let symbols = path(&folder, "symbols");
    let answer = run(["report", &file, "topN", "--format", "json", "--symbol-path", &symbols]).with_code(0);
    let answer = answer.json();
    let rows = answer["rows"].as_array().unwrap();
    let row = |name: &str| {
        rows.iter().find(|row| row["frame"] == name).unwrap_or_else(|| panic!("{name}: {answer}"))
    };
    // Three times the work on the second of two lines, and nothing but sleep on the third.
    let spin = |line: u32| {
        row(&format!("Lines!Lines.Spin(class System.Diagnostics.Stopwatch,int32) (Lines.cs:{line})"))
    };
    let weight = |line: u32| spin(line)["inclusive"].as_f64().unwrap();
    let ratio = weight(126) / weight(125);
    assert!((2.0..4.5).contains(&ratio), "{ratio}");
    assert!(weight(127) > weight(126));
    assert_eq!((&spin(127)["file"], &spin(127)["line"]), (&"/_/Lines.cs".into(), &127.into()));
    let total: f64 = rows.iter().map(|row| row["exclusive_percent"].as_f64().unwrap()).sum();
    assert!((total - 100.0).abs() < 1e-6, "{total}");

    let tree =
        run(["report", &file, "stacks", "--format", "json", "--symbol-path", &symbols]).with_code(0).json();
    let nodes = tree["tree"].as_array().unwrap();
    let of_line = nodes.iter().find(|node| node["file"] == "/_/Lines.cs" && node["line"] == 127);
    assert_eq!(of_line.unwrap_or_else(|| panic!("{tree}"))["frame"], spin(127)["frame"]);

    let without = run(["report", &file, "topN", "--format", "json"]).with_code(0).json();
    let method = "Lines!Lines.Spin(class System.Diagnostics.Stopwatch,int32)";
    let rows = without["rows"].as_array().unwrap();
    let whole = rows.iter().find(|row| row["frame"] == method).unwrap()["inclusive"].as_f64().unwrap();
    assert!((weight(125) + weight(126) + weight(127) - whole).abs() <= 0.1 * whole, "{whole}");
}

#[test]
fn reports_missing_and_mismatched_pdbs() {
    let (folder, file) = recorded();
    let empty = path(&folder, "empty");
    fs::create_dir(&empty).unwrap();
    let report = ["report", &file, "topN", "-v", "--symbol-path", &empty];
    let missing = run(report).with_code(0);
    assert!(missing.stderr.contains("Lines: no source lines: no PDB was found"), "{}", missing.stderr);
    assert!(missing.stderr.contains("warning: no frame has a source line: no PDB"), "{}", missing.stderr);

    // Of another build: its program has it in it.
    fs::copy(lines_of("embedded/Lines.dll"), Path::new(&empty).join("Lines.dll")).unwrap();
    let other = run(report).with_code(0);
    assert!(other.stderr.contains("Lines.dll: it is of another build"), "{}", other.stderr);

    fs::write(Path::new(&empty).join("Lines.pdb"), "Microsoft C/C++ MSF 7.00").unwrap();
    let other = run(report).with_code(0);
    assert!(other.stderr.contains("Lines.pdb: not a portable PDB: it is a Windows PDB"), "{}", other.stderr);

    // As a symbol server has it; the others do not get in its way.
    let key = "a1523f11ad014bbb8bf2a182944ca856ffffffff";
    let store = Path::new(&empty).join("Lines.pdb");
    fs::remove_file(&store).unwrap();
    fs::create_dir_all(store.join(key)).unwrap();
    fs::copy(lines_of("Lines.pdb"), store.join(key).join("Lines.pdb")).unwrap();
    let found = run(report).with_code(0);
    assert!(
        found.stderr.contains("Lines: source lines: ") && !found.stderr.contains("warning"),
        "{}",
        found.stderr
    );

    // Where nothing is known of code, it is the recording; where there are no frames, no line is missing.
    fs::write(&file, recording("net10-typed.nettrace.xz")).unwrap();
    for (arguments, is_told) in [(&["--head", "100"][..], true), (&["--head", "0"], false)] {
        let events =
            run(["events", &file, "--lines"].into_iter().chain(arguments.iter().copied())).with_code(0);
        let told = events.stderr.contains("warning: no frame has a source line: the recording does not map");
        assert_eq!(told, is_told, "{}", events.stderr);
    }
}

/// Lets the program do its work, and returns its output.
fn work(target: &mut Target) -> String {
    target.send("");
    let rows = std::iter::from_fn(|| Some(target.line()).filter(|line| line != "done"));
    rows.flat_map(|row| [row, "\n".to_owned()]).collect()
}

/// The exceptions of a recording, with lines.
fn exceptions(recorded: &Recorded) -> Finished {
    assert_eq!(recorded.program.code, Some(0), "{}", recorded.program.stderr);
    let file = recorded.file();
    let arguments = ["events", file.to_str().unwrap(), "--format", "jsonl", "--event", "Exception/Start"];
    run(arguments.into_iter().chain(["--lines"])).with_code(0)
}

/// Records the program, with the PDB next to it or embedded, and compares.
fn live(runtime: Runtime, assembly: &str) {
    let Some(command) = runtime.program(&format!("lines/{assembly}")) else { return };
    let mut target = Target::start(command);
    assert_eq!(target.line(), "ready");
    let arguments = ["--profile", "dotnet-sampled-thread-time", "--clrevents", "exception"];
    let recording = Recording::start(target.pid(), &arguments);
    await_providers(runtime);
    let printed = work(&mut target);
    let events = exceptions(&recording.interrupt());
    // 3.1 takes where it goes on for where it threw.
    compare(&printed, &thrown(&events), runtime != Runtime::Net3_1);
}

/// Records the program from its start, without the rundown; what it printed, and its exceptions.
fn without_rundown(keywords: &str) -> Option<(String, Finished)> {
    let mut command = Runtime::Net9_0.program("lines/Lines.dll")?;
    command.env("DOTNET_DefaultDiagnosticPortSuspend", "1");
    let mut target = Target::start_waiting(command);
    let arguments = ["--rundown", "false", "--clreventlevel", "verbose", "--clrevents", keywords];
    let recording = Recording::start(target.pid(), &arguments);
    assert_eq!(target.line(), "ready");
    let printed = work(&mut target);
    Some((printed, exceptions(&recording.interrupt())))
}

#[test]
fn net_9_0_without_rundown() {
    let Some((printed, events)) = without_rundown("exception+loader+jit+jittedmethodiltonativemap") else {
        return;
    };
    compare(&printed, &thrown(&events), true);
}

#[test]
fn a_recording_without_il_maps_explains_how_to_make_one() {
    let Some((_, events)) = without_rundown("exception+loader+jit") else { return };
    assert_eq!(thrown(&events).concat(), Vec::<String>::new());
    let expected = "warning: no frame has a source line: the recording does not map its code";
    assert!(
        events.stderr.contains(expected) && events.stderr.contains("jittedmethodiltonativemap"),
        "{}",
        events.stderr
    );
}

#[test]
fn net_9_0_with_an_adjacent_pdb() {
    live(Runtime::Net9_0, "Lines.dll");
}

#[test]
fn net_9_0_with_its_pdb_in_it() {
    live(Runtime::Net9_0, "embedded/Lines.dll");
}

#[test]
fn net_3_1_with_an_adjacent_pdb() {
    live(Runtime::Net3_1, "Lines.dll");
}

/// Records threads that wait in `testdata/workload/locals`, whose PDB is among the files of its program.
fn single_file(program: Option<std::process::Command>) {
    let Some(program) = program else { return };
    let target = Target::start(program);
    while target.line() != "ready" {}
    let mut recording = Recording::start(target.pid(), &["--profile", "dotnet-sampled-thread-time"]);
    recording.until(1 << 16);
    let recorded = recording.interrupt();
    let file = recorded.file();
    let report = ["report", file.to_str().unwrap(), "stacks", "--format", "json"];
    let with = run(report.into_iter().chain(["--lines"])).with_code(0);
    let source = fs::read_to_string(testdata().join("workload/locals/locals.cs")).unwrap();
    let number = source.lines().position(|line| line.contains("static void AfterScope(")).unwrap() + 4;
    let json = with.json();
    let row = json["tree"].as_array().unwrap().iter().find(|row| {
        let frame = row["frame"].as_str().unwrap_or_default();
        frame.contains("Locals.AfterScope(") && frame.ends_with(&format!(" (locals.cs:{number})"))
    });
    let row = row.unwrap_or_else(|| panic!("{json:#}"));
    assert_eq!((&row["file"], &row["line"]), (&"/_/locals.cs".into(), &number.into()));
    let without = run(report).with_code(0).json();
    assert!(!without.to_string().contains("locals.cs"), "{without}");
}

#[test]
fn net_8_0_with_its_pdb_in_the_single_file() {
    single_file(program_of_8_with_pdb("locals/locals.dll"));
}

#[test]
fn net_10_0_with_its_pdb_in_the_single_file() {
    single_file(program_of_10_with_pdb("locals/locals10.dll"));
}
