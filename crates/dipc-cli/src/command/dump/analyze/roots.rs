//! `dipc dump analyze CORE statics` and `handles`: references to objects from outside the heap.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::Args;
use clr_dump::{Address, Dump, Handle, StaticField, Thread, TypeHandle};
use nettrace_export::Pattern;
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::core_heap;
use crate::inspect::core_source::Source;
use crate::inspect::core_text::type_text;
use crate::inspect::core_value::{JsonValue, LINE_DEPTH, field_name, field_type, json_value, value_line};
use crate::render::table::{Align, Columns};
use crate::render::{output, units};

/// The default number of rows of a table.
const ROWS: usize = 100;

#[derive(Debug, Args)]
pub(super) struct StaticsArgs {
    /// Only fields of types with this text in their name; '*' matches any text
    #[arg(long = "type", value_name = "TYPE")]
    of: Option<String>,
    /// Number of fields to show [default: 100 in a table, else all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
}

#[derive(Debug, Args)]
pub(super) struct HandlesArgs {
    /// Number of groups of handles to show in a table, and of handles in JSON [default: 100 and all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
}

pub(super) fn print_statics(
    source: &Source,
    dump: &Dump<'_>,
    args: &StaticsArgs,
    format: Format,
) -> Result<Exit, Failure> {
    if !dump.statics().has_places() {
        return Err(Failure::new(
            Exit::Incomplete,
            "dump analyze: the places of static fields of this version of the runtime are not known",
        )
        .with_help("dump analyze handles has the arrays that keep their objects"));
    }
    let heap = core_heap::statistics(source, dump)?;
    // Instances of generic types have static fields of their own.
    let types: BTreeSet<TypeHandle> = heap.types.iter().map(|of| of.type_handle).collect();
    let threads = dump.threads().list().unwrap_or_default();
    let name = |thread: &Thread| Some((thread.os_id, dump.threads().name(thread).ok()??));
    let thread_names: BTreeMap<u64, String> = threads.iter().filter_map(name).collect();
    let pattern = args.of.as_deref().map(Pattern::new);
    let is_meant = |of: &TypeHandle| {
        let name = type_text(dump.types().name(*of).as_deref(), of.get());
        pattern.as_ref().is_none_or(|pattern| pattern.matches(&name))
    };
    let is_unread = |of: &&TypeHandle| dump.statics().has_unread(**of) && is_meant(of);
    let unread_types = types.iter().filter(is_unread).count();
    let mut fields: Vec<(String, StaticField)> = dump
        .statics()
        .fields(types, &threads)
        .into_iter()
        .map(|field| {
            (type_text(dump.types().name(field.type_handle).as_deref(), field.type_handle.get()), field)
        })
        .filter(|(owner, _)| pattern.as_ref().is_none_or(|pattern| pattern.matches(owner)))
        .collect();
    fields.sort_by(|(owner, a), (other, b)| {
        (owner, &a.field.name, a.thread).cmp(&(other, &b.field.name, b.thread))
    });
    match format {
        Format::Table => {
            let mut text = statics_text(dump, &fields, &thread_names, args.head.unwrap_or(ROWS));
            if unread_types > 0 {
                let types = units::counted(
                    unread_types as u64,
                    "type that can be unloaded",
                    "types that can be unloaded",
                );
                let _ = writeln!(
                    text,
                    "Left out: static fields for each thread of {types}, which are not read before .NET 9"
                );
            }
            output::print(text)?;
        }
        Format::Json => {
            let row = |(owner, field): &(String, StaticField)| StaticRow {
                owner: owner.clone(),
                field: field_name(&field.field),
                tid: field.thread,
                thread: field.thread.and_then(|tid| thread_names.get(&tid).cloned()),
                value: json_value(dump, &dump.statics().value(field)),
            };
            let rows: Vec<_> = fields.iter().take(args.head.unwrap_or(usize::MAX)).map(row).collect();
            output::print_json(&Statics { fields: fields.len(), unread_types, rows })?;
        }
    }
    Ok(if heap.walk.gaps.is_empty() { Exit::Done } else { Exit::Incomplete })
}

