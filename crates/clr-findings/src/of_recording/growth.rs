//! Methods that make what grows, by a recording.

use std::collections::BTreeMap;

use clr_events::code::CodeOrigin;
use nettrace_export::report::{GaugeValues, Overview, RuntimeGaugeValues, TypeRow};
use nettrace_export::units::{count, share};
use nettrace_export::{FrameId, FrameKind};

use super::{OfRecording, caller};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number, in_method};
use crate::growth::{steady, whole};
use crate::names::short_names;
use crate::thresholds;

/// The beginnings of methods that load assemblies.
const LOADS: [&str; 3] = [
    "System.Runtime.Loader.AssemblyLoadContext",
    "System.Reflection.Assembly.Load",
    "System.Reflection.RuntimeAssembly.",
];
/// Methods that make methods.
const EMIT: &str = "System.Reflection.Emit.";
/// The beginnings of functions that allocate native memory.
const NATIVE_ALLOCATIONS: [&str; 8] = [
    "System.Runtime.InteropServices.Marshal.Alloc",
    "System.Runtime.InteropServices.Marshal.ReAlloc",
    "System.Runtime.InteropServices.NativeMemory.",
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "mmap",
];
/// The parts of a recording that are compared.
const PARTS: u32 = 3;

/// The allocations that are searched for.
pub(crate) struct Allocator<'a> {
    /// The class that holds the objects, with methods that allocate them.
    pub(crate) class: Option<&'a str>,
    /// The types, without namespaces.
    pub(crate) types: &'a [String],
}

/// The methods that use memory, by a recording if there is one.
pub(crate) struct MemoryUsers<'o>(Option<OfRecording<'o>>);

impl<'o> MemoryUsers<'o> {
    pub(crate) fn of(recording: Option<&'o Overview>) -> Self {
        Self(recording.and_then(OfRecording::new))
    }

    /// The user's method that allocates: of a class, or some types, or most of all.
    pub(crate) fn allocator(&self, wanted: &Allocator<'_>) -> Option<String> {
        let recording = self.0.as_ref()?;
        let allocations = &recording.overview.allocations;
        let most = |is_wanted: &dyn Fn(&TypeRow, &str) -> bool| {
            let mut methods = BTreeMap::<String, u64>::new();
            for row in &allocations.types {
                let Some(method) = caller(row.from.as_ref()) else { continue };
                if is_wanted(row, &method) {
                    let sum = methods.entry(method).or_default();
                    *sum = sum.saturating_add(row.bytes);
                }
            }
            methods.into_iter().max_by_key(|(_, bytes)| *bytes)
        };
        let is_of_class = |_: &TypeRow, method: &str| {
            wanted
                .class
                .is_some_and(|class| method.strip_prefix(class).is_some_and(|rest| rest.starts_with('.')))
        };
        let is_of_type = |row: &TypeRow, _: &str| wanted.types.contains(&short_names(&row.csharp));
        let of_all = || {
            let most = most(&|_, _| true);
            most.filter(|(_, bytes)| share(*bytes, allocations.bytes) >= thresholds::MAIN_ALLOCATOR)
        };
        let found = most(&is_of_class).or_else(|| most(&is_of_type)).or_else(of_all);
        found.map(|(method, _)| method)
    }

    /// The type of which most bytes were allocated, and the user's method.
    pub(crate) fn most_allocated(&self) -> Option<(String, Option<String>)> {
        let row = self.0.as_ref()?.overview.allocations.types.first()?;
        Some((clr_events::escape_controls(&row.csharp).into_owned(), caller(row.from.as_ref())))
    }

    /// The user's method that allocated most bytes of large objects.
    pub(crate) fn large_allocator(&self) -> Option<String> {
        let types = self.0.as_ref()?.overview.allocations.types.iter();
        let row = types.filter(|row| row.large_bytes > 0).max_by_key(|row| row.large_bytes)?;
        caller(row.from.as_ref())
    }

    /// The growth of the heap from the first to the last collection, in bytes; `None` with less than two.
    pub(crate) fn growth_after_collections(&self) -> Option<f64> {
        let collections = self.0.as_ref()?.overview.gc.collections.iter();
        let sizes: Vec<_> = collections.filter_map(|collection| collection.after_bytes).collect();
        let [first, .., last] = *sizes else { return None };
        Some(last as f64 - first as f64)
    }

    /// The user's method that loads assemblies.
    pub(crate) fn loader(&self) -> Option<String> {
        self.worker(|name| LOADS.iter().any(|load| name.starts_with(load)))
    }

