//! Causes in what grows: memory, and what it holds.

use std::collections::BTreeMap;
use std::time::Instant;

use clr_dump::HandleKind;
use linux_proc_stat::ProcessUsage;
use nettrace_export::report::Overview;
use nettrace_export::units::bytes;

use crate::finding::{Confidence, Details, Finding, FindingKind, Number, in_method};
use crate::growth::{Growth, steady, whole};
use crate::memory_counts::{CollectionCount, MemoryCounts};
use crate::of_memory::most_frequent;
use crate::of_recording::{Allocator, MemoryUsers};
use crate::thresholds;

/// Maximum number of collections that are found to grow.
const MAX_COLLECTIONS: usize = 3;

/// Returns the causes in numbers that grow from each reading to the next, in any order. The recording of the
/// same time has the user's methods.
pub(crate) fn findings(
    counts: &[MemoryCounts],
    usage: &[ProcessUsage],
    recording: Option<&Overview>,
) -> Vec<Finding> {
    let readings = Readings { counts, usage, users: MemoryUsers::of(recording) };
    let single = [
        readings.memory_growth(),
        readings.handle_growth(),
        readings.context_growth(),
        readings.timer_growth(),
    ];
    single.into_iter().flatten().chain(readings.collection_growth()).collect()
}

struct Readings<'r> {
    counts: &'r [MemoryCounts],
    usage: &'r [ProcessUsage],
    users: MemoryUsers<'r>,
}

impl Readings<'_> {
    /// The growth of a count in memory.
    fn growth(&self, min: f64, of: impl Fn(&MemoryCounts) -> Option<u64>) -> Option<Growth> {
        let first = self.counts.first()?.at;
        let value = |counts: &MemoryCounts| Some((seconds(first, counts.at), of(counts)? as f64));
        steady(&self.counts.iter().map(value).collect::<Option<Vec<_>>>()?, min)
    }

    /// Memory that grows by more than a session takes, and the part of it that is the managed heap.
    fn memory_growth(&self) -> Option<Finding> {
        let memory = steady(&self.memory()?, 1.0);
        let memory = memory.filter(|memory| memory.number >= thresholds::MEMORY_GROWTH)?;
        let heap = self.heap_growth()?;
        let native = memory.number - heap.max(0.0);
        let rate = |growth: f64| bytes(whole(growth / memory.seconds));
        let numbers = [
            Number::new("growth_bytes_per_second", memory.per_second()),
            Number::new("heap_growth_bytes_per_second", heap / memory.seconds),
        ];
        let resident = bytes(whole(memory.last));
        if native >= thresholds::MEMORY_GROWTH && native >= memory.number / 2.0 {
            let method = self.users.native_memory();
            let place = match &method {
                Some(method) => format!("; {method} allocates or uses it first"),
                None => "; by whom is not known".to_owned(),
            };
            let cause = format!(
                "Native memory grows by {} per second, the managed heap by {}; {resident} in all{place}",
                rate(native),
                rate(heap.max(0.0)),
            );
            return Some(
                likely(FindingKind::NativeGrowth, cause, Details::Machine, numbers).with_method(method),
            );
        }
        // Until a collection has run, memory that is no longer used grows as well.
        let survives = self.users.growth_after_collections()?;
        if survives < memory.number / 4.0 {
            return None;
        }
        let (type_name, method) = self.users.most_allocated()?;
        let cause = format!(
            "Managed memory grows by {} per second, also after collections; {resident} in all; the most allocated is {type_name}{}",
            rate(memory.number),
            in_method(method.as_deref()),
        );
        let finding = likely(FindingKind::MemoryGrowth, cause, Details::Allocations, numbers);
        Some(finding.with_method(method).with_object(Some(type_name)))
    }

    /// The memory of the process by seconds, in bytes: as the kernel counts it, or the runtime.
    fn memory(&self) -> Option<Vec<(f64, f64)>> {
        let Some(first) = self.usage.first() else { return Some(self.users.resident()) };
        let value = |usage: &ProcessUsage| {
            // Pages of files that are read are not the program's.
            Some((seconds(first.at, usage.at), usage.memory?.anonymous? as f64))
        };
        self.usage.iter().map(value).collect()
    }

    /// The growth of the managed heap, in bytes. A program that allocates uses memory that is committed
    /// already.
    fn heap_growth(&self) -> Option<f64> {
        let growth = |first: Option<u64>, last: Option<u64>| Some(last? as f64 - first? as f64);
        match (self.counts, self.usage) {
            ([first, .., last], _) => growth(first.heap_resident, last.heap_resident)
                .or_else(|| growth(first.heap_committed, last.heap_committed)),
            (_, []) => self.users.heap_growth(),
            _ => None,
        }
    }

    /// The collections in static fields that grow fastest.
    fn collection_growth(&self) -> Vec<Finding> {
        let last = self.counts.last().map_or(&[][..], |counts| &counts.collections);
        let growth = |collection: &CollectionCount| {
            let same = |counts: &MemoryCounts| {
                let mut all = counts.collections.iter();
                all.find(|other| other.holder == collection.holder).map(|other| other.count)
            };
            self.growth(thresholds::COLLECTION_GROWTH, same)
        };
        let growing = last.iter().filter_map(|collection| Some((collection, growth(collection)?)));
        let mut growing: Vec<_> = growing.collect();
        growing.sort_by(|(_, one), (_, other)| other.number.total_cmp(&one.number));
        growing.truncate(MAX_COLLECTIONS);
        growing.into_iter().map(|(collection, growth)| self.growing_collection(collection, growth)).collect()
    }

    fn growing_collection(&self, collection: &CollectionCount, growth: Growth) -> Finding {
        let CollectionCount { holder, type_name, .. } = collection;
        let (class, types) = (holder.split('.').next(), element_types(type_name));
        let method = self.users.allocator(&Allocator { class, types: &types });
        let place =
            method.as_deref().map_or_else(String::new, |method| format!("; {method} allocates for it"));
        let cause = format!("{type_name} in {holder} grows: {}{place}", growth.in_words());
        let numbers = numbers(growth, "elements");
        let finding = likely(FindingKind::CollectionGrowth, cause, Details::Heap, numbers);
        finding.with_method(method).with_object(Some(type_name.clone()))
    }

    /// Handles that hold objects in the heap, most of all those that keep them from moving.
    fn handle_growth(&self) -> Option<Finding> {
        let kinds = [HandleKind::PINNED, HandleKind::STRONG, HandleKind::REF_COUNTED];
        let growing = kinds.into_iter().filter_map(|kind| {
            let number = |counts: &MemoryCounts| Some(counts.handles.get(&kind).copied().unwrap_or_default());
            Some((kind, self.growth(thresholds::HANDLE_GROWTH, number)?))
        });
        let (kind, growth) = growing.max_by(|(_, one), (_, other)| one.number.total_cmp(&other.number))?;
        let name = kind.name().unwrap_or("other");
        let (first, last) = (self.counts.first()?, self.counts.last()?);
        let grown = grown(&first.pinned_types, &last.pinned_types).filter(|_| kind == HandleKind::PINNED);
        let types: Vec<_> = grown.into_iter().collect();
        let method = self.users.allocator(&Allocator { class: None, types: &types });
        let of = types.first().map_or_else(String::new, |of| format!(", most of them of {of}"));
        let place = if types.is_empty() { None } else { method };
        let allocates =
            place.as_deref().map_or_else(String::new, |method| format!("; {method} allocates these objects"));
        let cause = format!("The number of {name} handles grows: {}{of}{allocates}", growth.in_words());
        let finding = likely(FindingKind::HandleGrowth, cause, Details::Heap, numbers(growth, "handles"));
        Some(finding.with_method(place).with_object(types.into_iter().next()))
    }

    /// Load contexts that stay: a program that unloads them has begun to.
    fn context_growth(&self) -> Option<Finding> {
        let growth = self.growth(thresholds::GROWTH_PER_SECOND, |counts| counts.load_contexts)?;
        let method = self.users.loader();
        let cause = format!(
            "The number of load contexts of assemblies grows: {}{}",
            growth.in_words(),
            method.as_deref().map_or_else(String::new, |method| format!(", made in {method}")),
        );
        let finding = likely(FindingKind::ContextGrowth, cause, Details::Heap, numbers(growth, "contexts"));
        Some(finding.with_method(method))
    }

    /// Timers that are neither disposed nor done.
    fn timer_growth(&self) -> Option<Finding> {
        let min = thresholds::TIMER_GROWTH;
        let is_in_memory = self.counts.first().is_some_and(|counts| counts.timers.is_some());
        let growth = if is_in_memory {
            self.growth(min, |counts| counts.timers)?
        } else {
            steady(&self.users.active_timers(), min)?
        };
        let types = ["TimerQueueTimer", "TimerHolder", "Timer"].map(str::to_owned);
        let callbacks = self.counts.last().map_or(&[][..], |counts| &counts.timer_methods);
        let callback = most_frequent(callbacks).map(|(method, _)| method.to_owned());
        let calls = callback.as_deref().map_or_else(String::new, |method| format!("; they call {method}"));
        let method = self.users.allocator(&Allocator { class: None, types: &types });
        let cause = format!(
            "The number of timers grows: {}{}{calls}",
            growth.in_words(),
            method.as_deref().map_or_else(String::new, |method| format!(", made in {method}")),
        );
        let finding = likely(FindingKind::TimerGrowth, cause, Details::Heap, numbers(growth, "timers"));
        Some(finding.with_method(method.or(callback)))
    }
}

