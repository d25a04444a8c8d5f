//! The arguments about recordings of many processes.

use clap::Args;
use dipc_collect::kernel_samples::{GroupName, SampleScope};

use crate::exit::Failure;

/// The arguments that put many processes into one recording.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct MachineArgs {
    /// Sample all processes of the machine into one recording, with or without .NET (Linux, as root or with
    /// CAP_PERFMON; otherwise only the processes of this user)
    ///
    /// The kernel samples running threads, as with --cpu, and with --off-cpu also waits. At the end each .NET
    /// process that was sampled lists its methods, or they are named from its memory; a process that ended
    /// before has the names that its memory had while it was sampled. Processes that start or end meanwhile
    /// are in the recording, with their control groups and containers. dipc report FILE topN --by-process and
    /// --by-container show them, and --pid PID shows one.
    ///
    /// With --profile, --providers or --clrevents, the processes of -p or -n have a session each, whose
    /// events are in the same recording.
    #[arg(long, conflicts_with_all = NOT_OF_MANY)]
    pub(crate) all: bool,
    /// Sample the processes of a container or control group into one recording: the id of a container or its
    /// beginning, a folder below /sys/fs/cgroup, or a path as /proc/PID/cgroup has it (Linux)
    ///
    /// With --profile, --providers or --clrevents, its .NET processes have a session each, or those of -p or
    /// -n, as with --all.
    #[arg(long, value_name = "ID|PATH", conflicts_with_all = NOT_OF_MANY)]
    pub(crate) cgroup: Option<String>,
    /// Sample the processes of -p into one recording, instead of one for each (Linux)
    ///
    /// With --profile, --providers or --clrevents, the .NET processes among them have a session each, whose
    /// events are in the same recording.
    #[arg(long, requires = "process_id", conflicts_with_all = NOT_OF_MANY)]
    #[arg(conflicts_with_all = ["all", "cgroup"])]
    pub(crate) one_file: bool,
}

/// The arguments that a recording of many processes does not have: it has the kernel's samples, and sessions
/// of processes that run.
const NOT_OF_MANY: [&str; 13] = [
    "endpoint",
    "diagnostic_port",
    "command",
    "dsrouter",
    "user_events",
    "native_alloc",
    "follow",
    "keep",
    "rotate",
    "stopping_event_provider_name",
    "dump_on",
    "snapshot_on",
    "format",
];

impl MachineArgs {
    /// Returns true if many processes are recorded into one file.
    pub(super) const fn are_given(&self) -> bool {
        self.all || self.cgroup.is_some() || self.one_file
    }

    /// The processes to sample, and the beginning of the name of their recording.
    pub(super) fn scope(&self, pids: &[u32]) -> Result<(SampleScope, String), Failure> {
        if self.all {
            return Ok((SampleScope::Machine, "machine".to_owned()));
        }
        if let Some(name) = &self.cgroup {
            let group = GroupName::find(name)?;
            let last = group.path.rsplit('/').next().unwrap_or_default();
            let name = group.container.as_deref().and_then(|id| id.get(..12)).unwrap_or(last).to_owned();
            return Ok((SampleScope::Group(group), name));
        }
        let mut pids = pids.to_vec();
        pids.sort_unstable();
        pids.dedup();
        Ok((SampleScope::Processes(pids), "processes".to_owned()))
    }
}
