//! The recipes of `help/symptoms.md`, on programs with a planted cause (`testdata/workload/incidents`): each
//! finds it. Commands are run as the chapter shows them, with the process and the type that a reader would
//! put in. Those that take their time are ended as Ctrl-C does.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::native_alloc;
use crate::program::{Finished, Running, run};
use crate::runtime::Runtime;
use crate::workload::{Target, WebServer};

const CHAPTER: &str = include_str!("../../help/symptoms.md");

/// The recipe of a symptom, for a process.
struct Recipe {
    commands: Vec<String>,
    folder: tempfile::TempDir,
    pid: u32,
}

impl Recipe {
    /// The commands of a section of the chapter.
    fn new(symptom: &str, pid: u32) -> Self {
        let section = CHAPTER.split("\n## ").find(|part| part.starts_with(&format!("{symptom}: "))).unwrap();
        let commands =
            section.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect();
        Self { commands, folder: tempfile::tempdir().unwrap(), pid }
    }

    fn start(&self, number: usize) -> Running {
        self.start_with(number, "", "")
    }

    /// Starts a command in which one word stands for another, that of a reader.
    fn start_with(&self, number: usize, word: &str, other: &str) -> Running {
        let pid = format!("-p {}", self.pid);
        let line = self.commands[number].replace("-n invoices", &pid).replace(word, other);
        let program = Path::new(env!("CARGO_BIN_EXE_dipc")).parent().unwrap().display();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("PATH={program}:$PATH; exec {line}")]).current_dir(self.folder.path());
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        Running::start(command)
    }

    fn run(&self, number: usize) -> Finished {
        self.start(number).finish().with_code(0)
    }

    /// Runs a command that records, until the file has so many bytes.
    fn record(&self, number: usize, bytes: u64) -> Finished {
        let name = self.commands[number].rsplit(' ').next().unwrap();
        let mut running = self.start(number);
        running.until_recorded(&self.folder.path().join(name), bytes);
        running.signal(Signal::INT);
        running.finish().with_code(0)
    }

    /// Runs a command until it finds a cause: the program needs a moment for it.
    fn run_until(&self, number: usize, parts: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let text = self.run(number).text();
            if parts.iter().all(|part| text.contains(part)) {
                return;
            }
            assert!(Instant::now() < deadline, "{}: {parts:?}: {text}", self.commands[number]);
        }
    }
}

fn start(program: &str, arguments: &[&str]) -> Option<Target> {
    let mut command = Runtime::Net9_0.program(&format!("incidents/{program}.dll"))?;
    command.args(arguments);
    Some(Target::start_waiting(command))
}

#[track_caller]
fn assert_finds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_recipe_for_a_crash_finds_the_exception_that_ended_the_process() {
    let Some(mut command) = Runtime::Net9_0.program("incidents/crash.dll") else { return };
    // It goes on once it is recorded, whenever that is.
    command.args(["unhandled", "500"]).env("DOTNET_DefaultDiagnosticPortSuspend", "1");
    command.env("DOTNET_DbgEnableMiniDump", "0");
    let target = Target::start_waiting(command);
    let recipe = Recipe::new("crash", target.pid());
    let recorded = recipe.run(0);
    let cause = [" billing died of an unhandled exception\n", "OrderException: cannot charge customer 4711"];
    assert_finds(&recorded.stderr, &cause);
    let at = |part: &str| recorded.stderr.find(part).unwrap_or_else(|| panic!("{part}: {}", recorded.stderr));
    assert!(at("\nCrash          : ") < at("\nSnapshot       : "), "{}", recorded.stderr);
    assert!(!recorded.stderr.contains("the stream ended in the middle"), "{}", recorded.stderr);
    let overview = recipe.run(1).text();
    let first = overview.lines().skip_while(|line| !line.is_empty()).nth(1).unwrap();
    assert!(first.starts_with("crash         ! Thread ") && first.contains("OrderException: "), "{overview}");
    assert_finds(&recipe.run(2).text(), &["Billing.Charge(string)", "System.FormatException"]);
}

#[test]
fn the_recipe_for_a_hang_finds_the_deadlock_and_the_semaphore() {
    let Some(target) = start("hang", &[]) else { return };
    assert_eq!(target.line(), "started");
    let recipe = Recipe::new("hang", target.pid());
    recipe.run_until(0, &["Bank.Transfer(Account, Account, Barrier)", "auditor: blocked"]);
    let memory = recipe.run(1).text();
    assert_finds(
        &memory,
        &["Deadlock:\n", " teller-1 in Bank.Transfer(", "SemaphoreSlim", "Mail.LeakyAsync"],
    );
    recipe.run(2);
    assert!(recipe.folder.path().join("hang.dmp").is_file());
}