/// A finding of growth. A program at its start, and one that fills a cache, grow too.
fn likely(kind: FindingKind, cause: String, details: Details, numbers: [Number; 2]) -> Finding {
    // It takes no time now.
    Finding::new(kind, thresholds::GROWTH_COST, cause, details)
        .with_numbers(numbers)
        .with_confidence(Confidence::Likely)
}

fn numbers(growth: Growth, name: &'static str) -> [Number; 2] {
    [Number::new("growth_per_second", growth.per_second()), Number::new(name, growth.last)]
}

fn seconds(first: Instant, at: Instant) -> f64 {
    at.saturating_duration_since(first).as_secs_f64()
}

/// The type that has grown most.
fn grown(first: &BTreeMap<String, u64>, last: &BTreeMap<String, u64>) -> Option<String> {
    let growth = |(name, count): (&String, &u64)| {
        let growth = count.saturating_sub(first.get(name).copied().unwrap_or_default());
        (growth > 0).then(|| (growth, name.clone()))
    };
    last.iter().filter_map(growth).max().map(|(_, name)| name)
}

/// The types of the elements of a collection that are not C#'s own.
fn element_types(collection: &str) -> Vec<String> {
    let arguments = collection.split_once('<').map_or("", |(_, arguments)| arguments);
    let names = arguments.split(['<', '>', ',', ' ', '[', ']', '(', ')', '?']);
    let is_named = |name: &&str| name.starts_with(|first: char| !first.is_lowercase());
    names.filter(is_named).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
