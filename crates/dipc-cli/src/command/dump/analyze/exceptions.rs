//! `dipc dump analyze CORE exceptions`.

use std::fmt::Write as _;

use clr_dump::{ExceptionState, Identity};
use serde::Serialize;

use super::stacks::{self, FrameReport};
use crate::args::format::Format;
use crate::exit::Failure;
use crate::inspect::core_dump::{Analysis, ExceptionText, ManagedThread, type_text};
use crate::render::escape::escape_controls;
use crate::render::{output, width};

pub(super) fn print(analysis: &Analysis<'_>, format: Format) -> Result<(), Failure> {
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
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(4).max(1));
    let mut text = String::new();
    for (state, chain) in &thread.exceptions {
        let verb = match state {
            ExceptionState::Current => "throws or handles",
            _ => "threw last",
        };
        for (index, exception) in chain.iter().enumerate() {
            let heading = if index == 0 {
                format!("Thread {} {verb} {}\n", stacks::label(thread), line(exception))
            } else {
                format!("  caused by {}\n", line(exception))
            };
            text.push_str(&width::wrapped(&heading, width));
            for frame in &exception.frames {
                let _ = writeln!(text, "    {}", stacks::fitted(frame, room));
            }
        }
    }
    if let Some(doubt) = &thread.exceptions_doubt {
        let line = format!("Thread {}: {doubt}\n", stacks::label(thread));
        text.push_str(&width::wrapped(&line, width));
    }
    text
}

/// Type, message and code of an exception.
fn line(text: &ExceptionText) -> String {
    let exception = &text.exception;
    let at = exception.address;
    let mut line = match (&exception.type_name, exception.identity) {
        (_, Identity::Other) => {
            return format!(
                "an exception that is not known: there is none at {at:#x}, to which the thread refers"
            );
        }
        (None, _) => format!("an exception whose type is not in the dump, at {at:#x}"),
        (Some(name), _) => type_text(Some(name), at),
    };
    match &exception.message {
        Some(message) => {
            let _ = write!(line, ": {}", escape_controls(message));
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
    /// Whether exceptions of threads are known in this version of the runtime.
    known: bool,
    exceptions: Vec<Row<'r>>,
    /// The threads whose exceptions could not be read.
    unknown: Vec<UnknownRow<'r>>,
}

#[derive(Debug, Serialize)]
struct UnknownRow<'r> {
    tid: Option<u64>,
    managed_id: u32,
    reason: &'r str,
}

#[derive(Debug, Serialize)]
struct Row<'r> {
    tid: Option<u64>,
    managed_id: u32,
    current: bool,
    /// Whether objects were being moved, so that these can be others.
    uncertain: bool,
    /// The exception and its causes, the outermost first.
    chain: Vec<ExceptionReport<'r>>,
}

#[derive(Debug, Serialize)]
struct ExceptionReport<'r> {
    address: String,
    /// Whether the object at the address was seen to be an exception: null if the dump lacks its types.
    is_exception: Option<bool>,
    r#type: Option<&'r str>,
    message: Option<&'r str>,
    hresult: Option<String>,
    /// The frames that it passed, the one that threw it first.
    frames: Vec<FrameReport<'r>>,
}

impl<'r> Report<'r> {
    fn new(analysis: &'r Analysis<'_>) -> Self {
        let exception = |text: &'r ExceptionText| ExceptionReport {
            address: format!("{:#x}", text.exception.address),
            is_exception: match text.exception.identity {
                Identity::Exception => Some(true),
                Identity::Other => Some(false),
                _ => None,
            },
            r#type: text.exception.type_name.as_deref(),
            message: text.exception.message.as_deref(),
            hresult: text.exception.hresult.map(|code| format!("0x{code:08x}")),
            frames: text.frames.iter().map(FrameReport::new).collect(),
        };
        let rows = analysis.threads.iter().flat_map(|thread| {
            thread.exceptions.iter().map(move |(state, chain)| Row {
                tid: Some(thread.thread.os_id).filter(|tid| *tid != 0),
                managed_id: thread.thread.managed_id,
                current: *state == ExceptionState::Current,
                uncertain: thread.exceptions_doubt.is_some(),
                chain: chain.iter().map(exception).collect(),
            })
        });
        let unknown = analysis.threads.iter().filter(|thread| thread.exceptions.is_empty());
        let unknown = unknown.filter_map(|thread| {
            Some(UnknownRow {
                tid: Some(thread.thread.os_id).filter(|tid| *tid != 0),
                managed_id: thread.thread.managed_id,
                reason: thread.exceptions_doubt.as_deref()?,
            })
        });
        Self {
            runtime: analysis.runtime.version(),
            known: true,
            exceptions: rows.collect(),
            unknown: unknown.collect(),
        }
    }
}