fn statics_text(
    dump: &Dump<'_>,
    fields: &[(String, StaticField)],
    thread_names: &BTreeMap<u64, String>,
    most: usize,
) -> String {
    use Align::Left;
    let has_threads = fields.iter().take(most).any(|(_, field)| field.thread.is_some());
    let mut columns = if has_threads {
        Columns::new([("FIELD", Left), ("THREAD", Left), ("TYPE", Left), ("VALUE", Left)])
    } else {
        Columns::new([("FIELD", Left), ("TYPE", Left), ("VALUE", Left)])
    };
    for (owner, field) in fields.iter().take(most) {
        let value = dump.statics().value(field);
        let type_name = field_type(dump, &field.field, &value);
        let thread = field.thread.map(|tid| match thread_names.get(&tid) {
            Some(name) => format!("{tid} {name}"),
            None => tid.to_string(),
        });
        let name = format!("{owner}.{}", field_name(&field.field));
        let value = value_line(dump, &value, LINE_DEPTH);
        if has_threads {
            columns.row([name, thread.unwrap_or_default(), type_name, value]);
        } else {
            columns.row([name, type_name, value]);
        }
    }
    let mut text = columns.fitted(&[]);
    let left = fields.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
    text
}

#[derive(Debug, Serialize)]
struct Statics {
    fields: usize,
    /// The number of types with unread static fields: the types can be unloaded.
    unread_types: usize,
    rows: Vec<StaticRow>,
}

#[derive(Debug, Serialize)]
struct StaticRow {
    /// The type that declares the field.
    owner: String,
    field: String,
    /// The thread that has this value, of a field that each thread has for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u64>,
    /// The name of that thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    value: JsonValue,
}

pub(super) fn print_handles(
    source: &Source,
    dump: &Dump<'_>,
    args: &HandlesArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let handles = dump.heap().handles().map_err(|missing| core_heap::lacks(source, &missing.to_string()))?;
    match format {
        Format::Table => output::print(handles_text(dump, &handles.handles, args.head.unwrap_or(ROWS)))?,
        Format::Json => {
            let row = |handle: &Handle| HandleRow {
                address: format!("{:#x}", handle.address),
                kind: kind(handle),
                object: format!("{:#x}", handle.object),
                r#type: dump.heap().type_name(handle.object).map(|name| type_text(Some(&name), 0)),
                dependent: (!handle.dependent.is_null()).then(|| format!("{:#x}", handle.dependent)),
                dependent_type: (!handle.dependent.is_null())
                    .then(|| dump.heap().type_name(handle.dependent).map(|name| type_text(Some(&name), 0)))
                    .flatten(),
            };
            let rows = handles.handles.iter().take(args.head.unwrap_or(usize::MAX)).map(row).collect();
            let report =
                HandleReport { handles: handles.handles.len(), incomplete: handles.is_incomplete, rows };
            output::print_json(&report)?;
        }
    }
    Ok(if handles.is_incomplete { Exit::Incomplete } else { Exit::Done })
}

/// The name of a handle's kind.
fn kind(handle: &Handle) -> String {
    handle.kind.name().map_or_else(|| handle.kind.0.to_string(), str::to_owned)
}

fn handles_text(dump: &Dump<'_>, handles: &[Handle], most: usize) -> String {
    use Align::{Left, Right};
    let mut groups: BTreeMap<(String, String), (u64, Address)> = BTreeMap::new();
    for handle in handles {
        let of = |object: Address| type_text(dump.heap().type_name(object).as_deref(), object.get());
        let name = match handle.dependent {
            dependent if dependent.is_null() => of(handle.object),
            dependent => format!("{} → {}", of(handle.object), of(dependent)),
        };
        let group = groups.entry((kind(handle), name)).or_insert((0, handle.object));
        group.0 += 1;
    }
    let mut rows: Vec<_> = groups.into_iter().collect();
    rows.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let mut columns = Columns::new([("HANDLES", Right), ("KIND", Left), ("EXAMPLE", Left), ("TYPE", Left)]);
    for ((kind, name), (count, example)) in rows.iter().take(most) {
        columns.row([units::count(*count), kind.clone(), format!("{example:#x}"), name.clone()]);
    }
    let mut text = columns.fitted(&["EXAMPLE"]);
    let left = rows.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
    text
}

#[derive(Debug, Serialize)]
struct HandleReport {
    handles: usize,
    /// True if the dump lacks some.
    incomplete: bool,
    rows: Vec<HandleRow>,
}

#[derive(Debug, Serialize)]
struct HandleRow {
    address: String,
    kind: String,
    object: String,
    r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependent_type: Option<String>,
}
