//! A line for each stack: frames from the root on, separated by semicolons, a blank, the weight.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::profile::Profile;
use crate::profile::index::ThreadIndex;
use crate::profile::measure::Measure;
use crate::text::one_line;
use crate::write_options::WriteOptions;
use clr_events::StackId;

pub(super) fn write(profile: &Profile, options: WriteOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut frames = Vec::new();
    for ((thread, stack), (weight, samples)) in stacks(profile, options.by_thread) {
        // The time of a sample may be less than the unit in which it is recorded.
        if weight == 0 && (samples == 0 || profile.measure != Measure::CPU_TIME) {
            continue;
        }
        profile.frames_of(stack, &mut frames);
        let thread = thread.and_then(|thread| profile.threads.get(thread.index()));
        let names = frames.iter().map(|frame| profile.frames.name(*frame));
        let names = thread.map(|thread| &*thread.frame).into_iter().chain(names);
        let mut any = false;
        for name in names {
            if any {
                out.write_all(b";")?;
            }
            any = true;
            one_line(out, name, ';')?;
        }
        if !any {
            out.write_all(b"(no frames)")?;
        }
        writeln!(out, " {weight}")?;
    }
    Ok(())
}

/// Sums up the weight and the samples of each stack, per thread if `by_thread`.
fn stacks(profile: &Profile, by_thread: bool) -> BTreeMap<(Option<ThreadIndex>, StackId), (u64, u64)> {
    let mut stacks: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for total in &profile.stack_totals {
        if let Some(stack) = total.stack {
            let (weight, samples) = stacks.entry((by_thread.then_some(total.thread), stack)).or_default();
            *weight = weight.saturating_add(total.weight);
            *samples = samples.saturating_add(total.samples);
        }
    }
    stacks
}
