//! Runs from the events of recordings.

use std::collections::BTreeMap;
use std::time::Duration;

use clr_activity::{Span, SpanEnd, SpanRole, Spans};
use clr_events::{ClrEvent, CodeMap, KernelSampleKind, ThreadState, sets};
use hashbrown::HashMap;
use nettrace::{Event, MetadataMap, RelativeTime, ThreadId, TraceInfo};

use crate::decode::decode;
use crate::diff::call_tree::{CallTree, least_weight};
use crate::diff::run::{KERNEL, Run};
use crate::diff::series::{Entry, SeriesTable};
use crate::diff::subject::{Kind, Subject};
use crate::profile::builder::ProfileBuilder;
use crate::profile::frame::FrameId;
use crate::profile::frame_kind::FrameKind;
use crate::profile::kernel_times::{KernelTimes, ThreadUse};
use crate::profile::metric::Metric;
use crate::profile::options::{NameForm, Options};
use crate::profile::selection::Selection;
use crate::profile::track::Track;
use crate::profile::{Profile, StackTotal};
use crate::report::span_name::row_name;
use crate::report::type_table::csharp_type;
use crate::report::{Collections, WaitingMethod, allocating_methods, blocked_methods, nanoseconds, top};

/// Settings of a run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The part of the recording that is compared.
    pub selection: Selection,
    /// The kernel's account of the threads: see [`ProfileBuilder::with_kernel_times`].
    pub kernel_times: Option<KernelTimes>,
}

impl RunOptions {
    /// Creates a builder for this part of a recording.
    pub fn new(selection: Selection) -> Self {
        Self { selection, kernel_times: None }
    }

    /// With the kernel's account of threads.
    #[must_use]
    pub fn with_kernel_times(self, kernel_times: Option<KernelTimes>) -> Self {
        Self { kernel_times, ..self }
    }
}

/// Gathers a [`Run`] from all events of a recording, in time order.
///
/// # Memory
/// That of two [profiles](ProfileBuilder) with tracks and of [`Spans`], and sums of 64 slices of time for at
/// most 8,192 methods or types and 512 routes of each kind.
#[derive(Debug)]
pub struct RunBuilder {
    selection: Selection,
    profile: ProfileBuilder,
    allocations: ProfileBuilder,
    spans: Spans,
    collections: Collections,
    /// The begin of waits for locks that have not ended.
    waits: HashMap<(Option<u64>, ThreadId), RelativeTime>,
    series: SeriesTable,
    /// Allocations that .NET 10 sampled, used in the absence of allocation ticks.
    sampled_allocations: SeriesTable,
    csharp: BTreeMap<String, String>,
    event_types: MetadataMap<EventType>,
    /// True if the kernel's sampler recorded the time that threads ran.
    has_kernel_samples: bool,
    end: RelativeTime,
}

/// The type of an event, from its metadata.
#[derive(Debug, Clone, Copy)]
struct EventType {
    /// True for events of the rundown, which follows the end of the session.
    is_rundown: bool,
    /// True if they are the kernel's samples of running threads.
    is_kernel_sample: bool,
}

/// The provider of the lists of code at the end of a session.
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Maximum number of waits for locks that have not ended.
const MAX_WAITS: usize = 1 << 16;

impl RunBuilder {
    /// Ready for the first event of a recording with this header.
    pub fn new(options: RunOptions, info: Option<&TraceInfo>) -> Self {
        let start = options.selection.from.unwrap_or(RelativeTime::START).max(RelativeTime::START);
        let profile_of = |metric| {
            let profile_options = Options::new(metric)
                .with_kinds(false)
                .with_idle(false)
                .with_names(NameForm::CSharp)
                .with_selection(options.selection.clone());
            ProfileBuilder::new(profile_options)
        };
        // CPU time is judged, blocked time apart.
        let mut profile = profile_of(Metric::of_work_and_waits(info));
        if let Some(times) = options.kernel_times {
            profile = profile.with_kernel_times(times);
        }
        Self {
            profile,
            allocations: profile_of(Metric::Alloc),
            spans: Spans::default(),
            collections: Collections::default().with_start(start),
            waits: HashMap::new(),
            series: SeriesTable::new(start),
            sampled_allocations: SeriesTable::new(start),
            csharp: BTreeMap::new(),
            event_types: MetadataMap::new(),
            has_kernel_samples: false,
            end: start,
            selection: options.selection,
        }
    }

