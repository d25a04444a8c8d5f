//! Records and spans on their way into requests.

use std::time::{Duration, Instant};

use clr_counters::otlp::Request;
use indexmap::IndexMap;
use otlp_messages::Message;
use otlp_messages::common::{InstrumentationScope, KeyValue, Resource};
use otlp_messages::logs::{ExportLogsServiceRequest, LogRecord, ResourceLogs, ScopeLogs};
use otlp_messages::trace::{ExportTraceServiceRequest, ResourceSpans, ScopeSpans, Span};

/// Maximum number of items of a request.
const MAX_ITEMS: usize = 512;
/// Approximate maximum size of a request, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Maximum time that an item waits.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Items of one kind, by scope.
pub(super) struct Batch<T> {
    scopes: IndexMap<String, Vec<T>>,
    count: usize,
    bytes: usize,
    /// The time of the first item.
    since: Option<Instant>,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { scopes: IndexMap::new(), count: 0, bytes: 0, since: None }
    }
}

impl<T: Message> Batch<T> {
    pub(super) fn add(&mut self, scope: &str, item: T) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(item.encoded_len());
        self.since.get_or_insert_with(Instant::now);
        match self.scopes.get_mut(scope) {
            Some(items) => items.push(item),
            None => {
                self.scopes.insert(scope.to_owned(), vec![item]);
            }
        }
    }

    /// Returns true if it is to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.count >= MAX_ITEMS
            || self.bytes >= MAX_BYTES
            || self.since.is_some_and(|since| since.elapsed() >= MAX_WAIT)
    }

    fn take(&mut self) -> Option<(IndexMap<String, Vec<T>>, usize)> {
        let Self { scopes, count, .. } = std::mem::take(self);
        (count > 0).then_some((scopes, count))
    }
}

impl Batch<LogRecord> {
    /// Takes all records as a request; `None` without any.
    pub(super) fn request(&mut self, resource: &Resource) -> Option<Request> {
        let (scopes, count) = self.take()?;
        let scope_logs = scopes.into_iter().map(|(name, log_records)| ScopeLogs {
            scope: Some(InstrumentationScope::new(&name)),
            log_records,
        });
        let resource_logs =
            ResourceLogs { resource: Some(resource.clone()), scope_logs: scope_logs.collect() };
        let request = ExportLogsServiceRequest { resource_logs: vec![resource_logs] };
        Some(Request::new(request.encode_to_vec(), count))
    }
}

impl Batch<Span> {
    /// Takes all spans as a request; `None` without any.
    pub(super) fn request(&mut self, resource: &Resource) -> Option<Request> {
        let (scopes, count) = self.take()?;
        let scope_spans = scopes
            .into_iter()
            .map(|(name, spans)| ScopeSpans { scope: Some(InstrumentationScope::new(&name)), spans });
        let resource_spans =
            ResourceSpans { resource: Some(resource.clone()), scope_spans: scope_spans.collect() };
        let request = ExportTraceServiceRequest { resource_spans: vec![resource_spans] };
        Some(Request::new(request.encode_to_vec(), count))
    }
}

/// The resource of a process.
pub(super) fn resource(attributes: &[(String, String)], pid: u32) -> Resource {
    let mut attributes: Vec<_> = attributes.iter().map(|(key, value)| KeyValue::new(key, &**value)).collect();
    attributes.push(KeyValue::new("process.pid", i64::from(pid)));
    Resource { attributes }
}
