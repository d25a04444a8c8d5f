//! Names of owners.

use clr_dump::MemoryOwner;

use super::reading::MemoryReading;

/// Returns the name of an owner for people.
pub fn owner_name(owner: MemoryOwner, reading: &MemoryReading) -> String {
    let name = match owner {
        MemoryOwner::Generation(2) if reading.shares_generations() => "GC heap: generations 0 to 2",
        MemoryOwner::Generation(3) => "GC heap: large objects",
        MemoryOwner::Generation(4) => "GC heap: pinned objects",
        MemoryOwner::Generation(number) => return format!("GC heap: generation {number}"),
        MemoryOwner::FrozenObjects => "GC heap: frozen objects",
        MemoryOwner::UnusedCommitted => "GC heap: committed, unused",
        MemoryOwner::FreeRegions => "GC heap: free regions",
        MemoryOwner::CollectorTables => "GC tables: cards, marks",
        MemoryOwner::HandleTables => "GC handles",
        MemoryOwner::JitCode => "JIT-compiled code",
        MemoryOwner::LoaderHeaps => "Loader heaps, stubs",
        MemoryOwner::Assemblies => "Assemblies (ReadyToRun)",
        MemoryOwner::NativeLibraries => "Programs, libraries",
        MemoryOwner::MappedFiles => "Mapped files",
        MemoryOwner::ThreadStacks => "Thread stacks",
        MemoryOwner::NativeHeap => "Native heap (malloc)",
        MemoryOwner::SharedMemory => "Shared memory",
        MemoryOwner::Kernel => "Kernel pages",
        _ => "Not known",
    };
    name.to_owned()
}