    /// The code that is known so far, of each metric with stacks. Add code from other sources than the
    /// recording to all of them before its first event.
    pub fn code_maps_mut(&mut self) -> impl Iterator<Item = &mut CodeMap> {
        [&mut self.profile, &mut self.allocations].into_iter().map(ProfileBuilder::code_mut)
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.profile.add(event);
        self.allocations.add(event);
        if !self.selection.contains(event) {
            return;
        }
        let event_type = self.event_types.get_or_insert_with(event.metadata_index(), || EventType {
            is_rundown: event.metadata().provider() == RUNDOWN,
            is_kernel_sample: KernelSampleKind::of(event.metadata()) == Some(KernelSampleKind::OnCpu),
        });
        if !event_type.is_rundown {
            self.end = self.end.max(event.relative_time());
        }
        self.has_kernel_samples |= event_type.is_kernel_sample;
        let series = &mut self.series;
        self.spans.add(event, |span| add_span(series, &span));
        self.collections.add(event);
        let wanted = [&sets::ALLOCATION_TICKS, &sets::EXCEPTIONS, &sets::CONTENTION];
        if let Some(view) = wanted.into_iter().find_map(|set| decode(event, set)) {
            self.add_decoded(event, &view);
        }
    }

    fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let time = event.relative_time();
        let one = |bytes: u64| Entry { amount: float(bytes), count: 1.0, kernel: 0.0, duration: None };
        let mut type_of = |name: String, series: &mut SeriesTable, kind, amount| {
            series.add(kind, &name, time, amount);
            if self.csharp.len() < MAX_NAMES && !self.csharp.contains_key(&name) {
                let csharp = csharp_type(&name);
                self.csharp.insert(name, csharp);
            }
        };
        match view {
            ClrEvent::AllocationTick(tick) => {
                let amount = one(tick.allocation_amount64);
                type_of(tick.type_name.to_string(), &mut self.series, Kind::Allocations, amount);
            }
            ClrEvent::AllocationSampled(sampled) => {
                let amount = one(sampled.estimated_bytes());
                let series = &mut self.sampled_allocations;
                type_of(sampled.type_name.to_string(), series, Kind::Allocations, amount);
            }
            ClrEvent::ExceptionStart(thrown) => {
                type_of(thrown.exception_type.to_string(), &mut self.series, Kind::Exceptions, one(1));
            }
            ClrEvent::ContentionStart(_) if self.waits.len() < MAX_WAITS => {
                self.waits.insert((event.process_id(), event.thread_id()), time);
            }
            ClrEvent::ContentionStop(stop) => {
                let start = self.waits.remove(&(event.process_id(), event.thread_id()));
                let waited = stop.duration().or_else(|| start.map(|start| time.abs_diff(start)));
                if let Some(waited) = waited {
                    self.series.add(Kind::LockWaits, "", time, of_duration(waited));
                }
            }
            _ => {}
        }
    }

    /// Returns the run of the added events; `info` is the header, as it is at the end of the recording.
    pub fn finish(mut self, info: Option<&TraceInfo>) -> Run {
        let start = self.selection.from.unwrap_or(RelativeTime::START).max(RelativeTime::START);
        let end = self.selection.to.map_or(self.end, |to| to.min(self.end)).max(start);
        let Self { series, spans, collections, .. } = &mut self;
        spans.finish(|span| add_span(series, &span));
        for pause in std::mem::take(collections).finish().pause_list {
            series.add(Kind::GcPauses, "", pause.start, of_duration(pause.duration));
        }
        let is_whole = self.selection.threads.is_empty() && self.has_kernel_samples;
        let (account, queued) = match (self.profile.kernel_times_mut(), info) {
            (Some(times), Some(info)) => {
                let account = is_whole.then(|| times.process_time(info, start, end)).flatten();
                (account, queued(&times.in_range(info, start, end)))
            }
            _ => (None, None),
        };
        let (Ok((mut profile, _)), Ok((mut allocations, _))) =
            (self.profile.finish(info), self.allocations.finish(info))
        else {
            unreachable!("the order is that of time")
        };
        let stacks = add_profile(&mut self.series, &mut self.csharp, &mut profile, account, end);
        add_allocating_methods(&mut self.series, &mut self.csharp, &mut allocations, end);
        // All tables have slices of one length.
        self.series.slice_of(end);
        self.sampled_allocations.slice_of(end);
        let slice = self.series.slice();
        let mut cells = self.series.into_cells();
        if !cells.contains_key(&Subject::all(Kind::Allocations)) {
            cells.extend(self.sampled_allocations.into_cells());
        }
        self.csharp.retain(|name, csharp| name != csharp);
        let duration = end.saturating_duration_since(start);
        Run {
            duration,
            cpu_unit: profile.measure.unit,
            queued,
            seconds: seconds(duration, slice),
            cells,
            stacks,
            stack_kind: Kind::Cpu,
            csharp: self.csharp,
        }
    }
}

