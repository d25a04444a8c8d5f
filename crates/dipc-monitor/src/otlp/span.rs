//! Spans from the events of the DiagnosticSource bridge.
//!
//! A span of ASP.NET Core or HttpClient is sent twice: by the library's DiagnosticListener, with the
//! properties of the request, and by its ActivitySource, with times, kind, status and tags. Other spans are
//! only sent by an ActivitySource. All events of a span have the id of its `Activity`.

mod annotation;

use std::collections::{BTreeMap, HashMap};

use clr_activity::{DiagnosticEvent, DiagnosticPhase, TraceContext};
use clr_events::ActivityPath;
use dipc_client::Uuid;
use dipc_client::nettrace::Event;
use otlp_messages::common::KeyValue;
use otlp_messages::trace::span::{Event as SpanEvent, Link, SpanKind};
use otlp_messages::trace::status::StatusCode;
use otlp_messages::trace::{Span, Status};
use sha2::{Digest as _, Sha256};

use super::http;
use super::unix_nanoseconds;

/// Maximum number of open spans.
const MAX_OPEN: usize = 20_000;
/// Maximum number of attributes of a span.
const MAX_ATTRIBUTES: usize = 128;
/// The ticks of 100 ns from the year 1, from which .NET counts, to 1970.
const EPOCH_TICKS: i128 = 621_355_968_000_000_000;
/// The attributes that are numbers; the bridge sends all values as strings.
const NUMBERS: [&str; 9] = [
    "http.response.status_code",
    "http.request.resend_count",
    "http.request.body.size",
    "http.response.body.size",
    "server.port",
    "client.port",
    "network.peer.port",
    "rpc.grpc.status_code",
    "db.response.returned_rows",
];

/// The share of traces that is kept. Whether a trace is kept depends on its id alone: the lowest 56 bits, as
/// in W3C Trace Context level 2.
///
/// ```
/// use dipc_monitor::SamplingRatio;
///
/// assert_eq!(SamplingRatio::new(1.0), Some(SamplingRatio::ALL));
/// assert_eq!(SamplingRatio::new(1.5), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingRatio(u64);

impl SamplingRatio {
    /// All traces.
    pub const ALL: Self = Self(0);

    /// Creates a ratio; `None` outside of 0 to 1.
    pub fn new(ratio: f64) -> Option<Self> {
        const RANGE: u64 = 1 << 56;
        if !(0.0..=1.0).contains(&ratio) {
            return None;
        }
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let threshold = ((1.0 - ratio) * RANGE as f64).round() as u64;
        Some(Self(threshold.min(RANGE)))
    }

    /// Returns true if a trace is kept.
    pub(super) fn keeps(self, trace_id: [u8; 16]) -> bool {
        let low = u128::from_be_bytes(trace_id) & 0x00ff_ffff_ffff_ffff;
        low >= u128::from(self.0)
    }
}

/// A span that has not ended.
#[derive(Debug, Default)]
struct OpenSpan {
    ids: Ids,
    source: String,
    operation: String,
    name: String,
    kind: Option<SpanKind>,
    /// The start in ticks since the year 1.
    start: Option<i128>,
    tags: BTreeMap<String, String>,
    status: Option<Status>,
    /// Links of the last event, which has all of them.
    links: Vec<Link>,
    events: Vec<SpanEvent>,
    /// True if an ActivitySource sends it. The source's stop event is the last.
    has_source: bool,
    /// The activities of its start events.
    activities: Vec<Uuid>,
}

/// The ids of a span.
#[derive(Debug, Clone, Copy, Default)]
struct Ids {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent: Option<[u8; 8]>,
    flags: u8,
}

impl Ids {
    /// Parses the id of an `Activity` and of its parent. Hierarchical ids, which .NET Core 3.1 has, are
    /// hashed: the trace by the id's root, so that parents and traces are the same in all processes.
    fn of(id: &str, parent: Option<&str>) -> Self {
        let own = context_of(id);
        let parent = parent.map(|parent| context_of(parent).span_id);
        Self { trace_id: own.trace_id, span_id: own.span_id, parent, flags: own.flags }
    }
}

fn context_of(id: &str) -> TraceContext {
    TraceContext::parse(id).unwrap_or_else(|| {
        let root = id.strip_prefix('|').and_then(|id| id.split('.').next()).unwrap_or(id);
        let (mut trace_id, mut span_id) = ([0; 16], [0; 8]);
        trace_id.copy_from_slice(Sha256::digest(root.as_bytes()).get(..16).unwrap_or(&[1; 16]));
        span_id.copy_from_slice(Sha256::digest(id.as_bytes()).get(..8).unwrap_or(&[1; 8]));
        TraceContext { trace_id, span_id, flags: 0 }
    })
}

