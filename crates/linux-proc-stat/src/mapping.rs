//! `/proc/PID/maps`: the mappings of a process.

use std::sync::Arc;

/// The device and the inode of a mapped file.
///
/// A file of the same path with the same numbers is the mapped one. Some file systems, such as btrfs, have
/// other devices for `stat` than for mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "the kernel's three numbers")]
pub struct FileId {
    /// The major number of the device.
    pub major: u32,
    /// The minor number of the device.
    pub minor: u32,
    /// The number of the inode.
    pub inode: u64,
}

/// A mapping: a line of `/proc/PID/maps`, and the first line of each part of `smaps`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address past the last byte.
    pub end: u64,
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
    /// The mapped file; `None` for memory without one.
    pub file: Option<FileId>,
    /// The path as the process sees it, `[stack]` or similar, or empty. Characters that are not UTF-8 are
    /// replaced.
    pub name: Arc<str>,
}

impl Mapping {
    /// Parses `start-end perms offset dev inode path`. Returns `None` for other lines.
    ///
    /// ```
    /// use linux_proc_stat::Mapping;
    ///
    /// let mapping = Mapping::parse(b"401000-402000 r-xp 00001000 08:01 42 /usr/bin/a b").expect("a line of maps");
    /// assert_eq!((mapping.start, mapping.file_offset, &*mapping.name), (0x401000, 0x1000, "/usr/bin/a b"));
    /// assert!(mapping.is_executable && !mapping.is_writable);
    /// assert_eq!(mapping.file.map(|file| (file.major, file.minor, file.inode)), Some((8, 1, 42)));
    /// ```
    pub fn parse(line: &[u8]) -> Option<Self> {
        Self::parse_after(line, None)
    }

    /// Parses the text of `/proc/PID/maps`. Other lines are left out.
    ///
    /// ```
    /// let maps = b"7f0000000000-7f0000001000 r--p 00000000 08:01 42 /lib/a.so\n7ffc00000000-7ffc00021000 rw-p 0 00:00 0 [stack]\n";
    /// let names: Vec<_> = linux_proc_stat::Mapping::parse_all(maps).map(|mapping| mapping.name).collect();
    /// assert_eq!(names, ["/lib/a.so".into(), "[stack]".into()]);
    /// ```
    pub fn parse_all(text: &[u8]) -> impl Iterator<Item = Self> {
        let mut previous: Option<Arc<str>> = None;
        text.split(|byte| *byte == b'\n').filter_map(move |line| {
            let mapping = Self::parse_after(line, previous.take())?;
            previous = Some(Arc::clone(&mapping.name));
            Some(mapping)
        })
    }

    /// Parses a line. Neighbouring mappings often have the same name, which they share with `previous`.
    pub(crate) fn parse_after(line: &[u8], previous: Option<Arc<str>>) -> Option<Self> {
        let mut parts = line.splitn(6, |byte| *byte == b' ');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = text()?.split_once('-')?;
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        let permissions = text()?.as_bytes();
        let file_offset = hexadecimal(text()?)?;
        let (major, minor) = text()?.split_once(':')?;
        let number = |text: &str| u32::from_str_radix(text, 16).ok();
        let file = FileId { major: number(major)?, minor: number(minor)?, inode: text()?.parse().ok()? };
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default().trim_ascii_start());
        let name = previous.filter(|previous| **previous == *name).unwrap_or_else(|| name.into());
        let has = |permission: u8| permissions.contains(&permission);
        Some(Self {
            start,
            end,
            is_readable: has(b'r'),
            is_writable: has(b'w'),
            is_executable: has(b'x'),
            is_shared: has(b's'),
            file_offset,
            file: (file.inode != 0).then_some(file),
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_with_their_permissions() {
        let maps = b"5000-6000 rw-p 00000000 00:00 0  [stack]\n3000-4000 r-xs 00001000 00:00 0 /lib/a (deleted)\n\
            4000-5000 r--s 00002000 00:00 0 /lib/a (deleted)\nbroken\nffff-x r-xp broken\n8000-9000 ---p 00000000 00:00 0 \n\
            9000-a000 rwxp 00000000 00:00 0";
        let maps: Vec<_> = Mapping::parse_all(maps).collect();
        let row = |mapping: &Mapping| {
            let bits = [mapping.is_readable, mapping.is_writable, mapping.is_executable, mapping.is_shared];
            (mapping.start, mapping.end, bits, mapping.file_offset, mapping.name.to_string())
        };
        let deleted = || "/lib/a (deleted)".to_owned();
        assert_eq!(
            maps.iter().map(row).collect::<Vec<_>>(),
            [
                (0x5000, 0x6000, [true, true, false, false], 0, "[stack]".to_owned()),
                (0x3000, 0x4000, [true, false, true, true], 0x1000, deleted()),
                (0x4000, 0x5000, [true, false, false, true], 0x2000, deleted()),
                (0x8000, 0x9000, [false; 4], 0, String::new()),
                (0x9000, 0xa000, [true, true, true, false], 0, String::new()),
            ]
        );
        let [_, one, next, ..] = &maps[..] else { panic!("{maps:?}") };
        assert!(Arc::ptr_eq(&one.name, &next.name));
    }

    #[test]
    fn broken_lines_are_not_mappings() {
        for line in [
            &b""[..],
            b"1000",
            b"1000 rw-p 0 00:00 0",
            b"x-y rw-p 0 00:00 0 ",
            b"1000-2000 rw-p 0 00:00",
            b"1000-2000 rw-p 0 0000 0 ",
            b"1000-2000 rw-p 0 00:00 x ",
            b"1000-2000 rw-p z 00:00 0 ",
            b"1000-20000000000000000 rw-p 0 00:00 0 ",
            b"\xff\xfe-\xfd rw-p 0 00:00 0 /a",
        ] {
            assert_eq!(Mapping::parse(line), None, "{line:?}");
        }
        assert_eq!(&*Mapping::parse(b"1000-2000 rw-p 0 00:00 0 /\xff").unwrap().name, "/\u{fffd}");
    }
}
