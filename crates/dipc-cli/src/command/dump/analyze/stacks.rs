//! `dipc dump analyze CORE stacks`.

use std::fmt::Write as _;

use indexmap::IndexMap;
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::Failure;
use crate::inspect::core_dump::{Analysis, FrameText, ManagedThread};
use crate::render::escape::escape_controls;
use crate::render::{output, width};

pub(super) fn print(analysis: &Analysis<'_>, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::print_json(&Report::new(analysis)),
        Format::Table => output::print(text(&analysis.threads, width::of_output())),
    }
}

/// Each stack once, with the threads that have it.
pub(super) fn text(threads: &[ManagedThread], width: Option<usize>) -> String {
    let mut groups: IndexMap<Vec<u64>, Vec<&ManagedThread>> = IndexMap::new();
    for thread in threads.iter().filter(|thread| !thread.frames.is_empty()) {
        groups.entry(thread.frames.iter().map(|frame| frame.ip).collect()).or_default().push(thread);
    }
    let mut text = String::new();
    for group in groups.values() {
        let labels: Vec<_> = group.iter().map(|thread| label(thread)).collect();
        let heading = match &labels[..] {
            [label] => format!("Thread {label}\n"),
            labels => format!("{} threads: {}\n", labels.len(), labels.join(", ")),
        };
        text.push_str(&width::wrapped(&heading, width));
        let Some(first) = group.first() else { continue };
        text.push_str(&frames(first, width));
        text.push('\n');
    }
    let without = threads.iter().filter(|thread| thread.frames.is_empty()).count();
    let _ = writeln!(text, "{} managed threads, {without} of them without managed frames", threads.len());
    text
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

/// The frames of a thread, with the places where some may be missing.
pub(super) fn frames(thread: &ManagedThread, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
    let mut text = String::new();
    for index in 0..=thread.frames.len() {
        for (_, gap) in thread.stack.gaps.iter().filter(|(at, _)| *at == index) {
            let _ = writeln!(text, "  [frames may be missing: {gap}]");
        }
        if let Some(frame) = thread.frames.get(index) {
            let _ = writeln!(text, "  {}", width::cut(&escape_controls(&name(frame)), room));
        }
    }
    text
}

/// The name of a frame without its namespace, or what is known without a name.
pub(super) fn name(frame: &FrameText) -> String {
    match (&frame.name, &frame.module, frame.token) {
        (Some(name), ..) => name.short().to_owned(),
        (None, Some(module), Some(token)) => format!("{module}!0x{token:08x}"),
        _ if frame.is_dynamic => format!("{:#x} (a method made in memory)", frame.ip),
        _ => format!("{:#x}", frame.ip),
    }
}

#[derive(Debug, Serialize)]
struct Report<'r> {
    runtime: &'r str,
    threads: Vec<ThreadReport<'r>>,
}

#[derive(Debug, Serialize)]
struct ThreadReport<'r> {
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
    address: String,
    /// None if the memory lacks it.
    method: Option<&'r str>,
    module: Option<&'r str>,
    token: Option<String>,
}

impl<'r> FrameReport<'r> {
    pub(super) fn new(frame: &'r FrameText) -> Self {
        Self {
            address: format!("{:#x}", frame.ip),
            method: frame.name.as_ref().map(|name| &*name.text),
            module: frame.module.as_deref(),
            token: frame.token.map(|token| format!("0x{token:08x}")),
        }
    }
}

#[derive(Debug, Serialize)]
struct GapReport {
    before_frame: usize,
    cause: String,
}

impl<'r> Report<'r> {
    fn new(analysis: &'r Analysis<'_>) -> Self {
        let thread = |of: &'r ManagedThread| ThreadReport {
            tid: Some(of.thread.os_id).filter(|tid| *tid != 0),
            managed_id: of.thread.managed_id,
            name: of.name.as_deref(),
            frames: of.frames.iter().map(FrameReport::new).collect(),
            gaps: of
                .stack
                .gaps
                .iter()
                .map(|(before_frame, gap)| GapReport { before_frame: *before_frame, cause: gap.to_string() })
                .collect(),
        };
        Self { runtime: analysis.runtime.version(), threads: analysis.threads.iter().map(thread).collect() }
    }
}
