//! The pieces of a process's memory that a core dump gets, in the order of copying.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use hashbrown::HashSet;

use crate::memory::PAGE;
use crate::memory::address::Address;
use crate::memory::copy_note::CopiedContent;
use crate::memory::mapping::Mapping;
use crate::memory::page_map::PRESENT_OR_SWAPPED;
use crate::memory::process::{ProcessMemory, page_bytes};

/// The memory of a core dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoreContent<'a> {
    /// All readable memory, with the images of modules.
    Full,
    /// All memory but code of native libraries and data files: managed modules and the data of native ones
    /// are there. The code of a library is there if its headers are mapped with it.
    Heap,
    /// The stacks of the threads, and these pages, by number.
    Pages(&'a BTreeSet<u64>),
}

/// Untouched memory from this size on shares one part of the file.
const LARGE_GAP: u64 = 1 << 20;
/// Bytes of that part.
pub(crate) const GAP_PART: u64 = 4 << 20;
/// Maximum number of parts of untouched memory; the others are left out.
const MAX_GAP_PARTS: usize = 1 << 16;
impl CoreContent<'_> {
    pub(crate) const fn of_note(&self) -> CopiedContent {
        match self {
            Self::Full => CopiedContent::FULL,
            Self::Heap => CopiedContent::HEAP,
            Self::Pages(_) => CopiedContent::MINI,
        }
    }
}

/// A piece of memory to copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) flags: u32,
    /// The start of its mapping.
    pub(crate) mapping: u64,
    /// Priority: pieces with a lower number are copied first, and smaller ones before larger ones.
    order: u8,
    pub(crate) is_untouched: bool,
}

/// The order of copying.
mod order {
    /// Pages that an analysis reads.
    pub(super) const FIRST: u8 = 0;
    pub(super) const STACKS: u8 = 1;
    pub(super) const DATA: u8 = 2;
    pub(super) const MODULES: u8 = 3;
    pub(super) const MEMORY: u8 = 4;
    pub(super) const OTHERS: u8 = 5;
    pub(super) const UNTOUCHED: u8 = 6;
}

/// The name of shared memory without a file.
const SHARED_MEMORY: &str = "/dev/zero (deleted)";

/// Returns the pieces in the order of copying: pages of `first`, stacks, the data of modules and runtime, and
/// the largest memory last.
pub(crate) fn pieces(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    stack_pointers: &[u64],
    content: CoreContent<'_>,
    first: &BTreeSet<u64>,
) -> Vec<Piece> {
    let pieces = unordered(memory, mappings, stack_pointers, content);
    let mut pieces: Vec<_> = pieces.into_iter().flat_map(|piece| split(piece, first)).collect();
    pieces.sort_by_key(|piece| (piece.order, piece.bytes, piece.address));
    pieces
}

/// Splits a piece into pages of the `first` set and other pages.
fn split(piece: Piece, first: &BTreeSet<u64>) -> Vec<Piece> {
    let end = piece.address.saturating_add(piece.bytes);
    let mut pieces = Vec::new();
    let mut at = piece.address;
    let pages = if piece.is_untouched { 0..0 } else { piece.address / PAGE..end.div_ceil(PAGE) };
    for page in first.range(pages) {
        let start = page.saturating_mul(PAGE).max(at);
        let to = page.saturating_add(1).saturating_mul(PAGE).min(end);
        if at < start {
            pieces.push(Piece { address: at, bytes: start.saturating_sub(at), ..piece });
        }
        match pieces.last_mut() {
            Some(last) if last.order == order::FIRST && at == start => {
                last.bytes = last.bytes.saturating_add(to.saturating_sub(start));
            }
            _ => pieces.push(Piece {
                address: start,
                bytes: to.saturating_sub(start),
                order: order::FIRST,
                ..piece
            }),
        }
        at = to;
    }
    if at < end {
        pieces.push(Piece { address: at, bytes: end.saturating_sub(at), ..piece });
    }
    pieces
}