    /// The user's method that allocates native memory, or that has the kernel work most: new pages are its
    /// work.
    pub(crate) fn native_memory(&self) -> Option<String> {
        let allocates = |name: &str| NATIVE_ALLOCATIONS.iter().any(|function| name.starts_with(function));
        let recording = self.0.as_ref()?;
        let frames = &recording.overview.profile.frames;
        let is_kernel = |frame: FrameId| frames.kind(frame) == FrameKind::Code(CodeOrigin::Kernel);
        self.worker(allocates).or_else(|| recording.part(is_kernel).worker())
    }

    fn worker(&self, is_part: impl Fn(&str) -> bool) -> Option<String> {
        let recording = self.0.as_ref()?;
        let frames = &recording.overview.profile.frames;
        recording.part(|frame| is_part(frames.full_parts(frame).1)).worker()
    }

    /// The numbers of active timers, by seconds.
    pub(crate) fn active_timers(&self) -> Vec<(f64, f64)> {
        self.gauge(|gauges| &gauges.active_timers)
    }

    /// The bytes of the process in RAM, by seconds.
    pub(crate) fn resident(&self) -> Vec<(f64, f64)> {
        in_bytes(self.gauge(|gauges| &gauges.working_set))
    }

    /// The growth of the managed heap, in bytes: of the memory that it has from the system, of which it may
    /// use more and more, or of its objects.
    pub(crate) fn heap_growth(&self) -> Option<f64> {
        let growth = |values: Vec<(f64, f64)>| {
            let [(_, first), .., (_, last)] = *in_bytes(values) else { return None };
            Some(last - first)
        };
        let committed = growth(self.gauge(|gauges| &gauges.heap_committed));
        let objects = growth(self.gauge(|gauges| &gauges.heap_size));
        committed.into_iter().chain(objects).max_by(f64::total_cmp)
    }

    fn gauge(&self, of: impl Fn(&RuntimeGaugeValues) -> &GaugeValues) -> Vec<(f64, f64)> {
        let Some(recording) = &self.0 else { return Vec::new() };
        let values = of(&recording.overview.gauges).iter();
        values.map(|(time, value)| (time.as_nanos() as f64 / 1e9, *value)).collect()
    }
}

/// Values in megabytes as bytes.
fn in_bytes(values: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    values.into_iter().map(|(time, value)| (time, value * 1e6)).collect()
}

impl OfRecording<'_> {
    /// Methods that are made at run time all the time, and not unloaded.
    pub(super) fn dynamic_method_growth(&self) -> Option<Finding> {
        let jit = &self.overview.jit;
        let part = self.overview.duration.checked_div(PARTS).unwrap_or_default();
        let mut values = vec![(0.0, 0.0)];
        for number in 1..=PARTS {
            let end = part.saturating_mul(number);
            let slots = end.as_nanos().checked_div(jit.dynamic.slot.as_nanos()).unwrap_or_default();
            let slots = usize::try_from(slots).unwrap_or(usize::MAX).max(1);
            let is_last = number == PARTS;
            let sums = jit.dynamic.sums.iter().take(if is_last { usize::MAX } else { slots });
            let made = sums.copied().fold(0, u64::saturating_add);
            values.push((end.as_secs_f64(), made as f64));
        }
        let growth = steady(&values, thresholds::GROWTH_PER_SECOND)?;
        let unloaded = jit.unloaded_dynamic as f64;
        if unloaded > growth.number / 2.0 {
            return None;
        }
        let frames = &self.overview.profile.frames;
        let emits = |frame| frames.full_parts(frame).1.starts_with(EMIT);
        let is_jit = |frame| frames.kind(frame) == FrameKind::Code(CodeOrigin::Jit);
        let method = self.part(emits).worker().or_else(|| self.part(is_jit).worker());
        let cause = format!(
            "Methods are made at run time all the time{}: {} in {:.1} s, of which {} were unloaded",
            in_method(method.as_deref()),
            count(growth.count()),
            growth.seconds,
            count(whole(unloaded)),
        );
        Some(
            Finding::new(FindingKind::DynamicMethodGrowth, thresholds::GROWTH_COST, cause, Details::Jit)
                .with_method(method)
                .with_confidence(Confidence::Likely)
                .with_numbers([
                    Number::new("growth_per_second", growth.per_second()),
                    Number::new("unloaded", unloaded),
                ]),
        )
    }
}
