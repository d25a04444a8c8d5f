//! `dump analyze`: the objects of a program whose heap is known (`testdata/workload/heap`).

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::Runtime;
use crate::workload::Target;

/// Starts the program on .NET 9; none where the runtime is missing.
fn start(variables: &[(&str, &str)]) -> Option<Target> {
    start_on(Runtime::Net9_0, variables)
}

/// Starts the program; none where the runtime is missing.
fn start_on(runtime: Runtime, variables: &[(&str, &str)]) -> Option<Target> {
    let mut program = runtime.program("heap/heap.dll")?;
    program.envs(variables.iter().copied());
    let target = Target::start(program);
    assert_eq!(target.line(), format!("ready {}", target.pid()));
    Some(target)
}

/// A view of a core dump of the program in JSON.
fn view(core: &str, arguments: &[&str]) -> Value {
    let mut all = vec!["dump", "analyze", core];
    all.extend(arguments);
    all.extend(["--format", "json"]);
    run(all).with_code(0).json()
}

/// The path to the objects of a type that begins in a group of roots.
fn path_from(core: &str, of: &str, group: &str) -> Vec<String> {
    let paths = view(core, &["paths", "--type", of, "--head", "100"]);
    let paths = paths["paths"].as_array().unwrap().clone();
    let steps = |path: &Value| -> Vec<String> {
        path["csharp"].as_array().unwrap().iter().map(|step| step.as_str().unwrap().to_owned()).collect()
    };
    let path = paths.iter().map(steps).find(|steps| steps.iter().any(|step| step.starts_with(group)));
    path.unwrap_or_else(|| panic!("{of}: no path from {group}: {paths:?}"))
}

