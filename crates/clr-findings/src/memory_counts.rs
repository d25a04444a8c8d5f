//! Counts of what memory holds at a moment, as data of its own. Readings of them show what grows.

use std::collections::BTreeMap;
use std::time::Instant;

use clr_dump::{Address, Dump, HandleKind, HeldCollection, Module, ThreadStacks};
use clr_events::code::is_user_assembly;
use clr_events::csharp::type_display_name;
use clr_events::escape_controls;

use crate::memory_facts::method_in_words;
use crate::names::short_names;

/// Maximum number of timers of a list that are read, the newest first.
const MAX_TIMERS: usize = 32;
/// Maximum number of pinned objects with types that are read.
const MAX_PINNED: usize = 20_000;

/// A collection that a static field of the user's code holds, or an object of its types on a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectionCount {
    /// The static field with its type, or the type of the object on a stack, and the fields that lead from the object to
    /// the collection.
    pub holder: String,
    /// The type of the collection in C#.
    pub type_name: String,
    /// The number of its elements; for an event, of its handlers. Collections of one holder are counted together.
    pub count: u64,
}

/// Counts at a moment, each of which is `None` or empty if the memory lacks it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemoryCounts {
    /// The time of the reading.
    pub at: Instant,
    /// Bytes that are committed for the managed heap.
    pub heap_committed: Option<u64>,
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
    /// The modules of the user's code with which the search for static fields begins.
    pub(crate) modules: Vec<Address>,
}

impl MemoryCounts {
    /// Counts what the memory of a process holds, while it runs. It reads descriptions of the heap, tables of handles,
    /// static fields and `stacks`, but no objects one after another: its time does not depend on the size of the heap.
    ///
    /// The modules of the user's code are those that `dump` has found before, as of methods on stacks, and those of
    /// the `earlier` reading.
    pub fn read(dump: &Dump<'_>, stacks: &ThreadStacks, earlier: Option<&Self>) -> Self {
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
        let heap = dump.heap();
        counts.heap_committed = heap.committed_bytes().ok();
        let mut pinned = Vec::new();
        // A part of the handles grows as well.
        let _ = heap.each_handle(|handle| {
            let count = counts.handles.entry(handle.kind).or_default();
            *count = count.saturating_add(1);
            if handle.kind == HandleKind::PINNED && pinned.len() < MAX_PINNED {
                pinned.push(handle.object);
            }
        });
        counts.pinned_types = types_of(dump, &pinned);
        counts.load_contexts = dump.statics().load_contexts();
        counts.collections = by_holder(dump.statics().collections(stacks, is_of_user));
        let timers = dump.statics().timers(MAX_TIMERS);
        counts.timers = timers.as_ref().map(|timers| timers.count);
        let callbacks = timers.unwrap_or_default().callbacks.into_iter();
        let methods = callbacks.filter_map(|callback| dump.heap().delegate_method(callback));
        let methods = methods.filter(|method| method.module.as_deref().is_some_and(is_of_user));
        counts.timer_methods = methods.filter_map(|method| method_in_words(&method)).collect();
        counts
    }

    /// No counts at a time.
    pub const fn at(at: Instant) -> Self {
        Self {
            at,
            heap_committed: None,
            handles: BTreeMap::new(),
            pinned_types: BTreeMap::new(),
            load_contexts: None,
            collections: Vec::new(),
            timers: None,
            timer_methods: Vec::new(),
            modules: Vec::new(),
        }
    }
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
