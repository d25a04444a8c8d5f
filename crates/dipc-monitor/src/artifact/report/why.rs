//! The causes of what is wrong with a process: from some seconds of its events, its memory and the kernel's
//! account.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::time::Duration;

use clr_events::CodeMap;
use clr_findings::{Diagnosis, Evidence, Finding, ProcessIdentity, Readings, diagnose};
use dipc_client::nettrace::RelativeTime;
use dipc_client::{ALL_PROFILE, Profile, RUNTIME_PROVIDER, Rundown, SAMPLE_PROFILER, SessionConfig};
use dipc_collect::StopSignal;
use dipc_collect::names::{StackAddresses, UnloadableCode};
use dipc_collect::readings::BackgroundReader;
use dipc_collect::thread_times::LiveThreadTimes;
use nettrace_export::report::{
    EventGroup, Overview, OverviewBuilder, OverviewCallers, StreamFacts, callers_options,
    overview_profile_options,
};
use nettrace_export::{KernelTimes, Metric, ProfileBuilder, ProfileReader, Selection};

use super::super::{ArtifactError, ArtifactSink, begin, require_sampler, write};
use super::{MAX_CODE_SIZE, TopFormat, failed, read};
use crate::process::Watched;
use crate::request_provider::http_provider;

/// Maximum time for which a process is watched.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// The time between two rounds of the kernel's account of threads.
const ACCOUNT_PERIOD: Duration = Duration::from_millis(20);

/// The groups of events that a session requests. Requests come from a source with a filter, which belongs to
/// all sessions of a process.
const REQUESTED: [EventGroup; 6] = [
    EventGroup::Collections,
    EventGroup::Allocations,
    EventGroup::Exceptions,
    EventGroup::LockWaits,
    EventGroup::ThreadPool,
    EventGroup::Compilation,
];

/// Watches a process for a time, or until it is stopped, and judges it.
pub(in crate::artifact) fn causes(
    format: TopFormat,
    duration: Option<Duration>,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let duration = duration.map_or(MAX_TIME, |duration| duration.min(MAX_TIME));
    let reader = process.system_pid().map(|pid| BackgroundReader::start(pid, Some(duration)));
    let reader = reader.transpose().map_err(|error| failed(&error))?;
    let recorded = record(duration, process, stop);
    let readings =
        reader.map_or_else(|| Readings::missing("the process has no id here"), BackgroundReader::finish);
    let mut missing: Vec<_> =
        readings.memory_missing.iter().map(|why| format!("locks and tasks in memory: {why}")).collect();
    let overview = match recorded {
        Ok(overview) => Some(overview),
        Err(ArtifactError::Cancelled) => return Err(ArtifactError::Cancelled),
        // A runtime that does not answer is known by its memory.
        Err(error) if !readings.memory.is_empty() => {
            missing.push(format!("events and processor time: {error}"));
            None
        }
        Err(error) => return Err(error),
    };
    let evidence = Evidence::default().with_readings(&readings).with_missing(&missing);
    let evidence = overview
        .as_ref()
        .map_or(evidence, |overview| evidence.with_recording(overview).with_requested(&REQUESTED));
    let diagnosis = Diagnosis::new(identity(process), &evidence);
    let bytes = match format {
        TopFormat::Json => {
            let report = diagnosis.report(|finding| Some(finding.details.command(process.facts.pid)));
            serde_json::to_vec(&report).map_err(|error| failed(&error))?
        }
        TopFormat::PlainText => text(&diagnosis, process).into_bytes(),
    };
    begin(sink)?;
    write(sink, &bytes)
}

fn identity(process: &Watched) -> ProcessIdentity {
    ProcessIdentity::default()
        .with_process_id(Some(u64::from(process.facts.pid)))
        .with_name(Some(process.title().to_owned()))
        .with_command_line(process.facts.command_line.clone())
        .with_runtime(process.runtime_version.clone())
}

