//! `dipc dump analyze CORE exceptions`.

use std::fmt::Write as _;

use clr_dump::{Address, ExceptionState, Identity};
use serde::Serialize;

use super::stacks::{self, FrameReport};
use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::core_dump::{Analysis, ExceptionText, ManagedThread};
use crate::inspect::core_text::{FrameText, type_text};
use crate::render::escape::escape_controls;
use crate::render::{output, units, width};

/// Prints the exception at an address, or all exceptions of the threads.
pub(super) fn print(
    analysis: &Analysis<'_>,
    address: Option<Address>,
    format: Format,
) -> Result<(), Failure> {
    if let Some(address) = address {
        let list = analysis.exceptions_at(address);
        if list.iter().all(|text| text.exception.identity != Identity::Exception) {
            return Err(Failure::new(
                Exit::Failed,
                format_args!("{address:#x}: there is no exception at this address"),
            ));
        }
        return match format {
            Format::Json => output::print_json(&list.iter().map(ExceptionReport::new).collect::<Vec<_>>()),
            Format::Table => output::print(with_causes("", &list, &Limits::NONE, width::of_output())),
        };
    }
    match format {
        Format::Json => output::print_json(&Report::new(analysis)),
        Format::Table => output::print(text(analysis, width::of_output())),
    }
}

fn text(analysis: &Analysis<'_>, width: Option<usize>) -> String {
    let mut text = String::new();
    let has_any =
        |thread: &&ManagedThread| !thread.exceptions.is_empty() || thread.exceptions_doubt.is_some();
    for thread in analysis.threads.iter().filter(has_any) {
        text.push_str(&of_thread(thread, width));
        text.push('\n');
    }
    if text.is_empty() {
        text.push_str("No thread handles an exception\n");
    }
    text
}

/// The exceptions of a thread, with their causes and the frames that they passed.
pub(super) fn of_thread(thread: &ManagedThread, width: Option<usize>) -> String {
    let mut text = String::new();
    for (state, list) in outermost(thread) {
        let verb = match state {
            ExceptionState::Current => "throws or handles",
            _ => "threw last",
        };
        let heading = format!("Thread {} {verb} ", stacks::label(thread));
        text.push_str(&with_causes(&heading, list, &Limits::NONE, width));
    }
    text.push_str(&doubt(thread, width));
    text
}

/// The doubt about the exceptions of a thread.
pub(super) fn doubt(thread: &ManagedThread, width: Option<usize>) -> String {
    let doubt = thread.exceptions_doubt.as_ref();
    let line = doubt.map(|doubt| format!("Thread {}: {doubt}\n", stacks::label(thread)));
    line.map_or_else(String::new, |line| width::wrapped(&line, width))
}

/// The exceptions of a thread that did not cause another of its exceptions: throwing in a handler yields
/// both.
pub(super) fn outermost(thread: &ManagedThread) -> impl Iterator<Item = (ExceptionState, &[ExceptionText])> {
    let addresses = |list: &[ExceptionText], first: usize| -> Vec<Address> {
        list.iter().skip(first).map(|text| text.exception.address).collect()
    };
    let all = &thread.exceptions;
    let causes: Vec<Address> = all.iter().flat_map(|(_, list)| addresses(list, 1)).collect();
    let is_cause = move |list: &[ExceptionText]| {
        list.first().is_some_and(|first| causes.contains(&first.exception.address))
    };
    // If all exceptions cause one another, the first is shown.
    let all_are_causes = all.iter().all(|(_, list)| is_cause(list));
    let shown = all
        .iter()
        .enumerate()
        .filter(move |(index, (_, list))| !is_cause(list) || (all_are_causes && *index == 0));
    shown.map(|(_, (state, list))| (*state, &**list))
}

/// Limits on the displayed parts of an exception.
pub(super) struct Limits {
    /// Maximum number of exceptions, including causes.
    pub(super) exceptions: usize,
    /// Maximum number of frames of the outermost exception.
    pub(super) frames: usize,
    /// Maximum number of frames of each cause.
    pub(super) cause_frames: usize,
}

impl Limits {
    const NONE: Self = Self { exceptions: usize::MAX, frames: usize::MAX, cause_frames: usize::MAX };
}

/// The first frames of an exception, and its first frame of user code.
fn first_frames(frames: &[FrameText], most: usize, room: usize) -> String {
    let user_frame = frames.iter().position(|frame| frame.is_user_code);
    let mut text = String::new();
    let mut left = 0;
    let gap = |left: u64| format!("    … {}\n", units::counted(left, "more frame", "more frames"));
    for (index, frame) in frames.iter().enumerate() {
        if index >= most && Some(index) != user_frame {
            left += 1;
            continue;
        }
        if left > 0 {
            text.push_str(&gap(left));
            left = 0;
        }
        let _ = writeln!(text, "    {}", stacks::fitted(frame, room));
    }
    if left > 0 {
        text.push_str(&gap(left));
    }
    text
}