/// Maximum number of C# names of types.
const MAX_NAMES: usize = 1 << 14;

#[allow(clippy::cast_precision_loss, reason = "weights have fewer digits")]
const fn float(number: u64) -> f64 {
    number as f64
}

fn of_duration(duration: Duration) -> Entry {
    let nanoseconds = nanoseconds::saturating(duration);
    Entry { amount: float(nanoseconds), count: 1.0, kernel: 0.0, duration: Some(nanoseconds) }
}

/// Returns the part of the time in which threads could run that they spent without a processor.
fn queued(threads: &[ThreadUse]) -> Option<f64> {
    let sum = |of: fn(&ThreadUse) -> u64| threads.iter().map(|thread| float(of(thread))).sum::<f64>();
    let (ran, queued) = (sum(|thread| thread.ran), sum(|thread| thread.queued));
    (ran > 0.0).then(|| queued / (ran + queued))
}

/// The seconds of each slice of a duration.
fn seconds(duration: Duration, slice: Duration) -> Vec<f64> {
    let mut rest = duration;
    let mut seconds = Vec::new();
    while !rest.is_zero() && !slice.is_zero() {
        let part = rest.min(slice);
        seconds.push(part.as_secs_f64());
        rest -= part;
    }
    seconds
}

/// Adds a span that has ended. Among nested spans of a server the outer one is the request.
fn add_span(series: &mut SeriesTable, span: &Span<'_>) {
    if span.end != SpanEnd::Stopped {
        return;
    }
    let name = row_name(span);
    let operation = format!("{}/{}", span.provider, span.task);
    let (kind, name) = match span.role {
        SpanRole::Server if !span.is_request() => return,
        SpanRole::Server => (Kind::Requests, if name.is_empty() { operation } else { name.into_owned() }),
        SpanRole::Outgoing => (Kind::Calls, if name.is_empty() { operation } else { name.into_owned() }),
        _ => (Kind::Operations, format!("{operation} {name}").trim_end().to_owned()),
    };
    let end = RelativeTime::after_start(span.start.since_start().saturating_add(span.duration));
    series.add(kind, &name, end, of_duration(span.duration));
}

