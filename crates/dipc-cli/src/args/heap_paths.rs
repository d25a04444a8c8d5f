//! The paths that keep objects of a heap alive: their arguments and their forms.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{ArgGroup, Args};
use gcdump::{Dominators, HeapGraph, HeapPath, HeapPaths, HeapType, PathStep, PathTree, RetainedSets};
use nettrace_export::{NameForm, Pattern};
use serde::Serialize;

use crate::args::format::Format;
use crate::args::names::NameArgs;
use crate::exit::{Exit, Failure};
use crate::inspect::heap::step_name;
use crate::render::escape::escape_controls;
use crate::render::{messages, output, units};

/// The default number of paths shown.
const PATHS: usize = 5;
/// The number of steps that text output shows at each end of a path.
const STEPS: usize = 20;
/// Maximum number of paths that the user can ask for.
const MAX_PATHS: usize = 10_000;
/// Maximum number of bytes of names: a few bytes of a recording can produce many steps.
const MAX_NAMES: usize = 32 << 20;

/// The objects whose paths are shown, and their number.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("objects").required(true).args(["type", "object"]))]
pub(crate) struct HeapPathsArgs {
    /// The type with this name, in either form, or else all types with this text in their name; '*' matches
    /// any text
    #[arg(id = "type", long, value_name = "TYPE")]
    of: Option<String>,
    /// The object at this address, in hexadecimal
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    object: Option<u64>,
    /// Number of paths to show, starting with those to the most bytes
    #[arg(long = "rows", alias = "head", value_name = "N", default_value_t = PATHS)]
    head: usize,
    #[command(flatten)]
    names: NameArgs,
}

/// Reads an address: hexadecimal, with or without `0x`.
pub(crate) fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "not an address: hexadecimal, as 0x7f6a468123f8".to_owned())
}

impl HeapPathsArgs {
    /// Prints the paths to the objects of the types in a heap.
    pub(crate) fn show(&self, graph: &HeapGraph, format: Format) -> Result<(), Failure> {
        let tree = PathTree::new(graph);
        let mut paths = self.paths(graph, &tree)?;
        keep_affordable(graph, &mut paths);
        let dominators = Dominators::new(graph);
        tree.add_retained(&RetainedSets::new(&dominators), &mut paths.paths);
        if paths.paths.len() < paths.count.min(self.head) {
            messages::warning(format_args!(
                "--rows {}: these are {} paths, because their names are long or they are many",
                self.head,
                paths.paths.len()
            ));
        }
        match format {
            Format::Table => output::print(self.text(graph, &paths)),
            Format::Json => output::print_json(&JsonPaths::new(graph, &paths)),
        }
    }

    /// The paths to the objects that the user means; a failure without any.
    fn paths(&self, graph: &HeapGraph, tree: &PathTree) -> Result<HeapPaths, Failure> {
        let most = self.head.min(MAX_PATHS);
        if let Some(address) = self.object {
            let Some(object) = graph.object_at(address) else {
                return Err(Failure::new(
                    Exit::Failed,
                    format_args!("{address:#x}: the heap has no object at this address"),
                ));
            };
            return Ok(tree.paths_to_objects(graph, most, |other| other.id() == object.id()));
        }
        let of = self.of.as_deref().unwrap_or_default();
        let chosen = chosen_types(graph, of);
        let paths = tree.paths_to(graph, most, |of| chosen.contains(&of.index()));
        if paths.count == 0 && paths.unreachable == 0 {
            return Err(Failure::new(
                Exit::Failed,
                format_args!("--type {of}: the heap has no object of a matching type"),
            )
            .with_help("dipc gcdump report lists the types"));
        }
        Ok(paths)
    }