/// An exception and its causes after a heading.
pub(super) fn with_causes(
    heading: &str,
    list: &[ExceptionText],
    limits: &Limits,
    width: Option<usize>,
) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(4).max(1));
    let mut text = String::new();
    for (index, exception) in list.iter().take(limits.exceptions).enumerate() {
        let most = if index == 0 { limits.frames } else { limits.cause_frames };
        let heading = match exception.exception.cause_of {
            None => format!("{heading}{}\n", line(exception)),
            Some(of) => {
                let is_sibling = |other: &&ExceptionText| other.exception.cause_of == Some(of);
                let siblings = list.iter().filter(is_sibling).count();
                let before = list.iter().take_while(|other| !std::ptr::eq(*other, exception));
                let number = before.filter(is_sibling).count() + 1;
                match list.get(of).and_then(|of| of.exception.type_name.as_deref()) {
                    Some(aggregate) if siblings > 1 => {
                        let aggregate = type_text(Some(aggregate), 0);
                        let aggregate = aggregate.rsplit('.').next().unwrap_or_default();
                        format!(
                            "  caused by ({number} of {siblings} in the {aggregate}) {}\n",
                            line(exception)
                        )
                    }
                    _ => format!("  caused by {}\n", line(exception)),
                }
            }
        };
        text.push_str(&width::wrapped(&heading, width));
        text.push_str(&first_frames(&exception.frames, most, room));
    }
    let left = list.len().saturating_sub(limits.exceptions);
    if left > 0 {
        let causes = units::counted(left as u64, "more cause", "more causes");
        let _ = writeln!(text, "  {causes}: dump analyze CORE exceptions");
    }
    text
}

/// Type, message and code of an exception.
fn line(text: &ExceptionText) -> String {
    let exception = &text.exception;
    let at = exception.address;
    let mut line = match (&exception.type_name, exception.identity) {
        (_, Identity::Other) => {
            return format!("an unknown exception: the thread refers to {at:#x}, where there is none");
        }
        (None, _) => format!("an exception of a type that is not in the dump, at {at:#x}"),
        (Some(name), _) => type_text(Some(name), at.get()),
    };
    match &exception.message {
        Some(message) => {
            let _ = write!(line, ": {}", escape_controls(message));
            // As its property `Message` has it.
            if let Some(parameter) = &exception.parameter {
                let _ = write!(line, " (Parameter '{}')", escape_controls(parameter));
            }
        }
        None if exception.lacks_message => line.push_str(" (its message is not in the dump)"),
        None => {}
    }
    if let Some(code) = exception.hresult {
        let _ = write!(line, " (0x{code:08x})");
    }
    line
}

#[derive(Debug, Serialize)]
struct Report<'r> {
    runtime: &'r str,
    /// True if exceptions of threads are known in this version of the runtime.
    known: bool,
    exceptions: Vec<Row<'r>>,
    /// The threads with unreadable exceptions.
    unknown: Vec<UnknownRow<'r>>,
}

#[derive(Debug, Serialize)]
struct UnknownRow<'r> {
    tid: Option<u64>,
    managed_id: u32,
    reason: &'r str,
}

#[derive(Debug, Serialize)]
pub(super) struct Row<'r> {
    tid: Option<u64>,
    managed_id: u32,
    current: bool,
    /// True if objects were being moved, so that these can be others.
    uncertain: bool,
    /// The exception and its causes, the outermost first.
    chain: Vec<ExceptionReport<'r>>,
}

#[derive(Debug, Serialize)]
struct ExceptionReport<'r> {
    address: String,
    /// True if the object at the address is an exception; null if the dump lacks its types.
    is_exception: Option<bool>,
    r#type: Option<&'r str>,
    message: Option<&'r str>,
    /// The name of the parameter, of an exception about an argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'r str>,
    hresult: Option<String>,
    /// The index in the chain of the exception that it is a cause of: several are of an AggregateException.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause_of: Option<usize>,
    /// The frames that the exception passed, starting with the throwing frame.
    frames: Vec<FrameReport<'r>>,
}

impl<'r> ExceptionReport<'r> {
    fn new(text: &'r ExceptionText) -> Self {
        let exception = &text.exception;
        Self {
            address: format!("{:#x}", exception.address),
            is_exception: match exception.identity {
                Identity::Exception => Some(true),
                Identity::Other => Some(false),
                _ => None,
            },
            r#type: exception.type_name.as_deref(),
            message: exception.message.as_deref(),
            parameter: exception.parameter.as_deref(),
            hresult: exception.hresult.map(|code| format!("0x{code:08x}")),
            cause_of: exception.cause_of,
            frames: text.frames.iter().map(FrameReport::new).collect(),
        }
    }
}

/// The exceptions of all threads.
pub(super) fn rows<'r>(analysis: &'r Analysis<'_>) -> Vec<Row<'r>> {
    let rows = analysis.threads.iter().flat_map(|thread| {
        thread.exceptions.iter().map(move |(state, chain)| Row {
            tid: Some(thread.thread.os_id).filter(|tid| *tid != 0),
            managed_id: thread.thread.managed_id,
            current: *state == ExceptionState::Current,
            uncertain: thread.exceptions_doubt.is_some(),
            chain: chain.iter().map(ExceptionReport::new).collect(),
        })
    });
    rows.collect()
}

impl<'r> Report<'r> {
    fn new(analysis: &'r Analysis<'_>) -> Self {
        let unknown = analysis.threads.iter().filter(|thread| thread.exceptions.is_empty());
        let unknown = unknown.filter_map(|thread| {
            Some(UnknownRow {
                tid: Some(thread.thread.os_id).filter(|tid| *tid != 0),
                managed_id: thread.thread.managed_id,
                reason: thread.exceptions_doubt.as_deref()?,
            })
        });
        Self {
            runtime: analysis.dump.runtime().version(),
            known: true,
            exceptions: rows(analysis),
            unknown: unknown.collect(),
        }
    }
}
