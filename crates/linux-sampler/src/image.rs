//! Programs and libraries: build id, unwind information, symbols.

// The paths are for the fuzz target, which has this file by its path.
#[path = "image/elf.rs"]
mod elf;
#[path = "image/symbol_table.rs"]
mod symbol_table;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use framehop::ExplicitModuleSectionInfo;
use linux_proc_stat::FileId;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::nearest_symbols::NearestSymbols;
use elf::{ElfLayout, Section, Segment, Symbols};

pub use symbol_table::{Symbol, SymbolTable};

/// A program or library, as seen by a process. Its parts are read on demand.
///
/// ```
/// use linux_sampler::Image;
///
/// let image = Image::read(std::fs::File::open(std::env::current_exe()?)?)?;
/// println!("build id {:x?}", image.build_id());
/// assert!(!image.symbols()?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Image {
    file: File,
    layout: ElfLayout,
    /// The unwind information, once it is needed.
    sections: OnceLock<UnwindSections>,
    /// The names of its functions, once they are needed.
    functions: OnceLock<SymbolTable>,
    /// The names of functions that were found one by one.
    known_functions: Mutex<KnownFunctions>,
}

/// Maximum number of functions of an image, and of addresses without one, to keep.
const MAX_KNOWN: usize = 4096;

/// Functions at addresses that were asked for: all others are not kept.
#[derive(Debug, Default)]
pub(crate) struct KnownFunctions {
    /// The end and the name of each, by its start.
    functions: BTreeMap<u64, (u64, Vec<u8>)>,
    /// Addresses without a function.
    nameless: HashSet<u64>,
}

impl KnownFunctions {
    fn at(&self, address: u64) -> Option<(u64, u64, &[u8])> {
        let (start, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some((*start, *end, name))
    }

    fn knows(&self, address: u64) -> bool {
        self.nameless.contains(&address) || self.at(address).is_some()
    }

    /// Returns the functions at some addresses. `read` is called if one of them is new.
    pub(crate) fn table_of(
        &mut self,
        addresses: &BTreeSet<u64>,
        read: impl FnOnce(&BTreeSet<u64>) -> SymbolTable,
    ) -> SymbolTable {
        if addresses.iter().any(|address| !self.knows(*address)) {
            let count = self.functions.len().saturating_add(self.nameless.len());
            if count.saturating_add(addresses.len()) > MAX_KNOWN {
                *self = Self::default();
            }
            let table = read(addresses);
            for &address in addresses {
                if let Some(symbol) = table.at(address) {
                    self.functions.entry(symbol.start).or_insert((symbol.end, symbol.name.to_vec()));
                } else {
                    self.nameless.insert(address);
                }
            }
        }
        let mut table = SymbolTable::default();
        for (start, end, name) in addresses.iter().filter_map(|address| self.at(*address)) {
            table.add(start, end.saturating_sub(start), name);
        }
        table.sort();
        table
    }
}

/// The unwind information of an image, with its addresses.
pub(crate) type UnwindSections = ExplicitModuleSectionInfo<Arc<[u8]>>;

impl Image {
    /// Opens a file in a process's view of the file system.
    ///
    /// # Errors
    /// If it is not a regular file or not an image, or cannot be read.
    pub fn open(pid: i32, path: &str) -> io::Result<Self> {
        Self::read(open_in_root(pid, path)?)
    }

    /// Reads the headers of an image.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(file: File) -> io::Result<Self> {
        let layout = ElfLayout::read(&file)?;
        Ok(Self {
            file,
            layout,
            sections: OnceLock::new(),
            functions: OnceLock::new(),
            known_functions: Mutex::default(),
        })
    }

    /// The build id, which identifies the file on symbol servers; empty if the file does not have one.
    pub fn build_id(&self) -> &[u8] {
        &self.layout.build_id
    }

    /// The name of the file with the symbols.
    pub fn debug_link(&self) -> Option<&str> {
        self.layout.debug_link.as_deref()
    }

    /// The image's own address for an offset of code in the file.
    pub fn address_of(&self, file_offset: u64) -> Option<u64> {
        let segment = segment_of(&self.layout.segments, file_offset, rustix::param::page_size() as u64)?;
        Some(segment.address.wrapping_add(file_offset.wrapping_sub(segment.file_offset)))
    }

