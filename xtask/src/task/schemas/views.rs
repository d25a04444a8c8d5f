//! Typed views: a struct for each shape of payload, and which event has which.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};

use super::facts::{Event, Facts, Field, Kind, View};
use super::{heading, names};

/// A field of a shape, with the versions that have it.
struct Member {
    name: String,
    kind: Kind,
    counts: bool,
    /// First version that has it.
    since: u8,
}

pub(super) fn code(facts: &Facts) -> Result<String> {
    let mut code = heading("Payloads with typed fields.");
    code.push_str("use nettrace::Utf16;\nuse nettrace::raw::ReadResult;\nuse uuid::Uuid;\n\n");
    code.push_str(
        "use crate::generated::enums::*;\nuse crate::list::{Element, List};\nuse crate::provider::Provider;\n",
    );
    code.push_str("use crate::reader::{PayloadView, Reader};\n");
    event_enum(&mut code, facts)?;
    let mut shapes: BTreeMap<&str, Vec<&View>> = BTreeMap::new();
    for view in &facts.views {
        shapes.entry(&view.shape).or_default().push(view);
    }
    for (shape, views) in shapes {
        shape_code(&mut code, facts, shape, &views).with_context(|| format!("views.tsv: {shape}"))?;
    }
    Ok(code)
}

fn event_enum(code: &mut String, facts: &Facts) -> Result<()> {
    code.push_str("\n/// An event of the runtime, by its meaning.\n#[derive(Debug, Clone, Copy)]\n#[non_exhaustive]\npub enum ClrEvent<'a> {\n");
    for view in &facts.views {
        let life = if has_borrows(facts, view) { "<'a>" } else { "" };
        let _ = writeln!(code, "    /// {}", view.meaning);
        code.push_str("    ///\n");
        for (provider, id, since) in &view.events {
            let _ = writeln!(code, "    /// {}", event_line(facts, view, provider, *id, *since)?);
        }
        let _ = writeln!(code, "    {}({}{life}),", view.variant, view.shape);
    }
    code.push_str("}\n\nimpl<'a> ClrEvent<'a> {\n");
    code.push_str("    /// Reads the payload of an event; `None` for an event, or an old version of it, that has no view.\n");
    code.push_str("    pub(crate) fn read(provider: Provider, id: u16, version: u8, reader: &mut Reader<'a>) -> Option<ReadResult<Self>> {\n");
    code.push_str("        Some(match (provider, id) {\n");
    for view in &facts.views {
        for (provider, id, since) in &view.events {
            let guard = if *since > 0 { format!(" if version >= {since}") } else { String::new() };
            let _ = writeln!(
                code,
                "            (Provider::{provider}, {id}){guard} => {}::read(reader, version).map(Self::{}),",
                view.shape, view.variant
            );
        }
    }
    code.push_str("            _ => return None,\n        })\n    }\n}\n");
    Ok(())
}

/// An event of a view as an item of a list: name, provider, id, oldest version.
fn event_line(facts: &Facts, view: &View, provider: &str, id: u16, since: u8) -> Result<String> {
    let provider = &facts.provider(provider)?.name;
    let event = facts.versions(provider, id).pop().with_context(|| format!("no event {provider}/{id}"))?;
    let name = if event.name.is_empty() { &view.variant } else { &event.name };
    let since = if since > 0 { format!(", from version {since}") } else { String::new() };
    Ok(format!("* `{name}`: event {id} of `{provider}`{since}."))
}

fn newest<'a>(facts: &'a Facts, view: &View) -> Option<&'a Event> {
    let (provider, id, _) = view.events.first()?;
    facts.versions(&facts.provider(provider).ok()?.name, *id).pop()
}

fn has_borrows(facts: &Facts, view: &View) -> bool {
    newest(facts, view).is_some_and(|event| event.fields.iter().any(|field| borrows(&field.kind)))
}

fn borrows(kind: &Kind) -> bool {
    match kind {
        Kind::Scalar(code, _) => matches!(code.as_str(), "string16" | "string8" | "text8" | "binary"),
        Kind::Array(..) | Kind::Struct(..) => true,
    }
}

