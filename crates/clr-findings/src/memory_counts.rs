//! Counts of what memory holds at a moment, as data of its own. Readings of them show what grows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clr_dump::{
    Address, CoreFile, Dump, Generation, HandleKind, HeapRegions, HeldCollection, LateTimers, Module,
    NativeHeap, NativeHeapError, ResidentPages, ThreadStacks,
};
use clr_events::code::is_user_assembly;
use clr_events::csharp::type_display_name;
use clr_events::escape_controls;
use serde::{Deserialize, Serialize};

use crate::memory_facts::method_in_words;
use crate::names::short_names;
use crate::thresholds;

/// Maximum number of timers of a list that are read, the newest first.
const MAX_TIMERS: usize = 32;
/// Maximum number of timers of a list that are looked at for being late.
const MAX_LATE_TIMERS: usize = 256;
/// Maximum number of pinned objects with types that are read.
const MAX_PINNED: usize = 20_000;
/// Maximum time for the heap of the C library in a core dump.
const CORE_TIME: Duration = Duration::from_secs(60);
/// Maximum number of large objects that are read.
const MAX_LARGE: usize = 4000;

/// A collection that a static field of the user's code holds, or an object of its types on a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CollectionCount {
    /// The static field with its type, or the type of the object on a stack, and the fields that lead from
    /// the object to the collection.
    pub holder: String,
    /// The type of the collection in C#.
    pub type_name: String,
    /// The number of its elements; for an event, of its handlers. Collections of one holder are counted
    /// together.
    pub count: u64,
}

/// Timers that should have fired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LateTimerCount {
    /// The number of timers.
    pub count: u64,
    /// The time since the first of them was due.
    pub most: Duration,
    /// The methods of the user's code that they call.
    pub methods: Vec<String>,
}

/// A generation of the managed heap with much free memory between its objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FragmentedGeneration {
    /// The generation, with its size and what is free.
    pub generation: Generation,
    /// The number of the first pinned objects that are in it; `None` if memory was not read.
    pub pinned: Option<u64>,
    /// The most frequent type of these objects in C#; for large objects, the type with the most bytes of all
    /// at the first reading that finds them.
    pub type_name: Option<String>,
}

/// Counts at a moment, each of which is `None` or empty if the memory lacks it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryCounts {
    /// The time of the reading. It has no meaning in another process: serde leaves it out.
    #[serde(skip, default = "Instant::now")]
    pub at: Instant,
    /// Bytes of memory in a core dump; `None` of a process.
    pub dump_bytes: Option<u64>,
    /// Bytes that are committed for the managed heap.
    pub heap_committed: Option<u64>,
    /// The part of them that takes memory, if it was read.
    pub heap_resident: Option<u64>,
    /// Handles by kind.
    pub handles: BTreeMap<HandleKind, u64>,
    /// The number of the first pinned objects by type in C#.
    pub pinned_types: BTreeMap<String, u64>,
    /// Load contexts that are not being unloaded, apart from the runtime's own.
    pub load_contexts: Option<u64>,
    /// Collections.
    pub collections: Vec<CollectionCount>,
    /// Timers that have not fired, or fire again.
    pub timers: Option<u64>,
    /// The methods of the user's code that the newest timers call.
    pub timer_methods: Vec<String>,
    /// Timers that should have fired long before, if the time is known.
    pub late_timers: Option<LateTimerCount>,
    /// The number of heaps of a server's collector, each with a thread for collections; `None` of a
    /// workstation's.
    pub server_heaps: Option<u32>,
    /// Generations with much free memory between objects.
    pub fragmented: Vec<FragmentedGeneration>,
    /// The heap of the C library, if it was read.
    pub native_heap: Option<Result<NativeHeap, NativeHeapError>>,
    /// The modules of the user's code with which the search for static fields begins.
    #[serde(skip)]
    pub(crate) modules: Vec<Address>,
}

impl MemoryCounts {
    /// Counts what the memory of a process holds, while it runs. It reads descriptions of the heap, tables of
    /// handles, static fields and `stacks`, but no objects one after another: its time does not depend on the
    /// size of the heap. `pages` tell how much of the heap takes memory.
    ///
    /// The modules of the user's code are those that `dump` has found before, as of methods on stacks, and
    /// those of the `earlier` reading.
    pub fn read(
        dump: &Dump<'_>,
        stacks: &ThreadStacks,
        pages: Option<&dyn ResidentPages>,
        earlier: Option<&Self>,
    ) -> Self {
        let mut counts = Self::at(Instant::now());
        counts.modules = if let Some(earlier) = earlier {
            earlier.modules.clone()
        } else {
            let modules = dump.types().modules().into_iter().filter(|module| is_of_user(module));
            modules.map(|module| module.address).collect()
        };
        for module in &counts.modules {
            dump.types().module_at(*module);
        }
        let mut pinned = Vec::new();
        // A part of the handles grows as well.
        let _ = dump.heap().each_handle(|handle| {
            let count = counts.handles.entry(handle.kind).or_default();
            *count = count.saturating_add(1);
            if handle.kind == HandleKind::PINNED && pinned.len() < MAX_PINNED {
                pinned.push(handle.object);
            }
        });
        counts.pinned_types = types_of(dump, &pinned);
        let regions = dump.heap().regions();
        if let Ok(regions) = &regions {
            counts.heap_committed = Some(regions.committed_bytes());
            counts.heap_resident = pages.and_then(|pages| regions.resident_bytes(pages));
            let earlier = earlier.map_or(&[][..], |earlier| &earlier.fragmented);
            counts.fragmented = fragmented(dump, regions, &pinned, earlier);
            counts.server_heaps = regions.server_heaps();
        }
        counts.load_contexts = dump.statics().load_contexts();
        counts.collections = by_holder(dump.statics().collections(stacks, regions.as_ref().ok(), is_of_user));
        let timers = dump.statics().timers(MAX_TIMERS);
        counts.timers = timers.as_ref().map(|timers| timers.count);
        let callbacks = timers.unwrap_or_default().timers.into_iter().map(|timer| timer.callback);
        counts.timer_methods = methods_of(dump, callbacks.collect());
        counts
    }

