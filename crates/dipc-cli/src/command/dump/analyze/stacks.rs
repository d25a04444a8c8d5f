//! `dipc dump analyze CORE stacks`.

use std::fmt::Write as _;

use clr_dump::{Address, FramePosition, Gap, Stack};
use indexmap::IndexMap;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::args::format::Format;
use crate::exit::Failure;
use crate::inspect::core_dump::{Analysis, ManagedThread, NativeThread};
use crate::inspect::core_lines::FrameLine;
use crate::inspect::core_text::{FrameKind, FrameText};
use crate::render::escape::escape_controls;
use crate::render::frame_name::fit_csharp;
use crate::render::{output, units, width};

pub(crate) fn print(analysis: &Analysis<'_>, shown: Shown, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::print_json(&Report::new(analysis, shown)),
        Format::Table => output::print(text(analysis, shown, width::of_output())),
    }
}

/// The frames that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Managed,
    /// Managed and native frames, of all threads.
    All,
    /// Managed and native frames, with runs of unnamed native frames folded.
    Folded,
}

impl Shown {
    /// Native frames are shown if that is asked for.
    pub(crate) const fn with_native(native: bool) -> Self {
        if native { Self::All } else { Self::Managed }
    }

    pub(super) fn has(self, frame: &FrameText) -> bool {
        self != Self::Managed || frame.is_managed()
    }
}

/// A thread with its frames.
pub(super) struct Shape<'t> {
    pub(super) label: String,
    pub(super) tid: u64,
    pub(super) managed_id: Option<u32>,
    pub(super) stack: &'t Stack,
    pub(super) frames: &'t [FrameText],
}

/// Threads with frames or with missing frames, grouped by equal stacks, in the order of the threads.
pub(super) fn groups<'t>(analysis: &'t Analysis<'_>, shown: Shown) -> Vec<Vec<Shape<'t>>> {
    let natives = if shown == Shown::Managed { &[] } else { &*analysis.native_threads };
    let managed = analysis.threads.iter().map(|thread| Shape {
        label: label(thread),
        tid: thread.thread.os_id,
        managed_id: Some(thread.thread.managed_id),
        stack: &thread.stack,
        frames: &thread.frames,
    });
    let natives = natives.iter().map(Shape::native);
    let mut groups: IndexMap<(Vec<Address>, Vec<_>), Vec<Shape<'_>>> = IndexMap::new();
    for thread in managed.chain(natives) {
        let addresses: Vec<_> =
            thread.frames.iter().filter(|frame| shown.has(frame)).map(|frame| frame.ip).collect();
        let gaps: Vec<_> = shown_gaps(thread.stack, shown).map(|(at, gap)| (*at, gap.to_string())).collect();
        if !addresses.is_empty() || !gaps.is_empty() {
            groups.entry((addresses, gaps)).or_default().push(thread);
        }
    }
    groups.into_values().collect()
}

impl<'t> Shape<'t> {
    pub(super) fn native(thread: &'t NativeThread) -> Self {
        Self {
            label: format!("{} (native)", thread.tid),
            tid: thread.tid.into(),
            managed_id: None,
            stack: &thread.stack,
            frames: &thread.frames,
        }
    }
}

