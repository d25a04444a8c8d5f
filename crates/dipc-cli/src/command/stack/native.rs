//! Stacks with native and kernel frames: running threads are sampled by the kernel for a moment, and the
//! stacks of waiting ones are read from the memory of the process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use dipc_client::{KernelThread, ProcessView, Target};
use indexmap::IndexMap;
use nettrace::Event;
use nettrace_export::{Metric, Options, Profile, ProfileBuilder};
use serde::Serialize;

use crate::command::stack::{StackArgs, StackFormat};
use crate::exit::{Exit, Outcome};
use crate::record::kernel_samples::{Activity, ThreadSnapshot, snapshot};
use crate::record::names::for_each_method;
use crate::record::notes::Messages;
use crate::render::escape::escape_controls;
use crate::render::{messages, output, width};

/// The time for which running threads are sampled.
const DURATION: Duration = Duration::from_millis(50);

/// A thread with its stack.
#[derive(Debug, Serialize)]
struct NativeThread {
    tid: u64,
    name: String,
    /// `running`, `waiting`, `stopped` or `unknown`.
    state: &'static str,
    /// The kernel's letter for the state.
    kernel_state: char,
    /// The function of the kernel that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_function: Option<String>,
    /// The number of the system call that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_call: Option<u64>,
    /// The reason why the stack cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The frames, leaf first.
    frames: Vec<NativeFrame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
struct NativeFrame {
    /// `kernel`, or `user` for native and managed code.
    space: &'static str,
    frame: String,
    csharp: String,
}

#[derive(Debug, Serialize)]
struct Report<'t> {
    pid: u32,
    threads: &'t [NativeThread],
}

/// Shows the stacks of a process once. `target` is its runtime, if any, which lists the methods.
pub(super) fn show(args: &StackArgs, pid: u32, target: Option<&Target>) -> Outcome {
    let form = args.name_form();
    let builder = || {
        let options = Options::new(Metric::Cpu).with_tracks(false).with_kinds(false).with_names(form);
        ProfileBuilder::new(options.with_grouping(args.grouping()))
    };
    let (mut running, mut waiting) = (builder(), builder());
    let taken = snapshot(pid, DURATION, &mut Messages, |event, is_waiting| {
        let is_sample = event.provider() == "Universal.Events";
        if !is_sample || !is_waiting {
            running.add(event);
        }
        if !is_sample || is_waiting {
            waiting.add(event);
        }
    })?;
    // At once: listing the methods takes time, and the states change meanwhile.
    let names: BTreeMap<u64, KernelThread> = ProcessView::of(pid)
        .threads()
        .unwrap_or_default()
        .into_iter()
        .map(|thread| (thread.id, thread))
        .collect();
    let mut exit = Exit::Done;
    let add = |event: &Event<'_>| {
        running.code_mut().add(event);
        waiting.code_mut().add(event);
    };
    if let Some(target) = target.filter(|target| !target.is_native_aot().unwrap_or(false))
        && let Err(error) = for_each_method(target, || false, add)
    {
        messages::warning(format_args!("names of methods are missing: {error}"));
        exit = Exit::Incomplete;
    }
    let finish = |builder: ProfileBuilder| crate::inspect::profile::finish(builder, None);
    let (running, _) = finish(running)?;
    let (waiting, _) = finish(waiting)?;
    let threads: Vec<_> = taken
        .iter()
        .map(|thread| {
            let profile = if thread.is_waiting() { &waiting } else { &running };
            native_thread(thread, profile, names.get(&thread.id))
        })
        .collect();
    match args.format {
        StackFormat::Json => output::print_json(&Report { pid, threads: &threads })?,
        _ => output::print(table(&threads, width::of_output()))?,
    }
    Ok(exit)
}

