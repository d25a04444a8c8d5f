//! Requests of ASP.NET Core.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use nettrace::{Event, Metadata, RelativeTime, Uuid, Value};

pub(crate) const LOGGING: &str = "Microsoft-Extensions-Logging";
pub(crate) const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
/// The log message at the end of each request, which has its duration, status and path; no event has them all.
pub(crate) const LOGGING_ARGUMENTS: &str =
    "FilterSpecs=\"Microsoft.AspNetCore.Hosting.Diagnostics:Information\"";
/// The start of arguments that leave out log messages: without arguments all loggers' are sent.
///
/// # Source
/// `OnEventCommand` in `LoggingEventSource.cs` of dotnet/runtime.
pub(crate) const FILTER: &str = "FilterSpecs=";
const LOGGER: &str = "Microsoft.AspNetCore.Hosting.Diagnostics";
const START: u32 = 3;
const STOP: u32 = 4;
/// The number of the message that a request has finished.
const FINISHED: &str = "2";
/// Requests that have begun, or ended before their begin was read.
const MOST: usize = 100_000;
/// Characters of a path or a method that are kept.
const LONGEST_TEXT: usize = 256;

/// A request that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) duration: Duration,
    pub(crate) status: Option<u32>,
    pub(crate) method: String,
    pub(crate) path: String,
}

/// Requests, by the log messages of their ends, or where these are missing by their events.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Whether there are log messages: then the events say nothing new.
    is_logged: bool,
    open: HashMap<Uuid, Request>,
    begun: HashMap<Uuid, RelativeTime>,
    /// Oldest first, also those that have ended.
    order: VecDeque<Uuid>,
}

/// Whether requests are known by events of this kind.
pub(crate) fn is_of_request(metadata: &Metadata) -> bool {
    match metadata.provider() {
        LOGGING => metadata.name() == "MessageJson",
        HOSTING => matches!(metadata.event_id(), START | STOP),
        _ => false,
    }
}

impl Requests {
    /// Takes an event. The request that it ends.
    pub(crate) fn add(&mut self, event: &Event<'_>) -> Option<Request> {
        if event.provider() == LOGGING {
            let request = logged(event)?;
            self.is_logged = true;
            self.open.clear();
            self.begun.clear();
            self.order.clear();
            return Some(request);
        }
        if self.is_logged {
            return None;
        }
        let activity = event.activity()?;
        if event.id() == START {
            if self.order.len() >= MOST
                && let Some(oldest) = self.order.pop_front()
            {
                self.open.remove(&oldest);
                self.begun.remove(&oldest);
            }
            let request = Request {
                duration: Duration::ZERO,
                status: None,
                method: cut(&field(event, "method").unwrap_or_default()),
                path: cut(&field(event, "path").unwrap_or_default()),
            };
            self.open.insert(activity, request);
            self.begun.insert(activity, event.relative_time());
            self.order.push_back(activity);
            return None;
        }
        let begun = self.begun.remove(&activity)?;
        let request = self.open.remove(&activity)?;
        Some(Request { duration: event.relative_time().saturating_duration_since(begun), ..request })
    }
}

/// The request that a log message says has finished.
///
/// # Source
/// `HostingRequestFinishedLog.cs` of dotnet/aspnetcore, `LoggingEventSource.cs` of dotnet/runtime.
fn logged(event: &Event<'_>) -> Option<Request> {
    if field(event, "LoggerName")? != LOGGER || field(event, "EventId")? != FINISHED {
        return None;
    }
    let arguments: serde_json::Value = serde_json::from_str(&field(event, "ArgumentsJson")?).ok()?;
    let text = |key: &str| {
        let value = arguments.get(key)?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let milliseconds: f64 = text("ElapsedMilliseconds")?.parse().ok()?;
    Some(Request {
        duration: Duration::try_from_secs_f64(milliseconds / 1000.0).ok()?,
        status: text("StatusCode").and_then(|status| status.parse().ok()),
        method: cut(&text("Method").unwrap_or_default()),
        path: cut(&text("Path").unwrap_or_default()),
    })
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

/// The field of an EventSource's event as text.
fn field(event: &Event<'_>, name: &str) -> Option<String> {
    let mut fields = event.fields().flatten();
    fields.find(|(field, _)| *field == name).and_then(|(_, value)| match value {
        Value::String(text) => Some(text.to_string()),
        Value::I32(number) => Some(number.to_string()),
        _ => None,
    })
}
