//! The files in a program that was published as a single file.
//!
//! # Source
//! dotnet/runtime `src/installer/managed/Microsoft.NET.HostModel/Bundle/Manifest.cs` and `FileEntry.cs`,
//! `src/native/corehost/apphost/bundle_marker.cpp`.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

use crate::error::{Error, Result};

/// The bytes after the offset of the list of files: the SHA-256 of ".net core bundle".
const MARKER: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13,
    0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];
/// The version of the list of .NET Core 3, which has no places of settings, and those of .NET 5 and of .NET 6
/// and later, which has compressed files.
const FIRST: u32 = 1;
const WITH_SETTINGS: u32 = 2;
const WITH_COMPRESSION: u32 = 6;
/// Bytes of the places of dependencies and settings, and of flags.
const SETTINGS: usize = 40;
/// Maximum number of files of a bundle.
const MAX_FILES: u32 = 1 << 16;

/// The list of the files in a program that was published as a single file.
///
/// ```
/// use portable_pdb::Bundle;
///
/// assert!(Bundle::parse(b"\x7fELF a program that is none")?.is_none());
/// # Ok::<(), portable_pdb::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    files: Vec<BundledFile>,
}

/// A file in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundledFile {
    /// The path of the file, from the folder of the program.
    pub path: String,
    /// The offset of its bytes in the program.
    pub offset: u64,
    /// The size of the file in bytes.
    pub size: u64,
    /// The number of its bytes in the program; `None` if these are not compressed.
    pub packed_size: Option<u64>,
}

impl Bundle {
    /// Reads the list of files; `None` for a program that is not a bundle.
    ///
    /// # Errors
    /// The list is damaged, or of an unknown version.
    pub fn parse(program: &[u8]) -> Result<Option<Self>> {
        let Some(marker) = program.windows(MARKER.len()).position(|window| window == MARKER) else {
            return Ok(None);
        };
        let offset = marker.checked_sub(8).and_then(|at| program.get(at..marker)?.first_chunk());
        let offset = offset.map(|bytes| u64::from_le_bytes(*bytes)).unwrap_or_default();
        // A host without files.
        if offset == 0 {
            return Ok(None);
        }
        let mut list = List { program, at: usize::try_from(offset).unwrap_or(usize::MAX) };
        let version = list.u32()?;
        if !(FIRST..=WITH_COMPRESSION).contains(&version) {
            return Err(Error::Bundle("the version of its list of files is not known"));
        }
        list.u32()?;
        let count = list.u32()?.min(MAX_FILES);
        list.string()?;
        if version >= WITH_SETTINGS {
            list.take(SETTINGS)?;
        }
        let mut files = Vec::new();
        for _ in 0..count {
            let (offset, size) = (list.u64()?, list.u64()?);
            let packed_size = if version >= WITH_COMPRESSION { list.u64()? } else { 0 };
            list.take(1)?;
            let packed_size = Some(packed_size).filter(|size| *size > 0);
            files.push(BundledFile { path: list.string()?, offset, size, packed_size });
        }
        Ok(Some(Self { files }))
    }

    /// The files.
    pub fn files(&self) -> &[BundledFile] {
        &self.files
    }

    /// Returns the file with a path.
    pub fn file(&self, path: &str) -> Option<&BundledFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl BundledFile {
    /// The number of its bytes in the program.
    pub fn stored_size(&self) -> u64 {
        self.packed_size.unwrap_or(self.size)
    }

    /// Returns the content of the file, given its bytes in the program.
    ///
    /// # Errors
    /// If the bytes do not unpack to the file's size, or the size exceeds `limit` bytes.
    pub fn unpack(&self, stored: Vec<u8>, limit: u64) -> Result<Vec<u8>> {
        if self.size > limit {
            return Err(Error::TooLarge { what: "the file in the bundle", bytes: self.size, limit });
        }
        let mut content = stored;
        if self.packed_size.is_some() {
            let mut unpacked = Vec::new();
            // The buffer grows with the unpacked bytes: a wrong size allocates nothing.
            DeflateDecoder::new(&*content)
                .take(self.size.saturating_add(1))
                .read_to_end(&mut unpacked)
                .map_err(|_| Error::Bundle("a file in it does not unpack"))?;
            content = unpacked;
        }
        if content.len() as u64 == self.size {
            Ok(content)
        } else {
            Err(Error::Bundle("a file in it has another size than its list says"))
        }
    }
}

/// A reader of the list of files.
struct List<'p> {
    program: &'p [u8],
    at: usize,
}

