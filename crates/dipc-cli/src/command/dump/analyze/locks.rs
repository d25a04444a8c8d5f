//! `dipc dump analyze CORE locks`.

use std::fmt::Write as _;

use clr_dump::{HeapStatistics, Monitor, Monitors, WaitKind};
use serde::Serialize;

use super::stacks::label;
use crate::args::format::Format;
use crate::exit::Failure;
use crate::inspect::core_dump::{Analysis, ManagedThread};
use crate::inspect::core_text::type_text;
use crate::render::{output, width};

pub(super) fn print(analysis: &Analysis<'_>, format: Format) -> Result<(), Failure> {
    let monitors = analysis.runtime.monitors(analysis.source.memory());
    // Only objects themselves say which thread holds them without a sync block.
    let heap = analysis.names.heap_statistics().ok();
    match format {
        Format::Json => output::print_json(&Report::new(analysis, &monitors, heap.as_ref())),
        Format::Table => output::print(text(analysis, &monitors, heap.as_ref(), width::of_output())),
    }
}

fn text(
    analysis: &Analysis<'_>,
    monitors: &Monitors,
    heap: Option<&HeapStatistics>,
    width: Option<usize>,
) -> String {
    let mut text = deadlocks(analysis, monitors, width);
    for monitor in &monitors.monitors {
        let mut line = format!("{} {:#x}: ", object_type(analysis, monitor.object), monitor.object);
        let holder = match owner(analysis, monitor) {
            Some(thread) => format!("held by thread {}", label(thread)),
            None if monitor.owner.is_some() => "held by a thread that is not in the list".to_owned(),
            None => "not held".to_owned(),
        };
        line.push_str(&holder);
        let waiting: Vec<_> = analysis.waiting_for(monitor.address).map(label).collect();
        if !waiting.is_empty() {
            let _ = write!(line, ", {} wait: {}", waiting.len(), waiting.join(", "));
        } else if monitor.waiters > 0 {
            let _ = write!(line, ", {} wait", monitor.waiters);
        }
        text.push_str(&width::wrapped(&(line + "\n"), width));
    }
    for (object, holder) in heap.map_or(&[][..], |heap| &heap.thin_locks) {
        let line = format!(
            "{} {object:#x}: held by thread {}, nobody waits\n",
            object_type(analysis, *object),
            holder_label(analysis, *holder)
        );
        text.push_str(&width::wrapped(&line, width));
    }
    if text.is_empty() {
        text.push_str("No held monitor was found\n");
    }
    text.push_str(&width::wrapped(&incomplete(monitors, heap), width));
    text
}

/// Returns sentences about the monitors that are missing from the dump.
fn incomplete(monitors: &Monitors, heap: Option<&HeapStatistics>) -> String {
    let mut text = String::new();
    if monitors.is_incomplete {
        text.push_str(
            "A part of the monitors is not in the dump: one with heaps has them (dipc dump --type heap)\n",
        );
    }
    if heap.is_none_or(|heap| !heap.gaps.is_empty()) {
        text.push_str("The heap is not all in the dump: monitors that nobody waited for can be missing\n");
    }
    text
}

/// The deadlocks, with the monitors of each.
pub(super) fn deadlocks(analysis: &Analysis<'_>, monitors: &Monitors, width: Option<usize>) -> String {
    let mut text = String::new();
    for cycle in analysis.deadlocks(monitors) {
        text.push_str("Deadlock:\n");
        for (thread, monitor) in cycle {
            let owner = owner(analysis, &monitor).map_or_else(|| "another thread".to_owned(), label);
            let line = format!(
                "  thread {} waits for {} {:#x}, which thread {owner} holds\n",
                label(thread),
                object_type(analysis, monitor.object),
                monitor.object
            );
            text.push_str(&width::wrapped(&line, width));
        }
    }
    text
}

fn owner<'a>(analysis: &'a Analysis<'_>, monitor: &Monitor) -> Option<&'a ManagedThread> {
    analysis.thread_at(monitor.owner?.thread)
}

fn object_type(analysis: &Analysis<'_>, object: u64) -> String {
    type_text(analysis.names.object_type(object).as_deref(), object)
}

