//! Reports of some seconds of a process: a flame graph of its threads, its hottest methods, and its requests.

mod top;

use std::fmt::Display;
use std::time::Duration;

use clr_events::CodeMap;
use dipc_client::nettrace::Event;
use dipc_client::{Keywords, Level, LiveReader, OptionalFeature, Rundown};
use dipc_client::{RUNTIME_PROVIDER, SAMPLE_PROFILER, SessionConfig};
use nettrace_export::report::{Requests, RequestsOptions};
use nettrace_export::{Format, Metric, NameForm, Options, Profile, ProfileBuilder, WriteOptions};

use super::stream::{self, Piece};
use super::trace::provider;
use super::{ArtifactError, ArtifactSink, begin, require_sampler, write};
use crate::live_session::MOST_DELAY;
use crate::process::Watched;
use crate::request_provider::http_provider;
use crate::stop::StopSignal;

pub(super) use top::top_methods;
pub use top::{TopFormat, TopRequest};

/// The runtime's keyword of collections, whose pauses are no time of methods.
const GC: Keywords = Keywords(1);
/// The most bytes of names of methods.
const MOST_CODE: usize = 64 << 20;
/// The slowest requests that are listed.
const SLOWEST: usize = 20;

/// The form of a flame graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FlameGraphFormat {
    /// A picture, without a script.
    #[default]
    Svg,
    /// A page.
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

    const fn format(self) -> Format {
        match self {
            Self::Svg => Format::Svg,
            Self::Html => Format::Flamegraph,
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
    let profile = sample(true, duration, process, stop)?;
    let title = title(process);
    let mut bytes = Vec::new();
    let write_options = WriteOptions::new(&title, "dipc monitor");
    nettrace_export::write(&profile, format.format(), write_options, &mut bytes)
        .map_err(|error| failed(&error))?;
    begin(sink)?;
    write(sink, &bytes)
}

/// The name and pid of a process.
fn title(process: &Watched) -> String {
    format!("{} ({})", process.facts.name, process.facts.pid)
}

/// Returns the time of the threads, working or blocked, from samples; with `has_kinds`, whether it was blocked
/// is the leaf of a stack.
fn sample(
    has_kinds: bool,
    duration: Option<Duration>,
    process: &Watched,
    stop: &StopSignal,
) -> Result<Profile, ArtifactError> {
    require_sampler(process)?;
    // The names of methods come with the rundown.
    let config = SessionConfig::new([
        provider(SAMPLE_PROFILER, Keywords::NONE, Level::INFORMATIONAL),
        provider(RUNTIME_PROVIDER, GC, Level::INFORMATIONAL),
    ]);
    let options =
        Options::new(Metric::Wall).with_idle(false).with_kinds(has_kinds).with_names(NameForm::CSharp);
    let mut profile = ProfileBuilder::new(options);
    *profile.code_mut() = CodeMap::with_limit(MOST_CODE);
    let reader = read(&config, duration, process, stop, |event| profile.add(event))?;
    let (profile, _) = profile.finish(reader.info()).map_err(|error| failed(&error))?;
    Ok(profile)
}

/// Sums up the requests and outgoing calls of a time, as JSON.
pub(super) fn requests(
    duration: Option<Duration>,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let provider = process.with_sources(http_provider());
    let config = SessionConfig::new([provider])
        .with_rundown(Rundown::Off)
        .with_optional(vec![OptionalFeature::NoRundown]);
    let mut requests = Requests::new(RequestsOptions::default().with_slowest(SLOWEST));
    read(&config, duration, process, stop, |event| requests.add(event))?;
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
    let session = process.target().start_session(config)?;
    let mut reader = LiveReader::new(MOST_DELAY);
    stream::read(session, duration, stop, |piece| {
        match piece {
            Piece::Bytes(bytes) => reader.feed(bytes),
            Piece::Pause => reader.release(),
        }
        reader.for_each(|event| add(event));
        Ok(false)
    })?;
    reader.end_of_input();
    reader.for_each(|event| add(event));
    Ok(reader)
}
