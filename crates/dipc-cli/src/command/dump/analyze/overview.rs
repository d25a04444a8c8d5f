//! `dipc dump analyze CORE`: one screen about a core dump.

mod death;
mod facts;
mod report;
mod without_runtime;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clr_dump::{AwaitChains, ExceptionState, HeapStatistics, ThreadWaits};
use clr_findings::{AwaitSearch, Evidence, Finding, MemoryFacts, diagnose};

use self::death::Death;
use super::heap::{self, Holders};
use super::stacks::{self, Shape, Shown};
use super::{awaits, exceptions, locks};
use crate::args::format::Format;
use crate::exit::{Failure, Outcome};
use crate::inspect::core_advice;
use crate::inspect::core_dump::{Analysis, ManagedThread};
use crate::inspect::core_source::Source;
use crate::inspect::core_text::FrameText;
use crate::render::table::heading;
use crate::render::{output, units, width};

/// Maximum time for which the heap is searched for awaits as causes.
const AWAIT_TIME: Duration = Duration::from_secs(5);
/// The number of types that are shown.
const TYPES: usize = 6;
/// Maximum number of stack lines of a thread that died.
const STACK_LINES: usize = 14;
/// Maximum number of exceptions to show, including causes, and of frames of the outermost exception and of
/// each cause.
const EXCEPTIONS: exceptions::Limits = exceptions::Limits { exceptions: 6, frames: 5, cause_frames: 2 };
/// Maximum number of threads to show with exceptions.
const THREADS: usize = 3;
/// Maximum number of groups of threads, and of frames of each.
const GROUPS: usize = 5;
const GROUP_FRAMES: usize = 2;
/// Maximum number of thread names of a group.
const LABELS: usize = 6;

/// Prints the overview of a core dump, or the rest if it lacks the runtime's data.
pub(super) fn show(
    source: &Source,
    written: Option<String>,
    symbol_path: &[PathBuf],
    format: Format,
) -> Outcome {
    let lacking = |failure: Failure| match (source.core(), core_advice::shortfall(source)) {
        (Some(core), Some(reason)) => {
            without_runtime::print(source, core, written.as_deref(), &reason, format)
        }
        _ => Err(failure),
    };
    let runtime = match source.runtime() {
        Ok(runtime) => runtime,
        Err(failure) => return lacking(failure),
    };
    let analysis = match Analysis::new(source, &runtime, symbol_path) {
        Ok(analysis) => analysis,
        Err(failure) => return lacking(failure),
    };
    let facts = Facts::new(&analysis);
    match format {
        Format::Json => output::print_json(&report::Report::new(&analysis, &facts, written)),
        Format::Table => output::print(text(&analysis, &facts, written.as_deref(), width::of_output())),
    }?;
    Ok(source.exit())
}

/// The facts that the overview shows.
struct Facts<'a> {
    /// The causes, the most costly first.
    causes: Vec<Finding>,
    death: Option<Death<'a>>,
    waits: ThreadWaits,
    heap: Result<HeapStatistics, Failure>,
    holders: Option<Holders>,
    /// The chains of awaits, of heaps that are not too large.
    chains: Option<AwaitChains>,
    /// Missing parts, a sentence each.
    missing: Vec<String>,
}

impl<'a> Facts<'a> {
    fn new(analysis: &'a Analysis<'_>) -> Self {
        let monitors = analysis.dump.locks().monitors();
        let heap = heap::read(analysis);
        let holders = heap.as_ref().ok().and_then(|heap| heap::holders(analysis, heap));
        let missing = missing(analysis, &monitors, &heap);
        let mut waits = ThreadWaits::find(&analysis.dump, &analysis.snapshots(), &monitors);
        if heap.is_ok() {
            waits.search_heap(&analysis.dump, &analysis.snapshots());
        }
        let chains = heap.as_ref().ok().and_then(|heap| heap::await_chains(analysis, heap));
        let threads = analysis.snapshots();
        let awaits = chains.as_ref().map_or(AwaitSearch::Within(AWAIT_TIME), AwaitSearch::Done);
        let found = (&*threads, waits.clone());
        let memory = [MemoryFacts::of_snapshots(analysis.source.core(), &analysis.dump, found, awaits)];
        let causes = diagnose(&Evidence::default().with_memory(&memory));
        Self { causes, death: death::of(analysis), waits, heap, holders, chains, missing }
    }

