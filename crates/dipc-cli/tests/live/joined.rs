//! Time below the requests and tasks that it was spent for, from end to end
//! (`testdata/workload/joined/Joined.cs`).

use std::collections::BTreeMap;

use crate::bad_files::recording;
use crate::program::run;
use crate::runtime::{Runtime, on_runtimes};
use crate::workload::Workload;

/// Nanoseconds by stack, root first.
type Stacks = BTreeMap<String, u64>;

fn total(stacks: &Stacks, frames: &[&str]) -> u64 {
    let has = |stack: &str| frames.iter().all(|frame| stack.contains(frame));
    stacks.iter().filter_map(|(stack, weight)| has(stack).then_some(*weight)).sum()
}

/// The folded stacks of a recording.
fn folded(file: &str, options: &[&str]) -> Stacks {
    let folded = run([&["convert", file, "-f", "folded", "-o", "-"], options].concat()).with_code(0);
    let lines = folded.text();
    let stacks = lines.lines().map(|line| line.rsplit_once(' ').unwrap());
    stacks.map(|(stack, weight)| (stack.to_owned(), weight.parse().unwrap())).collect()
}

fn requests_and_tasks_have_their_time(runtime: Runtime) {
    let Some(command) = runtime.program("joined/joined.dll") else { return };
    let mut program = Workload::from_command(runtime, command);
    let arguments = [
        "--profile",
        "dotnet-sampled-thread-time,tasks",
        "--providers",
        "Workload-Requests:FFFFFFFFFFFFFFFF:4",
    ];
    let recording = program.record(&arguments);
    program.run("1");
    program.run("2");
    let recorded = recording.interrupt();
    let file = recorded.file();
    let file = file.to_str().unwrap();

    let stacks = folded(file, &["--by-request", "--by-task"]);
    for method in ["BurnBefore", "BurnQuery", "BurnInTask", "BurnAfter"] {
        for url in ["url=/slow", "url=/fast"] {
            assert!(
                total(&stacks, &["Workload-Requests/Request", url, method]) > 0,
                "{url} {method}: {stacks:#?}"
            );
        }
        assert_eq!(total(&stacks, &["(no request)", method]), 0, "{method}: {stacks:#?}");
    }
    for method in ["BurnInLoop", "BurnForNobody"] {
        assert!(total(&stacks, &["(no request)", method]) > 0, "{method}: {stacks:#?}");
        assert_eq!(total(&stacks, &["url=", method]), 0, "{method}: {stacks:#?}");
    }
    let in_task = total(&stacks, &["BurnInTask"]);
    assert_eq!(total(&stacks, &["Program.Round", "STARTING TASK", "Program.Handle", "BurnInTask"]), in_task);
}

/// The chain of awaits, of a recording and of a process.
fn task_stacks_continue_at_their_creation(runtime: Runtime) {
    let Some(command) = runtime.program("joined/joined.dll") else { return };
    let mut program = Workload::from_command(runtime, command);
    let pid = program.pid().to_string();
    let live = std::thread::spawn(move || {
        run(["stack", "-p", &pid, "--by-task", "--count", "3000", "--names", "full"]).with_code(0).text()
    });
    while !live.is_finished() {
        program.run("1");
    }
    let live = live.join().unwrap();
    let recording = program.record(&["--profile", "dotnet-sampled-thread-time,tasks"]);
    program.run("1");
    let recorded = recording.interrupt();
    let file = recorded.file();
    let file = file.to_str().unwrap();
    let arguments = ["stack", file, "--by-task", "--count", "60000", "--names", "full"];
    let recorded = run(arguments).with_code(0).text();
    for text in [live, recorded] {
        // Tasks from before the session have no creator.
        let is_whole =
            |stack: &&str| ["Program.BurnInTask(", "Program.Round("].iter().all(|it| stack.contains(it));
        let chain = text.split("\n\n").find(is_whole);
        let chain = chain.unwrap_or_else(|| panic!("{text}"));
        let places = ["Program.BurnInTask(", "[created by]", "Program.Round("].map(|part| chain.find(part));
        assert!(places.is_sorted() && places[0].is_some(), "{chain}");
        let heading = chain.lines().find(|line| line.contains("hread")).unwrap();
        let threads: Vec<_> =
            heading.split(|c: char| !c.is_ascii_digit()).filter(|id| id.len() > 3).collect();
        let different: std::collections::BTreeSet<_> = threads.iter().collect();
        assert_eq!(threads.len(), different.len(), "{heading}");
    }
    let plain = run(["stack", file, "--count", "60000"]).with_code(0).text();
    assert!(!plain.contains("[created by]"), "{plain}");
}

