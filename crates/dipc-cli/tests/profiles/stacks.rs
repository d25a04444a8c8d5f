//! `dipc stack` of a recording.

use std::path::Path;

use crate::{json, printed, recording_in};

fn parked() -> (tempfile::TempDir, String) {
    let (folder, path) = recording_in("stacks", "net10-parked.nettrace");
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn the_text_is_dotnet_stacks_on_the_same_stream() {
    let (folder, file) = parked();
    let tools = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/stacks/net10-parked.txt"),
    )
    .unwrap();
    assert_eq!(printed(folder.path(), &["stack", &file, "--format", "dotnet-stack"]), tools);
}

#[test]
fn equal_stacks_are_shown_once_and_waits_for_locks_are_named() {
    let (folder, file) = parked();
    let shown = printed(folder.path(), &["stack", &file]);
    let wanter = "Thread 22863: blocked (waits for a lock)\n  [Native Frames]\n  Monitor.Enter_Slowpath(object)\n  Monitor.Enter(object, ref bool)\n  P.WantLock()\n";
    assert!(shown.contains(wanter), "{shown}");
    assert!(shown.ends_with(" idle\n"), "one thread alone is no dead lock: {shown}");

    let answer = json(folder.path(), &["stack", &file, "--format", "json"]);
    let threads = answer["threads"].as_array().unwrap();
    assert_eq!(
        threads.len(),
        printed(folder.path(), &["stack", &file, "--format", "dotnet-stack"]).matches("Thread (").count()
    );
    let spinner = threads.iter().find(|thread| thread["tid"] == 22884).unwrap();
    assert_eq!(
        (&spinner["stacks"][0]["state"], &spinner["stacks"][0]["managed"]),
        (&"working".into(), &true.into())
    );
    assert_eq!(spinner["name"], serde_json::Value::Null, "the recording has no names of threads");

    let many = printed(folder.path(), &["stack", &file, "--count", "5"]);
    assert!(many.contains("% of the samples, Thread 22863: blocked"), "{many}");
}

#[test]
fn a_dead_lock_is_found_by_the_owners_of_locks() {
    let (folder, path) = recording_in("stacks", "net9-deadlock.nettrace");
    let file = path.to_str().unwrap();
    let chain = "thread 21782 waits for a lock of 21783, which waits for a lock of 21782";
    let shown = printed(folder.path(), &["stack", file]);
    assert!(shown.contains(&format!("\nDead lock: {chain}\n")), "{shown}");
    assert!(
        shown.contains("\nThread 21784 waits for a lock of 21782 to the end of the recording\n"),
        "{shown}"
    );
    let report = printed(folder.path(), &["report", file, "contention"]);
    assert!(report.contains(&format!("\nDead lock: {chain}\n")), "{report}");
    let overview = printed(folder.path(), &["report", file]);
    assert!(overview.contains(&format!("contention    ! Dead lock: {chain}\n")), "{overview}");
    let stacks = json(folder.path(), &["stack", file, "--format", "json"]);
    assert_eq!(stacks["dead_locks"], serde_json::json!([{ "pid": 21533, "tids": [21782, 21783] }]));
    // The object of the lock that two wait for is the one that the first owner has.
    let waits = stacks["lock_waits"].as_array().unwrap();
    let owners: Vec<_> = waits.iter().map(|wait| (&wait["tid"], &wait["owner_tid"])).collect();
    assert_eq!(owners.len(), 3);
    assert_eq!(waits[1]["object"], waits[2]["object"]);
    assert_ne!(waits[0]["object"], waits[1]["object"]);
}
