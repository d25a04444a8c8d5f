//! `dipc dump analyze CORE stacks --arguments --locals`: the stacks of all threads with the variables of
//! their frames.

use std::collections::HashMap;
use std::fmt::Write as _;

use clr_dump::{Address, Dump, FrameVariables, Value, Variable, VariableRole};
use serde::Serialize;

use crate::args::format::Format;
use crate::command::dump::analyze::stacks::{
    FrameReport, GapReport, Shown, fitted, gaps, label, shown_gaps, thread_counts,
};
use crate::exit::Failure;
use crate::inspect::core_dump::{Analysis, ManagedThread};
use crate::inspect::core_text::{FrameText, type_text};
use crate::inspect::core_value::{JsonValue, LINE_DEPTH, declared_type, json_value_to, value_line};
use crate::render::escape::escape_controls;
use crate::render::{output, width};

/// The words for a variable whose value the code no longer has.
const NO_DATA: &str = "<no data>";

/// The variables that are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    pub(super) arguments: bool,
    pub(super) locals: bool,
}

impl Chosen {
    const fn has(self, role: VariableRole) -> bool {
        match role {
            VariableRole::Local(_) => self.locals,
            _ => self.arguments,
        }
    }
}

pub(super) fn print(
    analysis: &Analysis<'_>,
    shown: Shown,
    chosen: Chosen,
    format: Format,
) -> Result<(), Failure> {
    match format {
        Format::Json => output::print_json(&Report::new(analysis, shown, chosen)),
        Format::Table => output::print(text(analysis, shown, chosen)),
    }
}

/// The variables of a thread's frames that are chosen, by the stack pointers of the frames.
fn variables(
    analysis: &Analysis<'_>,
    thread: &ManagedThread,
    chosen: Chosen,
) -> HashMap<Address, Vec<Variable>> {
    let registers = analysis.source.core().and_then(|core| core.registers(thread.thread.os_id));
    let frames = analysis.dump.threads().variables(&thread.thread, registers);
    let of_frame = |of: FrameVariables| {
        let variables = of.variables.into_iter().filter(|variable| chosen.has(variable.role));
        (of.frame.sp, variables.collect())
    };
    frames.into_iter().map(of_frame).collect()
}

/// The frames of a thread that are shown, with the stack pointer of each.
fn frames(thread: &ManagedThread, shown: Shown) -> impl Iterator<Item = (&FrameText, Address)> {
    let pairs = thread.frames.iter().zip(&thread.stack.frames);
    pairs.filter(move |(text, _)| shown.has(text)).map(|(text, frame)| (text, frame.sp))
}

fn text(analysis: &Analysis<'_>, shown: Shown, chosen: Chosen) -> String {
    let mut text = String::new();
    let room = width::of_output().map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
    for thread in analysis.threads.iter().filter(|thread| !thread.frames.is_empty()) {
        let _ = writeln!(text, "Thread {}", label(thread));
        let variables = variables(analysis, thread, chosen);
        for (_, gap) in shown_gaps(&thread.stack, shown) {
            let _ = writeln!(text, "  [frames may be missing: {gap}]");
        }
        for (frame, sp) in frames(thread, shown) {
            let _ = writeln!(text, "  {}", fitted(frame, room));
            for variable in variables.get(&sp).into_iter().flatten().filter(|_| frame.is_managed()) {
                let line = variable_line(&analysis.dump, variable);
                let _ = writeln!(text, "      {}", escape_controls(&line));
            }
        }
        text.push('\n');
    }
    text.push_str(&thread_counts(analysis));
    text
}

/// The name of a variable, or its number.
fn name(variable: &Variable) -> String {
    match (&variable.name, variable.role) {
        (Some(name), _) => name.clone(),
        (None, VariableRole::This) => "this".to_owned(),
        (None, VariableRole::Argument(number)) => format!("argument {number}"),
        (None, VariableRole::Local(number)) => format!("local {number}"),
        _ => "?".to_owned(),
    }
}

/// The type of a variable: of a reference that of its object.
fn type_name(variable: &Variable) -> Option<String> {
    if let Some(
        Value::Reference { type_name: Some(name), .. } | Value::Structure { type_name: Some(name), .. },
    ) = &variable.value
    {
        return Some(type_text(Some(name), 0));
    }
    let type_text = variable.type_text.as_deref();
    match variable.kind.and_then(clr_dump::ValueKind::name) {
        // An enumeration has the kind of its numbers.
        Some(name) if !type_text.is_some_and(|text| text.contains(' ')) => Some(name.to_owned()),
        _ => type_text.map(declared_type),
    }
}

fn variable_line(dump: &Dump<'_>, variable: &Variable) -> String {
    let type_name = type_name(variable).map(|name| format!(" ({name})")).unwrap_or_default();
    let value = match &variable.value {
        Some(value) => value_line(dump, value, LINE_DEPTH),
        None => NO_DATA.to_owned(),
    };
    format!("{}{type_name} = {value}", name(variable))
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
    frames: Vec<FrameWithVariables<'r>>,
    /// Places where frames may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<GapReport>,
}

#[derive(Debug, Serialize)]
struct FrameWithVariables<'r> {
    #[serde(flatten)]
    frame: FrameReport<'r>,
    variables: Vec<VariableReport>,
}

#[derive(Debug, Serialize)]
struct VariableReport {
    /// `this`, `argument` or `local`.
    role: &'static str,
    name: String,
    r#type: Option<String>,
    /// None if the code no longer has it.
    value: Option<JsonValue>,
}

impl<'r> Report<'r> {
    fn new(analysis: &'r Analysis<'_>, shown: Shown, chosen: Chosen) -> Self {
        let thread = |thread: &'r ManagedThread| {
            let mut variables = variables(analysis, thread, chosen);
            let frames = frames(thread, shown).map(|(frame, sp)| {
                let variables = if frame.is_managed() { variables.remove(&sp) } else { None };
                let variables = variables.unwrap_or_default();
                FrameWithVariables {
                    frame: FrameReport::new(frame),
                    variables: variables.iter().map(|of| VariableReport::new(&analysis.dump, of)).collect(),
                }
            });
            ThreadReport {
                tid: Some(thread.thread.os_id).filter(|tid| *tid != 0),
                managed_id: thread.thread.managed_id,
                name: thread.name.as_deref(),
                frames: frames.collect(),
                gaps: gaps(&thread.stack, &thread.frames, shown),
            }
        };
        Self {
            runtime: analysis.dump.runtime().version(),
            threads: analysis.threads.iter().map(thread).collect(),
        }
    }
}

impl VariableReport {
    fn new(dump: &Dump<'_>, of: &Variable) -> Self {
        Self {
            role: match of.role {
                VariableRole::This => "this",
                VariableRole::Local(_) => "local",
                _ => "argument",
            },
            name: name(of),
            r#type: type_name(of),
            value: of.value.as_ref().map(|value| json_value_to(dump, value, 1)),
        }
    }
}
