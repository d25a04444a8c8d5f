//! The artifact that a request asks for.

mod body;
mod query;

use std::time::Duration;

use dipc_client::DumpType;
use dipc_collect::logs::{LogLevel, LogSelection};
use serde::{Deserialize, Serialize};

use crate::artifact::{
    Artifact, ArtifactKind, ExceptionsRequest, FlameGraphFormat, LogFormat, LogsRequest, ProfileKind,
    RequestsRequest, StackFormat, TopFormat, TopRequest, TraceProfile, TraceRequest,
};
use crate::configuration::GlobalCounter;

pub(crate) use query::{ProcessSelector, Query};

/// The size of the runtime's buffer for `GET /trace` in MB.
const BUFFER_MB: u32 = 256;

/// The collection settings of a request for an artifact. They can be stored, and read again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRequest {
    /// The name of the route, `trace` for example.
    pub(crate) route: String,
    pub(crate) query: String,
    /// The header `Accept`.
    pub(crate) accept: Option<String>,
    /// The body of a POST.
    pub(crate) body: Option<String>,
    /// The interval of counters that was set; that of the default if an older version stored it.
    #[serde(default)]
    pub(crate) counter_interval: Option<Duration>,
}

/// A fault of a request for an artifact.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// A parameter or a member of the body is not valid.
    #[error("{member}: {what}")]
    Invalid { member: String, what: String },
    /// The route is not that of an artifact.
    #[error("/{0} has no artifact")]
    NoArtifact(String),
    /// The artifact does not have an accepted form. The forms that it has follow.
    #[error("use {0}")]
    NotAcceptable(&'static str),
}

impl RequestError {
    fn invalid(member: &str, what: impl Into<String>) -> Self {
        Self::Invalid { member: member.to_owned(), what: what.into() }
    }
}

impl StoredRequest {
    /// Returns a request for an artifact of a kind.
    pub(crate) fn of_kind(kind: ArtifactKind) -> Self {
        Self { route: kind.name().to_owned(), ..Self::default() }
    }

    /// Returns the artifact.
    ///
    /// # Errors
    /// If the request is not valid.
    pub(crate) fn artifact(&self) -> Result<Artifact, RequestError> {
        let query = Query::parse(Some(&self.query));
        let content = self.body.as_ref().map(String::as_bytes);
        Ok(match &*self.route {
            "dump" => {
                let dump_type = query.choice("type", parse_dump_type)?;
                Artifact::Dump(dump_type.unwrap_or(DumpType::WITH_HEAP))
            }
            "gcdump" => Artifact::GcDump,
            "snapshot" => Artifact::Snapshot,
            "memory" => Artifact::Memory,
            "flamegraph" => {
                Artifact::FlameGraph(flame_graph_format(self.accept.as_deref())?, query.duration()?)
            }
            "top" => Artifact::Top(TopRequest {
                format: top_format(self.accept.as_deref())?,
                duration: query.duration()?,
                kind: query.choice("kind", ProfileKind::parse)?.unwrap_or_default(),
                number: query.number()?,
                is_inclusive: query.flag("inclusive")?,
            }),
            "requests" => Artifact::Requests(RequestsRequest {
                duration: query.duration()?,
                slower_than: query.time_span("slower_than")?,
            }),
            "why" => Artifact::Why(top_format(self.accept.as_deref())?, query.duration()?),
            "stacks" => Artifact::Stacks(stack_format(self.accept.as_deref())?),
            "exceptions" => {
                let filters = content.map(body::exceptions).transpose()?.unwrap_or_default();
                Artifact::Exceptions(ExceptionsRequest {
                    format: log_format(self.accept.as_deref())?,
                    duration: query.duration()?,
                    past: !query.has_duration(),
                    ..filters
                })
            }
            "livemetrics" => {
                let duration = query.duration()?;
                let interval = self.counter_interval.unwrap_or_else(|| GlobalCounter::default().interval);
                Artifact::LiveMetrics(match content {
                    Some(content) => body::live_metrics(content, interval, duration)?,
                    None => body::default_live_metrics(interval, duration),
                })
            }
            "logs" => {
                let duration = query.duration()?;
                let format = log_format(self.accept.as_deref())?;
                Artifact::Logs(if let Some(content) = content {
                    body::logs(content, format, duration)?
                } else {
                    let level = query.choice("level", LogLevel::parse)?;
                    let selection = level.map_or_else(LogSelection::of_application, LogSelection::new);
                    LogsRequest { selection, format, duration }
                })
            }
            "trace" => {
                let duration = query.duration()?;
                Artifact::Trace(if let Some(content) = content {
                    body::trace(content, duration)?
                } else {
                    let profiles = query.choice("profile", parse_profiles)?;
                    let providers =
                        TraceProfile::providers(profiles.as_deref().unwrap_or(&TraceProfile::DEFAULT));
                    TraceRequest { providers, request_rundown: true, buffer_mb: BUFFER_MB, duration }
                })
            }
            route => return Err(RequestError::NoArtifact(route.to_owned())),
        })
    }
}

