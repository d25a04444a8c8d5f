//! Owners of memory, with their shares.

use std::sync::Arc;

use linux_proc_stat::MappingSizes;

use crate::memory::address::Address;

/// An owner of memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MemoryOwner {
    /// A generation of the managed heap, up to its last objects: 3 is the large object heap, 4 that of pinned
    /// objects.
    Generation(u64),
    /// Objects that are never collected or moved, such as literals.
    FrozenObjects,
    /// Memory of the managed heap past the last objects of regions or segments, which the collector keeps
    /// committed.
    UnusedCommitted,
    /// Memory of the managed heap that is in no generation: regions that the collector keeps for later.
    FreeRegions,
    /// The collector's card tables, mark arrays and the like.
    CollectorTables,
    /// Tables of handles.
    HandleTables,
    /// JIT-compiled code.
    JitCode,
    /// The runtime's descriptions of types and methods (loader heaps), its stubs, and copies of code that is
    /// being written.
    LoaderHeaps,
    /// Images of assemblies, with their ReadyToRun code.
    Assemblies,
    /// Programs and libraries of machine code, with their variables.
    NativeLibraries,
    /// Other mapped files.
    MappedFiles,
    /// Stacks of threads.
    ThreadStacks,
    /// The heap of the C library, and blocks of it with mappings of their own.
    NativeHeap,
    /// Memory that is shared with other processes, or mapped several times: `memfd`, `/dev/shm`.
    SharedMemory,
    /// The kernel's own pages in the process, such as `[vdso]`.
    Kernel,
    /// Memory without a known owner.
    Unknown,
}

impl MemoryOwner {
    /// The name in lists for programs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Generation(0) => "gc-generation-0",
            Self::Generation(1) => "gc-generation-1",
            Self::Generation(2) => "gc-generation-2",
            Self::Generation(3) => "gc-large-objects",
            Self::Generation(4) => "gc-pinned-objects",
            Self::Generation(_) => "gc-other-generation",
            Self::FrozenObjects => "gc-frozen-objects",
            Self::UnusedCommitted => "gc-unused-committed",
            Self::FreeRegions => "gc-free-regions",
            Self::CollectorTables => "gc-tables",
            Self::HandleTables => "gc-handles",
            Self::JitCode => "jit-code",
            Self::LoaderHeaps => "loader-heaps",
            Self::Assemblies => "assemblies",
            Self::NativeLibraries => "native-libraries",
            Self::MappedFiles => "mapped-files",
            Self::ThreadStacks => "thread-stacks",
            Self::NativeHeap => "native-heap",
            Self::SharedMemory => "shared-memory",
            Self::Kernel => "kernel-pages",
            Self::Unknown => "unknown",
        }
    }

    /// Returns true for a part of the managed heap, with the collector's own tables.
    pub const fn is_managed_heap(self) -> bool {
        matches!(
            self,
            Self::Generation(_)
                | Self::FrozenObjects
                | Self::UnusedCommitted
                | Self::FreeRegions
                | Self::CollectorTables
                | Self::HandleTables
        )
    }
}

/// The memory of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedMemory {
    /// The owner.
    pub owner: MemoryOwner,
    /// Its memory. Of a core dump, `resident` is what the dump has, and `private_dirty` that without
    /// unwritable parts of files.
    pub sizes: MappingSizes,
    /// Bytes of addresses, resident or not.
    pub mapped: u64,
    /// Its parts, the largest first: files, threads, mappings without an owner. At most 4,096.
    pub parts: Vec<OwnedPart>,
    /// The number of all parts.
    pub part_count: u64,
}

/// A part of the memory of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedPart {
    /// The path of a file, the name of a thread or of a mapping; empty if it has none.
    pub name: Arc<str>,
    /// The thread.
    pub tid: Option<u32>,
    /// The first address.
    pub address: Address,
    /// Its memory.
    pub sizes: MappingSizes,
    /// Bytes of addresses, resident or not.
    pub mapped: u64,
}

/// The use of the memory of a generation, in bytes of addresses as the collector counts them: not all of them
/// need be resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationUse {
    /// The generation, or the frozen objects.
    pub owner: MemoryOwner,
    /// Bytes of objects, with garbage that has not been collected yet.
    pub used: u64,
    /// Bytes between objects; `None` if unknown, and then a part of `used`.
    pub free: Option<u64>,
    /// Bytes that are committed after the last objects.
    pub unused: u64,
}