/// The heading of threads that have the same stack.
pub(super) fn group_heading(group: &[Shape<'_>]) -> String {
    let labels: Vec<_> = group.iter().map(|thread| &*thread.label).collect();
    match &labels[..] {
        [label] => format!("Thread {label}\n"),
        labels => format!("{} threads: {}\n", labels.len(), labels.join(", ")),
    }
}

/// Formats distinct stacks, each with its threads.
pub(super) fn text(analysis: &Analysis<'_>, shown: Shown, width: Option<usize>) -> String {
    let mut text = String::new();
    for group in groups(analysis, shown) {
        text.push_str(&width::wrapped(&group_heading(&group), width));
        let Some(first) = group.first() else { continue };
        text.push_str(&frames(first.stack, first.frames, shown, width));
        text.push('\n');
    }
    text.push_str(&thread_counts(analysis));
    text
}

/// The number of threads.
pub(super) fn thread_counts(analysis: &Analysis<'_>) -> String {
    let has_managed = |thread: &&ManagedThread| thread.frames.iter().any(FrameText::is_managed);
    let threads = &analysis.threads;
    let without = threads.iter().filter(|thread| !has_managed(thread)).count();
    format!("{} managed threads, {without} of them without managed frames\n", threads.len())
}

/// The number and the name of a thread.
pub(super) fn label(thread: &ManagedThread) -> String {
    let id = match thread.thread.os_id {
        0 => format!("{} (managed)", thread.thread.managed_id),
        id => id.to_string(),
    };
    match &thread.name {
        Some(name) => format!("{id} {}", escape_controls(name)),
        None => id,
    }
}

/// The label of a thread with its innermost method of the user's code.
pub(super) fn label_with_method(thread: &ManagedThread) -> String {
    let frame = thread.frames.iter().find(|frame| frame.is_user_code);
    let method = frame
        .map_or_else(String::new, |frame| format!(" in {}", fitted_name(frame, METHOD_WIDTH) + &line(frame)));
    label(thread) + &method
}

/// Minimum width of the name of a frame with a source line.
const MIN_NAME_WIDTH: usize = 16;
/// The width of a method after the label of a thread.
const METHOD_WIDTH: usize = 60;

/// The gaps of the frames that are shown.
pub(super) fn shown_gaps(stack: &Stack, shown: Shown) -> impl Iterator<Item = &(usize, Gap)> {
    stack.gaps.iter().filter(move |(_, gap)| shown != Shown::Managed || !gap.is_native())
}

/// Maximum length of a repeated sequence of frames to fold.
const MAX_CYCLE_LENGTH: usize = 8;
/// Minimum number of repetitions to fold.
const MIN_REPETITIONS: usize = 4;

/// The frames of a thread, with the places where some may be missing. Repetitions of a recursion are counted.
pub(super) fn frames(stack: &Stack, frames: &[FrameText], shown: Shown, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
    let mut text = String::new();
    let mut index = 0;
    while index <= frames.len() {
        for (_, gap) in shown_gaps(stack, shown).filter(|(at, _)| *at == index) {
            let _ = writeln!(text, "  [frames may be missing: {gap}]");
        }
        let is_interrupted = |frame: &clr_dump::Frame| frame.position == FramePosition::Innermost;
        if shown != Shown::Managed && index > 0 && stack.frames.get(index).is_some_and(is_interrupted) {
            text.push_str("  [interrupted by a signal or a fault]\n");
        }
        // Repetitions are counted up to the next gap.
        let gaps = stack.gaps.iter().map(|(at, _)| *at);
        let end = gaps.filter(|at| *at > index).min().unwrap_or(frames.len()).min(frames.len());
        let rest = frames.get(index..end).unwrap_or_default();
        if shown == Shown::Folded && is_tail(stack, frames, index) {
            let _ = writeln!(text, "  [{} native frames up to the start of the thread]", rest.len());
            break;
        }
        if let Some((count, module)) = nameless_run(rest, stack, index).filter(|_| shown == Shown::Folded) {
            let _ = writeln!(text, "  [{count} frames of {}]", escape_controls(module));
            index += count;
            continue;
        }
        let (cycle, repetitions) = repetition(rest);
        let step = if repetitions < MIN_REPETITIONS { 1 } else { cycle };
        for frame in rest.iter().take(step).filter(|frame| shown.has(frame)) {
            let _ = writeln!(text, "  {}", fitted(frame, room));
        }
        if step == cycle && repetitions >= MIN_REPETITIONS {
            let again = units::counted(repetitions as u64 - 1, "time", "times");
            let what = if cycle == 1 { "this frame".to_owned() } else { format!("these {cycle} frames") };
            let _ = writeln!(text, "  [{what} again {again}]");
            index += cycle * repetitions;
        } else {
            index += 1;
        }
    }
    text
}

/// Returns true if several native frames are the last ones of a thread that has managed frames, and none of
/// them is missing.
fn is_tail(stack: &Stack, frames: &[FrameText], index: usize) -> bool {
    let rest = frames.get(index..).unwrap_or_default();
    index > 0
        && rest.len() > 1
        && !rest.iter().any(FrameText::is_managed)
        && frames.iter().any(FrameText::is_managed)
        && stack.gaps.iter().all(|(at, _)| *at < index)
        && (index..frames.len())
            .all(|at| stack.frames.get(at).is_none_or(|frame| frame.position != FramePosition::Innermost))
}

/// The native frames without names of one file at the beginning of frames, if there are several, and the
/// name of the file. Frames that a signal has interrupted begin another run.
fn nameless_run<'f>(frames: &'f [FrameText], stack: &Stack, index: usize) -> Option<(usize, &'f str)> {
    let module = frames.first()?.module.as_deref()?;
    let is_of_run = |(at, frame): &(usize, &FrameText)| {
        let is_interrupted = *at > index
            && stack.frames.get(*at).is_some_and(|frame| frame.position == FramePosition::Innermost);
        !frame.is_managed()
            && frame.name.is_none()
            && frame.module.as_deref() == Some(module)
            && !is_interrupted
    };
    let count = (index..).zip(frames).take_while(is_of_run).count();
    (count > 1).then_some((count, module))
}

