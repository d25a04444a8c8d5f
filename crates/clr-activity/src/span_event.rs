//! Single events that start or stop a span of widely used libraries of .NET programs.

use nettrace::{Event, Metadata};

use crate::event_kind::{EventKind, Format};
use crate::fields;
use crate::span::SpanRole;

/// A kind of event that starts or stops a span with known fields: of ASP.NET Core, Kestrel, HttpClient,
/// sockets, TLS, name resolution, SqlClient or gRPC.
///
/// ```no_run
/// use clr_activity::SpanEvent;
///
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// while let Some(event) = events.next()? {
///     let Some(span_event) = SpanEvent::of(event.metadata()) else { continue };
///     if span_event.is_start() {
///         println!("{:?} {:?}", span_event.role(), span_event.name(&event));
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanEvent {
    format: Format,
    is_start: bool,
}

impl SpanEvent {
    /// Returns the meaning of a kind of event; `None` for all others.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let (format, is_start) = match EventKind::of(metadata) {
            EventKind::Start(format) => (format, true),
            EventKind::Stop(format) => (format, false),
            _ => return None,
        };
        (format != Format::Generic).then_some(Self { format, is_start })
    }

    /// Returns true if it starts a span.
    pub const fn is_start(self) -> bool {
        self.is_start
    }

    /// The role of the span.
    pub const fn role(self) -> SpanRole {
        self.format.role()
    }

    /// Returns the name of the span, by the fields of its start: method and path, address, host.
    pub fn name(self, event: &Event<'_>) -> Option<String> {
        self.is_start.then(|| fields::name(event, self.format))
    }

    /// Returns the text that pairs start and stop if their activities do not.
    pub fn key(self, event: &Event<'_>) -> Option<String> {
        fields::pairing_key(event, self.format)
    }

    /// Returns the status in a stop event, if it has one, and whether the span failed according to it.
    pub fn outcome(self, event: &Event<'_>) -> Option<(Option<String>, bool)> {
        let outcome = (!self.is_start).then(|| fields::outcome(event, self.format))?;
        Some((outcome.status, outcome.is_error))
    }
}
