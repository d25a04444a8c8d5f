//! The layout of an ELF file, and its symbols, read in pieces: the symbol tables of large libraries have
//! tens of megabytes, of which a sampler needs some names.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use object::elf::{self, FileHeader32, FileHeader64};
use object::pod::{bytes_of_slice_mut, slice_from_all_bytes};
use object::read::ReadCacheOps;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader as _, SectionHeader as _, Sym as _};
use object::{Endianness, FileKind, ReadCache, ReadRef as _};

/// Maximum number of bytes of the headers of a file, with notes and the names of sections.
const MAX_HEADER_BYTES: u64 = 16 << 20;
/// Maximum number of headers of each kind: 4 MiB of those of sections.
const MAX_HEADERS: u32 = 1 << 16;
/// Maximum number of bytes of the notes of a section, and of the name of the file with the symbols.
const MAX_NOTE_BYTES: u64 = 1 << 16;
/// Maximum number of segments to keep.
const MAX_SEGMENTS: usize = 64;
/// Maximum number of bytes of a symbol table, and of its names. The largest libraries have some 100 MiB.
const MAX_TABLE_BYTES: u64 = 256 << 20;
/// Maximum number of bytes of unwind information.
const MAX_UNWIND_BYTES: u64 = 256 << 20;
/// The bytes of a symbol table that are read at once: whole symbols of both classes.
const PIECE_BYTES: usize = 48 << 10;
/// The bytes of a name that are read at first, and at most.
const NAME_BYTES: usize = 256;
const MAX_NAME_BYTES: usize = 64 << 10;

/// A loaded part of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) file_offset: u64,
    pub(super) file_size: u64,
    pub(super) address: u64,
    pub(super) is_code: bool,
}

/// The places of the parts of a file.
#[derive(Debug)]
pub(super) struct ElfLayout {
    format: Format,
    pub(super) build_id: Vec<u8>,
    pub(super) debug_link: Option<String>,
    pub(super) segments: Vec<Segment>,
    pub(super) text: Option<Section>,
    pub(super) got: Option<Section>,
    pub(super) eh_frame: Option<Section>,
    pub(super) eh_frame_hdr: Option<Section>,
    /// The symbol table, unless the file is stripped, and that of exported symbols.
    symbols: Option<SymbolPlace>,
    exported: Option<SymbolPlace>,
}

/// The class and the byte order of a file.
#[derive(Debug, Clone, Copy)]
struct Format {
    is_64: bool,
    endian: Endianness,
}

/// The place of a section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section {
    address: u64,
    /// The bytes in memory.
    size: u64,
    /// The offset in the file, if the section is there as it is in memory.
    file_offset: Option<u64>,
}

impl Section {
    /// The addresses.
    pub(super) fn range(&self) -> Option<Range<u64>> {
        Some(self.address..self.address.checked_add(self.size)?)
    }

    /// The bytes in memory.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Reads the content.
    pub(super) fn read(&self, file: &File) -> io::Result<Arc<[u8]>> {
        let offset = self.file_offset.ok_or(io::ErrorKind::InvalidData)?;
        let size = checked_size(file, offset, self.size, MAX_UNWIND_BYTES)?;
        // In place: a copy would need the memory twice.
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, size).collect();
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            file.read_exact_at(bytes, offset)?;
        }
        Ok(bytes)
    }
}

/// The place of a table of symbols in the file.
#[derive(Debug, Clone, Copy)]
struct SymbolPlace {
    offset: u64,
    size: u64,
    names: NamePlace,
}

#[derive(Debug, Clone, Copy)]
struct NamePlace {
    offset: u64,
    size: u64,
}

/// A symbol of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct FunctionSymbol {
    pub(super) address: u64,
    /// Zero if it is not known.
    pub(super) size: u64,
    pub(super) name: NameKey,
}

/// The place of a name among the names of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameKey {
    place: NamePlace,
    offset: u32,
}

/// The names of a table, in memory.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<u8>);

impl Names {
    /// The name of a symbol of the table; `None` if it is damaged.
    pub(super) fn of(&self, symbol: &FunctionSymbol) -> Option<&[u8]> {
        let name = self.0.get(usize::try_from(symbol.name.offset).ok()?..)?;
        name.get(..memchr(name)?)
    }
}

/// The tables of symbols of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbols {
    /// All, unless the file is stripped.
    All,
    /// Those for other files.
    Exported,
}