/// The length of the sequence that frames begin with, and the number of times that it is there. Frames of a
/// recursion differ in their first address, which is not a return address.
fn repetition(frames: &[FrameText]) -> (usize, usize) {
    let repetitions = |cycle: usize| {
        let first = frames.get(..cycle).unwrap_or_default();
        frames.chunks_exact(cycle).take_while(|part| *part == first).count()
    };
    (1..=MAX_CYCLE_LENGTH)
        .map(|cycle| (cycle, repetitions(cycle)))
        .find(|(_, repetitions)| *repetitions >= MIN_REPETITIONS)
        .unwrap_or((1, 1))
}

/// The name of a frame with its source line, shortened to `room` columns. The line stays whole if there is
/// room for a short name.
pub(super) fn fitted(frame: &FrameText, room: usize) -> String {
    let line = line(frame);
    match room.checked_sub(line.width()).filter(|room| *room >= MIN_NAME_WIDTH) {
        Some(room) => fitted_name(frame, room) + &line,
        None => fitted_name(frame, room),
    }
}

/// The source line of a frame; empty if it is unknown.
fn line(frame: &FrameText) -> String {
    let line = frame.line.as_ref().map(FrameLine::suffix).unwrap_or_default();
    escape_controls(&line).into_owned()
}

fn fitted_name(frame: &FrameText, room: usize) -> String {
    let name = escape_controls(&name(frame)).into_owned();
    let name = if frame.is_managed() { fit_csharp(&name, room) } else { name };
    width::cut(&name, room)
}

/// The name of a frame without its namespace; for an unnamed frame, its other known data.
pub(super) fn name(frame: &FrameText) -> String {
    let offset = if let FrameKind::Native { offset } = frame.kind { offset } else { None };
    match (&frame.name, &frame.module, frame.token) {
        (Some(name), Some(module), _) if !frame.is_managed() => format!("{module}!{}", name.short()),
        (Some(name), ..) => name.short().to_owned(),
        (None, Some(module), Some(token)) => format!("{module}!0x{token:08x}"),
        (None, Some(module), None) if offset.is_some() => {
            format!("{module}+{:#x}", offset.unwrap_or_default())
        }
        _ if frame.is_dynamic => format!("{:#x} (a method made in memory)", frame.ip),
        _ => format!("{:#x}", frame.ip),
    }
}

