//! The session of a process for log records and spans.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clr_activity::{LOGGING_PROVIDER, RequestWitness};
use dipc_client::{Error, OptionalFeature, ProviderConfig, Rundown, SessionConfig};
use dipc_collect::RetryWait;
use dipc_collect::logs::{LogLevel, LogReader, LogRecord, LogSelection, activity_ids, value_text};
use otlp_messages::common::Resource;
use otlp_messages::logs::LogRecord as LogMessage;
use otlp_messages::trace::Span;

use super::batch::{Batch, resource};
use super::span::SpanReader;
use super::{OtlpSignal, Shared, log, unix_now};
use crate::live_session::{Arrived, DRAIN, LiveSession, TICK};
use crate::process::Watched;
use crate::request_provider::{DIAGNOSTIC_SOURCE, http_provider, source_lines, witness_provider};

/// The size of the runtime's buffer in MB.
const BUFFER_MB: u32 = 64;
/// The bytes read at once.
const CHUNK: usize = 64 << 10;
/// The stack of a session's thread.
const STACK: usize = 512 << 10;
/// The category of records that name the endpoint, and with it the route, of a request.
const ENDPOINTS: &str = "Microsoft.AspNetCore.Routing.EndpointMiddleware";

/// The export of a process.
pub(super) struct ProcessExport {
    process: Arc<Watched>,
    shared: Arc<Shared>,
    is_stopped: AtomicBool,
    is_running: AtomicBool,
    /// True if the first session was started, or refused.
    has_begun: Mutex<bool>,
    changed: Condvar,
}

