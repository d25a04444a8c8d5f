//! `dipc dump analyze CORE object ADDRESS`: the content of an object, and the path that keeps it alive.

use std::fmt::Write as _;

use clap::Args;
use clr_dump::{Address, Dump, HeapObject, KnownContent, ObjectContent, Value};
use gcdump::{HeapGraph, PathTree};
use nettrace_export::NameForm;
use serde::Serialize;

use crate::args::format::Format;
use crate::args::heap_paths::{is_zero, parse_address};
use crate::exit::{Exit, Failure};
use crate::inspect::core_text::type_text;
use crate::inspect::core_value::{
    JsonContent, JsonField, JsonValue, LINE_DEPTH, field_texts, json_fields, json_value_to, quoted,
    value_line, value_text,
};
use crate::inspect::heap::step_name;
use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns, heading};
use crate::render::{output, units};

/// The default number of elements of an array, and of hundreds of characters of a string.
const ELEMENTS: u32 = 30;
/// Characters of a string for each element of an array.
const CHARACTERS: u32 = 100;
/// The default number of levels of collections in JSON, and the largest.
const DEPTH: u32 = 2;
const MAX_DEPTH: u32 = 8;
/// The steps of a path at each end.
const STEPS: usize = 20;

#[derive(Debug, Args)]
pub(super) struct ObjectArgs {
    /// The address of the object, in hexadecimal
    #[arg(value_name = "ADDRESS", value_parser = parse_address)]
    address: u64,
    /// Number of array elements to show, or of hundreds of characters of a string
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N", default_value_t = ELEMENTS)]
    head: u32,
    /// Levels of collections that JSON shows the elements of, 16 of each: 1 to 8
    #[arg(long, value_name = "N", default_value_t = DEPTH, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    depth: u32,
    /// Leave out what keeps the object alive, which takes a read of the whole heap
    #[arg(long)]
    pub(super) no_path: bool,
}

/// Prints an object. `graph` is the heap, in which the path to it is looked up.
pub(super) fn print(
    dump: &Dump<'_>,
    args: &ObjectArgs,
    graph: Option<&HeapGraph>,
    format: Format,
) -> Result<(), Failure> {
    let address = args.address;
    let failed =
        |why: &dyn std::fmt::Display| Failure::new(Exit::Failed, format_args!("{address:#x}: {why}"));
    let object = dump.heap().object_at(Address::new(address));
    let object = object.ok_or_else(|| failed(&"no object begins at this address"))?;
    let most = if dump.types().is_string(object.type_handle) {
        args.head.saturating_mul(CHARACTERS)
    } else {
        args.head
    };
    let content = dump.heap().content(&object, most).map_err(|missing| failed(&missing))?;
    // Of an object that is one text, these are characters.
    let known = dump.heap().known_content(object.address, args.head);
    let known = match known {
        Some(KnownContent::Text { .. }) => {
            dump.heap().known_content(object.address, args.head.saturating_mul(CHARACTERS))
        }
        known => known,
    };
    let holders = graph.map(|graph| holders(graph, address));
    match format {
        Format::Table => output::print(text(dump, &object, (&content, known.as_ref()), holders.as_ref())),
        Format::Json => {
            let mut report = Report::new(dump, &object, &content, holders, args.depth);
            // The content of the object itself is a level, too.
            let depth = args.depth.saturating_sub(1);
            report.truncated_stacks = graph.map_or(0, |graph| graph.completeness().truncated_stacks);
            report.content = known.and_then(|known| JsonContent::new(dump, &known, depth));
            output::print_json(&report)
        }
    }
}

/// The path from a root to an object.
enum Holders {
    /// The steps of the path, the root first; `None` for those left out.
    Path(Vec<Option<String>>),
    /// Nothing keeps it alive, or it is reached in an unknown way.
    Unreachable,
    /// The object is not in the heap.
    NotInHeap,
}

fn holders(graph: &HeapGraph, address: u64) -> Holders {
    let Some(object) = graph.object_at(address) else { return Holders::NotInHeap };
    let tree = PathTree::new(graph);
    let paths = tree.paths_to_objects(graph, 1, |other| other.id() == object.id());
    let Some(path) = paths.paths.first() else { return Holders::Unreachable };
    let (first, left, last) = path.ends(STEPS);
    let name = |step: &gcdump::PathStep| Some(step_name(graph, *step, NameForm::CSharp).into_owned());
    // The root of all roots carries no information.
    let mut steps: Vec<_> = first.iter().skip(1).map(name).collect();
    if left > 0 {
        steps.push(None);
    }
    steps.extend(last.iter().map(name));
    Holders::Path(steps)
}

fn type_name(dump: &Dump<'_>, object: &HeapObject) -> String {
    type_text(dump.types().name(object.type_handle).as_deref(), object.type_handle.get())
}