/// With the events of `--profile async`, the callers of each method are as in the program's source, whichever
/// thread continued after an await.
#[test]
fn stacks_follow_the_awaits() {
    let runtime = Runtime::Net9_0;
    let Some(command) = runtime.program("joined/joined.dll") else { return };
    let mut program = Workload::from_command(runtime, command);
    let recording = program.record(&["--profile", "dotnet-sampled-thread-time,async"]);
    program.run("1");
    let recorded = recording.interrupt();
    let file = recorded.file();
    let file = file.to_str().unwrap();
    let (plain, awaits) = (folded(file, &[]), folded(file, &["--async"]));
    let request = ["Program.Main(", "Program.Round(", "STARTING TASK", "Program.Handle [async]"];
    for (method, callers) in [
        ("BurnBefore(", &request[..]),
        ("BurnQuery(", &[&request[..], &["Program.Query [async]"]].concat()),
        ("BurnInTask(", &[&request[..], &["STARTING TASK"]].concat()),
        ("BurnAfter(", &request[..]),
        ("BurnInLoop(", &["Program.Main(", "Program.Round(", "Program.Loop [async]"]),
    ] {
        let of_method = awaits.keys().filter(|stack| stack.contains(method));
        for stack in of_method {
            let above = stack.split(method).next().unwrap();
            let frames = above.split(';').filter(|frame| !frame.contains("AnonymousMethod"));
            let frames: Vec<_> = frames.filter(|frame| !frame.ends_with("Program.")).collect();
            let are_same = frames.iter().zip(callers).all(|(frame, caller)| frame.contains(caller));
            assert!(frames.len() == callers.len() && are_same, "{method} {callers:?}: {stack}");
        }
        // No time of the method comes or goes.
        let time = total(&plain, &[method]);
        assert!(time > 0 && time == total(&awaits, &[method]), "{method}: {time}: {awaits:#?}");
    }
    // What continued after an await says nothing of it otherwise.
    assert_eq!(total(&plain, &["Program.Round(", "BurnInLoop("]), 0, "{plain:#?}");
}

/// It has no events of asynchronous operations, but continuations of tasks.
#[test]
fn warns_if_a_net_core_3_1_recording_lacks_awaits() {
    let runtime = Runtime::Net3_1;
    let Some(command) = runtime.program("joined/joined.dll") else { return };
    let mut program = Workload::from_command(runtime, command);
    for (profile, is_told) in [("async", false), ("tasks", true)] {
        let profiles = format!("dotnet-sampled-thread-time,{profile}");
        let recording = program.record(&["--profile", &profiles]);
        program.run("1");
        let recorded = recording.interrupt();
        let file = recorded.file();
        let file = file.to_str().unwrap();
        let converted = run(["convert", file, "-f", "folded", "-o", "-", "--async"]).with_code(0);
        let is_said =
            converted.stderr.contains("does not show who awaits whom") && converted.stderr.contains("tasks");
        assert_eq!(is_said, !is_told, "{profile}: {}", converted.stderr);
        let in_loop = folded(file, &["--async"]);
        let callers = total(&in_loop, &["Program.Round(", "Program.Loop [async]", "BurnInLoop("]);
        assert_eq!(callers > 0, is_told, "{profile}: {in_loop:#?}");
    }
}

on_runtimes!(task_stacks_continue_at_their_creation: net_3_1, net_8_0, net_9_0);

on_runtimes!(requests_and_tasks_have_their_time: net_3_1, net_8_0, net_9_0);

#[test]
fn says_how_to_record_missing_tasks_and_requests() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("sample.nettrace");
    std::fs::write(&plain, recording("net10-sample.nettrace.xz")).unwrap();
    for (flag, what) in [("--by-task", "events of tasks"), ("--by-request", "activities")] {
        let failed = run(["report", plain.to_str().unwrap(), "stacks", flag]).with_code(1);
        failed.assert_error_names(&["sample.nettrace", what]);
        assert!(failed.stderr.contains("help: record them: dipc trace"), "{}", failed.stderr);
    }
}
