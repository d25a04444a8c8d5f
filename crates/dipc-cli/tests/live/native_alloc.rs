//! `--native-alloc` on a program whose C library keeps known bytes for two methods, and frees all for a third
//! (`testdata/workload/incidents/native.cs` and `native.c`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::nobody::Nobody;
use crate::program::{Recorded, Recording, Running, dipc, run};
use crate::runtime::{Runtime, on_runtimes, say_not_run};
use crate::workload::{Target, await_providers};

/// Builds the library into a folder.
fn build_library(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/workload/incidents/native.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-fno-builtin", "-o"])
        .arg(folder.join("libkeeping.so"))
        .arg(source)
        .status();
    assert!(built.unwrap().success());
}

/// Returns true if this kernel permits probes; says so if not.
pub(crate) fn is_permitted() -> bool {
    let has_probes = Path::new("/sys/bus/event_source/devices/uprobe/type").exists();
    let is_permitted = has_probes && rustix::process::geteuid().is_root();
    if !is_permitted {
        say_not_run("probes in programs need root, and a kernel with them");
    }
    is_permitted
}

/// Returns the bytes that the library has taken for a method. The runtime takes some of its own for the first
/// call, which may be drawn.
fn bytes(file: &Path, method: &str) -> u64 {
    let folded = ["convert", file.to_str().unwrap(), "-f", "folded", "--by", "native-alloc", "-o", "-"];
    let folded = run(folded).with_code(0).text();
    let method = format!("Shop.{method}(");
    let of_method = folded.lines().filter(|line| line.contains(&method) && line.contains("libkeeping.so"));
    of_method.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// Returns the report of a recording.
fn top(file: &Path) -> Value {
    let report = ["report", file.to_str().unwrap(), "topN", "--by", "native-alloc", "--inclusive"];
    run(report.into_iter().chain(["--rows", "1000", "--format", "json"])).with_code(0).json()
}

/// Records the program from before its first allocation to after its last one. Returns the recording, its
/// report, and the bytes that each method has kept.
fn record(
    runtime: Runtime,
    program: &[&str],
    arguments: &[&str],
) -> Option<(Recorded, Value, BTreeMap<String, u64>)> {
    let folder = tempfile::tempdir().unwrap();
    build_library(folder.path());
    let mut command = runtime.program("incidents/native.dll")?;
    command.args(program).env("LD_LIBRARY_PATH", folder.path());
    let mut target = Target::start(command);
    assert_eq!(target.line(), "ready");
    let mut recording = Recording::start(target.pid(), arguments);
    recording.until(1);
    await_providers(runtime);
    target.send("");
    let kept = (0..2).map(|_| (target.line(), target.line().parse().unwrap())).collect();
    assert_eq!(target.line(), "done");
    let recorded = recording.interrupt();
    let file = recorded.file();
    let top = top(&file);
    assert_eq!((&top["metric"], &top["unit"]), (&"native-alloc".into(), &"bytes".into()));
    assert_eq!(top["native"]["stopped_by_limit"], false, "{top}");
    assert!(
        top["native"]["calls"].as_u64() > Some(0) && top["native"]["cost_ns"].as_u64() > Some(0),
        "{top}"
    );
    Some((recorded, top, kept))
}

/// All blocks are larger than the interval, so that each is followed, and all records fit into the buffers.
fn bytes_that_are_kept_are_exact_and_of_what_is_freed_there_is_nothing(runtime: Runtime) {
    if !is_permitted() {
        return;
    }
    let arguments = ["--native-alloc=4KiB", "--native-alloc-limit", "100"];
    let Some((recorded, top, kept)) = record(runtime, &[], &arguments) else { return };
    assert!(top["native"]["doubt"].is_null(), "{top}");
    assert_eq!(top["native"]["interval_bytes"], 4096, "{top}");
    for (method, kept) in &kept {
        assert_eq!(bytes(&recorded.file(), method), *kept, "{method}: {top}");
    }
    assert_eq!(bytes(&recorded.file(), "Scratch.Fill"), 0, "{top}");
    // 60 blocks, and the first half of those that are made larger.
    assert!(top["native"]["freed"].as_u64() >= Some(70), "{top}");
}
on_runtimes!(bytes_that_are_kept_are_exact_and_of_what_is_freed_there_is_nothing: net_3_1, net_8_0, net_9_0);

/// Of 20,000 blocks of 1,000 bytes about 1,220 are drawn, each for 16 KiB.
fn small_blocks_are_estimated(runtime: Runtime) {
    if !is_permitted() {
        return;
    }
    let arguments = ["--native-alloc", "--native-alloc-limit", "100"];
    let Some((recorded, top, kept)) = record(runtime, &["many"], &arguments) else { return };
    // Those that were drawn, but did not fit into a buffer, would have been there.
    let lost = top["native"]["lost_allocations"].as_u64().unwrap() * 16_384;
    let (seen, kept) = (bytes(&recorded.file(), "Codec.Open"), kept["Codec.Open"]);
    assert!(seen <= kept * 115 / 100, "{seen} of {kept}: {top}");
    assert!(seen + lost >= kept * 85 / 100, "{seen} of {kept}: {top}");
}
on_runtimes!(small_blocks_are_estimated: net_9_0);

/// Probes need rights that a user lacks, for processes of their own, too. Nothing takes their place.
#[test]
fn without_rights_the_reason_and_the_way_are_said() {
    let Some(user) = Nobody::new() else { return };
    let Some(workload) = user.workload(Runtime::Net9_0) else { return };
    let file = user.folder().join("refused.nettrace");
    let mut command = Command::new(user.program());
    command.args(["trace", "-p", &workload.pid().to_string(), "--native-alloc", "-o"]).arg(&file);
    let command = user.run_with_output(command);
    let refused = Running::start(command).finish().with_code(3);
    refused.assert_error_names(&["native allocations: "]);
    assert!(refused.stderr.contains("\nhelp: run dipc "), "{}", refused.stderr);
    assert!(!file.exists(), "nothing was recorded");
}

/// A program that dipc starts is followed from its first method on: it waits until the probes are set.
fn a_program_that_is_started_is_followed(runtime: Runtime) {
    if !is_permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    build_library(folder.path());
    let Some(program) = runtime.program("incidents/native.dll") else { return };
    let file = folder.path().join("started.nettrace");
    let mut command =
        dipc(["trace", "--native-alloc=4KiB", "--native-alloc-limit", "100", "--show-child-io"]);
    command.arg("-o").arg(&file).arg("--").arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("LD_LIBRARY_PATH", folder.path()).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    // Its standard input is empty, so that it does not wait.
    let recorded = Running::start(command).finish().with_code(0);
    let lines = recorded.text();
    // A runtime that has to wait says so first.
    let lines: Vec<_> = lines.lines().skip_while(|line| *line != "ready").collect();
    assert_eq!(lines.get(5), Some(&"done"), "{lines:?}");
    for method in [1, 3] {
        let kept: u64 = lines[method + 1].parse().unwrap();
        assert_eq!(bytes(&file, lines[method]), kept, "{}", lines[method]);
    }
    assert_eq!(bytes(&file, "Scratch.Fill"), 0);
}
on_runtimes!(a_program_that_is_started_is_followed: net_8_0, net_9_0);

#[test]
fn a_program_without_a_runtime_is_not_followed_from_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.nettrace");
    let arguments = ["trace", "--native-alloc", "-o", file.to_str().unwrap(), "--", "true"];
    let refused = run(arguments);
    assert_ne!(refused.code, Some(0));
    refused.assert_error_names(&["no .NET runtime"]);
    assert!(!file.exists());
}

