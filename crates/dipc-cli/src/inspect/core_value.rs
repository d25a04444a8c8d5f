//! Values of fields and objects in words and as JSON.

mod known_object;

use clr_dump::{Dump, Field, FieldValue, Value};
use serde::Serialize;

use crate::inspect::core_known_value::{known_text, nullable};
use crate::inspect::core_text::type_text;

pub(crate) use known_object::{JsonContent, LINE_DEPTH, value_line};

use known_object::immutable_array;

/// Maximum number of elements of a buffer to show in a table.
const MAX_ELEMENTS: usize = 16;

/// A field in words.
pub(crate) struct FieldText {
    /// Name of the field, after the names of its enclosing structures.
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) value: String,
}

/// Returns fields in words; fields of structures individually.
pub(crate) fn field_texts(dump: &Dump<'_>, fields: &[FieldValue]) -> Vec<FieldText> {
    let mut texts = Vec::new();
    for field in fields {
        add_field(dump, "", field, &mut texts);
    }
    texts
}

fn add_field(dump: &Dump<'_>, before: &str, of: &FieldValue, texts: &mut Vec<FieldText>) {
    let name = [before, &field_name(&of.field)].concat();
    match &of.value {
        Value::Structure { type_name, fields } if !is_one_value(type_name.as_deref(), fields) => {
            let before = name + ".";
            for field in fields {
                add_field(dump, &before, field, texts);
            }
        }
        value => texts.push(FieldText {
            name,
            type_name: field_type(dump, &of.field, value),
            value: value_line(dump, value, LINE_DEPTH),
        }),
    }
}

/// Returns true if a structure is written as one value.
fn is_one_value(type_name: Option<&str>, fields: &[FieldValue]) -> bool {
    let is_known = |of: &str| known_text(of, fields).is_some() || nullable(of, fields).is_some();
    type_name.is_some_and(is_known) || immutable_array(type_name, fields).is_some()
}

/// The name of a field, or of its property.
pub(crate) fn field_name(field: &Field) -> String {
    let property = field.name.strip_prefix('<').and_then(|name| name.strip_suffix(">k__BackingField"));
    property.unwrap_or(&field.name).to_owned()
}

/// The type of a field: of a reference that of its object.
pub(crate) fn field_type(dump: &Dump<'_>, field: &Field, value: &Value) -> String {
    if let Value::Reference { type_name: Some(name), .. } | Value::Structure { type_name: Some(name), .. } =
        value
    {
        return type_text(Some(name), 0);
    }
    // An enumeration has the kind of its numbers, and a type.
    if let Some(name) = field.value_type.and_then(|of| dump.types().name(of)) {
        return type_text(Some(&name), 0);
    }
    match field.kind.name() {
        Some(name) => name.to_owned(),
        None => field.type_text.as_deref().map_or_else(String::new, declared_type),
    }
}

/// The C# name of a type in the notation of signatures.
pub(crate) fn declared_type(text: &str) -> String {
    let name = ["value class ", "class "].into_iter().find_map(|prefix| text.strip_prefix(prefix));
    type_text(Some(name.unwrap_or(text)), 0)
}

/// A value in words. Texts are not escaped.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Char(unit) => format!("'{}'", character(*unit)),
        Value::Signed(number) | Value::Enumeration { number, name: None } => number.to_string(),
        Value::Unsigned(number) => number.to_string(),
        Value::Single(number) => {
            special(f64::from(*number)).map_or_else(|| number.to_string(), str::to_owned)
        }
        Value::Double(number) => special(*number).map_or_else(|| number.to_string(), str::to_owned),
        Value::Null => "null".to_owned(),
        Value::Reference { address, text: Some((text, is_longer)), .. } => {
            format!("{address:#x} {}", quoted(text, *is_longer))
        }
        Value::Pointer(address) | Value::Reference { address, .. } => format!("{address:#x}"),
        Value::Enumeration { name: Some(name), .. } => name.clone(),
        Value::Buffer { elements, length } => {
            let texts: Vec<_> = elements.iter().take(MAX_ELEMENTS).map(value_text).collect();
            let more =
                if texts.len() < usize::try_from(*length).unwrap_or(usize::MAX) { ", …" } else { "" };
            format!("[{}{more}]", texts.join(", "))
        }
        Value::Structure { type_name, fields } => {
            let type_name = type_name.as_deref().unwrap_or_default();
            if let Some(text) = known_text(type_name, fields) {
                return text;
            }
            if let Some(value) = nullable(type_name, fields) {
                return value_text(value);
            }
            let fields: Vec<_> = fields
                .iter()
                .map(|field| format!("{}: {}", field_name(&field.field), value_text(&field.value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Bytes(bytes) => hexadecimal(bytes),
        _ => "(not in the dump)".to_owned(),
    }
}

/// A string in quotes, with quotes in it escaped.
pub(crate) fn quoted(text: &str, is_cut: bool) -> String {
    format!("\"{}{}\"", text.replace('"', "\\\""), if is_cut { "…" } else { "" })
}

/// The character of a unit of UTF-16; the number of half of one.
fn character(unit: u16) -> String {
    char::from_u32(unit.into()).map_or_else(|| format!("\\u{unit:04X}"), String::from)
}

/// The name of a number that is infinite, or none.
fn special(number: f64) -> Option<&'static str> {
    match number {
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        number if number.is_nan() => Some("NaN"),
        _ => None,
    }
}

/// A number as JSON; numbers that JSON lacks are written by name.
fn float(number: f64) -> JsonValue {
    special(number).map_or(JsonValue::Float(number), |name| JsonValue::Text(name.to_owned()))
}

/// Bytes in hexadecimal, with blanks between.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// A value as JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum JsonValue {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    Null,
    Reference {
        address: String,
        r#type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// True if the text is longer.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
        /// The elements of a collection, or the text of an object that is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Box<JsonContent>>,
    },
    /// The elements of an `ImmutableArray`.
    Content(Box<JsonContent>),
    Structure {
        r#type: Option<String>,
        fields: Vec<JsonField>,
    },
    Enumeration {
        number: i64,
        /// `None` for ordinary numbers.
        name: Option<String>,
    },
    Buffer {
        length: u32,
        /// The first elements.
        elements: Vec<JsonValue>,
    },
    Bytes {
        bytes: String,
    },
    Missing {
        missing: bool,
    },
}