fn native_thread(taken: &ThreadSnapshot, profile: &Profile, kernel: Option<&KernelThread>) -> NativeThread {
    let kernel_state = kernel.map_or('?', |kernel| kernel.state);
    let mut thread = NativeThread {
        tid: taken.id,
        name: kernel.map(|kernel| kernel.name.clone()).unwrap_or_default(),
        state: "running",
        kernel_state,
        kernel_function: None,
        system_call: None,
        error: None,
        frames: Vec::new(),
    };
    match &taken.activity {
        Activity::Running => {}
        Activity::Waiting { system_call, function, kernel_frames } => {
            thread.state = if matches!(kernel_state, 'T' | 't') { "stopped" } else { "waiting" };
            thread.system_call = *system_call;
            thread.kernel_function.clone_from(function);
            // Root sees the whole stack of the kernel, others its last function.
            let names = if kernel_frames.is_empty() { function.as_slice() } else { kernel_frames };
            thread.frames.extend(names.iter().map(|name| {
                let frame = format!("vmlinux!{name}");
                NativeFrame { space: "kernel", csharp: frame.clone(), frame }
            }));
        }
        Activity::Unknown(reason) => {
            thread.state = "unknown";
            thread.error = Some(reason.clone());
        }
    }
    let of_thread = |total: &&nettrace_export::StackTotal| {
        profile.threads.get(total.thread.index()).is_some_and(|it| it.id == taken.id)
    };
    let most = profile.stack_totals.iter().filter(of_thread).max_by_key(|total| total.samples);
    if let Some(stack) = most.and_then(|total| total.stack) {
        thread.frames.extend(profile.stacks.frames(stack).map(|frame| {
            let full = profile.frames.full_name(frame);
            NativeFrame {
                space: if full.starts_with("vmlinux!") { "kernel" } else { "user" },
                csharp: profile.frames.name(frame).to_owned(),
                frame: full.to_owned(),
            }
        }));
    }
    thread
}

/// The state of a thread, in words.
fn state(thread: &NativeThread) -> String {
    match (thread.state, &thread.kernel_function, thread.system_call) {
        ("running", ..) if thread.frames.is_empty() => "runs, and was not sampled".to_owned(),
        ("running", ..) => "runs".to_owned(),
        ("stopped", ..) => "is stopped by a signal or a debugger".to_owned(),
        ("waiting", Some(function), _) => format!("waits in the kernel, in {function}"),
        ("waiting", None, Some(number)) => format!("waits in the kernel, in system call {number}"),
        ("waiting", None, None) => "waits in the kernel".to_owned(),
        _ => thread.error.as_ref().map_or_else(|| "unknown".to_owned(), |error| format!("unknown: {error}")),
    }
}

/// Formats distinct stacks, each with its threads.
fn table(threads: &[NativeThread], width: Option<usize>) -> String {
    let mut groups: IndexMap<(String, &[NativeFrame]), Vec<&NativeThread>> = IndexMap::new();
    for thread in threads {
        groups.entry((state(thread), &thread.frames)).or_default().push(thread);
    }
    let mut text = String::new();
    for ((state, frames), threads) in &groups {
        let label = |thread: &&NativeThread| {
            let label = format!("{} {}", thread.tid, thread.name);
            escape_controls(label.trim_end()).into_owned()
        };
        let labels: Vec<_> = threads.iter().map(label).collect();
        let heading = match &labels[..] {
            [label] => format!("Thread {label}: {state}\n"),
            labels => format!("{} threads: {}: {state}\n", labels.len(), labels.join(", ")),
        };
        text.push_str(&width::wrapped(&heading, width));
        for frame in *frames {
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {}", width::cut(&escape_controls(&frame.csharp), room));
        }
        text.push('\n');
    }
    let count = |wanted: &str| threads.iter().filter(|thread| thread.state == wanted).count();
    let states = ["running", "waiting", "stopped", "unknown"];
    let states: Vec<_> = states
        .iter()
        .filter(|state| count(state) > 0)
        .map(|state| format!("{} {state}", count(state)))
        .collect();
    let _ = writeln!(text, "{} threads: {}", threads.len(), states.join(", "));
    text
}
