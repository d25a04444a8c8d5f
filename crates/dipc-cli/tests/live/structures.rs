//! `dump analyze` of a running program: fields of generic structures and of the framework's own ones,
//! enumerations, buffers and texts (`testdata/workload/structures`).

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes};
use crate::workload::Target;

fn view(pid: &str, arguments: &[&str]) -> Value {
    run([&["dump", "analyze", "-p", pid], arguments, &["--format", "json"]].concat()).with_code(0).json()
}

/// The value of a field of an object.
fn field(object: &Value, name: &str) -> Value {
    let fields = object["fields"].as_array().unwrap();
    fields.iter().find(|field| field["name"] == name).unwrap_or_else(|| panic!("{name}: {object}"))["value"]
        .clone()
}

/// A value as the program writes it: strings and numbers, and a list of the elements of a collection.
fn plain(value: &Value) -> Value {
    let pair = |pair: &Value| json!([plain(&pair["key"]), plain(&pair["value"])]);
    let list = |content: &Value, name: &str| content[name].as_array().cloned();
    match value {
        Value::Object(fields) => match (list(value, "elements"), list(value, "pairs")) {
            (Some(elements), _) => elements.iter().map(plain).collect(),
            (_, Some(pairs)) => pairs.iter().map(pair).collect(),
            _ => match ["text", "name"].iter().find_map(|name| fields.get(*name)) {
                Some(text) => text.clone(),
                None => fields.get("content").or(fields.get("value")).map_or(Value::Null, plain),
            },
        },
        value => value.clone(),
    }
}

/// Collections, and objects that are one text, have the contents that the program finds in them.
fn check_contents(pid: &str, account: &Value) {
    let contents = view(pid, &["objects", "--type", "^Contents$"]);
    let address = contents["rows"][0]["address"].as_str().unwrap();
    let contents = view(pid, &["object", address, "--no-path", "--depth", "3"]);
    for (name, expected) in account.as_object().unwrap() {
        let value = field(&contents, name);
        let address = value["address"].as_str().unwrap();
        let object = view(pid, &["object", address, "--no-path", "-n", "100"]);
        let content = match name.as_str() {
            // An object with a structure in it that has one field.
            "ImmutableArray" => &object["fields"][0]["value"]["content"],
            _ => &object["content"],
        };
        assert_eq!(plain(content), *expected, "{name}: {object}");
        assert_eq!(content["count"].as_u64(), expected.as_array().map(|list| list.len() as u64), "{name}");
        // Of a value, there are the first sixteen.
        let of_value = plain(&value["content"]);
        let first = |list: &Value| list.as_array().map(|list| list.iter().take(16).cloned().collect());
        if name != "ImmutableArray" && name != "Builder" {
            assert_eq!(of_value, first(expected).unwrap_or_else(|| expected.clone()), "{name}: {value}");
        }
    }
    let text = run(["dump", "analyze", "-p", pid, "object", address, "--no-path"]).with_code(0).text();
    for line in
        ["{\"k1\": [1, 2] (2), \"k2\": [2, 3] (2), ", "[0, 1, 4, 9, 16, 25, 36, 49, …] (40)", "\"10.1.2.3\""]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}

fn structures_have_their_values(runtime: Runtime) {
    let Some(program) = runtime.program("structures/structures.dll") else { return };
    let target = Target::start(program);
    assert!(target.line().starts_with("ready"));
    let account = target.line();
    let pid = target.pid().to_string();
    check_contents(&pid, &serde_json::from_str(&account).unwrap());
    let objects = view(&pid, &["objects", "--type", "^Fields$"]);
    let address = objects["rows"][0]["address"].as_str().unwrap();
    let object = view(&pid, &["object", address, "--no-path"]);
    for (name, expected) in [
        ("Number", json!(5)),
        ("Nothing", Value::Null),
        ("When", json!("2024-01-02 03:04:05Z")),
        ("Offset", json!("2024-01-02 03:04:05 -02:00")),
        ("Span", json!("1.02:03:04.0050000")),
        ("Price", json!("-1234567890123456789.05")),
        ("Id", json!("00112233-4455-6677-8899-aabbccddeeff")),
        ("Size", json!({ "number": -1, "name": "Small" })),
        ("Access", json!({ "number": 3, "name": "Read, Write" })),
        ("NotANumber", json!("NaN")),
        ("Infinite", json!("-Infinity")),
    ] {
        assert_eq!(field(&object, name), expected, "{name}");
    }
    let pair = field(&object, "Pair");
    assert_eq!((&field(&pair, "key")["text"], field(&pair, "value")), (&json!("key"), json!(7)));
    let tuple = field(&object, "Tuple");
    assert_eq!((field(&tuple, "Item1"), field(&tuple, "Item2")), (json!(1), json!(-2)));
    let buffer = field(&field(&object, "Digits"), "Values");
    assert_eq!(buffer, json!({ "length": 5, "elements": [0, 1, 4, 9, 16] }));
    // Of an instance that all references share.
    let generic = field(&object, "Generic")["address"].as_str().unwrap().to_owned();
    let pair = field(&view(&pid, &["object", &generic, "--no-path"]), "Pair");
    assert_eq!(field(&pair, "value"), json!(9), "{pair}");
    let text = run(["dump", "analyze", "-p", &pid, "object", address, "--no-path"]).with_code(0).text();
    assert!(text.contains(r#""a \"b\"""#), "{text}");

    let statics = view(&pid, &["statics", "--type", "^Structures$"]);
    let rows = statics["rows"].as_array().unwrap();
    let value = |name: &str| &rows.iter().find(|row| row["field"] == name).unwrap()["value"];
    assert_eq!((value("number"), &value("size")["name"]), (&json!(9), &json!("Large")));
    assert_eq!(field(value("tuple"), "Item2"), json!(3));
    let strings = view(&pid, &["strings", "--grep", "!?$"]);
    let mut texts: Vec<_> =
        strings["rows"].as_array().unwrap().iter().map(|row| row["text"].as_str().unwrap()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["\\uD800!?", "\\uD801!?", "\u{fffd}!?"]);
}

on_runtimes!(structures_have_their_values: net_3_1, net_9_0);