fn unordered(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    stack_pointers: &[u64],
    content: CoreContent<'_>,
) -> Vec<Piece> {
    let mut stacks = stack_pointers.to_vec();
    stacks.sort_unstable();
    let images = Images::of(mappings);
    let pagemap = File::open(format!("/proc/{}/pagemap", memory.pid())).ok();
    let page_bytes = page_bytes(memory.pid());
    let mut pieces = Vec::new();
    let mut gap_parts = 0;
    for mapping in mappings {
        // The kernel's own pages cannot be read, and memory mapped by a device may react to reads.
        let is_special = mapping.name.starts_with("[vvar")
            || &*mapping.name == "[vsyscall]"
            || (mapping.name.starts_with("/dev/")
                && !mapping.name.starts_with("/dev/shm/")
                && &*mapping.name != SHARED_MEMORY);
        if !mapping.is_readable || is_special {
            continue;
        }
        let (start, end) = (mapping.start.get(), mapping.end.get());
        let stack = stacks.get(stacks.partition_point(|sp| *sp < start)).copied();
        let stack = stack.filter(|sp| *sp < end);
        let flags = 4 | u32::from(mapping.is_writable).wrapping_mul(2) | u32::from(mapping.is_executable);
        let whole = Piece {
            address: start,
            bytes: mapping.size(),
            flags,
            mapping: start,
            order: order(mapping, stack.is_some(), &images),
            is_untouched: false,
        };
        match content {
            CoreContent::Heap if whole.order == order::OTHERS => {}
            CoreContent::Pages(pages) => {
                let first = start / PAGE;
                // The red zone below the stack pointer belongs to the function.
                let stack = stack.map(|sp| sp.saturating_sub(128).max(start) / PAGE);
                let end = end / PAGE;
                let own =
                    pages.range(first..end).copied().filter(|page| stack.is_none_or(|stack| *page < stack));
                add_pages(&mut pieces, own.chain(stack.unwrap_or(end)..end), &whole);
            }
            CoreContent::Full | CoreContent::Heap => {
                let is_anonymous = !mapping.is_file() && !mapping.is_shared && &*mapping.name != "[vdso]";
                let touched = pagemap.as_ref().filter(|_| is_anonymous);
                match touched.and_then(|pagemap| touched_runs(pagemap, mapping, page_bytes)) {
                    Some(runs) => add_runs(&mut pieces, &runs, &whole, &mut gap_parts),
                    None => pieces.push(whole),
                }
            }
        }
    }
    pieces
}

/// The images of native code.
struct Images<'m> {
    /// The files that have such code.
    all: HashSet<&'m str>,
    /// Files with headers and unwind information in the same mapping as their code.
    in_one_piece: HashSet<&'m str>,
    /// The addresses of code that belongs to an image. A single file also contains managed modules, which are
    /// mapped elsewhere.
    code: HashSet<Address>,
}

impl<'m> Images<'m> {
    fn of(mappings: &'m [Mapping]) -> Self {
        let executable = mappings.iter().filter(|mapping| mapping.is_executable && mapping.is_file());
        let first = executable.clone().filter(|mapping| mapping.file_offset == 0);
        let mut code = HashSet::new();
        // An image is mapped from the beginning of its file on, without gaps.
        let mut last: Option<&Mapping> = None;
        for mapping in mappings {
            let goes_on = last.is_some_and(|last| last.end == mapping.start && last.name == mapping.name);
            let is_part = mapping.is_file() && !mapping.is_shared && (goes_on || mapping.file_offset == 0);
            if is_part && mapping.is_executable {
                code.insert(mapping.start);
            }
            last = is_part.then_some(mapping);
        }
        Self {
            all: executable.map(|mapping| &*mapping.name).collect(),
            in_one_piece: first.map(|mapping| &*mapping.name).collect(),
            code,
        }
    }

    /// Returns true if a mapping has more of an image than native code.
    fn has_headers(&self, mapping: &Mapping) -> bool {
        let name = &*mapping.name;
        if !mapping.is_executable {
            return self.all.contains(name);
        }
        let is_module = mapping.is_file() && !mapping.is_shared && !self.code.contains(&mapping.start);
        self.in_one_piece.contains(name) || is_module
    }
}