#[derive(Debug, Serialize)]
struct Report<'r> {
    runtime: &'r str,
    threads: Vec<ThreadReport<'r>>,
    /// Threads that the runtime does not know; with native frames only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    native_threads: Vec<NativeReport<'r>>,
}

#[derive(Debug, Serialize)]
pub(super) struct NativeReport<'r> {
    tid: u32,
    /// Innermost first.
    frames: Vec<FrameReport<'r>>,
    /// Places where frames may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<GapReport>,
}

#[derive(Debug, Serialize)]
pub(super) struct ThreadReport<'r> {
    tid: Option<u64>,
    managed_id: u32,
    name: Option<&'r str>,
    /// Innermost first.
    frames: Vec<FrameReport<'r>>,
    /// Places where frames may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<GapReport>,
}

#[derive(Debug, Serialize)]
pub(super) struct FrameReport<'r> {
    /// `managed` or `native`.
    kind: &'static str,
    address: String,
    /// None if the memory lacks it.
    method: Option<&'r str>,
    module: Option<&'r str>,
    token: Option<String>,
    /// The offset in the method's IL, if the runtime's map of its code is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    il_offset: Option<u32>,
    /// The source file as it was given to the compiler, if a PDB of the module was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// The offset of native code in its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<String>,
}

impl<'r> FrameReport<'r> {
    pub(super) fn new(frame: &'r FrameText) -> Self {
        let offset = match frame.kind {
            FrameKind::Native { offset } => offset,
            FrameKind::Managed => None,
        };
        Self {
            kind: if frame.is_managed() { "managed" } else { "native" },
            offset: offset.map(|offset| format!("{offset:#x}")),
            address: format!("{:#x}", frame.ip),
            method: frame.name.as_ref().map(|name| &*name.text),
            module: frame.module.as_deref(),
            token: frame.token.map(|token| format!("0x{token:08x}")),
            il_offset: frame.il_offset,
            file: frame.line.as_ref().map(|line| &*line.file),
            line: frame.line.as_ref().map(|line| line.line),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct GapReport {
    before_frame: usize,
    cause: String,
}

impl<'r> Report<'r> {
    fn new(analysis: &'r Analysis<'_>, shown: Shown) -> Self {
        Self {
            runtime: analysis.dump.runtime().version(),
            threads: analysis.threads.iter().map(|thread| ThreadReport::new(thread, shown)).collect(),
            native_threads: match shown {
                Shown::All | Shown::Folded => analysis.native_threads.iter().map(NativeReport::new).collect(),
                Shown::Managed => Vec::new(),
            },
        }
    }
}

impl<'r> ThreadReport<'r> {
    pub(super) fn new(of: &'r ManagedThread, shown: Shown) -> Self {
        Self {
            tid: Some(of.thread.os_id).filter(|tid| *tid != 0),
            managed_id: of.thread.managed_id,
            name: of.name.as_deref(),
            frames: of.frames.iter().filter(|frame| shown.has(frame)).map(FrameReport::new).collect(),
            gaps: gaps(&of.stack, &of.frames, shown),
        }
    }
}

impl<'r> NativeReport<'r> {
    pub(super) fn new(thread: &'r NativeThread) -> Self {
        Self {
            tid: thread.tid,
            frames: thread.frames.iter().map(FrameReport::new).collect(),
            gaps: gaps(&thread.stack, &thread.frames, Shown::All),
        }
    }
}

/// The gaps, with the index of the shown frame after each.
pub(super) fn gaps(stack: &Stack, frames: &[FrameText], shown: Shown) -> Vec<GapReport> {
    shown_gaps(stack, shown)
        .map(|(at, gap)| {
            let before = frames.iter().take(*at).filter(|frame| shown.has(frame));
            GapReport { before_frame: before.count(), cause: gap.to_string() }
        })
        .collect()
}