/// A span that has ended, and the source that it is of.
pub(super) struct EndedSpan {
    pub(super) source: String,
    pub(super) span: Span,
}

/// Spans from a stream of events.
#[derive(Debug, Default)]
pub(super) struct SpanReader {
    /// The beginning of the stream in Unix nanoseconds.
    pub(super) start: Option<i128>,
    open: HashMap<String, OpenSpan>,
    by_activity: HashMap<Uuid, String>,
    by_context: HashMap<[u8; 8], String>,
    /// The spans that were left out because too many had not ended.
    pub(super) left_out: u64,
}

impl SpanReader {
    /// Adds an event. Returns the span that it ends.
    pub(super) fn add(&mut self, event: &Event<'_>) -> Option<EndedSpan> {
        let diagnostic = DiagnosticEvent::read(event)?;
        let is_source = DiagnosticEvent::is_of_activity_source(event);
        let id = diagnostic.argument(&["Id", "ActivityId"])?.to_owned();
        let now = self.start.map(|start| start.saturating_add(i128::from(event.relative_time().as_nanos())));
        match diagnostic.phase {
            DiagnosticPhase::Start => {
                if !self.open.contains_key(&id) && self.open.len() >= MAX_OPEN {
                    self.left_out = self.left_out.saturating_add(1);
                    return None;
                }
                let span = self.open.entry(id.clone()).or_default();
                span.merge(&id, &diagnostic, is_source);
                self.by_context.insert(span.ids.span_id, id.clone());
                if let Some(activity) = event.activity() {
                    span.activities.push(activity);
                    self.by_activity.insert(activity, id);
                }
                None
            }
            DiagnosticPhase::Stop | DiagnosticPhase::Failure => {
                let known = self.open.get_mut(&id);
                // A listener's stop event does not state a start time; a source's stop event is complete.
                let mut span = match known {
                    Some(span) if span.has_source && !is_source => {
                        span.merge(&id, &diagnostic, is_source);
                        return None;
                    }
                    Some(_) => self.remove(&id)?,
                    None if is_source => OpenSpan::default(),
                    None => return None,
                };
                span.merge(&id, &diagnostic, is_source);
                let took =
                    diagnostic.argument(&["Took", "ActivityDuration"]).and_then(|ticks| ticks.parse().ok());
                Some(span.finish(took, now))
            }
            DiagnosticPhase::Neither => None,
        }
    }

    fn remove(&mut self, id: &str) -> Option<OpenSpan> {
        let span = self.open.remove(id)?;
        self.by_context.remove(&span.ids.span_id);
        for activity in &span.activities {
            self.by_activity.remove(activity);
        }
        Some(span)
    }

    /// Returns the innermost span that has not ended around an activity.
    pub(super) fn context_of(&self, activity: Uuid, process: Option<u64>) -> Option<TraceContext> {
        let around = ActivityPath::new(activity, process);
        let around = around.into_iter().flat_map(|path| path.ancestors());
        let id = std::iter::once(activity).chain(around).find_map(|id| self.by_activity.get(&id))?;
        let Ids { trace_id, span_id, flags, .. } = self.open.get(id)?.ids;
        Some(TraceContext { trace_id, span_id, flags })
    }

    /// Sets the route of a request that has not ended: `HTTP: GET /hello/{n}` is the name of an endpoint.
    pub(super) fn set_route(&mut self, context: TraceContext, endpoint: &str) {
        let id = self.by_context.get(&context.span_id);
        let Some(span) = id.and_then(|id| self.open.get_mut(id)) else { return };
        let route = endpoint.rsplit_once("HTTP: ").map_or(endpoint, |(_, route)| route);
        let route = route.split_once(' ').map_or(route, |(_, path)| path);
        if route.starts_with('/') {
            span.tags.entry("http.route".to_owned()).or_insert_with(|| route.to_owned());
        }
    }
}