/// Adds the time of methods: the stacks of each slice are added up as in a whole profile. `account`
/// is the processor time of the process, if samples are the kernel's.
fn add_profile(
    series: &mut SeriesTable,
    csharp: &mut BTreeMap<String, String>,
    profile: &mut Profile,
    account: Option<u64>,
    end: RelativeTime,
) -> CallTree {
    let mut weights = weights_by_slice(series, profile, end);
    // If a sampler may not see the kernel, the account has time that the samples lack.
    let sees_kernel = || {
        let mut frames = profile.frames.iter();
        frames.any(|(frame, _)| profile.frames.kind(frame) == KERNEL)
    };
    if let Some(account) = account.filter(|_| sees_kernel()) {
        scale_to(account, profile, &mut weights);
    }
    let typical = typical_weight(profile);
    let amount = |weight: u64, kernel: u64| Entry {
        amount: float(weight),
        count: float(weight) / typical,
        kernel: float(kernel),
        duration: None,
    };
    let is_kernel = |profile: &Profile, total: &StackTotal| {
        let leaf = total.stack.and_then(|stack| profile.stacks.leaf(stack));
        total.state == ThreadState::Working && leaf.is_some_and(|leaf| profile.frames.kind(leaf) == KERNEL)
    };
    let is_kernel: Vec<bool> = profile.stack_totals.iter().map(|total| is_kernel(profile, total)).collect();
    let mut weights: Vec<_> = weights.into_iter().collect();
    weights.sort_unstable();
    let (mut tree, nodes) = call_tree(profile);
    tree.typical = typical;
    for of_slice in weights.chunk_by(|a, b| a.0.0 == b.0.0) {
        let Some(((slice, _), _)) = of_slice.first().copied() else { continue };
        let of_kernel = || of_slice.iter().filter(|((_, total), _)| is_kernel.get(*total) == Some(&true));
        let all_kernel = of_kernel().map(|(_, weight)| *weight).fold(0, u64::saturating_add);
        // The part of each method, with its callees, that was in the kernel.
        let mut kernel: HashMap<FrameId, u64> = HashMap::new();
        if all_kernel > 0 {
            set_weights(profile, of_kernel());
            kernel.extend(top(profile).into_iter().filter_map(|row| Some((row.frame_id?, row.inclusive))));
        }
        set_weights(profile, of_slice.iter());
        for ((_, total), weight) in of_slice {
            let Some(total) = profile.stack_totals.get(*total) else { continue };
            if let Some(node) = total.stack.filter(|_| total.state == ThreadState::Working) {
                tree.add(nodes.get(node.index()).copied().unwrap_or(0), slice, float(*weight));
            }
        }
        let works = |total: &&StackTotal| total.state == ThreadState::Working && total.stack.is_some();
        let all = profile.stack_totals.iter().filter(works).map(|total| total.weight);
        let all = all.fold(0, u64::saturating_add);
        series.add_in(Subject::all(Kind::Cpu), slice, amount(all, all_kernel));
        for row in top(profile) {
            let is_code = matches!(row.kind, FrameKind::Code(_)) && !row.is_unnamed;
            let Some(frame) = row.frame_id.filter(|_| is_code && row.inclusive > row.blocked) else {
                continue;
            };
            let name = profile.frames.full_name(frame);
            let mut add = |kind, weight: u64, kernel| {
                if weight > 0 {
                    series.add_in(Subject::new(kind, name.to_owned().into()), slice, amount(weight, kernel));
                }
            };
            let exclusive = row.exclusive.saturating_sub(row.exclusive_blocked);
            add(Kind::Cpu, exclusive, if row.kind == KERNEL { exclusive } else { 0 });
            let kernel = kernel.get(&frame).copied().unwrap_or(0);
            add(Kind::CpuInclusive, row.inclusive.saturating_sub(row.blocked), kernel);
            if !csharp.contains_key(name) {
                csharp.insert(name.to_owned(), row.frame);
            }
        }
        for WaitingMethod { method: frame, weight, .. } in blocked_methods(profile) {
            let name = profile.frames.full_name(frame);
            series.add_in(Subject::all(Kind::Blocked), slice, amount(weight, 0));
            series.add_in(Subject::new(Kind::Blocked, name.to_owned().into()), slice, amount(weight, 0));
            if !csharp.contains_key(name) {
                csharp.insert(name.to_owned(), profile.frames.name(frame).to_owned());
            }
        }
    }
    tree
}

/// Adds allocated bytes by the method that allocated them.
fn add_allocating_methods(
    series: &mut SeriesTable,
    csharp: &mut BTreeMap<String, String>,
    profile: &mut Profile,
    end: RelativeTime,
) {
    let mut weights: Vec<_> = weights_by_slice(series, profile, end).into_iter().collect();
    weights.sort_unstable();
    let typical = typical_weight(profile);
    for of_slice in weights.chunk_by(|a, b| a.0.0 == b.0.0) {
        let Some(((slice, _), _)) = of_slice.first().copied() else { continue };
        set_weights(profile, of_slice.iter());
        for WaitingMethod { method: frame, weight: bytes, .. } in allocating_methods(profile) {
            let count = float(bytes) / typical;
            let entry = Entry { amount: float(bytes), count, kernel: 0.0, duration: None };
            let name = profile.frames.full_name(frame);
            series.add_in(Subject::all(Kind::AllocatingMethods), slice, entry);
            series.add_in(Subject::new(Kind::AllocatingMethods, name.to_owned().into()), slice, entry);
            if !csharp.contains_key(name) {
                csharp.insert(name.to_owned(), profile.frames.name(frame).to_owned());
            }
        }
    }
}

