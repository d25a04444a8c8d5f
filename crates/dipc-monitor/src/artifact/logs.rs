//! Log records of Microsoft.Extensions.Logging.

mod record;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use clr_activity::LOGGING_PROVIDER;
use dipc_client::{Keywords, Level, ProviderConfig};
use dipc_client::{OptionalFeature, Rundown, SessionConfig};
use dipc_collect::StopSignal;

use super::stream;
use super::{ArtifactError, ArtifactSink, begin, write};
use crate::process::Watched;

pub(crate) use record::{LogReader, LogRecord, Pairs, plain};
pub(crate) use text::write as write_record;

/// The keywords of messages, formatted and with their arguments.
const KEYWORDS: Keywords = Keywords(4 | 8);
/// The source of the activity ids that join records and scopes, and its keyword for them.
const TASKS: (&str, Keywords) = ("System.Threading.Tasks.TplEventSource", Keywords(0x80));
/// The size of the runtime's buffer in MB.
const BUFFER_MB: u32 = 64;

/// The level of a log record.
///
/// ```
/// use dipc_monitor::LogLevel;
///
/// assert_eq!(LogLevel::parse("warning"), Some(LogLevel::Warning));
/// assert!(LogLevel::Warning < LogLevel::Error);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LogLevel {
    /// The most detailed records.
    Trace,
    /// For debugging.
    Debug,
    /// The flow of the application.
    Information,
    /// Unexpected, without a failure.
    Warning,
    /// A failure of the current activity.
    Error,
    /// A failure of the application.
    Critical,
    /// No records.
    None,
}

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
    /// The level of categories that no filter names.
    pub level: LogLevel,
    /// Levels by category.
    pub filters: BTreeMap<String, LogLevel>,
    /// True if the application's own filters apply.
    pub use_app_filters: bool,
    /// The form.
    pub format: LogFormat,
    /// The time after which it ends; `None` is without a limit.
    pub duration: Option<Duration>,
}

impl LogLevel {
    /// Every level.
    pub const ALL: [Self; 7] =
        [Self::Trace, Self::Debug, Self::Information, Self::Warning, Self::Error, Self::Critical, Self::None];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "Trace",
            Self::Debug => "Debug",
            Self::Information => "Information",
            Self::Warning => "Warning",
            Self::Error => "Error",
            Self::Critical => "Critical",
            Self::None => "None",
        }
    }

    /// Parses a name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }

    /// Returns the level of an event with a record of this level; `None` if such an event does not exist.
    const fn event_level(self) -> Option<Level> {
        Some(match self {
            Self::Trace | Self::Debug => Level::VERBOSE,
            Self::Information => Level::INFORMATIONAL,
            Self::Warning => Level::WARNING,
            Self::Error => Level::ERROR,
            Self::Critical => Level::CRITICAL,
            Self::None => return None,
        })
    }

    /// Returns the level in a filter's specification. The runtime ignores one with the name `None`, but takes
    /// its number.
    const fn in_filter(self) -> &'static str {
        match self {
            Self::None => "6",
            _ => self.name(),
        }
    }
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

impl LogsRequest {
    /// Returns true if the name of a category can be part of the request to the runtime.
    pub fn is_valid_category(name: &str) -> bool {
        !name.is_empty() && !name.contains(['"', ';', ':']) && !name.chars().any(char::is_control)
    }

    /// Returns the provider of the records, with their filter; `None` if no record is wanted.
    pub(crate) fn provider(&self) -> Option<ProviderConfig> {
        let mut specs: Vec<String> = Vec::new();
        if self.use_app_filters {
            specs.push("UseAppFilters".to_owned());
        }
        let filters = self.filters.iter().filter(|(category, _)| Self::is_valid_category(category));
        specs.extend(filters.map(|(category, level)| format!("{category}:{}", level.in_filter())));
        let arguments =
            if specs.is_empty() { String::new() } else { format!("FilterSpecs=\"{}\"", specs.join(";")) };
        // The runtime drops events above this level regardless of the filters.
        let levels = self.filters.values().chain([&self.level]).filter_map(|level| level.event_level());
        let level = if self.use_app_filters { Level::VERBOSE } else { levels.max()? };
        Some(ProviderConfig { keywords: KEYWORDS, level, name: LOGGING_PROVIDER.to_owned(), arguments })
    }
}

/// The provider of records from warnings up that the application's own filters let pass.
pub(crate) fn warnings_provider() -> ProviderConfig {
    ProviderConfig {
        keywords: KEYWORDS,
        level: Level::WARNING,
        name: LOGGING_PROVIDER.to_owned(),
        arguments: "FilterSpecs=UseAppFilters".to_owned(),
    }
}

/// The provider that gives events the ids of their activities.
pub(crate) fn activity_ids() -> ProviderConfig {
    ProviderConfig {
        keywords: TASKS.1,
        level: Level::INFORMATIONAL,
        name: TASKS.0.to_owned(),
        arguments: String::new(),
    }
}

pub(super) fn collect(
    request: &LogsRequest,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let config = SessionConfig::new(request.provider().into_iter().chain([activity_ids()]))
        .with_buffer_mb(BUFFER_MB)
        .with_rundown(Rundown::Off)
        .with_optional(vec![OptionalFeature::NoRundown]);
    // Left after the end of the session.
    let _filtered = process.filtered_sources.enter(&config);
    let session = stream::start(process, &config, stop)?;
    begin(sink)?;
    let mut records = LogReader::default();
    let mut text = Vec::new();
    stream::read_events(session, request.duration, stop, |reader| {
        if let Some(info) = reader.info() {
            records.set_start(info);
        }
        let mut add = |record: &LogRecord<'_>| text::write(record, request.format, &mut text);
        reader.for_each(|event| records.add(event, &mut add));
        if !text.is_empty() {
            write(sink, &text)?;
            text.clear();
        }
        Ok(false)
    })?;
    records.finish(&mut |record| text::write(record, request.format, &mut text));
    write(sink, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(level: LogLevel, filters: &[(&str, LogLevel)], use_app_filters: bool) -> LogsRequest {
        LogsRequest {
            level,
            filters: filters.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect(),
            use_app_filters,
            format: LogFormat::default(),
            duration: None,
        }
    }

    /// Level 0 of a provider means the events of all levels.
    #[test]
    fn level_none_requests_no_records() {
        assert_eq!(request(LogLevel::None, &[], false).provider(), None);
        assert_eq!(request(LogLevel::None, &[("A", LogLevel::None)], false).provider(), None);
        let of_category = request(LogLevel::None, &[("A", LogLevel::Error)], false).provider().unwrap();
        assert_eq!((of_category.level, &*of_category.arguments), (Level::ERROR, "FilterSpecs=\"A:Error\""));
        let of_application = request(LogLevel::None, &[("A", LogLevel::None)], true).provider().unwrap();
        let expected = (Level::VERBOSE, "FilterSpecs=\"UseAppFilters;A:6\"");
        assert_eq!((of_application.level, &*of_application.arguments), expected);
    }
}
