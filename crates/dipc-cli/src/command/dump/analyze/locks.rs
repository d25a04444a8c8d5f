//! `dipc dump analyze CORE locks`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;

use clr_dump::{
    Address, HeapStatistics, HeldLock, Monitor, Monitors, SignaledObject, ThreadWait, ThreadWaits, WaitKind,
    WaitedFor, held_locks,
};
use clr_events::escape_controls;
use serde::Serialize;

use super::stacks::{label, label_with_method};
use super::wait_words;
use crate::args::format::Format;
use crate::exit::Failure;
use crate::inspect::await_name::await_name;
use crate::inspect::core_dump::{Analysis, ManagedThread};
use crate::inspect::core_text::type_text;
use crate::render::{output, units, width};

pub(crate) fn print(analysis: &Analysis<'_>, format: Format) -> Result<(), Failure> {
    let monitors = analysis.dump.locks().monitors();
    // Only objects themselves say which thread holds them without a sync block.
    let heap = analysis.dump.heap().statistics().ok();
    let mut waits = ThreadWaits::find(&analysis.dump, &analysis.snapshots(), &monitors);
    waits.search_heap(&analysis.dump, &analysis.snapshots());
    let held = held_locks(&analysis.dump, &analysis.snapshots());
    match format {
        Format::Json => output::print_json(&Report::new(analysis, &monitors, heap.as_ref(), &waits, &held)),
        Format::Table => {
            output::print(text(analysis, &monitors, heap.as_ref(), &waits, &held, width::of_output()))
        }
    }
}

fn text(
    analysis: &Analysis<'_>,
    monitors: &Monitors,
    heap: Option<&HeapStatistics>,
    waits: &ThreadWaits,
    held: &[HeldLock],
    width: Option<usize>,
) -> String {
    let mut text = deadlocks(analysis, waits, width);
    for lock in held {
        text.push_str(&width::wrapped(&(held_text(analysis, waits, lock) + "\n"), width));
    }
    for (object, of) in waits.signaled() {
        text.push_str(&width::wrapped(&(signaled_text(analysis, waits, object, of) + "\n"), width));
    }
    for monitor in &monitors.monitors {
        let mut line = format!("{} {:#x}: ", object_type(analysis, monitor.object), monitor.object);
        let holder = match owner(analysis, monitor) {
            Some(thread) => format!("held by thread {}", label_with_method(thread)),
            None if monitor.owner.is_some() => "held by a thread that is not in the list".to_owned(),
            None => "not held".to_owned(),
        };
        line.push_str(&holder);
        let waiting: Vec<_> = analysis.waiting_for(monitor.address).map(label_with_method).collect();
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
        text.push_str("No held lock was found\n");
    }
    text.push_str(&width::wrapped(&incomplete(monitors, heap), width));
    text
}

/// Returns sentences about the monitors that are missing from the dump.
fn incomplete(monitors: &Monitors, heap: Option<&HeapStatistics>) -> String {
    let mut text = String::new();
    if monitors.is_incomplete {
        text.push_str(
            "Some monitors are not in the dump: a dump with heaps has them (dipc dump --type heap)\n",
        );
    }
    if heap.is_none_or(|heap| !heap.walk.gaps.is_empty()) {
        text.push_str("The heap is not all in the dump: monitors that nobody waited for can be missing\n");
    }
    text
}

/// The deadlocks, with the lock that each thread waits for.
pub(crate) fn deadlocks(analysis: &Analysis<'_>, waits: &ThreadWaits, width: Option<usize>) -> String {
    let mut text = String::new();
    for cycle in waits.deadlocks() {
        let is_likely = cycle.iter().any(|(_, wait, _)| wait.is_any());
        text.push_str(if is_likely { "Deadlock (likely):\n" } else { "Deadlock:\n" });
        for (thread, wait, owner) in cycle {
            let line = format!("  {}\n", wait_text(analysis, waits, (thread, wait, owner)));
            text.push_str(&width::wrapped(&line, width));
        }
    }
    text
}

