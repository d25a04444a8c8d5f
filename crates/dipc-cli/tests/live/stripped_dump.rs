//! `dump strip`: a copy of a core dump has its structure, and none of the program's secrets.

use std::fs;

use serde_json::Value;

use crate::program::run;
use crate::runtime::{Runtime, mcp_server};
use crate::workload::{McpServer, Target};

/// The views with unchanged output.
const VIEWS: [&[&str]; 7] =
    [&["threads"], &["stacks", "--native"], &["exceptions"], &["locks"], &["async"], &["modules"], &["heap"]];

/// Removes what a copy does not have: names of threads, messages.
fn without_texts(view: &mut Value) {
    match view {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "message" || (name == "name" && value.is_string()) {
                    *value = Value::Null;
                } else {
                    without_texts(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(without_texts),
        _ => {}
    }
}

/// A view in JSON, with the exit code: 6 for what a small core dump does not have.
fn view(core: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run([&["dump", "analyze", core], arguments, &["--format", "json"]].concat());
    let mut value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    // The names of types are those of the heap view's rows.
    if arguments[0] != "heap" {
        without_texts(&mut value);
    }
    (output.code, value)
}

fn assert_same_views(core: &str, copy: &str) {
    for arguments in VIEWS {
        assert_eq!(view(core, arguments), view(copy, arguments), "{copy}: {arguments:?}");
    }
}

/// The strings in a file, in UTF-8 or UTF-16.
fn found<'t>(bytes: &[u8], texts: &[&'t str]) -> Vec<&'t str> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let forms: Vec<(Vec<u8>, &str)> =
        texts.iter().flat_map(|text| [(text.as_bytes().to_vec(), *text), (wide(text), *text)]).collect();
    let mut begins = [false; 256];
    for (form, _) in &forms {
        begins[usize::from(form[0])] = true;
    }
    let mut found = Vec::new();
    for at in (0..bytes.len()).filter(|at| begins[usize::from(bytes[*at])]) {
        found.extend(forms.iter().filter(|(form, _)| bytes[at..].starts_with(form)).map(|(_, text)| *text));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn a_copy_has_the_structure_and_no_secret() {
    check_copies(Runtime::Net9_0, &["mini", "triage", "stream", "heap"]);
}

/// Without createdump, as a single file is.
#[test]
fn a_copy_of_net_8_has_the_structure_and_no_secret() {
    check_copies(Runtime::Net8_0, &["stream"]);
}

/// The runtime's own heap dumps of .NET Core 3.1 do not have the descriptions of types: any field can be a
/// buffer with a text.
#[test]
fn a_copy_without_descriptions_of_types_has_no_secret() {
    let Some((target, secrets)) = start(Runtime::Net3_1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    let copy = format!("{core}.copy");
    run(["dump", "-p", &target.pid().to_string(), "--type", "heap", "-o", &core]).with_code(0);
    assert_eq!(found(&fs::read(&core).unwrap(), &["COMMAND-ZXCVBNM"]), ["COMMAND-ZXCVBNM"]);
    run(["dump", "strip", &core, "-o", &copy]).with_code(0);
    assert_eq!(found(&fs::read(&copy).unwrap(), &secrets), [""; 0]);
    let heap = |core: &str| {
        let report = run(["dump", "analyze", core, "heap", "--format", "json"]).json();
        report["objects"].clone()
    };
    assert_eq!(heap(&copy), heap(&core));
}

/// Starts the program with secrets, and returns parts of them.
fn start(runtime: Runtime) -> Option<(Target, [&'static str; 6])> {
    let mut program = runtime.program("secrets/secrets.dll")?;
    program.args(["command-zxcvbnm", "asdfghjk"]).env("HIDDEN_TOKEN", "environment-qwertyuiop");
    let target = Target::start(program);
    assert_eq!(target.line(), format!("ready {}", target.pid()));
    let secrets = ["command-zx", "zxcvbnm", "COMMAND-ZX", "ZXCVBNM", "environment-qw", "qwertyuiop"];
    Some((target, secrets))
}

/// Checks the copies of a core of each kind. The last kind has a heap.
fn check_copies(runtime: Runtime, kinds: &[&str]) {
    let Some((target, secrets)) = start(runtime) else { return };
    let pid = target.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    for kind in kinds {
        let (core, copy) = (path(kind), path(&format!("{kind}.copy")));
        match *kind {
            "stream" => run(["dump", "-p", &pid, "--stream", "--type", "heap", "-o", &core]),
            _ => run(["dump", "-p", &pid, "--type", kind, "-o", &core]),
        }
        .with_code(0);
        let bytes = fs::read(&core).unwrap();
        // The search finds what there is.
        let texts = ["COMMAND-ZXCVBNM", "environment-qwertyuiop"];
        assert_eq!(found(&bytes, &texts), texts, "{kind}");
        drop(bytes);
        let written = run(["dump", "strip", &core, "-o", &copy, "--format", "json"]).with_code(0).json();
        assert_eq!(written["has_heap"], ["heap", "stream"].contains(kind), "{kind}");
        let names = written["environment"].as_array().unwrap();
        assert!(names.contains(&"HIDDEN_TOKEN".into()), "{kind}: {names:?}");
        assert_eq!(found(&fs::read(&copy).unwrap(), &secrets), [""; 0], "{kind}");
        assert_same_views(&core, &copy);
        let overview = run(["dump", "analyze", &copy]).with_code(0).text();
        assert!(overview.contains("\nStripped: "), "{overview}");
        check_without_numbers(&core, &copy, written["has_heap"] == true, &secrets);
    }
    let core = path(kinds.last().unwrap());
    let heap = run(["dump", "analyze", &format!("{core}.copy"), "exceptions"]).with_code(0).text();
    assert!(heap.contains("System.InvalidOperationException (its message is not in the dump)"), "{heap}");
    let report = run(["dump", "strip", &core, "--privacy"]).with_code(0).text();
    for part in ["HIDDEN_TOKEN", " strings, ", " arrays without references, "] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(!report.contains("qwertyuiop"), "{report}");
    run(["dump", "strip", &core, "-o", &core]).with_code(2);
    run(["dump", "strip", &core]).with_code(2);
}

/// Checks a copy without numbers beside one that has them. The number of the program is the bytes of a text.
fn check_without_numbers(core: &str, with_numbers: &str, has_heap: bool, secrets: &[&str]) {
    const NUMBERS: [&str; 3] = ["ASDFGHJK", "ASDF", "GHJK"];
    if has_heap {
        assert_eq!(found(&fs::read(with_numbers).unwrap(), &NUMBERS).len(), 3, "{with_numbers}");
    }
    let copy = format!("{with_numbers}.numbers");
    run(["dump", "strip", core, "--no-numbers", "-o", &copy]).with_code(0);
    let bytes = fs::read(&copy).unwrap();
    assert_eq!((found(&bytes, &NUMBERS), found(&bytes, secrets)), (vec![], vec![]), "{copy}");
    drop(bytes);
    assert_same_views(core, &copy);
    let overview = run(["dump", "analyze", &copy]).with_code(0).text();
    assert!(overview.contains("\nStripped: strings, buffers, numbers and native memory"), "{overview}");
    let statics = run(["dump", "analyze", &copy, "statics"]);
    assert!(statics.stderr.contains("The numbers of the program were removed"), "{statics:?}");
}

/// A single file, whose views have three thousand types, generic ones and those of delegates among them.
#[test]
fn a_copy_of_net_10_has_the_structure_and_no_secret() {
    let Some(mut program) = mcp_server() else { return };
    program.env("HIDDEN_TOKEN", "environment-qwertyuiop");
    let server = McpServer::from_command(program, "client-zxcvbnm");
    let pid = server.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let (core, copy) = (path("core"), path("copy"));
    run(["dump", "-p", &pid, "--stream", "--type", "heap", "-o", &core]).with_code(0);
    let texts = ["client-zxcvbnm", "environment-qwertyuiop"];
    assert_eq!(found(&fs::read(&core).unwrap(), &texts), texts);
    run(["dump", "strip", &core, "-o", &copy]).with_code(0);
    let secrets = ["client-zx", "zxcvbnm", "environment-qw", "qwertyuiop"];
    assert_eq!(found(&fs::read(&copy).unwrap(), &secrets), [""; 0]);
    assert_same_views(&core, &copy);
    let without_numbers = path("numbers");
    run(["dump", "strip", &core, "--no-numbers", "-o", &without_numbers]).with_code(0);
    assert_same_views(&core, &without_numbers);
    // Equal views that have something.
    let (_, heap) = view(&copy, &["heap"]);
    assert!(heap["rows"].as_array().unwrap().len() > 1000 && heap["complete"] == true, "{}", heap["missing"]);
    let (_, chains) = view(&copy, &["async"]);
    assert!(chains["chains"].as_u64().unwrap() > 0, "{chains}");
}

#[test]
fn a_copy_has_the_chains_of_async_methods() {
    let Some(program) = Runtime::Net9_0.program("awaits/awaits.dll") else { return };
    let target = Target::start(program);
    assert_eq!(target.line(), format!("ready {}", target.pid()));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let (core, copy) = (path("core"), path("copy"));
    run(["dump", "-p", &target.pid().to_string(), "--type", "heap", "-o", &core]).with_code(0);
    run(["dump", "strip", &core, "-o", &copy]).with_code(0);
    let chains = run(["dump", "analyze", &copy, "async", "--format", "json"]).with_code(0).json();
    assert_eq!((&chains["methods"], &chains["chains"]), (&112.into(), &58.into()));
    assert_same_views(&core, &copy);
    let without_numbers = path("numbers");
    run(["dump", "strip", &core, "--no-numbers", "-o", &without_numbers]).with_code(0);
    assert_same_views(&core, &without_numbers);
}
