//! The Firefox profiler's processed profiles.

use std::io::{self, Write};

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo,
    Profile as Out, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp, WeightType,
};
use serde::Serialize;
use serde_json::ser::Formatter;

use crate::escape::is_control;
use crate::format::Labels;
use crate::profile::measure::Unit;
use crate::profile::pseudo_frames;
use crate::profile::track::Span;
use crate::profile::{Profile, Thread};
use clr_events::StackId;

pub(super) fn write(profile: &Profile, labels: Labels<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (weight, samples) = (profile.total(), profile.samples().max(1));
    let interval = if profile.measure.unit.is_time() { weight / samples } else { 1_000_000 };
    #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit 53 bits")]
    let start = profile.start_unix_ms.unwrap_or(0) as f64;
    let mut made = Out::new(
        labels.title,
        ReferenceTimestamp::from_millis_since_unix_epoch(start),
        SamplingInterval::from_nanos(interval.max(1)),
    );
    // Names are final: nobody is to look for symbols.
    made.set_symbolicated(true);
    let managed = made.add_category("Managed", CategoryColor::Blue).into();
    let unmanaged = made.add_category("Waiting or native", CategoryColor::Orange).into();
    let processes: Vec<_> = profile
        .processes
        .iter()
        .map(|process| {
            let name = process.name.as_deref().unwrap_or(&process.frame);
            made.add_process(name, number(process.id), Timestamp::from_nanos_since_reference(0))
        })
        .collect();
    for thread in &profile.threads {
        let (Some(process), Some(_)) = (processes.get(thread.process), &thread.track) else { continue };
        let is_main = profile.process_of(thread).is_some_and(|process| process.id == thread.id);
        let handle =
            made.add_thread(*process, number(thread.id), Timestamp::from_nanos_since_reference(0), is_main);
        made.set_thread_name(handle, &thread.frame);
        let weights =
            if profile.measure.unit == Unit::Bytes { WeightType::Bytes } else { WeightType::Samples };
        made.set_thread_samples_weight_type(handle, weights);
        Filling { profile, made: &mut made, handle, managed, unmanaged, stacks: Vec::new() }.fill(thread);
    }
    json(out, &made)
}

struct Filling<'a> {
    profile: &'a Profile,
    made: &'a mut Out,
    handle: ThreadHandle,
    managed: CategoryPairHandle,
    unmanaged: CategoryPairHandle,
    /// By node, what was made of it for this thread.
    stacks: Vec<Option<StackHandle>>,
}

impl Filling<'_> {
    fn fill(&mut self, thread: &Thread) {
        let Some(track) = &thread.track else { return };
        self.stacks.resize(self.profile.stacks.len() + 1, None);
        for span in track.iter() {
            let Some((_, stack)) = self.profile.shown(span.total) else { continue };
            let handle = self.stack(stack);
            let is_waiting = self.profile.leaf_name(stack) == pseudo_frames::UNMANAGED;
            self.samples(span, handle, is_waiting);
        }
    }

    /// A span as the samples that it was made of, spread evenly; threads that wait get one sample of that weight.
    fn samples(&mut self, span: Span, stack: Option<StackHandle>, is_waiting: bool) {
        let start = span.start.max(0).unsigned_abs();
        let at = Timestamp::from_nanos_since_reference;
        if !self.profile.measure.unit.is_time() {
            let weight = if self.profile.measure.unit == Unit::Bytes { span.weight } else { span.samples };
            self.made.add_sample(self.handle, at(start), stack, CpuDelta::ZERO, weight_of(weight));
            return;
        }
        if is_waiting {
            self.made.add_sample(self.handle, at(start), stack, CpuDelta::ZERO, 1);
            if span.samples > 1 {
                let last = start.saturating_add(span.weight / span.samples * (span.samples - 1));
                self.made.add_sample_same_stack_zero_cpu(self.handle, at(last), weight_of(span.samples - 1));
            }
            return;
        }
        let each = span.weight / span.samples.max(1);
        for number in 0..span.samples {
            let time = at(start.saturating_add(each.saturating_mul(number)));
            self.made.add_sample(self.handle, time, stack, CpuDelta::from_nanos(each), 1);
        }
    }

    fn stack(&mut self, stack: StackId) -> Option<StackHandle> {
        let mut missing = Vec::new();
        let mut below = None;
        for (at, frame) in self.profile.path(stack) {
            if let Some(Some(known)) = self.stacks.get(at.index()) {
                below = Some(*known);
                break;
            }
            missing.push((at, frame));
        }
        for (node, frame) in missing.into_iter().rev() {
            let name = self.profile.frames.name(frame);
            let category_pair = match name {
                pseudo_frames::UNMANAGED => self.unmanaged,
                _ if self.profile.frames.parts(frame).0.is_empty() => CategoryHandle::OTHER.into(),
                _ => self.managed,
            };
            let label = Frame::Label(self.made.intern_string(name));
            let info = FrameInfo { frame: label, category_pair, flags: FrameFlags::empty() };
            let frame = self.made.intern_frame(self.handle, info);
            let made = self.made.intern_stack(self.handle, below, frame);
            below = Some(made);
            if let Some(place) = self.stacks.get_mut(node.index()) {
                *place = below;
            }
        }
        below
    }
}

fn number(id: u64) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX)
}

fn weight_of(weight: u64) -> i32 {
    i32::try_from(weight).unwrap_or(i32::MAX)
}

/// Writes a value as JSON; what would steer a terminal is escaped.
fn json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Escaping);
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// Compact, as a formatter is by default.
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_control) {
            let (plain, special) = rest.split_at(at);
            out.write_all(plain.as_bytes())?;
            let mut characters = special.chars();
            if let Some(c) = characters.next() {
                write!(out, "\\u{:04x}", u32::from(c))?;
            }
            rest = characters.as_str();
        }
        out.write_all(rest.as_bytes())
    }
}
