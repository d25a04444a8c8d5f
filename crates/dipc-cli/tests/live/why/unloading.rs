//! A program that unloads code is not asked to list its methods: its runtime can end meanwhile.

use crate::program::run;

use super::start;

/// The event after which a runtime lists nothing more.
const END_OF_LIST: &str = "Method/DCStopComplete";

#[test]
fn a_program_that_unloads_contexts_has_names_without_a_list() {
    let Some(target) = start("grow", &["contexts", "healthy"]) else { return };
    // It has made contexts.
    while target.line() != "done 40" {}
    let folder = tempfile::tempdir().unwrap();
    let (pid, file) = (target.pid().to_string(), folder.path().join("x.nettrace"));
    let file = file.to_str().unwrap();
    run(["why", "-p", &pid, "--duration", "1s", "-o", file]).with_code(0);
    let events = run(["stat", file, "--format", "json"]).with_code(0).text();
    assert!(events.contains("Method/DCStopVerbose") && !events.contains(END_OF_LIST), "{events}");
    assert!(run(["report", file, "topn", "--inclusive"]).text().contains("Plugins.Load"));
    // The names are merged into it, and it states what was requested all the same.
    let judged = run(["why", file, "--format", "json"]).with_code(0).json();
    let has_samples = judged["looked_at"].to_string().contains("by the kernel");
    assert!(!has_samples || judged["activity"]["lock_waits"].is_u64(), "{judged}");
    // A program without load contexts has the runtime's list.
    let Some(other) = start("grow", &["managed", "healthy"]) else { return };
    let (pid, file) = (other.pid().to_string(), folder.path().join("y.nettrace"));
    let file = file.to_str().unwrap();
    run(["why", "-p", &pid, "--duration", "1s", "-o", file]).with_code(0);
    let events = run(["stat", file, "--format", "json"]).with_code(0).text();
    assert!(events.contains(END_OF_LIST), "{events}");
}