fn holder_label(analysis: &Analysis<'_>, managed_id: u32) -> String {
    let thread = analysis.threads.iter().find(|thread| thread.thread.managed_id == managed_id);
    thread.map_or_else(|| format!("{managed_id} (managed)"), label)
}

#[derive(Debug, Serialize)]
struct Report {
    runtime: String,
    locks: Vec<Lock>,
    /// The threads that wait for one another, each cycle once.
    deadlocks: Vec<Vec<u64>>,
    waits: Vec<Wait>,
    /// Whether the dump lacks a part of the monitors, or their holders are not known in this version.
    incomplete: bool,
}

/// A thread of a deadlock.
#[derive(Debug, Serialize)]
pub(super) struct DeadlockRow {
    tid: u64,
    name: Option<String>,
    /// The object whose monitor it waits for.
    object: String,
    r#type: Option<String>,
    /// The thread that holds it.
    owner_tid: Option<u64>,
}

/// The threads that wait for one another, each cycle once.
pub(super) fn deadlock_rows(analysis: &Analysis<'_>, monitors: &Monitors) -> Vec<Vec<DeadlockRow>> {
    let row = |(thread, monitor): (&ManagedThread, Monitor)| DeadlockRow {
        tid: thread.thread.os_id,
        name: thread.name.clone(),
        object: format!("{:#x}", monitor.object),
        r#type: analysis.names.object_type(monitor.object).map(|name| name.to_string()),
        owner_tid: owner(analysis, &monitor).map(|owner| owner.thread.os_id),
    };
    let cycles = analysis.deadlocks(monitors).into_iter();
    cycles.map(|cycle| cycle.into_iter().map(row).collect()).collect()
}

#[derive(Debug, Serialize)]
struct Lock {
    object: String,
    r#type: Option<String>,
    owner_tid: Option<u64>,
    owner_managed_id: Option<u32>,
    /// The threads that wait to enter it.
    waiting_tids: Vec<u64>,
    waiters: u32,
}

#[derive(Debug, Serialize)]
struct Wait {
    tid: u64,
    /// `enter` or `pulse`.
    kind: &'static str,
    /// The object of the monitor, if the dump has it.
    object: Option<String>,
}

impl Report {
    fn new(analysis: &Analysis<'_>, monitors: &Monitors, heap: Option<&HeapStatistics>) -> Self {
        let type_of = |object: u64| analysis.names.object_type(object).map(|name| name.to_string());
        let with_blocks = monitors.monitors.iter().map(|monitor| {
            let owner = owner(analysis, monitor);
            Lock {
                object: format!("{:#x}", monitor.object),
                r#type: type_of(monitor.object),
                owner_tid: owner.map(|thread| thread.thread.os_id),
                owner_managed_id: owner.map(|thread| thread.thread.managed_id),
                waiting_tids: analysis
                    .waiting_for(monitor.address)
                    .map(|thread| thread.thread.os_id)
                    .collect(),
                waiters: monitor.waiters,
            }
        });
        let thin = heap.map_or(&[][..], |heap| &heap.thin_locks).iter().map(|(object, holder)| {
            let owner = analysis.threads.iter().find(|thread| thread.thread.managed_id == *holder);
            Lock {
                object: format!("{object:#x}"),
                r#type: type_of(*object),
                owner_tid: owner.map(|thread| thread.thread.os_id),
                owner_managed_id: Some(*holder),
                waiting_tids: Vec::new(),
                waiters: 0,
            }
        });
        let waits = analysis.threads.iter().flat_map(|thread| {
            thread.waits.iter().map(|wait| Wait {
                tid: thread.thread.os_id,
                kind: match wait.kind {
                    WaitKind::Enter => "enter",
                    WaitKind::Pulse => "pulse",
                },
                object: monitors.at(wait.monitor).map(|monitor| format!("{:#x}", monitor.object)),
            })
        });
        let cycles = analysis.deadlocks(monitors).into_iter();
        Self {
            runtime: analysis.runtime.version().to_owned(),
            locks: with_blocks.chain(thin).collect(),
            deadlocks: cycles
                .map(|cycle| cycle.iter().map(|(thread, _)| thread.thread.os_id).collect())
                .collect(),
            waits: waits.collect(),
            incomplete: monitors.is_incomplete || heap.is_none_or(|heap| !heap.gaps.is_empty()),
        }
    }
}
