//! Log records of Microsoft.Extensions.Logging, from a session while they are written.
//!
//! ```no_run
//! use std::convert::Infallible;
//! use std::time::Duration;
//!
//! use dipc_client::Target;
//! use dipc_collect::logs::{self, LogConsumer, LogLevel, LogRecord, LogSelection};
//! use dipc_collect::stream::Limits;
//! use dipc_collect::{StopSignal, session};
//!
//! struct Lines;
//!
//! impl LogConsumer for Lines {
//!     type Error = Infallible;
//!
//!     fn record(&mut self, record: &LogRecord<'_>) {
//!         println!("{}: {}", record.category, record.message);
//!     }
//! }
//!
//! let target = Target::from_pid(1234)?;
//! let config = LogSelection::new(LogLevel::Warning).session_config();
//! let session = session::start(&target, &config, || false, &mut ())?;
//! let limits = Limits::new(StopSignal::new()).with_duration(Some(Duration::from_secs(10)));
//! let Ok((reader, _end)) = logs::read(session, &mut Lines, &limits, &mut ());
//! println!("{} events were lost", reader.events().loss().total());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod record;
mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use clr_activity::LOGGING_PROVIDER;
use dipc_client::{
    Keywords, Level, LiveReader, OptionalFeature, ProviderConfig, Rundown, Session, SessionConfig,
};

use crate::live_stream::{EventConsumer, LiveStream};
use crate::observer::Observer;
use crate::stream::{self, Limits, StreamEnd};

pub use record::{LogReader, LogRecord};
pub use values::{LogValues, value_text};

/// The keywords of messages, formatted and with their arguments.
const KEYWORDS: Keywords = Keywords(4 | 8);
/// The source of the activity ids that join records and scopes, and its keyword for them.
const TASKS: (&str, Keywords) = ("System.Threading.Tasks.TplEventSource", Keywords(0x80));
/// The size of the runtime's buffer in MB.
const BUFFER_MB: u32 = 64;
/// Maximum time that an event waits for older events of other threads.
const MAX_DELAY: Duration = Duration::from_millis(200);

/// The level of a log record.
///
/// ```
/// use dipc_collect::logs::LogLevel;
///
/// assert_eq!(LogLevel::parse("warning"), Some(LogLevel::Warning));
/// assert!(LogLevel::Warning < LogLevel::Error);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "the levels of Microsoft.Extensions.Logging")]
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

/// The log records to collect. The filters are the runtime's, so records that they omit cost nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct LogSelection {
    /// The level of categories that no filter names.
    pub level: LogLevel,
    /// Levels by category.
    pub filters: BTreeMap<String, LogLevel>,
    /// True if the application's own filters apply.
    pub use_app_filters: bool,
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

impl LogSelection {
    /// Creates the selection of records from a level up.
    pub const fn new(level: LogLevel) -> Self {
        Self { level, filters: BTreeMap::new(), use_app_filters: false }
    }

    /// Creates the selection of the records that the application's own filters let pass.
    pub const fn of_application() -> Self {
        Self { level: LogLevel::Trace, filters: BTreeMap::new(), use_app_filters: true }
    }

    /// Returns the configuration of a session for [`read`].
    pub fn session_config(&self) -> SessionConfig {
        SessionConfig::new(self.provider().into_iter().chain([activity_ids()]))
            .with_buffer_mb(BUFFER_MB)
            .with_rundown(Rundown::Off)
            .with_optional(vec![OptionalFeature::NoRundown])
    }

    /// Returns true if the name of a category can be part of the request to the runtime.
    pub fn is_valid_category(name: &str) -> bool {
        !name.is_empty() && !name.contains(['"', ';', ':']) && !name.chars().any(char::is_control)
    }

    /// Returns the provider of the records, with their filter; `None` if no record is wanted.
    pub fn provider(&self) -> Option<ProviderConfig> {
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
pub fn warnings_provider() -> ProviderConfig {
    ProviderConfig {
        keywords: KEYWORDS,
        level: Level::WARNING,
        name: LOGGING_PROVIDER.to_owned(),
        arguments: "FilterSpecs=UseAppFilters".to_owned(),
    }
}

/// The provider that gives events the ids of their activities.
pub fn activity_ids() -> ProviderConfig {
    ProviderConfig {
        keywords: TASKS.1,
        level: Level::INFORMATIONAL,
        name: TASKS.0.to_owned(),
        arguments: String::new(),
    }
}

/// The consumer of log records.
pub trait LogConsumer {
    /// The error of a consumer that cannot go on.
    type Error;

    /// Takes a record.
    fn record(&mut self, record: &LogRecord<'_>);

    /// Called after the records that have arrived together.
    ///
    /// # Errors
    /// The consumer's own, which end the session.
    fn flush(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Passes the log records of a [session](LogSelection::session_config) to `consumer` until it ends. Returns
/// the reader of the stream, which knows its losses and damage, and how it ended. Blocks.
///
/// # Errors
/// Errors of the consumer.
pub fn read<C: LogConsumer>(
    session: Session,
    consumer: &mut C,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<(LiveReader, StreamEnd), C::Error> {
    let records = Records { reader: LogReader::default(), consumer };
    let mut stream = LiveStream::new(LiveReader::new(MAX_DELAY), records);
    let end = stream::run(session, &mut stream, limits, observer)?;
    let (reader, Records { reader: mut records, consumer }) = stream.into_parts();
    records.finish(&mut |record| consumer.record(record));
    consumer.flush()?;
    Ok((reader, end))
}

/// The records of a session.
struct Records<'c, C> {
    reader: LogReader,
    consumer: &'c mut C,
}

impl<C: LogConsumer> EventConsumer for Records<'_, C> {
    type Error = C::Error;

    fn read(&mut self, events: &mut LiveReader, _: bool) -> Result<(), C::Error> {
        let Self { reader, consumer } = self;
        if let Some(info) = events.info() {
            reader.set_start(info);
        }
        events.for_each(|event| reader.add(event, &mut |record| consumer.record(record)));
        consumer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(level: LogLevel, filters: &[(&str, LogLevel)], use_app_filters: bool) -> LogSelection {
        LogSelection {
            level,
            filters: filters.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect(),
            use_app_filters,
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
