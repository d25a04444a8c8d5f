//! The Firefox profiler's processed profiles.

use std::io::{self, Write};

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo,
    Profile as Out, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp, WeightType,
};
use serde::Serialize;
use serde_json::ser::Formatter;

use crate::profile::frame_kind::FrameKind;
use crate::profile::measure::Unit;
use crate::profile::pseudo_frames;
use crate::profile::track::Span;
use crate::profile::{Profile, Thread};
use crate::write_options::WriteOptions;
use clr_events::StackId;
use clr_events::code::CodeOrigin;
use clr_events::is_control;

pub(super) fn write(profile: &Profile, options: WriteOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (weight, samples) = (profile.total(), profile.samples().max(1));
    let interval = if profile.measure.unit.is_time() { weight / samples } else { 1_000_000 };
    #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit 53 bits")]
    let start = profile.start_unix_ms.unwrap_or(0) as f64;
    let mut output = Out::new(
        options.title,
        ReferenceTimestamp::from_millis_since_unix_epoch(start),
        SamplingInterval::from_nanos(interval.max(1)),
    );
    // Names are final: the Firefox profiler does not look for symbols.
    output.set_symbolicated(true);
    let managed = output.add_category("Managed", CategoryColor::Blue).into();
    let unmanaged = output.add_category("Waiting or native", CategoryColor::Orange).into();
    let categories = Categories { managed, unmanaged, ..Categories::native(profile, &mut output) };
    let processes: Vec<_> = profile
        .processes
        .iter()
        .map(|process| {
            let name = process.name.as_deref().unwrap_or(&process.frame);
            output.add_process(name, saturate_id(process.id), Timestamp::from_nanos_since_reference(0))
        })
        .collect();
    for thread in &profile.threads {
        let (Some(process), Some(_)) = (processes.get(thread.process.index()), &thread.track) else {
            continue;
        };
        let is_main = profile.process_of(thread).is_some_and(|process| process.id == thread.id);
        let handle = output.add_thread(
            *process,
            saturate_id(thread.id),
            Timestamp::from_nanos_since_reference(0),
            is_main,
        );
        output.set_thread_name(handle, &thread.frame);
        let weights =
            if profile.measure.unit == Unit::Bytes { WeightType::Bytes } else { WeightType::Samples };
        output.set_thread_samples_weight_type(handle, weights);
        ThreadWriter { profile, output: &mut output, handle, categories, stacks: Vec::new() }.write(thread);
    }
    json(out, &output)
}

/// The categories of frames, which have colours.
#[derive(Clone, Copy)]
struct Categories {
    managed: CategoryPairHandle,
    unmanaged: CategoryPairHandle,
    runtime: CategoryPairHandle,
    native: CategoryPairHandle,
    kernel: CategoryPairHandle,
}

impl Categories {
    /// Adds the tables of native code, if the profile has any.
    fn native(profile: &Profile, output: &mut Out) -> Self {
        let other = CategoryPairHandle::from(CategoryHandle::OTHER);
        let mut category = |name, color, is_of: fn(CodeOrigin) -> bool| {
            let mut kinds = profile.frames.ids().map(|frame| profile.frames.kind(frame));
            let is_one = |kind| matches!(kind, FrameKind::Code(origin) if is_of(origin));
            if kinds.any(is_one) { output.add_category(name, color).into() } else { other }
        };
        Self {
            managed: other,
            unmanaged: other,
            runtime: category("Runtime", CategoryColor::Purple, CodeOrigin::is_native_runtime),
            native: category("Native", CategoryColor::LightBlue, |origin| origin == CodeOrigin::Native),
            kernel: category("Kernel", CategoryColor::Green, |origin| origin == CodeOrigin::Kernel),
        }
    }

    fn of(self, kind: FrameKind) -> CategoryPairHandle {
        match kind {
            FrameKind::Pseudo => CategoryHandle::OTHER.into(),
            FrameKind::Code(CodeOrigin::Native) => self.native,
            FrameKind::Code(CodeOrigin::Kernel) => self.kernel,
            FrameKind::Code(origin) if origin.is_native_runtime() => self.runtime,
            FrameKind::Code(_) => self.managed,
        }
    }
}

/// The output of a thread's samples.
struct ThreadWriter<'a> {
    profile: &'a Profile,
    output: &'a mut Out,
    handle: ThreadHandle,
    categories: Categories,
    /// By node of the profile, its stack in the output of this thread.
    stacks: Vec<Option<StackHandle>>,
}

impl ThreadWriter<'_> {
    fn write(&mut self, thread: &Thread) {
        let Some(track) = &thread.track else { return };
        self.stacks.resize(self.profile.stacks.len() + 1, None);
        for span in track.iter() {
            let Some((_, stack)) = self.profile.shown(span.total) else { continue };
            let handle = self.intern_stack(stack);
            let is_waiting =
                matches!(self.profile.leaf_name(stack), pseudo_frames::UNMANAGED | pseudo_frames::BLOCKED);
            self.add_samples(span, handle, is_waiting);
        }
    }

    /// Adds the samples that a span consists of, spread evenly; for a thread that waits, two: the first, and
    /// the last with the weight of all others.
    fn add_samples(&mut self, span: Span, stack: Option<StackHandle>, is_waiting: bool) {
        let start = span.start.as_nanos().max(0).unsigned_abs();
        let at = Timestamp::from_nanos_since_reference;
        if !self.profile.measure.unit.is_time() {
            let weight = if self.profile.measure.unit == Unit::Bytes { span.weight } else { span.samples };
            self.output.add_sample(self.handle, at(start), stack, CpuDelta::ZERO, saturate_weight(weight));
            return;
        }
        if is_waiting {
            self.output.add_sample(self.handle, at(start), stack, CpuDelta::ZERO, 1);
            if span.samples > 1 {
                let last = start.saturating_add(span.weight / span.samples * (span.samples - 1));
                self.output.add_sample_same_stack_zero_cpu(
                    self.handle,
                    at(last),
                    saturate_weight(span.samples - 1),
                );
            }
            return;
        }
        let each = span.weight / span.samples.max(1);
        for number in 0..span.samples.max(1) {
            let time = at(start.saturating_add(each.saturating_mul(number)));
            self.output.add_sample(self.handle, time, stack, CpuDelta::from_nanos(each), 1);
        }
    }

    /// Returns the handle of a stack, and adds the frames of it that are not in the output yet.
    fn intern_stack(&mut self, stack: StackId) -> Option<StackHandle> {
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
                pseudo_frames::UNMANAGED | pseudo_frames::BLOCKED | pseudo_frames::READY => {
                    self.categories.unmanaged
                }
                _ => self.categories.of(self.profile.frames.kind(frame)),
            };
            let label = Frame::Label(self.output.intern_string(name));
            let info = FrameInfo { frame: label, category_pair, flags: FrameFlags::empty() };
            let frame = self.output.intern_frame(self.handle, info);
            below = Some(self.output.intern_stack(self.handle, below, frame));
            if let Some(place) = self.stacks.get_mut(node.index()) {
                *place = below;
            }
        }
        below
    }
}

/// Converts an id; the format has 32 bits for it.
fn saturate_id(id: u64) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX)
}

/// Converts a weight; the format has 32 bits for it.
fn saturate_weight(weight: u64) -> i32 {
    i32::try_from(weight).unwrap_or(i32::MAX)
}

/// Writes a value as JSON, with control characters escaped: a terminal may show it.
fn json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, EscapingFormatter);
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// A compact formatter that escapes control characters.
struct EscapingFormatter;

impl Formatter for EscapingFormatter {
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
