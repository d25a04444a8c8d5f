//! The providers, and the schemas of their events.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use super::facts::{Count, Event, Facts, Field, Kind};
use super::{heading, names};

pub(super) fn providers(facts: &Facts) -> String {
    let mut code = heading("The providers whose events this crate knows.");
    code.push_str("use crate::macros::providers;\n\nproviders! {\n");
    for provider in &facts.providers {
        let guid = provider.guid.replace('-', "");
        let _ = writeln!(
            code,
            "    {} = \"{}\", 0x{guid}, \"{}\";",
            provider.variant, provider.name, provider.meaning
        );
    }
    code.push_str("}\n");
    code
}

pub(super) fn schemas(facts: &Facts) -> Result<String> {
    let mut code = heading("Every version of every event.");
    code.push_str(
        "use nettrace::schema::{Count, FieldType as T};\n\nuse crate::generated::enums;\nuse crate::provider::Provider;\nuse crate::schema::{Schema, Table, counter as c, field as f};\n\n",
    );
    code.push_str("/// The table of a provider.\npub(crate) const fn table(provider: Provider) -> &'static Table {\n    match provider {\n");
    for provider in &facts.providers {
        let _ = writeln!(
            code,
            "        Provider::{0} => &{1},",
            provider.variant,
            names::constant(&provider.variant)
        );
    }
    code.push_str("    }\n}\n");
    for provider in &facts.providers {
        let events: Vec<&Event> =
            facts.events.iter().filter(|event| event.provider == provider.name).collect();
        ensure!(
            events.is_sorted_by(|one, other| (one.id, one.version) < (other.id, other.version)),
            "{}: out of order",
            provider.name
        );
        table(&mut code, &provider.variant, &events)?;
    }
    Ok(code)
}

fn table(code: &mut String, variant: &str, events: &[&Event]) -> Result<()> {
    let ids = events.last().map_or(0, |event| usize::from(event.id) + 1);
    let firsts: Vec<usize> =
        (0..=ids).map(|id| events.partition_point(|event| usize::from(event.id) < id)).collect();
    let _ = writeln!(code, "\nstatic {}: Table = Table {{", names::constant(variant));
    code.push_str("    firsts: &[");
    for line in firsts.chunks(24) {
        code.push_str("\n        ");
        for first in line {
            let _ = write!(code, "{first}, ");
        }
        code.truncate(code.trim_end().len());
    }
    code.push_str("\n    ],\n    schemas: &[\n");
    for event in events {
        let Event { id, version, name, task, opcode_name, opcode, level, keywords, .. } = event;
        let _ = write!(
            code,
            "        Schema {{ provider: Provider::{variant}, id: {id}, version: {version}, name: \"{name}\", task: \"{task}\", opcode_name: \"{opcode_name}\", opcode: {opcode}, level: {level}, keywords: {keywords:#x}, fields: &["
        );
        code.push_str(&fields(&event.fields)?);
        code.push_str("] },\n");
    }
    code.push_str("    ],\n};\n");
    Ok(())
}

fn fields(list: &[Field]) -> Result<String> {
    let mut code = Vec::new();
    for field in list {
        let make = if field.counts { 'c' } else { 'f' };
        code.push(format!("{make}(\"{}\", {})", field.name, kind(&field.kind)?));
    }
    Ok(code.join(", "))
}

fn kind(kind: &Kind) -> Result<String> {
    Ok(match kind {
        Kind::Scalar(code, None) => format!("T::{}", scalar(code)?),
        Kind::Scalar(code, Some(map)) => {
            ensure!(matches!(code.as_str(), "u8" | "u16" | "u32"), "names for {code}");
            format!("T::Named{}(&enums::{})", &code[1..], names::map(map))
        }
        Kind::Array(element, of) => match &**element {
            Kind::Scalar(code, None) if code == "binary" => format!("T::Bytes({})", count(*of)),
            element => format!("T::Array(&{}, {})", self::kind(element)?, count(*of)),
        },
        Kind::Struct(list, of) => format!("T::Array(&T::Object(&[{}]), {})", fields(list)?, count(*of)),
    })
}

fn count(count: Count) -> String {
    match count {
        Count::Fixed(count) => format!("Count::Fixed({count})"),
        Count::Counted => "Count::Counted".into(),
    }
}

fn scalar(code: &str) -> Result<&'static str> {
    Ok(match code {
        "u8" => "U8",
        "u16" => "U16",
        "u32" => "U32",
        "u64" => "U64",
        "i32" => "I32",
        "i64" => "I64",
        "f64" => "F64",
        "bool32" => "BOOL32",
        "pointer" => "Address",
        "guid" => "GUID",
        "string16" => "STRING16",
        "string8" => "Utf8",
        "varuint" => "VARUINT",
        "text8" => "CountedUtf8",
        "pad16" => "Pad16",
        "padword" => "PadWord",
        other => anyhow::bail!("unknown type {other}"),
    })
}