/// The wait of a thread or a method for another one.
fn wait_text(
    analysis: &Analysis<'_>,
    waits: &ThreadWaits,
    (waiter, wait, owner): (usize, &ThreadWait, usize),
) -> String {
    let who = |index: usize, label: fn(&ManagedThread) -> String| {
        let thread = analysis.threads.get(index).map(|thread| format!("thread {}", label(thread)));
        thread.or_else(|| method_label(analysis, waits, index)).unwrap_or_default()
    };
    let is_itself = waiter == owner;
    let (waiter, owner) = (who(waiter, label_with_method), who(owner, label));
    let owner = if is_itself { "it itself".to_owned() } else { owner };
    let mut object = object_text(analysis, wait.object);
    if !wait.others.is_empty() {
        let more = if is_task(wait) { ["more task", "more tasks"] } else { ["more handle", "more handles"] };
        let more = units::counted(wait.others.len() as u64, more[0], more[1]);
        let one_of = if wait.is_one_enough { "one of " } else { "" };
        object = format!("{one_of}{object} and {more}");
    }
    if let Some(awaited) = wait.awaited {
        let _ = write!(object, ", which awaits {}", object_text(analysis, awaited));
    }
    match wait.kind {
        _ if wait.is_any() => {
            format!("{waiter} waits for {object}, which {owner} could signal ({})", wait.signals.join(", "))
        }
        WaitedFor::Thread => format!("{waiter} waits for the end of {owner} (Thread.Join)"),
        WaitedFor::Task => format!("{waiter} waits for {object}, which {owner} runs"),
        WaitedFor::TaskInContext => format!(
            "{waiter} waits for {object}, which continues in the SynchronizationContext of this thread"
        ),
        _ => format!("{waiter} waits for {object}, which {owner} holds"),
    }
}

/// A suspended `async` method, with the line of its `await`.
fn suspended_method(analysis: &Analysis<'_>, waits: &ThreadWaits, index: usize) -> Option<String> {
    let node = waits.method(index)?;
    let place = analysis.dump.awaits().await_place(node);
    let line = place.and_then(|(method, il_offset)| analysis.line_of(&method, il_offset));
    let name = escape_controls(&await_name(&analysis.dump, node)).into_owned();
    Some(name + &line.map_or_else(String::new, |line| line.suffix()))
}

/// The same in a sentence.
fn method_label(analysis: &Analysis<'_>, waits: &ThreadWaits, index: usize) -> Option<String> {
    Some(format!("async {}", suspended_method(analysis, waits, index)?))
}

const fn is_task(wait: &ThreadWait) -> bool {
    matches!(wait.kind, WaitedFor::Task | WaitedFor::TaskInContext)
}

/// A held lock other than a monitor, and the threads that wait for it.
fn held_text(analysis: &Analysis<'_>, waits: &ThreadWaits, lock: &HeldLock) -> String {
    let label = |index: usize| analysis.threads.get(index).map_or_else(String::new, label_with_method);
    let holders: Vec<_> = lock.owners.iter().map(|index| label(*index)).collect();
    let waiting: Vec<_> = waiting_for(waits, lock.object).map(label).collect();
    let threads = if holders.len() == 1 { "thread" } else { "threads" };
    let object = object_text(analysis, lock.object);
    let mut line = format!("{object}: held by {threads} {}", holders.join(", "));
    if waiting.is_empty() {
        line.push_str(", nobody waits");
    } else {
        let _ = write!(line, ", {} wait: {}", waiting.len(), waiting.join(", "));
    }
    line
}

/// An object without a recorded holder, with the threads that wait for it and those that could signal it.
fn signaled_text(
    analysis: &Analysis<'_>,
    waits: &ThreadWaits,
    object: Address,
    of: &SignaledObject,
) -> String {
    let label = |index: usize| analysis.threads.get(index).map_or_else(String::new, label_with_method);
    let waiting = waiting_for(waits, object).filter(|index| waits.method(*index).is_none());
    let waiting: Vec<_> = waiting.map(label).collect();
    let mut line = format!("{}: ", object_text(analysis, object));
    if let Some(reason) = wait_words::holder_unknown(of.kind) {
        let _ = write!(line, "held by: not known ({reason}), ");
    }
    match waiting.as_slice() {
        [] => line.push_str("no thread waits"),
        waiting => {
            let _ = write!(line, "{} wait: {}", waiting.len(), waiting.join(", "));
        }
    }
    for (at, (word, number)) in analysis.dump.heap().wait_state(object).into_iter().enumerate() {
        let _ = write!(line, "{} {word} {number}", if at == 0 { ";" } else { "," });
    }
    let signals = of.signals.join(", ");
    let owner = |index: usize| method_label(analysis, waits, index).unwrap_or_else(|| label(index));
    let could: Vec<_> = of.owners.iter().map(|of| owner(*of)).collect();
    let _ = match could.as_slice() {
        [] => write!(line, "; no method on a stack or in an await with the object calls {signals}"),
        could => write!(line, "; could be signaled ({signals}) by: {}", could.join(", ")),
    };
    line
}