impl<'p> List<'p> {
    fn take(&mut self, size: usize) -> Result<&'p [u8]> {
        let end = self.at.saturating_add(size);
        let taken = self.program.get(self.at..end).ok_or(Error::Bundle("its list of files is cut off"))?;
        self.at = end;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(self.take(4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).unwrap_or_default())
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(self.take(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).unwrap_or_default())
    }

    /// Reads a string after its length, of seven bits a byte.
    fn string(&mut self) -> Result<String> {
        let mut size = 0;
        for shift in [0_u32, 7, 14, 21] {
            let byte = self.take(1)?.first().copied().unwrap_or_default();
            size |= usize::from(byte & 0x7f).wrapping_shl(shift);
            if byte < 0x80 {
                return Ok(String::from_utf8_lossy(self.take(size)?).into_owned());
            }
        }
        Err(Error::Bundle("a name in its list of files is too long"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    /// A program with a file that is stored, and one that is compressed.
    fn program() -> Vec<u8> {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&[7; 1000]).unwrap();
        let packed = packed.finish().unwrap();
        let mut program = b"\x7fELF".to_vec();
        let marker = program.len();
        program.extend([0; 8]);
        program.extend(MARKER);
        let first = program.len() as u64;
        program.extend(b"stored");
        let second = program.len() as u64;
        program.extend(&packed);
        let list = program.len() as u64;
        program[marker..marker + 8].copy_from_slice(&list.to_le_bytes());
        for number in [6_u32, 0, 2] {
            program.extend(number.to_le_bytes());
        }
        program.extend(b"\x02id");
        program.extend([0; SETTINGS]);
        let files = [([first, 6, 0], "a.pdb"), ([second, 1000, packed.len() as u64], "x/b.pdb")];
        for (numbers, path) in files {
            program.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            program.push(5);
            program.push(u8::try_from(path.len()).unwrap());
            program.extend(path.as_bytes());
        }
        program
    }

    fn content(program: &[u8], path: &str) -> Result<Vec<u8>> {
        let bundle = Bundle::parse(program)?.unwrap();
        let file = bundle.file(path).unwrap();
        let start = usize::try_from(file.offset).unwrap();
        let end = start + usize::try_from(file.stored_size()).unwrap();
        file.unpack(program[start..end].to_vec(), 1000)
    }

    #[test]
    fn files_are_stored_or_compressed() {
        let program = program();
        assert_eq!(content(&program, "a.pdb").unwrap(), b"stored");
        assert_eq!(content(&program, "x/b.pdb").unwrap(), [7; 1000]);
        assert_eq!(Bundle::parse(&program).unwrap().unwrap().files().len(), 2);
    }

    #[test]
    fn a_cut_or_changed_list_is_an_error() {
        let whole = program();
        let list = whole.len() - 94;
        for end in list..whole.len() {
            let cut = Bundle::parse(&whole[..end]);
            assert!(matches!(cut, Err(Error::Bundle(_))), "{end}: {cut:?}");
        }
        for at in list..whole.len() {
            for byte in [0, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let Ok(Some(bundle)) = Bundle::parse(&damaged) else { continue };
                for file in bundle.files() {
                    let content = file.unpack(whole.clone(), 1000);
                    assert!(
                        content.is_err() || content.is_ok_and(|content| content.len() as u64 == file.size)
                    );
                }
            }
        }
        let mut program = whole.clone();
        program[4..12].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(Bundle::parse(&program).is_err());
        program[4..12].fill(0);
        assert_eq!(Bundle::parse(&program), Ok(None));
        let large = BundledFile { path: String::new(), offset: 0, size: 1001, packed_size: None };
        assert!(matches!(large.unpack(Vec::new(), 1000), Err(Error::TooLarge { .. })));
        let short = BundledFile { size: 3, packed_size: Some(2), ..large };
        assert!(short.unpack(vec![0xff, 0xff], 1000).is_err());
    }
}
