//! The stacks of threads while they worked for requests.

use clr_activity::WorkKind;
use clr_events::StackId;
use hashbrown::HashMap;
use nettrace::RelativeTime;

use super::Slow;
use crate::page::data::shown_stack;
use crate::profile::Profile;

/// The number of the state of threads at work.
const WORKING: u8 = 0;

/// Stacks that are kept of a request, the heaviest.
const MAX_STACKS: usize = 8;

/// A stack that a request's thread had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenStack {
    pub(super) stack: StackId,
    /// The number of the thread's state.
    pub(super) state: u8,
    /// Nanoseconds.
    pub(super) weight: u64,
}

/// A time in which the thread worked for a request.
#[derive(Debug, Clone, Copy)]
struct Window {
    start: RelativeTime,
    end: RelativeTime,
    request: usize,
}

/// Adds to requests the stacks that a profile of time has for them, and their sleep and I/O. Work does not
/// count as such a wait if the kernel sampled it.
pub(super) fn seen_stacks(profile: &Profile, is_cpu_known: bool, requests: &mut [Slow]) {
    if !profile.measure.unit.is_time() {
        return;
    }
    let windows = windows(requests);
    let mut weights = HashMap::<(usize, StackId, u8), u64>::new();
    for thread in &profile.threads {
        let process = profile.processes.get(thread.process.index()).map(|process| process.id);
        // In a recording of one process, its events do not name it.
        let keys = [process, None].map(|process| (process, thread.id));
        let Some(windows) = keys.iter().find_map(|key| windows.get(key)) else { continue };
        let Some(track) = thread.track.as_ref() else { continue };
        let mut windows = windows.iter().peekable();
        for span in track.iter() {
            let end = span.end(true);
            while windows.next_if(|window| window.end <= span.start).is_some() {}
            // A window may go on after the sample's end.
            for window in windows.clone().take_while(|window| window.start < end) {
                let weight = window.end.min(end).saturating_duration_since(window.start.max(span.start));
                let shown = profile.stack_totals.get(span.total.index());
                if let Some((stack, state)) = shown.and_then(|total| shown_stack(profile, total)) {
                    let sum = weights.entry((window.request, stack, state)).or_default();
                    *sum = sum.saturating_add(u64::try_from(weight.as_nanos()).unwrap_or(u64::MAX));
                }
            }
        }
    }
    for ((request, stack, state), weight) in weights {
        if let Some(slow) = requests.get_mut(request) {
            slow.stacks.push(SeenStack { stack, state, weight });
            if !is_cpu_known || state != WORKING {
                slow.sampled.add(profile, stack, weight);
            }
        }
    }
    for slow in requests {
        slow.stacks.sort_by_key(|seen| (std::cmp::Reverse(seen.weight), seen.stack.index(), seen.state));
        slow.stacks.truncate(MAX_STACKS);
    }
}

/// Returns the times in which each thread worked for requests, in order, by process and thread. A thread
/// works for one at a time: of times that overlap the earlier one counts.
fn windows(requests: &[Slow]) -> HashMap<(Option<u64>, u64), Vec<Window>> {
    let mut windows = HashMap::<_, Vec<Window>>::new();
    for (request, slow) in requests.iter().enumerate() {
        for interval in &slow.intervals {
            if let WorkKind::OnThread(thread) = interval.kind {
                let window = Window { start: interval.start, end: interval.end, request };
                windows.entry((slow.process, thread.0)).or_default().push(window);
            }
        }
    }
    for windows in windows.values_mut() {
        windows.sort_by_key(|window| (window.start, window.end));
        let mut until = RelativeTime::START;
        windows.retain_mut(|window| {
            window.start = window.start.max(until);
            until = until.max(window.end);
            window.start < window.end
        });
    }
    windows
}