/// A program that keeps 50 blocks of 6,000 bytes, half of a mapping of 400 KiB, and 300 KiB of one of which
/// two parts were replaced, one of them by memory that cannot be used.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
static void *volatile kept[50];
__attribute__((noinline)) void keep_blocks(void)
{
    for (int i = 0; i < 50; i++)
        kept[i] = malloc(6000);
}
__attribute__((noinline)) void keep_half(void)
{
    char *memory = mmap(NULL, 400 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + (200 << 10), 200 << 10);
    puts("mapped");
}
__attribute__((noinline)) void keep_replaced(void)
{
    char *memory = mmap(NULL, 400 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int replacing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    mmap(memory, 100 << 10, PROT_NONE, replacing, -1, 0);
    mmap(memory + (200 << 10), 100 << 10, PROT_READ | PROT_WRITE, replacing, -1, 0);
    puts("replaced");
}
__attribute__((noinline)) void give_back(void)
{
    for (int i = 0; i < 50; i++)
        free(realloc(malloc(6000), 60000));
    puts("freed");
}
int main(void)
{
    puts("ready");
    fflush(stdout);
    getchar();
    keep_blocks();
    keep_half();
    keep_replaced();
    give_back();
    puts("done");
    fflush(stdout);
    getchar();
    return 0;
}
"#;

/// Programs without .NET, linked dynamically and statically, with both C libraries.
#[test]
fn programs_of_each_c_library_are_exact() {
    if !is_permitted() {
        return;
    }
    for (name, compiler) in [
        ("glibc", &["cc"][..]),
        ("glibc-static", &["cc", "-static"]),
        ("musl", &["musl-gcc"]),
        ("musl-static", &["musl-gcc", "-static"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let [source, program, file] =
            ["program.c", "program", "out.nettrace"].map(|it| folder.path().join(it));
        fs::write(&source, PROGRAM).unwrap();
        let mut compile = Command::new(compiler[0]);
        compile.args(&compiler[1..]).args(["-O1", "-fno-builtin", "-o"]).arg(&program).arg(&source);
        let Ok(compiled) = compile.status() else {
            say_not_run(&format!("{} is needed", compiler[0]));
            continue;
        };
        assert!(compiled.success(), "{name}");
        let mut target = Target::start(Command::new(&program));
        assert_eq!(target.line(), "ready");
        let pid = target.pid().to_string();
        let mut recording = Running::start(dipc([
            "trace",
            "-p",
            &pid,
            "--native-alloc=4KiB",
            "--native-alloc-limit",
            "100",
            "-o",
            file.to_str().unwrap(),
        ]));
        recording.until_said("Probes");
        target.send("");
        assert_eq!([(); 4].map(|()| target.line()), ["mapped", "replaced", "freed", "done"]);
        recording.signal(Signal::INT);
        recording.finish().with_code(0);
        let top = top(&file);
        let of = |function: &str| -> u64 {
            let rows = top["rows"].as_array().unwrap().iter();
            let rows = rows.filter(|row| row["frame"].as_str().unwrap().ends_with(function));
            rows.map(|row| row["inclusive"].as_u64().unwrap()).sum()
        };
        assert_eq!((of("keep_blocks"), of("keep_half")), (300_000, 200 << 10), "{name}: {top}");
        assert_eq!(of("keep_replaced"), 300 << 10, "{name}: {top}");
        assert_eq!(of("give_back"), 0, "{name}: {top}");
        assert!(top["native"]["doubt"].is_null(), "{name}: {top}");
    }
}
