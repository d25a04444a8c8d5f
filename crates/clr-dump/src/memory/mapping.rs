//! Files that a process has mapped.

use std::sync::Arc;

use crate::memory::address::Address;

/// Maximum number of mappings of a process to read.
pub(crate) const MAX_MAPPINGS: usize = 1 << 18;

/// A mapping of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedFile {
    /// The first address.
    pub start: Address,
    /// The address past the last byte.
    pub end: Address,
    /// The offset of `start` in the file.
    pub file_offset: u64,
    /// The path as the process sees it. Characters that are not UTF-8 are replaced.
    pub path: Arc<str>,
}

/// Mapped memory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapping {
    /// The first address.
    pub start: Address,
    /// The address past the last byte.
    pub end: Address,
    /// True if the process may read it.
    pub is_readable: bool,
    /// True if the process may write it.
    pub is_writable: bool,
    /// True if the process may execute it.
    pub is_executable: bool,
    /// True if writes are seen by others that map the same.
    pub is_shared: bool,
    /// The offset of `start` in the file.
    pub file_offset: u64,
    /// The path as the process sees it, `[stack]` or similar, or empty. Characters that are not UTF-8 are
    /// replaced.
    pub name: Arc<str>,
}

impl Mapping {
    /// The number of bytes.
    pub const fn size(&self) -> u64 {
        self.end.get().saturating_sub(self.start.get())
    }

    /// Returns true if it maps a file.
    pub fn is_file(&self) -> bool {
        self.name.starts_with('/')
    }
}

impl From<Mapping> for MappedFile {
    fn from(mapping: Mapping) -> Self {
        let Mapping { start, end, file_offset, name, .. } = mapping;
        Self { start, end, file_offset, path: name }
    }
}

/// Reads the mappings of files from the text of `/proc/PID/maps`.
///
/// ```
/// use clr_dump::Address;
///
/// let maps = b"7f0000000000-7f0000001000 r-xp 00000000 08:01 42 /usr/share/dotnet/libcoreclr.so\n";
/// let files = clr_dump::parse_maps(maps);
/// assert_eq!((files[0].start, &*files[0].path), (Address::new(0x7f00_0000_0000), "/usr/share/dotnet/libcoreclr.so"));
/// ```
pub fn parse_maps(text: &[u8]) -> Vec<MappedFile> {
    let mappings = text.split(|byte| *byte == b'\n').filter_map(parse_line);
    mappings.filter(Mapping::is_file).map(MappedFile::from).take(MAX_MAPPINGS).collect()
}

/// Reads all mappings from the text of `/proc/PID/maps`.
///
/// ```
/// let maps = b"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n";
/// let mappings = clr_dump::parse_mappings(maps);
/// assert_eq!((&*mappings[0].name, mappings[0].size(), mappings[0].is_file()), ("[stack]", 0x21000, false));
/// ```
pub fn parse_mappings(text: &[u8]) -> Vec<Mapping> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).take(MAX_MAPPINGS).collect()
}

/// Reads `start-end perms offset dev inode path`.
fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut parts = line.splitn(6, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let (start, end) = text()?.split_once('-')?;
    let has = {
        let permissions = text()?;
        move |permission: char| permissions.contains(permission)
    };
    let file_offset = u64::from_str_radix(text()?, 16).ok()?;
    let address = |text: &str| u64::from_str_radix(text, 16).ok().map(Address::new);
    let (start, end) = (address(start)?, address(end)?);
    let (_, _) = (text()?, text()?);
    let name = String::from_utf8_lossy(parts.next()?.trim_ascii_start()).into();
    Some(Mapping {
        start,
        end,
        is_readable: has('r'),
        is_writable: has('w'),
        is_executable: has('x'),
        is_shared: has('s'),
        file_offset,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_path_are_read() {
        let maps = parse_maps(
            b"1000-3000 r--p 00002000 08:01 42                 /lib/a b.so\n3000-4000 rw-p 00000000 00:00 0 \n5000-6000 rw-p 00000000 00:00 0  [stack]\nbroken\n",
        );
        let expected = MappedFile {
            start: Address::new(0x1000),
            end: Address::new(0x3000),
            file_offset: 0x2000,
            path: "/lib/a b.so".into(),
        };
        assert_eq!(maps, [expected]);
    }

    #[test]
    fn all_mappings_are_read_with_their_permissions() {
        let maps = parse_mappings(
            b"5000-6000 rw-p 00000000 00:00 0  [stack]\n3000-4000 r-xs 00001000 00:00 0 /lib/a (deleted)\n8000-9000 ---p 00000000 00:00 0 \n",
        );
        let row = |mapping: &Mapping| {
            let bits = [mapping.is_readable, mapping.is_writable, mapping.is_executable, mapping.is_shared];
            (mapping.start.get(), mapping.size(), bits, mapping.file_offset, mapping.name.to_string())
        };
        let rows: Vec<_> = maps.iter().map(row).collect();
        assert_eq!(
            rows,
            [
                (0x5000, 0x1000, [true, true, false, false], 0, "[stack]".into()),
                (0x3000, 0x1000, [true, false, true, true], 0x1000, "/lib/a (deleted)".into()),
                (0x8000, 0x1000, [false; 4], 0, String::new()),
            ]
        );
    }
}
