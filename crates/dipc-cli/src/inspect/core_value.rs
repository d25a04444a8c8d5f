//! Values of fields and objects in words and as JSON.

use clr_dump::{Field, FieldValue, Names, Value};
use serde::Serialize;

use crate::inspect::core_text::type_text;

/// A field in words.
pub(crate) struct FieldText {
    /// Its name, after those of the structures that it is in.
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) value: String,
}

/// Returns fields in words; those of structures one by one.
pub(crate) fn field_texts(names: &Names<'_>, fields: &[FieldValue]) -> Vec<FieldText> {
    let mut texts = Vec::new();
    for field in fields {
        add_field(names, "", field, &mut texts);
    }
    texts
}

fn add_field(names: &Names<'_>, before: &str, of: &FieldValue, texts: &mut Vec<FieldText>) {
    let name = [before, &field_name(&of.field)].concat();
    match &of.value {
        Value::Structure { fields, .. } => {
            let before = name + ".";
            for field in fields {
                add_field(names, &before, field, texts);
            }
        }
        value => texts.push(FieldText { name, type_name: field_type(names, of), value: value_text(value) }),
    }
}

/// The name of a field, or of its property.
pub(crate) fn field_name(field: &Field) -> String {
    let property = field.name.strip_prefix('<').and_then(|name| name.strip_suffix(">k__BackingField"));
    property.unwrap_or(&field.name).to_owned()
}

/// The type of a field: of a reference that of its object.
pub(crate) fn field_type(names: &Names<'_>, of: &FieldValue) -> String {
    if let Value::Reference { type_name: Some(name), .. } | Value::Structure { type_name: Some(name), .. } =
        &of.value
    {
        return type_text(Some(name), 0);
    }
    // An enumeration has the kind of its numbers, and a type.
    if let Some(name) = of.field.value_type.and_then(|of| names.type_name(of)) {
        return type_text(Some(&name), 0);
    }
    match of.field.kind.name() {
        Some(name) => name.to_owned(),
        None => of.field.type_text.as_deref().map_or_else(String::new, declared_type),
    }
}

/// The C# name of a type in the notation of signatures.
fn declared_type(text: &str) -> String {
    let name = ["value class ", "class "].into_iter().find_map(|prefix| text.strip_prefix(prefix));
    type_text(Some(name.unwrap_or(text)), 0)
}

/// A value in words. Texts are not escaped.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Char(unit) => format!("'{}'", String::from_utf16_lossy(&[*unit])),
        Value::Signed(number) => number.to_string(),
        Value::Unsigned(number) => number.to_string(),
        Value::Single(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Null => "null".to_owned(),
        Value::Reference { address, text: Some((text, is_longer)), .. } => {
            format!("{address:#x} \"{text}{}\"", if *is_longer { "…" } else { "" })
        }
        Value::Pointer(address) | Value::Reference { address, .. } => format!("{address:#x}"),
        Value::Structure { fields, .. } => {
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
    /// `null` if it is not a number.
    Float(f64),
    Text(String),
    Null,
    Reference {
        address: String,
        r#type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Whether the text is longer.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    Structure {
        r#type: Option<String>,
        fields: Vec<JsonField>,
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

/// Returns fields as JSON.
pub(crate) fn json_fields(names: &Names<'_>, fields: &[FieldValue]) -> Vec<JsonField> {
    let field = |of: &FieldValue| JsonField {
        name: field_name(&of.field),
        declared_by: names.type_name(of.field.declaring_type).map(|name| type_text(Some(&name), 0)),
        r#type: field_type(names, of),
        value: json_value(names, &of.value),
    };
    fields.iter().map(field).collect()
}

/// Returns a value as JSON.
pub(crate) fn json_value(names: &Names<'_>, value: &Value) -> JsonValue {
    match value {
        Value::Bool(value) => JsonValue::Bool(*value),
        Value::Signed(number) => JsonValue::Signed(*number),
        Value::Unsigned(number) => JsonValue::Unsigned(*number),
        Value::Single(number) => JsonValue::Float((*number).into()),
        Value::Double(number) => JsonValue::Float(*number),
        Value::Char(unit) => JsonValue::Text(String::from_utf16_lossy(&[*unit])),
        Value::Pointer(address) => JsonValue::Text(format!("{address:#x}")),
        Value::Null => JsonValue::Null,
        Value::Reference { address, type_name, text } => JsonValue::Reference {
            address: format!("{address:#x}"),
            r#type: type_name.as_deref().map(|name| type_text(Some(name), 0)),
            text: text.as_ref().map(|(text, _)| text.clone()),
            cut: text.as_ref().is_some_and(|(_, is_longer)| *is_longer),
        },
        Value::Structure { type_name, fields } => JsonValue::Structure {
            r#type: type_name.as_deref().map(|name| type_text(Some(name), 0)),
            fields: json_fields(names, fields),
        },
        Value::Bytes(bytes) => JsonValue::Bytes { bytes: hexadecimal(bytes) },
        _ => JsonValue::Missing { missing: true },
    }
}
