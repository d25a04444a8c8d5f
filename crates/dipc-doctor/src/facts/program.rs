//! The file of a runtime or of a program: its exported symbols, and strings in it. The process chooses the
//! file.

use std::cell::Cell;
use std::io::{BufReader, Read, Seek};
use std::ops::Range;

use memchr::memmem;
use object::read::elf::{FileHeader, SectionHeader as _};
use object::read::{Object as _, ObjectSymbol as _, ReadCache, ReadRef};
use object::{Endianness, FileKind, elf};

/// A runtime that is linked into a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkedRuntime {
    CoreClr,
    NativeAot,
}

impl LinkedRuntime {
    /// Finds the runtime of a program or library: by the symbols that it exports for debuggers, or by the
    /// section that NativeAOT has its code in. Libraries of NativeAOT may export their own functions alone.
    pub(crate) fn find(program: impl Read + Seek) -> Option<Self> {
        let cache = ReadCache::new(program);
        let budget = Cell::new(BUDGET);
        let data = Budgeted { data: &cache, budget: &budget };
        // Symbols are read one by one, and large programs export tens of thousands; their names are read
        // together.
        let (has_aot_code, may_export) = match FileKind::parse(data) {
            Ok(FileKind::Elf32) => traces::<elf::FileHeader32<Endianness>>(data),
            Ok(FileKind::Elf64) => traces::<elf::FileHeader64<Endianness>>(data),
            _ => None,
        }?;
        if !may_export {
            return has_aot_code.then_some(Self::NativeAot);
        }
        let file = object::File::parse(data).ok()?;
        let mut native = has_aot_code;
        for symbol in file.dynamic_symbols().filter(object::ObjectSymbol::is_definition) {
            match symbol.name() {
                Ok(CORECLR_SYMBOL) => return Some(Self::CoreClr),
                Ok(name) if NATIVE_AOT_SYMBOLS.contains(&name) => native = true,
                _ => {}
            }
        }
        native.then_some(Self::NativeAot)
    }
}

/// Returns the architecture that a program is for (`e_machine`); `None` if it is not an ELF file of 64 bits.
pub(crate) fn machine(mut program: impl Read) -> Option<u16> {
    let mut header = [0; 20];
    program.read_exact(&mut header).ok()?;
    let machine = header.last_chunk().map(|bytes| u16::from_le_bytes(*bytes))?;
    header.starts_with(b"\x7fELF\x02\x01").then_some(machine)
}

const CORECLR_SYMBOL: &str = "DotNetRuntimeInfo";
/// The symbols of NativeAOT: up to .NET 10, and from .NET 11 on. CoreCLR has the latter, too.
const NATIVE_AOT_SYMBOLS: [&str; 2] = ["DotNetRuntimeDebugHeader", "DotNetRuntimeContractDescriptor"];

/// The section with the code of NativeAOT.
const NATIVE_AOT_SECTION: &[u8] = b"__managedcode";

/// Returns true if a file has the section of NativeAOT, and true if one of the symbols is among the names of
/// its dynamic symbols.
fn traces<'a, Elf: FileHeader<Endian = Endianness>>(data: impl ReadRef<'a>) -> Option<(bool, bool)> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let has_aot_code =
        sections.iter().any(|section| sections.section_name(endian, section) == Ok(NATIVE_AOT_SECTION));
    let symbols = sections.iter().find(|section| section.sh_type(endian) == elf::SHT_DYNSYM);
    let names = || sections.section(symbols?.link(endian)).ok()?.data(endian, data).ok();
    let names: &[u8] = names().unwrap_or_default();
    let has = |name: &str| memmem::find(names, name.as_bytes()).is_some();
    Some((has_aot_code, has(CORECLR_SYMBOL) || NATIVE_AOT_SYMBOLS.into_iter().any(has)))
}

/// Maximum number of bytes that are read from a program: its tables of sections and symbols, and names.
const BUDGET: u64 = 64 << 20;

/// The bytes of a program up to a budget. The cache keeps everything that was read, and the file states the
/// length of its tables, even of tables in a hole.
#[derive(Clone, Copy)]
struct Budgeted<'a, R> {
    data: R,
    budget: &'a Cell<u64>,
}

impl<R> Budgeted<'_, R> {
    fn spend(&self, size: u64) -> Result<(), ()> {
        self.budget.set(self.budget.get().checked_sub(size).ok_or(())?);
        Ok(())
    }
}

impl<'a, R: ReadRef<'a>> ReadRef<'a> for Budgeted<'a, R> {
    fn len(self) -> Result<u64, ()> {
        self.data.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.spend(size)?;
        self.data.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        // The cache reads a name in pieces of this size.
        self.spend(256)?;
        let bytes = self.data.read_bytes_at_until(range, delimiter)?;
        self.spend(bytes.len() as u64)?;
        Ok(bytes)
    }
}

/// Texts in the file of a runtime.
#[derive(Default)]
pub(crate) struct Markers {
    pub(crate) version: Option<String>,
    /// True if the file contains the prefix of a diagnostic socket's name.
    pub(crate) has_port: bool,
}

impl Markers {
    /// Maximum number of bytes of a file that are searched.
    const LIMIT: u64 = 512 << 20;
    const VERSION: &'static [u8] = b"@(#)Version ";
    const PORT: &'static [u8] = b"dotnet-diagnostic";
    /// The number of bytes that two pieces share; no marker is longer.
    const OVERLAP: usize = 64;

