//! Records from events.
//!
//! The source sends a record as two events of one thread: the formatted message, and then the arguments in
//! JSON. A scope begins and ends with events whose activity id the records within it have.

use std::collections::HashMap;
use std::fmt;
use std::io::Write as _;

use clr_events::event_fields;
use dipc_client::Uuid;
use dipc_client::nettrace::{Event, RelativeTime, TraceInfo, Value};
use jiff::Timestamp;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{LOGGING, LogFormat, LogLevel};

/// The most threads whose formatted message waits for its arguments.
const MOST_WAITING: usize = 1000;
/// The most scopes that are open at once.
const MOST_SCOPES: usize = 10_000;
/// The most scopes of a record.
const DEEPEST: usize = 32;

/// The identifiers of the source's events.
const FORMATTED_MESSAGE: u32 = 1;
const MESSAGE_JSON: u32 = 5;
const SCOPE_START: u32 = 6;
const SCOPE_STOP: u32 = 7;

/// Log records from a stream of events.
pub(crate) struct LogReader {
    format: LogFormat,
    /// The beginning of the stream in Unix nanoseconds.
    start: Option<i128>,
    /// The formatted message of each thread.
    waiting: HashMap<u64, Message>,
    scopes: HashMap<Uuid, Scope>,
}

/// The part of a record that both events have.
#[derive(Debug, Clone, Default)]
struct Message {
    level: i64,
    category: String,
    event_id: i64,
    event_name: String,
    text: Option<String>,
    time: RelativeTime,
    activity: Uuid,
}

/// An open scope.
#[derive(Debug)]
struct Scope {
    parent: Option<Uuid>,
    values: Pairs,
}

/// A record as dotnet-monitor writes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Record<'r> {
    timestamp: String,
    log_level: &'static str,
    event_id: i64,
    event_name: &'r str,
    category: &'r str,
    message: &'r str,
    exception: Option<&'r str>,
    state: &'r Pairs,
    scopes: Vec<&'r Pairs>,
}

/// The members of a JSON object in their order.
#[derive(Debug, Clone, Default, PartialEq)]
struct Pairs(Vec<(String, serde_json::Value)>);

impl LogReader {
    pub(crate) fn new(format: LogFormat) -> Self {
        Self { format, start: None, waiting: HashMap::new(), scopes: HashMap::new() }
    }

    pub(crate) fn set_start(&mut self, info: &TraceInfo) {
        self.start = info.start.unix_milliseconds().map(|start| i128::from(start) * 1_000_000);
    }

    /// Adds an event, and writes the records that it completes to `out`.
    pub(crate) fn add(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if event.provider() != LOGGING {
            return;
        }
        let thread = event.thread_id().0;
        match event.id() {
            FORMATTED_MESSAGE => {
                let message = Message { text: field(event, "FormattedMessage"), ..message_of(event) };
                if let Some(alone) = self.waiting.remove(&thread) {
                    self.write(&alone, None, &Pairs::default(), out);
                }
                if self.waiting.len() < MOST_WAITING {
                    self.waiting.insert(thread, message);
                } else {
                    self.write(&message, None, &Pairs::default(), out);
                }
            }
            MESSAGE_JSON => {
                let mut message = message_of(event);
                if let Some(waiting) = self.waiting.remove(&thread) {
                    if waiting.category == message.category && waiting.level == message.level {
                        message.text = waiting.text;
                    } else {
                        self.write(&waiting, None, &Pairs::default(), out);
                    }
                }
                let mut exception = field(event, "ExceptionJson");
                // Some runtimes leave the name of the event out, and the fields after it move up.
                let (mut arguments, is_moved) =
                    (field(event, "ArgumentsJson"), message.event_name.starts_with('{'));
                if is_moved {
                    arguments = exception.replace(std::mem::take(&mut message.event_name));
                }
                let exception = exception.and_then(|json| exception_text(&json));
                let arguments = arguments.and_then(|json| serde_json::from_str(&json).ok());
                self.write(&message, exception.as_deref(), &arguments.unwrap_or_default(), out);
            }
            SCOPE_START if self.scopes.len() < MOST_SCOPES => {
                let values = field(event, "ArgumentsJson").and_then(|json| serde_json::from_str(&json).ok());
                let scope = Scope { parent: event.related_activity(), values: values.unwrap_or_default() };
                self.scopes.extend(event.activity().map(|id| (id, scope)));
            }
            SCOPE_STOP => {
                event.activity().and_then(|id| self.scopes.remove(&id));
            }
            _ => {}
        }
    }

    /// Writes the records whose arguments did not come.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let mut rest: Vec<_> = std::mem::take(&mut self.waiting).into_values().collect();
        rest.sort_by_key(|message| message.time);
        for message in rest {
            self.write(&message, None, &Pairs::default(), out);
        }
    }

    fn write(&self, message: &Message, exception: Option<&str>, arguments: &Pairs, out: &mut Vec<u8>) {
        let formatted = message.text.clone().unwrap_or_else(|| arguments.format());
        let mut state = Pairs(vec![("Message".to_owned(), formatted.clone().into())]);
        state.0.extend(arguments.0.iter().cloned());
        let record = Record {
            timestamp: self.timestamp(message.time),
            log_level: level(message.level).name(),
            event_id: message.event_id,
            event_name: &message.event_name,
            category: &message.category,
            message: &formatted,
            exception,
            state: &state,
            scopes: self.scopes_of(message.activity),
        };
        match self.format {
            LogFormat::PlainText => record.write_text(level(message.level), out),
            LogFormat::JsonSequence | LogFormat::NewlineDelimitedJson => {
                // A record of strings and numbers can be written.
                let Ok(json) = serde_json::to_vec(&record) else { return };
                if self.format == LogFormat::JsonSequence {
                    out.push(0x1e);
                }
                out.extend_from_slice(&json);
                out.push(b'\n');
            }
        }
    }

    /// The scopes of a record, outermost first.
    fn scopes_of(&self, activity: Uuid) -> Vec<&Pairs> {
        let mut scopes = Vec::new();
        let mut next = Some(activity);
        while let Some(scope) = next.and_then(|id| self.scopes.get(&id)).filter(|_| scopes.len() < DEEPEST) {
            scopes.push(&scope.values);
            next = scope.parent;
        }
        scopes.reverse();
        scopes
    }

    fn timestamp(&self, time: RelativeTime) -> String {
        let nanoseconds = self.start.map(|start| start + i128::from(time.as_nanos()));
        let time = nanoseconds.and_then(|time| Timestamp::from_nanosecond(time).ok());
        time.unwrap_or_else(Timestamp::now).strftime("%Y-%m-%d %H:%M:%SZ").to_string()
    }
}

