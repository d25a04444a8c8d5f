//! `dipc dump analyze CORE stacks --arguments --locals`: the stacks of all threads with the variables of
//! their frames.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use clr_dump::{Address, FrameVariables, Registers, Value, Variable, VariableRole};
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
/// The words for variables that were left out.
const TRUNCATED: &str = "variables of outer frames are missing: the limit of a thread was reached";
/// Maximum number of modules to name.
const MAX_MODULES: usize = 4;

/// The variables that are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen {
    pub(crate) arguments: bool,
    pub(crate) locals: bool,
}

impl Chosen {
    const fn has(self, role: VariableRole) -> bool {
        match role {
            VariableRole::Local(_) => self.locals,
            _ => self.arguments,
        }
    }
}

/// Stacks with variables, read and written, before they are printed.
pub(crate) enum ReadView<'r> {
    Json(Report<'r>),
    Table(String),
}

impl ReadView<'_> {
    pub(crate) fn print(&self) -> Result<(), Failure> {
        match self {
            Self::Json(report) => output::print_json(report),
            Self::Table(text) => output::print(text),
        }
    }
}

/// Reads the variables of stacks, given the registers of threads, keyed by thread id.
pub(crate) fn read<'r>(
    analysis: &'r Analysis<'_>,
    shown: Shown,
    chosen: Chosen,
    registers: &'r BTreeMap<u32, Registers>,
    format: Format,
) -> ReadView<'r> {
    let view = View { analysis, shown, chosen, registers, without_pdb: RefCell::default() };
    match format {
        Format::Json => ReadView::Json(view.report()),
        Format::Table => ReadView::Table(view.text()),
    }
}

/// A frame by its stack pointer and its instruction pointer.
type FrameKey = (Address, Address);

struct View<'v, 's> {
    analysis: &'v Analysis<'s>,
    shown: Shown,
    chosen: Chosen,
    registers: &'v BTreeMap<u32, Registers>,
    /// The modules of shown local variables without names, because they have no PDB.
    without_pdb: RefCell<BTreeSet<String>>,
}

/// A variable with its name.
struct Named {
    name: String,
    variable: Variable,
}

impl<'v> View<'v, '_> {
    /// The variables of a thread's frames that are chosen, by frame, and true if some were left out.
    fn variables(&self, thread: &ManagedThread) -> (HashMap<FrameKey, Vec<Named>>, bool) {
        let tid = u32::try_from(thread.thread.os_id).ok();
        let registers = tid.and_then(|tid| self.registers.get(&tid));
        let all = self.analysis.dump.threads().variables(&thread.thread, registers);
        let of_frame = |of: FrameVariables| ((of.frame.sp, of.frame.ip), self.named(of));
        (all.frames.into_iter().map(of_frame).collect(), all.is_truncated)
    }

    /// Names the variables of a frame that are chosen. Unnamed ones without a value, which the compiler has
    /// made, are left out.
    fn named(&self, of: FrameVariables) -> Vec<Named> {
        let frame = self.analysis.dump.threads().named(&of.frame);
        let has_locals = of.variables.iter().any(|of| matches!(of.role, VariableRole::Local(_)));
        let method = frame.method.filter(|_| self.chosen.locals && has_locals);
        let locals = method.as_ref().and_then(|method| self.analysis.variables_of(method));
        let mut has_numbers = false;
        let name = |variable: Variable| {
            let name = match (&variable.name, variable.role) {
                (Some(name), _) => name.clone(),
                (None, VariableRole::This) => "this".to_owned(),
                (None, VariableRole::Argument(number)) => format!("argument {number}"),
                (None, VariableRole::Local(number)) => {
                    let of_pdb = locals.as_ref().and_then(|of| of.name(number, frame.il_offset));
                    if of_pdb.is_none() && variable.value.is_none() {
                        return None;
                    }
                    has_numbers |= of_pdb.is_none();
                    of_pdb.map_or_else(|| format!("local {number}"), ToOwned::to_owned)
                }
                _ => "?".to_owned(),
            };
            Some(Named { name, variable })
        };
        let chosen = of.variables.into_iter().filter(|variable| self.chosen.has(variable.role));
        let variables = chosen.filter_map(name).collect();
        if has_numbers
            && locals.is_none()
            && let Some(module) = method.as_ref().and_then(|method| method.module.as_ref())
        {
            self.without_pdb.borrow_mut().insert(module.file_name().to_owned());
        }
        variables
    }

    /// The frames of a thread that are shown, with the key of each.
    fn frames(&self, thread: &'v ManagedThread) -> impl Iterator<Item = (&'v FrameText, FrameKey)> {
        let (pairs, shown) = (thread.frames.iter().zip(&thread.stack.frames), self.shown);
        pairs.filter(move |(text, _)| shown.has(text)).map(|(text, frame)| (text, (frame.sp, frame.ip)))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let room = width::of_output().map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
        for thread in self.analysis.threads.iter().filter(|thread| !thread.frames.is_empty()) {
            let _ = writeln!(text, "Thread {}", label(thread));
            let (variables, is_truncated) = self.variables(thread);
            for (_, gap) in shown_gaps(&thread.stack, self.shown) {
                let _ = writeln!(text, "  [frames may be missing: {gap}]");
            }
            for (frame, key) in self.frames(thread) {
                let _ = writeln!(text, "  {}", fitted(frame, room));
                for variable in variables.get(&key).into_iter().flatten().filter(|_| frame.is_managed()) {
                    let _ = writeln!(text, "      {}", escape_controls(&self.line(variable)));
                }
            }
            if is_truncated {
                let _ = writeln!(text, "  [{TRUNCATED}]");
            }
            text.push('\n');
        }
        text.push_str(&thread_counts(self.analysis));
        if let Some(note) = without_pdb(&self.without_pdb.borrow()) {
            text.push_str(&width::wrapped(&note, width::of_output()));
        }
        text
    }

    /// A variable as C# declares it, with its value: `string name = "abc" (0x7f…)`.
    fn line(&self, of: &Named) -> String {
        let declared = declared(&of.variable).or_else(|| type_name(&of.variable));
        let value = match &of.variable.value {
            Some(value @ Value::Reference { address, text: Some(_), .. }) => {
                let line = value_line(&self.analysis.dump, value, LINE_DEPTH);
                let prefix = format!("{address:#x} ");
                let text = line.strip_prefix(&prefix).unwrap_or(&line);
                format!("{text} ({address:#x})")
            }
            Some(value) => value_line(&self.analysis.dump, value, LINE_DEPTH),
            None => NO_DATA.to_owned(),
        };
        // The type of the object, where the declaration does not say it.
        let own = match &of.variable.value {
            Some(Value::Reference { type_name: Some(_), .. }) => type_name(&of.variable),
            _ => None,
        };
        let own = own.filter(|own| Some(own) != declared.as_ref()).map(|own| own + " ").unwrap_or_default();
        let declared = declared.map(|of| of + " ").unwrap_or_default();
        format!("{declared}{} = {own}{value}", of.name)
    }

    fn report(&self) -> Report<'v> {
        let threads = self.analysis.threads.iter().map(|thread| self.thread(thread)).collect();
        Report {
            runtime: self.analysis.dump.runtime().version(),
            threads,
            modules_without_pdb: self.without_pdb.take().into_iter().collect(),
        }
    }

    fn thread(&self, thread: &'v ManagedThread) -> ThreadReport<'v> {
        let (mut variables, variables_truncated) = self.variables(thread);
        let frames = self.frames(thread).map(|(frame, key)| {
            let variables = if frame.is_managed() { variables.remove(&key) } else { None };
            let variables = variables.unwrap_or_default();
            FrameWithVariables {
                frame: FrameReport::new(frame),
                variables: variables.iter().map(|of| self.variable(of)).collect(),
            }
        });
        ThreadReport {
            tid: Some(thread.thread.os_id).filter(|tid| *tid != 0),
            managed_id: thread.thread.managed_id,
            name: thread.name.as_deref(),
            frames: frames.collect(),
            gaps: gaps(&thread.stack, &thread.frames, self.shown),
            variables_truncated,
        }
    }

    fn variable(&self, of: &Named) -> VariableReport {
        let variable = &of.variable;
        VariableReport {
            role: match variable.role {
                VariableRole::This => "this",
                VariableRole::Local(_) => "local",
                _ => "argument",
            },
            name: of.name.clone(),
            r#type: type_name(variable),
            declared_type: declared(variable),
            value: variable.value.as_ref().map(|value| json_value_to(&self.analysis.dump, value, 1)),
        }
    }
}

