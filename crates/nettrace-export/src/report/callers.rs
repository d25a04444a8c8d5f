//! Callers of a method.

use clr_events::StackId;

use crate::profile::Profile;
use crate::profile::frame::FrameId;
use hashbrown::HashMap;

/// A caller of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallerRow {
    /// The caller; `None` where the method is the first frame of the stack.
    pub frame: Option<FrameId>,
    /// The weight of the samples with a call from this caller to the method.
    pub weight: u64,
}

/// The callers of a method, heaviest first. `path` is the method, then the caller to expand, and so on; an
/// empty path returns none.
///
/// With `exclusive` only samples with the method at the leaf count. A method that calls itself counts as
/// one frame, and of several places on a stack that match the outermost counts.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// let pay = profile.frames.find("Shop!Cart.Pay()").ok_or("a frame")?;
/// let callers = nettrace_export::report::callers(&profile, &[pay], false);
/// assert_eq!(callers[0].frame, profile.frames.find("Shop!Program.Main()"));
/// # Ok::<(), &str>(())
/// ```
pub fn callers(profile: &Profile, path: &[FrameId], exclusive: bool) -> Vec<CallerRow> {
    let mut weights: HashMap<Option<FrameId>, u64> = HashMap::new();
    let mut frames = Vec::new();
    for total in &profile.stack_totals {
        let Some(stack) = total.stack else { continue };
        frames_without_recursion(profile, stack, &mut frames);
        if let Some(caller) = caller(&frames, path, exclusive) {
            let weight = weights.entry(caller).or_default();
            *weight = weight.saturating_add(total.weight);
        }
    }
    let mut rows: Vec<_> = weights.into_iter().map(|(frame, weight)| CallerRow { frame, weight }).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.weight), row.frame));
    rows
}

/// The frames of a stack, leaf first, each once where it calls itself.
fn frames_without_recursion(profile: &Profile, stack: StackId, frames: &mut Vec<FrameId>) {
    frames.clear();
    frames.extend(profile.stacks.frames(stack));
    frames.dedup();
}

/// Returns the caller at the end of a path; `None` if the stack does not have the path.
#[allow(clippy::option_option, reason = "no such path, or no caller")]
fn caller(frames: &[FrameId], path: &[FrameId], exclusive: bool) -> Option<Option<FrameId>> {
    if path.is_empty() {
        return None;
    }
    let place = if exclusive {
        frames.starts_with(path).then_some(0)
    } else {
        frames.windows(path.len()).rposition(|part| part == path)
    };
    place.map(|place| frames.get(place + path.len()).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::index::ThreadIndex;
    use crate::profile::metric::Metric;
    use crate::profile::{ProfileSum, StackTotal};

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let sum = ProfileSum::new(Metric::Wall, 1 << 10);
        let mut profile = sum.into_profile();
        for (stack, weight) in stacks {
            let frames: Vec<_> = stack.split(' ').map(|name| profile.frames.intern(name)).collect();
            let stack = Some(profile.stacks.add(frames));
            profile.stack_totals.push(StackTotal::new(ThreadIndex(0), stack, *weight, 1));
        }
        profile
    }

    fn rows(profile: &Profile, path: &str, exclusive: bool) -> String {
        let mut frames = Vec::new();
        for name in path.split(' ') {
            frames.extend(profile.frames.iter().find(|(_, it)| *it == name).map(|(id, _)| id));
        }
        let name = |row: &CallerRow| {
            let name = row.frame.map_or("-", |frame| profile.frames.name(frame));
            format!("{name} {}", row.weight)
        };
        callers(profile, &frames, exclusive).iter().map(name).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn callers_match_the_path() {
        let profile = profile(&[("main a fib fib", 5), ("main b fib fib c", 3), ("main a fib c fib", 2)]);
        assert_eq!(rows(&profile, "fib", false), "a 7, b 3");
        assert_eq!(rows(&profile, "fib", true), "a 5, c 2");
        assert_eq!(rows(&profile, "fib a", false), "main 7");
        assert_eq!(rows(&profile, "main", false), "- 10");
        assert_eq!(rows(&profile, "c fib", true), "b 3");
    }
}
