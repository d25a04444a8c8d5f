//! `/proc/PID/smaps`: the memory of each mapping of a process.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::sync::Arc;
use std::time::Instant;

use crate::file::process_folder;
use crate::mapping::Mapping;

/// Maximum number of mappings to list. The kernel permits 65,530 unless `vm.max_map_count` is raised.
const MAX_MAPPINGS: usize = 1 << 18;
/// Maximum number of bytes of a line to keep. A path has 4,096 bytes, each of which the kernel may escape.
const MAX_LINE: u64 = 20 << 10;
/// Bytes of the kernel's file to read at once.
const BUFFER: usize = 64 << 10;

/// The memory of a mapping, or of several, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappingSizes {
    /// Resident memory (RSS).
    pub resident: u64,
    /// Resident memory in which each page is divided by the number of processes that map it (PSS).
    pub proportional: u64,
    /// Resident pages that only this process has, and that differ from any file.
    pub private_dirty: u64,
    /// Resident pages that only this process has, and that a file has, too.
    pub private_clean: u64,
    /// Memory that is swapped out.
    pub swap: u64,
    /// Resident memory that was given back (`MADV_FREE`), and that the kernel has not taken yet.
    pub lazily_freed: u64,
}

impl MappingSizes {
    /// Adds the memory of another mapping.
    pub const fn add(&mut self, other: &Self) {
        self.resident = self.resident.saturating_add(other.resident);
        self.proportional = self.proportional.saturating_add(other.proportional);
        self.private_dirty = self.private_dirty.saturating_add(other.private_dirty);
        self.private_clean = self.private_clean.saturating_add(other.private_clean);
        self.swap = self.swap.saturating_add(other.swap);
        self.lazily_freed = self.lazily_freed.saturating_add(other.lazily_freed);
    }

    /// Returns the same sizes, each changed by a function.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(u64) -> u64) -> Self {
        Self {
            resident: change(self.resident),
            proportional: change(self.proportional),
            private_dirty: change(self.private_dirty),
            private_clean: change(self.private_clean),
            swap: change(self.swap),
            lazily_freed: change(self.lazily_freed),
        }
    }

    fn put(&mut self, name: &[u8], bytes: u64) {
        let field = match name {
            b"Rss" => &mut self.resident,
            b"Pss" => &mut self.proportional,
            b"Private_Dirty" => &mut self.private_dirty,
            b"Private_Clean" => &mut self.private_clean,
            b"Swap" => &mut self.swap,
            b"LazyFree" => &mut self.lazily_freed,
            _ => return,
        };
        *field = bytes;
    }
}

/// A mapping with its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SmapsMapping {
    /// The mapping.
    pub mapping: Mapping,
    /// Its memory.
    pub sizes: MappingSizes,
}

/// The mappings of a process, with the memory of each. Their sum is the kernel's resident memory of the
/// process.
///
/// ```
/// use linux_proc_stat::Smaps;
///
/// let text = b"7f0000000000-7f0000004000 rw-p 00000000 00:00 0 \nSize: 16 kB\nRss: 8 kB\nPss: 8 kB\nSwap: 4 kB\n\
///     7f0000004000-7f0000005000 r-xp 00001000 08:01 42 /lib/libc.so.6\nRss: 4 kB\nPss: 1 kB\n";
/// let smaps = Smaps::parse(&text[..], None)?;
/// assert_eq!((smaps.total().resident, smaps.total().swap), (12 << 10, 4 << 10));
/// assert_eq!(&*smaps.mappings[1].mapping.name, "/lib/libc.so.6");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Smaps {
    /// The mappings, by address.
    pub mappings: Vec<SmapsMapping>,
    /// The number of mappings that are not listed: a process can have millions.
    pub unlisted: u64,
    /// The memory of these.
    pub unlisted_sizes: MappingSizes,
    /// False if the time was over before the last mapping.
    pub is_complete: bool,
}

impl Smaps {
    /// Reads the mappings of a process, until `end` at most. The process runs on meanwhile; only its changes
    /// of mappings wait while the kernel counts the pages of some of them.
    ///
    /// # Errors
    /// As [`File::open`] and reading return them: if the process has ended, or the caller may not trace it.
    pub fn read(pid: u32, end: Option<Instant>) -> io::Result<Self> {
        let file = File::open(process_folder(pid).join("smaps"))?;
        Self::parse(BufReader::with_capacity(BUFFER, file), end)
    }

