//! Threads that wait for one another in every way (`testdata/workload/waits`), by the memory of the process:
//! no method is shown that a thread is not in, and each deadlock is found.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes};
use crate::workload::Target;

const DEADLINE: Duration = Duration::from_secs(60);

/// Repeats a question until its answer is the expected one: the threads are on their way.
fn until<T>(mut ask: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(answer) => assert!(Instant::now() < deadline, "{answer}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The threads of deadlocks, each with the object of its wait.
fn deadlocks(cycles: &Value) -> BTreeSet<String> {
    let rows = cycles.as_array().unwrap().iter().flat_map(|cycle| cycle.as_array().unwrap());
    let text =
        |row: &Value| format!("{}: {}", row["name"].as_str().unwrap_or("?"), row["kind"].as_str().unwrap());
    rows.map(text).collect()
}

/// The methods of a thread, innermost first.
fn methods(stacks: &Value, name: &str) -> Vec<String> {
    let thread = stacks["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == name);
    let frames = thread.unwrap_or_else(|| panic!("{name}: {stacks}"))["frames"].as_array().unwrap();
    frames.iter().filter_map(|frame| Some(frame["method"].as_str()?.to_owned())).collect()
}

fn threads_that_wait_for_one_another_are_found(runtime: Runtime) {
    let Some(program) = runtime.program("waits/waits.dll") else { return };
    let target = Target::start(program);
    assert_eq!(target.line(), "ready");
    let mut pid = target.pid().to_string();
    let mut expected: BTreeSet<String> = [
        "join-1: thread",
        "join-2: monitor",
        "loop: task_in_context",
        "task-1: task",
        "writer-1: reader_writer_lock",
        "writer-2: reader_writer_lock",
    ]
    .map(str::to_owned)
    .into();
    // .NET 9 has a lock of its own.
    if runtime == Runtime::Net9_0 {
        expected.extend(["lock-1: lock", "lock-2: lock"].map(str::to_owned));
    }
    let overview = until(|| {
        let overview = run(["dump", "analyze", "-p", &pid, "--format", "json"]).with_code(0).json();
        let mut found = deadlocks(&overview["deadlocks"]);
        // The thread of the task has a name of the runtime, or none.
        let count = found.len();
        found.retain(|row| expected.contains(row));
        if found == expected && count == found.len() + 1 {
            Ok(overview)
        } else {
            Err(overview["deadlocks"].to_string())
        }
    });
    assert_eq!(overview["deadlocks"].as_array().unwrap().len(), expected.len() / 2 + 1, "{overview}");

    for name in ["System.Threading.Mutex", "System.Threading.SemaphoreSlim"] {
        let lock = until(|| {
            let locks = run(["locks", "-p", &pid, "--format", "json"]).with_code(0).json();
            let lock = locks["locks"].as_array().unwrap().iter().find(|lock| lock["type"] == name).cloned();
            lock.ok_or_else(|| locks.to_string())
        });
        assert_eq!((&lock["owner_tid"], &lock["waiters"]), (&Value::Null, &1.into()), "{lock}");
    }
    let locks = run(["locks", "-p", &pid]).with_code(0).text();
    for part in [
        ": held by: not known (a Mutex's holder is in native memory, and for a named one perhaps in another process), 1 wait: ",
        " mutex-waiter in ",
        ": held by: not known (a semaphore does not record which threads have entered it), 1 wait: ",
        " writer-1 holds\n",
        " (Thread.Join)\n",
        "continues in the SynchronizationContext of this thread",
        // Each thread with its own method.
        "holder in ",
        ", 3 wait: ",
        "reader in ",
        ", 1 wait: ",
    ] {
        assert!(locks.contains(part), "{part}: {locks}");
    }
    let stack = run(["stack", "-p", &pid]).with_code(0).text();
    assert!(stack.contains(" threads wait for locks: dipc locks -p "), "{stack}");
    assert!(stack.contains("\nDeadlock:\n") && stack.contains("async chain"), "{stack}");
    let mut elapsed = elapsed_delays(&pid);
    let mut others = Vec::new();
    // Only the delays that expire in one millisecond have their timers fired before the pool is full, which
    // is up to the scheduler.
    while elapsed == 0 {
        assert!(others.len() < 5, "no delay has elapsed in {} programs", others.len() + 1);
        let another = Target::start(runtime.program("waits/waits.dll").unwrap());
        assert_eq!(another.line(), "ready");
        pid = another.pid().to_string();
        others.push(another);
        elapsed = elapsed_delays(&pid);
    }
    let shown = run(["async", "-p", &pid]).text();
    assert!(
        shown.contains("a delay that has elapsed") && shown.contains("(starvation)"),
        "{elapsed}: {shown}"
    );
    check_stacks(&pid);
}

/// A named mutex, which other processes can hold, and one whose first holder has ended: each is shown with
/// the one thread that waits for it.
fn mutexes_are_shown_with_their_waiters_alone(runtime: Runtime) {
    let Some(program) = runtime.program("waits/mutexes.dll") else { return };
    let target = Target::start(program);
    assert_eq!(target.line(), "ready");
    let pid = target.pid().to_string();
    let mutexes = until(|| {
        let locks = run(["locks", "-p", &pid, "--format", "json"]).with_code(0).json();
        let is_mutex = |lock: &&Value| lock["type"] == "System.Threading.Mutex";
        let mutexes: Vec<_> = locks["locks"].as_array().unwrap().iter().filter(is_mutex).cloned().collect();
        if mutexes.len() == 2 { Ok(mutexes) } else { Err(locks.to_string()) }
    });
    for mutex in &mutexes {
        assert_eq!((&mutex["owner_tid"], &mutex["waiters"]), (&Value::Null, &1.into()), "{mutex}");
        assert!(mutex["holder_unknown"].as_str().unwrap().contains("another process"), "{mutex}");
    }
    let locks = run(["locks", "-p", &pid]).with_code(0).text();
    for (name, count) in [("named-waiter", 1), ("left-waiter", 1), ("named-holder", 0), ("heir", 0)] {
        assert_eq!(locks.matches(&format!(" {name} in ")).count(), count, "{name}: {locks}");
    }
    assert!(!locks.contains("Deadlock"), "{locks}");
}

on_runtimes!(mutexes_are_shown_with_their_waiters_alone: net_3_1, net_8_0, net_9_0);

/// The rings of an account: each thread with the kind of object that it waits for, and the next thread.
fn rings_of_account(line: &str) -> BTreeSet<BTreeSet<String>> {
    let ring = |part: &str| {
        let waits: Vec<_> = part.split(", ").map(|wait| wait.split_once(": ").unwrap()).collect();
        let next = |at: usize| waits[(at + 1) % waits.len()].0;
        let wait = |(at, (name, kind)): (usize, &(&str, &str))| format!("{name}: {kind} of {}", next(at));
        waits.iter().enumerate().map(wait).collect()
    };
    line.split("; ").map(ring).collect()
}

/// The same of the cycles that were found.
fn rings(cycles: &Value) -> BTreeSet<BTreeSet<String>> {
    let ring = |cycle: &Value| {
        let rows = cycle.as_array().unwrap();
        let name = |row: &Value| row["name"].as_str().or(row["async"].as_str()).unwrap_or("?").to_owned();
        let is_owner = |of: &Value, row: &Value| {
            of["tid"] == row["owner_tid"] && of["async"].as_str() == row["owner_async"].as_str()
        };
        let owner = |row: &Value| rows.iter().find(|of| is_owner(of, row)).map_or("?".into(), name);
        let wait =
            |row: &Value| format!("{}: {} of {}", name(row), row["kind"].as_str().unwrap(), owner(row));
        rows.iter().map(wait).collect()
    };
    cycles.as_array().unwrap().iter().map(ring).collect()
}

/// Deadlocks of threads and `async` methods, up to five, through different objects
/// (`testdata/workload/waits/rings.cs`), in the process and in its core dump.
fn rings_of_different_objects_are_found(runtime: Runtime) {
    let Some(program) = runtime.program("waits/rings.dll") else { return };
    let target = Target::start(program);
    let expected = rings_of_account(&target.line());
    let pid = target.pid().to_string();
    until(|| {
        let overview = run(["dump", "analyze", "-p", &pid, "--format", "json"]).with_code(0).json();
        let found = rings(&overview["deadlocks"]);
        if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
    });
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("rings.core");
    let core = core.to_str().unwrap();
    run(["dump", "-p", &pid, "--stream", "-o", core]).with_code(0);
    for source in [&["-p", &*pid][..], &[core]] {
        let overview = run([&["dump", "analyze"], source, &["--format", "json"]].concat()).json();
        assert_eq!(rings(&overview["deadlocks"]), expected, "{source:?}");
        let locks = run([&["locks"], source].concat()).with_code(0).text();
        for part in [
            "\nDeadlock (likely):\n",
            " late in Rings.LockBeforeBarrier(",
            " could signal (SignalAndWait, RemoveParticipant, RemoveParticipants)\n",
            "; arrived 1, participants 2; could be signaled (",
            "; count 0, maximum 1; could be signaled (Release) by: ",
            ", which awaits System.Threading.SemaphoreSlim 0x",
            // The task that its owner runs, and the one of three that has not ended either.
            " and 1 more task, which thread ",
            // Its own signaler sleeps: no deadlock.
            "; set 0; could be signaled (Set) by: ",
            " waits for one of System.Threading.AutoResetEvent 0x",
            " and 1 more handle, which thread ",
            "  async Rings.LeftThenRight waits for System.Threading.SemaphoreSlim 0x",
            ", which async Rings.RightThenLeft could signal (Release)\n",
            ", which it itself could signal (Release)\n",
            // It goes on one day: no deadlock.
            "; could be signaled (Release) by: async Rings.EnterThenPause\n",
        ] {
            assert!(locks.contains(part), "{part}: {locks}");
        }
        assert_eq!(locks.matches("Deadlock").count(), expected.len(), "{locks}");
    }
}

on_runtimes!(rings_of_different_objects_are_found: net_3_1, net_8_0, net_9_0);

/// Returns the number of delays that have elapsed, once there are any, or zero after ten seconds.
fn elapsed_delays(pid: &str) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let chains = run(["async", "-p", pid, "--format", "json"]).json();
        let elapsed = chains["elapsed_delays"].as_u64().unwrap();
        if elapsed > 0 || Instant::now() > deadline {
            return elapsed;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks whole stacks, without stopping the process.
fn check_stacks(pid: &str) {
    let stacks = run(["stack", "--exact", "-p", pid, "--format", "json"]).with_code(0).json();
    let any = methods(&stacks, "any");
    let innermost = any.first().unwrap();
    assert!(innermost.starts_with("System.Threading.WaitHandle."), "{any:?}");
    assert!(any.iter().any(|method| method == "Waits.WaitForAny()"), "{any:?}");
    // It waits for Parallel.For, by way of the last function of an image.
    let parallel = methods(&stacks, "parallel");
    assert!(parallel.iter().any(|method| method == "Waits.InParallel()"), "{parallel:?}");
}

on_runtimes!(threads_that_wait_for_one_another_are_found: net_3_1, net_8_0, net_9_0);
