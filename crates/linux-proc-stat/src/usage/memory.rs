//! The memory of a process, and the bytes that it reads and writes.

use std::path::Path;

use super::Files;
use crate::status::{Status, parse_size};

/// Memory in bytes by `/proc/PID/status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ProcessMemory {
    /// Memory that is resident, the sum of the following three.
    pub resident: Option<u64>,
    /// Resident memory that belongs to no file: heaps and stacks.
    pub anonymous: Option<u64>,
    /// Resident pages of files: programs, libraries, and mapped data. The kernel can read them again.
    pub file: Option<u64>,
    /// Resident shared memory, such as `memfd` and `/dev/shm`; .NET has its code in it.
    pub shared: Option<u64>,
    /// Memory that is swapped out.
    pub swap: Option<u64>,
    /// Reserved addresses. .NET reserves hundreds of gigabytes, which cost nothing.
    pub virtual_size: Option<u64>,
    /// The largest resident memory so far.
    pub peak_resident: Option<u64>,
    /// Page tables.
    pub page_tables: Option<u64>,
}

impl ProcessMemory {
    /// Takes the sizes of a status; `None` for zombies and kernel threads.
    pub(super) fn of(status: &Status<'_>) -> Option<Self> {
        status.has_memory().then(|| Self {
            resident: status.resident_bytes(),
            anonymous: status.size("RssAnon"),
            file: status.size("RssFile"),
            shared: status.size("RssShmem"),
            swap: status.size("VmSwap"),
            virtual_size: status.size("VmSize"),
            peak_resident: status.size("VmHWM"),
            page_tables: status.size("VmPTE"),
        })
    }
}

/// Memory in bytes by `/proc/PID/smaps_rollup`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MappedMemory {
    /// Resident memory in which each page is divided by the number of processes that map it (PSS).
    pub proportional: Option<u64>,
    /// Pages that only this process has, and that are not those of a file any more: what would be freed if it
    /// ended.
    pub private_dirty: Option<u64>,
    /// Pages that only this process has, and that are those of a file.
    pub private_clean: Option<u64>,
    /// Memory in pages of 2 MB.
    pub huge_pages: Option<u64>,
    /// Memory that was given back (`MADV_FREE`), and that the kernel has not taken yet.
    pub lazily_freed: Option<u64>,
}

impl MappedMemory {
    pub(super) fn read(folder: &Path, files: &mut Files) -> Option<Self> {
        let text = files.read(&folder.join("smaps_rollup"))?;
        let text = String::from_utf8_lossy(&text);
        Some(Self {
            proportional: size(&text, "Pss"),
            private_dirty: size(&text, "Private_Dirty"),
            private_clean: size(&text, "Private_Clean"),
            huge_pages: size(&text, "AnonHugePages"),
            lazily_freed: size(&text, "LazyFree"),
        })
    }
}

/// Returns the size in bytes of a line `NAME:   1234 kB`.
pub(super) fn size(text: &str, name: &str) -> Option<u64> {
    parse_size(value(text, name)?)
}

/// Returns the value of a line `NAME: VALUE`.
fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The bytes that a process has read and written since it began, by `/proc/PID/io`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ProcessIo {
    /// Bytes that system calls have read, also from sockets, pipes and the page cache.
    pub read_by_calls: Option<u64>,
    /// Bytes that system calls have written.
    pub written_by_calls: Option<u64>,
    /// System calls that read.
    pub read_calls: Option<u64>,
    /// System calls that write.
    pub write_calls: Option<u64>,
    /// Bytes that were read from disks for it.
    pub read_from_disk: Option<u64>,
    /// Bytes that were or will be written to disks for it.
    pub written_to_disk: Option<u64>,
}

impl ProcessIo {
    pub(super) fn read(folder: &Path, files: &mut Files) -> Option<Self> {
        let text = files.read(&folder.join("io"))?;
        let text = std::str::from_utf8(&text).ok()?;
        let number = |name| value(text, name)?.parse().ok();
        Some(Self {
            read_by_calls: number("rchar"),
            written_by_calls: number("wchar"),
            read_calls: number("syscr"),
            write_calls: number("syscw"),
            read_from_disk: number("read_bytes"),
            written_to_disk: number("write_bytes"),
        })
    }
}
