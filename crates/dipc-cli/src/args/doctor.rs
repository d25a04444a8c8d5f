use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use super::Format;
use crate::command::completions;
use crate::duration;

/// Which processes are examined: one, those of a name, or all that look like .NET.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The process id [default: every process that looks like .NET]
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(completions::pids))]
    pub(crate) process_id: Option<u32>,
    /// The name of the process, or else of its entry assembly
    #[arg(short, long, value_name = "NAME", conflicts_with = "process_id", add = ArgValueCandidates::new(completions::names))]
    pub(crate) name: Option<String>,
    /// Format of the findings
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Time limit for each runtime's answer
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "2s")]
    pub(crate) timeout: Duration,
}