/// The sentence about the modules without PDB; `None` without such modules.
fn without_pdb(modules: &BTreeSet<String>) -> Option<String> {
    let names: Vec<_> = modules.iter().take(MAX_MODULES).map(String::as_str).collect();
    let more = match modules.len().saturating_sub(names.len()) {
        0 => String::new(),
        1 => " and another module".to_owned(),
        more => format!(" and {more} other modules"),
    };
    let names = escape_controls(&names.join(", ")).into_owned();
    let note = format!(
        "Local variables of {names}{more} have numbers: no PDB of the same build was found (--symbol-path DIR)\n"
    );
    (!modules.is_empty()).then_some(note)
}

/// The declared type of a variable; `None` if it is not known.
fn declared(variable: &Variable) -> Option<String> {
    let primitive = variable.kind.and_then(clr_dump::ValueKind::name);
    let text = variable.type_text.as_deref().map(declared_type);
    text.or_else(|| primitive.map(ToOwned::to_owned))
}

/// The type of a variable: of a reference that of its object.
fn type_name(variable: &Variable) -> Option<String> {
    match &variable.value {
        Some(
            Value::Reference { type_name: Some(name), .. } | Value::Structure { type_name: Some(name), .. },
        ) => Some(type_text(Some(name), 0)),
        _ => declared(variable),
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Report<'r> {
    runtime: &'r str,
    threads: Vec<ThreadReport<'r>>,
    /// Modules of local variables that have numbers, because no PDB of the same build was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules_without_pdb: Vec<String>,
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
    /// True if variables of outer frames are missing, because the limit of a thread was reached.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    variables_truncated: bool,
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
    /// Of a local variable without a name in a PDB: its number, `local 2`.
    name: String,
    /// The type of the object of a reference, or else the declared type.
    r#type: Option<String>,
    declared_type: Option<String>,
    /// None if the code no longer has it.
    value: Option<JsonValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_without_a_pdb_are_named_once_and_the_rest_counted() {
        let note = |names: &[&str]| without_pdb(&names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(note(&[]), None);
        let of = |modules: &str| {
            let said = "have numbers: no PDB of the same build was found (--symbol-path DIR)";
            Some(format!("Local variables of {modules} {said}\n"))
        };
        assert_eq!(note(&["A.dll", "A.dll"]), of("A.dll"));
        assert_eq!(note(&["A", "B", "C", "D"]), of("A, B, C, D"));
        assert_eq!(note(&["A", "B", "C", "D", "E"]), of("A, B, C, D and another module"));
        assert_eq!(note(&["A", "B", "C", "D", "E", "F"]), of("A, B, C, D and 2 other modules"));
    }
}
