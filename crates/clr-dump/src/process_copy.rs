//! The copy of a process's memory into a core dump.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use hashbrown::HashSet;

use crate::core_writer::{PAGE, ProcessNote, Segment, ThreadNote, beginning, memory_offset, notes};
use crate::error::Error;
use crate::mapping::{MappedFile, Mapping};
use crate::process::ProcessMemory;

/// The memory of a core dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreContent<'a> {
    /// All readable memory, with the images of modules.
    Full,
    /// All memory but code of native libraries and data files: managed modules and the data of native ones
    /// are there. The code of a library is there if its headers are mapped with it.
    Heap,
    /// The stacks of the threads, and these pages, by number.
    Pages(&'a BTreeSet<u64>),
}

/// Limits of a copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct CopyLimits {
    /// The most bytes of memory that are copied.
    pub bytes: Option<u64>,
    /// The time at which copying ends.
    pub until: Option<Instant>,
}

/// The result of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedCore {
    /// Bytes of memory in the core dump, with pages that the process has never touched: they are zero.
    pub memory_bytes: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes that were left out for the limits.
    pub omitted_bytes: u64,
    /// Bytes that the kernel did not let be read.
    pub unreadable_bytes: u64,
    /// The length of the file.
    pub file_bytes: u64,
}

/// Bytes that are copied at a time.
const STEP: usize = 1 << 20;
/// Untouched memory from this size on shares one part of the file.
const LARGE_GAP: u64 = 1 << 20;
/// Bytes of that part.
const GAP_PART: u64 = 4 << 20;
/// The most parts of untouched memory; the others are left out.
const MOST_GAP_PARTS: usize = 1 << 16;
/// Places for segments that unreadable pages split.
const SPARE_PLACES: u64 = 256;

/// A piece of memory to copy.
#[derive(Debug, Clone, Copy)]
struct Piece {
    address: u64,
    bytes: u64,
    flags: u32,
    /// Pieces with a lower number come first, and smaller ones before larger ones.
    order: u8,
    is_untouched: bool,
}

/// Copies the memory of a process, which the caller has stopped, into an empty file, as a core dump. Pages of
/// zeros become holes of the file.
///
/// Stacks come first, then the data of modules and runtime, and the largest memory last: limits cost the heap
/// before the stacks.
///
/// # Errors
/// If the process has ended, or the file cannot be written.
pub fn copy_process(
    memory: &ProcessMemory,
    machine: u16,
    threads: &[ThreadNote],
    stack_pointers: &[u64],
    content: CoreContent<'_>,
    limits: CopyLimits,
    file: &File,
) -> Result<CopiedCore, Error> {
    let mappings = memory.mappings()?;
    let process = process_note(memory, &mappings);
    let mut pieces = pieces(memory, &mappings, stack_pointers, content);
    pieces.sort_by_key(|piece| (piece.order, piece.bytes, piece.address));
    let notes = notes(&process, threads);
    let places = u64::try_from(pieces.len()).unwrap_or(u64::MAX).saturating_add(SPARE_PLACES);
    let mut copy = CoreCopy {
        memory,
        file,
        limits,
        buffer: vec![0; STEP],
        segments: Vec::new(),
        places: usize::try_from(places).unwrap_or(usize::MAX),
        end: memory_offset(&notes, places),
        gap: None,
        result: CopiedCore::default(),
    };
    for piece in &pieces {
        copy.add(piece)?;
    }
    copy.segments.sort_by_key(|segment| segment.address);
    let bytes = beginning(machine, &notes, places, &copy.segments);
    file.write_all_at(&bytes, 0).map_err(written)?;
    file.set_len(copy.end).map_err(written)?;
    let memory_bytes = copy.segments.iter().map(|segment| segment.memory_bytes);
    copy.result.memory_bytes = memory_bytes.fold(0, u64::saturating_add);
    copy.result.file_bytes = copy.end;
    Ok(copy.result)
}

const fn written(error: std::io::Error) -> Error {
    Error::Write { error }
}

struct CoreCopy<'a> {
    memory: &'a ProcessMemory,
    file: &'a File,
    limits: CopyLimits,
    buffer: Vec<u8>,
    segments: Vec<Segment>,
    places: usize,
    /// The offset past the last memory in the file.
    end: u64,
    /// The part of the file that untouched memory shares.
    gap: Option<u64>,
    result: CopiedCore,
}

