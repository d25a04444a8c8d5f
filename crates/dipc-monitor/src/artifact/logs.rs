//! Log records of Microsoft.Extensions.Logging, as dotnet-monitor has them.

mod text;

use std::time::Duration;

use dipc_collect::StopSignal;
use dipc_collect::logs::{self, LogConsumer, LogRecord, LogSelection};
use dipc_collect::stream::Limits;

use super::stream;
use super::{ArtifactError, ArtifactSink, begin, write};
use crate::process::Watched;

pub(crate) use text::write as write_record;

/// The form of log records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// A JSON object a line.
    #[default]
    NewlineDelimitedJson,
    /// JSON sequences (RFC 7464).
    JsonSequence,
    /// Text for people.
    PlainText,
}

/// The log records to collect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct LogsRequest {
    /// The records.
    pub selection: LogSelection,
    /// The form.
    pub format: LogFormat,
    /// The time after which it ends; `None` is without a limit.
    pub duration: Option<Duration>,
}

impl LogFormat {
    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::NewlineDelimitedJson => "application/x-ndjson",
            Self::JsonSequence => "application/json-seq",
            Self::PlainText => "text/plain; charset=utf-8",
        }
    }
}

pub(super) fn collect(
    request: &LogsRequest,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let config = request.selection.session_config();
    // Left after the end of the session.
    let _filtered = process.filtered_sources.enter(&config);
    let session = stream::start(process, &config, stop)?;
    begin(sink)?;
    let mut text = WrittenRecords { format: request.format, text: Vec::new(), sink };
    let limits = Limits::new(stop.clone()).with_duration(request.duration);
    let (_, end) = logs::read(session, &mut text, &limits, &mut ())?;
    stream::require_end(end)
}

/// The records on their way to the sink.
struct WrittenRecords<'s> {
    format: LogFormat,
    text: Vec<u8>,
    sink: &'s mut dyn ArtifactSink,
}

impl LogConsumer for WrittenRecords<'_> {
    type Error = ArtifactError;

    fn record(&mut self, record: &LogRecord<'_>) {
        text::write(record, self.format, &mut self.text);
    }

    fn flush(&mut self) -> Result<(), ArtifactError> {
        if !self.text.is_empty() {
            write(self.sink, &self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}
