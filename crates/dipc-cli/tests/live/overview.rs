//! `dump analyze CORE`: the overview says which thread died, and why.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes};
use crate::workload::{Target, crash};

/// The overview of a program that has crashed, as text and as JSON.
struct Overview {
    text: String,
    json: Value,
}

impl Overview {
    /// Runs a program until it has ended in some way, with a dump of createdump.
    fn of(runtime: Runtime, program: &str, mode: &str, variables: &[(&str, &str)]) -> Option<Self> {
        let mut program = runtime.program(program)?;
        let folder = tempfile::tempdir().unwrap();
        let core = folder.path().join("core");
        let prefix = if runtime == Runtime::Net3_1 { "COMPlus" } else { "DOTNET" };
        let variable = |name: &str| format!("{prefix}_Dbg{name}");
        program.arg(mode).env(variable("EnableMiniDump"), "1").env(variable("MiniDumpType"), "2");
        program.env(variable("MiniDumpName"), &core).envs(variables.iter().copied());
        crash(runtime, program, &core);
        let core = core.to_str().unwrap();
        let text = run(["dump", "analyze", core]).with_code(0).text();
        let json = run(["dump", "analyze", core, "--format", "json"]).with_code(0).json();
        Some(Self { text, json })
    }

    fn assert_has(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.text.contains(part), "{part}: {}", self.text);
        }
    }

    fn assert_is_short(&self) {
        let lines = self.text.lines().count();
        assert!(lines <= 60, "{lines}: {}", self.text);
    }

    fn cause(&self) -> &str {
        self.json["died"]["cause"].as_str().unwrap_or_else(|| panic!("{}", self.text))
    }
}

#[test]
fn an_exception_of_a_handler_is_shown_with_its_causes_once() {
    let Some(overview) = Overview::of(Runtime::Net9_0, "nested/nested.dll", "handlers", &[]) else { return };
    assert_eq!(overview.cause(), "unhandled-exception");
    assert_eq!(overview.json["died"]["thread"]["name"], "thrower");
    assert_eq!(overview.json["signalled_tid"], overview.json["died"]["thread"]["tid"]);
    overview.assert_has(&[
        " thrower: died of an unhandled exception",
        "\nSystem.InvalidOperationException: the outermost (0x80131509)\n    Nested.Handlers()\n",
        "  caused by System.FormatException: the middle (0x80131537)\n",
        " (Parameter 'order') (0x80004003)\n    Nested.First()\n",
        " frames of libcoreclr.so]\n",
        " native frames up to the start of the thread]\n",
    ]);
    assert_eq!(overview.text.matches("System.ArgumentNullException").count(), 1, "{}", overview.text);
    overview.assert_is_short();
    // The views' own rows.
    let exceptions = overview.json["exceptions"].as_array().unwrap();
    assert_eq!(exceptions.len(), 3, "{}", overview.json);
    let parameters: Vec<_> =
        exceptions.iter().filter_map(|row| row["chain"][0]["parameter"].as_str()).collect();
    assert_eq!(parameters, ["order"]);
    let stacks = overview.json["stacks"].as_array().unwrap();
    let has_name = |name: &str| {
        let frames = stacks.iter().flat_map(|stack| stack["frames"].as_array().unwrap());
        frames.into_iter().any(|frame| frame["method"] == name)
    };
    assert!(has_name("Nested.Main(string[])") && has_name("Nested.Handlers()"), "{}", overview.json);
    let heap = &overview.json["heap"];
    assert!(heap["objects"].as_u64() > Some(100) && heap["types"][0]["name"] == "string", "{heap}");
    let holders = overview.json["holders"].as_array().unwrap();
    assert!(holders[0]["retained_bytes"].as_u64() > Some(1000), "{holders:?}");
}

#[test]
fn an_aggregate_exception_is_shown_with_all_its_causes() {
    for runtime in [Runtime::Net9_0, Runtime::Net3_1] {
        // Heap dumps of createdump of 3.1 lack the names of fields.
        let variables = [("COMPlus_DbgMiniDumpType", "4")];
        let Some(overview) = Overview::of(runtime, "nested/nested.dll", "aggregate", &variables) else {
            return;
        };
        overview.assert_has(&[
            "\nSystem.AggregateException: ",
            "  caused by (1 of 2 in the AggregateException) System.FormatException: one (",
            "  caused by System.TimeoutException: its cause (",
            "  caused by (2 of 2 in the AggregateException) System.ArgumentException: two (Parameter 'count') (",
        ]);
        let chain = overview.json["exceptions"][0]["chain"].as_array().unwrap();
        let causes: Vec<_> = chain.iter().map(|exception| exception["cause_of"].as_u64()).collect();
        assert_eq!(causes, [None, Some(0), Some(1), Some(0)]);
    }
}

#[test]
fn the_message_of_fail_fast_is_shown() {
    // Code that is compiled at once has other strings of the program in its saved registers.
    for compilation in ["1", "0"] {
        let variables = [("DOTNET_TieredCompilation", compilation)];
        let Some(overview) = Overview::of(Runtime::Net9_0, "crash/crash.dll", "failfast", &variables) else {
            return;
        };
        assert_eq!(overview.cause(), "fail-fast");
        overview.assert_has(&[
            ": ended the program by Environment.FailFast: enough\n",
            "  Crash.Main(string[])\n",
        ]);
        overview.assert_is_short();
    }
}

