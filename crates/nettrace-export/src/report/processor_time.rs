//! Time on the processors by the kind of code that ran.

use std::cmp::Reverse;

use clr_events::code::CodeOrigin;
use clr_events::{StackId, ThreadRole, ThreadState};
use hashbrown::HashMap;
use nettrace::RelativeTime;

use crate::profile::frame_kind::FrameKind;
use crate::profile::track::Track;
use crate::profile::{Profile, StackTotal, Thread, pseudo_frames};
use crate::report::gc::GcPause;

/// Returns the weight of running threads by the code that ran, the heaviest first.
///
/// That is the code at the leaf, but everything that the [JIT compiler](CodeOrigin::Jit) and the
/// [collector](CodeOrigin::Gc) call counts as theirs. The collector lacks symbols of its own in most
/// runtimes, so native code that runs in a pause and the collector's own threads are the collector's, too.
///
/// The profile must be built from the kernel's samples, with [tracks](crate::Options::tracks).
pub fn processor_time(profile: &Profile, pauses: &[GcPause]) -> Vec<(CodeOrigin, u64)> {
    let mut pauses_by_process: HashMap<Option<u64>, Vec<(RelativeTime, RelativeTime)>> = HashMap::new();
    for pause in pauses {
        let nanoseconds = i64::try_from(pause.duration.as_nanos()).unwrap_or(i64::MAX);
        let end = RelativeTime::from_nanos(pause.start.as_nanos().saturating_add(nanoseconds));
        pauses_by_process.entry(pause.process).or_default().push((pause.start, end));
    }
    for pauses in pauses_by_process.values_mut() {
        pauses.sort_unstable();
    }
    let origins: Vec<_> = profile.stack_totals.iter().map(|total| origin(profile, total)).collect();
    let is_time = profile.measure.unit.is_time();
    let mut sums: HashMap<CodeOrigin, u64> = HashMap::new();
    for thread in &profile.threads {
        let has_name = |names: [&str; 2]| thread.name.as_deref().is_some_and(|name| names.contains(&name));
        let is_collector = matches!(thread.role, Some(ThreadRole::BackgroundGc | ThreadRole::ServerGc(_)))
            || has_name(COLLECTORS);
        let pauses = pauses_of(profile, thread, &pauses_by_process);
        for span in thread.track.iter().flat_map(Track::iter) {
            let Some(origin) = origins.get(span.total.index()).copied().flatten() else { continue };
            let in_pause = || {
                // The kernel takes a sample at the end of the time that it stands for.
                let time = span.end(is_time);
                let after = pauses.partition_point(|(start, _)| *start <= time);
                after.checked_sub(1).and_then(|at| pauses.get(at)).is_some_and(|(_, end)| time <= *end)
            };
            let is_native = matches!(origin, CodeOrigin::Runtime | CodeOrigin::Native | CodeOrigin::Kernel);
            let is_gc = is_native && (is_collector || in_pause());
            let sum = sums.entry(if is_gc { CodeOrigin::Gc } else { origin }).or_default();
            *sum = sum.saturating_add(span.weight);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, weight)| *weight > 0).collect();
    sums.sort_by_key(|(origin, weight)| (Reverse(*weight), *origin));
    sums
}

/// The names that the runtime gives to the collector's threads (`gcenv.ee.cpp` of dotnet/runtime).
const COLLECTORS: [&str; 2] = [".NET Server GC", ".NET BGC"];

/// The pauses of a thread's process. Events of recordings before V6 do not name the process.
fn pauses_of<'p>(
    profile: &Profile,
    thread: &Thread,
    pauses: &'p HashMap<Option<u64>, Vec<(RelativeTime, RelativeTime)>>,
) -> &'p [(RelativeTime, RelativeTime)] {
    let process = profile.process_of(thread).map(|process| process.id);
    pauses.get(&process).or_else(|| pauses.get(&None)).map_or(&[], Vec::as_slice)
}

/// Returns the origin of a total, from its stack; `None` if the thread did not run.
fn origin(profile: &Profile, total: &StackTotal) -> Option<CodeOrigin> {
    let stack = total.stack.filter(|_| total.state == ThreadState::Working)?;
    Some(of_stack(profile, stack))
}

fn of_stack(profile: &Profile, stack: StackId) -> CodeOrigin {
    let mut leaf = None;
    for (_, frame) in profile.path(stack) {
        match profile.frames.kind(frame) {
            FrameKind::Code(origin @ (CodeOrigin::Jit | CodeOrigin::Gc)) => return origin,
            FrameKind::Code(origin) => _ = leaf.get_or_insert(origin),
            FrameKind::Pseudo if profile.frames.full_name(frame) == pseudo_frames::GC_PAUSE => {
                return CodeOrigin::Gc;
            }
            FrameKind::Pseudo => {}
        }
    }
    leaf.unwrap_or(CodeOrigin::Unknown)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Measure, StackProfileBuilder, Unit};

    #[test]
    fn callees_of_the_compiler_and_collector_count_as_theirs() {
        use CodeOrigin::{Gc, Jit, Kernel, Managed, Native, Runtime};

        let mut builder = StackProfileBuilder::new(Measure::new("time", "samples", Unit::Nanoseconds));
        let main = "web!Program.Main()";
        let (runtime, libc, kernel) = ("libcoreclr.so!?", "libc.so.6!memset", "vmlinux!clear_page");
        for (start, weight, stack) in [
            (0, 30, &[main][..]),
            (100, 20, &[main, runtime, "libclrjit.so!?", libc]),
            (200, 7, &[main, runtime, kernel]),
            (300, 5, &[main, runtime]),
            (400, 3, &[main, libc]),
            (500, 2, &["app!WKS::gc_heap::mark_phase", libc]),
            (600, 1, &[main]),
        ] {
            builder.add_sample(1, 5, RelativeTime::from_nanos(start), weight, stack);
        }
        let profile = builder.finish();
        let pause = |start, nanoseconds| GcPause {
            process: Some(1),
            start: RelativeTime::from_nanos(start),
            duration: Duration::from_nanos(nanoseconds),
            ..GcPause::default()
        };
        let by_origin = processor_time(&profile, &[]);
        assert_eq!(by_origin, [(Managed, 31), (Jit, 20), (Kernel, 7), (Runtime, 5), (Native, 3), (Gc, 2)]);
        // Managed code that is sampled in a pause has not stopped yet.
        let with_pauses = processor_time(&profile, &[pause(590, 50), pause(200, 110)]);
        assert_eq!(with_pauses, [(Managed, 31), (Jit, 20), (Gc, 14), (Native, 3)]);
    }
}
