//! Modules: their paths, and the metadata with the names of their types and members.
//!
//! # Source
//! ECMA-335 II.25 for the headers of an image; dotnet/runtime `src/coreclr/vm/ceeload.h` (`Module`).

use std::cell::Cell;
use std::sync::OnceLock;

use portable_pdb::ProgramMetadata;

use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::runtime::layout::{self, MadeMetadata, Pointers};

/// Maximum number of characters of a path.
const MAX_CHARACTERS: u64 = 4096;
/// Maximum number of bytes of the metadata of a module.
const MAX_METADATA_SIZE: u32 = 256 << 20;
/// Maximum number of entries of the debug directory of an image.
const MAX_DEBUG_ENTRIES: u32 = 32;
/// Maximum number of sections of an image.
const MAX_SECTIONS: u16 = 96;

/// A loaded assembly.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Module {
    /// The address of the runtime's Module, or of the assembly's record in the metadata of a program that was
    /// compiled ahead of time.
    pub address: Address,
    /// The path of its file; of a file in a bundle, its name. Empty if the memory lacks it, or if the
    /// assembly was made in memory. The assembly's name if it is a part of a program.
    pub path: String,
    /// The address of the image; null for a module without one.
    pub base: Address,
    /// The size of its image.
    pub size: u32,
    /// True if it was made in memory (`System.Reflection.Emit`): it has neither a path nor an image.
    pub is_dynamic: bool,
    /// The metadata, once it was read: that of a framework has tens of megabytes, and few modules are asked
    /// for names.
    metadata: OnceLock<Vec<u8>>,
    /// The address and the size of the metadata; `None` if missing.
    pub(crate) metadata_at: Option<(u64, usize)>,
    /// True if the program has its names, being compiled ahead of time.
    pub(crate) has_aot_names: bool,
}

impl Module {
    pub(crate) fn read(memory: &dyn Memory, layout: &layout::Module, address: Address) -> Self {
        let path = layout.path.follow(memory, address).and_then(|at| path(memory, at));
        let base = layout.base.follow(memory, address);
        let is_dynamic = path.as_deref() == Ok("") && base == Ok(0);
        let base = base.unwrap_or_default();
        let image = PeImage::read(memory, base).ok();
        let metadata_at = match image.as_ref() {
            Some(image) => image.metadata(memory).ok(),
            None if is_dynamic => made_metadata(memory, layout, address).ok().flatten(),
            None => None,
        };
        // .NET 9 has no path for an assembly in a single file.
        let path = path.unwrap_or_default();
        let own_name = || {
            let (at, size) = metadata_at.filter(|_| !is_dynamic)?;
            ProgramMetadata::parse(&memory.bytes(at, size).ok()?).ok()?.module_name().ok()
        };
        let path = if path.is_empty() { own_name().unwrap_or_default() } else { path };
        Self {
            address,
            path,
            base: Address::new(base),
            size: image.as_ref().map_or(0, |image| image.size),
            is_dynamic,
            has_aot_names: false,
            metadata_at,
            metadata: OnceLock::new(),
        }
    }

    /// An assembly of a program that was compiled ahead of time.
    pub(crate) fn of_program(address: Address, name: &str, base: Address) -> Self {
        Self {
            address,
            path: name.to_owned(),
            base,
            size: 0,
            is_dynamic: false,
            has_aot_names: true,
            metadata_at: None,
            metadata: OnceLock::new(),
        }
    }

    /// The name of its file.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns true if its metadata is in the memory: it names types and methods.
    pub const fn has_metadata(&self) -> bool {
        self.metadata_at.is_some() || self.has_aot_names
    }

    /// Returns the module without the metadata that was read: megabytes, for a module that is kept. It is
    /// read again where it is asked for.
    #[must_use]
    pub fn without_metadata(&self) -> Self {
        Self {
            address: self.address,
            path: self.path.clone(),
            base: self.base,
            size: self.size,
            is_dynamic: self.is_dynamic,
            metadata: OnceLock::new(),
            metadata_at: self.metadata_at,
            has_aot_names: self.has_aot_names,
        }
    }

