//! `dump analyze`: types that were made in memory (`System.Reflection.Emit`), whose names, fields and methods
//! are known (`testdata/workload/made`).

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes, program_of_10};
use crate::workload::Target;

fn view(source: &[&str], arguments: &[&str]) -> Value {
    run([&["dump", "analyze"], source, arguments, &["--format", "json"]].concat()).with_code(0).json()
}

/// The fields of the only object of a type.
fn fields(source: &[&str], of: &str) -> Vec<(String, Value)> {
    let objects = view(source, &["objects", "--type", of]);
    assert_eq!(objects["objects"], 1, "{of}: {objects}");
    assert_eq!(objects["rows"][0]["type"], of.trim_matches(['^', '$']));
    let object = view(source, &["object", objects["rows"][0]["address"].as_str().unwrap(), "--no-path"]);
    let value = |value: &Value| if value.is_object() { value["text"].clone() } else { value.clone() };
    let fields = object["fields"].as_array().unwrap().iter();
    fields.map(|field| (field["name"].as_str().unwrap().to_owned(), value(&field["value"]))).collect()
}

/// Checks the static fields of a type that can be unloaded.
fn check_unloadable(source: &[&str]) {
    let statics = view(source, &["statics", "--type", "^Unloadable."]);
    let value = |row: &Value| match &row["value"] {
        value if value["text"].is_string() => value["text"].clone(),
        value => value.clone(),
    };
    let values: Vec<_> = statics["rows"].as_array().unwrap().iter().map(value).collect();
    let guid = "00000018-0000-0000-0000-000000000000";
    assert_eq!(values.len(), 6, "{statics}");
    assert_eq!(values[..4], [json!("a kept text"), json!(21), json!(22), json!(23)], "{statics}");
    assert!(values[4].to_string().contains(guid) && values[5].is_null(), "{statics}");
    assert_eq!(statics["unread_types"], 0, "{statics}");
}

fn check(target: &Target, third: &str, has_unloadable: bool) {
    assert_eq!(target.line(), "ready");
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    let pid = target.pid().to_string();
    run(["dump", "-p", &pid, "--type", "heap", "--stream", "-o", &core]).with_code(0);
    for source in [&["-p", &*pid][..], &[&*core]] {
        let named = |fields: &[(&str, Value)]| {
            fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Vec<_>>()
        };
        let first = named(&[("Number", json!(11)), ("Label", json!("a label"))]);
        assert_eq!(fields(source, "^Made.First$"), first);
        let second = named(&[("Text", json!("a text")), ("Count", json!(12))]);
        assert_eq!(fields(source, "^Made.Second$"), second);
        assert_eq!(fields(source, third), named(&[("Ratio", json!(0.5))]));
        let statics = view(source, &["statics", "--type", "^Made"]);
        let row = &statics["rows"][0];
        assert_eq!((&statics["fields"], &row["owner"]), (&json!(1), &json!("Made.Second")));
        assert_eq!((&row["field"], &row["value"]), (&json!("Shared"), &json!(13)));
        if has_unloadable {
            check_unloadable(source);
        }
        let heap = view(source, &["heap", "--no-retained"]);
        let (all, other) = if source.len() == 1 {
            ("dump_bytes", "resident_bytes")
        } else {
            ("resident_bytes", "dump_bytes")
        };
        let memory = &heap["memory"];
        assert!(memory[all].as_u64() > memory["heap_bytes"].as_u64() && memory[other].is_null(), "{memory}");
        let rows = heap["rows"].as_array().unwrap();
        let of_second = rows.iter().find(|row| row["csharp"] == "Made.Second");
        assert_eq!(of_second.unwrap_or_else(|| panic!("{heap}"))["objects"], 1);
    }
    let stacks = view(&[&core], &["stacks"]);
    let methods =
        stacks["threads"].as_array().unwrap().iter().flat_map(|of| of["frames"].as_array().unwrap());
    let methods: Vec<_> = methods.map(|frame| frame["method"].as_str().unwrap_or_default()).collect();
    let expected = ["Program.Wait()", "Made.Second.Runs()", "Made.First.Calls()"];
    assert!(methods.windows(3).any(|of| of == expected), "{methods:?}");
}

fn types_that_were_made_in_memory_have_names_fields_and_methods(runtime: Runtime) {
    let Some(program) = runtime.program("made/made.dll") else { return };
    check(&Target::start(program), "^Made.First.Inner$", true);
}

on_runtimes!(types_that_were_made_in_memory_have_names_fields_and_methods: net_3_1, net_8_0, net_9_0);

#[test]
fn types_that_were_made_in_memory_have_names_fields_and_methods_on_net_10() {
    let Some(program) = program_of_10("made/made10.dll") else { return };
    check(&Target::start(program), "^Made.Third$", false);
}