    /// The threads to show first: the thread that died, and all that throw or handle an exception.
    fn shown_first(&self, analysis: &'a Analysis<'_>) -> Vec<&'a ManagedThread> {
        let died = self.death.as_ref().and_then(|death| death.thread);
        let throws = |thread: &&ManagedThread| {
            thread.throws() && died.is_none_or(|died| died.thread.address != thread.thread.address)
        };
        died.into_iter().chain(analysis.threads.iter().filter(throws)).collect()
    }
}

/// Returns sentences about missing data.
fn missing(
    analysis: &Analysis<'_>,
    monitors: &clr_dump::Monitors,
    heap: &Result<HeapStatistics, Failure>,
) -> Vec<String> {
    let mut missing = Vec::new();
    if let Some(reason) = core_advice::shortfall(analysis.source) {
        missing.push(reason);
    }
    let frames = analysis.threads.iter().flat_map(|thread| &thread.frames);
    let unnamed =
        frames.filter(|frame| frame.is_managed() && frame.name.is_none() && !frame.is_dynamic).count() as u64;
    if unnamed > 0 {
        let frames = units::counted(unnamed, "frame has no name", "frames have no names");
        let advice = core_advice::better(analysis.source);
        missing.push(format!("{frames}: the memory of their modules is not in the dump; {advice}"));
    }
    if monitors.is_incomplete && !analysis.dump.runtime().is_native_aot() {
        missing.push("monitors and deadlocks: their table is not in the dump".to_owned());
    }
    match heap {
        Err(_) if core_advice::shortfall(analysis.source).is_some() => {
            missing.push(format!("the heap: {}", core_advice::better(analysis.source)));
        }
        Err(failure) => {
            missing.push(format!("{failure}: {}", failure.help.as_deref().unwrap_or_default()));
        }
        Ok(of) => {
            missing.extend(heap::damage(analysis, of));
            let is_unnamed = |of: &&clr_dump::TypeStatistics| {
                of.name.is_none() && !analysis.dump.types().is_dynamic(of.type_handle)
            };
            let unnamed = of.types.iter().filter(is_unnamed).count();
            if unnamed > 0 {
                let types = units::counted(unnamed as u64, "type has no name", "types have no names");
                let advice = core_advice::better(analysis.source);
                missing.push(format!("{types}: the metadata of their modules is not in the dump; {advice}"));
            }
        }
    }
    missing
}

fn text(analysis: &Analysis<'_>, facts: &Facts<'_>, written: Option<&str>, width: Option<usize>) -> String {
    let mut text = facts::text(analysis.source, Some(analysis.dump.runtime()), written);
    text.push_str(&facts::causes(&facts.causes, width));
    let first = facts.shown_first(analysis);
    for (index, thread) in first.iter().take(THREADS).enumerate() {
        let died = facts.death.as_ref().filter(|death| index == 0 && death.thread.is_some());
        text.push('\n');
        text.push_str(&of_thread(thread, died, width));
    }
    let others = first.len().saturating_sub(THREADS) as u64;
    if others > 0 {
        let threads = units::counted(others, "more thread throws or handles", "more threads throw or handle");
        let _ = writeln!(text, "({threads} exceptions: dump analyze CORE exceptions)");
    }
    if let Some(thread) = facts.death.as_ref().and_then(|death| death.native) {
        text.push('\n');
        text.push_str(&heading(&format!("Thread {} (native)", thread.tid)));
        let frames = stacks::frames(&thread.stack, &thread.frames, Shown::Folded, width);
        text.push_str(&limited(&frames, user_line(&thread.frames, width).as_deref()));
    }
    let deadlocks = locks::deadlocks(analysis, &facts.waits, width);
    if !deadlocks.is_empty() {
        text.push('\n');
        text.push_str(&deadlocks);
    }
    text.push('\n');
    text.push_str(&heading("Threads"));
    text.push_str(&groups(analysis, &first, width));
    if let Some(chains) = facts.chains.as_ref().filter(|chains| chains.chains > 0) {
        text.push_str(&width::wrapped(&awaits::summary(chains), width));
    }
    if let Ok(of) = &facts.heap {
        text.push('\n');
        text.push_str(&heading("Heap"));
        text.push_str(&heap::summary(of));
        text.push_str(&heap::table(analysis, of, TYPES));
        text.push_str(&heap::holders_text(facts.holders.as_ref()));
    }
    if !facts.missing.is_empty() {
        text.push('\n');
        text.push_str(&heading("Missing"));
        for line in &facts.missing {
            text.push_str(&width::wrapped(&format!("{line}\n"), width));
        }
    }
    text
}

