//! The sum of profiles that follow one another.

use std::time::Duration;

use clr_events::{StackId, StackTree, ThreadState};
use hashbrown::HashMap;

use crate::profile::frame::{FrameId, Frames};
use crate::profile::index::{ProcessIndex, ThreadIndex};
use crate::profile::metric::Metric;
use crate::profile::{Profile, StackTotal, Thread};

/// Bytes of all names of frames.
const NAME_BYTES: usize = 32 << 20;

/// The sum of profiles of a metric, such as the profiles of the intervals of a [live
/// session](crate::ProfileBuilder::take).
///
/// Threads are put together, and times are not kept.
///
/// # Memory
/// At most 32 MB of names, and some 100 bytes for each of the [stacks](Self::new). A stack beyond the limit
/// counts for the longest part of it that is known.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// use nettrace_export::{Metric, ProfileSum};
///
/// // The intervals of a live session.
/// let mut sum = ProfileSum::new(Metric::Other, 100_000);
/// sum.add(&profile);
/// sum.add(&profile);
/// assert_eq!(sum.profile().total(), 2 * profile.total());
/// ```
#[derive(Debug)]
pub struct ProfileSum {
    profile: Profile,
    /// The totals by stack and state.
    numbers: HashMap<(Option<StackId>, ThreadState), usize>,
    name_bytes: usize,
    names_left_out: u64,
}

impl ProfileSum {
    /// An empty sum, with a limit of stacks.
    pub fn new(metric: Metric, most_stacks: u32) -> Self {
        let profile = Profile {
            metric,
            measure: metric.measure(),
            start_unix_ms: None,
            duration: Duration::ZERO,
            frames: Frames::default(),
            stacks: StackTree::with_limit(most_stacks),
            processes: Vec::new(),
            threads: Vec::new(),
            stack_totals: Vec::new(),
            recorded_bytes: 0,
        };
        Self { profile, numbers: HashMap::new(), name_bytes: 0, names_left_out: 0 }
    }

    /// Adds a profile of the same metric.
    pub fn add(&mut self, other: &Profile) {
        let sum = &mut self.profile;
        sum.measure = other.measure;
        sum.start_unix_ms = sum.start_unix_ms.or(other.start_unix_ms);
        sum.duration = sum.duration.saturating_add(other.duration);
        sum.recorded_bytes = sum.recorded_bytes.saturating_add(other.recorded_bytes);
        if sum.threads.is_empty() && !other.processes.is_empty() {
            sum.processes.clone_from(&other.processes);
            sum.processes.truncate(1);
            sum.threads.push(Thread {
                process: ProcessIndex(0),
                id: 0,
                name: None,
                role: None,
                frame: "Threads".to_owned(),
                track: None,
            });
        }
        let frames: Vec<FrameId> = other.frames.ids().map(|frame| self.frame(&other.frames, frame)).collect();
        let sum = &mut self.profile;
        // Callers precede their callees.
        let mut stacks = vec![StackId::EMPTY; other.stacks.len() + 1];
        // True for stacks with all of their frames.
        let mut is_whole = vec![true; other.stacks.len() + 1];
        for stack in other.stacks.stacks() {
            let (Some(frame), Some(caller)) = (other.stacks.leaf(stack), other.stacks.caller(stack)) else {
                continue;
            };
            let frame = frames.get(frame.0 as usize).copied().unwrap_or(frame);
            let (caller, mut whole) = (stacks[caller.index()], is_whole[caller.index()]);
            let mut sum_stack = caller;
            if whole {
                let cut = sum.stacks.cut();
                sum_stack = sum.stacks.push(caller, frame);
                whole = sum.stacks.cut() == cut;
            }
            stacks[stack.index()] = sum_stack;
            is_whole[stack.index()] = whole;
        }
        for total in &other.stack_totals {
            let stack = total.stack.map(|stack| stacks.get(stack.index()).copied().unwrap_or_default());
            let number = *self.numbers.entry((stack, total.state)).or_insert_with(|| {
                sum.stack_totals.push(StackTotal {
                    thread: ThreadIndex(0),
                    stack,
                    weight: 0,
                    samples: 0,
                    ..*total
                });
                sum.stack_totals.len() - 1
            });
            if let Some(of_sum) = sum.stack_totals.get_mut(number) {
                of_sum.weight = of_sum.weight.saturating_add(total.weight);
                of_sum.samples = of_sum.samples.saturating_add(total.samples);
            }
        }
    }

    /// Returns the frame of the sum for a frame of a profile.
    fn frame(&mut self, frames: &Frames, frame: FrameId) -> FrameId {
        let sum = &mut self.profile.frames;
        if let Some(known) = sum.find(frames.full_name(frame)) {
            return known;
        }
        let bytes = frames.full_name(frame).len().saturating_add(frames.name(frame).len());
        if self.name_bytes.saturating_add(bytes) > NAME_BYTES {
            self.names_left_out = self.names_left_out.saturating_add(1);
            return sum.intern("(others)");
        }
        self.name_bytes = self.name_bytes.saturating_add(bytes);
        sum.adopt(frames, frame)
    }

    /// The sum.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The sum.
    pub fn into_profile(self) -> Profile {
        self.profile
    }

    /// Returns the number of frames that were left out because of the limits: of stacks, and names.
    pub const fn left_out(&self) -> u64 {
        self.profile.stacks.cut().saturating_add(self.names_left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(stacks: &[(&[&str], u64)]) -> Profile {
        let mut profile = ProfileSum::new(Metric::Wall, 100).into_profile();
        for (frames, weight) in stacks {
            let frames: Vec<_> = frames.iter().map(|name| profile.frames.intern(name)).collect();
            let stack = Some(profile.stacks.add(frames));
            profile.stack_totals.push(StackTotal::new(ThreadIndex(3), stack, *weight, 1));
        }
        profile
    }

    fn shown(profile: &Profile) -> Vec<(String, u64)> {
        let totals = profile.stack_totals.iter();
        totals.map(|total| (profile.names(total.stack.unwrap()).join(" "), total.weight)).collect()
    }

    #[test]
    fn equal_stacks_are_added_up() {
        let mut sum = ProfileSum::new(Metric::Wall, 100);
        sum.add(&profile(&[(&["main", "a"], 2), (&["main", "b"], 3)]));
        sum.add(&profile(&[(&["main", "c"], 4), (&["main", "a"], 5)]));
        let expected = [("main a", 7), ("main b", 3), ("main c", 4)];
        assert_eq!(shown(sum.profile()), expected.map(|(stack, weight)| (stack.to_owned(), weight)));
        assert_eq!((sum.left_out(), sum.profile().samples()), (0, 4));
    }

    #[test]
    fn a_stack_without_room_counts_for_its_callers() {
        let mut sum = ProfileSum::new(Metric::Wall, 2);
        sum.add(&profile(&[(&["main", "a"], 2), (&["main", "b", "a"], 3)]));
        // Not for `main a`, which it is not.
        assert_eq!(shown(sum.profile()), [("main a".to_owned(), 2), ("main".to_owned(), 3)]);
        assert_eq!(sum.left_out(), 1);
    }
}
