//! The files in a single-file program of .NET.
//!
//! # Source
//! dotnet/runtime `src/installer/managed/Microsoft.NET.HostModel/Bundle/Manifest.cs`, `FileEntry.cs` and
//! `Bundler.cs` (the list of files), `src/native/corehost/apphost/bundle_marker.cpp` (its offset).

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use memchr::memmem;

/// The bytes after the offset of the list: the SHA-256 of ".net core bundle".
const MARKER: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13,
    0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];
/// The size of the offset before the marker.
const OFFSET_SIZE: usize = 8;
/// Maximum size of a host to search for the marker, in bytes.
const MAX_HOST_SIZE: u64 = 64 << 20;
/// Maximum size of a list, in bytes.
const MAX_LIST_SIZE: u64 = 16 << 20;
/// The version of the list since .NET 6, in which entries have a compressed size.
const COMPRESSING_VERSION: u64 = 6;

/// A single-file program with the list of its files.
#[derive(Debug)]
pub(crate) struct Bundle<F = File> {
    file: F,
    entries: HashMap<String, Entry>,
}

/// The place of a file in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    offset: u64,
    size: u64,
    /// Zero if it is not compressed.
    compressed: u64,
}

impl<F: Read + Seek> Bundle<F> {
    /// Reads the list of files. `None` if the program is not a bundle, or if the list is damaged.
    pub(crate) fn read(mut file: F) -> Option<Self> {
        let offset = list_offset(&mut file)?;
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut list = Vec::new();
        file.by_ref().take(MAX_LIST_SIZE).read_to_end(&mut list).ok()?;
        let entries = entries(&list)?;
        Some(Self { file, entries })
    }

    /// Returns the content of a file, at most `limit` bytes of it; `None` if the bundle lacks it.
    pub(crate) fn content(&mut self, path: &str, limit: u64) -> Option<Vec<u8>> {
        let entry = *self.entries.get(path)?;
        self.file.seek(SeekFrom::Start(entry.offset)).ok()?;
        let limit = limit.min(entry.size);
        let mut content = Vec::new();
        let file = self.file.by_ref();
        if entry.compressed == 0 {
            file.take(limit).read_to_end(&mut content).ok()?;
        } else {
            let unpacked = flate2::read::DeflateDecoder::new(file.take(entry.compressed));
            unpacked.take(limit).read_to_end(&mut content).ok()?;
        }
        Some(content)
    }
}

/// Finds the offset of the list, by the marker in the host.
fn list_offset(file: &mut impl Read) -> Option<u64> {
    let mut file = file.take(MAX_HOST_SIZE);
    let mut bytes = Vec::new();
    let finder = memmem::Finder::new(&MARKER);
    loop {
        let read = file.by_ref().take(1 << 20).read_to_end(&mut bytes).ok()?;
        if let Some(at) = finder.find(&bytes) {
            let offset = bytes.get(at.checked_sub(OFFSET_SIZE)?..at)?;
            let offset = u64::from_le_bytes(offset.try_into().ok()?);
            // A host without a bundle has the marker, too.
            return (offset != 0).then_some(offset);
        }
        if read == 0 {
            return None;
        }
        // The marker and its offset may lie across the end of a piece.
        bytes.drain(..bytes.len().saturating_sub(OFFSET_SIZE + MARKER.len()));
    }
}

/// Reads the entries of a list, without entries other than files of the program.
fn entries(list: &[u8]) -> Option<HashMap<String, Entry>> {
    let mut list = Cursor(list);
    let version = list.number(4)?;
    let _minor = list.number(4)?;
    let count = list.number(4)?;
    let _id = list.text()?;
    if version >= 2 {
        // Offset and size of the dependencies and of the settings, and flags.
        list.take(5 * 8)?;
    }
    let mut entries = HashMap::new();
    for _ in 0..count {
        let (offset, size) = (list.number(8)?, list.number(8)?);
        let compressed = if version >= COMPRESSING_VERSION { list.number(8)? } else { 0 };
        let _kind = list.number(1)?;
        entries.insert(list.text()?.to_owned(), Entry { offset, size, compressed });
    }
    Some(entries)
}

