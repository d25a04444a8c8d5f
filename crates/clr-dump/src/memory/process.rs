//! The memory of a live process, by `/proc/PID/mem`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use crate::error::Error;
use crate::memory::mapping::{MappedFile, Mapping, parse_mappings, parse_maps};
use crate::memory::read_stop::ReadStop;
use crate::memory::{Memory, MemoryResult, Missing, PAGE};
use crate::processor::Machine;

/// The memory of a live process. The process runs on while it is read: structures can change between two
/// reads, and a value that was read can be out of date.
///
/// ```
/// use clr_dump::{Memory, ProcessMemory};
///
/// let (value, mut copy) = (*b"4711", [0; 4]);
/// let memory = ProcessMemory::open(std::process::id())?;
/// memory.read(value.as_ptr().addr() as u64, &mut copy)?;
/// assert_eq!(copy, value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ProcessMemory {
    file: File,
    pid: u32,
    constant: ConstantPages,
    stop: ReadStop,
}

/// Pages of files that are mapped without write access. Unwinding reads the same ones for each thread, some
/// bytes at a time: they were 40 % of all reads of a process of 9,000 threads.
#[derive(Debug, Default)]
struct ConstantPages {
    /// Their addresses, by start.
    ranges: Vec<(u64, u64)>,
    pages: Mutex<HashMap<u64, Box<[u8; PAGE_BYTES]>>>,
}

/// [`PAGE`] for arrays.
const PAGE_BYTES: usize = 4096;
/// Maximum number of bytes of a page of a kernel.
const MAX_PAGE: u64 = 1 << 20;
/// Maximum number of bytes of a read for which a page is kept.
const MAX_SMALL: usize = 64;
/// Maximum number of pages that are kept: 8 MiB.
const MAX_PAGES: usize = 2048;

impl ConstantPages {
    /// Returns true if a page is constant.
    fn contains(&self, page: u64) -> bool {
        let next = self.ranges.partition_point(|(start, _)| *start <= page);
        let range = next.checked_sub(1).and_then(|last| self.ranges.get(last));
        range.is_some_and(|(_, end)| page < *end)
    }

    /// Reads from a page; `None` if it is not constant, or not readable.
    fn read(&self, file: &File, address: u64, buffer: &mut [u8]) -> Option<()> {
        let offset = address % PAGE;
        let page = address.checked_sub(offset)?;
        if buffer.len() > MAX_SMALL || !self.contains(page) {
            return None;
        }
        let start = usize::try_from(offset).ok()?;
        let range = start..start.checked_add(buffer.len())?;
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if !pages.contains_key(&page) {
            if pages.len() >= MAX_PAGES {
                return None;
            }
            let mut bytes = Box::new([0; PAGE_BYTES]);
            file.read_exact_at(&mut *bytes, page).ok()?;
            pages.insert(page, bytes);
        }
        // A read beyond the end of the page is not of it.
        buffer.copy_from_slice(pages.get(&page)?.get(range)?);
        Some(())
    }
}

impl ProcessMemory {
    /// Opens the memory of a process. This takes the permission to trace it.
    ///
    /// # Errors
    /// If the process does not exist, or the caller may not read its memory.
    pub fn open(pid: u32) -> Result<Self, Error> {
        let path = format!("/proc/{pid}/mem");
        let file = File::open(&path).map_err(|error| Error::Io { what: path, error })?;
        Ok(Self { file, pid, constant: ConstantPages::default(), stop: ReadStop::default() })
    }

    /// Makes reads fail while a flag is set: a person has canceled what needs them.
    pub fn stop_reading_at(&mut self, flag: Arc<AtomicBool>) {
        self.stop = ReadStop::at(flag);
    }

    /// Keeps the pages of files that are mapped now without write access, 8 MiB at most, for readers of many
    /// small values. They are not read again: for readings of moments, in which no file is unmapped.
    #[must_use]
    pub fn with_kept_files(mut self) -> Self {
        let mappings = self.mappings().unwrap_or_default();
        let is_constant = |mapping: &Mapping| {
            mapping.is_file() && mapping.is_readable && !mapping.is_writable && !mapping.is_shared
        };
        let range = |mapping: &Mapping| (mapping.start.get(), mapping.end.get());
        let mut ranges: Vec<_> = mappings.iter().filter(|mapping| is_constant(mapping)).map(range).collect();
        ranges.sort_unstable();
        self.constant.ranges = ranges;
        self
    }

    /// Reads the current mappings of files.
    ///
    /// # Errors
    /// If the process has ended, or its mappings may not be read.
    pub fn files(&self) -> Result<Vec<MappedFile>, Error> {
        Ok(parse_maps(&self.proc_file("maps")?))
    }

