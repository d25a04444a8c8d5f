//! Events passed on by the DiagnosticSource bridge, and messages of the logging library.

use std::time::Duration;

use nettrace::raw::Cursor;
use nettrace::{Event, Utf16};
use serde_json::Value;

use crate::event_kind::{DIAGNOSTIC_SOURCE, EventKind};
use crate::fields::{MAX_LENGTH, SpanOutcome, field, is_error_status};
use crate::span::SpanRole;

/// An event of a DiagnosticSource or an ActivitySource: two strings, then a list of keys and values, all
/// strings.
///
/// # Source
/// `DiagnosticSourceEventSource.cs` of dotnet/runtime. The payload is read without the recording's field
/// list, which before .NET 5 could not describe lists.
#[derive(Debug)]
#[non_exhaustive]
pub struct DiagnosticEvent {
    /// The name of the DiagnosticSource or the ActivitySource.
    pub source: String,
    /// The name without its start or stop suffix: `Microsoft.AspNetCore.Hosting.HttpRequestIn`.
    pub task: String,
    /// The phase of the span.
    pub phase: DiagnosticPhase,
    arguments: Vec<(String, String)>,
}

/// The phase of a span that an event begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_enums,
    reason = "a caller handles each: an event begins a span, ends it, or neither"
)]
pub enum DiagnosticPhase {
    /// The span begins.
    Start,
    /// The span ends.
    Stop,
    /// The span ends with an error.
    Failure,
    /// The event is not of a span.
    Neither,
}

/// Maximum number of arguments of an event to read.
const MAX_ARGUMENTS: u16 = 64;
/// Maximum number of characters of an argument to read: one argument has all tags.
const MAX_ARGUMENT_LENGTH: usize = 8192;

impl DiagnosticEvent {
    /// Reads an event; `None` if the bridge does not pass it on.
    ///
    /// ```no_run
    /// use clr_activity::{DiagnosticEvent, DiagnosticPhase};
    ///
    /// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
    /// while let Some(event) = events.next()? {
    ///     let Some(diagnostic) = DiagnosticEvent::read(&event) else { continue };
    ///     if diagnostic.phase == DiagnosticPhase::Stop {
    ///         println!("{} {:?}", diagnostic.task, diagnostic.argument(&["StatusCode"]));
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(event: &Event<'_>) -> Option<Self> {
        match EventKind::of(event.metadata()) {
            EventKind::Diagnostic(opcode) => Self::of(event, opcode),
            _ => None,
        }
    }

    /// Returns true if an event of the bridge is of an ActivitySource. The sources of ASP.NET Core and
    /// HttpClient are of both kinds, so their spans can appear twice.
    pub fn is_of_activity_source(event: &Event<'_>) -> bool {
        event.provider() == DIAGNOSTIC_SOURCE
            && matches!(event.name(), "ActivityStart" | "ActivityStop" | "Activity")
    }

    pub(crate) fn of(event: &Event<'_>, opcode: Option<u8>) -> Option<Self> {
        let mut cursor = Cursor::new(event.payload());
        let source = bounded(cursor.utf16().ok()?, MAX_LENGTH);
        let name = bounded(cursor.utf16().ok()?, MAX_LENGTH);
        let count = cursor.u16().unwrap_or(0).min(MAX_ARGUMENTS);
        let mut arguments = Vec::new();
        for _ in 0..count {
            let (Ok(key), Ok(value)) = (cursor.utf16(), cursor.utf16()) else { break };
            arguments.push((bounded(key, MAX_LENGTH), bounded(value, MAX_ARGUMENT_LENGTH)));
        }
        let (task, phase) = phase(&name, opcode);
        Some(Self { task: task.to_owned(), source, phase, arguments })
    }

    /// The first of these arguments that the event has.
    pub fn argument(&self, keys: &[&str]) -> Option<&str> {
        let find = |key: &&str| self.arguments.iter().find(|(name, _)| name == key);
        let value = keys.iter().find_map(find).map(|(_, value)| &**value);
        value.filter(|value| !value.is_empty())
    }

    /// The first of these arguments or tags that the event has.
    pub(crate) fn get(&self, keys: &[&str]) -> Option<&str> {
        let argument =
            |key: &str| self.arguments.iter().find(|(name, _)| name == key).map(|(_, value)| &**value);
        let of_tags = |key: &str| argument("Tags").and_then(|tags| tag(tags, key));
        let found =
            keys.iter().find_map(|key| argument(key)).or_else(|| keys.iter().find_map(|key| of_tags(key)));
        found.filter(|value| !value.is_empty())
    }

