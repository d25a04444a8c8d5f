//! `dipc rules test` with a configuration: its results as JSON, and its exit codes.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::{dipc, printed};

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    testdata::write("monitor/rules.nettrace.xz", &folder.path().join("in.nettrace"));
    for file in ["rules.json", "shop.json"] {
        testdata::write(&format!("monitor/{file}"), &folder.path().join(file));
    }
    folder
}

#[test]
fn shows_the_table_of_rules_like_the_monitor() {
    let folder = folder();
    let text = printed(&folder, "rules test in.nettrace rules.json --format json -n 1000", 0);
    let result: Value = serde_json::from_str(&text).expect("an object");
    let expected = String::from_utf8(testdata::bytes("monitor/rules.tsv")).expect("text");
    let firings = result["firings"].as_array().expect("a list");
    let times: Vec<_> = firings.iter().map(|it| it["time_ns"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
    for line in expected.lines() {
        let mut fields = line.split('\t');
        let name = fields.next().expect("a name");
        #[allow(clippy::cast_precision_loss, reason = "milliseconds are compared")]
        let fired: Vec<_> = firings
            .iter()
            .filter(|it| it["rule"] == name && it["result"] == "fired")
            .map(|it| format!("{:.3}", it["time_ns"].as_u64().expect("a time") as f64 / 1e9))
            .collect();
        assert_eq!(fired, fields.collect::<Vec<_>>(), "{name}");
        let rules = result["rules"].as_array().expect("a list");
        let rule = rules.iter().find(|it| it["name"] == name).expect("a rule");
        assert_eq!(rule["fired"], fired.len(), "{name}");
    }
    assert_eq!(result["firings_left_out"], 0);
}

#[test]
fn exit_codes_show_if_a_rule_fires() {
    let folder = folder();
    let quiet = printed(&folder, "rules test in.nettrace rules.json --rule cpu-never --rule heap-never", 1);
    assert!(quiet.contains("\n0 of 2 rules fire in 26.080 s\n"), "{quiet}");
    printed(&folder, "rules test in.nettrace rules.json --rule cpu-never --rule cpu-low", 0);
    fs::write(
        folder.path().join("wrong.json"),
        r#"{"CollectionRules": {"R": {"Trigger": {"Type": "Startle"}}}}"#,
    )
    .expect("a file");
    for (arguments, said) in [
        ("rules test in.nettrace rules.json --rule nosuch", "no rule is called nosuch"),
        ("rules test in.nettrace wrong.json", "Startle"),
        ("rules test in.nettrace", "<CONFIGURATION|--snapshot-on <CONDITION>>"),
        ("rules test in.nettrace rules.json --snapshot-on exit", "cannot be used with"),
    ] {
        let output = dipc(&folder, arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        assert!(errors.contains(said), "{arguments}: {errors}");
    }
    // A recording without the providers of a rule says so.
    testdata::write("traces/net10-exceptions.nettrace.xz", &folder.path().join("other.nettrace"));
    let output = dipc(&folder, "rules test other.nettrace rules.json --rule status-none");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("no event of Microsoft-Diagnostics-DiagnosticSource"), "{errors}");
}
