//! The options of the samples of the machine that `dipc monitor` keeps.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use dipc_monitor::{ProfileHistory, ProfileHistoryConfig, ProfileLog, ProfileMessage};

use super::black_box::state_directory;
use crate::exit::{Exit, Failure};
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::{duration, size};

/// Minimum time of a recording.
const MIN_SEGMENT: Duration = Duration::from_secs(1);
/// Maximum time of a recording: it is in memory until it ends.
const MAX_SEGMENT: Duration = Duration::from_secs(600);

#[allow(clippy::struct_field_names, reason = "the names of the options")]
#[derive(Debug, Args)]
pub(super) struct ProfileArgs {
    /// Sample the whole machine all the time, and keep the samples for this time, as 24h (Linux); 0s samples
    /// nothing
    ///
    /// The kernel takes the samples, of programs of all kinds; no process is asked for anything. /profile
    /// answers for any time that is kept, all processes or one. Needs root or CAP_PERFMON, or a
    /// kernel.perf_event_paranoid of 0.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration::parse)]
    profile_keep: Duration,
    /// Samples per second of each processor
    #[arg(long, value_name = "NUMBER", default_value_t = 19, value_parser = clap::value_parser!(u32).range(1..=997))]
    profile_frequency: u32,
    /// Maximum size of all samples on disk; the oldest are removed
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size::parse)]
    profile_bytes: u64,
    /// Directory of the samples [default: profile in $STATE_DIRECTORY, else in the user's state directory]
    ///
    /// A restarted monitor goes on with what is there. Each file is a recording, whose name has its time, and
    /// can be read by all commands.
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    profile_directory: Option<PathBuf>,
    /// Time of each recording of samples; a monitor that is killed loses the current one
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_segment)]
    profile_segment: Duration,
}

fn parse_segment(text: &str) -> Result<Duration, String> {
    let segment = duration::parse(text)?;
    if !(MIN_SEGMENT..=MAX_SEGMENT).contains(&segment) {
        return Err("a recording has 1s to 10m".to_owned());
    }
    Ok(segment)
}

/// Begins to sample the machine, if that is requested.
pub(super) fn start(args: &ProfileArgs) -> Result<Option<Arc<ProfileHistory>>, Failure> {
    if args.profile_keep.is_zero() {
        return Ok(None);
    }
    let usual = || Some(state_directory()?.join("profile"));
    let Some(directory) = args.profile_directory.clone().or_else(usual) else {
        return Err(Failure::usage("monitor: no directory for samples of the machine is known")
            .with_help("--profile-directory names one"));
    };
    let shown = directory.display().to_string();
    let config = ProfileHistoryConfig::new(directory)
        .with_keep(args.profile_keep)
        .with_max_bytes(args.profile_bytes)
        .with_frequency(args.profile_frequency)
        .with_segment(args.profile_segment);
    let log: ProfileLog = Arc::new(report);
    let history = ProfileHistory::start(config, &log).map_err(|error| {
        let what = match error.kind() {
            ErrorKind::WouldBlock => "another monitor uses it".to_owned(),
            _ => error.to_string(),
        };
        Failure::new(Exit::Failed, format_args!("monitor: the samples in {shown}: {what}"))
            .with_help("--profile-directory names another directory")
    })?;
    Ok(Some(Arc::new(history)))
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
    fn recordings_have_a_second_to_ten_minutes() {
        assert_eq!(parse_segment("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(parse_segment("10m"), Ok(Duration::from_secs(600)));
        assert!(parse_segment("999ms").is_err() && parse_segment("11m").is_err());
    }
}
