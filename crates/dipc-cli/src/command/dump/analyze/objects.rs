//! `dipc dump analyze CORE objects`: the objects of a type.

use std::collections::HashMap;
use std::fmt::Write as _;

use clap::Args;
use clr_dump::{Dump, HeapObject, ObjectContent, ObjectSelection, TypeHandle, TypeStatistics};
use nettrace_export::Pattern;
use serde::Serialize;

use crate::args::format::Format;
use crate::args::generation::GenerationArg;
use crate::exit::{Exit, Failure};
use crate::inspect::core_heap;
use crate::inspect::core_source::Source;
use crate::inspect::core_text::type_text;
use crate::render::table::{Align, Columns};
use crate::render::{output, units};

/// The default number of objects that are shown.
const OBJECTS: usize = 30;
/// Maximum number of characters of a string in a table.
const PREVIEW: u32 = 120;

#[derive(Debug, Args)]
pub(super) struct ObjectsArgs {
    /// The type with this name, in C# or as the runtime writes it, or else all types with this text in their
    /// name; '*' matches any text
    #[arg(long = "type", value_name = "TYPE")]
    of: String,
    /// Only the objects of this generation: 0, 1, 2, loh, poh or frozen
    #[arg(long, value_name = "GENERATION", value_enum, hide_possible_values = true)]
    generation: Option<GenerationArg>,
    /// Number of objects to show
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N", default_value_t = OBJECTS)]
    head: usize,
}

pub(super) fn print(
    source: &Source,
    dump: &Dump<'_>,
    args: &ObjectsArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let types = core_heap::statistics(source, dump)?.types;
    let chosen = chosen(&types, &args.of);
    if chosen.is_empty() {
        return Err(Failure::new(
            Exit::Failed,
            format_args!("--type {}: the heap has no object of a matching type", args.of),
        )
        .with_help("the view 'heap' lists the types"));
    }
    let generation = args.generation.map(GenerationArg::number);
    let objects = dump.heap().objects_of(chosen.keys().copied(), generation, args.head);
    let objects = objects.map_err(|missing| core_heap::lacks(source, &missing.to_string()))?;
    core_heap::check(source, &objects.walk)?;
    let is_whole = objects.walk.gaps.is_empty();
    let list = List { types: chosen, objects };
    match format {
        Format::Table => output::print(text(dump, &list))?,
        Format::Json => output::print_json(&Report::new(dump, &list))?,
    }
    Ok(if is_whole { Exit::Done } else { Exit::Incomplete })
}

/// The types that the user means, with their names.
fn chosen(types: &[TypeStatistics], text: &str) -> HashMap<TypeHandle, String> {
    let all: Vec<(TypeHandle, String, &str)> = types
        .iter()
        .filter_map(|of| {
            let name = of.name.as_deref()?;
            Some((of.type_handle, type_text(Some(name), 0), name))
        })
        .collect();
    let with = |is_meant: &dyn Fn(&str) -> bool| -> HashMap<TypeHandle, String> {
        let meant = all.iter().filter(|(_, csharp, name)| is_meant(csharp) || is_meant(name));
        meant.map(|(of, csharp, _)| (*of, csharp.clone())).collect()
    };
    let exact = with(&|name| name == text);
    if !exact.is_empty() {
        return exact;
    }
    let pattern = Pattern::new(text);
    with(&|name| pattern.matches(name))
}

/// The objects of the chosen types.
struct List {
    types: HashMap<TypeHandle, String>,
    objects: ObjectSelection,
}

impl List {
    fn type_name(&self, object: &HeapObject) -> &str {
        self.types.get(&object.type_handle).map_or("", |name| name)
    }
}

fn text(dump: &Dump<'_>, list: &List) -> String {
    use Align::{Left, Right};
    let mut text = format!(
        "{} objects, {}\n\n",
        units::count(list.objects.amount.objects),
        units::bytes(list.objects.amount.bytes)
    );
    let mut columns = Columns::new([("ADDRESS", Left), ("BYTES", Right), ("TYPE", Left), ("CONTENT", Left)]);
    for object in &list.objects.objects {
        columns.row([
            format!("{:#x}", object.address),
            units::bytes(object.size),
            list.type_name(object).to_owned(),
            content(dump, object),
        ]);
    }
    text.push_str(&columns.fitted(&["BYTES"]));
    let left = list.objects.amount.objects.saturating_sub(list.objects.objects.len() as u64);
    if left > 0 {
        let _ = writeln!(text, "({} more)", units::count(left));
    }
    text
}

/// The beginning of a string, or the number of elements of an array.
fn content(dump: &Dump<'_>, object: &HeapObject) -> String {
    if dump.types().is_string(object.type_handle) {
        let is_cut = object.length() > PREVIEW;
        let text = dump.heap().string(object, PREVIEW).unwrap_or_default();
        return format!("\"{text}{}\"", if is_cut { "…" } else { "" });
    }
    match dump.types().is_array(object.type_handle).then(|| dump.heap().content(object, 0)) {
        Some(Ok(ObjectContent::Array { lengths, .. })) => {
            let lengths: Vec<_> = lengths.iter().map(ToString::to_string).collect();
            format!("[{}]", lengths.join(", "))
        }
        _ => String::new(),
    }
}

#[derive(Debug, Serialize)]
struct Report {
    objects: u64,
    bytes: u64,
    /// The first ones.
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    address: String,
    r#type: String,
    bytes: u64,
    /// The length of a string or an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Report {
    fn new(dump: &Dump<'_>, list: &List) -> Self {
        let row = |object: &HeapObject| {
            let is_text = dump.types().is_string(object.type_handle);
            let has_length = is_text || dump.types().is_array(object.type_handle);
            Row {
                address: format!("{:#x}", object.address),
                r#type: list.type_name(object).to_owned(),
                bytes: object.size,
                length: has_length.then(|| object.length()),
                text: is_text.then(|| dump.heap().string(object, PREVIEW).unwrap_or_default()),
            }
        };
        let ObjectSelection { objects, amount, .. } = &list.objects;
        Self { objects: amount.objects, bytes: amount.bytes, rows: objects.iter().map(row).collect() }
    }
}