    /// Returns the metadata, which is read the first time; `None` if the memory lacks it, or if it has more
    /// than `left` bytes.
    pub(crate) fn metadata(&self, memory: &dyn Memory, left: &Cell<usize>) -> Option<&[u8]> {
        if let Some(known) = self.metadata.get() {
            return Some(known);
        }
        let (at, size) = self.metadata_at?;
        let rest = left.get().checked_sub(size)?;
        let bytes = memory.bytes(at, size).ok()?;
        left.set(rest);
        Some(self.metadata.get_or_init(|| bytes))
    }
}

/// Reads the path of the file of a Module, and nothing else of it; `None` if the memory lacks it, or it has
/// none.
pub(crate) fn path_of(memory: &dyn Memory, layout: &layout::Module, address: Address) -> Option<String> {
    let at = layout.path.follow(memory, address).ok()?;
    path(memory, at).ok().filter(|path| !path.is_empty())
}

/// Returns the place of the metadata of a module that was made in memory; `None` if the runtime has not
/// copied any.
fn made_metadata(
    memory: &dyn Memory,
    layout: &layout::Module,
    module: Address,
) -> MemoryResult<Option<(u64, usize)>> {
    let Some(of) = layout.made_metadata else { return Ok(None) };
    let (MadeMetadata::Sized(place) | MadeMetadata::Buffer(place)) = of;
    let header = memory.u64(module.at(place))?;
    if header == 0 {
        return Ok(None);
    }
    let size = memory.u32(header)?;
    let at = match of {
        MadeMetadata::Sized(_) => offset(header, 4),
        MadeMetadata::Buffer(_) => memory.u64(offset(header, 16))?,
    };
    Ok(is_metadata(memory, at, size).then(|| (at, usize::try_from(size).unwrap_or_default())))
}

/// Returns true if the beginning of metadata is at a place, and its last byte is in the memory.
fn is_metadata(memory: &dyn Memory, at: u64, size: u32) -> bool {
    let last = offset(at, u64::from(size.max(1))).wrapping_sub(1);
    size <= MAX_METADATA_SIZE && memory.array(at) == Ok(METADATA) && memory.u8(last).is_ok()
}

/// Follows pointers; zero if a pointer is null.
pub(crate) fn follow(memory: &dyn Memory, address: u64, offsets: &[u64]) -> MemoryResult<u64> {
    offsets.iter().try_fold(address, |at, field| if at == 0 { Ok(0) } else { memory.u64(offset(at, *field)) })
}

impl Pointers {
    /// Follows the pointers from a structure on; zero if a pointer is null.
    fn follow(self, memory: &dyn Memory, from: Address) -> MemoryResult<u64> {
        follow(memory, memory.u64(from.at(self.first))?, self.others)
    }
}

/// Reads a UTF-16 string that ends with NUL.
fn path(memory: &dyn Memory, at: u64) -> MemoryResult<String> {
    if at == 0 {
        return Ok(String::new());
    }
    let mut units = Vec::new();
    for index in 0..MAX_CHARACTERS {
        match memory.u16(offset(at, index.wrapping_mul(2)))? {
            0 => break,
            unit => units.push(unit),
        }
    }
    Ok(String::from_utf16_lossy(&units))
}

/// An entry of the debug directory of a program's image, in memory: a reference to its PDB, or the PDB.
///
/// # Source
/// dotnet/runtime `docs/design/specs/PE-COFF.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DebugEntry {
    /// The type.
    pub kind: u32,
    /// The time stamp; of a reference to a portable PDB, a part of the PDB's id.
    pub stamp: u32,
    /// The address of the data. The memory can lack it.
    pub address: Address,
    /// The number of bytes of the data, as the image states it.
    pub size: u32,
}

/// The headers of a PE image.
#[derive(Debug)]
pub(crate) struct PeImage {
    base: u64,
    size: u32,
    cli: u32,
    /// The relative address and the size of the debug directory.
    debug: (u32, u32),
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    address: u32,
    size: u32,
    file_offset: u32,
}

/// The form of an image in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Each section at its address.
    Mapped,
    /// As in the file.
    Flat,
}

/// The first four bytes of metadata, `BSJB`.
const METADATA: [u8; 4] = *b"BSJB";

