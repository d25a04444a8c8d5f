//! Counters of merged recordings: each process has those of its own recording, with their intervals and rates.

use serde_json::{Value, json};

use super::{dipc, folder_with, printed};

#[test]
fn counters_of_a_merged_recording_are_those_of_its_processes() {
    let folder = folder_with("net8-counters.nettrace");
    let other = folder_with("net10-counters.nettrace");
    std::fs::copy(other.path().join("in.nettrace"), folder.path().join("other.nettrace")).expect("a copy");
    let merged = dipc(&folder, "merge in.nettrace other.nettrace -o both.nettrace");
    assert!(merged.status.success(), "{merged:?}");
    // What counts from the start of a recording is another number there.
    let samples = |file: &str| -> Vec<Value> {
        let text = printed(&folder, &format!("counters read {file} --format jsonl"), 0);
        let samples = text.lines().map(|line| serde_json::from_str(line).expect("an object"));
        samples
            .map(|mut sample: Value| {
                sample["time_ns"] = json!(null);
                sample["time"] = json!(null);
                sample
            })
            .collect()
    };
    let both = samples("both.nettrace");
    for file in ["in.nettrace", "other.nettrace"] {
        let own = samples(file);
        assert!(own.iter().any(|sample| sample["kind"] == "counter" && sample["rate"].is_number()), "{file}");
        let of_both: Vec<_> = both.iter().filter(|sample| sample["pid"] == own[0]["pid"]).cloned().collect();
        assert_eq!(of_both, own, "{file}");
    }
}