#[test]
fn a_stack_that_overflowed_is_marked() {
    for runtime in [Runtime::Net9_0, Runtime::Net3_1] {
        let Some(overview) = Overview::of(runtime, "nested/nested.dll", "overflow", &[]) else { return };
        assert_eq!(overview.cause(), "stack-overflow", "{}", overview.text);
        overview.assert_has(&[": its stack overflowed: ", "[this frame again ", "\nSignal  : SIGABRT"]);
        overview.assert_is_short();
    }
}

#[test]
fn exhausted_memory_is_shown_with_its_holders() {
    let limit = [("DOTNET_GCHeapHardLimit", "0x3000000")];
    let Some(overview) = Overview::of(Runtime::Net9_0, "crash/crash.dll", "memory", &limit) else { return };
    assert_eq!(overview.cause(), "unhandled-exception", "{}", overview.text);
    overview.assert_has(&["\nSystem.OutOfMemoryException", "  Crash.Devour()\n"]);
    let holders = overview.json["holders"].as_array().unwrap();
    let list = holders.iter().find(|holder| holder["name"] == "System.Collections.Generic.List<byte[]>");
    assert!(list.unwrap()["retained_bytes"].as_u64() > Some(10 << 20), "{holders:?}");
}

/// createdump of 3.1 marks all threads with the signal.
#[test]
fn reports_a_dump_without_the_thread_that_died() {
    let Some(overview) = Overview::of(Runtime::Net3_1, "crash/crash.dll", "unhandled", &[]) else { return };
    overview.assert_has(&[
        "\nSignal  : SIGABRT (which thread is not in the dump: it marks all)\n",
        ": probably died of an unhandled exception: no other thread throws or handles one",
        "DOTNET_DbgMiniDumpType=2",
    ]);
    assert_eq!(overview.json["signal"], 6);
    assert_eq!(overview.json["signalled_tid"], Value::Null);
}

/// Two threads allocate, and a third one collects without a pause: most dumps are taken while objects move.
fn a_core_taken_during_a_collection_has_threads_and_the_intact_heap(runtime: Runtime) {
    let Some(mut program) = runtime.program("nested/nested.dll") else { return };
    program.arg("allocate");
    let mut target = Target::start(program);
    assert!(target.line().starts_with("ready "));
    target.send("");
    let pid = target.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    let core = core.to_str().unwrap();
    let allocating = |report: &Value| {
        let threads = report["threads"].as_array().unwrap().iter();
        let own = threads.filter(|thread| {
            let frames = thread["frames"].as_array().unwrap();
            frames.iter().any(|frame| frame["method"] == "Nested.Allocate()")
        });
        own.count()
    };
    // The threads are on their way.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let report = run(["stack", "-p", &pid, "--exact", "--stop", "1s", "--format", "json"]);
        if report.code == Some(0) && allocating(&report.json()) == 2 {
            break;
        }
        assert!(Instant::now() < deadline, "{report:?}");
    }
    for _ in 0..5 {
        run(["dump", "-p", &pid, "--stream", "--type", "heap", "-o", core]).with_code(0);
        let stacks = run(["dump", "analyze", core, "stacks", "--format", "json"]).with_code(0).json();
        assert_eq!(allocating(&stacks), 2, "{stacks}");
        let overview = run(["dump", "analyze", core, "--format", "json"]).with_code(0).json();
        assert!(overview["heap"]["objects"].as_u64() > Some(0), "{overview}");
        if overview["heap"]["moving"] == true {
            let said = overview["missing"].to_string();
            assert!(said.contains("A collection was moving objects when the dump was taken"), "{said}");
        }
    }
    for _ in 0..3 {
        // A heap that a collection changes in each attempt is refused, with the way that reads it.
        let heap = run(["heap", "-p", &pid, "--no-retained"]);
        let refused = heap.stdout.is_empty();
        assert!(matches!(heap.code, Some(0 | 6)), "{heap:?}");
        assert!(!refused || heap.stderr.contains("changed in each of 8 attempts ("), "{heap:?}");
        assert!(!refused || heap.stderr.contains("\nhelp: --stop TIME of the view 'heap'"), "{heap:?}");
    }
}

on_runtimes!(a_core_taken_during_a_collection_has_threads_and_the_intact_heap: net_3_1, net_8_0, net_9_0);

#[test]
fn a_type_that_was_made_in_memory_has_its_name() {
    for runtime in [Runtime::Net9_0, Runtime::Net8_0, Runtime::Net3_1] {
        let Some(mut program) = runtime.program("nested/nested.dll") else { return };
        program.arg("dynamic");
        let mut target = Target::start(program);
        assert!(target.line().starts_with("ready "));
        target.send("");
        assert_eq!(target.line(), "made");
        let pid = target.pid().to_string();
        let folder = tempfile::tempdir().unwrap();
        let core = folder.path().join("core");
        let core = core.to_str().unwrap();
        run(["dump", "-p", &pid, "--stream", "--type", "heap", "-o", core]).with_code(0);
        let heap = run(["dump", "analyze", core, "heap", "--head", "10000"]).with_code(0);
        assert!(heap.text().contains("Made.InMemory"), "{}", heap.text());
        assert!(!heap.stderr.contains("a full dump") && !heap.text().contains("UNKNOWN"), "{heap:?}");
        let overview = run(["dump", "analyze", core]).with_code(0).text();
        assert!(!overview.contains("have no names") && !overview.contains("has no name"), "{overview}");
    }
}
