//! Core dumps: ELF files of the Linux kernel, of createdump and of debuggers.
//!
//! # Source
//! System V ABI, *Program Header* and *Note Section*; Linux `include/uapi/linux/elf.h`, `fs/binfmt_elf.c`;
//! dotnet/runtime `src/coreclr/debug/createdump/dumpwriterelf.cpp`.

mod mappings;
mod notes;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nettrace::ReadAt;

use crate::error::Error;
use crate::memory::copy_note::CopyNote;
use crate::memory::mapping::MappedFile;
use crate::memory::paged_file::PagedFile;
use crate::memory::read_stop::ReadStop;
use crate::memory::{Memory, MemoryResult, Missing};
use crate::processor::{Machine, Processor};
use crate::runtime::elf_image::ElfImage;
use crate::unwind::registers::Registers;

pub use self::notes::{CoreProcess, CoreThread, SignalInfo};

/// The command line of a stripped core dump.
pub(crate) const STRIPPED: &str = "(removed by dipc dump strip)";
/// The command line of a stripped core dump without numbers.
pub(crate) const STRIPPED_OF_NUMBERS: &str = "(removed by dipc dump strip --no-numbers)";
/// Maximum number of parts of memory to read.
const MAX_SEGMENTS: u64 = 1 << 20;

/// A core dump.
///
/// ```no_run
/// use clr_dump::CoreFile;
///
/// let core = CoreFile::open(std::fs::File::open("core")?)?;
/// println!("{} threads, signal {:?}", core.threads().len(), core.signal());
/// if core.is_truncated() {
///     eprintln!("{} of {} bytes are there", core.file_bytes(), core.promised_bytes());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CoreFile {
    file: PagedFile,
    machine: u16,
    segments: Vec<Segment>,
    threads: Vec<CoreThread>,
    files: Vec<MappedFile>,
    process: Option<CoreProcess>,
    signal: Option<SignalInfo>,
    copy: Option<CopyNote>,
    missing_bytes: u64,
    /// The length that the headers promise.
    promised_bytes: u64,
    /// Memory that a limit has left out of a copy, by address.
    omitted: Vec<Range<u64>>,
    /// Memory that the file has not, and that was never written: parts of mapped files, by address.
    left_out: Vec<Range<u64>>,
    /// Files to read such memory from.
    backing: Vec<Backing>,
    /// The address of the path with which the program was started; environment variables precede it.
    executed_path: Option<u64>,
    /// The parts of the file with headers.
    headers: Vec<Range<u64>>,
    /// The parts of the file with notes.
    notes: Vec<Range<u64>>,
    stop: ReadStop,
}

/// Memory in the file.
#[derive(Debug, Clone, Copy)]
struct Segment {
    address: u64,
    /// Bytes that the file has.
    size: u64,
    file_offset: u64,
    /// Permissions.
    flags: u32,
    /// The start of the mapping of which it is a part; zero if the writer does not state it.
    mapping: u64,
}

/// A mapping of a file that is read where the core dump does not have the memory.
#[derive(Debug)]
struct Backing {
    mapping: MappedFile,
    file: Arc<PagedFile>,
}

/// The flag of writable memory in a program header.
const WRITABLE: u32 = 2;
/// Maximum number of files to use for memory that a dump leaves out.
const MAX_BACKING_FILES: usize = 1024;

