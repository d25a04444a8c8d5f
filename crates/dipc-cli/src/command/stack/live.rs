//! Current stacks of a process, from sessions with only the sampler.

use dipc_client::Profile;
use dipc_collect::stacks::{self, LiveThreadStacks, StacksRequest, ThreadStackReader};

use crate::command::stack::memory::MemoryWaits;
use crate::command::stack::{StackArgs, print};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::profile::diagnostics::warn_of_omissions;
use crate::interrupt::Interrupts;
use crate::process::target::FoundTarget;
use crate::record::notes::Messages;
use crate::record::recorder::Limits;
use crate::record::stream_stats;

/// The profile that asks for events of tasks.
const TASKS: &str = "tasks";

/// Shows the stacks once.
pub(super) fn show(args: &StackArgs, found: &FoundTarget, interrupts: &Interrupts) -> Outcome {
    let target = &found.target;
    if target.is_native_aot().unwrap_or(false) {
        return Err(Failure::new(
            Exit::Refused,
            "stack: the process is a NativeAOT program: its runtime has no sampler",
        )
        .with_help(
            "dipc stack --native shows its stacks, with the names that its file exports; gdb -p PID -batch -ex 'thread apply all bt' has more where its symbols (.dbg) are at hand",
        ));
    }
    let pid = found.endpoint.as_ref().map(|endpoint| endpoint.pid);
    let tasks = Profile::find(TASKS).filter(|_| args.by_task).map_or(&[][..], |tasks| tasks.providers);
    let request = StacksRequest::new(args.count).with_providers(tasks.iter().map(|of| of.to_config()));
    let limits = Limits::new(target, pid, args.timeout, interrupts);
    let reader = || ThreadStackReader::new(pid, args.stack_options(), args.count);
    let collected = stacks::collect(target, &request, &limits.stream, &mut Messages, reader)?;
    let (events, unreadable) = (collected.reader.events(), collected.reader.unreadable());
    let inside = stream_stats::report_damage(events, unreadable, "the readable part was shown");
    let exit = limits.end(collected.end).report("stacks were read", "read")?;
    let Some(LiveThreadStacks { stacks, omissions, kernel_threads, .. }) = collected.stacks else {
        return Err(Failure::new(Exit::Failed, "stack: the sampler found no thread with managed frames")
            .with_help(
                "a process that is suspended at its start has no managed frames before dipc resume; dipc doctor -p PID shows more",
            ));
    };
    warn_of_omissions(&omissions);
    let waits = pid.and_then(MemoryWaits::read);
    print::print(args, &stacks, &kernel_threads, waits.as_ref())?;
    Ok(exit.join(inside))
}