fn shape_code(code: &mut String, facts: &Facts, shape: &str, views: &[&View]) -> Result<()> {
    let mut members: Option<Vec<Member>> = None;
    let mut events = String::new();
    for (view, (provider, id, since)) in
        views.iter().flat_map(|view| view.events.iter().map(move |event| (view, event)))
    {
        let versions = facts.versions(&facts.provider(provider)?.name, *id);
        let versions: Vec<&Event> = versions.into_iter().filter(|event| event.version >= *since).collect();
        let _ = writeln!(events, "/// {}", event_line(facts, view, provider, *id, *since)?);
        let merged = merge(&versions, *since)?;
        match &members {
            None => members = Some(merged),
            Some(members) => unite(members, &merged)?,
        }
    }
    let members = members.context("no events")?;
    // The list has the number of its elements.
    let shown: Vec<&Member> = members.iter().filter(|member| !member.counts).collect();
    let life = if members.iter().any(|member| borrows(&member.kind)) { "<'a>" } else { "" };
    for member in &members {
        if let Kind::Struct(list, _) = &member.kind {
            row_code(code, facts, &row_name(shape), shape, list)?;
        }
    }
    let _ = writeln!(
        code,
        "\n/// The payload of:\n///\n{events}#[derive(Debug, Clone, Copy)]\n#[non_exhaustive]"
    );
    if shown.is_empty() {
        let _ = writeln!(code, "pub struct {shape};");
    } else {
        let _ = writeln!(code, "pub struct {shape}{life} {{");
        for member in &shown {
            let field_type = rust_type(&member.kind, shape)?;
            let field_type = if member.since > 0 { format!("Option<{field_type}>") } else { field_type };
            let name = names::field(&member.name);
            let since =
                if member.since > 0 { format!(" From version {} on.", member.since) } else { String::new() };
            let _ = writeln!(code, "    /// {}{since}", facts.field(shape, &name)?);
            let _ = writeln!(code, "    pub {name}: {field_type},");
        }
        code.push_str("}\n");
    }
    let versioned = members.iter().any(|member| member.since > 0);
    let parameter = if versioned { "version" } else { "_" };
    let source = if members.is_empty() { "_" } else { "r" };
    let _ = writeln!(code, "\nimpl<'a> PayloadView<'a> for {shape}{life} {{");
    let _ = writeln!(code, "    fn read({source}: &mut Reader<'a>, {parameter}: u8) -> ReadResult<Self> {{");
    for member in &members {
        let name = if member.counts { "count".into() } else { names::field(&member.name) };
        let read = read(&member.kind)?;
        let value = match member.since {
            0 => read,
            since if member.counts => format!("if version < {since} {{ 0 }} else {{ {read} }}"),
            since => format!("if version < {since} {{ None }} else {{ Some({read}) }}"),
        };
        let _ = writeln!(code, "        let {name} = {value};\n        r.field_done();");
    }
    let list: Vec<String> = shown.iter().map(|member| names::field(&member.name)).collect();
    if list.is_empty() {
        code.push_str("        Ok(Self)\n    }\n}\n");
    } else {
        let _ = writeln!(code, "        Ok(Self {{ {} }})\n    }}\n}}", list.join(", "));
    }
    Ok(())
}

/// All versions in one list. A version's list is a part of it, in order.
fn merge(versions: &[&Event], since: u8) -> Result<Vec<Member>> {
    let mut members: Vec<Member> = Vec::new();
    for event in versions {
        let mut at = 0;
        let version = event.version;
        for field in &event.fields {
            if let Some(found) = members.iter().position(|member| member.name == field.name) {
                ensure!(found >= at, "{} version {version}: {} moves", event.name, field.name);
                ensure!(members[found].kind == field.kind, "{}: of two types", field.name);
                at = found + 1;
            } else {
                let Field { name, kind, counts } = field.clone();
                let since = if version > since { version } else { 0 };
                members.insert(at, Member { name, kind, counts, since });
                at += 1;
            }
        }
        let all = members.iter().filter(|member| member.since <= version).count();
        ensure!(all == event.fields.len(), "{} version {version} lacks fields of older ones", event.name);
    }
    Ok(members)
}

/// Events of one shape must have the same fields, but not the same number of versions.
fn unite(members: &[Member], other: &[Member]) -> Result<()> {
    ensure!(other.len() <= members.len(), "put the event with the most fields first");
    for (one, other) in members.iter().zip(other) {
        ensure!(
            one.name == other.name && one.kind == other.kind && one.since == other.since,
            "the events differ in {}",
            one.name
        );
    }
    ensure!(members[other.len()..].iter().all(|member| member.since > 0), "the events differ in length");
    Ok(())
}

fn row_name(shape: &str) -> String {
    format!("{shape}Row")
}

