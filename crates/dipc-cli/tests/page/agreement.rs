//! Pauses and requests, which pages and reports count alike. No browser is needed.

use serde_json::Value;

use crate::{WEB, converted, report};

/// Counts by key of cells, each of which is written as what its key and its bin are more than those of the
/// one before, a count and a sum.
fn counts(cells: &Value, key: u64) -> u64 {
    let numbers: Vec<u64> =
        cells.as_array().expect("cells").iter().map(|n| n.as_u64().expect("a number")).collect();
    let mut at = 0;
    let mut sum = 0;
    for cell in numbers.chunks(4) {
        at += cell[0];
        sum += if at == key { cell[2] } else { 0 };
    }
    sum
}

#[test]
fn pauses_of_a_page_match_the_report() {
    for name in [
        "traces/net9-background.nettrace",
        "traces/net10-gcverbose.nettrace",
        "traces/net3-everything.nettrace",
        WEB,
    ] {
        let (folder, data) = converted(name);
        let reported = report(folder.path(), &["gc"])["pauses"]["count"].as_u64().expect("a number");
        assert!(reported > 0, "{name}");
        assert_eq!(counts(&data["pauses"], 0), reported, "{name}");
    }
}

#[test]
fn requests_of_a_page_match_the_report() {
    let (folder, data) = converted(WEB);
    let report = report(folder.path(), &["requests"]);
    for (key, role) in [(0, "server"), (1, "outgoing")] {
        let rows = report["rows"].as_array().expect("rows").iter().filter(|row| row["role"] == role);
        let reported: u64 = rows.filter_map(|row| row["count"].as_u64()).sum();
        assert!(reported > 0, "{role}");
        assert_eq!(counts(&data["spanRoles"], key), reported, "{role}");
    }
}