    /// Parses the file. A line that is neither a mapping nor a size is left out.
    ///
    /// # Errors
    /// As reading returns them.
    pub fn parse(mut reader: impl BufRead, end: Option<Instant>) -> io::Result<Self> {
        let mut smaps = Self { is_complete: true, ..Self::default() };
        let mut current: Option<SmapsMapping> = None;
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
            if line.pop_if(|last| *last == b'\n').is_none() && u64::try_from(count) == Ok(MAX_LINE) {
                reader.skip_until(b'\n')?;
            }
            if count == 0 {
                break;
            }
            // Names of sizes begin with capitals, and addresses have none.
            if line.first().is_none_or(u8::is_ascii_uppercase) {
                if let (Some(mapping), Some((name, bytes))) = (&mut current, parse_size(&line)) {
                    mapping.sizes.put(name, bytes);
                }
                continue;
            }
            let name = current.as_ref().map(|of| Arc::clone(&of.mapping.name));
            smaps.keep(current.take());
            let mapping = Mapping::parse_after(&line, name);
            current = mapping.map(|mapping| SmapsMapping { mapping, sizes: MappingSizes::default() });
            if end.is_some_and(|end| Instant::now() >= end) {
                smaps.is_complete = false;
                // Its sizes have not been read.
                current = None;
                break;
            }
        }
        smaps.keep(current);
        Ok(smaps)
    }

    /// Returns the memory of all mappings.
    pub fn total(&self) -> MappingSizes {
        let mut total = self.unlisted_sizes;
        for mapping in &self.mappings {
            total.add(&mapping.sizes);
        }
        total
    }

    fn keep(&mut self, mapping: Option<SmapsMapping>) {
        let Some(mapping) = mapping else { return };
        if self.mappings.len() < MAX_MAPPINGS {
            self.mappings.push(mapping);
        } else {
            self.unlisted = self.unlisted.saturating_add(1);
            self.unlisted_sizes.add(&mapping.sizes);
        }
    }
}

