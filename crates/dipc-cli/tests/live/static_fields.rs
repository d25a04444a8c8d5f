//! `dump analyze statics`: static fields of threads and of generic types of a program whose values are known
//! (`testdata/workload/statics`).

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes, program_of_10};
use crate::workload::Target;

/// The fields of all threads. There are no objects of the generic types.
fn shared() -> Vec<(&'static str, Value)> {
    vec![
        ("Mixed.Shared", json!(1001)),
        ("Outer<byte>.Inner<string>.Text", json!("of an inner type")),
        ("Settings<int>.Number", json!(11)),
        ("Settings<int>.Text", json!("of int")),
        ("Settings<int>.Own", json!(12)),
        ("Settings<string>.Number", json!(21)),
        ("Settings<string>.Text", json!("of string")),
        ("Settings<string>.Own", json!("own of string")),
        ("Settings<object>.Number", json!(31)),
        ("Settings<object>.Text", json!("of object")),
        ("Settings<object>.Own", Value::Null),
        ("Settings<Point>.Number", json!(0)),
        ("Unfinished.shared", json!(62)),
    ]
}

/// The fields of a thread that has set them, by the number that the program gave it.
fn of_thread(number: i64, text: &str, other: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("Settings<int>.OfThread", json!(number + 1)),
        ("Settings<string>.OfThread", json!(number + 2)),
        ("Settings<string>.TextOfThread", json!(text)),
        ("Settings<object>.TextOfThread", json!(other)),
        ("Mixed.Number", json!(number + 3)),
        ("Mixed.Text", json!(text)),
        ("Mixed.Nothing", Value::Null),
        ("Numbers.Small", json!(-number)),
        ("Numbers.Yes", json!(true)),
    ]
}

/// The fields of a core dump or process.
struct Fields(Vec<Value>);

impl Fields {
    fn of(source: &[&str]) -> Self {
        let view = run([&["dump", "analyze"], source, &["statics", "--format", "json"]].concat());
        let view = view.with_code(0).json();
        let rows = view["rows"].as_array().unwrap().clone();
        assert_eq!(view["fields"], rows.len());
        Self(rows)
    }

    /// The value of a field of the program's namespace in a thread.
    fn value(&self, field: &str, tid: Option<u64>) -> Option<Value> {
        let (owner, name) = field.rsplit_once('.').unwrap();
        let owner = format!("Known.{owner}");
        let is_field = |row: &&Value| {
            row["owner"] == owner && row["field"] == name && row.get("tid").and_then(Value::as_u64) == tid
        };
        let mut rows = self.0.iter().filter(is_field);
        let value = rows.next()?["value"].clone();
        assert!(rows.next().is_none(), "{field} is there twice");
        Some(if value.is_object() { value["text"].clone() } else { value })
    }

    fn assert(&self, expected: &[(&'static str, Value)], tid: Option<u64>) {
        for (field, value) in expected {
            assert_eq!(self.value(field, tid).as_ref(), Some(value), "{field} of {tid:?}: {:#?}", self.0);
        }
    }

    /// The thread with a name.
    fn thread(&self, name: &str) -> u64 {
        let row = self.0.iter().find(|row| row.get("thread") == Some(&json!(name)));
        row.unwrap_or_else(|| panic!("{name}: {:#?}", self.0))["tid"].as_u64().unwrap()
    }
}

fn check(target: &Target) {
    assert_eq!(target.line(), "ready");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let (pid, core, copy) = (target.pid().to_string(), path("core"), path("copy"));
    run(["dump", "-p", &pid, "--type", "heap", "--stream", "-o", &core]).with_code(0);
    for source in [&["-p", &*pid][..], &[&*core]] {
        let fields = Fields::of(source);
        fields.assert(&shared(), None);
        let [first, second, unfinished] =
            ["first", "second", "unfinished"].map(|name| Some(fields.thread(name)));
        let main = Some(target.pid().into());
        fields.assert(&of_thread(100, "text of main", "other of main"), main);
        fields.assert(&of_thread(200, "text of first", "other of first"), first);
        fields.assert(&[("Mixed.Number", json!(303))], second);
        for tid in [main, first] {
            let ratio = fields.value("Numbers.Ratio", tid);
            assert_eq!(ratio, Some(json!(if tid == main { 100.25 } else { 200.25 })));
        }
        // A type with a constructor that has not ended.
        let of_unfinished =
            [("Unfinished.number", json!(61)), ("Unfinished.text", json!("of an unfinished type"))];
        fields.assert(&of_unfinished, unfinished);
        // The second thread has used no references.
        let text = fields.value("Mixed.Text", second);
        assert!(matches!(text, None | Some(Value::Null)), "{text:?}");
    }
    run(["dump", "strip", &core, "-o", &copy]).with_code(0);
    let (of_core, of_copy) = (Fields::of(&[&core]), Fields::of(&[&copy]));
    assert_eq!(of_core.0.len(), of_copy.0.len());
    for (row, copied) in of_core.0.iter().zip(&of_copy.0) {
        // The characters of strings and names are not in the copy.
        let same = ["owner", "field", "tid"].iter().all(|name| row.get(name) == copied.get(name));
        assert!(same, "{row} {copied}");
        if row["value"].is_object() {
            assert_eq!(row["value"]["address"], copied["value"]["address"], "{row} {copied}");
        } else {
            assert_eq!(row["value"], copied["value"], "{row} {copied}");
        }
    }
}

fn static_fields_of_threads_and_of_generic_types_have_their_values(runtime: Runtime) {
    let Some(program) = runtime.program("statics/statics.dll") else { return };
    check(&Target::start(program));
}

on_runtimes!(static_fields_of_threads_and_of_generic_types_have_their_values: net_3_1, net_8_0, net_9_0);

#[test]
fn static_fields_of_threads_and_of_generic_types_have_their_values_on_net_10() {
    let Some(program) = program_of_10("statics/statics10.dll") else { return };
    check(&Target::start(program));
}