impl PeImage {
    pub(crate) fn read(memory: &dyn Memory, base: u64) -> MemoryResult<Self> {
        let missing = Missing { address: base };
        if base == 0 || memory.array::<2>(base)? != *b"MZ" {
            return Err(missing);
        }
        let pe = offset(base, memory.u32(offset(base, 0x3c))?.into());
        if memory.array::<4>(pe)? != *b"PE\0\0" {
            return Err(missing);
        }
        let count = memory.u16(offset(pe, 6))?.min(MAX_SECTIONS);
        let optional = offset(pe, 24);
        // PE32+ has wider fields before its directories.
        let directories = if memory.u16(optional)? == 0x20b { 112_u64 } else { 96 };
        let table = offset(optional, memory.u16(offset(pe, 20))?.into());
        let mut sections = Vec::new();
        for index in 0..u64::from(count) {
            let at = offset(table, index.wrapping_mul(40));
            let [virtual_size, address, raw_size, file_offset] =
                [8, 12, 16, 20].map(|field| memory.u32(offset(at, field)));
            sections.push(Section {
                address: address?,
                size: virtual_size?.max(raw_size?),
                file_offset: file_offset?,
            });
        }
        Ok(Self {
            base,
            size: memory.u32(offset(optional, 56))?,
            // The 15th directory is the CLI header.
            cli: memory.u32(offset(optional, directories.wrapping_add(14 * 8)))?,
            debug: (
                memory.u32(offset(optional, directories.wrapping_add(6 * 8)))?,
                memory.u32(offset(optional, directories.wrapping_add(6 * 8 + 4)))?,
            ),
            sections,
        })
    }

    /// Converts an image-relative address to an address in memory.
    fn address(&self, relative: u32, form: Form) -> Option<u64> {
        if form == Form::Mapped {
            return Some(offset(self.base, relative.into()));
        }
        self.sections.iter().find_map(|section| {
            let inside = relative.checked_sub(section.address).filter(|inside| *inside < section.size)?;
            Some(offset(offset(self.base, section.file_offset.into()), inside.into()))
        })
    }

    /// Returns the address in memory of a method's body, given that of the metadata, which shows the image's
    /// form.
    pub(crate) fn body(&self, memory: &dyn Memory, metadata_at: u64, relative: u32) -> Option<u64> {
        let form = self.form(memory, metadata_at)?;
        self.address(relative, form).filter(|_| relative != 0)
    }

    /// Returns the entries of the debug directory that the memory has, given the address of the metadata.
    pub(crate) fn debug_entries(&self, memory: &dyn Memory, metadata_at: u64) -> Vec<DebugEntry> {
        const SIZE: u32 = 28;
        let (relative, size) = self.debug;
        let form = self.form(memory, metadata_at).filter(|_| relative != 0);
        let Some(form) = form else { return Vec::new() };
        let Some(directory) = self.address(relative, form) else { return Vec::new() };
        let entry = |index: u32| {
            let at = offset(directory, u64::from(index.wrapping_mul(SIZE)));
            let [stamp, kind, size, data] = [4, 12, 16, 20].map(|field| memory.u32(offset(at, field)).ok());
            let address = Address::new(self.address(data.filter(|data| *data != 0)?, form)?);
            Some(DebugEntry { kind: kind?, stamp: stamp?, address, size: size? })
        };
        let count = size.checked_div(SIZE).unwrap_or_default();
        (0..count.min(MAX_DEBUG_ENTRIES)).filter_map(entry).collect()
    }

    /// The form of the image, which the address of its metadata shows.
    fn form(&self, memory: &dyn Memory, metadata_at: u64) -> Option<Form> {
        let is_of = |form: &Form| {
            let metadata = self.address(self.cli, *form).and_then(|cli| memory.u32(offset(cli, 8)).ok());
            metadata.and_then(|metadata| self.address(metadata, *form)) == Some(metadata_at)
        };
        [Form::Mapped, Form::Flat].into_iter().find(is_of)
    }