impl ProcessExport {
    /// Starts the thread of the sessions.
    pub(super) fn start(
        process: Arc<Watched>,
        attributes: &[(String, String)],
        shared: Arc<Shared>,
    ) -> Arc<Self> {
        if let Some(traces) = &shared.config.traces {
            process.set_source_lines(source_lines(&traces.sources));
        }
        if let Some(request) = black_box_logs(shared.config.logs.as_ref(), shared.config.traces.is_some()) {
            process.set_log_filter(request.arguments);
        }
        let export = Arc::new(Self {
            process,
            shared,
            is_stopped: AtomicBool::new(false),
            is_running: AtomicBool::new(true),
            has_begun: Mutex::new(false),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&export);
        let resource = resource(attributes, export.process.facts.pid);
        let thread = thread::Builder::new().name("otlp".to_owned()).stack_size(STACK);
        let run = move || {
            of_thread.run(&resource);
            of_thread.begun();
            of_thread.is_running.store(false, Ordering::Release);
        };
        if thread.spawn(run).is_err() {
            export.begun();
            export.is_running.store(false, Ordering::Release);
        }
        export
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Returns true unless the system is known to keep its process from answering.
    pub(super) fn can_answer(&self) -> bool {
        self.process.obstacle().is_none()
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    /// Waits until the session has begun, or was refused.
    pub(super) fn wait_for_session(&self, longest: Duration) {
        let has_begun = self.has_begun.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(has_begun, longest, |has_begun| !*has_begun));
    }

    fn begun(&self) {
        *self.has_begun.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire) || self.process.has_ended()
    }

    /// Keeps a session until the end of the process or of the export.
    fn run(&self, resource: &Resource) {
        let mut retry = RetryWait::default();
        while !self.is_over() {
            let session = self.start_session();
            self.begun();
            if let Ok(mut session) = session {
                retry.reset();
                self.read(&mut session, resource);
            }
            let until = Instant::now() + retry.next_wait();
            while Instant::now() < until && !self.is_over() {
                thread::sleep(TICK);
            }
        }
    }

    fn start_session(&self) -> Result<LiveSession, Error> {
        let config = SessionConfig::new(self.providers())
            .with_buffer_mb(BUFFER_MB)
            .with_rundown(Rundown::Off)
            .with_stackwalk(false)
            .with_optional(vec![OptionalFeature::NoRundown, OptionalFeature::NoStacks]);
        let process = &self.process;
        let sources = &process.filtered_sources;
        LiveSession::start_filtered(sources, process.target(), &config, CHUNK, &process.lost_events.export)
    }

    fn providers(&self) -> Vec<ProviderConfig> {
        let config = &self.shared.config;
        let mut providers = vec![activity_ids()];
        if let Some(request) = logs_request(config.logs.as_ref(), config.traces.is_some()) {
            providers.extend(request.provider());
        }
        if config.traces.is_some() {
            providers.push(self.process.with_sources(http_provider()));
            providers.push(witness_provider());
        }
        providers
    }

    /// Reads the session until its stream ends, or is to end.
    fn read(&self, session: &mut LiveSession, resource: &Resource) {
        let mut reader = Reader::new(&self.shared, resource);
        let mut ended = None;
        loop {
            match session.read() {
                Ok(Arrived::Bytes) => {}
                Ok(Arrived::Nothing) => {
                    // The stream of an ended process has an end, unless another process holds the connection.
                    let ended = self.process.has_ended().then(|| *ended.get_or_insert_with(Instant::now));
                    if ended.is_some_and(|ended| ended.elapsed() > DRAIN) {
                        break;
                    }
                }
                Ok(Arrived::End) | Err(_) => break,
            }
            reader.deliver(&mut session.reader);
            if reader.witness.take_silence(Instant::now()) {
                session.renew_filters();
            }
            if self.is_stopped.load(Ordering::Acquire) {
                session.stop(|events| reader.deliver(events));
                break;
            }
            if session.reader.unreadable().is_some() {
                break;
            }
        }
        session.reader.end_of_input();
        reader.deliver(&mut session.reader);
        reader.finish();
    }
}

/// The log records to request: records to export, and records that name the routes of spans.
fn logs_request(wanted: Option<&LogSelection>, has_spans: bool) -> Option<LogSelection> {
    let mut request = wanted.cloned().or_else(|| has_spans.then(|| LogSelection::new(LogLevel::None)))?;
    // If any category is named, the runtime omits all other categories.
    if !request.use_app_filters {
        request.filters.entry("*".to_owned()).or_insert(request.level);
    }
    if has_spans {
        let level = request.filters.entry(ENDPOINTS.to_owned()).or_insert(LogLevel::Information);
        *level = (*level).min(LogLevel::Information);
    }
    Some(request)
}

/// The log records that the black box requests next to an export of log records or spans.
fn black_box_logs(wanted: Option<&LogSelection>, has_spans: bool) -> Option<ProviderConfig> {
    // Without an export of log records, all that the application's own filters let pass.
    let everything = (wanted.is_none() && has_spans).then(LogSelection::of_application);
    logs_request(everything.as_ref().or(wanted), has_spans)?.provider()
}

/// Returns true if a record that names a route is exported, too.
fn exports_endpoints(wanted: &LogSelection) -> bool {
    if let Some(level) = wanted.filters.get(ENDPOINTS) {
        return *level <= LogLevel::Information;
    }
    // The filter with the longest name that a category begins with counts.
    let is_prefix = |name: &&String| {
        ENDPOINTS.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let longest = wanted.filters.keys().filter(is_prefix).max_by_key(|name| name.len());
    match longest.and_then(|name| wanted.filters.get(name)) {
        Some(level) => *level <= LogLevel::Information,
        // The application's own filters are not known.
        None => !wanted.use_app_filters && wanted.level <= LogLevel::Information,
    }
}

/// The events of a session on their way into requests.
struct Reader<'s> {
    shared: &'s Shared,
    resource: &'s Resource,
    logs: LogReader,
    spans: SpanReader,
    witness: RequestWitness,
    has_logs: bool,
    exports_endpoints: bool,
    log_batch: Batch<LogMessage>,
    span_batch: Batch<Span>,
}

impl<'s> Reader<'s> {
    fn new(shared: &'s Shared, resource: &'s Resource) -> Self {
        let logs = shared.config.logs.as_ref();
        Self {
            shared,
            resource,
            logs: LogReader::default(),
            spans: SpanReader::default(),
            witness: RequestWitness::new(DIAGNOSTIC_SOURCE),
            has_logs: logs.is_some(),
            exports_endpoints: shared.config.traces.is_none() || logs.is_some_and(exports_endpoints),
            log_batch: Batch::default(),
            span_batch: Batch::default(),
        }
    }

    fn deliver(&mut self, reader: &mut dipc_client::LiveReader) {
        if let Some(info) = reader.info() {
            self.logs.set_start(info);
            self.spans.start = self.logs.start();
        }
        let ratio = self.shared.config.traces.as_ref().map(|traces| traces.ratio);
        reader.for_each(|event| {
            self.witness.add(event);
            if event.provider() == LOGGING_PROVIDER {
                let Self { logs, spans, log_batch, has_logs, exports_endpoints, .. } = self;
                logs.add(event, &mut |record| {
                    add_record(record, spans, log_batch, *has_logs, *exports_endpoints);
                });
            } else if let Some(ratio) = ratio
                && let Some(ended) = self.spans.add(event)
            {
                let trace_id = <[u8; 16]>::try_from(&*ended.span.trace_id).unwrap_or_default();
                if ratio.keeps(trace_id) {
                    self.span_batch.add(&ended.source, ended.span);
                }
            }
            self.send_due();
        });
        self.send_due();
    }