    /// The offset in the file of the image's own address.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let offset = |segment: &Segment| {
            let inside = address.checked_sub(segment.address).filter(|inside| *inside < segment.file_size)?;
            segment.file_offset.checked_add(inside)
        };
        self.layout.segments.iter().find_map(offset)
    }

    /// Returns true if it is the mapped file.
    pub(crate) fn is_of(&self, file: FileId) -> bool {
        let id = |stat: rustix::fs::Stat| FileId {
            major: rustix::fs::major(stat.st_dev),
            minor: rustix::fs::minor(stat.st_dev),
            inode: stat.st_ino,
        };
        rustix::fs::fstat(&self.file).is_ok_and(|stat| id(stat) == file)
    }

    /// The opened file.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Returns the addresses of the functions with these names, as far as the file has them: among exported
    /// symbols, or among all if it exports none, as a program that is linked statically.
    pub(crate) fn functions_named(&self, names: &[&str]) -> io::Result<Vec<Option<u64>>> {
        let symbols = if self.layout.has(Symbols::Exported) { Symbols::Exported } else { Symbols::All };
        let all_names = self.layout.names(&self.file, symbols)?;
        let mut addresses = vec![None; names.len()];
        self.layout.each_function(&self.file, symbols, |symbol| {
            let name = all_names.of(symbol);
            let mut wanted = names.iter().zip(&mut addresses);
            if let Some((_, address)) = wanted.find(|(wanted, _)| Some(wanted.as_bytes()) == name) {
                address.get_or_insert(symbol.address);
            }
            true
        })?;
        Ok(addresses)
    }

    /// The unwind information, which is read once: all processes that map the file share it.
    pub(crate) fn unwind_sections(&self) -> UnwindSections {
        self.sections.get_or_init(|| self.read_unwind_sections()).clone()
    }

    fn read_unwind_sections(&self) -> UnwindSections {
        let ElfLayout { text, got, eh_frame, eh_frame_hdr, .. } = &self.layout;
        let range = |section: &Option<Section>| section.as_ref().and_then(Section::range);
        let data = |section: &Option<Section>| section.as_ref()?.read(&self.file).ok();
        let frames = range(eh_frame);
        // Without the header, its table is made from the entries.
        let header = range(eh_frame_hdr).zip(data(eh_frame_hdr)).filter(|(at, bytes)| {
            frames.as_ref().is_some_and(|frames| is_search_table(bytes, at.start, frames))
        });
        let (header_range, header) = header.unzip();
        ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(text),
            text: None,
            stubs_svma: None,
            stub_helper_svma: None,
            got_svma: range(got),
            unwind_info: None,
            eh_frame_svma: frames,
            eh_frame: data(eh_frame),
            eh_frame_hdr_svma: header_range,
            eh_frame_hdr: header,
            debug_frame: None,
            text_segment_svma: None,
            text_segment: None,
        }
    }

    /// The symbols of functions, which are read once; empty if they cannot be read.
    pub(crate) fn functions(&self) -> &SymbolTable {
        self.functions.get_or_init(|| self.symbols().unwrap_or_default())
    }

    /// The symbols of the functions at some addresses. They are kept for the next time, and all others are
    /// not.
    pub(crate) fn functions_at(&self, addresses: &BTreeSet<u64>) -> SymbolTable {
        let mut known = self.known_functions.lock().unwrap_or_else(PoisonError::into_inner);
        known.table_of(addresses, |addresses| self.symbols_at(addresses).unwrap_or_default())
    }

    /// Reads the symbols of functions at some addresses.
    fn symbols_at(&self, addresses: &BTreeSet<u64>) -> io::Result<SymbolTable> {
        let mut nearest = NearestSymbols::new(addresses);
        for symbols in [Symbols::All, Symbols::Exported] {
            self.layout.each_function(&self.file, symbols, |symbol| {
                nearest.add(symbol.address, symbol.size, || symbol.name);
                true
            })?;
        }
        let mut table = SymbolTable::default();
        for symbol in nearest.into_symbols() {
            let name = symbol.name.read(&self.file);
            if !name.is_empty() {
                table.add(symbol.start, symbol.size, &name);
            }
        }
        table.sort();
        Ok(table)
    }

    /// The bytes of unwind information, if it is not read.
    pub(crate) fn unread_unwind_bytes(&self) -> u64 {
        if self.sections.get().is_some() {
            return 0;
        }
        let size = |section: &Option<Section>| section.as_ref().map_or(0, Section::size);
        size(&self.layout.eh_frame).saturating_add(size(&self.layout.eh_frame_hdr))
    }

    /// Reads the symbols of functions: from the symbol table, or only exported symbols if the file is
    /// stripped.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn symbols(&self) -> io::Result<SymbolTable> {
        let mut table = SymbolTable::default();
        for symbols in [Symbols::All, Symbols::Exported] {
            let names = self.layout.names(&self.file, symbols)?;
            self.layout.each_function(&self.file, symbols, |symbol| match names.of(symbol) {
                Some(name) if !name.is_empty() => table.add(symbol.address, symbol.size, name),
                _ => true,
            })?;
        }
        table.sort();
        Ok(table)
    }
}

