//! Records from events.
//!
//! The source sends a record as two events of one thread: the formatted message, and then the arguments in
//! JSON. A scope begins and ends with events. Their activity encloses the activity of the records within it.

use std::collections::HashMap;

use clr_activity::{LOGGING_PROVIDER, TraceContext};
use clr_events::{ActivityPath, event_fields};
use dipc_client::Uuid;
use nettrace::{Event, RelativeTime, TraceInfo, Value};

use super::{LogLevel, LogValues};

/// Maximum number of threads with a formatted message that waits for its arguments.
const MAX_WAITING: usize = 1000;
/// Maximum number of open scopes.
const MAX_SCOPES: usize = 10_000;
/// Maximum number of scopes of a record.
const MAX_DEPTH: usize = 32;

/// The role of an event. Its id is a number that the source's other events move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    FormattedMessage,
    MessageJson,
    ScopeStart,
    ScopeStop,
}

impl Kind {
    fn of(event: &Event<'_>) -> Option<Self> {
        if event.provider() != LOGGING_PROVIDER {
            return None;
        }
        match (event.name(), event.opcode()) {
            ("FormattedMessage", _) => Some(Self::FormattedMessage),
            ("MessageJson", _) => Some(Self::MessageJson),
            ("ActivityJsonStart", _) | ("ActivityJson", Some(1)) => Some(Self::ScopeStart),
            ("ActivityJsonStop", _) | ("ActivityJson", Some(2)) => Some(Self::ScopeStop),
            _ => None,
        }
    }
}

/// A log record.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "made by tests of writers")]
pub struct LogRecord<'r> {
    /// The time in Unix nanoseconds; `None` if the stream does not state its start.
    pub time: Option<i128>,
    /// The level.
    pub level: LogLevel,
    /// The number of the event; 0 without one.
    pub event_id: i64,
    /// The name of the event; empty without one.
    pub event_name: &'r str,
    /// The category.
    pub category: &'r str,
    /// The formatted message.
    pub message: &'r str,
    /// The exception: `TypeName`, `Message`, `HResult` and `VerboseMessage`.
    pub exception: Option<&'r LogValues>,
    /// The arguments of the message, and its template as `{OriginalFormat}`.
    pub arguments: &'r LogValues,
    /// The scopes around it, outermost first.
    pub scopes: Vec<&'r LogValues>,
    /// The span that it was logged in, if the event has it (from version 9.0 on).
    pub context: Option<TraceContext>,
    /// The activity of the event.
    pub activity: Uuid,
    /// The process's number, which activities have.
    pub process: Option<u64>,
}

/// Log records from a stream of events.
#[derive(Debug, Default)]
pub struct LogReader {
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
    process: Option<u64>,
    context: Option<TraceContext>,
}

/// An open scope.
#[derive(Debug)]
struct Scope {
    parent: Option<Uuid>,
    values: LogValues,
}

impl LogReader {
    /// Sets the header of the stream, which states its start.
    pub fn set_start(&mut self, info: &TraceInfo) {
        self.start = info.start.unix_milliseconds().map(|start| i128::from(start) * 1_000_000);
    }

    /// The beginning of the stream in Unix nanoseconds.
    pub const fn start(&self) -> Option<i128> {
        self.start
    }

