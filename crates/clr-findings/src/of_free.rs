//! Causes in memory that is free, and that the process keeps: in the managed heap, and in that of the C
//! library.

use clr_dump::{Generation, NativeArena, NativeHeap};
use linux_proc_stat::ProcessUsage;
use nettrace_export::report::Overview;
use nettrace_export::units::{bytes, count, counted, share};

use crate::finding::{Details, Finding, FindingKind, Number};
use crate::memory_counts::{CollectionCount, FragmentedGeneration, MemoryCounts};
use crate::of_recording::{Allocator, MemoryUsers};
use crate::thresholds;

/// Minimum number of bytes that an arena keeps to be counted.
const OF_ARENA: u64 = 1 << 20;
/// The types of elements that stand for native memory, and for pinned objects.
const NATIVE_TYPES: [&str; 3] = ["IntPtr", "nint", "SafeHandle"];
const HANDLE_TYPES: [&str; 2] = ["GCHandle", "MemoryHandle"];

/// Returns the heaps of which most is free in all readings, in any order. The recording of the same time has
/// the user's methods.
pub(crate) fn findings(
    counts: &[MemoryCounts],
    usage: &[ProcessUsage],
    recording: Option<&Overview>,
) -> Vec<Finding> {
    let dump = counts.last().and_then(|counts| counts.dump_bytes);
    let resident = usage.last().and_then(|usage| usage.memory?.resident);
    let of_collections = recording.and_then(after_collections).filter(|_| counts.is_empty());
    let heap = of_collections.as_ref().map(|of| of.heap);
    let Some(all) = dump.or(resident).or(heap) else { return Vec::new() };
    let readings = Readings { counts, all, is_dump: dump.is_some(), users: MemoryUsers::of(recording) };
    let of_collections = of_collections.into_iter().flat_map(|of| of.generations);
    let of_collections = of_collections.filter_map(|of| readings.generation(&of, of.generation.free?));
    readings.native_heap().into_iter().chain(readings.generations()).chain(of_collections).collect()
}

/// The heap after the collections of the oldest generation in a recording.
struct AfterCollections {
    /// Its size.
    heap: u64,
    /// The generations that are collected with the oldest, with the least free memory of all these times.
    generations: Vec<FragmentedGeneration>,
}

fn after_collections(recording: &Overview) -> Option<AfterCollections> {
    const OLDEST: usize = 2;
    let full = || recording.gc.collections.iter().filter(|of| of.generation as usize >= OLDEST);
    let sizes =
        full().filter_map(|of| of.generations_bytes.filter(|_| of.free_bytes.is_some())).next_back()?;
    let least = |number: usize| full().filter_map(|of| of.free_bytes?.get(number).copied()).min();
    let fragmented = |(number, bytes): (usize, &u64)| {
        let mut generation = Generation::default();
        (generation.number, generation.bytes, generation.free) = (number as u64, *bytes, least(number));
        FragmentedGeneration { generation, pinned: None, type_name: None }
    };
    Some(AfterCollections {
        heap: sizes.iter().copied().fold(0, u64::saturating_add),
        generations: sizes.iter().enumerate().skip(OLDEST).map(fragmented).collect(),
    })
}

/// Returns the native heap by which it is judged: of the readings that were not cut short, or of all without
/// these, the one with the least free memory. What is used again from time to time is not free.
fn native_heap_of(counts: &[MemoryCounts]) -> Option<&NativeHeap> {
    let heaps = counts.iter().filter_map(|counts| counts.native_heap.as_ref()?.as_ref().ok());
    heaps.min_by_key(|heap| (unread(heap) >= OF_ARENA, heap.held()))
}

fn unread(heap: &NativeHeap) -> u64 {
    heap.sum(|arena| arena.unread)
}

/// Returns the part of the native heap of which it is not known what is free, if it is large enough for a
/// cause.
pub(crate) fn missing(counts: &[MemoryCounts]) -> Option<String> {
    let unread = native_heap_of(counts).map(unread)?;
    (unread >= thresholds::MIN_FREE_BYTES)
        .then(|| format!("{} of the native heap: there was no time to read them", bytes(unread)))
}

struct Readings<'r> {
    counts: &'r [MemoryCounts],
    /// The resident memory of the process, or the memory in its core dump.
    all: u64,
    is_dump: bool,
    users: MemoryUsers<'r>,
}