/// The indexes of the threads that wait for an object.
fn waiting_for(waits: &ThreadWaits, object: Address) -> impl Iterator<Item = usize> {
    let is_for = move |wait: &ThreadWait| {
        wait.object == object
            || (!is_task(wait) && wait.others.contains(&object))
            || wait.awaited == Some(object)
    };
    waits.iter().filter(move |(_, wait)| is_for(wait)).map(|(index, _)| index)
}

fn owner<'a>(analysis: &'a Analysis<'_>, monitor: &Monitor) -> Option<&'a ManagedThread> {
    analysis.thread_at(monitor.owner?.thread)
}

fn object_text(analysis: &Analysis<'_>, object: Address) -> String {
    format!("{} {object:#x}", object_type(analysis, object))
}

fn object_type(analysis: &Analysis<'_>, object: Address) -> String {
    type_text(analysis.dump.heap().type_name(object).as_deref(), object.get())
}

fn holder_label(analysis: &Analysis<'_>, managed_id: u32) -> String {
    let thread = analysis.threads.iter().find(|thread| thread.thread.managed_id == managed_id);
    thread.map_or_else(|| format!("{managed_id} (managed)"), label)
}

#[derive(Debug, Serialize)]
struct Report {
    runtime: String,
    locks: Vec<Lock>,
    /// The threads and `async` methods that wait for one another, each cycle once.
    deadlocks: Vec<Vec<DeadlockRow>>,
    waits: Vec<Wait>,
    /// True if the dump lacks a part of the monitors, or their holders are unknown in this version.
    incomplete: bool,
}

/// A thread or a suspended `async` method of a deadlock.
#[derive(Debug, Serialize)]
pub(crate) struct DeadlockRow {
    /// `None` of an `async` method.
    tid: Option<u64>,
    name: Option<String>,
    /// The `async` method, with the line of its `await`.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#async: Option<String>,
    /// `monitor`, `lock`, `reader_writer_lock`, `mutex`, `semaphore`, `event`, `barrier`, `countdown`,
    /// `collection`, `thread`, `task`, or `task_in_context` of a task that goes on in the thread's own
    /// SynchronizationContext.
    kind: &'static str,
    /// The object that it waits for.
    object: String,
    r#type: Option<String>,
    /// The thread that holds it, that runs the task, or that could signal it.
    owner_tid: Option<u64>,
    /// The `async` method that could signal it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_async: Option<String>,
    /// The object at the end of the awaits of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaits: Option<String>,
    /// The number of other tasks that have to end, too (`Task.WaitAll`).
    #[serde(skip_serializing_if = "Option::is_none")]
    other_tasks: Option<NonZeroUsize>,
    /// The number of other handles that it waits for (`WaitHandle.WaitAny`, `WaitAll`).
    #[serde(skip_serializing_if = "Option::is_none")]
    other_handles: Option<NonZeroUsize>,
    /// True if the object does not state which thread will signal it.
    likely: bool,
}

/// The threads that wait for one another, each cycle once.
pub(crate) fn deadlock_rows(analysis: &Analysis<'_>, waits: &ThreadWaits) -> Vec<Vec<DeadlockRow>> {
    let tid = |index: usize| analysis.threads.get(index).map(|thread| thread.thread.os_id);
    let row = |(thread, wait, owner): (usize, &ThreadWait, usize)| DeadlockRow {
        tid: tid(thread),
        r#async: suspended_method(analysis, waits, thread),
        name: analysis.threads.get(thread).and_then(|thread| thread.name.clone()),
        kind: wait_words::name(wait.kind),
        object: format!("{:#x}", wait.object),
        r#type: analysis.dump.heap().type_name(wait.object).map(|name| name.to_string()),
        owner_tid: tid(owner),
        owner_async: suspended_method(analysis, waits, owner),
        awaits: wait.awaited.map(|awaited| format!("{awaited:#x}")),
        other_tasks: NonZeroUsize::new(wait.others.len()).filter(|_| is_task(wait)),
        other_handles: NonZeroUsize::new(wait.others.len()).filter(|_| !is_task(wait)),
        likely: wait.is_any(),
    };
    let cycles = waits.deadlocks().into_iter();
    cycles.map(|cycle| cycle.into_iter().map(row).collect()).collect()
}