    /// Counts what a core dump holds, with the heap of the C library.
    pub fn of_core(core: &CoreFile, dump: &Dump<'_>, stacks: &ThreadStacks) -> Self {
        let end = Instant::now().checked_add(CORE_TIME);
        let native_heap = NativeHeap::read(core, &core.mappings(), None, end);
        let counts = Self::read(dump, stacks, None, None).with_native_heap(native_heap);
        Self { dump_bytes: Some(core.memory_bytes()), ..counts }
    }

    /// No counts at a time.
    pub const fn at(at: Instant) -> Self {
        Self {
            at,
            dump_bytes: None,
            heap_committed: None,
            heap_resident: None,
            handles: BTreeMap::new(),
            pinned_types: BTreeMap::new(),
            load_contexts: None,
            collections: Vec::new(),
            timers: None,
            timer_methods: Vec::new(),
            late_timers: None,
            server_heaps: None,
            fragmented: Vec::new(),
            native_heap: None,
            modules: Vec::new(),
        }
    }

    /// With the timers of the process that are late at the time `now` of the system's monotonic clock.
    #[must_use]
    pub fn with_late_timers(self, dump: &Dump<'_>, now: Duration) -> Self {
        let late = dump.statics().late_timers(now, thresholds::POOL_PATIENCE, MAX_LATE_TIMERS);
        let count = |late: LateTimers| LateTimerCount {
            count: late.count,
            most: late.most,
            methods: methods_of(dump, late.callbacks),
        };
        Self { late_timers: late.map(count), ..self }
    }

    /// With the heap of the C library, or the reason why it cannot be read.
    #[must_use]
    pub fn with_native_heap(self, native_heap: Result<NativeHeap, NativeHeapError>) -> Self {
        Self { native_heap: Some(native_heap), ..self }
    }
}

/// The methods of the user's code of some delegates.
fn methods_of(dump: &Dump<'_>, delegates: Vec<Address>) -> Vec<String> {
    let methods = delegates.into_iter().filter_map(|delegate| dump.heap().delegate_method(delegate));
    let methods = methods.filter(|method| method.module.as_deref().is_some_and(is_of_user));
    methods.filter_map(|method| method_in_words(&method)).collect()
}

/// The generations with much free memory. Young ones have it from one collection to the next, and .NET 10
/// keeps pinned objects in them: they count with many of these. The type of most large objects is read once,
/// for the first reading with their generation.
fn fragmented(
    dump: &Dump<'_>,
    regions: &HeapRegions<'_>,
    pinned: &[Address],
    earlier: &[FragmentedGeneration],
) -> Vec<FragmentedGeneration> {
    let is_fragmented =
        |generation: &Generation| generation.free.unwrap_or_default() >= thresholds::MIN_FREE_BYTES;
    let facts = |generation: Generation| {
        let is_in = |object: &&Address| regions.generation_of(**object) == Some(generation.number);
        let pinned: Vec<_> = pinned.iter().filter(is_in).copied().collect();
        if generation.number < 2 && (pinned.len() as u64) < thresholds::MIN_PINNED {
            return None;
        }
        let before = earlier.iter().find(|of| of.generation.number == generation.number);
        let type_name = match before.and_then(|of| of.type_name.clone()) {
            Some(name) if generation.is_large() => Some(name),
            _ if generation.is_large() => {
                let objects = regions.large_objects(MAX_LARGE).unwrap_or_default();
                let name = objects.first().and_then(|(most, _)| dump.types().name(*most));
                name.map(|name| in_words(&name))
            }
            _ => types_of(dump, &pinned).into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name),
        };
        Some(FragmentedGeneration { generation, pinned: Some(pinned.len() as u64), type_name })
    };
    regions.generations().into_iter().filter(is_fragmented).filter_map(facts).collect()
}

fn by_holder(collections: Vec<HeldCollection>) -> Vec<CollectionCount> {
    let mut sums = BTreeMap::<_, u64>::new();
    for held in collections {
        let holder = [&*in_words(&held.holder), ".", &escape_controls(&held.path)].concat();
        let sum = sums.entry((holder, in_words(&held.type_name))).or_default();
        *sum = sum.saturating_add(held.count);
    }
    let count = |((holder, type_name), count)| CollectionCount { holder, type_name, count };
    sums.into_iter().map(count).collect()
}

fn types_of(dump: &Dump<'_>, objects: &[Address]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::<_, u64>::new();
    for of in objects.iter().filter_map(|object| dump.heap().type_of(*object)) {
        let count = counts.entry(of).or_default();
        *count = count.saturating_add(1);
    }
    let named = counts.into_iter().filter_map(|(of, count)| Some((in_words(&dump.types().name(of)?), count)));
    named.collect()
}

/// The name of a type in C#, without namespaces.
fn in_words(runtime_name: &str) -> String {
    short_names(&escape_controls(&type_display_name(runtime_name)))
}

/// Returns true for a module of the user's code.
pub(crate) fn is_of_user(module: &Module) -> bool {
    is_user_assembly(module.file_name(), &module.path)
}
