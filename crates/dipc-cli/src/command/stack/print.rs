//! Stacks as text and JSON.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use clr_events::ThreadState;
use dipc_client::KernelThread;
use dipc_collect::stacks::{SampledStack, ThreadSamples, ThreadStacks};
use indexmap::IndexMap;
use nettrace_export::report::{Deadlock, LockWait};
use nettrace_export::{FrameId, Frames, pseudo_frames};
use serde::Serialize;

use crate::command::dump::locks::DeadlockRow;
use crate::command::stack::memory::MemoryWaits;
use crate::command::stack::{StackArgs, StackFormat};
use crate::exit::Failure;
use crate::render::escape::escape_controls;
use crate::render::frame_name::FrameName;
use crate::render::{output, units, width};

/// The frame that stands for native code, as dotnet-stack writes it.
const NATIVE: &str = "[Native Frames]";

/// Prints the stacks. `kernel_threads` are the threads of a live process, as the kernel reports them, and
/// `waits` the waits found in its memory.
pub(super) fn print(
    args: &StackArgs,
    stacks: &ThreadStacks,
    kernel_threads: &[KernelThread],
    waits: Option<&MemoryWaits>,
) -> Result<(), Failure> {
    match args.format {
        StackFormat::Json => output::print_json(&report(stacks, kernel_threads, waits)),
        StackFormat::DotnetStack => output::print(dotnet_stack(stacks)),
        StackFormat::Table => {
            output::print(table(args.count, stacks, kernel_threads, waits, width::of_output()))
        }
    }
}

/// The text of `dotnet-stack report`: the first sample of each thread.
fn dotnet_stack(stacks: &ThreadStacks) -> String {
    let mut text = String::new();
    for thread in stacks.threads() {
        let _ = writeln!(text, "Thread (0x{:X}):", stacks.id(thread));
        let Some(stack) = thread.stacks.first() else { continue };
        let _ = writeln!(text, "  {}", if stack.is_managed { "CPU_TIME" } else { NATIVE });
        for frame in &stack.frames {
            let _ = writeln!(text, "  {}", escape_controls(stacks.frames().full_name(*frame)));
        }
        text.push('\n');
    }
    text
}

const WORKING: &str = "working";
const BLOCKED: &str = "blocked";
const READY: &str = "ready to run";
const IDLE: &str = "idle";
/// The state of a thread if neither the kernel nor the sample reveals it.
const UNKNOWN: &str = "working or waiting";

/// The state of a thread with a stack, in words.
fn state(stacks: &ThreadStacks, stack: &SampledStack, kernel: Option<&KernelThread>) -> &'static str {
    match stack.state {
        ThreadState::Blocked => BLOCKED,
        ThreadState::Ready => READY,
        ThreadState::Idle => IDLE,
        ThreadState::Working if !stacks.is_unverified() => WORKING,
        ThreadState::Working if kernel.is_some_and(|kernel| sleeps(kernel.state)) => BLOCKED,
        ThreadState::Working if stack.is_managed => WORKING,
        ThreadState::Working => UNKNOWN,
    }
}

/// Returns true if the kernel's state letter denotes a waiting thread.
const fn sleeps(state: char) -> bool {
    matches!(state, 'S' | 'I' | 'D')
}

/// Returns the thread as the kernel reports it.
fn kernel_thread<'k>(
    stacks: &ThreadStacks,
    thread: &ThreadSamples,
    kernel_threads: &'k [KernelThread],
) -> Option<&'k KernelThread> {
    let id = stacks.id(thread);
    kernel_threads.iter().find(|kernel| kernel.id == id)
}

/// Returns true if a stack belongs to a thread that waits for a `Monitor` or `Lock`, judged by the acquiring
/// method. On .NET 8 and 9, that method of `Monitor` lacks a frame.
fn waits_for_lock(frames: &Frames, stack: &[FrameId]) -> bool {
    let begins = |frame: FrameId, methods: [&str; 2]| {
        let (_, method) = frames.full_parts(frame);
        methods.iter().any(|prefix| method.starts_with(prefix))
    };
    let entered = stack
        .iter()
        .take(MAX_LOCK_FRAMES)
        .any(|frame| begins(*frame, ["System.Threading.Lock.Enter", "System.Threading.Lock.TryEnter"]));
    let monitor = ["System.Threading.Monitor.Enter", "System.Threading.Monitor.ReliableEnter"];
    entered || stack.first().is_some_and(|leaf| begins(*leaf, monitor))
}