impl ElfLayout {
    /// Reads the headers.
    pub(super) fn read(file: &File) -> io::Result<Self> {
        let cache = ReadCache::new(Headers { file, position: 0, left: MAX_HEADER_BYTES });
        match FileKind::parse(&cache).map_err(invalid)? {
            FileKind::Elf32 => read_headers::<FileHeader32<Endianness>>(&cache),
            FileKind::Elf64 => read_headers::<FileHeader64<Endianness>>(&cache),
            _ => Err(invalid("not an ELF file")),
        }
    }

    /// Returns true if the file has symbols of this kind.
    pub(super) const fn has(&self, symbols: Symbols) -> bool {
        self.place(symbols).is_some()
    }

    const fn place(&self, symbols: Symbols) -> Option<&SymbolPlace> {
        match symbols {
            Symbols::All => self.symbols.as_ref(),
            Symbols::Exported => self.exported.as_ref(),
        }
    }

    /// Passes the functions of a table to `add`, until that returns false.
    pub(super) fn each_function(
        &self,
        file: &File,
        symbols: Symbols,
        add: impl FnMut(&FunctionSymbol) -> bool,
    ) -> io::Result<()> {
        let Some(place) = self.place(symbols) else { return Ok(()) };
        if self.format.is_64 {
            each_function::<FileHeader64<Endianness>>(file, place, self.format.endian, add)
        } else {
            each_function::<FileHeader32<Endianness>>(file, place, self.format.endian, add)
        }
    }

    /// Reads all names of a table.
    pub(super) fn names(&self, file: &File, symbols: Symbols) -> io::Result<Names> {
        let Some(SymbolPlace { names, .. }) = self.place(symbols) else { return Ok(Names::default()) };
        let mut bytes = vec![0; checked_size(file, names.offset, names.size, MAX_TABLE_BYTES)?];
        file.read_exact_at(&mut bytes, names.offset)?;
        Ok(Names(bytes))
    }
}

impl NameKey {
    /// Reads the name; empty if it is damaged or longer than a limit.
    pub(super) fn read(self, file: &File) -> Vec<u8> {
        let inside = u64::from(self.offset);
        let left = usize::try_from(self.place.size.saturating_sub(inside)).unwrap_or(usize::MAX);
        let mut name = Vec::new();
        let mut wanted = NAME_BYTES;
        while name.len() < left.min(MAX_NAME_BYTES) {
            let known = name.len();
            name.resize(wanted.min(left), 0);
            let at = self.place.offset.saturating_add(inside).saturating_add(known as u64);
            let Some(Ok(())) = name.get_mut(known..).map(|rest| file.read_exact_at(rest, at)) else { break };
            if let Some(end) = memchr(&name) {
                name.truncate(end);
                return name;
            }
            wanted = wanted.saturating_mul(4);
        }
        Vec::new()
    }
}

/// The place of the first zero.
fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == 0)
}