#[test]
fn the_recipe_for_starvation_finds_the_blocking_call() {
    let Some(target) = start("starve", &[]) else { return };
    target.line();
    let recipe = Recipe::new("starvation", target.pid());
    recipe.run_until(0, &["of them in Ctl.Handle", "(starvation)"]);
    recipe.record(1, 20_000);
    assert_finds(&recipe.run(2).text(), &["Worker threads: "]);
}

#[test]
fn the_recipe_for_high_cpu_finds_the_methods_of_the_program() {
    let Some(target) = start("hot", &[]) else { return };
    let recipe = Recipe::new("high-cpu", target.pid());
    let mut top = recipe.start(0);
    top.until_printed(" pricing ");
    top.signal(Signal::INT);
    top.finish().with_code(0);
    recipe.record(1, 300_000);
    // Sooner or later the runtime compiles the thread's method again, with `Engine.Total` inlined into it, so
    // the methods are those that have frames of their own in either code.
    let found = ["RegexInterpreter.TryMatchAtCurrentPosition(", "P.Main.AnonymousMethod__0_1()"];
    assert_finds(&recipe.run(2).text(), &found);
}

#[test]
fn the_recipes_for_memory_find_the_types_and_their_holder() {
    let Some(target) = start("leak", &["managed"]) else { return };
    let memory = Recipe::new("memory", target.pid());
    memory.record(1, 20_000);
    assert_finds(&memory.run(2).text(), &["byte[]"]);
    // It runs: a process that is starting has no heap yet.
    let recipe = Recipe::new("leak", target.pid());
    let mut watch = recipe.start_with(0, "10s", "1s");
    watch.until_printed("  GC heap: generation ");
    watch.until_printed(" grew by ");
    watch.signal(Signal::INT);
    watch.finish().with_code(0);
    recipe.run(1);
    recipe.start_with(1, "before", "after").finish().with_code(0);
    let next = "dipc gcdump paths after.gcdump --type OrderView";
    assert_finds(&recipe.run(2).text(), &["  OrderView\n", "  Session\n", "PriceFeed.Tick: +", next]);
    let after = recipe.folder.path().join("after.gcdump");
    let paths = run(["gcdump", "paths", after.to_str().unwrap(), "--type", "OrderView"]).with_code(0).text();
    assert_finds(&paths, &["static var PriceFeed.Tick: System.EventHandler"]);
}

/// The memory of the first second is enough: 20 blocks of 1 MB.
#[test]
fn the_recipe_for_native_allocations_finds_the_method_that_keeps_them() {
    let Some(target) = start("grow", &["native"]) else { return };
    if !native_alloc::is_permitted() {
        return;
    }
    assert_eq!(target.line(), "started");
    let recipe = Recipe::new("native-alloc", target.pid());
    recipe.run(0);
    recipe.record(1, 1);
    assert_finds(&recipe.run(2).text(), &["Codec.Open(int)"]);
}

/// The heap is small while the program allocates memory of its own: the first line says so.
#[test]
fn recipe_for_memory_shows_mostly_unmanaged_memory() {
    let Some(target) = start("leak", &["native"]) else { return };
    let recipe = Recipe::new("memory", target.pid());
    recipe.run_until(0, &["Native heap ", " are in use: native code has not freed them\n"]);
    let of_heap = || run(["heap", "-p", &target.pid().to_string(), "--no-retained"]).text();
    let says_so = |text: &str| text.contains(" of it managed heap: most of it is not managed\n");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !says_so(&of_heap()) {
        assert!(Instant::now() < deadline, "{}", of_heap());
    }
    let profile = recipe.folder.path().join("profile.nettrace");
    let profile = profile.to_str().unwrap();
    let pid = target.pid().to_string();
    let heap = run(["heap", "-p", &pid, "--no-retained", "--format", "json"]).json();
    let bytes = |name: &str| heap["memory"][name].as_u64().unwrap_or_else(|| panic!("{}", heap["memory"]));
    assert!(
        bytes("resident_bytes") > 2 * bytes("heap_bytes") && bytes("heap_bytes") > 0,
        "{}",
        heap["memory"]
    );
    let recorded = run(["profile", "-p", &pid, "--duration", "4s", "-o", profile]).with_code(0);
    assert!(recorded.text().starts_with("Memory        "), "{}", recorded.text());
    let top = run(["top", "-p", &pid, "--plain", "-c", "3", "--rows", "1"]).with_code(0);
    assert_finds(&top.text(), &["\nmemory: ", " of it managed heap: most of it is not managed  cpu "]);
}

/// The server has no planted cause: the route is found.
#[test]
fn the_recipe_for_slow_requests_finds_the_route() {
    let Some(server) = WebServer::start() else { return };
    let recipe = Recipe::new("slow", server.pid());
    let mut recording = recipe.start(0);
    recording.until_recorded(&recipe.folder.path().join("slow.nettrace"), 1);
    server.request();
    recording.signal(Signal::INT);
    recording.finish().with_code(0);
    assert_finds(&recipe.run(1).text(), &["requests"]);
    assert_finds(&recipe.run(2).text(), &["GET "]);
}
