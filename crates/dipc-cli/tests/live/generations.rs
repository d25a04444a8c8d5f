//! The generations of a heap with known objects (`testdata/workload/generations`), live and in core dumps,
//! compared with what the runtime says of them itself.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, dipc, run};
use crate::runtime::{Runtime, on_runtimes};
use crate::workload::{McpServer, Target, Workload};

/// The objects of a type in generations 0 to 2, as the runtime counts them.
struct Counted {
    type_name: String,
    counts: [u64; 3],
}

impl Counted {
    fn sum(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The program at its end, with what it has counted.
struct Program {
    target: Target,
    counted: Vec<Counted>,
}

impl Program {
    fn start(runtime: Runtime, variables: &[(&str, &str)]) -> Option<Self> {
        let mut command = runtime.program("generations/generations.dll")?;
        command.envs(variables.iter().copied());
        let target = Target::start(command);
        let mut counted = Vec::new();
        loop {
            let line = target.line();
            let words: Vec<_> = line.split(' ').collect();
            let [type_name, counts @ ..] = &words[..] else { panic!("{line}") };
            if *type_name == "ready" {
                return Some(Self { target, counted });
            }
            let counts: Vec<u64> = counts.iter().map(|count| count.parse().unwrap()).collect();
            let type_name = (*type_name).to_owned();
            counted.push(Counted { type_name, counts: counts.try_into().unwrap() });
        }
    }

    fn counted(&self, type_name: &str) -> &Counted {
        self.counted.iter().find(|of| of.type_name == type_name).unwrap()
    }
}

/// The memory of the program: of the process, or of a core dump.
struct Memory<'m> {
    source: &'m [&'m str],
}

impl Memory<'_> {
    fn view(&self, words: &[&str]) -> Value {
        run([&["dump", "analyze"], self.source, words, &["--format", "json"]].concat()).with_code(0).json()
    }

    fn objects(&self, type_name: &str, generation: &str) -> u64 {
        let found = self.view(&["objects", "--type", type_name, "--generation", generation]);
        found["objects"].as_u64().unwrap()
    }
}

/// The row of a generation.
fn row<'r>(report: &'r Value, generation: &str) -> &'r Value {
    let rows = report["generations"].as_array().unwrap();
    rows.iter().find(|row| row["generation"] == generation).unwrap_or(&Value::Null)
}

/// Checks what the views say about the memory of the program.
fn check(program: &Program, memory: &Memory<'_>) {
    // Objects of each type are in the generations that the runtime says.
    for of in program.counted.iter().filter(|of| of.sum() > 0) {
        let name = &of.type_name;
        let other = match &**name {
            "Shop.Page[]" => Some("loh"),
            "Shop.Cell[]" => Some("poh"),
            _ => None,
        };
        if let Some(other) = other {
            assert_eq!(memory.objects(name, other), of.sum(), "{name}");
        }
        for (generation, count) in ["0", "1", "2"].into_iter().zip(of.counts) {
            // Those of other heaps are of generation 2 for a program.
            let expected = if other.is_some() { 0 } else { count };
            assert_eq!(memory.objects(name, generation), expected, "{name} in generation {generation}");
        }
    }
    let heap = memory.view(&["heap", "--no-retained"]);
    let whole = memory.view(&["generations", "-n", "32"]);
    for of in ["Shop.Old", "Shop.Middle", "Shop.Closed"] {
        let counts = program.counted(of).counts;
        for (generation, count) in ["1", "2"].into_iter().zip(&counts[1..]) {
            let heap = memory.view(&["heap", "--no-retained", "--generation", generation]);
            assert_eq!(heap["generation"], generation);
            let rows = heap["rows"].as_array().unwrap();
            let objects =
                rows.iter().find(|row| row["csharp"] == *of).map_or(json!(0), |row| row["objects"].clone());
            assert_eq!(objects, json!(count), "{of} in generation {generation}");
            assert_eq!(row(&whole, generation)["objects"], heap["objects"], "generation {generation}");
        }
    }
    // Both readings have the same objects, but for those that a session allocates in generation 0.
    for generation in ["1", "2", "loh", "poh", "frozen"] {
        assert_eq!(row(&heap, generation), row(&whole, generation), "{generation}");
    }
    check_free_blocks(&whole);
    check_pinned(&whole);
    check_addresses(program, memory);
    check_finalizers(program, memory);
}