/// Parses `Name:   1234 kB`. Returns the name, and bytes.
fn parse_size(line: &[u8]) -> Option<(&[u8], u64)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    let value = std::str::from_utf8(value.strip_prefix(b":")?).ok()?;
    Some((name, crate::status::parse_size(value.trim())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Smaps {
        Smaps::parse(text, None).unwrap()
    }

    #[test]
    fn each_mapping_has_its_sizes() {
        let smaps = parse(
            b"1000-3000 r--p 00002000 08:01 42                 /lib/a b.so\nSize:  8 kB\nRss:   4 kB\nPss:  2 kB\n\
            Shared_Clean: 4 kB\nPrivate_Clean: 3 kB\nPrivate_Dirty:  1 kB\nAnonHugePages:  9 kB\nLazyFree: 5 kB\n\
            Swap: 7 kB\nSwapPss: 6 kB\nVmFlags: rd wr mr\n\
            3000-4000 rw-s 00000000 00:00 0 \nRss: 4 kB\nTHPeligible:           0\n",
        );
        let sizes = MappingSizes {
            resident: 4096,
            proportional: 2048,
            private_dirty: 1024,
            private_clean: 3072,
            swap: 7 << 10,
            lazily_freed: 5 << 10,
        };
        let [file, shared] = &smaps.mappings[..] else { panic!("{smaps:?}") };
        assert_eq!((file.mapping.start, &*file.mapping.name, file.sizes), (0x1000, "/lib/a b.so", sizes));
        assert_eq!((shared.mapping.start, shared.mapping.is_shared), (0x3000, true));
        assert_eq!((smaps.total().resident, smaps.is_complete, smaps.unlisted), (8192, true, 0));
    }

    /// The kernel escapes line feeds, so a name cannot have lines of its own.
    #[test]
    fn no_name_hides_or_forges_a_size() {
        for name in
            [&b"/a\\012Rss: 1 kB"[..], b"Rss:   9 kB", b"/\xff\xfe", b"[anon:Rss: 9 kB]", b"2000-3000 rw-p"]
        {
            let text = [b"1000-2000 rw-p 0 00:00 0 ", name, b"\nRss: 4 kB\nSwap: 0 kB\n"].concat();
            let smaps = parse(&text);
            assert_eq!((smaps.mappings.len(), smaps.total().resident), (1, 4096), "{name:?}");
        }
    }

    #[test]
    fn broken_lines_are_left_out() {
        for text in [
            &b""[..],
            b"\n\n",
            b"Rss: 4 kB\n",
            b"1000 rw-p 0 00:00 0\nRss: 4 kB\n",
            b"x-y rw-p 0 00:00 0 \nRss: 4 kB\n",
            b"1000-2000 rw-p 0 00:00\nRss: 4 kB\n",
            b"\xff\xfe\xfd",
        ] {
            assert_eq!(parse(text).total(), MappingSizes::default(), "{text:?}");
        }
        let wrong = parse(
            b"1000-2000 rw-p 0 00:00 0\nRss: -1 kB\nPss: 99999999999999999999 kB\nSwap: 4\nLazyFree 4 kB\nPrivate_Dirty:\n",
        );
        assert_eq!((wrong.mappings.len(), wrong.total()), (1, MappingSizes::default()));
        // Sums do not overflow.
        let most = format!("1000-2000 rw-p 0 00:00 0\nRss: {} kB\n", u64::MAX / 1024).repeat(3);
        assert_eq!(parse(most.as_bytes()).total().resident, u64::MAX);
    }

    #[test]
    fn lines_of_any_length_take_little_memory() {
        let name = "x".repeat(1 << 20);
        let text =
            format!("1000-2000 rw-p 0 00:00 0 /{name}\nRss: 4 kB\n3000-4000 rw-p 0 00:00 0 \nRss: 8 kB\n");
        let smaps = parse(text.as_bytes());
        assert_eq!((smaps.mappings.len(), smaps.total().resident), (2, 12 << 10));
        assert!(u64::try_from(smaps.mappings[0].mapping.name.len()).unwrap() < MAX_LINE);
    }

    /// Mappings without an end: the sum is right, and the list has a limit.
    #[test]
    fn a_million_mappings_are_summed() {
        const COUNT: u64 = 1_000_000;
        struct Endless {
            text: Vec<u8>,
            left: u64,
        }
        impl io::Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if self.left == 0 {
                    return Ok(0);
                }
                self.left -= 1;
                buffer[..self.text.len()].copy_from_slice(&self.text);
                Ok(self.text.len())
            }
        }
        let text = b"1000-2000 rw-p 0 00:00 0 /a\nRss: 4 kB\n".to_vec();
        let reader = BufReader::with_capacity(4096, Endless { text, left: COUNT });
        let smaps = Smaps::parse(reader, None).unwrap();
        assert_eq!((smaps.mappings.len(), smaps.unlisted), (MAX_MAPPINGS, COUNT - MAX_MAPPINGS as u64));
        assert_eq!(smaps.total().resident, COUNT * 4096);
        // One name for all.
        let name = |index: usize| &smaps.mappings[index].mapping.name;
        assert!(Arc::ptr_eq(name(0), name(MAX_MAPPINGS - 1)));
    }

    #[test]
    fn reading_ends_with_its_time() {
        let text = b"1000-2000 rw-p 0 00:00 0 \nRss: 4 kB\n2000-3000 rw-p 0 00:00 0 \nRss: 4 kB\n";
        let smaps = Smaps::parse(&text[..], Some(Instant::now())).unwrap();
        assert_eq!((smaps.is_complete, smaps.total().resident), (false, 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_of_this_process_is_read() {
        let touched = vec![1_u8; 8 << 20];
        let address = touched.as_ptr().addr() as u64;
        let smaps = Smaps::read(std::process::id(), None).unwrap();
        let holds = |of: &&SmapsMapping| (of.mapping.start..of.mapping.end).contains(&address);
        let own = smaps.mappings.iter().find(holds).unwrap();
        assert!(own.mapping.is_writable && own.sizes.resident >= 8 << 20, "{own:?}");
        assert!(smaps.total().resident > own.sizes.resident && smaps.is_complete);
        drop(touched);
    }
}
