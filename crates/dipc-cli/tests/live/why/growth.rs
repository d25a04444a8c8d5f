//! What grows: the first lines have the thing and the user's method, and the twins, which give it back, have
//! no finding.

use serde_json::Value;

use super::{causes_within, start, until_found_within};

/// Counters of the runtime are sent once a second, and growth is judged by three of them or more.
const TIME: &str = "5s";

#[test]
fn why_finds_timers_that_grow() {
    let Some(target) = start("grow", &["timers"]) else { return };
    until_found_within(&target, TIME, &["The number of timers grows: ", "Lease.Renew"]);
}

#[test]
fn why_finds_dynamic_methods_that_grow() {
    let Some(target) = start("grow", &["dynamic"]) else { return };
    until_found_within(&target, TIME, &["Methods are made at run time all the time", "Formulas."]);
}

#[test]
fn why_finds_load_contexts_that_grow() {
    let Some(target) = start("grow", &["contexts"]) else { return };
    until_found_within(&target, TIME, &["The number of load contexts of assemblies grows: ", "Plugins."]);
}

#[test]
fn why_finds_pinned_handles_that_grow() {
    let Some(target) = start("grow", &["pinned"]) else { return };
    let parts = ["The number of pinned handles grows: ", "most of them of byte[]", "Receiver.Begin"];
    until_found_within(&target, TIME, &parts);
}

#[test]
fn why_finds_native_memory_that_grows() {
    let Some(target) = start("grow", &["native"]) else { return };
    until_found_within(&target, TIME, &["Native memory grows by ", "Codec.Open"]);
}

#[test]
fn why_finds_collections_that_grow() {
    let Some(target) = start("grow", &["managed"]) else { return };
    let parts = ["Dictionary<string, Session> in Sessions.all grows: ", "Sessions.Remember"];
    until_found_within(&target, TIME, &parts);
}

#[test]
fn why_finds_no_growth_in_programs_that_give_back() {
    for incident in ["timers", "dynamic", "contexts", "pinned", "native", "managed"] {
        let Some(target) = start("grow", &[incident, "healthy"]) else { return };
        let mut causes = causes_within(&target, TIME);
        causes.retain(|cause| cause["kind"].as_str().is_some_and(|kind| kind.ends_with("-growth")));
        assert_eq!(causes, Vec::<Value>::new(), "{incident}");
    }
}
