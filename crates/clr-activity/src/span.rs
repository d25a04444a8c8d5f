//! Spans: operations that an EventSource or a DiagnosticSource started and stopped.

use std::time::Duration;

use nettrace::RelativeTime;
use serde::Serialize;
use uuid::Uuid;

use crate::time_parts::{KnownParts, MeasuredParts, TimeParts};
use crate::work_interval::WorkInterval;

/// The number of a span: in the order in which spans started, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub(crate) u64);

impl SpanId {
    /// The id with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// A span that has just started.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct StartedSpan<'a> {
    /// The number of the span.
    pub id: SpanId,
    /// The role of the span.
    pub role: SpanRole,
    /// The name in its start event, the [`start_name`](Span::start_name) of the span that ends.
    pub name: &'a str,
    /// The process; `None` if the recording does not state it.
    pub process: Option<u64>,
    /// The beginning of the span.
    pub start: RelativeTime,
}

/// The role of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpanRole {
    /// A request that the program serves. A server's span nested in another one is the same request.
    Server,
    /// A call to something outside the program: HTTP, a database, a name server, a connection, a TLS
    /// handshake.
    Outgoing,
    /// Anything else.
    Other,
}

/// The end of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpanEnd {
    /// The span's Stop event.
    Stopped,
    /// Another event: the Stop is not recorded, because the runtime ended the span with its enclosing span,
    /// or when another span of the same name started. The operation may have ended before.
    Implied,
    /// The end of the recording: the span was not stopped before.
    RecordingEnd,
}

/// A span that has ended, or that was cut by the end of the recording.
///
/// ```
/// use clr_activity::{Span, SpanEnd, SpanId, SpanRole};
///
/// let provider = "Microsoft.AspNetCore.Hosting";
/// let mut span = Span::new(SpanId::new(1), SpanRole::Server, provider, "Request", "GET /");
/// span.status = Some("200");
/// assert!(span.is_served_request() && span.is_request());
/// assert!(span.is_named(|name| name == "Microsoft.AspNetCore.Hosting/Request"));
/// // A request that had not ended does not count.
/// span.end = SpanEnd::RecordingEnd;
/// assert!(!span.is_served_request());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Span<'a> {
    /// The number of the span.
    pub id: SpanId,
    /// The role of the span.
    pub role: SpanRole,
    /// The EventSource, or the source that a DiagnosticSource event names.
    pub provider: &'a str,
    /// The common name of Start and Stop: `Request`.
    pub task: &'a str,
    /// The route, path, address or other name of its subject; empty if the events do not name it.
    pub name: &'a str,
    /// The name in its start event: a method and a path where [`name`](Self::name) has a route.
    pub start_name: &'a str,
    /// The process; `None` if the recording does not state it.
    pub process: Option<u64>,
    /// The activity; `None` if Start does not carry one, and the span was paired by its fields.
    pub activity: Option<Uuid>,
    /// The enclosing span that was not stopped when this one began.
    pub parent: Option<SpanId>,
    /// The request that it is part of; itself, if it is not part of another.
    pub request: SpanId,
    /// The beginning of the span.
    pub start: RelativeTime,
    /// The time from the start to the end.
    pub duration: Duration,
    /// The end.
    pub end: SpanEnd,
    /// The status: the number that HTTP, gRPC or SQL have for it, or as the event has it. `None` if no event
    /// has it.
    pub status: Option<&'a str>,
    /// True if it failed, according to an event or its status.
    pub is_error: bool,
    /// The error's text, if an event has one.
    pub error: Option<&'a str>,
    /// The time by activity, for a request that has an activity: [`time_parts`](Self::time_parts) has the
    /// parts known by now, and [`MeasuredParts::known`] the parts known at the end of the recording.
    pub parts: Option<MeasuredParts>,
    /// The parts that the recording has had events for up to the span's end.
    pub known: KnownParts,
    /// The intervals of these parts, sorted by start, at most 64 per request: empty unless they were
    /// [wanted](crate::Spans::with_intervals).
    pub intervals: &'a [WorkInterval],
}

impl<'a> Span<'a> {
    /// Creates a request that took no time and did not fail. Its fields can be set.
    pub fn new(id: SpanId, role: SpanRole, provider: &'a str, task: &'a str, name: &'a str) -> Self {
        Self {
            id,
            role,
            provider,
            task,
            name,
            start_name: name,
            process: None,
            activity: None,
            parent: None,
            request: id,
            start: RelativeTime::START,
            duration: Duration::ZERO,
            end: SpanEnd::Stopped,
            status: None,
            is_error: false,
            error: None,
            parts: None,
            known: KnownParts::default(),
            intervals: &[],
        }
    }

    /// Returns the time by activity, for a request that has an activity. Parts that the recording has not had
    /// events for are `None`.
    ///
    /// ```
    /// use clr_activity::{Span, SpanId, SpanRole, TimeParts};
    /// use std::time::Duration;
    ///
    /// let mut span = Span::new(SpanId::new(1), SpanRole::Server, "Demo", "Request", "GET /");
    /// let mut parts = TimeParts::default();
    /// parts.on_thread = Some(Duration::from_millis(3));
    /// span.parts = Some(parts.into());
    /// // A recording that has events of threads, and none of pauses.
    /// span.known.on_thread = true;
    /// let known = span.time_parts().unwrap_or_default();
    /// assert_eq!((known.on_thread, known.gc_pause), (Some(Duration::from_millis(3)), None));
    /// ```
    pub fn time_parts(&self) -> Option<TimeParts> {
        self.parts.map(|parts| parts.known(self.known))
    }

    /// Returns true if `matches` accepts its name or `Provider/Task`.
    pub fn is_named(&self, matches: impl Fn(&str) -> bool) -> bool {
        matches(self.name) || matches(&format!("{}/{}", self.provider, self.task))
    }

    /// Returns true if it is a request that the program served and that has ended: reports count these as
    /// requests.
    pub fn is_served_request(&self) -> bool {
        self.role == SpanRole::Server && self.end == SpanEnd::Stopped
    }

    /// Returns true if it is a request, not a part of another one.
    pub fn is_request(&self) -> bool {
        self.request == self.id
    }
}
