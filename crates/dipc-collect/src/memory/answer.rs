//! The first line: the owner of most memory, and what can be done.
//!
//! Pages of assemblies and libraries that the process has not written count for nothing: nearly all of a
//! small program consists of them, but other processes share them, and the kernel can take them back at any
//! time. They are named besides if they are the larger part.

use clr_dump::{GenerationUse, MemoryAccount, MemoryOwner, NativeArena, OwnedMemory};

use super::names::owner_name;
use super::reading::MemoryReading;
use nettrace_export::units;

/// Minimum share of free memory in a heap that the line is about, in parts of it.
const FREE_PART: u64 = 4;
/// Minimum number of free bytes that the line is about.
const MIN_FREE: u64 = 16 << 20;

/// Minimum number of threads that can be the reason for memory: more than the runtime and its pool have of
/// themselves.
const MANY_THREADS: usize = 200;

/// Owners that are one subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// The managed heap, with the collector's own tables.
    Heap,
    /// The heap of the C library.
    Native,
    /// Stacks of threads.
    Stacks,
    /// Code and types of the runtime.
    Code,
    /// Assemblies, libraries and other files.
    Files,
    /// Memory that is shared with other processes.
    Shared,
    /// Memory without a known owner, and the kernel's own pages.
    Unknown,
}

const SUBJECTS: [Subject; 7] = [
    Subject::Heap,
    Subject::Native,
    Subject::Stacks,
    Subject::Code,
    Subject::Files,
    Subject::Shared,
    Subject::Unknown,
];

impl Subject {
    /// All subjects.
    pub const ALL: [Self; 7] = SUBJECTS;

    /// The name in lists for programs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Heap => "gc-heap",
            Self::Native => "native-heap",
            Self::Stacks => "thread-stacks",
            Self::Code => "code",
            Self::Files => "files",
            Self::Shared => "shared-memory",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the subject of an owner.
    pub const fn of(owner: MemoryOwner) -> Self {
        match owner {
            owner if owner.is_managed_heap() => Self::Heap,
            MemoryOwner::NativeHeap => Self::Native,
            MemoryOwner::ThreadStacks => Self::Stacks,
            MemoryOwner::JitCode | MemoryOwner::LoaderHeaps => Self::Code,
            MemoryOwner::Assemblies | MemoryOwner::NativeLibraries | MemoryOwner::MappedFiles => Self::Files,
            MemoryOwner::SharedMemory => Self::Shared,
            _ => Self::Unknown,
        }
    }
}

/// Returns the answer in a line.
pub fn first_line(reading: &MemoryReading) -> String {
    let account = &reading.account;
    let mut line = of_subject(main_subject(reading), reading);
    let images = account.resident_of(is_image);
    if images > account.total.resident / 2 && !line.starts_with(FILES) {
        line.push_str("; assemblies and libraries ");
        line.push_str(&units::bytes(images));
    }
    line
}

/// The beginning of a line about files.
const FILES: &str = "Assemblies, libraries and files";

const fn is_image(owner: MemoryOwner) -> bool {
    matches!(owner, MemoryOwner::Assemblies | MemoryOwner::NativeLibraries)
}

/// The memory of an owner that the process itself is the reason for.
const fn weight(owned: &OwnedMemory) -> u64 {
    if is_image(owned.owner) { owned.sizes.private_dirty } else { owned.sizes.resident }
}

/// Returns the subject with the most memory that the process is the reason for. Each thread has memory of
/// malloc and of the runtime besides its stack: stacks of many threads are the reason for these, too. Core
/// dumps have stacks with all pages that were never touched, so those of few threads are not the answer
/// there.
fn main_subject(reading: &MemoryReading) -> Subject {
    let account = &reading.account;
    let has_many_threads = thread_count(account) >= MANY_THREADS;
    let weight_of = |subject: Subject| {
        let owned = account.owners.iter().filter(|owned| Subject::of(owned.owner) == subject);
        owned.map(weight).fold(0, u64::saturating_add)
    };
    let is_candidate =
        |subject: &Subject| *subject != Subject::Stacks || has_many_threads || !reading.is_dump();
    let most = SUBJECTS.into_iter().filter(is_candidate).max_by_key(|subject| weight_of(*subject));
    let most = most.unwrap_or(Subject::Unknown);
    let is_half = weight_of(Subject::Stacks) >= weight_of(most) / 2;
    if is_half && has_many_threads { Subject::Stacks } else { most }
}

