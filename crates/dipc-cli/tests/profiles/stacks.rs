//! `dipc stack` of a recording.

use std::path::Path;

use nettrace_synth::clr::{EXTERNAL, Method, Recording};

use crate::{json, printed, recording_in};

fn parked() -> (tempfile::TempDir, String) {
    let (folder, path) = recording_in("stacks", "net10-parked.nettrace");
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn output_matches_dotnet_stack_on_the_same_stream() {
    let (folder, file) = parked();
    let tools = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/stacks/net10-parked.txt"),
    )
    .unwrap();
    assert_eq!(printed(folder.path(), &["stack", &file, "--format", "dotnet-stack"]), tools);
}

/// The expectation is the first sample of each thread in dotnet-trace's conversion of the same recording,
/// which has dotnet-stack's stacks.
#[test]
fn a_threads_first_sample_has_the_type_that_the_runtime_gave_it() {
    let (folder, path) = recording_in("stacks", "net9-deadlock.nettrace");
    let text = printed(folder.path(), &["stack", path.to_str().unwrap(), "--format", "dotnet-stack"]);
    let waits = |thread: &str, kind: &str, method: &str| {
        let sleep = "  System.Private.CoreLib!System.Threading.Thread.Sleep(int32)";
        format!("Thread (0x{thread}):\n  {kind}\n{sleep}\n  deadlock!D.{method}()\n\n")
    };
    let expected = [
        waits("5516", "CPU_TIME", "First"),
        waits("5517", "[Native Frames]", "Second"),
        waits("5518", "[Native Frames]", "Third"),
    ];
    assert!(text.ends_with(&expected.concat()), "{text}");
}

#[test]
fn equal_stacks_are_shown_once_and_waits_for_locks_are_named() {
    let (folder, file) = parked();
    let shown = printed(folder.path(), &["stack", &file]);
    let wanter = "Thread 22863: blocked (waits for a lock)\n  [Native Frames]\n  Monitor.Enter_Slowpath(object)\n  Monitor.Enter(object, ref bool)\n  P.WantLock()\n";
    assert!(shown.contains(wanter), "{shown}");
    assert!(!shown.contains("threads wait for locks"), "one thread alone is no deadlock: {shown}");
    // A thread in native code may run there or wait: nothing in this recording tells.
    assert!(
        shown.contains(
            " working or waiting\nThese samples do not show whether threads outside managed code run or wait"
        ),
        "{shown}"
    );

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
fn a_deadlock_is_found_by_the_owners_of_locks() {
    let (folder, path) = recording_in("stacks", "net9-deadlock.nettrace");
    let file = path.to_str().unwrap();
    let chain = "thread 21782 waits for a lock of 21783, which waits for a lock of 21782";
    let shown = printed(folder.path(), &["stack", file]);
    assert!(shown.contains(&format!("\nDeadlock: {chain}\n")), "{shown}");
    assert!(
        shown.contains("\nThread 21784 waits for a lock of 21782 to the end of the recording\n"),
        "{shown}"
    );
    let report = printed(folder.path(), &["report", file, "contention"]);
    assert!(report.contains(&format!("\nDeadlock: {chain}\n")), "{report}");
    let overview = printed(folder.path(), &["report", file]);
    assert!(overview.contains(&format!("contention    ! Deadlock: {chain} in D.First\n")), "{overview}");
    let stacks = json(folder.path(), &["stack", file, "--format", "json"]);
    assert_eq!(
        stacks["deadlocks"],
        serde_json::json!([{ "pid": 21533, "tids": [21782, 21783], "names": [null, null] }])
    );
    // The object of the lock that two wait for is the one that the first owner has.
    let waits = stacks["lock_waits"].as_array().unwrap();
    let owners: Vec<_> = waits.iter().map(|wait| (&wait["tid"], &wait["owner_tid"])).collect();
    assert_eq!(owners.len(), 3);
    assert_eq!(waits[1]["object"], waits[2]["object"]);
    assert_ne!(waits[0]["object"], waits[1]["object"]);
}

/// Samples of threads that wait for locks, each in one of two methods: thread and method of each sample.
fn waits(samples: &[(u64, u32)]) -> Vec<u8> {
    let mut recording = Recording::new();
    recording.stacks(&[&[0x1008, 0x2008], &[0x1008, 0x3008]]);
    recording.method(&Method::new(0x1000, "System.Threading.Monitor", "Enter"));
    recording.method(&Method::new(0x2000, "P", "One")).method(&Method::new(0x3000, "P", "Two"));
    for (number, (thread, stack)) in (4..).zip(samples) {
        recording.at(number * 5_000_000).thread(*thread).sample(*stack, EXTERNAL);
    }
    recording.bytes()
}

#[test]
fn counts_a_thread_that_waits_for_two_locks_once() {
    let folder = tempfile::tempdir().unwrap();
    // The last sample of a thread has no time.
    for (samples, hint) in [
        (&[(7, 1), (7, 2), (7, 2)][..], None),
        (&[(7, 1), (7, 2), (7, 2), (8, 2), (8, 2)], Some("2 threads wait for locks: ")),
    ] {
        std::fs::write(folder.path().join("x.nettrace"), waits(samples)).unwrap();
        let shown = printed(folder.path(), &["stack", "x.nettrace", "--count", "5"]);
        assert_eq!(shown.matches("(waits for a lock)").count(), 2, "{shown}");
        let last = shown.lines().find(|line| line.contains("wait for locks"));
        match hint {
            None => assert_eq!(last, None, "{shown}"),
            Some(hint) => assert!(last.is_some_and(|line| line.starts_with(hint)), "{shown}"),
        }
    }
}