impl CoreCopy<'_> {
    fn add(&mut self, piece: &Piece) -> Result<(), Error> {
        if piece.is_untouched {
            if self.gap.is_none() {
                self.gap = Some(self.end);
                self.end = self.end.saturating_add(GAP_PART);
            }
            let offset = self.gap.unwrap_or_default();
            self.push(piece.address, piece.bytes, offset, piece.flags);
            return Ok(());
        }
        // The segment begins again after pages that cannot be read.
        let (mut start, mut offset) = (piece.address, self.end);
        let mut done = 0;
        while done < piece.bytes {
            let left = piece.bytes.saturating_sub(done);
            if self.is_over() || self.segments.len() >= self.places {
                self.result.omitted_bytes = self.result.omitted_bytes.saturating_add(left);
                break;
            }
            let address = piece.address.saturating_add(done);
            let size = left.min(self.step());
            if self.read(address, size) {
                self.write(offset.saturating_add(address.saturating_sub(start)), size)?;
                done = done.saturating_add(size);
                continue;
            }
            // Page by page, as far as the first one that cannot be read.
            let size = PAGE.min(left);
            if self.read(address, size) {
                self.write(offset.saturating_add(address.saturating_sub(start)), size)?;
                done = done.saturating_add(size);
                continue;
            }
            self.result.unreadable_bytes = self.result.unreadable_bytes.saturating_add(size);
            self.push(start, address.saturating_sub(start), offset, piece.flags);
            done = done.saturating_add(size);
            (start, offset) = (piece.address.saturating_add(done), self.end);
        }
        let end = piece.address.saturating_add(done);
        self.push(start, end.saturating_sub(start), offset, piece.flags);
        Ok(())
    }

    /// Adds a segment whose memory is in the file.
    fn push(&mut self, address: u64, bytes: u64, file_offset: u64, flags: u32) {
        if bytes == 0 || self.segments.len() >= self.places {
            return;
        }
        self.segments.push(Segment { address, memory_bytes: bytes, file_offset, file_bytes: bytes, flags });
        let end = file_offset.saturating_add(bytes).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        self.end = self.end.max(end);
    }

    fn is_over(&self) -> bool {
        self.limits.until.is_some_and(|until| Instant::now() >= until)
            || self.limits.bytes.is_some_and(|limit| self.result.copied_bytes >= limit)
    }

    /// The bytes to copy next: up to the limit, in whole pages.
    fn step(&self) -> u64 {
        let step = u64::try_from(STEP).unwrap_or(PAGE);
        let left = self.limits.bytes.map(|limit| limit.saturating_sub(self.result.copied_bytes));
        let left = left.and_then(|left| left.checked_next_multiple_of(PAGE));
        step.min(left.unwrap_or(step)).max(PAGE)
    }

    fn read(&mut self, address: u64, size: u64) -> bool {
        use crate::memory::Memory as _;
        let size = usize::try_from(size).unwrap_or(STEP);
        let buffer = self.buffer.get_mut(..size).unwrap_or_default();
        self.memory.read(address, buffer).is_ok()
    }

    /// Writes the pages that were read, except those of zeros.
    fn write(&mut self, offset: u64, size: u64) -> Result<(), Error> {
        let size = usize::try_from(size).unwrap_or(STEP);
        let bytes = self.buffer.get(..size).unwrap_or_default();
        let page = usize::try_from(PAGE).unwrap_or(STEP);
        // Neighbouring pages are written together.
        let (mut at, mut rest) = (offset, bytes);
        let is_zero = |part: &[u8]| part.iter().all(|byte| *byte == 0);
        while !rest.is_empty() {
            let zeros = rest.chunks(page).take_while(|part| is_zero(part)).map(<[u8]>::len).sum();
            let (skipped, after) = rest.split_at_checked(zeros).unwrap_or((rest, &[]));
            let data = after.chunks(page).take_while(|part| !is_zero(part)).map(<[u8]>::len).sum();
            let (data, after) = after.split_at_checked(data).unwrap_or((after, &[]));
            at = at.saturating_add(skipped.len().try_into().unwrap_or_default());
            self.file.write_all_at(data, at).map_err(written)?;
            let count = u64::try_from(data.len()).unwrap_or_default();
            at = at.saturating_add(count);
            self.result.copied_bytes = self.result.copied_bytes.saturating_add(count);
            rest = after;
        }
        Ok(())
    }
}

/// The order of copying.
mod order {
    pub(super) const STACKS: u8 = 0;
    pub(super) const DATA: u8 = 1;
    pub(super) const MODULES: u8 = 2;
    pub(super) const MEMORY: u8 = 3;
    pub(super) const OTHERS: u8 = 4;
    pub(super) const UNTOUCHED: u8 = 5;
}

/// The name of shared memory without a file.
const SHARED_MEMORY: &str = "/dev/zero (deleted)";