impl CoreFile {
    /// Reads the headers and notes of a core dump. Its memory is read on demand, in pages; a few of them are
    /// cached.
    ///
    /// A truncated file is read up to its end.
    ///
    /// ```
    /// use clr_dump::{CoreFile, Error};
    ///
    /// let error = CoreFile::open(b"a text that is not a core dump".repeat(10)).expect_err("a text");
    /// assert!(matches!(error, Error::NotACore(_)), "{error}");
    /// ```
    ///
    /// # Errors
    /// [`Error::NotACore`], or if the file cannot be read.
    pub fn open(file: impl ReadAt + 'static) -> Result<Self, Error> {
        let failed = |error| Error::Io { what: "core dump".to_owned(), error };
        let file = PagedFile::new(Box::new(file)).map_err(failed)?;
        let header = match file.array::<64>(0) {
            Ok(header) => header,
            Err(_) if is_beginning(&file) => return Err(Error::TruncatedHeader { bytes: file.size() }),
            Err(_) => return Err(Error::NotACore("it is shorter than a header")),
        };
        let field = |at: usize| Fields(header.get(at..).unwrap_or_default());
        if !header.starts_with(b"\x7fELF") {
            return Err(Error::NotACore("it does not begin as an ELF file"));
        }
        if header.get(4..6) != Some(&[2, 1]) {
            return Err(Error::NotACore("it is not of 64 bits and little-endian"));
        }
        if field(16).u16() != 4 {
            return Err(Error::NotACore("it is an ELF file of another kind"));
        }
        let (programs, sections) = (field(32).u64(), field(40).u64());
        let size = u64::from(field(54).u16());
        let mut count = u64::from(field(56).u16());
        if count == 0xffff {
            // PN_XNUM: the count is in the first section header.
            let real = sections.checked_add(44).and_then(|at| file.array(at).ok()).map(u32::from_le_bytes);
            count = real.ok_or(Error::TruncatedHeader { bytes: file.size() })?.into();
        }
        if size < 56 {
            return Err(Error::NotACore("its program headers are too small"));
        }
        let mut core = Self {
            machine: field(18).u16(),
            segments: Vec::new(),
            threads: Vec::new(),
            files: Vec::new(),
            process: None,
            signal: None,
            copy: None,
            missing_bytes: 0,
            promised_bytes: programs.saturating_add(size.saturating_mul(count.min(MAX_SEGMENTS))),
            omitted: Vec::new(),
            left_out: Vec::new(),
            backing: Vec::new(),
            executed_path: None,
            headers: headers(programs, size, count, sections),
            notes: Vec::new(),
            stop: ReadStop::default(),
            file,
        };
        let mut notes = Vec::new();
        for index in 0..count.min(MAX_SEGMENTS) {
            let at = index.checked_mul(size).and_then(|at| at.checked_add(programs));
            let Some(program) = at.and_then(|at| core.file.array::<56>(at).ok()) else { break };
            let field = |at: usize| Fields(program.get(at..).unwrap_or_default());
            let (offset, address, bytes) = (field(8).u64(), field(16).u64(), field(32).u64());
            core.promised_bytes = core.promised_bytes.max(offset.saturating_add(bytes));
            match field(0).u32() {
                1 => {
                    let (flags, mapping) = (field(4).u32(), field(24).u64());
                    core.add_segment(Segment { address, size: bytes, file_offset: offset, flags, mapping });
                    let (start, end) =
                        (address.saturating_add(bytes), address.saturating_add(field(40).u64()));
                    if start < end {
                        core.omitted.push(start..end);
                    }
                    if start < end && field(4).u32() & WRITABLE == 0 {
                        core.left_out.push(start..end);
                    }
                }
                4 if notes.len() < 64 => notes.push((offset, bytes)),
                _ => {}
            }
        }
        core.segments.sort_by_key(|segment| segment.address);
        core.left_out.sort_by_key(|range| range.start);
        for (offset, bytes) in notes {
            core.notes.push(offset..offset.saturating_add(bytes).min(core.file.size()));
            core.read_notes(offset, bytes);
        }
        core.files.sort_by_key(|file| file.start);
        if core.copy.is_some() {
            // A limit left it out: the process can have written it.
            core.left_out.clear();
        } else {
            core.omitted.clear();
        }
        Ok(core)
    }

    /// Makes reads of memory fail while a flag is set: a person has canceled what needs them.
    pub fn stop_reading_at(&mut self, flag: Arc<AtomicBool>) {
        self.stop = ReadStop::at(flag);
    }