/// Returns the size of a part of a file that has all of it.
fn checked_size(file: &File, offset: u64, size: u64, most: u64) -> io::Result<usize> {
    let end = offset.checked_add(size).filter(|_| size <= most).ok_or(io::ErrorKind::FileTooLarge)?;
    if end > file.metadata()?.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

fn each_function<Elf: FileHeader<Endian = Endianness>>(
    file: &File,
    place: &SymbolPlace,
    endian: Endianness,
    mut add: impl FnMut(&FunctionSymbol) -> bool,
) -> io::Result<()> {
    let each = size_of::<Elf::Sym>();
    let mut left = checked_size(file, place.offset, place.size, MAX_TABLE_BYTES)?;
    left = left.saturating_sub(left.checked_rem(each).unwrap_or(left));
    // Words, because symbols have to be aligned.
    let mut piece = vec![0_u64; left.min(PIECE_BYTES).div_ceil(8)];
    let mut offset = place.offset;
    while left > 0 {
        let size = left.min(PIECE_BYTES);
        let bytes = bytes_of_slice_mut(&mut piece).get_mut(..size).unwrap_or_default();
        file.read_exact_at(bytes, offset)?;
        for symbol in slice_from_all_bytes::<Elf::Sym>(bytes).unwrap_or_default() {
            if !matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC) || symbol.is_undefined(endian)
            {
                continue;
            }
            let symbol = FunctionSymbol {
                address: symbol.st_value(endian).into(),
                size: symbol.st_size(endian).into(),
                name: NameKey { place: place.names, offset: symbol.st_name(endian) },
            };
            if !add(&symbol) {
                return Ok(());
            }
        }
        offset = offset.saturating_add(size as u64);
        left = left.saturating_sub(size);
    }
    Ok(())
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

type HeaderCache<'f> = ReadCache<Headers<'f>>;

fn read_headers<Elf: FileHeader<Endian = Endianness>>(cache: &HeaderCache<'_>) -> io::Result<ElfLayout> {
    let header = Elf::parse(cache).map_err(invalid)?;
    let endian = header.endian().map_err(invalid)?;
    let counts = [header.phnum(endian, cache), header.shnum(endian, cache)];
    for count in counts {
        if count.map_err(invalid)? > MAX_HEADERS {
            return Err(invalid("too many headers"));
        }
    }
    let all_segments = header.program_headers(endian, cache).map_err(invalid)?;
    let sections = header.sections(endian, cache).map_err(invalid)?;
    let segments = all_segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    let segments = segments.map(|segment| {
        let (file_offset, file_size) = segment.file_range(endian);
        let is_code = (segment.p_flags(endian) & elf::PF_X).0 != 0;
        Segment { file_offset, file_size, address: segment.p_vaddr(endian).into(), is_code }
    });
    let mut layout = ElfLayout {
        format: Format { is_64: header.is_type_64(), endian },
        build_id: Vec::new(),
        debug_link: None,
        segments: segments.take(MAX_SEGMENTS).collect(),
        text: None,
        got: None,
        eh_frame: None,
        eh_frame_hdr: None,
        symbols: None,
        exported: None,
    };
    for section in sections.iter() {
        let in_file = section.file_range(endian);
        let place = Section {
            address: section.sh_addr(endian).into(),
            size: section.sh_size(endian).into(),
            file_offset: in_file.map(|(offset, _)| offset),
        };
        let symbols = || {
            let (offset, size) = in_file?;
            let names = sections.section(section.link(endian)).ok()?;
            let (names_offset, names_size) = names.file_range(endian)?;
            Some(SymbolPlace { offset, size, names: NamePlace { offset: names_offset, size: names_size } })
        };
        match section.sh_type(endian) {
            elf::SHT_SYMTAB if layout.symbols.is_none() => layout.symbols = symbols(),
            elf::SHT_DYNSYM if layout.exported.is_none() => layout.exported = symbols(),
            elf::SHT_NOTE if layout.build_id.is_empty() => {
                let notes = is_short(in_file).then(|| section.notes(endian, cache).ok()?);
                layout.build_id = build_id(endian, notes.flatten()).unwrap_or_default();
            }
            _ => {}
        }
        let of_name = match sections.section_name(endian, section).unwrap_or_default() {
            b".text" => &mut layout.text,
            b".got" => &mut layout.got,
            b".eh_frame" => &mut layout.eh_frame,
            b".eh_frame_hdr" => &mut layout.eh_frame_hdr,
            b".gnu_debuglink" => {
                layout.debug_link = layout.debug_link.or_else(|| debug_link(cache, in_file));
                continue;
            }
            _ => continue,
        };
        of_name.get_or_insert(place);
    }
    if sections.is_empty() {
        let short = all_segments.iter().filter(|segment| is_short(Some(segment.file_range(endian))));
        let mut ids = short.filter_map(|segment| build_id(endian, segment.notes(endian, cache).ok()?));
        layout.build_id = ids.next().unwrap_or_default();
    }
    Ok(layout)
}

/// Returns true if a part of a file is not larger than a note may be.
fn is_short(range: Option<(u64, u64)>) -> bool {
    range.is_some_and(|(_, size)| size <= MAX_NOTE_BYTES)
}

/// Returns the build id among notes.
fn build_id<Elf: FileHeader>(endian: Elf::Endian, notes: Option<NoteIterator<'_, Elf>>) -> Option<Vec<u8>> {
    let mut notes = notes?;
    while let Some(note) = notes.next().ok()? {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
            return Some(note.desc().to_vec());
        }
    }
    None
}

fn debug_link(cache: &HeaderCache<'_>, range: Option<(u64, u64)>) -> Option<String> {
    let (offset, size) = range.filter(|_| is_short(range))?;
    let bytes = cache.read_bytes_at(offset, size).ok()?;
    Some(String::from_utf8_lossy(bytes.get(..memchr(bytes)?)?).into_owned())
}

/// A file with a limit on the bytes that are read: the headers of a malformed one can be large.
#[derive(Debug)]
struct Headers<'f> {
    file: &'f File,
    position: u64,
    left: u64,
}