/// Returns the weights of a profile by slice of time and index of the total.
fn weights_by_slice(
    series: &mut SeriesTable,
    profile: &Profile,
    end: RelativeTime,
) -> HashMap<(usize, usize), u64> {
    let is_time = profile.measure.unit.is_time();
    series.slice_of(end);
    let mut weights: HashMap<(usize, usize), u64> = HashMap::new();
    for span in profile.threads.iter().filter_map(|thread| thread.track.as_ref()).flat_map(Track::iter) {
        let (mut at, mut rest) = (span.start, span.weight);
        while rest > 0 {
            let slice = series.slice_of(at.min(end));
            let part = if is_time { rest.min(series.until_next(at)) } else { rest };
            let sum = weights.entry((slice, span.total.index())).or_default();
            *sum = sum.saturating_add(part);
            rest -= part;
            at = RelativeTime::from_nanos(at.as_nanos().saturating_add_unsigned(part));
        }
    }
    weights
}

/// Returns the mean weight of a sample, at least 1.
fn typical_weight(profile: &Profile) -> f64 {
    let samples = profile.samples();
    if samples > 0 { (float(profile.total()) / float(samples)).max(1.0) } else { 1.0 }
}

/// Sets the weights of these totals, and 0 for all others.
fn set_weights<'a>(profile: &mut Profile, weights: impl Iterator<Item = &'a ((usize, usize), u64)>) {
    profile.stack_totals.iter_mut().for_each(|total| total.weight = 0);
    for ((_, total), weight) in weights {
        if let Some(total) = profile.stack_totals.get_mut(*total) {
            total.weight = *weight;
        }
    }
}

/// Scales the time of working threads to the kernel's account of it. Each sample stands for one period of the
/// sampler's clock, and the clock misses some where a hypervisor takes the processor away: the number of
/// samples for the same time differs by a tenth from run to run.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and the conversion saturates"
)]
fn scale_to(account: u64, profile: &Profile, weights: &mut HashMap<(usize, usize), u64>) {
    let works = |total: usize| {
        profile.stack_totals.get(total).is_some_and(|total| total.state == ThreadState::Working)
    };
    let sampled = weights.iter().filter(|((_, total), _)| works(*total)).map(|(_, weight)| *weight);
    let sampled = sampled.fold(0, u64::saturating_add);
    let factor = float(account) / float(sampled);
    // Beyond that, the samples do not match the account.
    if !(0.5..=2.0).contains(&factor) {
        return;
    }
    for ((_, total), weight) in weights {
        if works(*total) {
            *weight = (float(*weight) * factor).round() as u64;
        }
    }
}

/// Returns the tree of the working stacks of a profile, and the node of each stack: its own, or that of a
/// caller if it weighs too little.
fn call_tree(profile: &Profile) -> (CallTree, Vec<u32>) {
    let mut inclusive = profile.exclusive_where(|total| total.state == ThreadState::Working);
    for stack in profile.stacks.stacks().rev() {
        let weight = inclusive.get(stack.index()).copied().unwrap_or(0);
        let caller = profile.stacks.caller(stack).and_then(|caller| inclusive.get_mut(caller.index()));
        if let Some(sum) = caller {
            *sum = sum.saturating_add(weight);
        }
    }
    let least = least_weight(&inclusive);
    let mut tree = CallTree::default();
    let mut nodes = vec![0u32; inclusive.len()];
    for stack in profile.stacks.stacks() {
        let caller = profile.stacks.caller(stack).and_then(|caller| nodes.get(caller.index()).copied());
        let mut node = caller.unwrap_or(0);
        if inclusive.get(stack.index()).is_some_and(|weight| *weight >= least) {
            node = tree.child(node, profile.leaf_name(stack));
        }
        if let Some(place) = nodes.get_mut(stack.index()) {
            *place = node;
        }
    }
    (tree, nodes)
}
