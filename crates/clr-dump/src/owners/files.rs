//! Owners of mappings by their names, and the variables of libraries.

use std::path::Path;
use std::sync::Arc;

use hashbrown::HashMap;

use super::claims::Claims;
use super::owner::MemoryOwner;
use super::parts::PartName;
use crate::memory::Memory;
use crate::memory::mapping::Mapping;
use crate::runtime::Runtime;
use crate::runtime::elf_image::ElfImage;

/// Maximum number of files to look at.
const MAX_FILES: usize = 1 << 14;
/// Maximum size of an image in memory.
const MAX_IMAGE: u64 = 4 << 30;
/// The file of a runtime that is not a part of its program.
const RUNTIME_LIBRARY: &str = "/libcoreclr.so";
/// The memory that the runtime writes code by, under one address, and executes under another.
const CODE_MEMORY: &str = "/memfd:doublemapper";
/// The beginnings of the names of shared memory.
const SHARED_MEMORY: [&str; 5] = ["/memfd:", "/dev/shm/", "/SYSV", "/dev/zero", "[anon_shmem:"];

/// The kinds of mapped files, by path.
#[derive(Debug, Default)]
pub(super) struct Files {
    owners: HashMap<Arc<str>, MemoryOwner>,
    /// The file that has the runtime and all assemblies. What is mapped of it, and is not of its image, is of
    /// assemblies.
    bundle: Option<Arc<str>>,
}

impl Files {
    /// Looks at the first bytes of each mapped file, and claims the variables of libraries: they are
    /// anonymous memory that follows the file's own.
    pub(super) fn read(
        memory: &dyn Memory,
        runtime: Option<&Runtime>,
        mappings: &[Mapping],
        claims: &mut Claims,
    ) -> Self {
        let bundle = runtime.filter(|runtime| !runtime.path().ends_with(RUNTIME_LIBRARY));
        let bundle = bundle.filter(|runtime| !runtime.is_native_aot());
        let mut files = Self { bundle: bundle.map(|runtime| runtime.path().into()), ..Self::default() };
        for mapping in mappings.iter().filter(|mapping| mapping.is_file() && mapping.file_offset == 0) {
            if files.owners.len() >= MAX_FILES {
                break;
            }
            if is_shared_memory(mapping) {
                continue;
            }
            let start = mapping.start.get();
            let owner = match memory.array::<4>(start) {
                Ok([0x7f, b'E', b'L', b'F']) => MemoryOwner::NativeLibraries,
                Ok([b'M', b'Z', ..]) => MemoryOwner::Assemblies,
                _ => of_path(&mapping.name),
            };
            files.owners.entry(Arc::clone(&mapping.name)).or_insert(owner);
            if owner == MemoryOwner::NativeLibraries
                && let Ok(Some(image)) = ElfImage::read(memory, start)
                && image.end.checked_sub(start).is_some_and(|size| size <= MAX_IMAGE)
            {
                let part = claims.part(PartName::new(Arc::clone(&mapping.name)));
                claims.add(start, image.end, owner, Some(part));
            }
        }
        files
    }

    /// The owner of a mapping that nothing else claims, and its part.
    pub(super) fn owner(&self, mapping: &Mapping) -> (MemoryOwner, Option<PartName>) {
        let named = |owner| (owner, Some(PartName::new(Arc::clone(&mapping.name))));
        match &*mapping.name {
            name if name.starts_with(CODE_MEMORY) => (MemoryOwner::LoaderHeaps, None),
            "[heap]" => (MemoryOwner::NativeHeap, None),
            name if name.starts_with("[stack") => named(MemoryOwner::ThreadStacks),
            name if name.starts_with("[v") || name == "[uprobes]" => named(MemoryOwner::Kernel),
            _ if is_shared_memory(mapping) => named(MemoryOwner::SharedMemory),
            name if self.bundle.as_deref() == Some(name) => named(MemoryOwner::Assemblies),
            name if mapping.is_file() => {
                named(self.owners.get(name).copied().unwrap_or_else(|| of_path(name)))
            }
            // Without write access, as by mprotect after it was written.
            "" if mapping.is_executable => (MemoryOwner::LoaderHeaps, None),
            _ => {
                let name = Arc::clone(&mapping.name);
                let part = PartName { name, tid: None, address: mapping.start.get() };
                (MemoryOwner::Unknown, Some(part))
            }
        }
    }
}

/// Returns true for memory that is not a file of a disk, and that others can map.
fn is_shared_memory(mapping: &Mapping) -> bool {
    let is_named = SHARED_MEMORY.iter().any(|beginning| mapping.name.starts_with(beginning));
    is_named || (mapping.is_shared && !mapping.is_file())
}

/// The kind of a file by its path.
fn of_path(path: &str) -> MemoryOwner {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let file = Path::new(path);
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("dll" | "exe") => MemoryOwner::Assemblies,
        Some("so") => MemoryOwner::NativeLibraries,
        _ if path.contains(".so.") => MemoryOwner::NativeLibraries,
        _ => MemoryOwner::MappedFiles,
    }
}
