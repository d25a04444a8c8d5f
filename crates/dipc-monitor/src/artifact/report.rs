//! Reports of some seconds of a process: a flame graph of its threads, its hottest methods, its requests, and
//! the causes of what is wrong with it.

mod profile;
mod top;
mod why;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read};
use std::time::Duration;

use clr_events::CodeMap;
use clr_findings::{Readings, RecordingFindings};
use dipc_client::nettrace::{Event, RelativeTime};
use dipc_client::{Keywords, Level, LiveReader, OptionalFeature, Rundown};
use dipc_client::{RUNTIME_PROVIDER, SAMPLE_PROFILER, SessionConfig};
use dipc_collect::StopSignal;
use dipc_collect::profiles::{self, ProfileRequest};
use dipc_collect::stream::Limits;
use nettrace_export::page::{self, Page, PageContents, PageFinding, PageFindings, PageOptions, PageReports};
use nettrace_export::report::{Overview, Requests, RequestsOptions, StreamFacts};
use nettrace_export::{
    Format, Metric, NameForm, Options, Profile, ProfileBuilder, ProfileReader, WriteOptions,
};

use super::stream;
use super::trace::{counters, provider};
use super::{ArtifactError, ArtifactSink, begin, require_sampler, write};
use crate::process::Watched;
use crate::request_provider::http_provider;

pub(crate) use profile::{ProfileFormat, ProfileReportRequest, report_of_recording};
pub(super) use top::top_methods;
pub use top::{ProfileKind, TopFormat, TopRequest};
pub(super) use why::causes;
pub(crate) use why::causes_of_recording;

/// The runtime's keyword of collections. Their pauses do not count as time of methods.
const GC: Keywords = Keywords(1);
/// The runtime's keywords of collections, exceptions and contended locks.
const GC_EXCEPTIONS_LOCKS: Keywords = Keywords(0xC001);
/// The interval of counters on a page.
const COUNTER_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time span of a page.
const MAX_PAGE_TIME: Duration = Duration::from_secs(3600);
/// Maximum size of method names, in bytes.
const MAX_CODE_SIZE: usize = 64 << 20;
/// The slowest requests that are listed.
const SLOWEST: usize = 20;

/// The form of a flame graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlameGraphFormat {
    /// A picture, without a script.
    #[default]
    Svg,
    /// A page, like the page of a recording.
    Html,
}

impl FlameGraphFormat {
    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Html => "text/html; charset=utf-8",
        }
    }

    /// The ending of file names.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Html => "html",
        }
    }
}

/// Samples the threads for a time, or until it is stopped; `None` is without a limit.
pub(super) fn flame_graph(
    format: FlameGraphFormat,
    duration: Option<Duration>,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let title = title(process);
    let options = WriteOptions::new(&title, "dipc monitor");
    let bytes = match format {
        FlameGraphFormat::Svg => {
            let profile = sample(Metric::Wall, true, duration, process, stop)?;
            let mut bytes = Vec::new();
            nettrace_export::write(&profile, Format::Svg, options, &mut bytes).map(|()| bytes)
        }
        FlameGraphFormat::Html => page(options, duration, process, stop)?,
    };
    let bytes = bytes.map_err(|error| failed(&error))?;
    begin(sink)?;
    write(sink, &bytes)
}

/// The page of some seconds, like the page of a recording: threads, pauses, requests and counters over time.
///
/// # Memory
/// After the longest time of a page, the session is stopped.
fn page(
    page_options: WriteOptions<'_>,
    duration: Option<Duration>,
    process: &Watched,
    stop: &StopSignal,
) -> Result<io::Result<Vec<u8>>, ArtifactError> {
    require_sampler(process)?;
    let config = SessionConfig::new(
        [
            provider(SAMPLE_PROFILER, Keywords::NONE, Level::INFORMATIONAL),
            provider(RUNTIME_PROVIDER, GC_EXCEPTIONS_LOCKS, Level::INFORMATIONAL),
            process.with_sources(http_provider()),
        ]
        .into_iter()
        .chain(counters(COUNTER_INTERVAL)),
    );
    let options = page_profile_options();
    let mut findings = PageFindings::new(None, &options);
    let others = findings.others().iter();
    let mut others: Vec<_> =
        others.map(|options| ProfileBuilder::new(options.clone()).without_code()).collect();
    let mut profile = ProfileBuilder::new(options);
    *profile.code_mut() = CodeMap::with_limit(MAX_CODE_SIZE);
    let mut reports = PageReports::default();
    let (mut counts, mut last) = (BTreeMap::new(), RelativeTime::START);
    let duration = duration.map_or(MAX_PAGE_TIME, |duration| duration.min(MAX_PAGE_TIME));
    let reader = read(&config, Some(duration), process, stop, |event| {
        profile.add(event);
        for other in &mut others {
            other.add(event);
        }
        reports.add(event);
        findings.add(event);
        *counts.entry(event.metadata_index()).or_default() += 1_u64;
        last = event.relative_time();
    })?;
    let others = others.into_iter().map(|other| other.finish_with_code_of(reader.info(), &mut profile));
    let others = others.collect::<Result<_, _>>().map_err(|error| failed(&error))?;
    let (profile, omissions) = profile.finish(reader.info()).map_err(|error| failed(&error))?;
    let stream = StreamFacts::of(reader.events(), &counts.into_iter().collect::<Vec<_>>(), last);
    let (profile, findings) = findings.finish((profile, &omissions), others, stream, page_findings);
    let mut bytes = Vec::new();
    let page = Page::new(&profile, page_options).with_reports(reports).with_findings(findings);
    Ok(page.write(&mut bytes).map(|()| bytes))
}

