//! `dump analyze paths` to objects that only frames hold (`testdata/workload/rooted`): the paths begin with
//! the frames and the places in them, and the objects without a path are those that a collection frees. The
//! arguments and local variables of these frames.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes, program_of_10};
use crate::workload::Target;

/// Objects that frames use, with the frame and, if there is one place in all versions, the place.
const HELD: [(&str, &str, &str); 27] = [
    ("InRegister", "Program.Register", "rbx"),
    // The callee saves the register of the caller.
    ("OfCaller", "Program.Caller", "rbx"),
    ("First", "Program.Ten", ""),
    ("Second", "Program.Ten", ""),
    ("Third", "Program.Ten", ""),
    ("Fourth", "Program.Ten", ""),
    ("Fifth", "Program.Ten", ""),
    ("Sixth", "Program.Ten", ""),
    ("Seventh", "Program.Ten", ""),
    ("Eighth", "Program.Ten", ""),
    ("Ninth", "Program.Ten", ""),
    ("Tenth", "Program.Ten", "rbp-0x50"),
    ("InStructure", "Program.Structure", ""),
    ("InArgument", "Program.Eight", "rbx"),
    ("InStackArgument", "Program.Eight", "rbp+0x18"),
    ("AsThis", "AsThis.Stay", "rbx"),
    ("OfUnoptimized", "Program.Unoptimized", ""),
    ("BeforeTry", "Program.Handler", "rbp-0x18"),
    ("InHandler", "Program.Handler", ""),
    ("InFinally", "Program.Handler", "rbx"),
    // A static constructor runs between the frame and the code below it.
    ("BeforeType", "Program.TypeConstructor", "rbx"),
    ("InTypeConstructor", "Slow..cctor", ""),
    ("OfLock", "Program.Lock", "rbx"),
    // A filter runs before frames are left: they still hold their objects.
    ("BeforeFilter", "Program.Filtered", ""),
    ("InFilter", "Program.Filter", "rbx"),
    ("BelowFilter", "Program.Throwing", ""),
    // The register has the address of a field.
    ("AtReference", "Program.Reference", "rbx"),
];

/// Objects that frames have used.
const DEAD: [&str; 6] =
    ["DeadLocal", "DeadArgument", "DeadOfCaller", "DeadReplaced", "DeadInHandler", "DeadThis"];

fn paths(source: &[&str], of: &str) -> Value {
    let words = [&["dump", "analyze"], source, &["paths", "--type", of, "--rows", "100", "--format", "json"]];
    run(words.concat()).with_code(0).json()
}

/// The roots of a type's paths: the steps that name a frame.
fn frames(paths: &Value) -> BTreeSet<String> {
    let steps = paths["paths"].as_array().unwrap().iter().flat_map(|path| path["csharp"].as_array().unwrap());
    let steps = steps.map(|step| step.as_str().unwrap());
    steps.filter(|step| step.starts_with("[frame ")).map(str::to_owned).collect()
}

fn check_held(source: &[&str], (of, method, place): (&str, &str, &str)) {
    let paths = paths(source, of);
    let frames = frames(&paths);
    let expected = format!("[frame {method}: {place}");
    let is_expected = |frame: &String| {
        let is_place = place.is_empty() || *frame == format!("{expected}]");
        frame.starts_with(&expected) && is_place && !frame.contains("conservative")
    };
    assert!(frames.iter().any(is_expected), "{of}: {expected}: {paths}");
}

/// The variables of the frame of a method of the program, by name: type and value.
fn variables(report: &Value, method: &str) -> Vec<(String, Value, Value)> {
    let frames = report["threads"].as_array().unwrap().iter();
    let mut frames = frames.flat_map(|thread| thread["frames"].as_array().unwrap());
    let is_method =
        |frame: &&Value| frame["method"].as_str().is_some_and(|name| name.starts_with(&format!("{method}(")));
    let frame = frames.find(is_method).unwrap_or_else(|| panic!("{method}: {report}"));
    let variable = |of: &Value| {
        let value = &of["value"];
        // Of a reference its text, or else its type.
        let value = if value["text"].is_null() { value } else { &value["text"] };
        (of["name"].as_str().unwrap().to_owned(), of["type"].clone(), value.clone())
    };
    frame["variables"].as_array().unwrap().iter().map(variable).collect()
}