/// A thread that died, or that throws or handles an exception: its exceptions and its stack.
fn of_thread(thread: &ManagedThread, death: Option<&Death<'_>>, width: Option<usize>) -> String {
    let label = stacks::label(thread);
    let cause =
        death.map_or_else(|| "throws or handles an exception".to_owned(), |death| death::text(&death.cause));
    let mut text = heading(&format!("Thread {label}: {cause}"));
    for (state, list) in exceptions::outermost(thread) {
        let prefix = if state == ExceptionState::Current { "" } else { "Threw last " };
        text.push_str(&exceptions::with_causes(prefix, list, &EXCEPTIONS, width));
    }
    text.push_str(&exceptions::doubt(thread, width));
    text.push_str("Its stack:\n");
    let frames = stacks::frames(&thread.stack, &thread.frames, Shown::Folded, width);
    text.push_str(if frames.is_empty() { "  no frame was found\n" } else { "" });
    text.push_str(&limited(&frames, user_line(&thread.frames, width).as_deref()));
    text
}

/// The line of the innermost frame of the user's code.
fn user_line(frames: &[FrameText], width: Option<usize>) -> Option<String> {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
    let frame = frames.iter().find(|frame| frame.is_user_code)?;
    Some(format!("  {}", stacks::fitted(frame, room)))
}

/// The first and the last lines of a stack, and the line of user code.
fn limited(lines: &str, user_line: Option<&str>) -> String {
    let all: Vec<&str> = lines.lines().collect();
    let mut text = String::new();
    if all.len() <= STACK_LINES + 1 {
        return lines.to_owned();
    }
    let last = STACK_LINES / 4;
    let user_line = user_line.and_then(|user_line| all.iter().position(|line| line.starts_with(user_line)));
    let is_shown =
        |index: usize| index < STACK_LINES - last || index >= all.len() - last || Some(index) == user_line;
    let mut left = 0;
    for (index, line) in all.iter().enumerate() {
        if !is_shown(index) {
            left += 1;
            continue;
        }
        if left > 0 {
            let _ = writeln!(text, "  … {left} more lines: dump analyze CORE stacks --native");
            left = 0;
        }
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The threads that were not shown yet, grouped by equal stacks, largest group first, with the innermost
/// frames of each.
fn groups(analysis: &Analysis<'_>, shown: &[&ManagedThread], width: Option<usize>) -> String {
    let is_new = |group: &Vec<Shape<'_>>| {
        group.iter().any(|thread| shown.iter().all(|other| other.thread.os_id != thread.tid))
    };
    let mut groups: Vec<_> = stacks::groups(analysis, Shown::Managed).into_iter().filter(is_new).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let mut text = String::new();
    for group in groups.iter().take(GROUPS) {
        let Some(first) = group.first() else { continue };
        let labels: Vec<_> = group.iter().take(LABELS).map(|thread| &*thread.label).collect();
        let more = if group.len() > LABELS { ", …" } else { "" };
        let count = group.len() as u64;
        let threads = units::counted(count, "thread", "threads");
        text.push_str(&width::wrapped(&format!("{threads}: {}{more}\n", labels.join(", ")), width));
        text.push_str(&innermost(first, width));
    }
    let left = groups.iter().skip(GROUPS).map(Vec::len).sum::<usize>() as u64;
    if left > 0 {
        let threads = units::counted(left, "thread with another stack", "threads with other stacks");
        let _ = writeln!(text, "{threads}");
    }
    let counts = stacks::thread_counts(analysis);
    text.push_str(&width::wrapped(
        &format!("{}; whole stacks: dump analyze CORE stacks\n", counts.trim_end()),
        width,
    ));
    text
}

/// The innermost frames of a thread, and its innermost frame of the program's own code.
fn innermost(thread: &Shape<'_>, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
    let frames: Vec<_> = thread.frames.iter().filter(|frame| frame.is_managed()).collect();
    if frames.is_empty() {
        return stacks::frames(thread.stack, thread.frames, Shown::Managed, width);
    }
    let own = frames.iter().position(|frame| frame.is_user_code).filter(|own| *own >= GROUP_FRAMES);
    let mut text = String::new();
    let mut last = 0;
    for (index, frame) in frames.iter().enumerate() {
        if index >= GROUP_FRAMES && Some(index) != own {
            continue;
        }
        if index > last {
            let _ = writeln!(text, "  … {} more", index - last);
        }
        let _ = writeln!(text, "  {}", stacks::fitted(frame, room));
        last = index + 1;
    }
    if frames.len() > last {
        let _ = writeln!(text, "  … {} more", frames.len() - last);
    }
    text
}
