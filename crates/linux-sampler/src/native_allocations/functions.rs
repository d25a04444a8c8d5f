//! The functions that allocate and free memory, in the libraries of a process.

use std::collections::HashSet;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::allocation_function::{AllocatingFunction, FreeingFunction};
use crate::error::Error;
use crate::image::Image;
use crate::maps::ProcessMaps;
use crate::obstacle::AllocationObstacle;

/// Maximum number of libraries with such functions. A program has its C library, and perhaps another
/// allocator.
const MAX_LIBRARIES: usize = 4;

/// Maximum number of files to look into, and time for it: a process maps what it likes.
const MAX_FILES: usize = 4096;
const MAX_TIME: Duration = Duration::from_secs(10);

/// A function of either kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Allocating(AllocatingFunction),
    Freeing(FreeingFunction),
}

/// A function in a library.
#[derive(Debug)]
pub(super) struct FoundFunction {
    pub(super) function: Function,
    /// The index of its library.
    pub(super) library: usize,
    /// The offset in the library's file at which it is probed.
    pub(super) offset: u64,
    /// True if the kernel simulates the instruction there.
    pub(super) is_simulated: bool,
}

/// The functions of a process, and the libraries that have them.
#[derive(Debug, Default)]
pub(super) struct FoundFunctions {
    pub(super) functions: Vec<FoundFunction>,
    pub(super) libraries: Vec<Library>,
}

/// A library with such functions.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) name: Arc<str>,
    pub(super) image: Image,
}

impl FoundFunctions {
    /// Finds the functions in the files that a process has mapped. Each library with `malloc` and `free`
    /// counts: the C library, and an allocator in its place.
    pub(super) fn of_process(pid: i32) -> Result<Self, Error> {
        let maps = ProcessMaps::read(pid)?;
        let mut found = Self::default();
        let mut seen: HashSet<Arc<str>> = HashSet::new();
        let start = Instant::now();
        for mapping in maps.iter().filter(|mapping| mapping.is_file()) {
            if found.libraries.len() >= MAX_LIBRARIES || seen.len() >= MAX_FILES || start.elapsed() > MAX_TIME
            {
                break;
            }
            if !seen.insert(Arc::clone(&mapping.name)) {
                continue;
            }
            // The loader of older glibc has an allocator for itself, which the C library replaces.
            let is_loader = mapping.name.rsplit('/').next().is_some_and(|name| {
                name.starts_with("ld-linux") || name.starts_with("ld-2.") || name.starts_with("ld64")
            });
            if let Ok(image) = mapping.open_image(pid)
                && !is_loader
            {
                found.add(&mapping.name, image);
            }
        }
        if found.functions.is_empty() {
            return Err(Error::NativeAllocations(AllocationObstacle::NoFunctions));
        }
        Ok(found)
    }

    fn add(&mut self, name: &Arc<str>, image: Image) {
        let functions = AllocatingFunction::ALL.map(Function::Allocating);
        let functions: Vec<_> =
            functions.into_iter().chain(FreeingFunction::ALL.map(Function::Freeing)).collect();
        let names: Vec<_> = functions.iter().map(|function| function.name()).collect();
        let Ok(addresses) = image.functions_named(&names) else { return };
        let has = |wanted| functions.iter().zip(&addresses).any(|(of, at)| *of == wanted && at.is_some());
        if !has(Function::Allocating(AllocatingFunction::Malloc))
            || !has(Function::Freeing(FreeingFunction::Free))
        {
            return;
        }
        let library = self.libraries.len();
        let mut offsets = Vec::new();
        for (function, address) in functions.into_iter().zip(addresses) {
            let Some(offset) = address.and_then(|address| image.offset_of(address)) else { continue };
            // Two names of one function.
            if offsets.contains(&offset) {
                continue;
            }
            offsets.push(offset);
            let mut code = [0; 16];
            let length = image.file().read_at(&mut code, offset).unwrap_or(0);
            let is_freeing = matches!(function, Function::Freeing(_));
            let (skipped, is_simulated) = probed_at(code.get(..length).unwrap_or_default(), is_freeing);
            let offset = offset.saturating_add(skipped);
            self.functions.push(FoundFunction { function, library, offset, is_simulated });
        }
        self.libraries.push(Library { name: Arc::clone(name), image });
    }
}

impl Function {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Allocating(function) => function.name(),
            Self::Freeing(function) => function.name(),
        }
    }
}

/// Returns the offset in a function at which it is probed, and whether the kernel simulates the instruction
/// there. It runs others in a place of their own, with a second interrupt, at several times the cost.
///
/// Skipped instructions change neither arguments nor, where the stack matters, the stack pointer.
///
/// # Source
/// Linux `arch/x86/kernel/uprobes.c` (`branch_setup_xol_ops`, `push_setup_xol_ops`).
#[cfg(target_arch = "x86_64")]
fn probed_at(code: &[u8], is_freeing: bool) -> (u64, bool) {
    let mut skipped = 0_u64;
    let mut rest = code;
    loop {
        match rest {
            // push; nop; jumps and calls, of a condition or not.
            [0x50..=0x57 | 0x90 | 0x70..=0x7f | 0xe8 | 0xe9 | 0xeb, ..]
            | [0x41, 0x50..=0x57, ..]
            | [0x0f, 0x80..=0x8f, ..] => return (skipped, true),
            // endbr64
            [0xf3, 0x0f, 0x1e, 0xfa, after @ ..] => {
                rest = after;
                skipped = skipped.saturating_add(4);
            }
            // test rdi, rdi
            [0x48, 0x85, 0xff, after @ ..] => {
                rest = after;
                skipped = skipped.saturating_add(3);
            }
            // sub rsp, value
            [0x48, 0x83, 0xec, _, after @ ..] if is_freeing => {
                rest = after;
                skipped = skipped.saturating_add(4);
            }
            _ => return (0, false),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
const fn probed_at(_code: &[u8], _is_freeing: bool) -> (u64, bool) {
    (0, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_of_this_process_are_found_by_name() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let found = FoundFunctions::of_process(pid).unwrap();
        let names: Vec<_> = found.functions.iter().map(|of| of.function.name()).collect();
        for name in ["malloc", "calloc", "realloc", "free", "mmap", "munmap"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        // The offset is that of the function: its first bytes in the file are those in memory.
        let malloc = found.functions.iter().find(|of| of.function.name() == "malloc").unwrap();
        let image = &found.libraries[malloc.library].image;
        let symbols = image.symbols().unwrap();
        let symbol = symbols.at(image.address_of(malloc.offset).unwrap()).unwrap();
        assert!(String::from_utf8_lossy(symbol.name).contains("malloc"), "{symbol:?}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_probe_is_where_the_kernel_simulates_the_instruction() {
        // malloc, free and posix_memalign of glibc 2.31, malloc with indirect branch tracking.
        assert_eq!(probed_at(&[0x41, 0x54, 0x55, 0x48], false), (0, true));
        assert_eq!(probed_at(&[0x48, 0x85, 0xff, 0x0f, 0x84, 0xc7], true), (3, true));
        assert_eq!(probed_at(&[0x80, 0x3d, 0x01, 0x02], false), (0, false));
        assert_eq!(probed_at(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55], false), (4, true));
        // The stack pointer has to be that of the caller, except where nothing is unwound.
        assert_eq!(probed_at(&[0x48, 0x83, 0xec, 0x08, 0x90], false), (0, false));
        assert_eq!(probed_at(&[0x48, 0x83, 0xec, 0x08, 0x90], true), (4, true));
        assert_eq!(probed_at(&[], true), (0, false));
    }
}
