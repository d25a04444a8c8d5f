//! `dipc gcdump paths`: what holds the objects of a type.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{ArgGroup, Args};
use gcdump::{Dominators, HeapGraph, HeapType, Path, PathTree, Paths};
use nettrace_export::{NameForm, Pattern};
use serde::Serialize;

use crate::args::format::Format;
use crate::args::names::NameArgs;
use crate::args::source::SOURCES;
use crate::command::gcdump::args::HeapArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::heap_page::step_name;
use crate::render::escape::escape_controls;
use crate::render::{output, units};

/// The paths that are shown unless the user wants others.
const PATHS: usize = 5;
/// The steps of a path that are shown at each of its ends.
const STEPS: usize = 20;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("heap").required(true).args(SOURCES).arg("file"))]
pub(crate) struct PathsArgs {
    #[command(flatten)]
    heap: HeapArgs,
    /// The type, by its name in either form; or else all types whose names have this text, where '*' stands for any text
    #[arg(long = "type", value_name = "TYPE")]
    of: String,
    /// Show so many paths, those to the most bytes first
    #[arg(long, value_name = "N", default_value_t = PATHS)]
    head: usize,
    #[command(flatten)]
    names: NameArgs,
    /// Format of the paths
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &PathsArgs) -> Outcome {
    args.heap.with_heap(|graph| args.show(graph))
}

impl PathsArgs {
    fn show(&self, graph: &HeapGraph) -> Result<(), Failure> {
        let chosen = chosen(graph, &self.of);
        let dominators = Dominators::new(graph);
        let is_chosen = |of: gcdump::TypeId| chosen.contains(&of.index());
        let paths = PathTree::new(graph).paths_to(graph, Some(&dominators), self.head, is_chosen);
        if paths.count == 0 && paths.unreachable == 0 {
            return Err(Failure::new(
                Exit::Failed,
                format_args!("--type {}: the heap has no object of such a type", self.of),
            )
            .with_help("dipc gcdump report lists the types"));
        }
        match self.format {
            Format::Table => output::print(self.text(graph, &paths)),
            Format::Json => output::print_json(&JsonPaths::new(graph, &paths)),
        }
    }

    fn text(&self, graph: &HeapGraph, paths: &Paths) -> String {
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
                graph.address(path.example)
            );
            let left = path.steps.len().saturating_sub(2 * STEPS);
            for (number, step) in path.steps.iter().enumerate() {
                // The root of all roots says nothing.
                if number == 0 || (left > 0 && (STEPS + 1..STEPS + left).contains(&number)) {
                    continue;
                }
                if left > 0 && number == STEPS {
                    let _ = writeln!(text, "    … {left} more");
                    continue;
                }
                let name = step_name(graph, *step, self.names.form());
                let _ = writeln!(text, "    {}", escape_controls(name));
            }
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

/// The indexes of the types that the user means.
fn chosen(graph: &HeapGraph, text: &str) -> BTreeSet<usize> {
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
}

#[derive(Serialize)]
struct JsonPath<'a> {
    objects: u64,
    bytes: u64,
    retained_bytes: Option<u64>,
    example: String,
    steps: Vec<&'a str>,
    csharp: Vec<&'a str>,
}

impl<'a> JsonPaths<'a> {
    fn new(graph: &'a HeapGraph, paths: &Paths) -> Self {
        let names = |path: &Path, form| path.steps.iter().map(|step| step_name(graph, *step, form)).collect();
        let path = |path: &Path| JsonPath {
            objects: path.objects,
            bytes: path.bytes,
            retained_bytes: path.retained_bytes,
            example: format!("0x{:x}", graph.address(path.example)),
            steps: names(path, NameForm::Full),
            csharp: names(path, NameForm::CSharp),
        };
        Self {
            paths: paths.paths.iter().map(path).collect(),
            path_count: paths.count,
            unreachable_objects: paths.unreachable,
        }
    }
}