fn check(variables: &[(&str, &str)]) {
    let Some(target) = start(variables) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    run(["dump", "-p", &target.pid().to_string(), "--type", "heap", "-o", &core]).with_code(0);

    let rows = view(&core, &["objects", "--type", "Shop.Row", "-n", "3"]);
    assert_eq!((&rows["objects"], &rows["bytes"]), (&json!(2000), &json!(80_000)));
    assert_eq!(rows["rows"].as_array().unwrap().len(), 3);
    assert_eq!(view(&core, &["objects", "--type", "shop.r*g"])["objects"], 1000);
    run(["dump", "analyze", &core, "objects", "--type", "NoSuchType"])
        .with_code(1)
        .assert_error_names(&["NoSuchType"]);

    let everything = view(&core, &["objects", "--type", "Shop.Everything"]);
    let address = everything["rows"][0]["address"].as_str().unwrap();
    check_fields(&core, address);
    for (of, group) in [
        ("Shop.Everything", "[static var Shop.Program.everything:"),
        ("Shop.Pinned", "[pinning Handles]"),
        ("Shop.Handled", "[strong Handles]"),
        ("Shop.Finalized", "[finalizer Handles]"),
        ("Shop.Treasure", "[static var Shop.Program.treasure:"),
        ("Shop.Treasure", "[thread static vars]"),
    ] {
        path_from(&core, of, group);
    }
    // The value of a ConditionalWeakTable is held by its key.
    let attached = path_from(&core, "Shop.Attached", "[");
    assert!(attached.ends_with(&["Shop.Key".to_owned(), "Shop.Attached".to_owned()]), "{attached:?}");
    // Strings of the program, the same ones many times.
    let strings = view(&core, &["strings", "--grep", "^dddd", "-n", "5"]);
    let text = "d".repeat(40);
    assert_eq!((&strings["matching"], &strings["different"]), (&json!(50), &json!(1)));
    assert_eq!((&strings["rows"][0]["text"], &strings["rows"][0]["objects"]), (&json!(text), &json!(50)));
    assert_eq!(strings["duplicate_bytes"], 49 * (22 + 80));
    // 15, ten of three digits, and a hundred of four; the key of row 15 has its first title.
    assert_eq!(view(&core, &["strings", "--grep", "^row 1*5$"])["matching"], 111);

    let statics = view(&core, &["statics", "--type", "^Shop.Program$"]);
    let value = |field: &str| {
        let rows = statics["rows"].as_array().unwrap();
        rows.iter().find(|row| row["field"] == field).unwrap_or_else(|| panic!("{statics}"))["value"].clone()
    };
    assert_eq!((value("counter"), value("ratio")), (json!(4711), json!(0.5)));
    assert_eq!(value("motto")["text"], "a static text");
    assert_eq!(value("everything")["address"], address);

    let handles = view(&core, &["handles"]);
    let of_shop = handles["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["type"].as_str().is_some_and(|name| name.starts_with("Shop.")));
    let mut of_shop: Vec<_> = of_shop
        .map(|row| {
            [&row["kind"], &row["type"], &row["dependent_type"]].map(|text| text.as_str().unwrap_or(""))
        })
        .collect();
    of_shop.sort_unstable();
    // The object of the weak handle was collected.
    let expected = [
        ["dependent", "Shop.Key", "Shop.Attached"],
        ["pinned", "Shop.Pinned", ""],
        ["strong", "Shop.Handled", ""],
    ];
    assert_eq!(of_shop, expected);
}

/// Compares the fields of an object with the values that `heap.cs` gives them.
fn check_fields(core: &str, address: &str) {
    let object = view(core, &["object", address]);
    assert_eq!((&object["type"], &object["bytes"]), (&json!("Shop.Everything"), &json!(160)));
    let fields = object["fields"].as_array().unwrap();
    let field = |name: &str, owner: &str| {
        let found = fields.iter().find(|field| field["name"] == name && field["declared_by"] == owner);
        found.unwrap_or_else(|| panic!("{name}: {object}"))["value"].clone()
    };
    let own = |name: &str| field(name, "Shop.Everything");
    assert_eq!(field("number", "Shop.Base"), 41);
    assert_eq!(
        (&field("name", "Shop.Base")["text"], &own("name")["text"]),
        (&json!("base"), &json!("derived"))
    );
    for (name, value) in [
        ("Yes", json!(true)),
        ("Letter", json!("x")),
        ("Small", json!(-5)),
        ("Port", json!(65000)),
        ("Number", json!(-1_234_567)),
        ("Large", json!(u64::MAX)),
        ("Single", json!(1.5)),
        ("Double", json!(-2.25)),
        ("Color", json!({ "number": -2, "name": "Blue" })),
        ("Span", json!("00:00:00.0000077")),
        ("Nothing", Value::Null),
    ] {
        assert_eq!(own(name), value, "{name}");
    }
    assert_eq!(own("Self")["address"], address);
    assert_eq!(own("Text")["text"], "some text \u{1b}[31m\n\u{202e}");
    let point = own("Point");
    let parts: Vec<_> = point["fields"].as_array().unwrap().iter().map(|of| of["value"].clone()).collect();
    let (numbers, label): (Vec<_>, Vec<_>) = parts.into_iter().partition(Value::is_number);
    assert_eq!((numbers, &label[0]["text"]), (vec![json!(7), json!(-8)], &json!("a point")));
    let array = |name: &str| view(core, &["object", own(name)["address"].as_str().unwrap(), "--no-path"]);
    assert_eq!(
        (&array("Numbers")["lengths"], &array("Numbers")["elements"]),
        (&json!([3]), &json!([1, 2, 3]))
    );
    assert_eq!(array("Table")["lengths"], json!([2, 3]));
    assert_eq!(array("Table")["elements"], json!([1, 2, 3, 4, 5, 6]));
    let texts: Vec<_> =
        array("Texts")["elements"].as_array().unwrap().iter().map(|of| of["text"].clone()).collect();
    assert_eq!(texts, [json!("one"), Value::Null, json!("three")]);
    let points = array("Points");
    assert_eq!(points["elements"].as_array().unwrap().len(), 2);
    // None of a program's strings reach the terminal unescaped.
    let text = run(["dump", "analyze", core, "object", address]).with_code(0).text();
    assert!(text.contains(r#""some text \u001b[31m\n\u202e""#), "{text}");
    let held = "\n    [static var Shop.Program.everything: Shop.Everything]\n    Shop.Everything\n";
    assert!(text.ends_with(held), "{text}");
}

#[test]
fn objects_have_the_fields_and_the_roots_that_the_program_gave_them() {
    check(&[]);
}

#[test]
fn objects_of_a_server_heap_have_the_same_fields_and_roots() {
    check(&[("DOTNET_gcServer", "1"), ("DOTNET_GCHeapCount", "2")]);
}

/// The heap is read while the program runs on, and while it is stopped.
#[test]
fn the_heap_of_a_running_program_is_read_without_a_session() {
    let Some(target) = start(&[]) else { return };
    let pid = target.pid().to_string();
    for stop in [&[][..], &["--stop", "60s"]] {
        let mut arguments = vec!["dump", "analyze", "-p", &pid, "heap", "--format", "json"];
        arguments.extend(stop);
        let heap = run(arguments).with_code(0);
        let report = heap.json();
        let rows = report["rows"].as_array().unwrap();
        let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
        for (name, objects, bytes) in [("Shop.Row", 2000, 80_000), ("Shop.Ring", 1000, 32_000)] {
            assert_eq!((&row(name)["objects"], &row(name)["bytes"]), (&json!(objects), &json!(bytes)));
        }
        assert_eq!(
            heap.stderr.contains("Stopped        : the process, for "),
            !stop.is_empty(),
            "{}",
            heap.stderr
        );
        // The main thread waits: its own references are known without stopping it.
        assert!(!heap.stderr.contains("Local variables of "), "{}", heap.stderr);
    }
    let page = run(["dump", "analyze", "-p", &pid, "heap", "--format", "html"]).with_code(0).text();
    assert!(page.contains("Shop.Ring") && page.trim_end().ends_with("</html>"));
}

/// Numbers and references, also of an instance of a generic type. The program is so small that 3.1 reads it
/// into shared memory, which the dump has to have.
#[test]
fn static_fields_of_net_core_3_1_have_the_values_that_the_program_gave_them() {
    let Some(target) = start_on(Runtime::Net3_1, &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    let pid = target.pid().to_string();
    run(["dump", "-p", &pid, "--type", "heap", "--stream", "-o", &core]).with_code(0);
    let statics = view(&core, &["statics"]);
    let value = |owner: &str, field: &str| {
        let rows = statics["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["owner"] == owner && row["field"] == field);
        row.unwrap_or_else(|| panic!("{owner}.{field}: {statics}"))["value"].clone()
    };
    let of_program = |field: &str| value("Shop.Program", field);
    assert_eq!((of_program("counter"), of_program("ratio")), (json!(4711), json!(0.5)));
    assert_eq!(of_program("motto")["text"], "a static text");
    let everything = view(&core, &["objects", "--type", "Shop.Everything"]);
    let address = everything["rows"][0]["address"].as_str().unwrap();
    assert_eq!(of_program("everything")["address"], address);
    let rows = "System.Collections.Generic.List<Row>";
    assert_eq!(value(rows, "s_emptyArray")["type"], "Shop.Row[]");
    path_from(&core, "Shop.Everything", "[static var Shop.Program.everything:");
}

#[test]
fn commands_of_dotnet_dump_lead_to_views() {
    let Some(target) = start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    run(["dump", "-p", &target.pid().to_string(), "--type", "heap", "-o", &core]).with_code(0);
    let analyze = |arguments: &[&str]| run([&["dump", "analyze", &core], arguments].concat());
    let everything = view(&core, &["objects", "--type", "Shop.Everything"]);
    let address = everything["rows"][0]["address"].as_str().unwrap();
    for (arguments, expected) in [
        (&["dumpheap", "-stat", "--head", "200"][..], "Shop.Row"),
        (&["dumpobj", address], "Shop.Program.everything"),
        (&["gcroot", address], "Shop.Program.everything"),
        (&["gchandles"], "Shop.Pinned"),
    ] {
        let text = analyze(arguments).with_code(0).text();
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    for (arguments, help) in [
        (&["dumpheap", "-mt", "0x1"][..], "objects --type TYPE"),
        (&["dumpmt", "0x1"], "objects --type TYPE"),
        (&["nothing"], "--help lists the views"),
    ] {
        let failed = analyze(arguments).with_code(2);
        assert!(failed.stderr.contains(help), "{arguments:?}: {}", failed.stderr);
    }
}