fn of_subject(subject: Subject, reading: &MemoryReading) -> String {
    let account = &reading.account;
    let all = account.total.resident;
    let resident = |subject: Subject| account.resident_of(|owner| Subject::of(owner) == subject);
    let own = resident(subject);
    let of = format!(
        "{} of {}{}",
        units::bytes(own),
        units::bytes(all),
        if reading.is_dump() { " in the dump" } else { "" }
    );
    match subject {
        Subject::Heap => heap(reading, &of, own),
        Subject::Native => native_heap(account, &of, own),
        Subject::Stacks => stacks(account, &of),
        Subject::Code => format!(
            "Code and types of the runtime {of}, {} of it JIT-compiled code",
            units::bytes(account.resident_of(|owner| owner == MemoryOwner::JitCode))
        ),
        Subject::Files => {
            let dirty = account.owners.iter().filter(|owned| Subject::of(owned.owner) == subject);
            let dirty = dirty.map(|owned| owned.sizes.private_dirty).fold(0, u64::saturating_add);
            let rest = if reading.is_dump() {
                String::new()
            } else {
                format!(", all but {} of which the kernel can read again", units::bytes(dirty))
            };
            format!("{FILES} {of}{rest}")
        }
        Subject::Shared => format!("Shared memory {of}{}", largest(account, MemoryOwner::SharedMemory)),
        Subject::Unknown => {
            format!("Memory without a known owner {of}{}", largest(account, MemoryOwner::Unknown))
        }
    }
}

fn is_much(free: u64, own: u64) -> bool {
    free >= MIN_FREE && free >= own / FREE_PART
}

fn native_heap(account: &MemoryAccount, of: &str, own: u64) -> String {
    let Ok(heap) = &account.native_heap else { return format!("Native heap {of}") };
    let free = heap.held().min(own);
    let unread = heap.sum(|arena: &NativeArena| arena.unread);
    let read = own.saturating_sub(unread);
    if is_much(free, read) {
        let of_read = if unread >= MIN_FREE {
            format!(" of {} that were read", units::bytes(read))
        } else {
            String::new()
        };
        return format!(
            "Native heap {of}, of which {}{of_read} are free and not returned: malloc_trim, MALLOC_ARENA_MAX",
            units::bytes(free)
        );
    }
    let rest = if unread >= MIN_FREE { " or were not read" } else { "" };
    let used = units::bytes(own.saturating_sub(free));
    format!("Native heap {of}, of which {used} are in use{rest}: native code has not freed them")
}

fn heap(reading: &MemoryReading, of: &str, own: u64) -> String {
    let account = &reading.account;
    let free = |of: &GenerationUse| of.free.unwrap_or_default();
    let sum = |bytes: &dyn Fn(&GenerationUse) -> u64| {
        account.generations.iter().map(bytes).fold(0, u64::saturating_add)
    };
    let name = |owner| owner_name(owner, reading).trim_start_matches("GC heap: ").to_owned();
    let between = sum(&free).min(own);
    if is_much(between, own)
        && let Some(most) = account.generations.iter().max_by_key(|of| free(of))
    {
        let advice = match most.owner {
            MemoryOwner::Generation(3) => ": pooled buffers, or LargeObjectHeapCompactionMode",
            _ => "",
        };
        let most = name(most.owner);
        return format!(
            "GC heap {of}, of which {} are free between objects ({most}){advice}",
            units::bytes(between)
        );
    }
    let objects = sum(&|of| of.used);
    let empty = own.saturating_sub(objects.saturating_add(between));
    if is_much(empty, own) {
        return format!(
            "GC heap {of}, of which {} have no objects and are kept for later: GCConserveMemory, GCHeapHardLimit",
            units::bytes(empty)
        );
    }
    let parts = account.owners.iter().filter(|owned| matches!(owned.owner, MemoryOwner::Generation(_)));
    match (parts.max_by_key(|owned| owned.sizes.resident), reading.pid) {
        (Some(part), pid) => {
            let details = pid.map_or_else(String::new, |pid| format!(": dipc heap -p {pid} has its types"));
            format!(
                "GC heap {of}, of which {} in {}{details}",
                units::bytes(part.sizes.resident),
                name(part.owner)
            )
        }
        (None, _) => format!("GC heap {of}"),
    }
}

fn stacks(account: &MemoryAccount, of: &str) -> String {
    let threads = u64::try_from(thread_count(account)).unwrap_or(u64::MAX);
    let threads = units::counted(threads, "thread", "threads");
    format!("Stacks of {threads} {of}{}", largest(account, MemoryOwner::ThreadStacks))
}

/// The number of threads with stacks that are known.
fn thread_count(account: &MemoryAccount) -> usize {
    let owned = account.owners.iter().find(|owned| owned.owner == MemoryOwner::ThreadStacks);
    owned.map_or(0, |owned| owned.parts.iter().filter(|part| part.tid.is_some()).count())
}

/// The largest part of an owner.
fn largest(account: &MemoryAccount, of: MemoryOwner) -> String {
    let owned = account.owners.iter().find(|owned| owned.owner == of);
    let Some(part) = owned.and_then(|owned| owned.parts.first()) else { return String::new() };
    let name = if part.name.is_empty() { part.address.to_string() } else { part.name.to_string() };
    format!(", the largest {} ({})", units::bytes(part.sizes.resident), name)
}
