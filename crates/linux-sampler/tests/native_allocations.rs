//! Native allocations of a C program that the test compiles. If the kernel permits no probes, each test
//! prints that and ends.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use linux_sampler::{
    AllocationChange, AllocationObstacle, Error, NativeAllocations, ProcessMaps, RecordKind, Sampler,
    SamplerConfig,
};

const KIB: u64 = 1 << 10;
const WAIT: Duration = Duration::from_millis(50);
const DEADLINE: Duration = Duration::from_secs(60);

/// Four threads keep 50 blocks each, and free one; or the program allocates and frees for ever.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *kept[200], *volatile scratch;
static void *keep(void *argument)
{
    for (int i = 0; i < 50; i++)
        kept[(long)argument * 50 + i] = malloc(6000);
    scratch = malloc(9000);
    free(scratch);
    return NULL;
}
int main(int count, char **arguments)
{
    puts("ready");
    fflush(stdout);
    getchar();
    while (count > 1) {
        scratch = malloc(100);
        free(scratch);
    }
    for (long i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, keep, (void *)i);
        pthread_join(thread, NULL);
    }
    kept[0] = realloc(kept[0], 12000);
    puts("done");
    fflush(stdout);
    getchar();
    return (int)(long)arguments & 1;
}
"#;

/// Mappings and the break in known sizes.
const MAPS: &str = r#"
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static char *map(int protection, size_t bytes)
{
    return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
int main(void)
{
    puts("ready");
    fflush(stdout);
    getchar();
    char *parts = map(PROT_READ | PROT_WRITE, 1000 << 10);
    munmap(parts, 200 << 10);
    munmap(parts + (500 << 10), 100 << 10);
    char *grown = map(PROT_READ | PROT_WRITE, 300 << 10);
    grown = mremap(grown, 300 << 10, 3000 << 10, MREMAP_MAYMOVE);
    mremap(grown, 3000 << 10, 2000 << 10, 0);
    char *unwritable = map(PROT_READ, 400 << 10);
    mremap(unwritable, 400 << 10, 4000 << 10, MREMAP_MAYMOVE);
    mremap(unwritable, 0, SIZE_MAX & ~4095, 0);
    /* A library without them has no probes. */
    free(malloc(10));
    sbrk(0);
    if (sbrk(700000) != (void *)-1)
        sbrk(-600000);
    puts("done");
    fflush(stdout);
    getchar();
    return 0;
}
"#;

/// Compilers for a C library of each kind, with the names of their programs.
const COMPILERS: [(&str, &[&str]); 4] = [
    ("glibc", &["cc"]),
    ("static", &["cc", "-static"]),
    ("musl", &["musl-gcc"]),
    ("static-musl", &["musl-gcc", "-static"]),
];

/// The program, which is killed at the end.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Compiles and starts it. `name` is of one test, as tests run at the same time.
    fn start(name: &str, arguments: &[&str]) -> Self {
        Self::compiled(PROGRAM, name, &["cc"], arguments).unwrap()
    }

    /// Compiles a program with a compiler and its options; `None` if the machine has no such compiler, with a
    /// printed message.
    fn compiled(source: &str, name: &str, compiler: &[&str], arguments: &[&str]) -> Option<Self> {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let compiling = Command::new(compiler[0])
            .args(["-x", "c", "-O1", "-fno-builtin", "-pthread", "-o"])
            .arg(&path)
            .args(&compiler[1..])
            .arg("-")
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut compiling) = compiling else {
            eprintln!("SKIPPED: there is no {}", compiler[0]);
            return None;
        };
        compiling.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
        assert!(compiling.wait().unwrap().success());
        let mut child =
            Command::new(path).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut program = Self { child, output };
        program.await_line("ready\n");
        Some(program)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn await_line(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, expected);
    }

    /// The code of the C library as the process has it.
    fn library_code(&self) -> Vec<u8> {
        let maps = ProcessMaps::read(self.pid()).unwrap();
        let library = maps.iter().find(|mapping| mapping.name.contains("libc")).unwrap();
        let mut code = vec![0; usize::try_from(library.end - library.start).unwrap()];
        let memory = std::fs::File::open(format!("/proc/{}/mem", self.pid())).unwrap();
        memory.read_exact_at(&mut code, library.start).unwrap();
        code
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens a sampler of native allocations; `None`, with a printed message, if it is not permitted.
fn open(program: &Program, settings: NativeAllocations) -> Option<Sampler> {
    let config = SamplerConfig::of_process(program.pid()).with_frequency(0);
    match Sampler::open(&config.with_native_allocations(Some(settings))) {
        Ok(sampler) => Some(sampler),
        Err(
            error @ (Error::NotPermitted { .. }
            | Error::NativeAllocations(
                AllocationObstacle::NoProbes | AllocationObstacle::NotPermitted | AllocationObstacle::Seccomp,
            )),
        ) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn exact() -> NativeAllocations {
    NativeAllocations::default().with_interval(4096).with_limit_percent(100)
}

/// Threads that start later are followed, and `realloc` frees what it replaces.
#[test]
fn what_all_threads_keep_is_exact() {
    for (library, compiler) in COMPILERS {
        if let Some(program) = Program::compiled(PROGRAM, &format!("keeps-{library}"), compiler, &[]) {
            assert_exact(program, library);
        }
    }
}

fn assert_exact(mut program: Program, library: &str) {
    let Some(mut sampler) = open(&program, exact()) else { return };
    program.go_on();
    program.await_line("done\n");
    let (mut in_use, mut freed, mut threads) = (HashMap::new(), 0, HashMap::<i32, u32>::new());
    for record in sampler.finish() {
        let RecordKind::NativeAllocation(of) = record.kind else { continue };
        match of.change {
            AllocationChange::Allocated { size, function } => {
                assert_eq!(record.thread.pid, program.pid());
                *threads.entry(record.thread.tid).or_default() += u32::from(size == 6000);
                in_use.insert(of.address, (size, function));
            }
            AllocationChange::Freed { .. } => freed += u32::from(in_use.remove(&of.address).is_some()),
        }
    }
    let count = |wanted: (u64, &str)| in_use.values().filter(|of| **of == wanted).count();
    assert_eq!(count((6000, "malloc")), 199, "{library}: {in_use:?}");
    assert_eq!(count((12000, "realloc")), 1, "{library}: {in_use:?}");
    assert_eq!(count((9000, "malloc")), 0, "{library}: {in_use:?}");
    assert!(freed >= 5, "{library}: {freed}: four blocks, and the first half of one that grew");
    let keeping: Vec<_> = threads.values().filter(|count| **count > 0).collect();
    assert_eq!(keeping, [&50; 4], "{library}: {threads:?}");
    let counts = sampler.allocation_counts().unwrap();
    assert_eq!((counts.lost_allocations, counts.lost_frees, counts.left_out), (0, 0, 0));
    assert!(counts.hits >= 209 && counts.cost_ns > 0, "{counts:?}");
}

/// Parts of mappings are unmapped, mappings get another size, and the break moves in both directions.
/// Mappings that cannot be written are not followed, and calls that fail allocate nothing.
#[test]
fn mappings_and_the_break_are_exact() {
    for (library, compiler) in COMPILERS {
        let compiled = Program::compiled(MAPS, &format!("maps-{library}"), compiler, &[]);
        let Some(mut program) = compiled else { continue };
        let Some(mut sampler) = open(&program, exact()) else { return };
        program.go_on();
        program.await_line("done\n");
        let mut changes = Vec::new();
        let mut addresses = Vec::new();
        for record in sampler.finish() {
            let RecordKind::NativeAllocation(of) = record.kind else { continue };
            let change = match of.change {
                AllocationChange::Allocated { size, function } => (function, size),
                AllocationChange::Freed { size } => ("", size),
            };
            // The library has buffers of its own.
            if change.1 >= 100_000 {
                changes.push(change);
                addresses.push(of.address);
            }
        }
        let mappings = [
            ("mmap", 1000 * KIB),
            ("", 200 * KIB),
            ("", 100 * KIB),
            ("mmap", 300 * KIB),
            ("", 300 * KIB),
            ("mremap", 3000 * KIB),
            ("", 3000 * KIB),
            ("mremap", 2000 * KIB),
        ];
        assert_eq!(changes[..8], mappings, "{library}");
        assert_eq!([addresses[1], addresses[2] - 500 * KIB], [addresses[0]; 2], "{library}");
        assert_eq!((addresses[4], addresses[6]), (addresses[3], addresses[5]), "{library}");
        // The break of musl is its own.
        let is_musl = library.contains("musl");
        let moved: &[_] = if is_musl { &[] } else { &[("sbrk", 700_000), ("", 600_000)] };
        assert_eq!(&changes[8..], moved, "{library}");
        if !is_musl {
            assert_eq!(addresses[9], addresses[8] + 100_000, "{library}");
        }
    }
}

/// A probe is a breakpoint in the memory of one process, and is gone with the sampler.
#[test]
fn another_process_keeps_its_code() {
    let (program, other) = (Program::start("probed", &[]), Program::start("other", &[]));
    let before = program.library_code();
    let Some(mut sampler) = open(&program, exact()) else { return };
    let changed = program.library_code().iter().zip(&before).filter(|(now, before)| now != before).count();
    assert!(changed >= 6, "{changed} bytes");
    assert_eq!(other.library_code(), before);
    sampler.finish().for_each(drop);
    assert_eq!(program.library_code(), before);
}

/// A program that does nothing else pays more than its limit, and goes on without probes.
#[test]
fn the_limit_removes_the_probes() {
    let mut program = Program::start("allocates", &["for ever"]);
    let before = program.library_code();
    let Some(mut sampler) = open(&program, NativeAllocations::default().with_limit_percent(5)) else {
        return;
    };
    program.go_on();
    let start = Instant::now();
    let counts = loop {
        let records = sampler.read(WAIT).unwrap();
        records.for_each(drop);
        let counts = sampler.allocation_counts().unwrap();
        if counts.stopped_ns.is_some() {
            break counts;
        }
        assert!(start.elapsed() < DEADLINE, "{counts:?}");
    };
    assert!(counts.hits > 1000 && counts.cost_ns * 20 > counts.cpu_ns, "{counts:?}");
    assert_eq!(program.library_code(), before);
    assert!(program.child.try_wait().unwrap().is_none(), "the program runs on");
    assert_eq!(sampler.allocation_counts(), Some(counts), "and is no longer counted");
}

/// A process that ends while it is looked at is not an error of the kernel.
#[test]
fn a_process_that_has_ended_does_not_exist() {
    let mut program = Program::start("ended", &[]);
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    let config = SamplerConfig::of_process(program.pid()).with_frequency(0);
    let opened = Sampler::open(&config.with_native_allocations(Some(exact())));
    assert!(matches!(opened, Err(Error::NoProcess { .. })), "{opened:?}");
}
