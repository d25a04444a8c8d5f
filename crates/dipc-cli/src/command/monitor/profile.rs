//! The options of the samples of the machine that `dipc monitor` keeps and sends.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use dipc_monitor::configuration::{ContinuousProfiling, SEGMENTS};
use dipc_monitor::{
    ContinuousProfile, ContinuousProfileConfig, Filter, ProfileExportConfig, ProfileLog, ProfileMessage,
    ProfileRingConfig,
};

use super::black_box::state_directory;
use crate::exit::{Exit, Failure};
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::{duration, size};

/// Maximum size of all samples on disk by default, in bytes.
const MAX_BYTES: u64 = 1 << 30;

#[allow(clippy::struct_field_names, reason = "the names of the options")]
#[derive(Debug, Args)]
pub(super) struct ProfileArgs {
    /// Sample the whole machine all the time, and keep the samples for this time, as 24h (Linux); 0s keeps
    /// none [default: 0s]
    ///
    /// The kernel takes the samples, of programs of all kinds; no process is asked for anything. /profile
    /// answers for any time that is kept, all processes or one. Needs root or CAP_PERFMON, or a
    /// kernel.perf_event_paranoid of 0; without, the processes of this user are sampled where that is
    /// permitted. With --filter only processes that match.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    profile_keep: Option<Duration>,
    /// Samples per second of each processor [default: 19]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=997))]
    profile_frequency: Option<u32>,
    /// Maximum size of all samples on disk; the oldest are removed [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    profile_bytes: Option<u64>,
    /// Directory of the samples [default: profile in $STATE_DIRECTORY, else in the user's state directory]
    ///
    /// A restarted monitor goes on with what is there. Each file is a recording, whose name has its time, and
    /// can be read by all commands.
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    profile_directory: Option<PathBuf>,
    /// Time of each recording of samples, and of each profile for a collector; a monitor that is killed loses
    /// the current one [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = parse_segment)]
    profile_segment: Option<Duration>,
}

fn parse_segment(text: &str) -> Result<Duration, String> {
    let segment = duration::parse(text)?;
    if !SEGMENTS.contains(&segment) {
        return Err("a recording has 1s to 10m".to_owned());
    }
    Ok(segment)
}

impl ProfileArgs {
    /// The settings, of which options override the configuration.
    fn settings(&self, configured: &ContinuousProfiling) -> ContinuousProfiling {
        ContinuousProfiling {
            keep: self.profile_keep.or(configured.keep),
            frequency: self.profile_frequency.or(configured.frequency),
            max_bytes: self.profile_bytes.or(configured.max_bytes),
            directory: self.profile_directory.clone().or_else(|| configured.directory.clone()),
            segment: self.profile_segment.or(configured.segment),
            kernel_frames: configured.kernel_frames,
            filters: configured.filters.clone(),
        }
    }
}

/// Begins to sample the machine, if samples are to be kept or sent. With `may_change`, a configuration can
/// ask for it later.
pub(super) fn start(
    args: &ProfileArgs,
    configured: &ContinuousProfiling,
    filters: &[Filter],
    export: Option<ProfileExportConfig>,
    may_change: bool,
) -> Result<Option<Arc<ContinuousProfile>>, Failure> {
    let config = config(args, configured, filters)?.with_export(export);
    if config.ring.is_none() && config.export.is_none() && !may_change {
        return Ok(None);
    }
    let shown = shown(&config);
    let log: ProfileLog = Arc::new(report);
    let profile = ContinuousProfile::start(config, &log).map_err(|error| unusable(&shown, &error))?;
    Ok(Some(Arc::new(profile)))
}

/// Applies a configuration that was read again.
///
/// # Errors
/// If its directory cannot be used.
pub(super) fn apply(
    profile: &ContinuousProfile,
    args: &ProfileArgs,
    configured: &ContinuousProfiling,
    filters: &[Filter],
) -> Result<(), Failure> {
    let config = config(args, configured, filters)?;
    let shown = shown(&config);
    profile.apply(config).map_err(|error| unusable(&shown, &error))
}

fn config(
    args: &ProfileArgs,
    configured: &ContinuousProfiling,
    filters: &[Filter],
) -> Result<ContinuousProfileConfig, Failure> {
    let settings = args.settings(configured);
    let keep = settings.keep.filter(|keep| !keep.is_zero());
    let ring = keep.map(|keep| ring(&settings, keep)).transpose()?;
    let filters = filters.iter().chain(&settings.filters).cloned().collect();
    let usual = ContinuousProfileConfig::default();
    Ok(usual
        .clone()
        .with_ring(ring)
        .with_filters(filters)
        .with_frequency(settings.frequency.unwrap_or(usual.frequency))
        .with_segment(settings.segment.unwrap_or(usual.segment))
        .with_kernel_frames(settings.kernel_frames.unwrap_or(usual.kernel_frames)))
}

/// The directory of the samples, for messages.
fn shown(config: &ContinuousProfileConfig) -> String {
    config.ring.as_ref().map(|ring| ring.directory.display().to_string()).unwrap_or_default()
}

fn unusable(directory: &str, error: &std::io::Error) -> Failure {
    let what = match error.kind() {
        ErrorKind::WouldBlock => "another monitor uses it".to_owned(),
        _ => error.to_string(),
    };
    Failure::new(Exit::Failed, format_args!("monitor: the samples in {directory}: {what}"))
        .with_help("--profile-directory names another directory")
}

fn ring(settings: &ContinuousProfiling, keep: Duration) -> Result<ProfileRingConfig, Failure> {
    let usual = || Some(state_directory()?.join("profile"));
    let Some(directory) = settings.directory.clone().or_else(usual) else {
        return Err(Failure::usage("monitor: no directory for samples of the machine is known")
            .with_help("--profile-directory names one"));
    };
    Ok(ProfileRingConfig { directory, keep, max_bytes: settings.max_bytes.unwrap_or(MAX_BYTES) })
}

fn report(message: &ProfileMessage) {
    let text = message.to_string();
    let text = escape_controls(&text);
    match message {
        ProfileMessage::Started(_) => messages::note(format_args!("Profile        : {text}")),
        ProfileMessage::Recovered(_) => messages::note(text),
        ProfileMessage::Refused(_) => {
            messages::warning(text);
            messages::help("'dipc doctor' says what is permitted; everything else goes on");
        }
        _ => messages::warning(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_override_the_configuration() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: ProfileArgs,
        }
        let parse = |words: &[&str]| {
            <Line as clap::Parser>::parse_from(std::iter::once(&"monitor").chain(words)).args
        };
        let configured = ContinuousProfiling {
            keep: Some(Duration::from_secs(60)),
            frequency: Some(49),
            ..ContinuousProfiling::default()
        };
        assert_eq!(parse(&[]).settings(&configured), configured);
        let settings = parse(&["--profile-keep", "0s", "--profile-bytes", "1MiB"]).settings(&configured);
        assert_eq!((settings.keep, settings.frequency), (Some(Duration::ZERO), Some(49)));
        assert_eq!(settings.max_bytes, Some(1 << 20));
    }

    #[test]
    fn recordings_have_a_second_to_ten_minutes() {
        assert_eq!(parse_segment("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(parse_segment("10m"), Ok(Duration::from_secs(600)));
        assert!(parse_segment("999ms").is_err() && parse_segment("11m").is_err());
    }
}
