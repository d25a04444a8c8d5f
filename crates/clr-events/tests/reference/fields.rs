//! Names, and values of fields.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clr_events::{NamedValue, Schema, event_name};
use nettrace::{Event, SliceReader, Value};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::differences;

/// One event as the other reader writes it.
#[derive(Debug, Deserialize)]
struct Line {
    provider: String,
    name: String,
    id: u32,
    opcode: u8,
    time_ms: f64,
    payload_len: usize,
    payload_sha256: String,
    fields: Map<String, Json>,
}

/// The number of comparisons.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    events: u64,
    /// Events with equal name and opcode.
    pub(crate) named: u64,
    pub(crate) equal: u64,
    /// Fields that one of the readers lacks, by the difference that explains it.
    explained: u64,
    kinds: BTreeSet<(String, u16)>,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} events named, {} of {} kinds with fields, {} fields equal, {} differ as explained",
            self.named,
            self.events,
            self.kinds.len(),
            self.equal,
            self.explained
        )
    }
}

/// Holds every event against the other reader's line for it: name and opcode, and the fields of events that
/// have a schema.
pub(crate) fn compare(recording: &[u8], reference: &[u8]) -> Result<Tally, String> {
    let lines: Vec<Line> = reference
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    let mut by_event: HashMap<_, &Line> = HashMap::new();
    for line in &lines {
        #[allow(clippy::cast_possible_truncation, reason = "recordings last less than 2^53 nanoseconds")]
        let time = (line.time_ms * 1e6).round() as i64;
        // Equal payloads of one moment and kind are equal lines, as far as they are compared here.
        by_event.insert((time, &*line.provider, line.id, line.payload_len, &*line.payload_sha256), line);
    }
    let mut tally = Tally::default();
    let mut differences = BTreeMap::new();
    let mut events = SliceReader::new(recording).map_err(|error| error.to_string())?;
    while let Some(event) = events.next().map_err(|error| error.to_string())? {
        let digest = digest(event.payload());
        let id = differences::their_id(&event);
        let key =
            (event.relative_time().as_nanos().max(0), event.provider(), id, event.payload().len(), &*digest);
        let line =
            by_event.get(&key).ok_or_else(|| format!("the event at {} has no line", event.offset()))?;
        if !differences::is_named_otherwise(&event) {
            let ours = (event_name(&event).to_string(), differences::their_opcode(&event));
            if (&ours.0, ours.1) == (&line.name, line.opcode) {
                tally.named += 1;
            } else {
                let kind = format!("{} {} version {}, name", event.provider(), event.id(), event.version());
                differences
                    .entry(kind)
                    .or_insert_with(|| format!("{ours:?}, theirs {:?} {}", line.name, line.opcode));
            }
        }
        let Some(schema) = Schema::of(&event).filter(|schema| schema.overrides(event.metadata())) else {
            continue;
        };
        for difference in same(schema, &event, line, &mut tally) {
            let kind = difference.split(':').next().unwrap_or_default();
            differences
                .entry(format!("{} version {}, {kind}", schema.name, schema.version))
                .or_insert_with(|| format!("{difference} at {}", event.offset()));
        }
        tally.events += 1;
        tally.kinds.insert((schema.provider.name().to_owned(), schema.id));
    }
    if differences.is_empty() { Ok(tally) } else { Err(format!("{differences:#?}")) }
}

fn digest(payload: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};

    let digest = Sha256::digest(payload);
    format!("{:016x}", u64::from_be_bytes(*digest.first_chunk().unwrap()))
}

/// The differences.
fn same(schema: &Schema, event: &Event<'_>, line: &Line, tally: &mut Tally) -> Vec<String> {
    let mut differences = Vec::new();
    if schema.name == "Type/BulkType" {
        differences.extend(same_first_type(schema, event, line));
    }
    let mut theirs: BTreeSet<&str> = line.fields.keys().map(String::as_str).collect();
    let mut fields = schema.fields(event.payload(), event.pointer_size());
    for field in fields.by_ref() {
        let (field, value) = match field {
            Ok(field) => field,
            Err(error) => {
                differences.push(error.to_string());
                continue;
            }
        };
        let their_name = differences::their_name(schema, field);
        match line.fields.get(their_name).and_then(Json::as_str) {
            Some(text) => {
                theirs.remove(their_name);
                if prints_as(value, text) {
                    tally.equal += 1;
                } else if differences::is_misread(schema, field) {
                    tally.explained += 1;
                } else {
                    differences.push(format!("{field}: ours is {value:?}, theirs {text:?}"));
                }
            }
            None if differences::is_not_shown(schema, field) => tally.explained += 1,
            None => differences.push(format!("{field}: ours is {value:?}, theirs is missing")),
        }
    }
    if !fields.rest().is_empty() && !differences::has_more(schema) {
        differences.push(format!("rest: {} bytes", fields.rest().len()));
    }
    theirs.retain(|field| !differences::is_computed(schema, field));
    differences.extend(theirs.iter().map(|field| format!("{field}: theirs alone, {}", line.fields[*field])));
    differences
}

/// The other reader shows the first of a list of types.
fn same_first_type(schema: &Schema, event: &Event<'_>, line: &Line) -> Option<String> {
    let rows = schema.fields(event.payload(), event.pointer_size()).find_map(|field| match field {
        Ok((_, Value::Array(rows))) => Some(rows),
        _ => None,
    });
    let Value::Object(row) = rows?.next()? else { return None };
    for (field, value) in row.flatten() {
        let theirs = match field {
            "TypeID" => "TypeID_0",
            "Name" => "TypeName_0",
            _ => continue,
        };
        if !prints_as(value, line.fields.get(theirs)?.as_str()?) {
            return Some(format!("{theirs}: ours is {value:?}"));
        }
    }
    None
}

fn prints_as(value: Value<'_>, text: &str) -> bool {
    let number =
        |ours: u64, bits: u32| parsed(text).is_some_and(|theirs| (theirs ^ ours) << (64 - bits) == 0);
    match value {
        Value::Bool(value) => text == if value { "True" } else { "False" },
        Value::U8(value) => number(value.into(), 8),
        Value::U16(value) => number(value.into(), 16),
        Value::U32(value) => number(value.into(), 32),
        Value::I32(value) => number(value.cast_unsigned().into(), 32),
        Value::U64(value) | Value::Address(value) => number(value, 64),
        Value::I64(value) => number(value.cast_unsigned(), 64),
        Value::F64(value) => text.parse() == Ok(value),
        Value::Guid(value) => value.to_string() == text,
        Value::String(value) => value.to_string() == text,
        Value::Utf8(value) => String::from_utf8_lossy(value) == text,
        Value::Named(value) => prints_as_names(value, text),
        _ => false,
    }
}

/// Their numbers are decimal, signed or not, or hexadecimal.
fn parsed(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok().or_else(|| text.parse().map(i64::cast_unsigned).ok()),
    }
}

fn prints_as_names(value: NamedValue, text: &str) -> bool {
    let ours = NamedValue::new(value.number & !value.unnamed_bits(), value.names);
    let text = text.replace(", ", "|");
    ours.to_string() == text
        || parsed(&text) == Some(value.number.into())
        || text == "None" && ours.number == 0
}
