//! The copy of a process's memory into a core dump.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use crate::copy::core_writer::{ProcessNote, Segment, ThreadNote, beginning, memory_offset, notes};
use crate::copy::pieces::{CoreContent, GAP_PART, Piece, pieces};
use crate::error::Error;
use crate::memory::PAGE;
use crate::memory::copy_note::CopyNote;
use crate::memory::mapping::{MappedFile, Mapping};
use crate::memory::process::ProcessMemory;

/// The settings of a copy.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each")]
pub struct CopySettings<'a> {
    /// The architecture of the process (`e_machine`).
    pub machine: u16,
    /// The threads, starting with the thread that a signal is for.
    pub threads: &'a [ThreadNote],
    /// The stack pointers of the threads.
    pub stack_pointers: &'a [u64],
    /// The memory to copy.
    pub content: CoreContent<'a>,
    /// Numbers of the pages that an analysis reads. They are copied before all other memory.
    pub first_pages: &'a BTreeSet<u64>,
    /// The limits.
    pub limits: CopyLimits,
}

/// Limits of a copy.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each")]
pub struct CopyLimits {
    /// Maximum number of bytes of memory to copy.
    pub bytes: Option<u64>,
    /// The time at which copying ends.
    pub time: Option<TimeLimit>,
}

/// A limit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each")]
pub struct TimeLimit {
    /// The end.
    pub end: Instant,
    /// The time from the beginning to the end.
    pub duration: Duration,
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
    /// True if memory was left out for the limit of bytes.
    pub size_reached: bool,
    /// True if memory was left out for the limit of time.
    pub time_reached: bool,
    /// Bytes that the kernel did not let be read.
    pub unreadable_bytes: u64,
    /// The length of the file.
    pub file_bytes: u64,
}

/// Bytes that are copied at a time.
const STEP: usize = 1 << 20;
/// Places for segments that unreadable pages split.
const SPARE_PLACES: u64 = 256;