fn row_code(code: &mut String, facts: &Facts, name: &str, shape: &str, list: &[Field]) -> Result<()> {
    let life = if list.iter().any(|field| borrows(&field.kind)) { "<'a>" } else { "" };
    let has_count = list.iter().any(|field| field.counts);
    let _ = writeln!(
        code,
        "\n/// One element of [`{shape}`].\n#[derive(Debug, Clone, Copy)]\n#[non_exhaustive]\npub struct {name}{life} {{"
    );
    for field in list.iter().filter(|field| is_shown(field)) {
        let field_name = names::field(&field.name);
        let _ = writeln!(code, "    /// {}", facts.field(name, &field_name)?);
        let _ = writeln!(code, "    pub {field_name}: {},", rust_type(&field.kind, name)?);
    }
    let _ = writeln!(code, "}}\n\nimpl<'a> Element<'a> for {name}{life} {{");
    if let Some((narrow, wide)) = fixed_sizes(list) {
        let _ = writeln!(code, "    const SIZES: Option<(usize, usize)> = Some(({narrow}, {wide}));");
    }
    code.push_str("    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {\n");
    for field in list {
        let binding = if field.counts { "count".into() } else { names::field(&field.name) };
        let _ = match &field.kind {
            Kind::Scalar(code_name, _) if code_name.starts_with("pad") => {
                writeln!(code, "        r.{code_name}()?;")
            }
            kind => writeln!(code, "        let {binding} = {};", read(kind)?),
        };
    }
    ensure!(
        !has_count || list.iter().any(|field| matches!(field.kind, Kind::Array(..))),
        "a count of nothing"
    );
    let shown: Vec<String> =
        list.iter().filter(|field| is_shown(field)).map(|field| names::field(&field.name)).collect();
    let _ = writeln!(code, "        Ok(Self {{ {} }})\n    }}\n}}", shown.join(", "));
    Ok(())
}

/// Lists include their counts, and padding is not a value.
fn is_shown(field: &Field) -> bool {
    !field.counts && !matches!(&field.kind, Kind::Scalar(code, _) if code.starts_with("pad"))
}

/// Bytes of a struct with 4-byte and with 8-byte pointers, if all fields have a fixed size.
fn fixed_sizes(list: &[Field]) -> Option<(usize, usize)> {
    list.iter().try_fold((0, 0), |(narrow, wide), field| {
        let Kind::Scalar(code, _) = &field.kind else { return None };
        let (n, w) = match code.as_str() {
            "u8" => (1, 1),
            "u16" | "pad16" => (2, 2),
            "padword" => (0, 4),
            "u32" | "i32" | "bool32" => (4, 4),
            "u64" | "i64" | "f64" => (8, 8),
            "pointer" => (4, 8),
            _ => return None,
        };
        Some((narrow + n, wide + w))
    })
}

fn rust_type(kind: &Kind, shape: &str) -> Result<String> {
    Ok(match kind {
        Kind::Scalar(_, Some(map)) => names::type_name(map),
        Kind::Scalar(code, None) => match code.as_str() {
            "u8" | "u16" | "u32" | "u64" | "i32" | "i64" | "f64" => code.clone(),
            "bool32" => "bool".into(),
            "pointer" | "varuint" => "u64".into(),
            "guid" => "Uuid".into(),
            "string16" => "Utf16<'a>".into(),
            "string8" | "text8" => "&'a [u8]".into(),
            other => bail!("no type for {other}"),
        },
        Kind::Array(element, _) => match &**element {
            Kind::Scalar(code, None) if code == "binary" => "&'a [u8]".into(),
            element => format!("List<'a, {}>", rust_type(element, shape)?),
        },
        Kind::Struct(list, _) => {
            let life = if list.iter().any(|field| borrows(&field.kind)) { "<'a>" } else { "" };
            format!("List<'a, {}{life}>", row_name(shape))
        }
    })
}

fn read(kind: &Kind) -> Result<String> {
    Ok(match kind {
        Kind::Scalar(code, Some(map)) => {
            let read = if code == "u32" { "r.u32()?".to_owned() } else { format!("u32::from(r.{code}()?)") };
            format!("{}({read})", names::type_name(map))
        }
        Kind::Scalar(code, None) => match code.as_str() {
            "u8" | "u16" | "u32" | "u64" | "i32" | "i64" | "f64" | "bool32" | "guid" | "varuint" => {
                format!("r.{code}()?")
            }
            "pointer" => "r.address()?".into(),
            "string16" => "r.utf16()?".into(),
            "text8" => "r.counted_utf8()?".into(),
            other => bail!("cannot read {other}"),
        },
        Kind::Array(element, _) => match &**element {
            Kind::Scalar(code, None) if code == "binary" => "r.bytes(count)?".into(),
            _ => "List::read(r, count)?".into(),
        },
        Kind::Struct(..) => "List::read(r, count)?".into(),
    })
}