/// Returns the segment of code at an offset in the file.
///
/// A mapping begins with the page in which a segment begins. The first bytes of that page can be the end of
/// the segment before, as in files that `lld` has linked, which is mapped elsewhere.
fn segment_of(segments: &[Segment], file_offset: u64, page: u64) -> Option<&Segment> {
    let is_in = |segment: &&Segment| {
        let first_page = segment.file_offset - segment.file_offset % page;
        file_offset >= first_page
            && file_offset.checked_sub(segment.file_offset).is_none_or(|inside| inside < segment.file_size)
    };
    segments.iter().filter(|segment| segment.is_code).find(is_in).or_else(|| segments.iter().find(is_in))
}

/// Returns true if the header of unwind information at the address `at` is a search table as linkers write
/// it, with all entries in `frames`. The unwinder subtracts their addresses unchecked.
fn is_search_table(header: &[u8], at: u64, frames: &Range<u64>) -> bool {
    // Version 1; 4 bytes each: relative to the field, a number, relative to the header.
    let Some((&[1, 0x1b, 0x03, 0x3b], fields)) = header.split_first_chunk() else { return false };
    let (words, _) = fields.as_chunks();
    let mut words = words.iter().map(|word| i32::from_ne_bytes(*word));
    let (Some(start), Some(count)) = (words.next(), words.next()) else { return false };
    let start = at.wrapping_add(4).wrapping_add_signed(start.into());
    // Each entry has the address of a function, and that of its unwind information.
    let mut entries = words.skip(1).step_by(2).map(|entry| at.wrapping_add_signed(entry.into()));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    start == frames.start
        && entries.len() >= count
        && entries.by_ref().take(count).all(|entry| frames.contains(&entry))
}

/// The types of the kernel's file systems, as `statfs` returns them.
const PROC: i64 = 0x9fa0;
const SYSFS: i64 = 0x6265_6572;

/// Maximum number of attempts to open a path: the kernel gives up one with `..` if anything on the system is
/// renamed meanwhile.
const OPEN_ATTEMPTS: u32 = 16;