fn pieces(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    stack_pointers: &[u64],
    content: CoreContent<'_>,
) -> Vec<Piece> {
    let mut stacks = stack_pointers.to_vec();
    stacks.sort_unstable();
    let images = Images::of(mappings);
    let pagemap = File::open(format!("/proc/{}/pagemap", memory.pid())).ok();
    let mut pieces = Vec::new();
    let mut gap_parts = 0;
    for mapping in mappings {
        // The kernel's own pages cannot be read, and what a device maps may react to being read.
        let is_special = mapping.name.starts_with("[vvar")
            || &*mapping.name == "[vsyscall]"
            || (mapping.name.starts_with("/dev/")
                && !mapping.name.starts_with("/dev/shm/")
                && &*mapping.name != SHARED_MEMORY);
        if !mapping.is_readable || is_special {
            continue;
        }
        let stack = stacks.get(stacks.partition_point(|sp| *sp < mapping.start)).copied();
        let stack = stack.filter(|sp| *sp < mapping.end);
        let flags = 4 | u32::from(mapping.is_writable).wrapping_mul(2) | u32::from(mapping.is_executable);
        let whole = Piece {
            address: mapping.start,
            bytes: mapping.size(),
            flags,
            order: order(mapping, stack.is_some(), &images),
            is_untouched: false,
        };
        match content {
            CoreContent::Heap if whole.order == order::OTHERS => {}
            CoreContent::Pages(pages) => {
                let first = mapping.start / PAGE;
                // The red zone below the stack pointer belongs to the function.
                let stack = stack.map(|sp| sp.saturating_sub(128).max(mapping.start) / PAGE);
                let end = mapping.end / PAGE;
                let own =
                    pages.range(first..end).copied().filter(|page| stack.is_none_or(|stack| *page < stack));
                add_pages(&mut pieces, own.chain(stack.unwrap_or(end)..end), &whole);
            }
            CoreContent::Full | CoreContent::Heap => {
                let is_anonymous = !mapping.is_file() && !mapping.is_shared && &*mapping.name != "[vdso]";
                let touched = pagemap.as_ref().filter(|_| is_anonymous);
                match touched.and_then(|pagemap| touched_runs(pagemap, mapping)) {
                    Some(runs) => add_runs(&mut pieces, &runs, &whole, &mut gap_parts),
                    None => pieces.push(whole),
                }
            }
        }
    }
    pieces
}

/// The files that have native code.
struct Images<'m> {
    all: HashSet<&'m str>,
    /// Those whose headers and unwind information are mapped with their code.
    in_one_piece: HashSet<&'m str>,
}

impl<'m> Images<'m> {
    fn of(mappings: &'m [Mapping]) -> Self {
        let executable = mappings.iter().filter(|mapping| mapping.is_executable && mapping.is_file());
        let first = executable.clone().filter(|mapping| mapping.file_offset == 0);
        Self {
            all: executable.map(|mapping| &*mapping.name).collect(),
            in_one_piece: first.map(|mapping| &*mapping.name).collect(),
        }
    }