/// Checks the arguments and local variables of frames.
fn check_variables(core: &str) {
    let words = ["dump", "analyze", core, "stacks", "--arguments", "--locals", "--format", "json"];
    let report = run(words).with_code(0).json();
    let values = variables(&report, "Program.Values");
    let expected = [
        ("number", json!("int"), json!(-7)),
        ("yes", json!("bool"), json!(true)),
        ("letter", json!("char"), json!("x")),
        ("day", json!("System.DayOfWeek"), json!({ "number": 5, "name": "Friday" })),
        ("large", json!("long"), json!(1_u64 << 40)),
        ("half", json!("double"), json!(2.5)),
        ("words", json!("string"), json!("words")),
    ];
    for ((name, of, value), found) in expected.iter().zip(&values) {
        assert_eq!((&*found.0, &found.1, &found.2), (*name, of, value), "{values:#?}");
    }
    assert_eq!(values[7].0, "pair");
    assert_eq!((&values[7].1, &values[7].2["fields"][0]["value"]["text"]), (&json!("Pair"), &json!("one")));
    // The address of a variable of another frame.
    assert!(values[8].0 == "place" && values[8].2.as_str().unwrap().starts_with("0x"), "{values:#?}");
    assert!(values.iter().any(|(name, of, _)| name.starts_with("local ") && *of == "object"), "{values:#?}");

    let stay = variables(&report, "AsThis.Stay");
    let this = stay.iter().find(|(name, ..)| name == "this").unwrap();
    assert_eq!(this.1, "AsThis");
    let eight = variables(&report, "Program.Eight");
    let names: Vec<_> = eight.iter().map(|(name, ..)| &**name).take(8).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h"]);
    // Used later, and used before.
    assert_eq!((&eight[1].1, &eight[7].1), (&json!("InArgument"), &json!("InStackArgument")), "{eight:#?}");
    assert!(eight[2].2.is_null(), "{eight:#?}");

    // dotnet-dump's command, as text, with either kind alone.
    let said = run(["dump", "analyze", core, "clrstack", "-a"]).with_code(0).text();
    for line in ["int number = -7", "System.DayOfWeek day = Friday", "object c = <no data>"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let said = run(["dump", "analyze", core, "clrstack", "-p"]).with_code(0).text();
    assert!(said.contains("int number = -7") && !said.contains("local "), "{said}");
    let said = run(["dump", "analyze", core, "clrstack", "-l"]).with_code(0).text();
    assert!(!said.contains("int number") && said.contains("local "), "{said}");
}

fn check(mut target: Target) {
    assert_eq!(target.line(), "ready");
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    let pid = target.pid().to_string();
    run(["dump", "-p", &pid, "--type", "heap", "--stream", "-o", &core]).with_code(0);
    for held in HELD {
        check_held(&[&core], held);
    }
    for held in [HELD[0], HELD[1], HELD[11], HELD[19], HELD[20]] {
        check_held(&["-p", &pid], held);
    }
    check_variables(&core);
    for of in DEAD {
        let paths = paths(&[&core], of);
        assert!(paths["paths"].as_array().unwrap().is_empty(), "{of}: {paths}");
        assert_eq!(paths["unreachable_objects"], 1, "{of}: {paths}");
    }
    // The runtime's frame where the exception was thrown has a copy of all registers.
    for path in paths(&[&core], "DeadBelowFilter")["paths"].as_array().unwrap() {
        let root = path["csharp"][2].as_str().unwrap();
        assert_eq!(root, "[frames of the runtime: conservative]", "{path}");
    }
    // The program's own account.
    target.send("collect");
    let alive: BTreeSet<String> =
        std::iter::repeat_with(|| target.line()).take_while(|line| line != "end").collect();
    let held: BTreeSet<String> = HELD.iter().map(|(of, _, _)| (*of).to_owned()).collect();
    assert_eq!(alive, held);
}

fn start(mut program: Command) -> Target {
    // Only the runtimes with a folder of their own read the program's settings.
    program.env("DOTNET_TieredCompilation", "0");
    Target::start(program)
}

fn objects_of_frames_are_those_that_a_collection_keeps(runtime: Runtime) {
    let Some(program) = runtime.program("rooted/rooted.dll") else { return };
    check(start(program));
}

on_runtimes!(objects_of_frames_are_those_that_a_collection_keeps: net_3_1, net_8_0, net_9_0);

#[test]
fn objects_of_frames_are_those_that_a_collection_keeps_on_net_10() {
    let Some(program) = program_of_10("rooted/rooted10.dll") else { return };
    check(start(program));
}

/// Objects of frames below and around a method of System.Text.Json that calls the program while it handles an
/// exception. In .NET Core 3.1 that is a filter, before any frame is left; later versions are in a handler.
const OF_FILTER: [&str; 5] = ["BelowFilter", "AtThrow", "BeforeFilter", "InGetter", "DeadBelowFilter"];

fn objects_below_a_filter_of_an_image_are_those_that_a_collection_keeps(runtime: Runtime) {
    let Some(program) = runtime.program("rooted/filters.dll") else { return };
    let mut target = start(program);
    assert_eq!(target.line(), "ready");
    let pid = target.pid().to_string();
    let is_held = |of: &&str| {
        let paths = paths(&["-p", &pid], of);
        frames(&paths).iter().any(|frame| !frame.contains("conservative"))
    };
    let held: BTreeSet<String> = OF_FILTER.into_iter().filter(is_held).map(str::to_owned).collect();
    target.send("collect");
    let alive: BTreeSet<String> =
        std::iter::repeat_with(|| target.line()).take_while(|line| line != "end").collect();
    assert_eq!(held, alive);
    if runtime == Runtime::Net3_1 {
        assert!(alive.contains("BelowFilter") && alive.contains("AtThrow"), "{alive:?}");
    }
}

on_runtimes!(
    objects_below_a_filter_of_an_image_are_those_that_a_collection_keeps: net_3_1, net_8_0, net_9_0
);
