//! Log records as messages.

use clr_activity::TraceContext;
use dipc_collect::logs::{LogLevel, LogRecord, LogValues, value_text};
use otlp_messages::common::{KeyValue, any_value::Value};
use otlp_messages::logs::{LogRecord as Message, SeverityNumber};
use serde_json::Value as Json;

use super::unix_nanoseconds;

/// Maximum number of attributes of a record.
const MAX_ATTRIBUTES: usize = 128;

/// Makes a message of a record. `context` is the span that it was logged in.
pub(super) fn message(record: &LogRecord<'_>, context: Option<TraceContext>, observed: u64) -> Message {
    let mut attributes = Attributes::default();
    if record.event_id != 0 {
        attributes.add(KeyValue::new("logrecord.event.id", record.event_id));
    }
    if let Some(exception) = record.exception {
        attributes.add_exception(exception);
    }
    attributes.add_pairs(record.arguments);
    // Innermost scope first: the first attribute of a name counts.
    for scope in record.scopes.iter().rev() {
        attributes.add_pairs(scope);
    }
    let (severity, name) = severity(record.level);
    Message {
        time_unix_nano: record.time.map_or(observed, unix_nanoseconds),
        observed_time_unix_nano: observed,
        severity_number: severity.into(),
        severity_text: name.to_owned(),
        body: Some(record.message.into()),
        dropped_attributes_count: attributes.dropped,
        attributes: attributes.list,
        flags: context.map_or(0, |context| context.flags.into()),
        trace_id: context.map(|context| context.trace_id.to_vec()).unwrap_or_default(),
        span_id: context.map(|context| context.span_id.to_vec()).unwrap_or_default(),
        event_name: record.event_name.to_owned(),
    }
}

/// Attributes with unique keys.
#[derive(Default)]
struct Attributes {
    list: Vec<KeyValue>,
    dropped: u32,
}

impl Attributes {
    fn add(&mut self, attribute: KeyValue) {
        if self.list.iter().any(|known| known.key == attribute.key) {
            return;
        }
        if self.list.len() < MAX_ATTRIBUTES {
            self.list.push(attribute);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    fn add_pairs(&mut self, pairs: &LogValues) {
        for (key, value) in &pairs.0 {
            if let Some(value) = value_of(value) {
                self.add(KeyValue::new(key, value));
            }
        }
    }

    /// Adds the attributes that the semantic conventions have for exceptions.
    fn add_exception(&mut self, exception: &LogValues) {
        let names = [
            ("exception.type", "TypeName"),
            ("exception.message", "Message"),
            ("exception.stacktrace", "VerboseMessage"),
        ];
        for (key, member) in names {
            if let Some(value) = exception.get(member).map(value_text).filter(|value| !value.is_empty()) {
                self.add(KeyValue::new(key, value));
            }
        }
    }
}

/// The value of an attribute; `None` for null.
fn value_of(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(value) => Value::BoolValue(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Value::IntValue(value),
            (None, Some(value)) => Value::DoubleValue(value),
            (None, None) => Value::StringValue(number.to_string()),
        },
        Json::String(text) => Value::StringValue(text.clone()),
        Json::Array(_) | Json::Object(_) => Value::StringValue(value.to_string()),
    })
}

/// The severity of a level, and its name.
const fn severity(level: LogLevel) -> (SeverityNumber, &'static str) {
    let number = match level {
        LogLevel::Trace => SeverityNumber::Trace,
        LogLevel::Debug => SeverityNumber::Debug,
        LogLevel::Information => SeverityNumber::Info,
        LogLevel::Warning => SeverityNumber::Warn,
        LogLevel::Error => SeverityNumber::Error,
        LogLevel::Critical => SeverityNumber::Fatal,
        LogLevel::None => SeverityNumber::Unspecified,
    };
    (number, level.name())
}