/// Ten of twenty large arrays of 160,000 bytes are gone. A server's collector can have them in a heap of
/// their own, of which nothing is left.
fn check_free_blocks(whole: &Value) {
    let large = row(whole, "loh");
    let blocks = whole["free_blocks"].as_array().unwrap();
    assert!(blocks.is_sorted_by_key(|block| std::cmp::Reverse(block["bytes"].as_u64())), "{whole}");
    if whole["server_heaps"].is_null() {
        assert!(large["free_bytes"].as_u64().unwrap() >= 9 * 160_000, "{large}");
        assert!(large["free_blocks"].as_u64().unwrap() >= 9, "{large}");
        let is_between_pages =
            |block: &&Value| block["generation"] == "loh" && block["next_type"] == "Shop.Page[]";
        assert!(blocks.iter().filter(is_between_pages).count() >= 9, "{whole}");
    }
}

/// Most arrays between pinned ones are gone.
fn check_pinned(whole: &Value) {
    let blocks = whole["free_blocks"].as_array().unwrap();
    let pinned = |block: &Value, side: &str| block[side]["type"] == "Shop.Slot[]";
    let is_pinned = |block: &&Value| pinned(block, "pinned_before") || pinned(block, "pinned_after");
    assert!(blocks.iter().filter(is_pinned).count() >= 5, "{whole}");
    let handle = blocks.iter().find_map(|block| block["pinned_after"]["handle"].as_str()).unwrap();
    assert!(handle.starts_with("0x"), "{handle}");
}

fn check_addresses(program: &Program, memory: &Memory<'_>) {
    for (of, heap) in
        [("Shop.Old", None), ("Shop.Middle", None), ("Shop.Young", None), ("Shop.Page[]", Some("loh"))]
    {
        let counted = program.counted(of);
        let Some(generation) = counted.counts.iter().position(|count| *count == counted.sum()) else {
            continue;
        };
        let address = memory.view(&["objects", "--type", of, "-n", "1"])["rows"][0]["address"].clone();
        let region = memory.view(&["generations", address.as_str().unwrap()]);
        let expected = heap.map_or_else(|| generation.to_string(), ToOwned::to_owned);
        assert_eq!(region["generation"], expected, "{of}: {region}");
        let number = |field: &str| u64::from_str_radix(&region[field].as_str().unwrap()[2..], 16).unwrap();
        let address = number("address");
        assert!(number("region_start") <= address && address < number("region_end"), "{region}");
        assert!(number("region_end") <= number("committed_end"), "{region}");
    }
}

