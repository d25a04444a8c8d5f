//! Many processes in one recording: `--all`, `--cgroup` and `--one-file`.

use std::thread;
use std::time::Instant;

use clap::Args;
use dipc_collect::kernel_samples::{GroupName, MachineSampler, SampleScope};
use dipc_collect::staged::folder_of;
use jiff::Zoned;

use super::file_names::file_name;
use super::{RecordingEnd, TICK, TraceArgs, WrittenFiles};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::record::kernel_samples::{SampleSettings, loss_exit};
use crate::record::machine;
use crate::record::notes::Messages;
use crate::render::messages;
use crate::render::units::counted;

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
    #[arg(long, conflicts_with_all = NOT_OF_MANY)]
    pub(crate) all: bool,
    /// Sample the processes of a container or control group into one recording: the id of a container or its
    /// beginning, a folder below /sys/fs/cgroup, or a path as /proc/PID/cgroup has it (Linux)
    #[arg(long, value_name = "ID|PATH", conflicts_with_all = NOT_OF_MANY)]
    pub(crate) cgroup: Option<String>,
    /// Sample the processes of -p into one recording, instead of one for each (Linux)
    #[arg(long, requires = "process_id", conflicts_with_all = NOT_OF_MANY)]
    #[arg(conflicts_with_all = ["all", "cgroup"])]
    pub(crate) one_file: bool,
}

/// The arguments about the session of a runtime: a recording of many processes has the kernel's samples.
const NOT_OF_MANY: [&str; 14] = [
    "providers",
    "profile",
    "clrevents",
    "clreventlevel",
    "rundown",
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
    fn scope(&self, pids: &[u32]) -> Result<(SampleScope, String), Failure> {
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

/// Samples many processes until the end of the time, of all of them, or an interrupt.
pub(super) fn record(args: &TraceArgs, interrupts: &Interrupts, written: &WrittenFiles) -> Outcome {
    if args.output.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        return Err(Failure::usage("--all, --cgroup and --one-file need a file: name one with -o"));
    }
    let (scope, name) = args.machine.scope(&args.source.process.process_ids)?;
    let settings = SampleSettings::of_processors(args.sample_frequency(), args.off_cpu);
    let path = args.output.clone().unwrap_or_else(|| file_name(&name, None, &Zoned::now()));
    let sampler = MachineSampler::start(&scope, settings, folder_of(&path), &mut Messages)?;
    messages::note(format_args!("Samples        : {}", sampler.description()));
    warn_of_left_out(sampler.left_out());
    let start = Instant::now();
    let duration = args.duration.filter(|duration| !duration.is_zero());
    let is_over = || duration.is_some_and(|duration| start.elapsed() >= duration);
    while !sampler.is_over() && !is_over() && interrupts.count() == 0 {
        thread::sleep(TICK);
    }
    let mut recording = sampler.finish()?;
    let path = machine::write(&mut recording, &path, args.output.is_some())?;
    machine::warn(&recording);
    written.add(&path, " topN --by-process", Vec::new(), RecordingEnd::default());
    let exit = loss_exit(recording.samples.summary(), args.fail_on_loss);
    Ok(if recording.is_full { exit.join(Exit::Incomplete) } else { exit })
}

/// Maximum number of processes that a warning names.
const MAX_SHOWN: usize = 8;

/// Names the processes that this user may not sample.
fn warn_of_left_out(pids: &[u32]) {
    if pids.is_empty() {
        return;
    }
    let named: Vec<_> = pids
        .iter()
        .take(MAX_SHOWN)
        .map(|pid| match dipc_transport::process_name(*pid) {
            Ok(name) => format!("{name} ({pid})"),
            Err(_) => pid.to_string(),
        })
        .collect();
    let more = if pids.len() > MAX_SHOWN { ", …" } else { "" };
    messages::warning(format_args!(
        "the kernel permits samples of this user's own processes only, and {} left out: {}{more}",
        counted(pids.len() as u64, "process is", "processes are"),
        named.join(", ")
    ));
    messages::help(
        "run dipc as root, setcap cap_perfmon,cap_sys_ptrace+ep on its file, or sysctl kernel.perf_event_paranoid=0",
    );
}