/// Copies the memory of a process, which the caller has stopped, into an empty file, as a core dump. Pages of
/// zeros become holes of the file. `copied` is called once the memory is copied, to let the process run on
/// while the headers are written.
///
/// The order is: first pages, stacks, the data of modules and runtime, and the largest memory last, so that
/// limits cost the heap before the stacks. A note in the core dump describes omissions.
///
/// # Errors
/// If the process has ended, or the file cannot be written.
pub fn copy_process(
    memory: &ProcessMemory,
    settings: &CopySettings<'_>,
    file: &File,
    copied: impl FnOnce(),
) -> Result<CopiedCore, Error> {
    let CopySettings { content, limits, threads, .. } = *settings;
    let mappings = memory.mappings()?;
    let process = process_note(memory, &mappings);
    let pieces = pieces(memory, &mappings, settings.stack_pointers, content, settings.first_pages);
    let mut note = CopyNote {
        content: content.of_note(),
        size_limit: limits.bytes,
        time_limit: limits.time.map(|time| time.duration),
        ..CopyNote::default()
    };
    let length = notes(&process, threads, &note).len();
    let places = u64::try_from(pieces.len()).unwrap_or(u64::MAX).saturating_add(SPARE_PLACES);
    let mut copy = CoreCopy {
        memory,
        file,
        limits,
        buffer: vec![0; STEP],
        segments: Vec::new(),
        places: usize::try_from(places).unwrap_or(usize::MAX),
        end: memory_offset(length, places),
        gap: None,
        result: CopiedCore::default(),
    };
    for piece in &pieces {
        copy.add(piece)?;
    }
    copied();
    copy.segments.sort_by_key(|segment| segment.address);
    (note.size_reached, note.time_reached) = (copy.result.size_reached, copy.result.time_reached);
    note.omitted_bytes = copy.result.omitted_bytes;
    note.unreadable_bytes = copy.result.unreadable_bytes;
    let notes = notes(&process, threads, &note);
    let bytes = beginning(settings.machine, &notes, places, &copy.segments);
    file.write_all_at(&bytes, 0).map_err(written)?;
    file.set_len(copy.end).map_err(written)?;
    let in_file = copy.segments.iter().map(|segment| segment.file_bytes);
    copy.result.memory_bytes = in_file.fold(0, u64::saturating_add);
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
            self.push(piece.address, piece.bytes, offset, piece);
            return Ok(());
        }
        // The segment begins again after pages that cannot be read.
        let (mut start, mut offset) = (piece.address, self.end);
        let mut done = 0;
        while done < piece.bytes {
            let left = piece.bytes.saturating_sub(done);
            let address = piece.address.saturating_add(done);
            if self.is_over() || self.segments.len() >= self.places {
                self.result.omitted_bytes = self.result.omitted_bytes.saturating_add(left);
                self.push(start, address.saturating_sub(start), offset, piece);
                self.omit(address, left, piece);
                return Ok(());
            }
            let size = left.min(self.step());
            if self.read(address, size) {
                self.write(offset.saturating_add(address.saturating_sub(start)), size)?;
                done = done.saturating_add(size);
                continue;
            }
            // Page by page, up to the first unreadable page.
            let size = PAGE.min(left);
            if self.read(address, size) {
                self.write(offset.saturating_add(address.saturating_sub(start)), size)?;
                done = done.saturating_add(size);
                continue;
            }
            self.result.unreadable_bytes = self.result.unreadable_bytes.saturating_add(size);
            self.push(start, address.saturating_sub(start), offset, piece);
            done = done.saturating_add(size);
            (start, offset) = (piece.address.saturating_add(done), self.end);
        }
        let end = piece.address.saturating_add(done);
        self.push(start, end.saturating_sub(start), offset, piece);
        Ok(())
    }

    /// Adds a segment of a piece, with its memory in the file.
    fn push(&mut self, address: u64, bytes: u64, file_offset: u64, of: &Piece) {
        if bytes == 0 || self.segments.len() >= self.places {
            return;
        }
        let &Piece { flags, mapping, .. } = of;
        let (memory_bytes, file_bytes) = (bytes, bytes);
        self.segments.push(Segment { address, memory_bytes, file_offset, file_bytes, flags, mapping });
        let end = file_offset.saturating_add(bytes).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        self.end = self.end.max(end);
    }

    /// Adds a segment of a piece, without its memory in the file.
    fn omit(&mut self, address: u64, memory_bytes: u64, of: &Piece) {
        if self.segments.len() < self.places {
            let &Piece { flags, mapping, .. } = of;
            let (file_offset, file_bytes) = (self.end, 0);
            self.segments.push(Segment { address, memory_bytes, file_offset, file_bytes, flags, mapping });
        }
    }

    /// Returns true if a limit was reached.
    fn is_over(&mut self) -> bool {
        let result = &mut self.result;
        result.size_reached |= self.limits.bytes.is_some_and(|limit| result.copied_bytes >= limit);
        result.time_reached |= self.limits.time.is_some_and(|time| Instant::now() >= time.end);
        result.size_reached || result.time_reached
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

    /// Writes the pages that were read, except pages of zeros.
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

    /// The test copies its own process while it runs, and compares only memory that does not change.
    #[test]
    fn the_memory_of_this_process_is_in_its_core() {
        use crate::memory::Memory;
        use crate::memory::core_file::CoreFile;
        // As x86-64 has it in its memory.
        static VALUE: [u8; 8] = 0x0123_4567_89ab_cdef_u64.to_le_bytes();
        let kept = vec![0x5a_u8; 3 << 20];
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let thread = ThreadNote { tid: 1, registers: vec![0; 216], ..ThreadNote::default() };
        let now = TimeLimit { end: Instant::now(), duration: Duration::from_millis(1) };
        let value_at = std::ptr::from_ref(&VALUE).addr() as u64;
        let first_pages = [value_at / PAGE].into();
        for (content, limits) in [
            (CoreContent::Full, CopyLimits::default()),
            (CoreContent::Heap, CopyLimits::default()),
            (CoreContent::Full, CopyLimits { bytes: Some(1 << 20), time: None }),
            (CoreContent::Full, CopyLimits { bytes: None, time: Some(now) }),
        ] {
            let file = tempfile::tempfile().unwrap();
            let threads = std::slice::from_ref(&thread);
            let settings = CopySettings {
                machine: 62,
                threads,
                stack_pointers: &[],
                content,
                first_pages: &first_pages,
                limits,
            };
            let mut is_copied = false;
            let copied = copy_process(&memory, &settings, &file, || is_copied = true).unwrap();
            assert!(is_copied);
            assert_eq!(copied.file_bytes, file.metadata().unwrap().len());
            let core = CoreFile::open(file).unwrap();
            assert_eq!(core.missing_bytes(), 0);
            assert_eq!(core.memory_bytes(), copied.memory_bytes);
            assert_eq!(core.process().unwrap().pid, std::process::id());
            let value = (&core as &dyn Memory).bytes(kept.as_ptr().addr() as u64, kept.len());
            let note = core.copy().unwrap();
            assert_eq!(note.omitted_bytes, copied.omitted_bytes);
            assert_eq!(note.content, content.of_note());
            assert_eq!((note.size_limit, note.size_reached), (limits.bytes, limits.bytes.is_some()));
            assert_eq!(note.time_reached, limits.time.is_some());
            let (of_files, others) = core.omitted_bytes();
            assert_eq!(of_files + others, copied.omitted_bytes);
            if limits.bytes.is_some() || limits.time.is_some() {
                assert!(copied.omitted_bytes > 0 && copied.copied_bytes <= 1 << 20, "{copied:?}");
                assert!(value.is_err());
                let first = (&core as &dyn Memory).u64(value_at);
                assert_eq!(first.is_ok(), limits.bytes.is_some());
                continue;
            }
            assert_eq!(copied.omitted_bytes, 0);
            assert!(value.unwrap() == kept);
            assert_eq!((&core as &dyn Memory).u64(value_at), Ok(u64::from_le_bytes(VALUE)));
        }
    }
}