    /// Uses mapped files for memory that the dump leaves out: the kernel leaves out mappings of files that
    /// were never written, by default. `open` returns the file with a path. A file is used if it is an ELF
    /// image with the build id that the dump has in its place. Returns the number of files that are used.
    ///
    /// ```no_run
    /// use clr_dump::CoreFile;
    /// use std::fs::File;
    ///
    /// let mut core = CoreFile::open(File::open("core")?)?;
    /// // Code of programs and libraries, which the kernel leaves out of its dumps.
    /// let used = core.add_files(|path| Some(Box::new(File::open(path).ok()?)));
    /// println!("{used} files are used");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_files(&mut self, mut open: impl FnMut(&str) -> Option<Box<dyn ReadAt>>) -> usize {
        let mut used: Vec<(Arc<str>, Arc<PagedFile>)> = Vec::new();
        let firsts: Vec<_> = self.files.iter().filter(|file| file.file_offset == 0).cloned().collect();
        for first in firsts.into_iter().take(MAX_BACKING_FILES) {
            if used.iter().any(|(path, _)| *path == first.path) {
                continue;
            }
            let Some(id) = build_id(self, first.start.get()) else { continue };
            let Some(file) = open(&first.path).and_then(|file| PagedFile::new(file).ok()) else { continue };
            let whole = FileFrom { file: &file, start: first.start.get() };
            if build_id(&whole, first.start.get()) == Some(id) {
                used.push((first.path, Arc::new(file)));
            }
        }
        for mapping in &self.files {
            if let Some((_, file)) = used.iter().find(|(path, _)| *path == mapping.path) {
                self.backing.push(Backing { mapping: mapping.clone(), file: Arc::clone(file) });
            }
        }
        used.len()
    }

    /// Reads memory that the dump leaves out from its file; returns the number of bytes, which is zero if it
    /// is not such memory.
    fn read_left_out(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let none = io::Error::from(io::ErrorKind::NotFound);
        let after = self.left_out.partition_point(|range| range.start <= address);
        let range = after.checked_sub(1).and_then(|index| self.left_out.get(index));
        let after = self.backing.partition_point(|backing| backing.mapping.start.get() <= address);
        let backing = after.checked_sub(1).and_then(|index| self.backing.get(index));
        let (Some(range), Some(backing)) = (range, backing) else { return Err(none) };
        let left = range.end.min(backing.mapping.end.get()).saturating_sub(address);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let inside = address.saturating_sub(backing.mapping.start.get());
        let at = backing.mapping.file_offset.saturating_add(inside);
        backing.file.read_exact(at, buffer.get_mut(..count).unwrap_or_default())?;
        Ok(count)
    }

    /// Adds a segment with the size that the file promises.
    fn add_segment(&mut self, promised: Segment) {
        let bytes = promised.size;
        let there = self.file.size().saturating_sub(promised.file_offset).min(bytes);
        self.missing_bytes = self.missing_bytes.saturating_add(bytes.saturating_sub(there));
        // A segment ends with the address space.
        let size = there.min(u64::MAX.saturating_sub(promised.address));
        if size > 0 {
            self.segments.push(Segment { size, ..promised });
        }
    }

    /// The processor's architecture.
    pub const fn machine(&self) -> Machine {
        Machine(self.machine)
    }

    /// The processor; `None` if its programs are not read.
    pub const fn processor(&self) -> Option<Processor> {
        Processor::of(self.machine())
    }

    /// The registers of the thread with that id; `None` if the dump does not have them.
    pub fn registers(&self, tid: u64) -> Option<&Registers> {
        self.threads.iter().find(|thread| u64::from(thread.tid) == tid)?.registers.as_ref()
    }

    /// The registers of all threads that have some, keyed by thread id.
    pub fn thread_registers(&self) -> BTreeMap<u32, Registers> {
        self.threads.iter().filter_map(|thread| Some((thread.tid, thread.registers?))).collect()
    }

    /// The threads, in the order of the file: in the kernel's, the thread that received the signal is first.
    pub fn threads(&self) -> &[CoreThread] {
        &self.threads
    }

    /// The mapped files, by address.
    pub fn files(&self) -> &[MappedFile] {
        &self.files
    }

    /// The process.
    pub const fn process(&self) -> Option<&CoreProcess> {
        self.process.as_ref()
    }

    /// The signal for which it was written.
    pub const fn signal(&self) -> Option<SignalInfo> {
        self.signal
    }

    /// Returns the id of the thread that a signal has ended, of a core dump that was written for one.
    pub fn signalled_thread(&self) -> Option<u64> {
        let signal = self.signal()?;
        let own = |thread: &&CoreThread| i32::from(thread.signal) == signal.number;
        // The kernel puts it first; createdump marks none, or all.
        let threads = self.threads();
        let count = threads.iter().filter(own).count();
        let first = threads.iter().find(own).filter(|first| count == 1 || threads.first() == Some(*first));
        first.map(|thread| u64::from(thread.tid))
    }

    /// Returns the signal that all threads are marked with, of a core dump that has no other account of it:
    /// createdump of .NET Core 3.1.
    pub fn common_signal(&self) -> Option<i32> {
        let mut threads = self.threads().iter();
        let signal = threads.next()?.signal;
        let is_common = self.signal().is_none() && signal != 0 && threads.all(|other| other.signal == signal);
        is_common.then(|| signal.into())
    }

    /// The description of a core dump that this crate has written.
    pub const fn copy(&self) -> Option<&CopyNote> {
        self.copy.as_ref()
    }

    /// Bytes of memory that a limit has left out of a copy: of mapped files, and of other memory.
    pub fn omitted_bytes(&self) -> (u64, u64) {
        let (mut of_files, mut others) = (0_u64, 0_u64);
        for range in &self.omitted {
            let sum = if self.is_mapped(range.start) { &mut of_files } else { &mut others };
            *sum = sum.saturating_add(range.end.saturating_sub(range.start));
        }
        (of_files, others)
    }

    /// The number of bytes of memory that the headers promise and the file lacks.
    pub const fn missing_bytes(&self) -> u64 {
        self.missing_bytes
    }

    /// The length of the file.
    pub const fn file_bytes(&self) -> u64 {
        self.file.size()
    }

    /// The file length that the present headers promise.
    pub const fn promised_bytes(&self) -> u64 {
        self.promised_bytes
    }

    /// Returns true if the file was truncated: its headers promise more than it has.
    pub const fn is_truncated(&self) -> bool {
        self.promised_bytes > self.file.size()
    }

    /// The number of bytes of memory in the file.
    pub fn memory_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).fold(0, u64::saturating_add)
    }

    /// Returns true if this is a copy by `dipc dump strip`: strings and buffers are zero.
    pub fn is_stripped(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.arguments == STRIPPED)
            || self.is_without_numbers()
    }

    /// Returns true if this is such a copy and the program's numbers are zero, too.
    pub fn is_without_numbers(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.arguments == STRIPPED_OF_NUMBERS)
    }

    /// The names of the environment variables that the process was started with, which are on its first
    /// stack; `None` if the file does not have them.
    pub fn environment_names(&self) -> Option<Vec<String>> {
        const PAGE: u64 = 4096;
        const MAX_PAGES: u64 = 512;
        let path = self.executed_path?;
        let mut bytes = Vec::new();
        let mut start = path;
        for _ in 0..MAX_PAGES {
            let below = (start.saturating_sub(1) / PAGE).saturating_mul(PAGE);
            let mut page = vec![0; usize::try_from(start.saturating_sub(below)).unwrap_or_default()];
            if page.is_empty() || self.read(below, &mut page).is_err() {
                break;
            }
            page.append(&mut bytes);
            (bytes, start) = (page, below);
        }
        if bytes.is_empty() {
            return None;
        }
        let mut names = Vec::new();
        // The last string ends with NUL.
        for text in bytes.split(|byte| *byte == 0).rev().skip(1) {
            let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
            let is_name = |byte: &u8| byte.is_ascii_graphic();
            if name.len() == text.len()
                || name.is_empty()
                || !name.iter().all(is_name)
                || name.starts_with(b"-")
            {
                break;
            }
            names.push(String::from_utf8_lossy(name).into_owned());
        }
        names.sort();
        Some(names)
    }

    pub(crate) const fn file(&self) -> &PagedFile {
        &self.file
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = Range<u64>> {
        self.headers.iter().cloned()
    }

    pub(crate) fn notes(&self) -> impl Iterator<Item = Range<u64>> {
        self.notes.iter().cloned()
    }

    /// Returns true if an address is in a mapped file.
    pub(crate) fn is_mapped(&self, address: u64) -> bool {
        let after = self.files.partition_point(|file| file.start.get() <= address);
        let file = after.checked_sub(1).and_then(|index| self.files.get(index));
        file.is_some_and(|file| address < file.end.get())
    }

    /// The offset in the file of the memory at an address.
    pub(crate) fn file_offset(&self, address: u64) -> Option<u64> {
        let after = self.segments.partition_point(|segment| segment.address <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        let inside = address.checked_sub(segment.address).filter(|inside| *inside < segment.size)?;
        Some(segment.file_offset.saturating_add(inside))
    }

    /// The parts of a range that the file has: start and bytes, each of one segment.
    pub(crate) fn present(&self, address: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
        let end = address.saturating_add(bytes);
        let after = self.segments.partition_point(|segment| segment.address <= address);
        let segments = self.segments.get(after.saturating_sub(1)..).unwrap_or_default();
        let segments = segments.iter().take_while(move |segment| segment.address < end);
        segments.filter_map(move |segment| {
            let start = segment.address.max(address);
            let to = segment.address.saturating_add(segment.size).min(end);
            (start < to).then(|| (start, to.saturating_sub(start)))
        })
    }

    fn read_memory(&self, mut address: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let count = match self.read_segment(address, buffer)? {
                0 => self.read_left_out(address, buffer)?,
                count => count,
            };
            if count == 0 {
                return Err(io::ErrorKind::NotFound.into());
            }
            buffer = buffer.get_mut(count..).unwrap_or_default();
            address = address.wrapping_add(u64::try_from(count).unwrap_or_default());
        }
        Ok(())
    }

    /// Reads memory that the dump has; returns the number of bytes, which is zero if it lacks the first.
    fn read_segment(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let next = self.segments.partition_point(|segment| segment.address <= address);
        let segment = next.checked_sub(1).and_then(|index| self.segments.get(index));
        let Some(segment) = segment else { return Ok(0) };
        let inside = address.wrapping_sub(segment.address);
        let left = segment.size.saturating_sub(inside);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        if let Some(part) = buffer.get_mut(..count).filter(|part| !part.is_empty()) {
            self.file.read_exact(segment.file_offset.saturating_add(inside), part)?;
        }
        Ok(count)
    }
}