    /// The tags of the activity, if the event has them as `Tags`.
    ///
    /// ```no_run
    /// use clr_activity::DiagnosticEvent;
    ///
    /// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
    /// while let Some(event) = events.next()? {
    ///     if let Some(diagnostic) = DiagnosticEvent::read(&event) {
    ///         println!("{} {:?}", diagnostic.source, diagnostic.tags().collect::<Vec<_>>());
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let tags = self.arguments.iter().find(|(name, _)| name == "Tags").map_or("", |(_, tags)| tags);
        let tags = tags.strip_prefix('[').unwrap_or(tags);
        tags.strip_suffix(']').unwrap_or(tags).split("],[").filter_map(|tag| tag.split_once(", "))
    }

    pub(crate) fn role(&self) -> SpanRole {
        match &*self.source {
            "Microsoft.AspNetCore" => SpanRole::Server,
            "HttpHandlerDiagnosticListener"
            | "System.Net.Http"
            | "SqlClientDiagnosticListener"
            | "Microsoft.EntityFrameworkCore" => SpanRole::Outgoing,
            _ if self.get(&["db.query.text", "db.statement", "db.system.name", "db.system"]).is_some() => {
                SpanRole::Outgoing
            }
            _ => SpanRole::Other,
        }
    }

    /// The part of the name after the last dot.
    pub(crate) fn short_task(&self) -> &str {
        self.task.rsplit('.').next().unwrap_or(&self.task)
    }

    /// The argument that a start and its stop have in common. `ActivityId` is dotnet-monitor's name for the
    /// whole id of an `Activity`.
    pub(crate) fn key(&self) -> Option<String> {
        ["SpanId", "OperationId", "CommandId", "ActivityId"]
            .into_iter()
            .find_map(|key| self.get(&[key]).map(|value| format!("{key}={value}")))
    }

    pub(crate) fn route(&self) -> Option<&str> {
        self.get(&["http.route", "Route"])
    }

    /// The name of the span; empty if no argument has it.
    pub(crate) fn name(&self) -> String {
        let method = self.get(&["http.request.method", "http.method", "Method"]);
        let path = self.route().or_else(|| self.get(&["url.path", "http.target", "Path"]));
        let url = self.get(&["url.full", "http.url", "RequestUri"]);
        let without_query = |text: &str| text.split('?').next().unwrap_or_default().to_owned();
        match (method, path, url) {
            (Some(method), Some(target), _) | (Some(method), None, Some(target)) => {
                format!("{method} {}", without_query(target))
            }
            (None, Some(target), _) | (None, None, Some(target)) => without_query(target),
            (_, None, None) => {
                let database = self.get(&["Database", "db.namespace", "db.name"]);
                let source = self.get(&["DataSource", "server.address"]);
                match (database, source) {
                    (Some(database), Some(source)) => format!("{database} on {source}"),
                    (Some(one), None) | (None, Some(one)) => one.to_owned(),
                    (None, None) => self.get(&["DisplayName"]).unwrap_or_default().to_owned(),
                }
            }
        }
    }

    pub(crate) fn outcome(&self) -> SpanOutcome {
        let status = self.get(&["http.response.status_code", "http.status_code", "StatusCode"]);
        let least = if self.role() == SpanRole::Server { 500 } else { 400 };
        let error = self.get(&["error.type", "Message"]);
        let is_error = self.phase == DiagnosticPhase::Failure
            || status.is_some_and(|status| is_error_status(status, least))
            || self.get(&["Status"]) == Some("Error")
            || self.get(&["RequestTaskStatus"]) == Some("Faulted")
            || error.is_some();
        SpanOutcome { status: status.map(str::to_owned), is_error, error: error.map(str::to_owned) }
    }

    /// The duration in a stop event, in ticks of 100 ns, under the names in `dipc`'s documentation and that
    /// of dotnet-monitor.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let ticks: u64 = self.get(&["Took", "Duration.Ticks", "ActivityDuration"])?.parse().ok()?;
        ticks.checked_mul(100).map(Duration::from_nanos)
    }
}

fn bounded(text: Utf16<'_>, most: usize) -> String {
    text.chars().take(most).collect()
}