impl ReadCacheOps for Headers<'_> {
    fn len(&mut self) -> Result<u64, ()> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(drop)
    }

    fn seek(&mut self, to: u64) -> Result<u64, ()> {
        self.position = to;
        Ok(to)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ()> {
        let count = self.file.read_at(buffer, self.position).map_err(drop)?;
        self.left = self.left.checked_sub(count as u64).ok_or(())?;
        self.position = self.position.saturating_add(count as u64);
        Ok(count)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ()> {
        self.left = self.left.checked_sub(buffer.len() as u64).ok_or(())?;
        self.file.read_exact_at(buffer, self.position).map_err(drop)?;
        self.position = self.position.saturating_add(buffer.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write as _;

    use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

    use super::*;

    fn file_of(bytes: &[u8]) -> File {
        let file = rustix::fs::memfd_create("elf", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = File::from(file);
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn the_parts_of_a_file_match_those_of_a_reader_of_whole_files() {
        let path = std::env::current_exe().unwrap();
        let (file, bytes) = (File::open(&path).unwrap(), std::fs::read(path).unwrap());
        let layout = ElfLayout::read(&file).unwrap();
        let whole = object::File::parse(&*bytes).unwrap();
        assert_eq!(layout.build_id, whole.build_id().unwrap().unwrap_or_default());
        let segments = layout.segments.iter().map(|segment| (segment.address, segment.file_size));
        assert!(segments.eq(whole.segments().map(|segment| (segment.address(), segment.file_range().1))));
        for (name, section) in [(".text", &layout.text), (".eh_frame", &layout.eh_frame)] {
            let expected = whole.section_by_name(name).unwrap();
            let section = section.as_ref().unwrap();
            assert_eq!(&*section.read(&file).unwrap(), expected.data().unwrap(), "{name}");
        }
        let mut expected = BTreeMap::new();
        for symbol in whole.symbols() {
            if symbol.kind() == SymbolKind::Text && !symbol.is_undefined() {
                let names: &mut Vec<_> = expected.entry(symbol.address()).or_default();
                names.push((symbol.size(), symbol.name_bytes().unwrap().to_vec()));
            }
        }
        let (mut found, mut count) = (BTreeMap::new(), 0);
        let names = layout.names(&file, Symbols::All).unwrap();
        let add = |symbol: &FunctionSymbol| {
            let name = names.of(symbol).unwrap();
            if count % 100 == 0 {
                assert_eq!(symbol.name.read(&file), name);
            }
            count += 1;
            let names: &mut Vec<_> = found.entry(symbol.address).or_default();
            names.push((symbol.size, name.to_vec()));
            true
        };
        layout.each_function(&file, Symbols::All, add).unwrap();
        assert!(found == expected && count > 100);
        // It is read in several pieces.
        assert!(layout.symbols.unwrap().size > 2 * PIECE_BYTES as u64);
    }

    #[test]
    fn headers_beyond_a_limit_and_tables_beyond_the_file_are_refused() {
        let mut header = [0_u8; 128];
        header[..8].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0]);
        // One section after the header, which has the number of all.
        header[0x28] = 64;
        header[0x3a] = 64;
        header[64 + 0x20..64 + 0x24].copy_from_slice(&(1_u32 << 26).to_le_bytes());
        let error = ElfLayout::read(&file_of(&header)).unwrap_err();
        assert_eq!(error.to_string(), "too many headers");
        let file = file_of(&[0; 100]);
        let section = Section { address: 0, size: 90, file_offset: Some(20) };
        assert_eq!(section.read(&file).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let section = Section { size: u64::MAX, ..section };
        assert_eq!(section.read(&file).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_name_of_any_length_is_read_up_to_its_end() {
        let lengths = [0, 1, NAME_BYTES - 1, NAME_BYTES, NAME_BYTES + 1, MAX_NAME_BYTES - 1];
        let mut bytes = vec![7; 5];
        let mut names = Vec::new();
        for length in lengths {
            names.push((bytes.len() - 5, length));
            bytes.extend(std::iter::repeat_n(b'x', length).chain([0]));
        }
        let damaged = bytes.len() - 5;
        bytes.extend([b'y'; 10]);
        let file = file_of(&bytes);
        let place = NamePlace { offset: 5, size: bytes.len() as u64 - 5 };
        let read = |offset: usize| NameKey { place, offset: u32::try_from(offset).unwrap() }.read(&file);
        for (offset, length) in names {
            assert_eq!(read(offset), vec![b'x'; length]);
        }
        // It has no end, or is outside.
        assert!(read(damaged).is_empty() && read(bytes.len()).is_empty());
    }
}