    /// Returns the address and the size of the metadata.
    fn metadata(&self, memory: &dyn Memory) -> MemoryResult<(u64, usize)> {
        let missing = Missing { address: self.base };
        if self.cli == 0 {
            return Err(missing);
        }
        // The size and the place of the metadata. The header's own size identifies it.
        let header = |form| {
            let cli = self.address(self.cli, form)?;
            let header = [0, 8, 12].map(|field| memory.u32(offset(cli, field)));
            let [Ok(72), Ok(relative), Ok(size)] = header else { return None };
            Some((relative, size))
        };
        // In a single file, the place in a mapped image can belong to the next assembly.
        let is_of_another = header(Form::Flat).is_some_and(|flat| header(Form::Mapped) != Some(flat));
        let forms = if is_of_another { [Form::Flat, Form::Mapped] } else { [Form::Mapped, Form::Flat] };
        for form in forms {
            let Some((relative, size)) = header(form) else { continue };
            let Some(at) = self.address(relative, form) else { continue };
            if is_metadata(memory, at, size) {
                return Ok((at, usize::try_from(size).unwrap_or_default()));
            }
        }
        Err(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    /// The file of an assembly with a section at 0x2000, which has the metadata `gap` bytes after the CLI
    /// header.
    fn assembly(gap: u32, text: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 0x1e00];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        put(0, b"MZ");
        put(0x3c, &words(&[0x80]));
        // A section, and an optional header of PE32.
        put(0x80, b"PE\0\0\x4c\x01\x01\0");
        put(0x94, &[0xe0, 0]);
        put(0x98, &[0x0b, 1]);
        put(0x98 + 56, &words(&[0x8000]));
        put(0x98 + 96 + 14 * 8, &words(&[0x2008, 72]));
        put(0x98 + 0xe0 + 8, &words(&[0x1c00, 0x2000, 0x1c00, 0x200]));
        let metadata = [&METADATA[..], text].concat();
        put(0x208, &words(&[72, 0x0005_0002, 0x2050 + gap, u32::try_from(metadata.len()).unwrap()]));
        put(0x250 + usize::try_from(gap).unwrap(), &metadata);
        file
    }

    #[test]
    fn an_assembly_of_a_single_file_has_its_own_metadata_and_not_that_of_the_next_one() {
        let mut memory = TestMemory::default();
        memory.put(0x10_0000, &[assembly(0, b"first"), assembly(16, b"second")].concat());
        let image = PeImage::read(&memory, 0x10_0000).unwrap();
        let (at, size) = image.metadata(&memory).unwrap();
        let memory: &dyn Memory = &memory;
        assert_eq!((at, &*memory.bytes(at, size).unwrap()), (0x10_0250, &b"BSJBfirst"[..]));
        assert_eq!(image.body(memory, 0x10_0250, 0x2010), Some(0x10_0210));
        assert_eq!(image.body(memory, 0x10_0250, 0), None);
    }

    #[test]
    fn entries_of_the_debug_directory_are_found_in_both_forms() {
        let mut file = assembly(0, b"first");
        let mut put = |at: usize, words: &[u32]| {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
            file[at..at + bytes.len()].copy_from_slice(&bytes);
        };
        // Two entries at 0x2100, the second of which has no data in memory.
        put(0x98 + 96 + 6 * 8, &[0x2100, 2 * 28]);
        put(0x300, &[0, 0xabcd, 0, 2, 40, 0x2200, 0x400, 0, 0, 0, 17, 10, 0, 0x500]);
        for (memory, data) in [
            (TestMemory::default().put(0x10_0000, &file), 0x10_0400),
            (TestMemory::default().put(0x10_0000, &file[..0x200]).put(0x10_2000, &file[0x200..]), 0x10_2200),
        ] {
            let memory: &dyn Memory = memory;
            let image = PeImage::read(memory, 0x10_0000).unwrap();
            let (metadata_at, _) = image.metadata(memory).unwrap();
            let expected = DebugEntry { kind: 2, stamp: 0xabcd, address: Address::new(data), size: 40 };
            assert_eq!(image.debug_entries(memory, metadata_at), [expected]);
            assert_eq!(image.debug_entries(memory, 0x5000), []);
        }
    }

    #[test]
    fn a_mapped_assembly_has_the_metadata_of_its_section() {
        let file = assembly(0, b"first");
        let mut memory = TestMemory::default();
        // The page of the headers can have the beginning of the section, too.
        memory.put(0x10_0000, &file[..0x240]).put(0x10_2000, &file[0x200..]);
        let image = PeImage::read(&memory, 0x10_0000).unwrap();
        let (at, size) = image.metadata(&memory).unwrap();
        let memory: &dyn Memory = &memory;
        assert_eq!((at, &*memory.bytes(at, size).unwrap()), (0x10_2050, &b"BSJBfirst"[..]));
        assert_eq!(image.body(memory, 0x10_2050, 0x2010), Some(0x10_2010));
    }
}