/// The name without its phase, and the phase; without a phase in the name, the phase of the opcode.
fn phase(name: &str, opcode: Option<u8>) -> (&str, DiagnosticPhase) {
    for (end, phase) in [
        (".Start", DiagnosticPhase::Start),
        (".Stop", DiagnosticPhase::Stop),
        ("Before", DiagnosticPhase::Start),
        ("After", DiagnosticPhase::Stop),
        ("Executing", DiagnosticPhase::Start),
        ("Executed", DiagnosticPhase::Stop),
        ("Error", DiagnosticPhase::Failure),
    ] {
        if let Some(task) = name.strip_suffix(end) {
            return (task, phase);
        }
    }
    match opcode {
        Some(1) => (name, DiagnosticPhase::Start),
        Some(2) => (name, DiagnosticPhase::Stop),
        _ => (name, DiagnosticPhase::Neither),
    }
}

/// The value of a key in `[key, value],[key, value]`.
fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    tags.split("],[").find_map(|tag| {
        let (name, value) = tag.strip_prefix('[').unwrap_or(tag).split_once(", ")?;
        (name == key).then(|| value.strip_suffix(']').unwrap_or(value))
    })
}

/// A fact about a request in a message of ASP.NET.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestMessage {
    /// The name of the endpoint that serves it.
    Endpoint(String),
    /// The status of the activity.
    Status(String),
}

/// Returns the fact about a request in a message of the logging library.
pub(crate) fn request_message(event: &Event<'_>) -> Option<RequestMessage> {
    let arguments = |key: &str| {
        let fields = event.fields().flatten();
        let (_, json) = fields.into_iter().find(|(name, _)| *name == "ArgumentsJson")?;
        let nettrace::Value::String(json) = json else { return None };
        let value: Value = serde_json::from_str(&json.to_string()).ok()?;
        Some(match value.get(key)? {
            Value::String(text) => text.chars().take(MAX_LENGTH).collect(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        })
    };
    match &*field(event, "LoggerName")? {
        "Microsoft.AspNetCore.Routing.EndpointMiddleware"
            if field(event, "EventName").as_deref() == Some("ExecutingEndpoint") =>
        {
            arguments("EndpointName").map(RequestMessage::Endpoint)
        }
        "Microsoft.AspNetCore.Hosting.Diagnostics" if field(event, "EventId").as_deref() == Some("2") => {
            arguments("StatusCode").map(RequestMessage::Status)
        }
        _ => None,
    }
}

/// The route in an endpoint's name, `GET /hello/{n}` in `HTTP: GET /hello/{n}`; other endpoints, such as
/// controllers, are named after their method.
pub(crate) fn route(endpoint: &str) -> &str {
    endpoint.rsplit_once("HTTP: ").map_or(endpoint, |(_, route)| route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_phase_and_else_the_opcode_does() {
        for (name, opcode, expected) in [
            (
                "Microsoft.AspNetCore.Hosting.HttpRequestIn.Start",
                Some(1),
                ("HttpRequestIn", DiagnosticPhase::Start),
            ),
            ("Microsoft.AspNetCore.Hosting.HttpRequestIn", None, ("HttpRequestIn", DiagnosticPhase::Neither)),
            ("Microsoft.Data.SqlClient.WriteCommandBefore", None, ("WriteCommand", DiagnosticPhase::Start)),
            ("Microsoft.Data.SqlClient.WriteCommandAfter", None, ("WriteCommand", DiagnosticPhase::Stop)),
            ("System.Data.SqlClient.WriteCommandError", None, ("WriteCommand", DiagnosticPhase::Failure)),
            ("x.Database.Command.CommandExecuting", Some(1), ("Command", DiagnosticPhase::Start)),
            ("x.Database.Command.CommandExecuted", Some(2), ("Command", DiagnosticPhase::Stop)),
            ("Job", Some(2), ("Job", DiagnosticPhase::Stop)),
        ] {
            let (task, phase) = phase(name, opcode);
            assert_eq!((task.rsplit('.').next().unwrap(), phase), expected, "{name}");
        }
    }

    #[test]
    fn tags_are_found_by_their_key() {
        let tags = "[http.request.method, GET],[http.route, /a/{id}],[http.response.status_code, 503]";
        assert_eq!(tag(tags, "http.route"), Some("/a/{id}"));
        assert_eq!(tag(tags, "http.response.status_code"), Some("503"));
        assert_eq!((tag(tags, "http"), tag("", "http"), tag("[a", "a")), (None, None, None));
    }

    #[test]
    fn routes_follow_the_kind_of_endpoint() {
        for (endpoint, shown) in [
            ("HTTP: GET /hello/{n}", "GET /hello/{n}"),
            ("MCP Streamable HTTP | HTTP: POST /", "POST /"),
            ("App.Controllers.Home.Index (App)", "App.Controllers.Home.Index (App)"),
        ] {
            assert_eq!(route(endpoint), shown);
        }
    }
}
