//! The stream of a session as it arrives.

use std::time::Duration;

use clr_activity::LOGGING_PROVIDER;
use clr_counters::{Selection, SessionSettings};
use dipc_client::{Keywords, Level, ProviderConfig, Providers};
use dipc_client::{OptionalFeature, Profile, RUNTIME_PROVIDER, Rundown, SAMPLE_PROFILER, SessionConfig};
use dipc_collect::StopSignal;

use super::stream::{self, Piece};
use super::{ArtifactError, ArtifactSink, begin, write};
use crate::process::Watched;
use crate::request_provider::http_provider;

/// The keywords of the runtime that TraceEvent calls the default ones.
const DEFAULT_KEYWORDS: Keywords = Keywords(0x14_C14F_CCBD);
/// The interval of counters in a trace.
const COUNTER_INTERVAL: Duration = Duration::from_secs(5);

/// A session to record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct TraceRequest {
    /// The providers.
    pub providers: Vec<ProviderConfig>,
    /// True if the runtime lists its methods at the end.
    pub request_rundown: bool,
    /// The size of the runtime's buffer in MB.
    pub buffer_mb: u32,
    /// The time after which the session is stopped; `None` is without a limit.
    pub duration: Option<Duration>,
}

/// A named set of providers, as dotnet-monitor has it.
///
/// ```
/// use dipc_monitor::TraceProfile;
///
/// let profiles = ["cpu", "GcCollect"].map(TraceProfile::parse).into_iter().flatten().collect::<Vec<_>>();
/// let providers = TraceProfile::providers(&profiles);
/// // Each provider once.
/// assert_eq!(providers.iter().filter(|it| it.name == "Microsoft-Windows-DotNETRuntime").count(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceProfile {
    /// Samples of stacks, and the runtime's own events.
    Cpu,
    /// Requests to ASP.NET Core, and requests that HttpClient sends.
    Http,
    /// Log records.
    Logs,
    /// Counters of .NET and ASP.NET Core, every five seconds.
    Metrics,
    /// Garbage collections.
    GcCollect,
}

impl TraceProfile {
    /// The profiles by default.
    pub const DEFAULT: [Self; 4] = [Self::Cpu, Self::Http, Self::Metrics, Self::GcCollect];

    /// Parses a name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        const ALL: [(&str, TraceProfile); 5] = [
            ("Cpu", TraceProfile::Cpu),
            ("Http", TraceProfile::Http),
            ("Logs", TraceProfile::Logs),
            ("Metrics", TraceProfile::Metrics),
            ("GcCollect", TraceProfile::GcCollect),
        ];
        ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, profile)| *profile)
    }

    /// Returns the providers of profiles, each once: with all keywords and the highest level.
    pub fn providers(profiles: &[Self]) -> Vec<ProviderConfig> {
        merged(profiles.iter().flat_map(|profile| profile.own_providers())).into_vec()
    }

    fn own_providers(self) -> Vec<ProviderConfig> {
        match self {
            Self::Cpu => vec![
                provider(SAMPLE_PROFILER, Keywords::NONE, Level::INFORMATIONAL),
                provider(RUNTIME_PROVIDER, DEFAULT_KEYWORDS, Level::INFORMATIONAL),
            ],
            Self::Http => vec![http_provider()],
            Self::Logs => vec![ProviderConfig {
                arguments: "FilterSpecs=UseAppFilters".to_owned(),
                ..provider(LOGGING_PROVIDER, Keywords(4 | 8), Level::VERBOSE)
            }],
            Self::Metrics => counters(COUNTER_INTERVAL),
            Self::GcCollect => {
                let providers = Profile::find("gc-collect").map_or(&[][..], |profile| profile.providers);
                providers.iter().map(|provider| provider.to_config()).collect()
            }
        }
    }
}

/// The requests for the counters that dotnet-monitor collects by default, at an interval.
pub(super) fn counters(interval: Duration) -> Vec<ProviderConfig> {
    let settings = SessionSettings::default().with_interval(interval);
    default_counters().requests(&settings).into_iter().map(Into::into).collect()
}

/// The EventCounters that dotnet-monitor collects by default.
pub(crate) fn default_counters() -> Selection {
    let list = r"EventCounters\System.Runtime,EventCounters\Microsoft.AspNetCore.Hosting,EventCounters\Grpc.AspNetCore.Server";
    Selection::parse(list).unwrap_or_default()
}

/// Merges the requests for each provider into one. Of different arguments the first are kept.
pub(crate) fn merged(requests: impl IntoIterator<Item = ProviderConfig>) -> Providers {
    let mut providers = Providers::new();
    for request in requests {
        if providers.merge(request.clone()).is_err() {
            // Without arguments nothing differs.
            let _ = providers.merge(ProviderConfig { arguments: String::new(), ..request });
        }
    }
    providers
}

/// Parses keywords: decimal digits, or hexadecimal ones after 0x.
pub(crate) fn parse_keywords(text: &str) -> Option<Keywords> {
    let text = text.trim();
    let bits = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    bits.map(Keywords)
}

/// Parses the name of a level.
pub(crate) fn parse_event_level(text: &str) -> Option<Level> {
    let is_named = |level: &&Level| level.name().is_some_and(|name| name.eq_ignore_ascii_case(text));
    Level::NAMED.iter().find(is_named).copied()
}

pub(super) fn provider(name: &str, keywords: Keywords, level: Level) -> ProviderConfig {
    ProviderConfig { keywords, level, name: name.to_owned(), arguments: String::new() }
}

pub(super) fn collect(
    request: &TraceRequest,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let rundown = if request.request_rundown { Rundown::Default } else { Rundown::Off };
    let providers = request.providers.iter().cloned().map(|provider| process.with_sources(provider));
    let config = SessionConfig::new(providers)
        .with_buffer_mb(request.buffer_mb)
        .with_rundown(rundown)
        .with_optional(vec![OptionalFeature::NoRundown]);
    // Left after the end of the session.
    let _filtered = process.filtered_sources.enter(&config);
    let session = stream::start(process, &config, stop)?;
    begin(sink)?;
    stream::read(session, request.duration, stop, |piece| {
        if let Piece::Bytes(bytes) = piece {
            write(sink, bytes)?;
        }
        Ok(false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_joined_by_provider() {
        let providers = TraceProfile::providers(&TraceProfile::DEFAULT);
        let names: Vec<_> = providers.iter().map(|provider| &*provider.name).collect();
        assert_eq!(
            names,
            [
                "Microsoft-DotNETCore-SampleProfiler",
                "Microsoft-Windows-DotNETRuntime",
                "Microsoft-Diagnostics-DiagnosticSource",
                "System.Runtime",
                "Microsoft.AspNetCore.Hosting",
                "Grpc.AspNetCore.Server",
                "Microsoft-Windows-DotNETRuntimePrivate",
            ]
        );
        assert_eq!(providers[1].keywords, Keywords(0x14_C14F_CCBD | 1));
        assert_eq!(providers[3].arguments, "EventCounterIntervalSec=5");
        assert_eq!(TraceProfile::parse("gccollect"), Some(TraceProfile::GcCollect));
        assert_eq!(TraceProfile::parse("Memory"), None);
    }
}