impl Readings<'_> {
    /// Returns true if free memory is most of a heap, and much of the process's.
    fn is_much(&self, free: u64, heap: u64) -> bool {
        free >= thresholds::MIN_FREE_BYTES
            && share(free, heap) >= thresholds::FREE_SHARE
            && share(free, self.all) >= thresholds::FREE_OF_RESIDENT
    }

    fn native_heap(&self) -> Option<Finding> {
        let heap = native_heap_of(self.counts)?;
        let (free, all) = (heap.held(), heap.resident());
        if !self.is_much(free, all) {
            return None;
        }
        let method = self.users.native_memory();
        let place = method
            .as_deref()
            .map_or_else(String::new, |method| format!("; {method} allocates native memory"));
        let holder = self.holder(&NATIVE_TYPES);
        let cause = format!(
            "{} of the {} of the native heap are free and not given back to the system; {} {}{place}",
            bytes(free),
            bytes(all),
            bytes(self.all),
            if self.is_dump { "in the dump" } else { "resident in all" },
        );
        let unread = unread(heap);
        let unread = (unread >= OF_ARENA).then(|| format!("{} of it were not read", bytes(unread)));
        Some(
            Finding::new(FindingKind::NativeFree, thresholds::GROWTH_COST, cause, Details::Heap)
                .with_method(method)
                .with_evidence(holder.into_iter().chain([keeps(heap)]).chain(unread))
                .with_numbers([
                    Number::new("free_bytes", free as f64),
                    Number::new("heap_bytes", all as f64),
                    Number::new("arenas", heap.arenas.len() as f64),
                ]),
        )
    }

    /// The largest collection of the user's code with elements of a type.
    fn holder(&self, types: &[&str]) -> Option<String> {
        let has_type = |of: &&CollectionCount| {
            let (_, elements) = of.type_name.split_once('<').unwrap_or_default();
            types.iter().any(|name| elements.split([',', '>']).any(|element| element.trim() == *name))
        };
        let collections = self.counts.last()?.collections.iter().filter(has_type);
        let CollectionCount { holder, type_name, count } = collections.max_by_key(|of| of.count)?;
        Some(format!("{type_name} in {holder} has {}", counted(*count, "element", "elements")))
    }

    fn generations(&self) -> Vec<Finding> {
        let last = self.counts.last().map_or(&[][..], |counts| &counts.fragmented);
        last.iter().filter_map(|of| self.generation(of, self.least_free(of.generation.number)?)).collect()
    }

    /// The least free memory of a generation at all times.
    fn least_free(&self, number: u64) -> Option<u64> {
        let free_in = |counts: &MemoryCounts| {
            let mut all = counts.fragmented.iter().map(|of| of.generation);
            all.find(|of| of.number == number).and_then(|of| of.free).unwrap_or_default()
        };
        self.counts.iter().map(free_in).min()
    }

    fn generation(&self, fragmented: &FragmentedGeneration, free: u64) -> Option<Finding> {
        let generation = fragmented.generation;
        if !self.is_much(free, generation.bytes) {
            return None;
        }
        let pinned = fragmented.pinned.unwrap_or_default();
        let are_pinned = !generation.is_large() && pinned >= thresholds::MIN_PINNED;
        let types: Vec<_> = fragmented.type_name.iter().cloned().collect();
        let method = if generation.is_large() {
            self.users.large_allocator()
        } else if are_pinned {
            self.users.allocator(&Allocator { class: None, types: &types })
        } else {
            None
        };
        let of = |verb: &str| types.first().map_or_else(String::new, |name| format!("{verb}{name}"));
        let kept = if are_pinned {
            let pinned = counted(pinned, "object", "objects");
            format!("; {pinned}{} between it cannot be moved, as handles pin them", of(" of "))
        } else if generation.is_large() && !types.is_empty() {
            of("; most of what is in use is of ")
        } else {
            String::new()
        };
        let allocates =
            method.as_deref().map_or_else(String::new, |method| format!("; {method} allocates most of them"));
        let elements = if are_pinned { &HANDLE_TYPES[..] } else { &[] };
        let elements: Vec<_> = types.iter().map(|name| &**name).chain(elements.iter().copied()).collect();
        let holder = self.holder(&elements);
        let known = [("free_bytes", free), ("generation_bytes", generation.bytes)];
        let known = known.into_iter().chain((pinned > 0).then_some(("pinned", pinned)));
        let numbers: Vec<_> = known.map(|(name, number)| Number::new(name, number as f64)).collect();
        let cause = format!(
            "{} of the {} of {} are free between objects{kept}{allocates}",
            bytes(free),
            bytes(generation.bytes),
            generation.name(),
        );
        Some(
            Finding::new(FindingKind::HeapFragmentation, thresholds::GROWTH_COST, cause, Details::Heap)
                .with_method(method)
                .with_object(types.into_iter().next())
                .with_evidence(holder.into_iter().chain(advice(&generation, are_pinned)))
                .with_numbers(numbers),
        )
    }
}

/// The arenas that keep free memory, and the ways to have it given back.
fn keeps(heap: &NativeHeap) -> String {
    let keeps = |arena: &&NativeArena| arena.held() >= OF_ARENA;
    let arenas = heap.arenas.iter().filter(keeps).count() as u64;
    match heap.arenas.iter().max_by_key(|arena| arena.held()) {
        Some(most) if arenas > 1 => format!(
            "{} arenas keep it, the first of them {}: malloc_trim gives it back, and with MALLOC_ARENA_MAX=2 threads \
             share arenas",
            count(arenas),
            bytes(most.held()),
        ),
        _ => "blocks in use are between it: malloc_trim gives the pages between them back".to_owned(),
    }
}

fn advice(generation: &Generation, are_pinned: bool) -> Option<String> {
    let advice = if generation.is_large() {
        "the collector does not move large objects: pooled buffers, or GCSettings.LargeObjectHeapCompactionMode"
    } else if are_pinned {
        "buffers for long use can be made by GC.AllocateArray with pinned, in a heap of their own"
    } else {
        return None;
    };
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests;
