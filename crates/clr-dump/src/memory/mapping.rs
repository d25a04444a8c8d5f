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

impl From<linux_proc_stat::Mapping> for Mapping {
    fn from(mapping: linux_proc_stat::Mapping) -> Self {
        Self {
            start: Address::new(mapping.start),
            end: Address::new(mapping.end),
            is_readable: mapping.is_readable,
            is_writable: mapping.is_writable,
            is_executable: mapping.is_executable,
            is_shared: mapping.is_shared,
            file_offset: mapping.file_offset,
            name: mapping.name,
        }
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
    let mappings = linux_proc_stat::Mapping::parse_all(text).map(Mapping::from);
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
    linux_proc_stat::Mapping::parse_all(text).map(Mapping::from).take(MAX_MAPPINGS).collect()
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
}
