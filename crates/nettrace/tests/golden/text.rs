//! A recording as text that a person can check.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nettrace::{Event, Label, SliceReader, Source, Thread, TimeOrder, Value};

/// Events written in full at the beginning and at the end.
const SHOWN: usize = 40;

/// Longer stacks and arrays are shown by their length, longer payloads by their first bytes.
const SHORT: usize = 8;

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
        events.truncated_at(),
        events.damage()
    );
    let _ = writeln!(text, "gaps {}", events.loss().gaps().len());
    for ((provider, id, version, name), (count, payload)) in kinds {
        let _ = writeln!(text, "{count:>8} events {payload:>9} bytes {provider} {id} V{version} {name}");
    }
    text.push_str(&described(&events));
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

/// The properties of kinds of events that only V6 has, and the properties of threads.
fn described<S: Source>(events: &TimeOrder<S>) -> String {
    let mut text = String::new();
    for kind in events.events().metadata() {
        if let Some(provider) = kind.provider_id() {
            let _ = writeln!(text, "kind {} provider {provider}", kind.id());
        }
        for told in kind.message_template().iter().chain(&kind.description()) {
            let _ = writeln!(text, "kind {} {told:?}", kind.id());
        }
        for (key, value) in kind.key_values() {
            let _ = writeln!(text, "kind {} {key:?}={value:?}", kind.id());
        }
    }
    for thread in events.events().threads() {
        if thread.name().is_some() || !thread.key_values().is_empty() {
            let (index, id, process) = (thread.index(), thread.id(), thread.process_id());
            let _ = write!(text, "thread {index} tid {id} process {process:?} lost {}", thread.lost());
            let _ = writeln!(text, " {:?} {:?}", thread.name(), thread.key_values());
        } else if thread.lost() > 0 {
            let _ = writeln!(text, "thread {} tid {} lost {}", thread.index(), thread.id(), thread.lost());
        }
    }
    text
}

fn line(event: &Event<'_>) -> String {
    let mut line = format!(
        "{} {} {} {} tid {} seq {:?} level {} keywords {:#x}",
        event.relative_time().as_nanos(),
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
    if let Some(related) = event.related_activity() {
        let _ = write!(line, " related {related}");
    }
    if let Some(process) = event.thread().and_then(Thread::process_id) {
        let _ = write!(line, " of process {process}");
    }
    if event.capture_thread_id() != event.thread_id() {
        let _ = write!(line, " captured by {}", event.capture_thread_id());
    }
    for label in event.labels() {
        let _ = write!(line, " {}", labelled(&label));
    }
    let frames = event.stack().len();
    let _ = write!(line, " frames {frames}");
    if (1..=SHORT).contains(&frames) {
        for address in event.stack() {
            let _ = write!(line, " {address:#x}");
        }
    }
    if event.metadata().fields().is_empty() {
        let _ = write!(line, " payload {} bytes", event.payload().len());
        for byte in event.payload().iter().take(SHORT) {
            let _ = write!(line, " {byte:02x}");
        }
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

fn labelled(label: &Label<'_>) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match label {
        Label::Text(key, value) => format!("{:?}={:?}", text(key), text(value)),
        Label::Number(key, value) => format!("{:?}={value}", text(key)),
        other => format!("{other:?}"),
    }
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
        Value::Array(array) if array.len() <= SHORT => {
            format!("[{}]", array.map(|element| shown(&element)).collect::<Vec<_>>().join(" "))
        }
        other => format!("{other:?}"),
    }
}
