//! `dipc dump analyze CORE finalizers`: the objects with finalizers that have not been run, by type.

use std::fmt::Write as _;

use clap::Args;
use clr_dump::{Dump, FinalizableType, FinalizerQueue};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::core_heap;
use crate::inspect::core_source::Source;
use crate::inspect::core_text::type_text;
use crate::inspect::heap_generations::{generation_key, generation_text};
use crate::render::table::{Align, Columns};
use crate::render::{output, units};

/// The default number of types to show.
const ROWS: usize = 30;

#[derive(Debug, Args)]
pub(super) struct FinalizersArgs {
    /// Number of types to show [default: 30 in a table, else all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
}

pub(super) fn print(
    source: &Source,
    dump: &Dump<'_>,
    args: &FinalizersArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let queue = dump.heap().regions().and_then(|regions| regions.finalizer_queue());
    let queue = queue.map_err(|missing| core_heap::lacks(source, &missing.to_string()))?;
    match format {
        Format::Table => output::print(text(dump, &queue, args.head.unwrap_or(ROWS)))?,
        Format::Json => output::print_json(&Report::new(dump, &queue, args.head.unwrap_or(usize::MAX)))?,
    }
    Ok(if queue.unread == 0 && !queue.is_incomplete { Exit::Done } else { Exit::Incomplete })
}

fn text(dump: &Dump<'_>, queue: &FinalizerQueue, most: usize) -> String {
    use Align::{Left, Right};
    let by_generation = (0..).zip(&queue.registered).filter(|(number, count)| *number < 3 || **count > 0);
    let by_generation = by_generation
        .map(|(number, count)| format!("{} in {}", units::count(*count), generation_text(number)));
    let by_generation: Vec<_> = by_generation.collect();
    let mut text = format!(
        "{} ready to run, {} registered (by generation: {})\n",
        units::counted(queue.ready, "finalizer", "finalizers"),
        units::count(queue.registered_count()),
        by_generation.join(", ")
    );
    if queue.unread > 0 {
        let _ = writeln!(text, "The types of {} objects cannot be read", units::count(queue.unread));
    }
    if queue.is_incomplete {
        text.push_str("Registered objects cannot be read\n");
    }
    text.push('\n');
    let mut columns =
        Columns::new([("READY", Right), ("REGISTERED", Right), ("MODULE", Left), ("TYPE", Left)]);
    for of in queue.types.iter().take(most) {
        columns.row([
            units::count(of.ready),
            units::count(of.registered),
            module(dump, of).unwrap_or_default(),
            type_text(dump.types().name(of.type_handle).as_deref(), of.type_handle.get()),
        ]);
    }
    text.push_str(&columns.fitted(&["MODULE"]));
    let left = queue.types.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
    text
}

/// The name of the file of a type's module.
fn module(dump: &Dump<'_>, of: &FinalizableType) -> Option<String> {
    dump.types().module(of.type_handle).map(|module| module.file_name().to_owned())
}

#[derive(Debug, Serialize)]
struct Report {
    ready: u64,
    registered: u64,
    /// Registered objects by generation, as the collector found them last.
    generations: Vec<GenerationRow>,
    /// The number of objects with types that the memory lacks.
    unread: u64,
    /// True if registered objects cannot be read.
    incomplete: bool,
    types: Vec<TypeRow>,
}

#[derive(Debug, Serialize)]
struct GenerationRow {
    generation: &'static str,
    registered: u64,
}

#[derive(Debug, Serialize)]
struct TypeRow {
    /// Null if the dump lacks it.
    name: Option<String>,
    module: Option<String>,
    type_handle: String,
    ready: u64,
    registered: u64,
}

impl Report {
    fn new(dump: &Dump<'_>, queue: &FinalizerQueue, most: usize) -> Self {
        let generation = |(number, registered): (u64, &u64)| GenerationRow {
            generation: generation_key(number),
            registered: *registered,
        };
        let row = |of: &FinalizableType| TypeRow {
            name: dump.types().name(of.type_handle).map(|name| type_text(Some(&name), 0)),
            module: module(dump, of),
            type_handle: of.type_handle.to_string(),
            ready: of.ready,
            registered: of.registered,
        };
        Self {
            ready: queue.ready,
            registered: queue.registered_count(),
            generations: (0..).zip(&queue.registered).map(generation).collect(),
            unread: queue.unread,
            incomplete: queue.is_incomplete,
            types: queue.types.iter().take(most).map(row).collect(),
        }
    }
}