/// Opens a path in the file system of a process. Links are resolved as the process would, and only a regular
/// file is opened.
fn open_in_root(pid: i32, path: &str) -> io::Result<File> {
    let root = format!("/proc/{pid}/root");
    let root =
        rustix::fs::openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let inside = path.trim_start_matches('/');
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let mut open = (0..OPEN_ATTEMPTS)
        .map(|_| rustix::fs::openat2(&root, inside, flags, Mode::empty(), ResolveFlags::IN_ROOT))
        .skip_while(|found| matches!(found, Err(Errno::AGAIN)));
    let found = open.next().unwrap_or(Err(Errno::AGAIN))?;
    // The checked file is the opened file: not a device, nor a FIFO, which would wait for a writer.
    if !rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode).is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // The process may have mounted a kernel file in its place, for example /proc/kmsg, which blocks.
    #[allow(clippy::unnecessary_cast, reason = "its type differs by architecture")]
    if matches!(rustix::fs::fstatfs(&found)?.f_type as i64, PROC | SYSFS) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a file of the kernel"));
    }
    let by_descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&found));
    File::open(by_descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::ProcessMaps;

    #[test]
    fn the_first_page_of_code_is_not_of_the_segment_that_ends_in_it() {
        // The segments of libcoreclr.so of 9.0.1.
        let segment =
            |file_offset, file_size, address, is_code| Segment { file_offset, file_size, address, is_code };
        let segments = [segment(0, 0x1d_2bb4, 0, false), segment(0x1d_2bc0, 0x4e_b690, 0x1d_3bc0, true)];
        let address = |offset| Some(segment_of(&segments, offset, 4096)?.address);
        for offset in [0x1d_2000, 0x1d_2bb4, 0x1d_2bc0, 0x6b_e24f] {
            assert_eq!(address(offset), Some(0x1d_3bc0), "{offset:x}");
        }
        assert_eq!((address(0x1d_1fff), address(0x6b_e250)), (Some(0), None));
    }

    #[test]
    fn files_of_the_kernel_are_not_read_for_a_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        for path in ["/proc/version", "/sys/kernel/uevent_seqnum", "/dev/null", "/proc"] {
            let error = open_in_root(own, path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}: {error}");
        }
        assert!(open_in_root(own, std::env::current_exe().unwrap().to_str().unwrap()).is_ok());
    }

    #[test]
    fn a_search_table_with_an_entry_outside_the_unwind_information_is_not_used() {
        // Found by fuzzing: the unwinder's subtraction overflowed.
        let header = |entry: i32| -> Vec<u8> {
            let words = [0x100 - 4, 1, -0x500, entry];
            let words = words.iter().flat_map(|word: &i32| word.to_ne_bytes());
            [1, 0x1b, 3, 0x3b].into_iter().chain(words).collect()
        };
        let frames = 0x1100..0x1200;
        assert!(is_search_table(&header(0x180), 0x1000, &frames));
        assert!(!is_search_table(&header(0xff), 0x1000, &frames));
        assert!(!is_search_table(&header(0x200), 0x1000, &frames));
        assert!(!is_search_table(&header(0x180)[..16], 0x1000, &frames));
    }

    #[inline(never)]
    fn a_function_of_this_test() -> u64 {
        std::hint::black_box(a_function_of_this_test as fn() -> u64 as usize as u64)
    }

    #[test]
    fn functions_at_some_addresses_match_the_whole_table() {
        let image = Image::read(File::open(std::env::current_exe().unwrap()).unwrap()).unwrap();
        let whole = image.functions();
        let shape = |table: &SymbolTable, at| {
            table.at(at).map(|symbol| (symbol.start, symbol.end, symbol.name.to_vec()))
        };
        let rows = whole.rows.iter().step_by(whole.rows.len() / 300 + 1);
        let addresses: BTreeSet<u64> =
            rows.flat_map(|row| [row.start, row.start + row.size, row.start.saturating_sub(1)]).collect();
        let halves: Vec<u64> = addresses.iter().copied().collect();
        for part in [&halves[..halves.len() / 2], &halves] {
            let part: BTreeSet<u64> = part.iter().copied().collect();
            let some = image.functions_at(&part);
            for &at in &part {
                assert_eq!(shape(&some, at), shape(whole, at), "{at:x}");
            }
        }
        assert!(image.known_functions.lock().unwrap().functions.len() > 100);
    }

    #[test]
    fn this_programs_own_functions_have_their_names() {
        let address = a_function_of_this_test();
        let pid = i32::try_from(std::process::id()).unwrap();
        let maps = ProcessMaps::read(pid).unwrap();
        let mapping = maps.at(address).unwrap();
        let image = mapping.open_image(pid).unwrap();
        let symbols = image.symbols().unwrap();
        let symbol = symbols.at(mapping.address_in(&image, address).unwrap()).unwrap();
        let name = String::from_utf8_lossy(symbol.name);
        assert!(name.contains("a_function_of_this_test"), "{name}");
    }
}
