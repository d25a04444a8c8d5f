//! Current stacks of a process, from a session with only the sampler.

use std::time::Duration;

use dipc_client::{KernelThread, LiveReader, ProcessView, Profile, SessionConfig};
use dipc_collect::live_stream::LiveStream;

use crate::command::stack::memory::MemoryWaits;
use crate::command::stack::{StackArgs, print};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::thread_stacks::{LiveThreadStacks, UNRELIABLE};
use crate::interrupt::Interrupts;
use crate::process::target::FoundTarget;
use crate::record::recorder::{self, Limits};
use crate::record::selection::sampler;
use crate::record::session::start_unless_interrupted;
use crate::record::stream_stats;
use crate::record::thread_times::LiveThreadTimes;

/// The extra time for the sampler, beyond that for the requested samples. It needs two rounds: a sample
/// counts once the next one has arrived.
const BEFORE_FIRST: Duration = Duration::from_millis(10);
/// The time between two rounds of the sampler, with a margin.
const ROUND: Duration = Duration::from_micros(1_200);
/// The time between two rounds of the kernel's thread accounting.
const ACCOUNT_PERIOD: Duration = Duration::from_millis(10);
/// Maximum number of sessions, each ten times as long as the previous, to obtain samples: a starved process
/// yields few.
const MAX_SESSIONS: u32 = 3;
/// Maximum time that an event waits for older events. Samples are in time order, and other events are rare.
const MAX_DELAY: Duration = Duration::from_millis(100);

/// The profile that asks for events of tasks.
const TASKS: &str = "tasks";

/// The threads of a process, as the kernel reports them.
fn kernel_threads(pid: Option<u32>) -> Vec<KernelThread> {
    pid.and_then(|pid| ProcessView::of(pid).threads().ok()).unwrap_or_default()
}

/// The kernel's state letter of a thread that runs, or waits for a processor.
const RUNNABLE: char = 'R';

/// The ids of the threads that run, or wait for a processor.
fn runnable(threads: &[KernelThread]) -> Vec<u64> {
    threads.iter().filter(|thread| thread.state == RUNNABLE).map(|thread| thread.id).collect()
}

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
    let rounds = u32::try_from(args.count.saturating_add(UNRELIABLE)).unwrap_or(u32::MAX);
    let mut duration = BEFORE_FIRST + ROUND * rounds;
    for _ in 0..MAX_SESSIONS {
        let tasks = Profile::find(TASKS).filter(|_| args.by_task).map_or(&[][..], |tasks| tasks.providers);
        let config = SessionConfig::new([sampler()].into_iter().chain(tasks.iter().map(|of| of.to_config())));
        let account = LiveThreadTimes::start(pid, ACCOUNT_PERIOD);
        let before = runnable(&kernel_threads(pid));
        let session = start_unless_interrupted(target, &config, interrupts)?;
        let mut kernel_threads = kernel_threads(pid);
        // A thread that the sampler has stopped at this moment seems to sleep.
        for thread in kernel_threads.iter_mut().filter(|thread| before.contains(&thread.id)) {
            thread.state = RUNNABLE;
        }
        let runnable = runnable(&kernel_threads);
        let mut stacks = LiveThreadStacks::new(args.stack_options(), account, runnable);
        let mut stream = LiveStream::reading(LiveReader::new(MAX_DELAY), |reader| {
            reader.for_each(|event| stacks.add(event));
            Ok(false)
        });
        let limits = Limits::new(target, pid, args.timeout, interrupts).with_duration(Some(duration));
        let end = recorder::run(session, &mut stream, &limits)?;
        let (reader, _) = stream.into_parts();
        let inside =
            stream_stats::report_damage(reader.events(), reader.unreadable(), "the readable part was shown");
        let exit = end.report("stacks were read", "read")?;
        let stacks = stacks.finish(reader.info(), args.count)?;
        if !stacks.threads().is_empty() {
            let waits = pid.and_then(MemoryWaits::read);
            print::print(args, &stacks, &kernel_threads, waits.as_ref())?;
            return Ok(exit.join(inside));
        }
        if interrupts.count() > 0 || exit != Exit::Done {
            break;
        }
        duration *= 10;
    }
    Err(Failure::new(Exit::Failed, "stack: the sampler found no thread with managed frames").with_help(
        "a process that is suspended at its start has no managed frames before dipc resume; dipc doctor -p PID shows more",
    ))
}