/// The explanation of threads in an unknown state.
const CANNOT_TELL: &str = "These samples do not show whether threads outside managed code run or wait; the runtime of .NET 9 and early 10.0 puts all threads there. dipc trace keeps the kernel's accounting next to a recording\n";

/// The line between the work of a task and the stack that created it.
const CREATED_BY: &str = "[created by]";

/// Maximum number of lock waits to show with their owners.
const MAX_WAITS: usize = 20;

/// Maximum number of frames from the leaf to search for the method that acquires a lock.
const MAX_LOCK_FRAMES: usize = 4;

/// The kernel's state of a thread, in words.
const fn kernel_state(state: char) -> &'static str {
    match state {
        'R' => "running",
        'S' | 'I' => "sleeping",
        'D' => "in the kernel",
        'T' | 't' => "stopped",
        'Z' | 'X' => "ended",
        _ => "unknown",
    }
}

/// The number and the name of a thread.
fn label(stacks: &ThreadStacks, thread: &ThreadSamples, kernel_threads: &[KernelThread]) -> String {
    let id = stacks.id(thread);
    let kernel = kernel_thread(stacks, thread, kernel_threads);
    let name = kernel.map(|kernel| Cow::from(&kernel.name)).or_else(|| stacks.name(thread));
    name.map_or_else(|| id.to_string(), |name| format!("{id} {name}"))
}

/// The key for grouping equal stacks of several threads.
type StackKey<'s> = (&'static str, bool, &'s [FrameId]);

/// Distinct stacks with their threads, in the order of threads, or by samples if there are many.
fn table(
    count: u64,
    stacks: &ThreadStacks,
    kernel_threads: &[KernelThread],
    waits: Option<&MemoryWaits>,
    width: Option<usize>,
) -> String {
    let mut groups: IndexMap<StackKey<'_>, (Vec<&ThreadSamples>, u64)> = IndexMap::new();
    for thread in stacks.threads() {
        let kernel = kernel_thread(stacks, thread, kernel_threads);
        for stack in &thread.stacks {
            let state = state(stacks, stack, kernel);
            let group = groups.entry((state, stack.is_managed, &stack.frames)).or_default();
            group.0.push(thread);
            group.1 += stack.samples;
        }
    }
    let all: u64 = stacks.threads().iter().map(|thread| thread.samples).sum();
    if count > 1 {
        groups.sort_by(|_, (_, some), _, (_, others)| others.cmp(some));
    }
    let mut text = String::new();
    // A thread with several stacks counts once.
    let mut waiting_for_locks = BTreeSet::new();
    for ((thread_state, is_managed, frames), (threads, samples)) in &groups {
        let labels: Vec<_> = threads
            .iter()
            .map(|thread| escape_controls(&label(stacks, thread, kernel_threads)).into_owned())
            .collect();
        let of_threads = match &labels[..] {
            [label] => format!("Thread {label}"),
            labels => format!("{} threads: {}", labels.len(), labels.join(", ")),
        };
        let share = if count > 1 {
            format!("{} of the samples, ", units::percent(units::share(*samples, all)))
        } else {
            String::new()
        };
        let lock = if waits_for_lock(stacks.frames(), frames) {
            waiting_for_locks
                .extend(threads.iter().map(|thread| (stacks.process(thread), stacks.id(thread))));
            " (waits for a lock)"
        } else {
            ""
        };
        let heading = format!("{share}{of_threads}: {thread_state}{lock}\n");
        text.push_str(&width::wrapped(&heading, width));
        if !is_managed {
            let _ = writeln!(text, "  {NATIVE}");
        }
        for frame in *frames {
            let _ = writeln!(text, "  {}", frame_name(stacks.frames(), *frame, width));
        }
        text.push('\n');
    }
    let of = |wanted: &str| {
        groups
            .iter()
            .filter(|((state, ..), _)| *state == wanted)
            .map(|(_, (threads, _))| threads.len())
            .sum::<usize>()
    };
    let threads = stacks.threads().len();
    let sum = if count > 1 {
        format!("{} samples of {threads} threads\n", units::count(all))
    } else {
        let states = [WORKING, BLOCKED, READY, IDLE, UNKNOWN].into_iter();
        // Few samples can have these states.
        let states = states.filter(|state| ![READY, UNKNOWN].contains(state) || of(state) > 0);
        let states: Vec<_> = states.map(|state| format!("{} {state}", of(state))).collect();
        format!("{threads} threads: {}\n", states.join(", "))
    };
    text.push_str(&sum);
    if of(UNKNOWN) > 0 {
        text.push_str(&width::wrapped(CANNOT_TELL, width));
    }
    let locks = stacks.locks();
    for wait in locks.unfinished_waits.iter().take(MAX_WAITS) {
        if let Some(owner) = wait.owner() {
            let thread = wait.thread();
            let _ = writeln!(text, "Thread {thread} waits for a lock of {owner} to the end of the recording");
        }
    }
    for deadlock in &locks.deadlocks {
        text.push_str(&width::wrapped(&format!("Deadlock: {deadlock}\n"), width));
    }
    if let Some(waits) = waits {
        return text + &waits.text();
    }
    let waiting = waiting_for_locks.len();
    if waiting > 1 && locks.unfinished_waits.is_empty() {
        text.push_str(&width::wrapped(&format!("{waiting} threads wait for locks: if these stacks do not change, look for a thread that holds what another waits for\n"), width));
    }
    text
}

