//! `dipc dump analyze CORE`: one screen about a core dump.

use std::fmt::Write as _;

use clr_dump::{CoreFile, ExceptionState, SignalInfo};
use serde::Serialize;

use super::stacks::Shown;
use super::{exceptions, heap, locks, stacks};
use crate::args::format::Format;
use crate::exit::Failure;
use crate::inspect::core_dump::{Analysis, ManagedThread};
use crate::render::escape::escape_controls;
use crate::render::table::heading;
use crate::render::{output, units, width};

/// The number of types that are shown.
const TYPES: usize = 10;

pub(super) fn print(analysis: &Analysis<'_>, written: Option<String>, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::print_json(&Report::new(analysis, written)),
        Format::Table => output::print(text(analysis, written, width::of_output())),
    }
}

fn text(analysis: &Analysis<'_>, written: Option<String>, width: Option<usize>) -> String {
    let mut text = facts(analysis, written);
    let has_died = |thread: &&ManagedThread| {
        thread.exceptions.iter().any(|(state, _)| *state == ExceptionState::Current)
    };
    let signalled = analysis.signalled_thread();
    let died = analysis
        .threads
        .iter()
        .filter(|thread| has_died(thread) || signalled.is_some_and(|tid| thread.thread.os_id == tid));
    for thread in died {
        text.push('\n');
        text.push_str(&heading(&format!("Thread {}", stacks::label(thread))));
        text.push_str(&exceptions::of_thread(thread, width));
        text.push_str("  Its stack:\n");
        text.push_str(&stacks::frames(&thread.stack, &thread.frames, Shown::All, width));
        if thread.frames.is_empty() {
            text.push_str("  no frame was found\n");
        }
    }
    for thread in analysis.native_threads.iter().filter(|thread| signalled == Some(thread.tid.into())) {
        text.push('\n');
        text.push_str(&heading(&format!("Thread {} (native)", thread.tid)));
        text.push_str(&stacks::frames(&thread.stack, &thread.frames, Shown::All, width));
    }
    let monitors = analysis.runtime.monitors(analysis.source.memory());
    let deadlocks = locks::deadlocks(analysis, &monitors, width);
    if !deadlocks.is_empty() {
        text.push('\n');
        text.push_str(&deadlocks);
    }
    text.push('\n');
    text.push_str(&heading("Threads"));
    text.push_str(&stacks::text(analysis, Shown::Managed, width));
    let frames = analysis.threads.iter().flat_map(|thread| &thread.frames);
    let unnamed =
        frames.filter(|frame| frame.is_managed() && frame.name.is_none() && !frame.is_dynamic).count() as u64;
    if unnamed > 0 {
        let frames = units::counted(unnamed, "frame has no name", "frames have no names");
        let why = "the memory of their modules is not in the dump; dipc dump writes dumps that have it";
        text.push_str(&width::wrapped(&format!("{frames}: {why}\n"), width));
    }
    text.push('\n');
    text.push_str(&heading("Heap"));
    match heap::read(analysis) {
        Ok(heap) => {
            text.push_str(&heap::summary(&heap));
            text.push_str(&heap::table(&heap, TYPES));
        }
        Err(failure) => {
            let help = failure.help.as_deref().unwrap_or_default();
            text.push_str(&width::wrapped(&format!("{failure}: {help}\n"), width));
        }
    }
    text
}

/// Returns the program, the runtime and the signal, a line each.
fn facts(analysis: &Analysis<'_>, written: Option<String>) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<8}: {}", escape_controls(value));
    };
    if let Some(core) = analysis.source.core() {
        if let Some(process) = core.process() {
            let program = if process.arguments.is_empty() { &process.name } else { &process.arguments };
            fact("Program", &format!("{program} ({})", process.pid));
        }
        if let Some(written) = written {
            fact("Written", &written);
        }
        if let Some(signal) = core.signal() {
            fact("Signal", &signal_text(signal));
        }
        fact("Memory", &units::bytes(core.memory_bytes()));
        if core.is_stripped() {
            fact(
                "Stripped",
                "texts, buffers and native memory were removed, and are shown as zeros or as missing",
            );
        }
        if core.missing_bytes() > 0 {
            let missing = units::bytes(core.missing_bytes());
            fact("Missing", &format!("{missing}: the file was truncated, and is read as far as it goes"));
        }
    }
    let runtime = analysis.runtime;
    let kind = if runtime.is_native_aot() { " compiled ahead of time" } else { "" };
    fact("Runtime", &format!(".NET {}{kind} ({})", runtime.version(), runtime.path()));
    if runtime.is_native_aot() {
        fact("Unknown", "monitors, names of threads, and fields, which its runtime does not describe");
        if !runtime.is_measured() {
            fact("Names", "none: the form of its metadata is not known in this version");
        }
    } else if !runtime.is_measured() {
        fact("Layout", "that of its major version: this build was not measured, and has passed the checks");
    }
    text
}

fn signal_text(signal: SignalInfo) -> String {
    let Some(name) = units::signal_name(signal.number) else { return signal.number.to_string() };
    // Only faults have an address.
    if matches!(signal.number, 4 | 7 | 8 | 11) && signal.code > 0 {
        return format!("{name} at {:#x}", signal.address);
    }
    name.to_owned()
}

#[derive(Debug, Serialize)]
struct Report {
    program: Option<String>,
    pid: Option<u32>,
    written: Option<String>,
    signal: Option<i32>,
    runtime: String,
    runtime_path: String,
    build_id: String,
    /// Whether the structures were measured with this build of the runtime.
    measured: bool,
    memory_bytes: Option<u64>,
    missing_bytes: Option<u64>,
    /// Whether texts and buffers were removed by dump strip.
    stripped: bool,
    threads: usize,
    /// The thread that the signal was for.
    signalled_tid: Option<u64>,
    /// The threads that throw or handle an exception.
    throwing_tids: Vec<u64>,
    /// The threads that wait for one another.
    deadlocks: Vec<Vec<u64>>,
    /// Whether the dump has the heap.
    has_heap: bool,
}

impl Report {
    fn new(analysis: &Analysis<'_>, written: Option<String>) -> Self {
        let core = analysis.source.core();
        let process = core.and_then(|core| core.process());
        let monitors = analysis.runtime.monitors(analysis.source.memory());
        let throwing = analysis
            .threads
            .iter()
            .filter(|thread| thread.exceptions.iter().any(|(state, _)| *state == ExceptionState::Current));
        let cycles = analysis.deadlocks(&monitors).into_iter();
        Self {
            program: process.map(|process| {
                let program = if process.arguments.is_empty() { &process.name } else { &process.arguments };
                program.clone()
            }),
            pid: process.map(|process| process.pid),
            written,
            signal: core.and_then(CoreFile::signal).map(|signal| signal.number),
            runtime: analysis.runtime.version().to_owned(),
            runtime_path: analysis.runtime.path().to_owned(),
            build_id: analysis.runtime.build_id().to_owned(),
            measured: analysis.runtime.is_measured(),
            memory_bytes: core.map(CoreFile::memory_bytes),
            missing_bytes: core.map(CoreFile::missing_bytes),
            stripped: core.is_some_and(CoreFile::is_stripped),
            threads: analysis.threads.len(),
            signalled_tid: analysis.signalled_thread(),
            throwing_tids: throwing.map(|thread| thread.thread.os_id).collect(),
            deadlocks: cycles
                .map(|cycle| cycle.iter().map(|(thread, _)| thread.thread.os_id).collect())
                .collect(),
            has_heap: heap::read(analysis).is_ok(),
        }
    }
}