fn order(mapping: &Mapping, is_stack: bool, images: &Images<'_>) -> u8 {
    let is_managed = mapping.name.ends_with(".dll") || mapping.name.ends_with(".exe");
    if is_stack {
        order::STACKS
    } else if !mapping.is_file() && !mapping.is_shared {
        order::MEMORY
    } else if mapping.is_writable && !mapping.is_shared {
        order::DATA
    } else if is_managed || images.has_headers(mapping) {
        order::MODULES
    } else if mapping.is_writable || mapping.name.starts_with("/memfd:") || &*mapping.name == SHARED_MEMORY {
        // The runtime maps the memory of its code twice, and .NET Core 3.1 reads assemblies into shared
        // memory.
        order::MEMORY
    } else {
        order::OTHERS
    }
}

/// Adds runs of pages.
fn add_pages(pieces: &mut Vec<Piece>, pages: impl Iterator<Item = u64>, whole: &Piece) {
    let mut run: Option<Piece> = None;
    for page in pages {
        let address = page.saturating_mul(PAGE);
        match &mut run {
            Some(run) if run.address.saturating_add(run.bytes) == address => {
                run.bytes = run.bytes.saturating_add(PAGE);
            }
            _ => {
                pieces.extend(run.take());
                run = Some(Piece { address, bytes: PAGE, ..*whole });
            }
        }
    }
    pieces.extend(run);
}

/// Adds the touched parts of a mapping, and its large gaps.
fn add_runs(pieces: &mut Vec<Piece>, runs: &[(u64, u64)], whole: &Piece, gap_parts: &mut usize) {
    let end = whole.address.saturating_add(whole.bytes);
    let mut at = whole.address;
    for (start, stop) in runs.iter().copied().chain([(end, end)]) {
        while at < start && *gap_parts < MAX_GAP_PARTS {
            let bytes = start.saturating_sub(at).min(GAP_PART);
            pieces.push(Piece { address: at, bytes, order: order::UNTOUCHED, is_untouched: true, ..*whole });
            at = at.saturating_add(bytes);
            *gap_parts = gap_parts.saturating_add(1);
        }
        if start < stop {
            pieces.push(Piece { address: start, bytes: stop.saturating_sub(start), ..*whole });
        }
        at = stop;
    }
}