    fn text(&self, graph: &HeapGraph, paths: &HeapPaths) -> String {
        let mut text = String::new();
        for (number, path) in paths.paths.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            let _ = writeln!(
                text,
                "{} object{} of {}, retaining {}; one at 0x{:x}",
                units::count(path.objects),
                if path.objects == 1 { "" } else { "s" },
                units::bytes(path.bytes),
                units::bytes(path.retained_bytes.unwrap_or_default()),
                graph.address(path.example).unwrap_or_default()
            );
            let (first, left, last) = path.ends(STEPS);
            let names = |text: &mut String, steps: &[PathStep]| {
                for step in steps {
                    let name = step_name(graph, *step, self.names.form());
                    let _ = writeln!(text, "    {}", escape_controls(&name));
                }
            };
            // The root of all roots carries no information.
            names(&mut text, first.get(1..).unwrap_or_default());
            if left > 0 {
                let _ = writeln!(text, "    … {} more", units::count(left as u64));
            }
            names(&mut text, last);
        }
        let left = paths.count.saturating_sub(paths.paths.len());
        if left > 0 {
            let _ = writeln!(text, "({left} more paths)");
        }
        if paths.unreachable > 0 {
            let _ = writeln!(text, "({} objects that no root reaches)", units::count(paths.unreachable));
        }
        text
    }
}

/// Keeps the first path, and the following ones while their names fit into the limit together.
fn keep_affordable(graph: &HeapGraph, paths: &mut HeapPaths) {
    let length = |step: &PathStep| {
        [NameForm::Full, NameForm::CSharp]
            .map(|form| step_name(graph, *step, form).len())
            .iter()
            .sum::<usize>()
    };
    let mut sum = 0_usize;
    let affordable = paths.paths.iter().take_while(|path| {
        sum += path.steps.iter().map(length).sum::<usize>();
        sum <= MAX_NAMES
    });
    let affordable = affordable.count().max(1);
    paths.paths.truncate(affordable);
}

/// The indexes of the types that the user means.
fn chosen_types(graph: &HeapGraph, text: &str) -> BTreeSet<usize> {
    let with = |is_meant: &dyn Fn(&HeapType) -> bool| -> BTreeSet<usize> {
        graph.types().iter().enumerate().filter(|(_, of)| is_meant(of)).map(|(number, _)| number).collect()
    };
    let exact = with(&|of| of.name() == text || of.csharp() == text);
    if !exact.is_empty() {
        return exact;
    }
    let pattern = Pattern::new(text);
    with(&|of| pattern.matches(of.name()) || pattern.matches(of.csharp()))
}

/// Paths as JSON.
#[derive(Serialize)]
struct JsonPaths<'a> {
    paths: Vec<JsonPath<'a>>,
    path_count: usize,
    unreachable_objects: u64,
    /// Threads with more references on their stacks than are read: paths can be missing.
    #[serde(skip_serializing_if = "is_zero")]
    truncated_stacks: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct JsonPath<'a> {
    objects: u64,
    bytes: u64,
    retained_bytes: Option<u64>,
    example: String,
    steps: Vec<Cow<'a, str>>,
    csharp: Vec<Cow<'a, str>>,
    /// The number of steps between the first and the last hundred.
    steps_left_out: usize,
}

impl<'a> JsonPaths<'a> {
    fn new(graph: &'a HeapGraph, paths: &HeapPaths) -> Self {
        let names =
            |path: &HeapPath, form| path.steps.iter().map(|step| step_name(graph, *step, form)).collect();
        let path = |path: &HeapPath| JsonPath {
            objects: path.objects,
            bytes: path.bytes,
            retained_bytes: path.retained_bytes,
            example: format!("0x{:x}", graph.address(path.example).unwrap_or_default()),
            steps: names(path, NameForm::Full),
            csharp: names(path, NameForm::CSharp),
            steps_left_out: path.steps_left_out,
        };
        Self {
            paths: paths.paths.iter().map(path).collect(),
            path_count: paths.count,
            unreachable_objects: paths.unreachable,
            truncated_stacks: graph.completeness().truncated_stacks,
        }
    }
}