fn text(
    dump: &Dump<'_>,
    object: &HeapObject,
    (content, known): (&ObjectContent, Option<&KnownContent>),
    holders: Option<&Holders>,
) -> String {
    use Align::{Left, Right};
    let mut text = format!(
        "{} at {:#x}, {}\n\n",
        escape_controls(&type_name(dump, object)),
        object.address,
        units::bytes(object.size)
    );
    if let Some(known) = known {
        text.push_str(&known_text(dump, known));
        text.push('\n');
        text.push_str(&heading("Fields"));
    }
    match content {
        ObjectContent::Text { text: value, length } => {
            let is_cut = *length as usize > value.encode_utf16().count();
            let _ = writeln!(text, "{}", quoted(&escape_controls(value), is_cut));
            let _ = writeln!(text, "{} characters", units::count((*length).into()));
        }
        ObjectContent::Array { lengths, elements } => {
            let lengths: Vec<_> = lengths.iter().map(ToString::to_string).collect();
            let mut columns = Columns::new([("INDEX", Right), ("VALUE", Left)]);
            for (index, value) in elements.iter().enumerate() {
                columns.row([index.to_string(), element_text(dump, value)]);
            }
            let _ = writeln!(text, "[{}]", lengths.join(", "));
            text.push_str(&columns.fitted(&[]));
            let left = u64::from(object.length()).saturating_sub(elements.len() as u64);
            if left > 0 {
                let _ = writeln!(text, "({} more)", units::count(left));
            }
        }
        ObjectContent::Fields(fields) => {
            let mut columns = Columns::new([("FIELD", Left), ("TYPE", Left), ("VALUE", Left)]);
            for field in field_texts(dump, fields) {
                columns.row([field.name, field.type_name, field.value]);
            }
            text.push_str(&columns.fitted(&[]));
        }
        _ => {}
    }
    match holders {
        None => {}
        Some(Holders::Path(steps)) => {
            text.push('\n');
            text.push_str(&heading("Held by"));
            for step in steps {
                let step = step.as_deref().map_or("…".into(), escape_controls);
                let _ = writeln!(text, "    {step}");
            }
        }
        Some(Holders::Unreachable) => text.push_str("\nNo known root leads to it\n"),
        Some(Holders::NotInHeap) => {
            text.push_str("\nIt is not in the heap: a copy, or from an earlier heap\n");
        }
    }
    text
}

/// The content of a known object: its elements, a row each, or its text.
fn known_text(dump: &Dump<'_>, known: &KnownContent) -> String {
    use Align::{Left, Right};
    let (columns, shown, count) = match known {
        KnownContent::Elements { elements, count } => {
            let mut columns = Columns::new([("INDEX", Right), ("VALUE", Left)]);
            for (index, value) in elements.iter().enumerate() {
                columns.row([index.to_string(), element_text(dump, value)]);
            }
            (columns, elements.len(), *count)
        }
        KnownContent::Pairs { pairs, count } => {
            let mut columns = Columns::new([("KEY", Left), ("VALUE", Left)]);
            for (key, value) in pairs {
                columns.row([element_text(dump, key), element_text(dump, value)]);
            }
            (columns, pairs.len(), *count)
        }
        KnownContent::Text { text, is_cut } => {
            return format!("{}\n", quoted(&escape_controls(text), *is_cut));
        }
        KnownContent::Boxed(value) => return format!("{}\n", escape_controls(&value_text(value))),
        _ => return String::new(),
    };
    let mut text = format!("{}\n", units::counted(count, "element", "elements"));
    if shown > 0 {
        text.push_str(&columns.fitted(&[]));
    }
    let left = count.saturating_sub(shown as u64);
    if left > 0 {
        let _ = writeln!(text, "({} more)", units::count(left));
    }
    text
}

/// The text of an element, with the type of its object.
fn element_text(dump: &Dump<'_>, value: &Value) -> String {
    let line = value_line(dump, value, LINE_DEPTH);
    match value {
        Value::Reference { type_name: Some(name), text: None, .. } if line == value_text(value) => {
            format!("{line} {}", type_text(Some(name), 0))
        }
        _ => line,
    }
}

#[derive(Debug, Serialize)]
struct Report {
    address: String,
    r#type: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The length of a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u32>,
    /// The length of each dimension of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<Vec<JsonValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<JsonField>>,
    /// The elements of a collection, or the text of an object that is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<JsonContent>,
    /// The path from a root; `null` for steps that are left out. Missing if no root leads to it, or none was
    /// looked for.
    path: Option<Vec<Option<String>>>,
    /// Threads with more references on their stacks than are read: the path can be missing.
    #[serde(skip_serializing_if = "is_zero")]
    truncated_stacks: u64,
}

impl Report {
    /// `depth` is the number of levels of collections.
    fn new(
        dump: &Dump<'_>,
        object: &HeapObject,
        content: &ObjectContent,
        holders: Option<Holders>,
        depth: u32,
    ) -> Self {
        let mut report = Self {
            address: format!("{:#x}", object.address),
            r#type: type_name(dump, object),
            bytes: object.size,
            text: None,
            length: None,
            lengths: None,
            elements: None,
            fields: None,
            content: None,
            path: match holders {
                Some(Holders::Path(steps)) => Some(steps),
                _ => None,
            },
            truncated_stacks: 0,
        };
        match content {
            ObjectContent::Text { text, length } => {
                report.text = Some(text.clone());
                report.length = Some(*length);
            }
            ObjectContent::Array { lengths, elements } => {
                report.lengths = Some(lengths.clone());
                report.elements =
                    Some(elements.iter().map(|value| json_value_to(dump, value, depth)).collect());
            }
            ObjectContent::Fields(fields) => report.fields = Some(json_fields(dump, fields, depth)),
            _ => {}
        }
        report
    }
}