/// The name of a frame, shortened to the width.
fn frame_name(frames: &Frames, frame: FrameId, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
    let name = match frames.name(frame) {
        pseudo_frames::STARTING_TASK => CREATED_BY,
        name => name,
    };
    if frames.short_name(frame).is_some() {
        FrameName::new(frames, Some(frame), name).fit(room)
    } else {
        width::cut(&escape_controls(name), room)
    }
}

#[derive(Debug, Serialize)]
struct Report<'s> {
    threads: Vec<ThreadReport<'s>>,
    /// Unfinished lock waits, if contention events show them.
    lock_waits: &'s [LockWait],
    deadlocks: &'s [Deadlock],
    /// The threads that wait for one another by the memory of the process, each cycle once; none if it cannot
    /// be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_deadlocks: Option<&'s [Vec<DeadlockRow>]>,
}

#[derive(Debug, Serialize)]
struct ThreadReport<'s> {
    tid: u64,
    /// The process, in recordings of several processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u64>,
    /// The kernel's name for the thread, or its role according to the recording.
    name: Option<Cow<'s, str>>,
    /// The kernel's state of the thread: also running if it ran while it was sampled and sleeps again now.
    kernel_state: Option<&'static str>,
    samples: u64,
    stacks: Vec<StackReport<'s>>,
}

#[derive(Debug, Serialize)]
struct StackReport<'s> {
    samples: u64,
    state: &'static str,
    managed: bool,
    /// The frames, leaf first.
    frames: Vec<FrameReport<'s>>,
}

#[derive(Debug, Serialize)]
struct FrameReport<'s> {
    /// The name as TraceEvent writes it.
    frame: &'s str,
    /// The name in C# form; the same as `frame` if that is not a method.
    csharp: &'s str,
}

fn report<'s>(
    stacks: &'s ThreadStacks,
    kernel_threads: &'s [KernelThread],
    waits: Option<&'s MemoryWaits>,
) -> Report<'s> {
    let frame = |frame: &FrameId| FrameReport {
        frame: stacks.frames().full_name(*frame),
        csharp: stacks.frames().name(*frame),
    };
    let thread = |thread: &'s ThreadSamples| {
        let tid = stacks.id(thread);
        let kernel = kernel_thread(stacks, thread, kernel_threads);
        let stack = |stack: &'s SampledStack| StackReport {
            samples: stack.samples,
            state: state(stacks, stack, kernel),
            managed: stack.is_managed,
            frames: stack.frames.iter().map(frame).collect(),
        };
        let reports: Vec<_> = thread.stacks.iter().map(stack).collect();
        let ran = reports.iter().any(|stack| stack.state == WORKING);
        let letter = |kernel: &KernelThread| if ran && sleeps(kernel.state) { 'R' } else { kernel.state };
        ThreadReport {
            tid,
            pid: stacks.process(thread),
            name: kernel.map(|kernel| Cow::from(&kernel.name)).or_else(|| stacks.name(thread)),
            kernel_state: kernel.map(|kernel| kernel_state(letter(kernel))),
            samples: thread.samples,
            stacks: reports,
        }
    };
    Report {
        threads: stacks.threads().iter().map(thread).collect(),
        lock_waits: &stacks.locks().unfinished_waits,
        deadlocks: &stacks.locks().deadlocks,
        memory_deadlocks: waits.map(|waits| &*waits.deadlocks),
    }
}