impl Record<'_> {
    /// Writes the record as text.
    fn write_text(&self, level: LogLevel, out: &mut Vec<u8>) {
        let name = match level {
            LogLevel::Trace => "trce",
            LogLevel::Debug => "dbug",
            LogLevel::Information => "info",
            LogLevel::Warning => "warn",
            LogLevel::Error => "fail",
            LogLevel::Critical | LogLevel::None => "crit",
        };
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{} {name}: {}[{}]", self.timestamp, self.category, self.event_id);
        if !self.event_name.is_empty() {
            let _ = write!(out, "[{}]", self.event_name);
        }
        out.push(b'\n');
        let scopes: Vec<_> = self.scopes.iter().filter(|scope| !scope.0.is_empty()).collect();
        if !scopes.is_empty() {
            let pairs = scopes.iter().flat_map(|scope| scope.0.iter());
            let pairs: Vec<_> = pairs.map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            let _ = writeln!(out, "      => {}", pairs.join(", "));
        }
        for text in [Some(self.message), self.exception].into_iter().flatten() {
            for line in text.lines() {
                let _ = writeln!(out, "      {line}");
            }
        }
    }
}

impl Pairs {
    fn get(&self, name: &str) -> Option<&serde_json::Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The message made of the template and the arguments: only records without a formatted message need it.
    fn format(&self) -> String {
        let Some(template) = self.get("{OriginalFormat}").and_then(serde_json::Value::as_str) else {
            return String::new();
        };
        let mut message = template.to_owned();
        for (key, value) in &self.0 {
            message = message.replace(&format!("{{{key}}}"), &plain(value));
        }
        message
    }
}

/// The text of a value without the quotes of JSON.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn level(number: i64) -> LogLevel {
    let place = usize::try_from(number).unwrap_or(usize::MAX);
    LogLevel::ALL.get(place).copied().unwrap_or(LogLevel::None)
}

fn message_of(event: &Event<'_>) -> Message {
    Message {
        level: number(event, "Level"),
        category: field(event, "LoggerName").unwrap_or_default(),
        event_id: number(event, "EventId"),
        event_name: field(event, "EventName").unwrap_or_default(),
        text: None,
        time: event.relative_time(),
        activity: event.activity().unwrap_or_default(),
    }
}

/// The text of an exception: what `ToString` returned, or its message.
fn exception_text(json: &str) -> Option<String> {
    let exception: Pairs = serde_json::from_str(json).ok()?;
    let verbose = exception.get("VerboseMessage").or_else(|| exception.get("Message"))?;
    Some(plain(verbose)).filter(|text| !text.is_empty())
}

/// A field as text; names are compared without case, in which versions differ.
fn field(event: &Event<'_>, name: &str) -> Option<String> {
    let mut fields = event_fields(event)?.flatten();
    let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
    match value {
        Value::String(text) => Some(text.chars().collect()),
        value => Some(value.to_string()),
    }
}

/// A field as a number, which some are as text.
fn number(event: &Event<'_>, name: &str) -> i64 {
    field(event, name).and_then(|text| text.parse().ok()).unwrap_or_default()
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;

        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_form_of_dotnet_monitor() {
        let mut reader = LogReader::new(LogFormat::NewlineDelimitedJson);
        reader.start = Some(1_700_000_000_000_000_000);
        let arguments: Pairs =
            serde_json::from_str(r#"{"user":"ann","{OriginalFormat}":"hello {user}"}"#).unwrap();
        let scope = Scope { parent: None, values: serde_json::from_str(r#"{"RequestId":"7"}"#).unwrap() };
        let activity = Uuid::from_u128(1);
        reader.scopes.insert(activity, scope);
        let message = Message {
            level: 3,
            category: "Shop".into(),
            event_id: 5,
            event_name: "Greeted".into(),
            activity,
            ..Message::default()
        };
        let mut out = Vec::new();
        reader.write(&message, None, &arguments, &mut out);
        assert_eq!(
            String::from_utf8(out.clone()).unwrap(),
            "{\"Timestamp\":\"2023-11-14 22:13:20Z\",\"LogLevel\":\"Warning\",\"EventId\":5,\"EventName\":\"Greeted\",\
             \"Category\":\"Shop\",\"Message\":\"hello ann\",\"Exception\":null,\
             \"State\":{\"Message\":\"hello ann\",\"user\":\"ann\",\"{OriginalFormat}\":\"hello {user}\"},\
             \"Scopes\":[{\"RequestId\":\"7\"}]}\n"
        );
        reader.format = LogFormat::PlainText;
        out.clear();
        reader.write(&message, Some("Boom\n  at Main"), &arguments, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2023-11-14 22:13:20Z warn: Shop[5][Greeted]\n      => RequestId:7\n      hello ann\n      Boom\n        at Main\n"
        );
    }
}
