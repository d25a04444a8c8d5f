//! Names, types and values of arguments and local variables, compared with the program's own account
//! (`testdata/workload/locals`): the names of local variables are those of its PDB.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Finished, run};
use crate::runtime::{Runtime, on_runtimes, program_of_8_with_pdb, program_of_10_with_pdb, testdata};
use crate::workload::Target;

/// A variable as the program states it.
#[derive(Debug)]
struct Row {
    method: String,
    role: String,
    /// Empty if its slot has no name at this place.
    name: String,
    declared_type: String,
    value: String,
}

impl Row {
    /// Parses `method|role|name|type|value`.
    fn parse(line: &str) -> Self {
        let parts: Vec<_> = line.split('|').map(ToOwned::to_owned).collect();
        let [method, role, name, declared_type, value] =
            <[String; 5]>::try_from(parts).unwrap_or_else(|parts| panic!("{parts:?}"));
        Self { method, role, name, declared_type, value }
    }
}

/// The account of a program, up to the line "ready".
fn account(target: &mut Target) -> Vec<Row> {
    let lines = std::iter::from_fn(|| Some(target.line()).filter(|line| line != "ready"));
    lines.map(|line| Row::parse(&line)).collect()
}

/// A value of a report in the form of the program's.
fn text(value: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    if let Some(fields) = value["fields"].as_array() {
        let fields = fields.iter().map(|field| {
            let name = plain(&field["name"]);
            format!("{name}={}", text(&field["value"]))
        });
        return fields.collect::<Vec<_>>().join(",");
    }
    let known = ["text", "name", "type"].into_iter().find(|key| value[key].is_string());
    known.map_or_else(|| plain(value), |key| plain(&value[key]))
}

/// The variables of the frame of a method.
fn variables<'r>(report: &'r Value, method: &str) -> &'r Vec<Value> {
    let threads = report["threads"].as_array().unwrap().iter();
    let mut frames = threads.flat_map(|thread| thread["frames"].as_array().unwrap());
    let is_method = |frame: &&Value| {
        let name = frame["method"].as_str().unwrap_or_default();
        name.split(['(', '<']).next() == method.split(['(', '<']).next()
            && name.contains(method.rsplit('.').next().unwrap())
    };
    frames.find(is_method).unwrap_or_else(|| panic!("{method}: {report:#}"))["variables"].as_array().unwrap()
}

/// Checks that a report has the variables of the program's account, in their order; local variables without
/// their names if there is no PDB.
fn compare(rows: &[Row], report: &Value, has_names: bool) {
    assert!(rows.len() > 30, "{rows:#?}");
    for method in
        ["Simple", "FirstScope", "SecondScope", "AfterScopes", "AfterScope", "Collections", "Generic"]
    {
        let is_of = |row: &&Row| row.method.rsplit('.').next() == Some(method);
        let rows: Vec<_> = rows.iter().filter(is_of).collect();
        let found = variables(report, &rows[0].method);
        for row in &rows {
            let is_row = |of: &&Value| {
                let name = of["name"].as_str().unwrap();
                let is_named = match (&*row.role, has_names && !row.name.is_empty()) {
                    ("local", false) => name.starts_with("local "),
                    _ => name == row.name,
                };
                let own_type = &of["type"];
                let value = if of["value"].is_null() { "null".to_owned() } else { text(&of["value"]) };
                is_named
                    && of["role"] == *row.role
                    && (of["declared_type"] == *row.declared_type || *own_type == *row.declared_type)
                    && value == row.value
            };
            assert!(found.iter().any(|of| is_row(&of)), "{row:?}: {found:#?}");
        }
        let named =
            |of: &&Value| of["role"] == "local" && !of["name"].as_str().unwrap().starts_with("local ");
        let expected = rows.iter().filter(|row| row.role == "local" && !row.name.is_empty()).count();
        let expected = if has_names { expected } else { 0 };
        assert_eq!(found.iter().filter(named).count(), expected, "{method}: {found:#?}");
    }
}