    pub(crate) fn read(file: impl Read) -> Self {
        let mut file = BufReader::with_capacity(1 << 16, file.take(Self::LIMIT));
        let mut markers = Self::default();
        let mut bytes = Vec::new();
        // A marker may lie across the end of a piece.
        while file.by_ref().take(1 << 20).read_to_end(&mut bytes).is_ok_and(|count| count > 0) {
            markers.has_port |= memmem::find(&bytes, Self::PORT).is_some();
            if markers.version.is_none() {
                markers.version = version_in(&bytes);
            }
            if markers.has_port && markers.version.is_some() {
                break;
            }
            bytes.drain(..bytes.len().saturating_sub(Self::OVERLAP));
        }
        markers
    }
}

/// Returns the version in `@(#)Version 9.0.124.61010 @Commit…`. Its third number is the patch times 100 plus
/// the year. .NET Core 3.1 is 4.700, older ones are 4.6.
fn version_in(bytes: &[u8]) -> Option<String> {
    let start = memmem::find(bytes, Markers::VERSION)? + Markers::VERSION.len();
    let text = bytes.get(start..)?;
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let mut numbers = std::str::from_utf8(text.get(..end)?).ok()?.split('.').map(str::parse::<u32>);
    let (major, minor, third) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(match (major, minor) {
        (4, 700) => "3.1".to_owned(),
        (4, _) => "2".to_owned(),
        _ => format!("{major}.{minor}.{}", third / 100),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, SeekFrom};

    use super::*;
    use crate::facts::sample_program::elf;

    #[test]
    fn runtimes_are_found_by_exported_symbols() {
        let find = |names: &[&str]| LinkedRuntime::find(Cursor::new(elf(names, 0)));
        assert_eq!(find(&["main", "DotNetRuntimeInfo"]), Some(LinkedRuntime::CoreClr));
        assert_eq!(find(&["DotNetRuntimeDebugHeader", "main"]), Some(LinkedRuntime::NativeAot));
        assert_eq!(find(&["DotNetRuntimeDebugHeader", "DotNetRuntimeInfo"]), Some(LinkedRuntime::CoreClr));
        assert_eq!(find(&["DotNetRuntimeContractDescriptor"]), Some(LinkedRuntime::NativeAot));
        let of_core_clr = find(&["DotNetRuntimeContractDescriptor", "DotNetRuntimeInfo"]);
        assert_eq!(of_core_clr, Some(LinkedRuntime::CoreClr));
        assert_eq!(find(&["main"]), None);
        // The name of the third section is the first one.
        let mut library = elf(&["__managedcode", "own_function"], 0);
        library[3 * 64] = 1;
        assert_eq!(LinkedRuntime::find(Cursor::new(library)), Some(LinkedRuntime::NativeAot));
        assert_eq!(LinkedRuntime::find(Cursor::new(b"#!/bin/sh\n")), None);
    }

    /// A file that ends in a hole.
    struct Sparse {
        file: Cursor<Vec<u8>>,
        hole: usize,
        read: usize,
    }

    impl Read for Sparse {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.read += buffer.len();
            let count = self.file.read(buffer)?;
            buffer[count..].fill(0);
            Ok(buffer.len())
        }
    }

    impl Seek for Sparse {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            match to {
                SeekFrom::End(0) => Ok((self.file.get_ref().len() + self.hole) as u64),
                _ => self.file.seek(to),
            }
        }
    }

    /// Each name used to be a separate read, in each process.
    #[test]
    fn the_symbols_of_a_large_program_without_a_runtime_are_not_read_one_by_one() {
        let names: Vec<_> = (0..20_000).map(|number| format!("_ZN4node6Buffer{number}Ev")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let mut file = Counted { file: Cursor::new(elf(&names, 0)), reads: 0 };
        assert_eq!(LinkedRuntime::find(&mut file), None);
        assert!(file.reads <= 8, "{} reads", file.reads);
    }

    struct Counted {
        file: Cursor<Vec<u8>>,
        reads: usize,
    }

    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.reads += 1;
            self.file.read(buffer)
        }
    }

    impl Seek for Counted {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    #[test]
    fn tables_beyond_the_budget_are_not_read() {
        for (hole, expected) in [(24 << 10, Some(LinkedRuntime::CoreClr)), (24 << 24, None)] {
            let file = Cursor::new(elf(&["DotNetRuntimeInfo"], hole));
            let mut file = Sparse { file, hole, read: 0 };
            assert_eq!(LinkedRuntime::find(&mut file), expected, "a hole of {hole} bytes");
            assert!(file.read < 1 << 20, "{} bytes are read", file.read);
        }
    }

    #[test]
    fn versions_are_found_at_every_offset() {
        for (text, expected) in [
            ("@(#)Version 9.0.124.61010 @Commit: c8a", "9.0.1"),
            ("@(#)Version 10.0.526.15411 @Commit: a61", "10.0.5"),
            ("@(#)Version 4.700.22.11601 @Commit: 0de", "3.1"),
            ("@(#)Version 4.6.30411.01 @Commit", "2"),
        ] {
            for before in [0, 1, (1 << 20) - 20, 1 << 20, (1 << 20) + 5] {
                let mut bytes = vec![0; before];
                bytes.extend_from_slice(text.as_bytes());
                bytes.extend_from_slice(b"\0dotnet-diagnostic\0");
                let markers = Markers::read(bytes.as_slice());
                assert_eq!(
                    (markers.version.as_deref(), markers.has_port),
                    (Some(expected), true),
                    "{before}"
                );
            }
        }
        assert!(!Markers::read(&b"@(#)Version 9"[..]).has_port);
        assert_eq!(Markers::read(&b"@(#)Version 9"[..]).version, None);
    }
}