    /// Reads all current mappings.
    ///
    /// ```
    /// let memory = clr_dump::ProcessMemory::open(std::process::id())?;
    /// let stack = memory.mappings()?.into_iter().find(|mapping| &*mapping.name == "[stack]");
    /// assert!(stack.is_some_and(|stack| !stack.is_file() && stack.size() > 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the process has ended, or its mappings may not be read.
    pub fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        Ok(parse_mappings(&self.proc_file("maps")?))
    }

    /// The process id.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the architecture of its program; `None` if it cannot be read, or is not an ELF file.
    pub fn machine(&self) -> Option<Machine> {
        let mut header = [0; 20];
        let program = File::open(format!("/proc/{}/exe", self.pid)).ok()?;
        program.read_exact_at(&mut header, 0).ok()?;
        let number = header.last_chunk().map(|bytes| u16::from_le_bytes(*bytes))?;
        header.starts_with(b"\x7fELF").then_some(Machine(number))
    }

    /// Reads a file of the process in `/proc`.
    pub(crate) fn proc_file(&self, name: &str) -> Result<Vec<u8>, Error> {
        proc_file(self.pid, name)
    }
}

/// Reads a file of a process in `/proc`.
fn proc_file(pid: u32, name: &str) -> Result<Vec<u8>, Error> {
    let path = format!("/proc/{pid}/{name}");
    std::fs::read(&path).map_err(|error| Error::Io { what: path, error })
}

/// Returns the number of bytes of a page of a process, from its auxiliary vector: the smallest size if it
/// cannot be read.
pub(crate) fn page_bytes(pid: u32) -> u64 {
    let vector = proc_file(pid, "auxv").ok();
    vector.and_then(|vector| page_bytes_in(&vector)).unwrap_or(PAGE)
}

/// The size of pages in an auxiliary vector, which has pairs of words.
fn page_bytes_in(vector: &[u8]) -> Option<u64> {
    /// `AT_PAGESZ`
    const PAGE_SIZE: u64 = 6;
    let words = |pair: &[u8; 16]| {
        let [kind, value] = [0, 8].map(|at| pair.get(at..).and_then(<[u8]>::first_chunk).copied());
        Some((u64::from_le_bytes(kind?), u64::from_le_bytes(value?)))
    };
    let mut pairs = vector.as_chunks::<16>().0.iter().filter_map(words);
    let (_, size) = pairs.find(|(kind, _)| *kind == PAGE_SIZE)?;
    (size.is_power_of_two() && (PAGE..=MAX_PAGE).contains(&size)).then_some(size)
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        if self.stop.is_stopped() {
            return Err(Missing { address });
        }
        if self.constant.read(&self.file, address, buffer).is_some() {
            return Ok(());
        }
        self.file.read_exact_at(buffer, address).map_err(|_| Missing { address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::address::Address;

    #[test]
    fn the_memory_of_this_process_is_read() {
        // As x86-64 has it in its memory.
        static VALUE: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let address = std::ptr::from_ref(&VALUE).addr() as u64;
        assert_eq!((&memory as &dyn Memory).u64(address), Ok(u64::from_le_bytes(VALUE)));
        assert_eq!((&memory as &dyn Memory).u64(0), Err(Missing { address: 0 }));
        assert_eq!((&memory as &dyn Memory).u64(u64::MAX - 7), Err(Missing { address: u64::MAX - 7 }));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(memory.machine(), Some(Machine::X86_64));
        }
        let files = memory.files().unwrap();
        let address = Address::new(address);
        assert!(files.iter().any(|file| (file.start..file.end).contains(&address)));
    }

    #[test]
    fn sizes_of_pages_are_powers_of_two_from_4_to_64_kilobytes() {
        let of = |size: u64| page_bytes_in(&[3_u64, 0x40, 6, size, 0, 0].map(u64::to_le_bytes).concat());
        assert_eq!([4096, 16_384, 65_536].map(of), [Some(4096), Some(16_384), Some(65_536)]);
        assert_eq!([0, 512, 5000, u64::MAX].map(of), [None; 4]);
        assert_eq!(page_bytes_in(&[0; 24]), None);
    }

    #[test]
    fn kept_pages_have_the_bytes_of_the_process() {
        let [plain, kept] = [false, true].map(|keeps| {
            let memory = ProcessMemory::open(std::process::id()).unwrap();
            if keeps { memory.with_kept_files() } else { memory }
        });
        let own = plain.mappings().unwrap();
        let code = own.iter().find(|mapping| mapping.is_file() && mapping.is_executable).unwrap();
        let [start, end] = [code.start.get(), code.start.get() + PAGE];
        // In the page, over its end, and twice.
        for address in [start, start + 17, end - 8, end - 3, start + 17] {
            let read = |memory: &ProcessMemory| {
                let mut bytes = [0; 8];
                memory.read(address, &mut bytes).map(|()| bytes)
            };
            assert_eq!(read(&kept), read(&plain), "{:#x}", address - start);
        }
        assert!(!kept.constant.pages.lock().unwrap().is_empty());
        assert!(plain.constant.pages.lock().unwrap().is_empty());
        // What is written is read anew.
        let mut value = 1_u64;
        for next in 2..4 {
            let address = std::ptr::from_ref(&value).addr() as u64;
            assert_eq!((&kept as &dyn Memory).u64(address), Ok(value));
            value = std::hint::black_box(next);
        }
    }
}