/// A field as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct JsonField {
    name: String,
    /// The type that declares it.
    declared_by: Option<String>,
    r#type: String,
    value: JsonValue,
}

/// Returns fields as JSON, with the content of collections up to some levels.
pub(crate) fn json_fields(dump: &Dump<'_>, fields: &[FieldValue], depth: u32) -> Vec<JsonField> {
    let field = |of: &FieldValue| JsonField {
        name: field_name(&of.field),
        declared_by: dump.types().name(of.field.declaring_type).map(|name| type_text(Some(&name), 0)),
        r#type: field_type(dump, &of.field, &of.value),
        value: json_value_to(dump, &of.value, depth),
    };
    fields.iter().map(field).collect()
}

/// Returns a value as JSON, with the content of a collection.
pub(crate) fn json_value(dump: &Dump<'_>, value: &Value) -> JsonValue {
    json_value_to(dump, value, 1)
}

/// Returns a value as JSON, with the content of collections up to some levels.
pub(crate) fn json_value_to(dump: &Dump<'_>, value: &Value, depth: u32) -> JsonValue {
    let inner = |value: &Value| json_value_to(dump, value, depth);
    match value {
        Value::Bool(value) => JsonValue::Bool(*value),
        Value::Signed(number) => JsonValue::Signed(*number),
        Value::Unsigned(number) => JsonValue::Unsigned(*number),
        Value::Single(number) => float((*number).into()),
        Value::Double(number) => float(*number),
        Value::Char(unit) => JsonValue::Text(character(*unit)),
        Value::Pointer(address) => JsonValue::Text(format!("{address:#x}")),
        Value::Null => JsonValue::Null,
        Value::Reference { address, type_name, text } => JsonValue::Reference {
            address: format!("{address:#x}"),
            r#type: type_name.as_deref().map(|name| type_text(Some(name), 0)),
            text: text.as_ref().map(|(text, _)| text.clone()),
            cut: text.as_ref().is_some_and(|(_, is_longer)| *is_longer),
            content: JsonContent::of_object(dump, *address, depth).map(Box::new),
        },
        Value::Enumeration { number, name } => JsonValue::Enumeration { number: *number, name: name.clone() },
        Value::Buffer { elements, length } => {
            JsonValue::Buffer { length: *length, elements: elements.iter().map(inner).collect() }
        }
        Value::Structure { type_name, fields } if is_one_value(type_name.as_deref(), fields) => {
            if let Some(array) = immutable_array(type_name.as_deref(), fields) {
                return match JsonContent::of_object(dump, array, depth) {
                    Some(content) => JsonValue::Content(Box::new(content)),
                    None => JsonValue::Text(format!("{array:#x}")),
                };
            }
            let type_name = type_name.as_deref().unwrap_or_default();
            match nullable(type_name, fields) {
                Some(value) => inner(value),
                None => JsonValue::Text(known_text(type_name, fields).unwrap_or_default()),
            }
        }
        Value::Structure { type_name, fields } => JsonValue::Structure {
            r#type: type_name.as_deref().map(|name| type_text(Some(name), 0)),
            fields: json_fields(dump, fields, depth),
        },
        Value::Bytes(bytes) => JsonValue::Bytes { bytes: hexadecimal(bytes) },
        _ => JsonValue::Missing { missing: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_quotes_in_strings() {
        assert_eq!(quoted("a \"b\"", true), "\"a \\\"b\\\"…\"");
        assert_eq!((character(0x78), character(0xd800)), ("x".to_owned(), "\\uD800".to_owned()));
    }

    #[test]
    fn writes_numbers_that_json_lacks_as_strings() {
        let json = |number| serde_json::to_string(&float(number)).unwrap();
        assert_eq!(
            [1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(json),
            ["1.5", "\"NaN\"", "\"Infinity\"", "\"-Infinity\""]
        );
    }
}