/// Writes the page of a recording, like the page of some seconds of a process.
///
/// # Errors
/// If it is not a recording.
pub(crate) fn page_of_recording(recording: impl Read, title: &str) -> io::Result<Vec<u8>> {
    let recording = nettrace::Reader::new(recording).map_err(io::Error::other)?;
    let mut limit_code = |code: &mut CodeMap| *code = CodeMap::with_limit(MAX_CODE_SIZE);
    let reader = ProfileReader::new(page_profile_options()).with_code(&mut limit_code);
    let contents = PageContents::read(reader, recording, &PageOptions::default(), |_| {}, page_findings);
    let contents = contents.map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    Page::new(&contents.read.profile, WriteOptions::new(title, "dipc monitor"))
        .with_reports(contents.reports)
        .with_findings(contents.findings)
        .write(&mut bytes)?;
    Ok(bytes)
}

fn page_findings(overview: &Overview) -> Vec<PageFinding> {
    RecordingFindings::of(overview, &Readings::default(), None).into_page()
}

/// The options of the profile of a page.
fn page_profile_options() -> Options {
    page::profile_options(None).with_names(NameForm::CSharp).with_tracks(true)
}

/// The name and pid of a process.
fn title(process: &Watched) -> String {
    format!("{} ({})", process.title(), process.facts.pid)
}

/// Returns a profile of the runtime's samples or events; with `has_kinds`, whether a thread was blocked is
/// the leaf of a stack.
fn sample(
    metric: Metric,
    has_kinds: bool,
    duration: Option<Duration>,
    process: &Watched,
    stop: &StopSignal,
) -> Result<Profile, ArtifactError> {
    // The names of methods are sent with the rundown.
    let config = if metric == Metric::Wall {
        require_sampler(process)?;
        sampler_config()
    } else {
        let config = profiles::session_config(&[metric]);
        config.ok_or_else(|| failed(&format_args!("no session has {}", metric.name())))?
    };
    let options = Options::new(metric).with_kinds(has_kinds).with_names(NameForm::CSharp);
    let options = if metric == Metric::Wall { options.with_idle(false) } else { options };
    let request = ProfileRequest::new(options).with_max_code_size(MAX_CODE_SIZE);
    // Left after the end of the session.
    let _filtered = process.filtered_sources.enter(&config);
    let session = stream::start(process, &config, stop)?;
    let limits = Limits::new(stop.clone()).with_duration(duration);
    let taken = profiles::from_session(session, request, &limits, &mut ()).map_err(|error| failed(&error))?;
    stream::require_end(taken.end)?;
    Ok(taken.profile)
}

/// A session with the samples of the runtime, and the pauses of its collector.
fn sampler_config() -> SessionConfig {
    SessionConfig::new([
        provider(SAMPLE_PROFILER, Keywords::NONE, Level::INFORMATIONAL),
        provider(RUNTIME_PROVIDER, GC, Level::INFORMATIONAL),
    ])
}

/// The requests to sum up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct RequestsRequest {
    /// The time; [`None`] is without a limit.
    pub duration: Option<Duration>,
    /// Only requests and calls that took at least this long, and the methods in which the threads of these
    /// requests spent their time, by the runtime's samples.
    pub slower_than: Option<Duration>,
}

/// Sums up the requests and outgoing calls of a time, as JSON.
pub(super) fn requests(
    request: RequestsRequest,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let provider = process.with_sources(http_provider());
    let has_stacks = request.slower_than.is_some();
    let config = if has_stacks {
        require_sampler(process)?;
        let mut config = sampler_config();
        config.providers.push(provider.into());
        config
    } else {
        SessionConfig::new([provider])
            .with_rundown(Rundown::Off)
            .with_optional(vec![OptionalFeature::NoRundown])
    };
    let options = RequestsOptions::default()
        .with_slowest(SLOWEST)
        .with_slower_than(request.slower_than)
        .with_names(if has_stacks { NameForm::CSharp } else { NameForm::default() });
    let mut requests = Requests::new(options);
    if has_stacks {
        *requests.code_mut() = CodeMap::with_limit(MAX_CODE_SIZE);
    }
    read(&config, request.duration, process, stop, |event| requests.add(event))?;
    let report = requests.finish().unwrap_or_default();
    let bytes = serde_json::to_vec(&report).map_err(|error| failed(&error))?;
    begin(sink)?;
    write(sink, &bytes)
}

fn failed(error: &dyn Display) -> ArtifactError {
    ArtifactError::Failed(error.to_string())
}

/// Passes the events of a session to `add`, in time order.
fn read(
    config: &SessionConfig,
    duration: Option<Duration>,
    process: &Watched,
    stop: &StopSignal,
    mut add: impl FnMut(&Event<'_>),
) -> Result<LiveReader, ArtifactError> {
    // Left after the end of the session.
    let _filtered = process.filtered_sources.enter(config);
    let session = stream::start(process, config, stop)?;
    stream::read_events(session, duration, stop, |reader| {
        reader.for_each(&mut add);
        Ok(false)
    })
}