/// Reads the events of a time, and the kernel's account of the threads meanwhile.
fn record(duration: Duration, process: &Watched, stop: &StopSignal) -> Result<Overview, ArtifactError> {
    require_sampler(process)?;
    let all = Profile::find(ALL_PROFILE).map_or(&[][..], |profile| profile.providers);
    // The other providers have counters, or filters that belong to all sessions of the process.
    let of_runtime = all.iter().filter(|of| [RUNTIME_PROVIDER, SAMPLE_PROFILER].contains(&of.name));
    let providers = of_runtime.map(|provider| provider.to_config());
    let mut config = SessionConfig::new(providers.chain([process.with_sources(http_provider())]));
    // A runtime that may be unloading code is not asked to list its methods.
    let unloadable = process.system_pid().and_then(UnloadableCode::find);
    let mut stacks = StackAddresses::default();
    if unloadable.is_some() {
        config = config.with_rundown(Rundown::Off);
    }
    let account = LiveThreadTimes::start(process.system_pid(), ACCOUNT_PERIOD);
    let mut profile = ProfileBuilder::new(overview_profile_options(Metric::Wall));
    if account.is_some() {
        profile = profile.with_kernel_times(KernelTimes::default());
    }
    *profile.code_mut() = CodeMap::with_limit(MAX_CODE_SIZE);
    let mut callers = OverviewCallers::METRICS.map(|metric| {
        ProfileBuilder::new(callers_options(metric, Selection::default(), Vec::new())).without_code()
    });
    let mut overview = OverviewBuilder::default();
    let (mut counts, mut last, mut last_ticks) = (BTreeMap::new(), RelativeTime::START, None);
    let reader = read(&config, Some(duration), process, stop, |event| {
        if let (Some(account), Some(times)) = (&account, profile.kernel_times_mut()) {
            account.add_to(&[], times);
        }
        profile.add(event);
        if unloadable.is_some() {
            stacks.add(event);
        }
        for of in &mut callers {
            of.add(event);
        }
        overview.add(event);
        *counts.entry(event.metadata_index()).or_default() += 1_u64;
        last = event.relative_time();
        last_ticks = Some(event.time());
    })?;
    if let (Some(account), Some(times)) = (&account, profile.kernel_times_mut()) {
        account.add_until(last_ticks, &[], times);
    }
    if let Some(code) = unloadable {
        let names = code.names_for(reader.info().and_then(|info| info.process_id), stacks);
        let names = names.map_err(|error| failed(&error))?;
        let mut names = nettrace::Reader::new(names).map_err(|error| failed(&error))?;
        names.for_each(|event| profile.code_mut().add(&event)).map_err(|error| failed(&error))?;
    }
    let callers = callers.map(|of| of.finish_with_code_of(reader.info(), &mut profile));
    let callers: Vec<_> = callers.into_iter().collect::<Result<_, _>>().map_err(|error| failed(&error))?;
    let (profile, omissions) = profile.finish(reader.info()).map_err(|error| failed(&error))?;
    let stream = StreamFacts::of(reader.events(), &counts.into_iter().collect::<Vec<_>>(), last);
    let callers = OverviewCallers::of(callers.iter().map(|(profile, _)| profile));
    overview.extend_to(last);
    Ok(overview.finish(profile, &omissions, callers, stream))
}

/// Returns the causes that a recording shows.
///
/// # Errors
/// If it is not a recording.
pub(crate) fn causes_of_recording(recording: impl Read) -> io::Result<Vec<Finding>> {
    let recording = nettrace::Reader::new(recording).map_err(io::Error::other)?;
    let mut limit_code = |code: &mut CodeMap| *code = CodeMap::with_limit(MAX_CODE_SIZE);
    let options = overview_profile_options(Metric::of_work_and_waits(recording.info()));
    let callers =
        OverviewCallers::METRICS.map(|metric| callers_options(metric, Selection::default(), Vec::new()));
    let reader = ProfileReader::new(options).with_others(callers.into()).with_code(&mut limit_code);
    let mut overview = OverviewBuilder::default();
    let read = reader.read(recording, |event| overview.add(event)).map_err(io::Error::other)?;
    let last = read.last_time.unwrap_or_default();
    let stream = StreamFacts::of(&read.events, &read.counts, last);
    let callers = OverviewCallers::of(read.others.iter().map(|(profile, _)| profile));
    overview.extend_to(last);
    let overview = overview.finish(read.profile, &read.omissions, callers, stream);
    Ok(diagnose(&Evidence::default().with_recording(&overview)))
}

/// The width of the labels.
const LABEL: usize = 9;

/// Formats a diagnosis as text, as `dipc why` does.
fn text(diagnosis: &Diagnosis, process: &Watched) -> String {
    let mut text = String::new();
    let command = |finding: &Finding| Some(finding.details.command(process.facts.pid));
    for (label, value) in diagnosis.rows(&super::title(process), command) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{label:<LABEL$}  {value}");
    }
    text
}