#[derive(Debug, Default, Serialize)]
struct Lock {
    object: String,
    r#type: Option<String>,
    owner_tid: Option<u64>,
    owner_managed_id: Option<u32>,
    /// The threads that wait to enter it.
    waiting_tids: Vec<u64>,
    waiters: u32,
    /// The reason, if the holder is unknown.
    holder_unknown: Option<&'static str>,
    /// The state of an object other than a monitor, in numbers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    state: BTreeMap<&'static str, u64>,
    /// The threads that could let the waiters go on, where the object does not state a holder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    could_signal_tids: Vec<u64>,
    /// The suspended `async` methods that could.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    could_signal_async: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Wait {
    tid: u64,
    /// `enter` or `pulse` of a monitor, or the kind of another object as in deadlocks.
    kind: &'static str,
    /// The object of the monitor, if the dump has it.
    object: Option<String>,
}

impl Report {
    fn new(
        analysis: &Analysis<'_>,
        monitors: &Monitors,
        heap: Option<&HeapStatistics>,
        waits: &ThreadWaits,
        held: &[HeldLock],
    ) -> Self {
        let thread = |index: usize| analysis.threads.get(index).map(|thread| &thread.thread);
        let type_of = |object: Address| analysis.dump.heap().type_name(object).map(|name| name.to_string());
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
                ..Lock::default()
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
                ..Lock::default()
            }
        });
        let waiting_tids = |object: Address| -> Vec<u64> {
            waiting_for(waits, object).filter_map(|index| Some(thread(index)?.os_id)).collect()
        };
        let others = held.iter().map(|lock| {
            let owner = lock.owners.first().and_then(|index| thread(*index));
            let waiting_tids = waiting_tids(lock.object);
            Lock {
                object: format!("{:#x}", lock.object),
                r#type: type_of(lock.object),
                owner_tid: owner.map(|thread| thread.os_id),
                owner_managed_id: owner.map(|thread| thread.managed_id),
                waiters: u32::try_from(waiting_tids.len()).unwrap_or(u32::MAX),
                waiting_tids,
                ..Lock::default()
            }
        });
        let signaled = waits.signaled().map(|(object, of)| {
            let waiting_tids = waiting_tids(object);
            Lock {
                object: format!("{object:#x}"),
                r#type: type_of(object),
                owner_tid: None,
                owner_managed_id: None,
                waiters: u32::try_from(waiting_tids.len()).unwrap_or(u32::MAX),
                waiting_tids,
                holder_unknown: wait_words::holder_unknown(of.kind),
                state: analysis.dump.heap().wait_state(object).into_iter().collect(),
                could_signal_async: of
                    .owners
                    .iter()
                    .filter_map(|of| suspended_method(analysis, waits, *of))
                    .collect(),
                could_signal_tids: of.owners.iter().filter_map(|of| Some(thread(*of)?.os_id)).collect(),
            }
        });
        let all_waits = analysis.threads.iter().flat_map(|thread| {
            thread.monitor_waits.iter().map(|wait| Wait {
                tid: thread.thread.os_id,
                kind: match wait.kind {
                    WaitKind::Enter => "enter",
                    WaitKind::Pulse => "pulse",
                },
                object: monitors.at(wait.monitor).map(|monitor| format!("{:#x}", monitor.object)),
            })
        });
        // ThreadWaits for objects other than monitors.
        let of_others = waits.iter().filter(|(_, wait)| wait.kind != WaitedFor::Monitor);
        let of_others = of_others.filter_map(|(index, wait)| {
            let object = Some(format!("{:#x}", wait.object));
            Some(Wait { tid: thread(index)?.os_id, kind: wait_words::name(wait.kind), object })
        });
        Self {
            runtime: analysis.dump.runtime().version().to_owned(),
            locks: with_blocks.chain(thin).chain(others).chain(signaled).collect(),
            deadlocks: deadlock_rows(analysis, waits),
            waits: all_waits.chain(of_others).collect(),
            incomplete: monitors.is_incomplete || heap.is_none_or(|heap| !heap.walk.gaps.is_empty()),
        }
    }
}