    /// Whether a mapping has more of an image than code.
    fn has_headers(&self, mapping: &Mapping) -> bool {
        let files = if mapping.is_executable { &self.in_one_piece } else { &self.all };
        files.contains(&*mapping.name)
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
        // The runtime maps the memory of its code twice, and .NET Core 3.1 reads assemblies into shared memory.
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
        while at < start && *gap_parts < MOST_GAP_PARTS {
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
fn touched_runs(pagemap: &File, mapping: &Mapping) -> Option<Vec<(u64, u64)>> {
    const PRESENT_OR_SWAPPED: u64 = 3 << 62;
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut page = mapping.start / PAGE;
    let end = mapping.end / PAGE;
    while page < end {
        let count = usize::try_from(end.saturating_sub(page)).unwrap_or(usize::MAX).saturating_mul(8);
        let size = count.min(buffer.len());
        let part = buffer.get_mut(..size)?;
        pagemap.read_exact_at(part, page.saturating_mul(8)).ok()?;
        for word in part.as_chunks::<8>().0 {
            let start = page.saturating_mul(PAGE);
            page = page.saturating_add(1);
            if u64::from_le_bytes(*word) & PRESENT_OR_SWAPPED == 0 {
                continue;
            }
            match runs.last_mut() {
                Some(run) if start.saturating_sub(run.1) < LARGE_GAP => run.1 = start.saturating_add(PAGE),
                _ => {
                    let gap = start.saturating_sub(mapping.start);
                    let is_first_near = runs.is_empty() && gap < LARGE_GAP;
                    let from = if is_first_near { mapping.start } else { start };
                    runs.push((from, start.saturating_add(PAGE)));
                }
            }
        }
    }
    if let Some(run) = runs.last_mut().filter(|run| mapping.end.saturating_sub(run.1) < LARGE_GAP) {
        run.1 = mapping.end;
    }
    Some(runs)
}

fn process_note(memory: &ProcessMemory, mappings: &[Mapping]) -> ProcessNote {
    let text = |name: &str| memory.proc_file(name).unwrap_or_default();
    let status = text("status");
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    };
    let mut name = text("comm");
    name.truncate(name.trim_ascii_end().len());
    let mut arguments = text("cmdline");
    arguments.truncate(arguments.len().min(4096));
    arguments.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    let files = mappings.iter().filter(|mapping| mapping.is_file());
    ProcessNote {
        pid: memory.pid(),
        parent: field("PPid"),
        uid: field("Uid"),
        gid: field("Gid"),
        name,
        arguments,
        auxiliary: text("auxv"),
        files: files.cloned().map(MappedFile::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Piece =
        Piece { address: 0x10_0000, bytes: 64 << 20, flags: 6, order: order::MEMORY, is_untouched: false };

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
        assert_eq!(pieces.len(), MOST_GAP_PARTS);
    }

    #[test]
    fn headers_are_kept_where_they_are() {
        // Headers apart from the code, and, as in libraries of .NET Core 3.1, with it.
        let maps = b"1000-2000 r--p 00000000 fe:00 1 /a.so\n2000-3000 r-xp 00001000 fe:00 1 /a.so\n\
            3000-4000 r-xp 00000000 fe:00 2 /b.so\n4000-5000 r--p 00001000 fe:00 2 /b.so\n\
            5000-6000 r-xp 00002000 fe:00 2 /b.so\n6000-7000 r--p 00000000 fe:00 3 /data\n";
        let mappings = crate::mapping::parse_mappings(maps);
        let images = Images::of(&mappings);
        let orders: Vec<_> = mappings.iter().map(|mapping| order(mapping, false, &images)).collect();
        let (kept, left_out) = (order::MODULES, order::OTHERS);
        assert_eq!(orders, [kept, left_out, kept, kept, kept, left_out]);
    }

    #[test]
    fn pages_become_runs() {
        let mut pieces = Vec::new();
        add_pages(&mut pieces, [1, 2, 3, 7, 9, 10].into_iter(), &WHOLE);
        let runs: Vec<_> = pieces.iter().map(|piece| (piece.address, piece.bytes)).collect();
        assert_eq!(runs, [(0x1000, 0x3000), (0x7000, 0x1000), (0x9000, 0x2000)]);
    }

    /// The process is this one, which goes on: only what does not change is compared.
    #[test]
    fn the_memory_of_this_process_is_in_its_core() {
        use crate::core_file::CoreFile;
        use crate::memory::Memory;
        static VALUE: u64 = 0x0123_4567_89ab_cdef;
        let kept = vec![0x5a_u8; 3 << 20];
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let thread = ThreadNote { tid: 1, registers: vec![0; 216], ..ThreadNote::default() };
        for (content, limits) in [
            (CoreContent::Full, CopyLimits::default()),
            (CoreContent::Heap, CopyLimits::default()),
            (CoreContent::Full, CopyLimits { bytes: Some(1 << 20), until: None }),
            (CoreContent::Full, CopyLimits { bytes: None, until: Some(Instant::now()) }),
        ] {
            let file = tempfile::tempfile().unwrap();
            let threads = std::slice::from_ref(&thread);
            let copied = copy_process(&memory, 62, threads, &[], content, limits, &file).unwrap();
            assert_eq!(copied.file_bytes, file.metadata().unwrap().len());
            let core = CoreFile::open(file).unwrap();
            assert_eq!(core.missing_bytes(), 0);
            assert_eq!(core.memory_bytes(), copied.memory_bytes);
            assert_eq!(core.process().unwrap().pid, std::process::id());
            let value = (&core as &dyn Memory).bytes(kept.as_ptr().addr() as u64, kept.len());
            if limits.bytes.is_some() || limits.until.is_some() {
                assert!(copied.omitted_bytes > 0 && copied.copied_bytes <= 1 << 20, "{copied:?}");
                continue;
            }
            assert_eq!(copied.omitted_bytes, 0);
            assert!(value.unwrap() == kept);
            let address = std::ptr::from_ref(&VALUE).addr() as u64;
            assert_eq!((&core as &dyn Memory).u64(address), Ok(VALUE));
        }
    }
}
