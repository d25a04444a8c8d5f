//! A recording as text that a person can check.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nettrace::{Event, SliceReader, Value};

/// Events written in full at the beginning and at the end.
const SHOWN: usize = 40;

pub(crate) fn of(bytes: &[u8]) -> String {
    let mut events = SliceReader::new(bytes).expect("a recording").in_time_order();
    let mut kinds = BTreeMap::<(String, u32, u32, String), (u64, usize)>::new();
    let mut lines = Vec::new();
    while let Some(event) = events.next().expect("a recording") {
        let kind = (event.provider().to_owned(), event.id(), event.version(), event.name().to_owned());
        let count = kinds.entry(kind).or_default();
        *count = (count.0 + 1, count.1 + event.payload().len());
        lines.push(line(&event));
    }
    let mut text = String::new();
    let info = events.info().expect("a header");
    let _ = writeln!(text, "{} V{} start {:?}", info.format, info.version, info.start);
    let _ = writeln!(
        text,
        "frequency {} pointer size {} process {:?} processors {:?}",
        info.frequency, info.pointer_size, info.process_id, info.processors
    );
    let _ = writeln!(
        text,
        "events {} lost {} cut at {:?} damage {:?}",
        lines.len(),
        events.loss().total(),
        events.events().truncated(),
        events.damage()
    );
    let _ = writeln!(text, "gaps {}", events.loss().gaps().len());
    for ((provider, id, version, name), (count, payload)) in kinds {
        let _ = writeln!(text, "{count:>8} events {payload:>9} bytes {provider} {id} V{version} {name}");
    }
    let hidden = lines.len().saturating_sub(2 * SHOWN);
    for (index, line) in lines.iter().enumerate() {
        if index < SHOWN || index >= SHOWN + hidden {
            text.push_str(line);
        } else if index == SHOWN {
            let _ = writeln!(text, "… {hidden} more");
        }
    }
    text
}

fn line(event: &Event<'_>) -> String {
    let mut line = format!(
        "{} {} {} {} tid {} seq {:?} level {} keywords {:#x}",
        event.time_ns(),
        event.provider(),
        event.id(),
        event.name(),
        event.thread_id(),
        event.sequence(),
        event.level(),
        event.keywords(),
    );
    if let Some(opcode) = event.opcode() {
        let _ = write!(line, " opcode {opcode}");
    }
    if let Some(activity) = event.activity() {
        let _ = write!(line, " activity {activity}");
    }
    let _ = write!(line, " frames {}", event.stack().len());
    if event.metadata().fields().is_empty() {
        let _ = write!(line, " payload {} bytes", event.payload().len());
    }
    for field in event.fields() {
        match field {
            Ok((name, value)) => {
                let _ = write!(line, " {name}={}", shown(&value));
            }
            Err(error) => {
                let _ = write!(line, " {error}");
            }
        }
    }
    line + "\n"
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .map(|field| {
                    field.map_or_else(
                        |error| error.to_string(),
                        |(name, value)| format!("{name}={}", shown(&value)),
                    )
                })
                .collect();
            format!("{{{}}}", fields.join(" "))
        }
        other => format!("{other:?}"),
    }
}