fn json(words: &[&str]) -> Value {
    run([words, &["--arguments", "--locals", "--format", "json"]].concat()).with_code(0).json()
}

fn table(words: &[&str]) -> Finished {
    run([words, &["--arguments", "--locals"]].concat()).with_code(0)
}

/// The lines that C# would have for these variables.
fn has_declarations(said: &str) {
    for line in [
        "string title = \"the title\" (0x",
        "int times = 7\n",
        "string name = \"abc\" (0x",
        "int count = 42\n",
        "System.DayOfWeek day = Friday\n",
        "object thing = Point 0x",
        "string nothing = null\n",
        "int? maybe = 9\n",
        "System.Collections.Generic.IEnumerable<int> rows = System.Collections.Generic.List<int> 0x",
        "T copy = string \"item\" (0x",
    ] {
        assert!(said.contains(&format!("      {line}")), "{line}: {said}");
    }
}

/// The program, a process and a core dump of it, and the command that reads it while it is stopped.
fn check(target: &mut Target, has_names: bool, more: &[&str]) {
    let rows = account(target);
    let pid = target.pid().to_string();
    let core = tempfile::NamedTempFile::new().unwrap();
    let core = core.path().to_str().unwrap();
    run(["dump", "-p", &pid, "--stream", "--type", "heap", "-o", core]).with_code(0);
    let exact = ["stack", "-p", &pid, "--exact", "--stop", "5s"];
    let live = ["dump", "analyze", "-p", &pid, "stacks"];
    let views = [&exact[..], &live, &["dump", "analyze", core, "stacks"]];
    for view in views {
        // Options for the command itself precede the view.
        let words: Vec<_> = match view {
            ["dump", "analyze", rest @ ..] => {
                ["dump", "analyze"].iter().chain(more).chain(rest).copied().collect()
            }
            view => view.iter().chain(more).copied().collect(),
        };
        compare(&rows, &json(&words), has_names);
        let said = table(&words).text();
        if has_names {
            has_declarations(&said);
        } else {
            let note = said.lines().filter(|line| line.starts_with("Local variables of ")).count();
            assert!(note == 1 && said.contains("int local 1 = 42\n"), "{said}");
        }
    }
}

fn variables_are_those_of_the_program(runtime: Runtime) {
    let Some(program) = runtime.program("locals/locals.dll") else { return };
    let folder = testdata().join("workload/locals");
    let folder = folder.to_str().unwrap();
    // The single file of .NET 8 lacks the PDB.
    let more: &[&str] = if runtime == Runtime::Net8_0 { &["--symbol-path", folder] } else { &[] };
    check(&mut Target::start(program), true, more);
}
on_runtimes!(variables_are_those_of_the_program: net_3_1, net_8_0, net_9_0);

#[test]
fn variables_are_named_by_a_pdb_in_a_single_file_of_net_8() {
    let Some(program) = program_of_8_with_pdb("locals/locals.dll") else { return };
    check(&mut Target::start(program), true, &[]);
}

#[test]
fn variables_are_named_by_a_pdb_in_a_single_file_of_net_10() {
    let Some(program) = program_of_10_with_pdb("locals/locals10.dll") else { return };
    check(&mut Target::start(program), true, &[]);
}

/// Local variables have their numbers and types, and that is said once.
#[test]
fn variables_without_a_pdb_have_numbers_and_types() {
    let folder = tempfile::tempdir().unwrap();
    let locals = testdata().join("workload/locals");
    for name in ["locals.dll", "locals.runtimeconfig.json"] {
        fs::copy(locals.join(name), folder.path().join(name)).unwrap();
    }
    let Some(mut program) = Runtime::Net9_0.program("") else { return };
    // Its last word is the folder of the workload.
    let dotnet = program.get_program().to_owned();
    program = std::process::Command::new(dotnet);
    program.arg(Path::join(folder.path(), "locals.dll"));
    check(&mut Target::start(program), false, &[]);
}