    /// Adds an event, and passes on the records that it completes.
    pub fn add(&mut self, event: &Event<'_>, out: &mut impl FnMut(&LogRecord<'_>)) {
        let Some(kind) = Kind::of(event) else { return };
        let thread = event.thread_id().0;
        match kind {
            Kind::FormattedMessage => {
                let message = Message { text: field(event, "FormattedMessage"), ..message_of(event) };
                if let Some(alone) = self.waiting.remove(&thread) {
                    self.pass_on(&alone, None, &LogValues::default(), out);
                }
                if self.waiting.len() < MAX_WAITING {
                    self.waiting.insert(thread, message);
                } else {
                    self.pass_on(&message, None, &LogValues::default(), out);
                }
            }
            Kind::MessageJson => self.add_arguments(event, thread, out),
            Kind::ScopeStart if self.scopes.len() < MAX_SCOPES => {
                let values = field(event, "ArgumentsJson").and_then(|json| serde_json::from_str(&json).ok());
                let scope = Scope { parent: event.related_activity(), values: values.unwrap_or_default() };
                self.scopes.extend(event.activity().map(|id| (id, scope)));
            }
            Kind::ScopeStart => {}
            Kind::ScopeStop => {
                event.activity().and_then(|id| self.scopes.remove(&id));
            }
        }
    }

    fn add_arguments(&mut self, event: &Event<'_>, thread: u64, out: &mut impl FnMut(&LogRecord<'_>)) {
        let mut message = message_of(event);
        if let Some(waiting) = self.waiting.remove(&thread) {
            if waiting.category == message.category && waiting.level == message.level {
                message.text = waiting.text;
            } else {
                self.pass_on(&waiting, None, &LogValues::default(), out);
            }
        }
        let mut exception = field(event, "ExceptionJson");
        // Some runtimes leave the name of the event out, and the fields after it move up.
        let (mut arguments, is_moved) = (field(event, "ArgumentsJson"), message.event_name.starts_with('{'));
        if is_moved {
            arguments = exception.replace(std::mem::take(&mut message.event_name));
        }
        let exception: Option<LogValues> = exception.and_then(|json| serde_json::from_str(&json).ok());
        let exception = exception.filter(|exception| !exception.0.is_empty());
        let arguments = arguments.and_then(|json| serde_json::from_str(&json).ok());
        self.pass_on(&message, exception.as_ref(), &arguments.unwrap_or_default(), out);
    }

    /// Passes on the records with missing arguments.
    pub fn finish(&mut self, out: &mut impl FnMut(&LogRecord<'_>)) {
        let mut rest: Vec<_> = std::mem::take(&mut self.waiting).into_values().collect();
        rest.sort_by_key(|message| message.time);
        for message in rest {
            self.pass_on(&message, None, &LogValues::default(), out);
        }
    }

    fn pass_on(
        &self,
        message: &Message,
        exception: Option<&LogValues>,
        arguments: &LogValues,
        out: &mut impl FnMut(&LogRecord<'_>),
    ) {
        let formatted = message.text.clone().unwrap_or_else(|| arguments.formatted());
        out(&LogRecord {
            time: self.start.map(|start| start + i128::from(message.time.as_nanos())),
            level: level(message.level),
            event_id: message.event_id,
            event_name: &message.event_name,
            category: &message.category,
            message: &formatted,
            exception,
            arguments,
            scopes: self.scopes_of(message.activity, message.process),
            context: message.context,
            activity: message.activity,
            process: message.process,
        });
    }

    /// The scopes of a record, outermost first.
    fn scopes_of(&self, activity: Uuid, process: Option<u64>) -> Vec<&LogValues> {
        let mut scopes = Vec::new();
        if let Some(path) = ActivityPath::new(activity, process) {
            let around = std::iter::once(activity).chain(path.ancestors());
            scopes.extend(around.filter_map(|id| Some(&self.scopes.get(&id)?.values)).take(MAX_DEPTH));
        } else {
            let mut next = Some(activity);
            while let Some(scope) =
                next.and_then(|id| self.scopes.get(&id)).filter(|_| scopes.len() < MAX_DEPTH)
            {
                scopes.push(&scope.values);
                next = scope.parent;
            }
        }
        scopes.reverse();
        scopes
    }
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
        process: event.process_id(),
        context: context_of(event),
    }
}

/// The span that a message was logged in, from its fields.
fn context_of(event: &Event<'_>) -> Option<TraceContext> {
    let trace = field(event, "ActivityTraceId").filter(|id| !id.is_empty())?;
    let span = field(event, "ActivitySpanId")?;
    let flags = field(event, "ActivityTraceFlags").unwrap_or_default();
    TraceContext::of_hex(&trace, &span, u8::from_str_radix(&flags, 16).unwrap_or_default())
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