impl OpenSpan {
    /// Adds the properties of an event.
    fn merge(&mut self, id: &str, event: &DiagnosticEvent, is_source: bool) {
        let parent = event.argument(&["ParentId", "ActivityParentId"]);
        if self.source.is_empty() || parent.is_some() {
            self.ids = Ids::of(id, parent);
        }
        if is_source || self.source.is_empty() {
            // The name of HttpClient's listener, and that of its source.
            let source = Some(&*event.source).filter(|source| *source != "HttpHandlerDiagnosticListener");
            source.unwrap_or("System.Net.Http").clone_into(&mut self.source);
            self.operation.clone_from(&event.task);
        }
        self.has_source |= is_source;
        let start = event.argument(&["Start", "ActivityStartTime"]).and_then(|ticks| ticks.parse().ok());
        self.start = self.start.or(start.filter(|ticks: &i128| *ticks > EPOCH_TICKS));
        if let Some(name) = event.argument(&["DisplayName"]) {
            name.clone_into(&mut self.name);
        }
        let kind = event.argument(&["Kind"]).and_then(|kind| match kind {
            "Internal" => Some(SpanKind::Internal),
            "Server" => Some(SpanKind::Server),
            "Client" => Some(SpanKind::Client),
            "Producer" => Some(SpanKind::Producer),
            "Consumer" => Some(SpanKind::Consumer),
            _ => None,
        });
        self.kind = kind.or(self.kind);
        let code = match event.argument(&["Status"]) {
            Some("Ok") => Some(StatusCode::Ok),
            Some("Error") => Some(StatusCode::Error),
            _ => None,
        };
        if let Some(code) = code {
            let message = event.argument(&["StatusDescription"]).unwrap_or_default().to_owned();
            self.status = Some(Status { message, code: code.into() });
        }
        for (key, value) in event.tags() {
            if self.tags.len() < MAX_ATTRIBUTES || self.tags.contains_key(key) {
                self.tags.insert(key.to_owned(), value.to_owned());
            }
        }
        if let Some(links) = event.argument(&["Links"]) {
            self.links = annotation::links(links);
        }
        if let Some(events) = event.argument(&["Events"]) {
            self.events = annotation::events(events);
        }
        if !is_source {
            let kind = http::add_properties(event, &mut self.tags);
            self.kind = self.kind.or(kind);
        }
    }

    /// Completes the span. `took` is in ticks, `now` in Unix nanoseconds.
    fn finish(mut self, took: Option<i128>, now: Option<i128>) -> EndedSpan {
        let nanoseconds = |ticks: i128| (ticks - EPOCH_TICKS) * 100;
        let start = self.start.map(nanoseconds).or(now).unwrap_or_default();
        let took = took.filter(|ticks| *ticks > 0).map(|ticks| ticks * 100);
        let end = took.map(|took| start + took).or(now).unwrap_or(start).max(start);
        let kind = self.kind.unwrap_or(SpanKind::Internal);
        // .NET's own spans are named after the operation, which does not distinguish requests.
        if self.name.is_empty() || self.name == self.operation {
            self.name = http::name(&self.tags).unwrap_or(self.operation);
        }
        let error = http::error(&self.tags, kind == SpanKind::Server);
        if let Some(error) = &error {
            self.tags.entry("error.type".to_owned()).or_insert_with(|| error.clone());
        }
        let status = self
            .status
            .or_else(|| error.map(|_| Status { message: String::new(), code: StatusCode::Error.into() }));
        let Ids { trace_id, span_id, parent, flags } = self.ids;
        let span = Span {
            trace_id: trace_id.to_vec(),
            span_id: span_id.to_vec(),
            parent_span_id: parent.map(|parent| parent.to_vec()).unwrap_or_default(),
            name: self.name,
            kind: kind.into(),
            start_time_unix_nano: unix_nanoseconds(start),
            end_time_unix_nano: unix_nanoseconds(end),
            attributes: self.tags.iter().map(|(key, value)| attribute(key, value)).collect(),
            events: self.events,
            links: self.links,
            status,
            flags: flags.into(),
        };
        EndedSpan { source: self.source, span }
    }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    match value.parse::<i64>() {
        Ok(value) if NUMBERS.contains(&key) => KeyValue::new(key, value),
        _ => KeyValue::new(key, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_decides_by_the_lowest_bits_of_the_trace() {
        let id = |low: u64| {
            let mut id = [0xff; 16];
            id[8..].copy_from_slice(&(0xff << 56 | low).to_be_bytes());
            id
        };
        let half = SamplingRatio::new(0.5).unwrap();
        assert!(half.keeps(id(1 << 55)) && !half.keeps(id((1 << 55) - 1)));
        let none = SamplingRatio::new(0.0).unwrap();
        assert!(!none.keeps(id((1 << 56) - 1)) && SamplingRatio::ALL.keeps(id(0)));
        assert_eq!(SamplingRatio::new(1.0), Some(SamplingRatio::ALL));
        assert!([-0.1, 1.1, f64::NAN].into_iter().all(|ratio| SamplingRatio::new(ratio).is_none()));
        // Evenly spread ids: a tenth of them.
        let tenth = SamplingRatio::new(0.1).unwrap();
        let kept = (0..1000).filter(|number| tenth.keeps(id((2 * number + 1) * ((1 << 55) / 1000)))).count();
        assert_eq!(kept, 100);
    }

    #[test]
    fn hierarchical_ids_share_their_trace() {
        let root = Ids::of("|4bf92f35.", None);
        let child = Ids::of("|4bf92f35.1.", Some("|4bf92f35."));
        assert_eq!((child.trace_id, child.parent), (root.trace_id, Some(root.span_id)));
        assert_ne!(child.span_id, root.span_id);
    }
}
