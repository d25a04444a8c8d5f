//! Stacks of threads.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use linux_proc_stat::ThreadStackPointer;

use super::claims::Claims;
use super::owner::MemoryOwner;
use super::parts::PartName;
use super::runtime::{common_part, is_anonymous};
use crate::dump::Dump;
use crate::memory::PAGE;
use crate::memory::mapping::Mapping;

/// Maximum size of a stack for signals, of which each thread of .NET has one.
const MAX_SIGNAL_STACK: u64 = 128 << 10;
/// Maximum size of the memory below a stack that nobody may touch.
const MAX_GUARD: u64 = 1 << 20;
/// Maximum number of bytes above a stack pointer, where it is not known which mappings are separate.
const MAX_ABOVE: u64 = 8 << 20;
/// The names of stacks that are known by their form alone.
const OTHERS: &str = "stacks of threads that run or have ended";
const SIGNALS: &str = "stacks for signals";

/// Claims the mappings that stack pointers are in. Returns the number of threads without one: they run.
pub(super) fn claim(
    threads: &[ThreadStackPointer],
    dump: Option<&Dump<'_>>,
    mappings: &[Mapping],
    claims: &mut Claims,
) -> u64 {
    let names = dump.map(names).unwrap_or_default();
    let mut unknown = 0_u64;
    for thread in threads {
        let mapping = thread.stack_pointer.and_then(|sp| Some((sp, mapping_at(mappings, sp)?)));
        let Some((sp, mapping)) = mapping.filter(|(_, mapping)| is_stack(mapping)) else {
            unknown = unknown.saturating_add(1);
            continue;
        };
        let name = names.get(&thread.tid).map_or(&*thread.name, |name| &**name);
        let name: Arc<str> = Arc::from(name);
        let part = claims.part(PartName { name, tid: Some(thread.tid), address: 0 });
        let end = mapping.end.get().min(sp.saturating_add(MAX_ABOVE));
        claims.add(mapping.start.get(), end, MemoryOwner::ThreadStacks, Some(part));
    }
    unknown
}

/// The form of the memory before a stack that nobody may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guards {
    /// A mapping without permissions.
    Mapped,
    /// No mapping: a core dump leaves out memory that nobody can read.
    LeftOut,
}

impl Guards {
    /// The size of the guard between two mappings, or that the first one is; `None` if there is none.
    fn size(self, before: &Mapping, mapping: &Mapping) -> Option<u64> {
        let size = match self {
            Self::Mapped => {
                let is_guard = is_anonymous(before) && !before.is_readable && !before.is_writable;
                (is_guard && before.end == mapping.start).then(|| before.size())?
            }
            Self::LeftOut => mapping.start.get().checked_sub(before.end.get())?,
        };
        (PAGE..=MAX_GUARD).contains(&size).then_some(size)
    }
}

/// Claims mappings that have the form of stacks: the size of one that is known, or a small one, after memory
/// that nobody may touch.
pub(super) fn claim_by_form(
    threads: &[ThreadStackPointer],
    mappings: &[Mapping],
    guards: Guards,
    claims: &mut Claims,
) {
    let known = threads.iter().filter_map(|thread| mapping_at(mappings, thread.stack_pointer?));
    let sizes: HashSet<u64> = known.filter(|mapping| is_anonymous(mapping)).map(Mapping::size).collect();
    let (mut others, mut signals) = (None, None);
    for pair in mappings.windows(2) {
        let [before, mapping] = pair else { continue };
        let Some(guard) = guards.size(before, mapping) else { continue };
        let (start, end) = (mapping.start.get(), mapping.end.get());
        if !is_anonymous(mapping) || !is_stack(mapping) || claims.overlaps(start, end) {
            continue;
        }
        let (part, name) = if sizes.contains(&mapping.size()) {
            (&mut others, OTHERS)
        } else if mapping.size() <= MAX_SIGNAL_STACK && guard == PAGE {
            (&mut signals, SIGNALS)
        } else {
            continue;
        };
        let part = *part.get_or_insert_with(|| claims.part(common_part(name)));
        claims.add(start, end, MemoryOwner::ThreadStacks, Some(part));
    }
}

/// The names that the program gave its threads, by thread id.
fn names(dump: &Dump<'_>) -> HashMap<u32, String> {
    let threads = dump.threads().list().unwrap_or_default().into_iter();
    let name = |thread: crate::threads::thread::Thread| {
        let tid = u32::try_from(thread.os_id).ok().filter(|tid| *tid != 0)?;
        Some((tid, dump.threads().name(&thread).ok()??))
    };
    threads.filter_map(name).collect()
}

fn mapping_at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let next = mappings.partition_point(|mapping| mapping.start.get() <= address);
    let mapping = mappings.get(next.checked_sub(1)?)?;
    (address < mapping.end.get()).then_some(mapping)
}

fn is_stack(mapping: &Mapping) -> bool {
    mapping.is_writable && !mapping.is_executable && !mapping.is_shared && !mapping.is_file()
}