fn check_finalizers(program: &Program, memory: &Memory<'_>) {
    let queue = memory.view(&["finalizers"]);
    let types = queue["types"].as_array().unwrap();
    let of = |name: &str| {
        let row = types.iter().find(|of| of["name"] == name).unwrap_or_else(|| panic!("{queue}"));
        (row["ready"].as_u64().unwrap(), row["registered"].as_u64().unwrap())
    };
    // The finalizer of the first of seven waits.
    assert_eq!((of("Shop.Leaked"), of("Shop.Closed")), ((6, 0), (0, program.counted("Shop.Closed").sum())));
    let sum = |field: &str| types.iter().map(|of| of[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((&queue["ready"], &queue["registered"]), (&json!(sum("ready")), &json!(sum("registered"))));
    let generations = queue["generations"].as_array().unwrap();
    let registered: u64 = generations.iter().map(|of| of["registered"].as_u64().unwrap()).sum();
    assert_eq!((queue["registered"].as_u64(), &queue["unread"]), (Some(registered), &json!(0)));
}

fn check_live_and_in_a_core(runtime: Runtime, variables: &[(&str, &str)]) {
    let Some(program) = Program::start(runtime, variables) else { return };
    let pid = program.target.pid().to_string();
    check(&program, &Memory { source: &["-p", &pid] });
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    run(["dump", "-p", &pid, "--stream", "--type", "heap", "-o", &at("core")]).with_code(0);
    check(&program, &Memory { source: &[&at("core")] });
    // A stripped copy has what these views read.
    run(["dump", "strip", &at("core"), "-o", &at("copy")]).with_code(0);
    check(&program, &Memory { source: &[&at("copy")] });
}

fn objects_are_in_the_generations_that_the_runtime_says(runtime: Runtime) {
    check_live_and_in_a_core(runtime, &[]);
}
on_runtimes!(objects_are_in_the_generations_that_the_runtime_says: net_3_1, net_8_0, net_9_0);

/// Generations of the collector with segments, which .NET 9 has as a library.
#[test]
fn generations_share_segments_of_another_collector() {
    let segments = [("DOTNET_GCName", "libclrgc.so")];
    check_live_and_in_a_core(Runtime::Net9_0, &segments);
    let Some(program) = Program::start(Runtime::Net9_0, &segments) else { return };
    check_sizes(&program.target.pid().to_string());
}

fn generations_of_a_servers_collector_are_those_of_all_heaps(runtime: Runtime) {
    let server = [
        ("DOTNET_gcServer", "1"),
        ("DOTNET_GCHeapCount", "2"),
        ("COMPlus_gcServer", "1"),
        ("COMPlus_GCHeapCount", "2"),
    ];
    check_live_and_in_a_core(runtime, &server);
    let Some(program) = Program::start(runtime, &server) else { return };
    let pid = program.target.pid().to_string();
    let whole = Memory { source: &["-p", &pid] }.view(&["generations"]);
    let heaps = whole["heaps"].as_array().unwrap();
    assert_eq!(whole["server_heaps"], 2);
    for generation in ["1", "2", "loh"] {
        let of = heaps.iter().filter(|row| row["generation"] == generation);
        let (numbers, objects): (Vec<_>, Vec<_>) =
            of.map(|row| (row["heap"].as_u64().unwrap(), row["objects"].as_u64().unwrap())).unzip();
        assert_eq!(numbers, [0, 1], "{whole}");
        assert_eq!(json!(objects.iter().sum::<u64>()), row(&whole, generation)["objects"], "{whole}");
    }
}
on_runtimes!(generations_of_a_servers_collector_are_those_of_all_heaps: net_3_1, net_9_0);

/// The sizes of generations after the last collection, as the runtime states them in its counters. Sessions
/// allocate new objects in the others.
fn stated_sizes(pid: &str) -> BTreeMap<&'static str, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sizes.jsonl");
    let counting = Running::start(dipc([
        "counters",
        "collect",
        "-p",
        pid,
        "--format",
        "jsonl",
        "--refresh-interval",
        "0.5",
        "--counters",
        "System.Runtime",
        "-o",
        file.to_str().unwrap(),
    ]));
    let mut sizes = BTreeMap::new();
    while !["1", "2", "loh"].iter().all(|generation| sizes.contains_key(generation)) {
        std::thread::sleep(Duration::from_millis(50));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let of = match (line["name"].as_str(), line["tags"]["gc.heap.generation"].as_str()) {
                (Some("gen-1-size"), _) | (Some("dotnet.gc.last_collection.heap.size"), Some("gen1")) => "1",
                (Some("gen-2-size"), _) | (Some("dotnet.gc.last_collection.heap.size"), Some("gen2")) => "2",
                (Some("loh-size"), _) | (Some("dotnet.gc.last_collection.heap.size"), Some("loh")) => "loh",
                _ => continue,
            };
            sizes.insert(of, format!("{}", line["value"].as_f64().unwrap()));
        }
    }
    counting.signal(Signal::INT);
    counting.finish().with_code(0);
    sizes
}

/// Compares the sizes of generations with the runtime's own, if no collection changes them meanwhile.
fn check_sizes(pid: &str) {
    let mut stated = stated_sizes(pid);
    for _ in 0..10 {
        let whole = Memory { source: &["-p", pid] }.view(&["generations"]);
        let before = std::mem::replace(&mut stated, stated_sizes(pid));
        if before != stated {
            continue;
        }
        for (generation, size) in stated {
            assert_eq!(row(&whole, generation)["region_bytes"].to_string(), size, "{generation}: {whole}");
        }
        return;
    }
    panic!("collections go on");
}

fn sizes_are_those_that_the_runtime_states(runtime: Runtime) {
    let Some(program) = Program::start(runtime, &[]) else { return };
    check_sizes(&program.target.pid().to_string());
}
on_runtimes!(sizes_are_those_that_the_runtime_states: net_3_1, net_8_0, net_9_0);

#[test]
fn sizes_of_a_native_program_are_those_that_its_runtime_states() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    workload.run("keep 1000");
    workload.run("gc 2 2");
    check_sizes(&workload.pid().to_string());
    let source = workload.pid().to_string();
    let whole = Memory { source: &["-p", &source] }.view(&["generations"]);
    assert!(row(&whole, "2")["objects"].as_u64() >= Some(2000), "{whole}");
    assert!(row(&whole, "frozen")["objects"].as_u64() > Some(0), "{whole}");
}

/// A dump of the heap makes the runtime collect, which states sizes from then on.
#[test]
fn sizes_of_a_server_of_net_10_are_those_that_its_runtime_states() {
    let Some(server) = McpServer::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("heap.gcdump"), server.pid().to_string());
    run(["gcdump", "collect", "-p", &pid, "-o", file.to_str().unwrap()]).with_code(0);
    check_sizes(&pid);
}