    fn finish(&mut self) {
        let Self { logs, spans, log_batch, has_logs, exports_endpoints, .. } = self;
        logs.finish(&mut |record| add_record(record, spans, log_batch, *has_logs, *exports_endpoints));
        self.send_logs();
        self.send_spans();
    }

    fn send_due(&mut self) {
        if self.log_batch.is_due() {
            self.send_logs();
        }
        if self.span_batch.is_due() {
            self.send_spans();
        }
    }

    fn send_logs(&mut self) {
        if let Some(request) = self.log_batch.request(self.resource) {
            self.shared.sink.send(OtlpSignal::Logs, request);
        }
    }

    fn send_spans(&mut self) {
        if let Some(request) = self.span_batch.request(self.resource) {
            self.shared.sink.send(OtlpSignal::Traces, request);
        }
    }
}

fn add_record(
    record: &LogRecord<'_>,
    spans: &mut SpanReader,
    batch: &mut Batch<LogMessage>,
    has_logs: bool,
    exports_endpoints: bool,
) {
    let context = record.context.or_else(|| spans.context_of(record.activity, record.process));
    let is_endpoint = record.category == ENDPOINTS && record.level <= LogLevel::Information;
    if is_endpoint && let (Some(context), Some(name)) = (context, record.arguments.get("EndpointName")) {
        spans.set_route(context, &value_text(name));
    }
    if has_logs && (!is_endpoint || exports_endpoints) {
        batch.add(record.category, log::message(record, context, unix_now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(level: LogLevel, filters: &[(&str, LogLevel)], use_app_filters: bool) -> LogSelection {
        let filters = filters.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect();
        LogSelection { level, filters, use_app_filters }
    }

    #[test]
    fn records_are_filtered_at_the_source() {
        let arguments = |wanted: Option<&LogSelection>, has_spans| {
            logs_request(wanted, has_spans).map(|request| request.provider().unwrap().arguments)
        };
        let app = request(LogLevel::Trace, &[], true);
        assert_eq!(arguments(Some(&app), false).unwrap(), "FilterSpecs=\"UseAppFilters\"");
        assert_eq!(
            arguments(Some(&app), true).unwrap(),
            format!("FilterSpecs=\"UseAppFilters;{ENDPOINTS}:Information\"")
        );
        let own = request(LogLevel::Warning, &[("Shop", LogLevel::Debug)], false);
        assert_eq!(arguments(Some(&own), false).unwrap(), "FilterSpecs=\"*:Warning;Shop:Debug\"");
        assert_eq!(arguments(None, true).unwrap(), format!("FilterSpecs=\"*:6;{ENDPOINTS}:Information\""));
        assert_eq!(arguments(None, false), None);
    }

    /// The last session's filter is in force for all: the black box must not reduce the export.
    #[test]
    fn the_black_box_has_the_filter_of_the_export() {
        let filter = |wanted, has_spans| black_box_logs(wanted, has_spans).map(|provider| provider.arguments);
        let own = request(LogLevel::Warning, &[("Shop", LogLevel::Debug)], false);
        assert_eq!(filter(Some(&own), false).unwrap(), "FilterSpecs=\"*:Warning;Shop:Debug\"");
        assert_eq!(
            filter(None, true).unwrap(),
            format!("FilterSpecs=\"UseAppFilters;{ENDPOINTS}:Information\"")
        );
        assert_eq!(filter(None, false), None);
    }

    #[test]
    fn records_that_only_name_routes_are_not_exported() {
        let rows = [
            (request(LogLevel::Information, &[], false), true),
            (request(LogLevel::Warning, &[], false), false),
            (request(LogLevel::Trace, &[], true), false),
            (request(LogLevel::Warning, &[("Microsoft.AspNetCore", LogLevel::Debug)], false), true),
            (request(LogLevel::Trace, &[("Microsoft", LogLevel::Warning)], false), false),
            (request(LogLevel::Trace, &[("Micro", LogLevel::Warning)], false), true),
        ];
        for (wanted, expected) in rows {
            assert_eq!(exports_endpoints(&wanted), expected, "{wanted:?}");
        }
    }
}