fn parse_dump_type(text: &str) -> Option<DumpType> {
    let types = [
        ("Full", DumpType::FULL),
        ("Mini", DumpType::NORMAL),
        ("WithHeap", DumpType::WITH_HEAP),
        ("Triage", DumpType::TRIAGE),
    ];
    types.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, dump_type)| dump_type)
}

fn parse_profiles(text: &str) -> Option<Vec<TraceProfile>> {
    text.split(',').map(|name| TraceProfile::parse(name.trim())).collect()
}

/// The form of log records and exceptions that a client accepts.
fn log_format(accept: Option<&str>) -> Result<LogFormat, RequestError> {
    let formats = [
        ("application/x-ndjson", LogFormat::NewlineDelimitedJson),
        ("application/json-seq", LogFormat::JsonSequence),
        ("text/plain", LogFormat::PlainText),
        ("application/*", LogFormat::NewlineDelimitedJson),
        ("*/*", LogFormat::NewlineDelimitedJson),
        ("text/*", LogFormat::PlainText),
    ];
    accepted(accept, &formats, "application/x-ndjson, application/json-seq or text/plain")
}

/// The form of stacks that a client accepts.
fn stack_format(accept: Option<&str>) -> Result<StackFormat, RequestError> {
    let formats = [
        ("application/json", StackFormat::Json),
        ("text/plain", StackFormat::PlainText),
        ("application/speedscope+json", StackFormat::Speedscope),
        ("application/*", StackFormat::Json),
        ("*/*", StackFormat::Json),
        ("text/*", StackFormat::PlainText),
    ];
    accepted(accept, &formats, "application/json, text/plain or application/speedscope+json")
}

/// The form of a flame graph that a client accepts: browsers get a page.
fn flame_graph_format(accept: Option<&str>) -> Result<FlameGraphFormat, RequestError> {
    let formats = [
        ("text/html", FlameGraphFormat::Html),
        ("image/svg+xml", FlameGraphFormat::Svg),
        ("image/*", FlameGraphFormat::Svg),
        ("*/*", FlameGraphFormat::Svg),
    ];
    accepted(accept, &formats, "image/svg+xml or text/html")
}

/// The form of a table of methods, or of causes, that a client accepts.
fn top_format(accept: Option<&str>) -> Result<TopFormat, RequestError> {
    let formats = [
        ("application/json", TopFormat::Json),
        ("text/plain", TopFormat::PlainText),
        ("application/*", TopFormat::Json),
        ("*/*", TopFormat::Json),
        ("text/*", TopFormat::PlainText),
    ];
    accepted(accept, &formats, "application/json or text/plain")
}

/// The first of these forms that a client accepts, by media type.
fn accepted<F: Copy + Default>(
    accept: Option<&str>,
    formats: &[(&str, F)],
    known: &'static str,
) -> Result<F, RequestError> {
    let Some(accept) = accept else { return Ok(F::default()) };
    let types: Vec<&str> =
        accept.split(',').filter_map(|range| Some(range.split(';').next()?.trim())).collect();
    let found = formats.iter().find(|(name, _)| types.iter().any(|it| it.eq_ignore_ascii_case(name)));
    found.map(|(_, format)| *format).ok_or(RequestError::NotAcceptable(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_records_have_the_form_that_is_accepted() {
        let format = |accept| log_format(accept).ok();
        assert_eq!(format(None), Some(LogFormat::NewlineDelimitedJson));
        assert_eq!(format(Some("text/html, text/plain;q=0.5")), Some(LogFormat::PlainText));
        assert_eq!(format(Some("application/json-seq")), Some(LogFormat::JsonSequence));
        assert_eq!(format(Some("image/png, */*")), Some(LogFormat::NewlineDelimitedJson));
        assert_eq!(format(Some("image/png")), None);
    }
}
