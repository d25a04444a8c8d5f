//! Collections, and objects that are one text, in one line and as JSON.

use clr_dump::{Address, Dump, FieldValue, KnownContent, ObjectContent, Value};
use serde::Serialize;

use crate::inspect::core_value::{JsonValue, json_value_to, quoted, value_text};

/// Maximum number of elements in a line.
const LINE_ELEMENTS: u32 = 8;
/// Maximum number of characters of a text in a line.
const LINE_CHARACTERS: u32 = 256;
/// Maximum number of elements of a collection that is a value, as JSON.
const JSON_ELEMENTS: u32 = 16;
/// Levels of collections in a line.
pub(crate) const LINE_DEPTH: u32 = 2;

/// The content of a known object, or of an array; `None` of other objects.
fn content(dump: &Dump<'_>, object: Address, most: u32) -> Option<KnownContent> {
    let heap = dump.heap();
    let is_array = heap.object_at(object).filter(|object| dump.types().is_array(object.type_handle));
    let Some(array) = is_array else { return heap.known_content(object, most) };
    match heap.content(&array, most).ok()? {
        ObjectContent::Array { elements, .. } => {
            Some(KnownContent::elements(elements, array.length().into()))
        }
        _ => None,
    }
}

/// The object of an `ImmutableArray`, which is a structure with one field.
pub(crate) fn immutable_array(type_name: Option<&str>, fields: &[FieldValue]) -> Option<Address> {
    let is_array = type_name?.starts_with("System.Collections.Immutable.ImmutableArray`1");
    match fields {
        [FieldValue { value: Value::Reference { address, .. }, .. }] if is_array => Some(*address),
        _ => None,
    }
}

/// The value in words, with the elements of collections up to some levels. Texts are not escaped.
pub(crate) fn value_line(dump: &Dump<'_>, value: &Value, depth: u32) -> String {
    match value {
        Value::Reference { address, text: None, .. } => match content_line(dump, *address, depth) {
            Some(line) => format!("{address:#x} {line}"),
            None => value_text(value),
        },
        Value::Structure { type_name, fields } => {
            let array = immutable_array(type_name.as_deref(), fields);
            array.and_then(|array| content_line(dump, array, depth)).unwrap_or_else(|| value_text(value))
        }
        value => value_text(value),
    }
}

/// The content of an object in one line; `None` if it is not known.
fn content_line(dump: &Dump<'_>, object: Address, depth: u32) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let most = if dump.types().is_array(dump.heap().object_at(object)?.type_handle) {
        LINE_ELEMENTS
    } else {
        // Of a text, these are characters.
        LINE_CHARACTERS
    };
    let line = |parts: Vec<String>, count: u64, [open, close]: [char; 2]| {
        let more = if (parts.len() as u64) < count { ", …" } else { "" };
        format!("{open}{}{more}{close} ({count})", parts.join(", "))
    };
    let element = |value: &Value| element_line(dump, value, depth);
    let shown = LINE_ELEMENTS as usize;
    Some(match content(dump, object, most)? {
        KnownContent::Elements { elements, count } => {
            line(elements.iter().take(shown).map(element).collect(), count, ['[', ']'])
        }
        KnownContent::Pairs { pairs, count } => {
            let pair = |(key, value): &(Value, Value)| format!("{}: {}", element(key), element(value));
            line(pairs.iter().take(shown).map(pair).collect(), count, ['{', '}'])
        }
        KnownContent::Text { text, is_cut } => quoted(&text, is_cut),
        KnownContent::Boxed(value) => value_line(dump, &value, depth),
        _ => return None,
    })
}

/// An element of a collection in a line: without its address, if there is something better.
fn element_line(dump: &Dump<'_>, value: &Value, depth: u32) -> String {
    match value {
        Value::Reference { text: Some((text, is_longer)), .. } => quoted(text, *is_longer),
        Value::Reference { address, .. } => {
            content_line(dump, *address, depth).unwrap_or_else(|| value_text(value))
        }
        value => value_line(dump, value, depth),
    }
}

/// The content of a known object as JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum JsonContent {
    Elements {
        count: u64,
        /// The first elements.
        elements: Vec<JsonValue>,
    },
    Pairs {
        count: u64,
        /// The first of them.
        pairs: Vec<JsonPair>,
    },
    Text {
        text: String,
        /// True if the text is longer.
        cut: bool,
    },
    Boxed {
        value: JsonValue,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct JsonPair {
    key: JsonValue,
    value: JsonValue,
}

impl JsonContent {
    /// The content as JSON, with that of its elements up to some levels.
    pub(crate) fn new(dump: &Dump<'_>, content: &KnownContent, depth: u32) -> Option<Self> {
        let value = |value: &Value| json_value_to(dump, value, depth);
        Some(match content {
            KnownContent::Elements { elements, count } => {
                Self::Elements { count: *count, elements: elements.iter().map(value).collect() }
            }
            KnownContent::Pairs { pairs, count } => {
                let pairs = pairs.iter().map(|(key, of)| JsonPair { key: value(key), value: value(of) });
                Self::Pairs { count: *count, pairs: pairs.collect() }
            }
            KnownContent::Text { text, is_cut } => Self::Text { text: text.clone(), cut: *is_cut },
            KnownContent::Boxed(of) => Self::Boxed { value: value(of) },
            _ => return None,
        })
    }

    /// The content of the object of a reference; `None` if it is not known, or no levels are left.
    pub(crate) fn of_object(dump: &Dump<'_>, object: Address, depth: u32) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let content = content(dump, object, JSON_ELEMENTS)?;
        let content = match content {
            KnownContent::Text { .. } => dump.heap().known_content(object, LINE_CHARACTERS)?,
            content => content,
        };
        Self::new(dump, &content, depth)
    }
}