/// The rest of a list.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads an integer of up to eight bytes.
    fn number(&mut self, size: usize) -> Option<u64> {
        let bytes = self.take(size)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads a string after its length, which has one or two bytes: a path has at most 1,024.
    fn text(&mut self) -> Option<&'a str> {
        let mut size = self.number(1)?;
        if size >= 0x80 {
            size = size & 0x7f | self.number(1)? << 7;
        }
        std::str::from_utf8(self.take(usize::try_from(size).ok()?)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write as _};

    use super::{Bundle, MARKER};

    /// A program of a host and of files, some of them compressed.
    fn program(files: &[(&str, &[u8], bool)]) -> Vec<u8> {
        // The marker lies across the end of a piece.
        let mut bytes = vec![0xcc; (1 << 20) - 20];
        let marker = bytes.len();
        bytes.extend([0; 8]);
        bytes.extend(MARKER);
        let mut list: Vec<u8> = [6_u32, 0, u32::try_from(files.len()).unwrap()]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .chain(*b"\x02id")
            .chain([0; 40])
            .collect();
        for (name, content, is_compressed) in files {
            let offset = bytes.len();
            let mut compressed = 0;
            if *is_compressed {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(content).unwrap();
                bytes.extend(encoder.finish().unwrap());
                compressed = bytes.len() - offset;
            } else {
                bytes.extend(*content);
            }
            for number in [offset, content.len(), compressed] {
                list.extend((number as u64).to_le_bytes());
            }
            list.push(1);
            let size = name.len();
            if size < 0x80 {
                list.push(u8::try_from(size).unwrap());
            } else {
                list.extend([u8::try_from(size & 0x7f | 0x80).unwrap(), u8::try_from(size >> 7).unwrap()]);
            }
            list.extend(name.as_bytes());
        }
        let offset = bytes.len() as u64;
        bytes[marker..marker + 8].copy_from_slice(&offset.to_le_bytes());
        bytes.extend(list);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Bundle<io::Cursor<&[u8]>>> {
        Bundle::read(io::Cursor::new(bytes))
    }

    #[test]
    fn files_have_their_content() {
        let long = format!("{}.dll", "x".repeat(300));
        let bytes = program(&[
            ("App.dll", b"MZ app", false),
            (&long, b"MZ long", false),
            ("de/a.dll", &[7; 999], true),
        ]);
        let mut bundle = read(&bytes).unwrap();
        assert_eq!(bundle.content("App.dll", 100).unwrap(), b"MZ app");
        assert_eq!(bundle.content("App.dll", 2).unwrap(), b"MZ");
        assert_eq!(bundle.content(&long, 100).unwrap(), b"MZ long");
        assert_eq!(bundle.content("de/a.dll", 1000).unwrap(), [7; 999]);
        assert_eq!(bundle.content("de/a.dll", 10).unwrap(), [7; 10]);
        assert_eq!(bundle.content("b.dll", 100), None);
    }

    #[test]
    fn other_and_damaged_programs_have_no_files() {
        assert!(read(b"\x7fELF").is_none());
        let bytes = program(&[("App.dll", b"MZ app", false)]);
        for length in (1 << 20)..bytes.len() {
            assert!(read(&bytes[..length]).is_none(), "{length}");
        }
        let mut none = bytes.clone();
        none[(1 << 20) - 20..(1 << 20) - 12].fill(0);
        assert!(read(&none).is_none());
        // A count, and a place, that the file does not have.
        let list = bytes.len() - (12 + 3 + 40 + 24 + 1 + 8);
        let mut many = bytes.clone();
        many[list + 8..list + 12].fill(0xff);
        assert!(read(&many).is_none());
        let mut far = bytes;
        far[list + 55..list + 63].fill(0xff);
        assert!(read(&far).unwrap().content("App.dll", 100).is_none_or(|content| content.is_empty()));
    }
}
