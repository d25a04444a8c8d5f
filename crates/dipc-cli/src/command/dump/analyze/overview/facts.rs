//! The program, the signal, the memory and the runtime of a core dump, a line each.

use std::fmt::Write as _;

use clr_dump::{CoreFile, Runtime, SignalInfo};
use clr_findings::{Confidence, Finding, FindingKind};

use crate::inspect::core_advice;
use crate::inspect::core_source::Source;
use crate::render::escape::escape_controls;
use crate::render::{units, width};

pub(super) fn text(source: &Source, runtime: Option<&Runtime>, written: Option<&str>) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<8}: {}", escape_controls(value));
    };
    if let Some(core) = source.core() {
        if let Some((program, pid)) = program(core) {
            fact("Program", &format!("{program} ({pid})"));
        }
        if let Some(written) = written {
            fact("Written", written);
        }
        if let Some(signal) = signal(core) {
            fact("Signal", &signal);
        }
        fact("Memory", &units::bytes(core.memory_bytes()));
        if core.is_stripped() {
            let numbers = if core.is_without_numbers() { ", numbers" } else { "" };
            fact(
                "Stripped",
                &format!(
                    "strings, buffers{numbers} and native memory were removed, and are shown as zeros or as missing"
                ),
            );
        }
        if let Some(truncation) = source.truncation() {
            fact("Cut", &format!("the file is truncated; the part that is there was read: {truncation}"));
        }
        if let Some(limits) = core_advice::limits(source) {
            fact("Left out", &limits);
        }
    }
    let Some(runtime) = runtime else { return text };
    let kind = if runtime.is_native_aot() { " compiled ahead of time" } else { "" };
    fact("Runtime", &format!(".NET {}{kind} ({})", runtime.version(), runtime.path()));
    if runtime.is_native_aot() {
        fact("Unknown", "monitors, names of threads, and fields, which its runtime does not describe");
        if !runtime.is_measured() {
            fact("Names", "none: the form of its metadata is not known in this version");
        }
    } else if runtime.is_described() && !runtime.is_measured() {
        fact("Layout", "as the runtime describes its data, and where it does not, as of its major version");
    } else if !runtime.is_measured() {
        fact("Layout", "as of its major version: this build was not measured, but passed the checks");
    }
    for contract in runtime.newer_contracts() {
        fact("Newer", contract);
    }
    text
}

/// The width of names, with the separator.
const LABEL: usize = 10;
/// Maximum number of causes.
const CAUSES: usize = 4;

/// The causes, the first one with its evidence.
pub(super) fn causes(causes: &[Finding], width: Option<usize>) -> String {
    let mut text = String::new();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(LABEL).max(20));
    let mut row = |label: &str, value: &str| {
        for (index, part) in width::filled(value, room).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let _ = writeln!(text, "{label:<LABEL$}{part}");
        }
    };
    for (index, cause) in causes.iter().take(CAUSES).enumerate() {
        let likely = if cause.confidence == Confidence::Likely { "likely: " } else { "" };
        row(if index == 0 { "Cause   : " } else { "Also    : " }, &format!("{likely}{}", cause.cause));
        // The section on deadlocks has theirs.
        let has_evidence = index == 0 && cause.kind != FindingKind::Deadlock;
        for evidence in cause.evidence.iter().filter(|_| has_evidence) {
            row("", evidence);
        }
    }
    text
}

/// The command line or the name of the program, and its process id.
pub(super) fn program(core: &CoreFile) -> Option<(&str, u32)> {
    let process = core.process()?;
    let program = if process.arguments.is_empty() { &process.name } else { &process.arguments };
    Some((program, process.pid))
}

/// The signal in words.
fn signal(core: &CoreFile) -> Option<String> {
    if let Some(signal) = core.signal() {
        let thread = core.signalled_thread().map(|tid| format!(", thread {tid}")).unwrap_or_default();
        return Some(signal_text(signal) + &thread);
    }
    let number = core.common_signal()?;
    let name = units::signal_name(number).map_or_else(|| number.to_string(), ToOwned::to_owned);
    Some(format!("{name} (which thread is not in the dump: it marks all)"))
}

fn signal_text(signal: SignalInfo) -> String {
    let Some(name) = units::signal_name(signal.number) else { return signal.number.to_string() };
    // Only faults have an address.
    if matches!(signal.number, 4 | 7 | 8 | 11) && signal.code > 0 {
        return format!("{name} at {:#x}", signal.address);
    }
    name.to_owned()
}