/// Returns the parts of a mapping without the gaps of at least [`LARGE_GAP`] that the process has never
/// touched; `None` if the kernel does not say.
fn touched_runs(pagemap: &File, mapping: &Mapping, page_bytes: u64) -> Option<Vec<(u64, u64)>> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let (first, end) = (mapping.start.get(), mapping.end.get());
    let mut page = first.checked_div(page_bytes)?;
    let last = end.checked_div(page_bytes)?;
    while page < last {
        let count = usize::try_from(last.saturating_sub(page)).unwrap_or(usize::MAX).saturating_mul(8);
        let size = count.min(buffer.len());
        let part = buffer.get_mut(..size)?;
        pagemap.read_exact_at(part, page.saturating_mul(8)).ok()?;
        for word in part.as_chunks::<8>().0 {
            let start = page.saturating_mul(page_bytes);
            page = page.saturating_add(1);
            if u64::from_le_bytes(*word) & PRESENT_OR_SWAPPED == 0 {
                continue;
            }
            match runs.last_mut() {
                Some(run) if start.saturating_sub(run.1) < LARGE_GAP => {
                    run.1 = start.saturating_add(page_bytes);
                }
                _ => {
                    let gap = start.saturating_sub(first);
                    let is_first_near = runs.is_empty() && gap < LARGE_GAP;
                    let from = if is_first_near { first } else { start };
                    runs.push((from, start.saturating_add(page_bytes)));
                }
            }
        }
    }
    if let Some(run) = runs.last_mut().filter(|run| end.saturating_sub(run.1) < LARGE_GAP) {
        run.1 = end;
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Piece = Piece {
        address: 0x10_0000,
        bytes: 64 << 20,
        flags: 6,
        mapping: 0x10_0000,
        order: order::MEMORY,
        is_untouched: false,
    };

    #[test]
    fn gaps_share_parts_and_are_bounded() {
        let mut pieces = Vec::new();
        let runs = [(0x50_0000, 0x60_0000), (0x70_0000, 0x70_1000)];
        add_runs(&mut pieces, &runs, &WHOLE, &mut 0);
        let end = WHOLE.address + WHOLE.bytes;
        let mut at = WHOLE.address;
        for piece in &pieces {
            assert_eq!(piece.address, at);
            assert!(!piece.is_untouched || piece.bytes <= GAP_PART);
            at += piece.bytes;
        }
        assert_eq!(at, end);
        let touched = pieces.iter().filter(|piece| !piece.is_untouched);
        let touched: Vec<_> = touched.map(|piece| (piece.address, piece.address + piece.bytes)).collect();
        assert_eq!(touched, runs);
        let mut pieces = Vec::new();
        add_runs(&mut pieces, &[], &Piece { bytes: 1 << 47, ..WHOLE }, &mut 0);
        assert_eq!(pieces.len(), MAX_GAP_PARTS);
    }

    #[test]
    fn headers_are_kept_where_they_are() {
        // Headers apart from the code, and, as in libraries of .NET Core 3.1, with it.
        let maps = b"1000-2000 r--p 00000000 fe:00 1 /a.so\n2000-3000 r-xp 00001000 fe:00 1 /a.so\n\
            3000-4000 r-xp 00000000 fe:00 2 /b.so\n4000-5000 r--p 00001000 fe:00 2 /b.so\n\
            5000-6000 r-xp 00002000 fe:00 2 /b.so\n6000-7000 r--p 00000000 fe:00 3 /data\n";
        let mappings = crate::memory::mapping::parse_mappings(maps);
        let images = Images::of(&mappings);
        let orders: Vec<_> = mappings.iter().map(|mapping| order(mapping, false, &images)).collect();
        let (kept, left_out) = (order::MODULES, order::OTHERS);
        assert_eq!(orders, [kept, left_out, kept, kept, kept, left_out]);
    }

    #[test]
    fn managed_modules_of_a_single_file_are_kept() {
        // A module, mapped twice, the program, and memory that the runtime maps twice.
        let maps = b"1000-2000 r--p 00059000 fe:00 1 /program\n3000-4000 r-xp 00059000 fe:00 1 /program\n\
            5000-6000 r--p 00000000 fe:00 1 /program\n6000-7000 r-xp 00001000 fe:00 1 /program\n\
            8000-9000 r--s 00059000 fe:00 1 /program\na000-b000 r-xs 00001000 00:01 2 /memfd:code (deleted)\n";
        let mappings = crate::memory::mapping::parse_mappings(maps);
        let images = Images::of(&mappings);
        let orders: Vec<_> = mappings.iter().map(|mapping| order(mapping, false, &images)).collect();
        let kept = order::MODULES;
        assert_eq!(orders, [kept, kept, kept, order::OTHERS, kept, order::MEMORY]);
    }

    #[test]
    fn pages_that_an_analysis_reads_come_first() {
        let piece = Piece { address: 0x1000, bytes: 0x6000, ..WHOLE };
        let first = [0, 2, 3, 6, 9].into();
        let rows = |pieces: Vec<Piece>| -> Vec<_> {
            pieces.iter().map(|piece| (piece.address, piece.bytes, piece.order == order::FIRST)).collect()
        };
        let expected = [
            (0x1000, 0x1000, false),
            (0x2000, 0x2000, true),
            (0x4000, 0x2000, false),
            (0x6000, 0x1000, true),
        ];
        assert_eq!(rows(split(piece, &first)), expected);
        assert_eq!(rows(split(piece, &BTreeSet::new())), [(0x1000, 0x6000, false)]);
        let untouched = Piece { is_untouched: true, ..piece };
        assert_eq!(rows(split(untouched, &first)), [(0x1000, 0x6000, false)]);
    }

    #[test]
    fn pages_become_runs() {
        let mut pieces = Vec::new();
        add_pages(&mut pieces, [1, 2, 3, 7, 9, 10].into_iter(), &WHOLE);
        let runs: Vec<_> = pieces.iter().map(|piece| (piece.address, piece.bytes)).collect();
        assert_eq!(runs, [(0x1000, 0x3000), (0x7000, 0x1000), (0x9000, 0x2000)]);
    }
}
