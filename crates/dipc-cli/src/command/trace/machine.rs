//! Many processes in one recording: `--all`, `--cgroup` and `--one-file`.

mod events;

use std::thread;
use std::time::Instant;

use dipc_collect::kernel_samples::MachineSampler;
use dipc_collect::staged::folder_of;
use jiff::Zoned;

use super::file_names::file_name;
use super::{RecordingEnd, TICK, TraceArgs, WrittenFiles};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::record::kernel_samples::{SampleSettings, loss_exit};
use crate::record::machine::{self, Sessions};
use crate::record::notes::Messages;
use crate::render::messages;
use crate::render::units::counted;

/// Samples many processes until the end of the time, of all of them, or an interrupt.
pub(super) fn record(args: &TraceArgs, interrupts: &Interrupts, written: &WrittenFiles) -> Outcome {
    if args.output.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        return Err(Failure::usage("--all, --cgroup and --one-file need a file: name one with -o"));
    }
    let (scope, name) = args.machine.scope(&args.source.process.process_ids)?;
    let settings = SampleSettings::of_processors(args.sample_frequency(), args.off_cpu);
    let path = args.output.clone().unwrap_or_else(|| file_name(&name, None, &Zoned::now()));
    let folder = folder_of(&path);
    let sessions = match events::requested(args, &scope)? {
        Some((sources, request)) => Sessions::start(&sources, &request, folder, interrupts)?,
        None => Sessions::default(),
    };
    let sampler = match MachineSampler::start(&scope, settings, folder, &mut Messages) {
        Ok(sampler) => sampler,
        Err(error) => {
            sessions.cancel();
            return Err(error.into());
        }
    };
    messages::note(format_args!("Samples        : {}", sampler.description()));
    warn_of_left_out(sampler.left_out());
    let start = Instant::now();
    let duration = args.duration.filter(|duration| !duration.is_zero());
    let is_over = || duration.is_some_and(|duration| start.elapsed() >= duration);
    while !sampler.is_over() && !is_over() && interrupts.count() == 0 {
        thread::sleep(TICK);
    }
    // Runtimes list their methods at the end of their sessions, which is in no sample.
    sampler.stop();
    let mut events = sessions.finish(interrupts);
    let recording = match sampler.finish() {
        Ok(recording) => recording,
        Err(error) => {
            for events in &mut events {
                events.keep(&path);
            }
            return Err(error.into());
        }
    };
    let path = machine::write(&recording, &mut events, &path, args.output.is_some())?;
    machine::warn(&recording);
    let of_events = events.into_iter().map(|events| events.report(args.fail_on_loss));
    let of_events = of_events.fold(Exit::Done, Exit::join);
    written.add(&path, " topN --by-process", Vec::new(), RecordingEnd::default());
    let exit = loss_exit(recording.samples.summary(), args.fail_on_loss).join(of_events);
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
