//! Files that a process has mapped.

use std::sync::Arc;

/// The most mappings of a process that are read.
pub(crate) const MOST_MAPPINGS: usize = 1 << 18;

/// A mapping of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// Its first address.
    pub start: u64,
    /// The address past its last byte.
    pub end: u64,
    /// The offset of `start` in the file.
    pub file_offset: u64,
    /// The path as the process sees it. Characters that are not UTF-8 are replaced.
    pub path: Arc<str>,
}

/// Reads the mappings of files from the text of `/proc/PID/maps`.
pub fn parse_maps(text: &[u8]) -> Vec<MappedFile> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).take(MOST_MAPPINGS).collect()
}

/// Reads `start-end perms offset dev inode path`.
fn parse_line(line: &[u8]) -> Option<MappedFile> {
    let mut parts = line.splitn(6, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let (start, end) = text()?.split_once('-')?;
    text()?;
    let file_offset = u64::from_str_radix(text()?, 16).ok()?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let (_, _) = (text()?, text()?);
    let path = parts.next()?.trim_ascii_start();
    let path = path.starts_with(b"/").then(|| String::from_utf8_lossy(path).into())?;
    Some(MappedFile { start, end, file_offset, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_path_are_read() {
        let maps = parse_maps(
            b"1000-3000 r--p 00002000 08:01 42                 /lib/a b.so\n3000-4000 rw-p 00000000 00:00 0 \n5000-6000 rw-p 00000000 00:00 0  [stack]\nbroken\n",
        );
        let expected =
            MappedFile { start: 0x1000, end: 0x3000, file_offset: 0x2000, path: "/lib/a b.so".into() };
        assert_eq!(maps, [expected]);
    }
}