impl Memory for CoreFile {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        if self.stop.is_stopped() {
            return Err(Missing { address });
        }
        self.read_memory(address, buffer).map_err(|_| Missing { address })
    }
}

/// A file as the memory of its first mapping.
struct FileFrom<'f> {
    file: &'f PagedFile,
    start: u64,
}

impl Memory for FileFrom<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        let missing = Missing { address };
        let at = address.checked_sub(self.start).ok_or(missing)?;
        self.file.read_exact(at, buffer).map_err(|_| missing)
    }
}

/// Returns true if a short file is the beginning of a 64-bit ELF file; an empty file is, too.
fn is_beginning(file: &PagedFile) -> bool {
    const BEGINNING: [u8; 6] = *b"\x7fELF\x02\x01";
    let length = file.size().min(6);
    let bytes = file.bytes(0, length).unwrap_or_default();
    BEGINNING.starts_with(&bytes)
}

/// The build id of an image.
fn build_id(memory: &dyn Memory, start: u64) -> Option<Vec<u8>> {
    ElfImage::read(memory, start).ok()??.build_id.filter(|id| !id.is_empty())
}

/// The parts of a file with its headers: the ELF header, program headers, and the section header that can
/// have their number.
fn headers(programs: u64, size: u64, count: u64, sections: u64) -> Vec<Range<u64>> {
    const SECTION: u64 = 64;
    let table = size.saturating_mul(count.min(MAX_SEGMENTS));
    let mut headers = vec![0..64, programs..programs.saturating_add(table)];
    if sections != 0 {
        headers.push(sections..sections.saturating_add(SECTION));
    }
    headers
}

/// The little-endian value at the start of bytes; zero past their end.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(self) -> u16 {
        self.0.first_chunk().copied().map(u16::from_le_bytes).unwrap_or_default()
    }

    fn u32(self) -> u32 {
        self.0.first_chunk().copied().map(u32::from_le_bytes).unwrap_or_default()
    }

    fn u64(self) -> u64 {
        self.0.first_chunk().copied().map(u64::from_le_bytes).unwrap_or_default()
    }
}
