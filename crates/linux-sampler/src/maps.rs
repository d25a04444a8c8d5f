//! The executable mappings of processes, from `/proc/PID/maps` and later records.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::sync::{Arc, OnceLock, Weak};

use linux_proc_stat::FileId;

use crate::error::Error;
use crate::image::Image;
use crate::record::{Record, RecordKind};

/// Maximum number of mappings of a process to keep; a program with more is broken or hostile.
const MAX_MAPPINGS: usize = 65_536;

/// Executable memory.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// The first address of the mapping.
    pub start: u64,
    /// The address past its last byte.
    pub end: u64,
    /// The offset of `start` in the file.
    pub file_offset: u64,
    /// The path as the process sees it, `[vdso]` or similar, or empty. Characters that are not UTF-8 are
    /// replaced.
    pub name: Arc<str>,
    /// The mapped file, by which it is found once its process has ended; `None` if it is not known.
    pub file: Option<FileId>,
    /// The image of the file, opened when it is first needed. Copies of the mapping share it.
    image: Arc<OnceLock<Option<Image>>>,
}

impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        (self.start, self.end, self.file_offset, &self.name)
            == (other.start, other.end, other.file_offset, &other.name)
    }
}

impl Eq for Mapping {}

impl Mapping {
    /// A mapping of a file, or of memory without one.
    pub fn new(start: u64, end: u64, file_offset: u64, name: impl Into<Arc<str>>) -> Self {
        Self { start, end, file_offset, name: name.into(), file: None, image: Arc::default() }
    }

    /// With the numbers of the mapped file.
    #[must_use]
    pub fn with_file(self, file: Option<FileId>) -> Self {
        Self { file, ..self }
    }

    /// The mapped file, as the process `pid` sees it, which is opened once; `None` if it is not an image or
    /// could not be opened.
    pub fn image(&self, pid: i32) -> Option<&Image> {
        self.image.get_or_init(|| self.open_image(pid).ok()).as_ref()
    }

    /// Opens the mapped file, as the process `pid` sees it. If it has ended, or its files are not to be seen,
    /// the path is opened here, if it is the same file.
    ///
    /// # Errors
    /// If it is not a regular file or not an image, or cannot be read.
    pub fn open_image(&self, pid: i32) -> io::Result<Image> {
        if !self.is_file() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "memory without a file"));
        }
        let opened = Image::open(pid, &self.name);
        let (Err(_), Some(file)) = (&opened, self.file) else { return opened };
        let own = i32::try_from(std::process::id()).ok();
        let own = own.and_then(|own| Image::open(own, &self.name).ok());
        own.filter(|image| image.is_of(file)).map_or(opened, Ok)
    }

    /// The image's own address for an address in this mapping.
    pub fn address_in(&self, image: &Image, address: u64) -> Option<u64> {
        image.address_of(self.file_offset.checked_add(address.checked_sub(self.start)?)?)
    }

    /// Returns true if it maps a file that can be opened by name.
    pub fn is_file(&self) -> bool {
        self.name.starts_with('/') && !self.name.starts_with("/memfd:") && !self.name.ends_with(" (deleted)")
    }

    /// Returns true for the code that the kernel maps into each process.
    pub(crate) fn is_kernels_own(&self) -> bool {
        matches!(&*self.name, "[vdso]" | "[vsyscall]")
    }

    fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The executable mappings of a process.
///
/// ```
/// use linux_sampler::ProcessMaps;
///
/// let maps = ProcessMaps::parse(b"401000-402000 r-xp 00001000 08:01 42 /usr/bin/app\n");
/// let mapping = maps.at(0x401_010).ok_or("not mapped")?;
/// assert_eq!((&*mapping.name, mapping.file_offset), ("/usr/bin/app", 0x1000));
/// assert!(maps.at(0x402_000).is_none());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ProcessMaps {
    by_start: BTreeMap<u64, Mapping>,
    /// The number of mappings beyond the limit.
    omitted: u64,
    changes: u64,
}

impl ProcessMaps {
    /// Reads the current mappings of a process.
    ///
    /// # Errors
    /// [`Error::NoProcess`], or if the file cannot be read.
    pub fn read(pid: i32) -> Result<Self, Error> {
        let path = format!("/proc/{pid}/maps");
        let text = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoProcess { pid },
            _ if error.raw_os_error() == Some(libc::ESRCH) => Error::NoProcess { pid },
            _ => Error::Io { what: path.clone(), error },
        })?;
        Ok(Self::parse(&text))
    }

    /// Reads the text of `/proc/PID/maps`.
    pub fn parse(text: &[u8]) -> Self {
        let mut maps = Self::default();
        let executable = linux_proc_stat::Mapping::parse_all(text).filter(|mapping| mapping.is_executable);
        for mapping in executable {
            let linux_proc_stat::Mapping { start, end, file_offset, name, file, .. } = mapping;
            maps.insert(Mapping::new(start, end, file_offset, name).with_file(file));
        }
        maps
    }

    /// The mapping at an address.
    pub fn at(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.range(..=address).next_back()?;
        mapping.contains(address).then_some(mapping)
    }

    /// All mappings, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.by_start.values()
    }

    /// The number of mappings that were left out because there were too many.
    pub const fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The number of mappings added so far, which lets a reader detect changes.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds a mapping, which replaces overlapping mappings.
    pub fn insert(&mut self, mapping: Mapping) {
        if mapping.start >= mapping.end {
            return;
        }
        let covered: Vec<u64> = self
            .by_start
            .range(..mapping.end)
            .rev()
            .take_while(|(_, other)| other.end > mapping.start)
            .map(|(&start, _)| start)
            .collect();
        for start in covered {
            let Some(old) = self.by_start.remove(&start) else { continue };
            if old.start < mapping.start {
                self.by_start.insert(old.start, Mapping { end: mapping.start, ..old.clone() });
            }
            if old.end > mapping.end {
                let file_offset = old.file_offset.saturating_add(mapping.end - old.start);
                self.by_start.insert(mapping.end, Mapping { start: mapping.end, file_offset, ..old });
            }
        }
        if self.by_start.len() >= MAX_MAPPINGS {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        self.by_start.insert(mapping.start, mapping);
        self.changes = self.changes.saturating_add(1);
    }
}

/// The mappings of all processes of a sampler, at the time of the last handled record.
///
/// ```
/// use linux_sampler::Processes;
///
/// // The mappings of this test; records of a sampler keep them up to date.
/// let mut processes = Processes::new();
/// let maps = processes.of(i32::try_from(std::process::id())?);
/// assert!(maps.iter().any(|mapping| mapping.is_file()));
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug, Default)]
pub struct Processes {
    by_pid: HashMap<i32, ProcessMaps>,
    images: SharedImages,
}

/// Maximum number of files to remember, before those that no process maps are forgotten.
const MAX_SHARED: usize = 4096;

/// The image of a file.
type SharedImage = OnceLock<Option<Image>>;

/// The images of files that several processes map: each is open once, and its parts are read once.
#[derive(Debug, Default)]
struct SharedImages {
    by_file: HashMap<(FileId, Arc<str>), Weak<SharedImage>>,
}

impl SharedImages {
    /// Lets a mapping share the image with those of other processes, unless these could not open it.
    fn share(&mut self, mapping: &mut Mapping) {
        let Some(file) = mapping.file.filter(|_| mapping.is_file()) else { return };
        if self.by_file.len() >= MAX_SHARED {
            self.by_file.retain(|_, image| image.strong_count() > 0);
        }
        let key = (file, Arc::clone(&mapping.name));
        match self.by_file.get(&key).and_then(Weak::upgrade) {
            Some(image) if !matches!(image.get(), Some(None)) => mapping.image = image,
            _ if self.by_file.len() < MAX_SHARED => {
                self.by_file.insert(key, Arc::downgrade(&mapping.image));
            }
            _ => {}
        }
    }
}

impl Processes {
    /// Creates a table without processes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The mappings of a process. The mappings of a new process are read, or left empty if that fails.
    pub fn of(&mut self, pid: i32) -> &ProcessMaps {
        let Self { by_pid, images } = self;
        by_pid.entry(pid).or_insert_with(|| {
            let mut maps = ProcessMaps::read(pid).unwrap_or_default();
            maps.by_start.values_mut().for_each(|mapping| images.share(mapping));
            maps
        })
    }

    /// Removes the processes for which `is_kept` returns false.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(i32) -> bool) {
        self.by_pid.retain(|pid, _| is_kept(*pid));
    }

    /// Applies a record. Returns the process if its mappings have been replaced by `exec`.
    pub fn handle(&mut self, record: &Record<'_>) -> Option<i32> {
        let pid = record.thread.pid;
        match record.kind {
            RecordKind::Map(map) => {
                let name = String::from_utf8_lossy(map.name);
                let mut mapping = Mapping::new(map.start, map.end, map.file_offset, name).with_file(map.file);
                self.images.share(&mut mapping);
                self.of(pid);
                self.by_pid.entry(pid).or_default().insert(mapping);
            }
            RecordKind::Name { exec: true, .. } => {
                self.by_pid.insert(pid, ProcessMaps::default());
                return Some(pid);
            }
            RecordKind::Started { thread, parent } if thread.pid != parent.pid => {
                let maps = self.of(parent.pid).clone();
                self.by_pid.insert(thread.pid, maps);
            }
            RecordKind::Ended { thread } if thread.pid == thread.tid => {
                // The process's samples precede this record and have been handled. Another process may reuse
                // the number.
                self.by_pid.remove(&thread.pid);
                return Some(thread.pid);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"1000-3000 r--p 00000000 08:01 42 /lib/a.so
3000-6000 r-xp 00002000 08:01 42      /lib/a.so
7000-8000 r-xs 00000000 00:01 7 /memfd:doublemapper (deleted)
9000-a000 rwxp 00000000 00:00 0
ffff-x r-xp broken
";

    #[test]
    fn the_same_file_is_found_here_once_its_process_has_ended() {
        let own = i32::try_from(std::process::id()).unwrap();
        let maps = ProcessMaps::read(own).unwrap();
        let program = std::env::current_exe().unwrap();
        let mapping = maps.iter().find(|mapping| *mapping.name == *program.to_str().unwrap()).unwrap();
        let mapped =
            |file| Mapping::new(mapping.start, mapping.end, 0, Arc::clone(&mapping.name)).with_file(file);
        assert!(mapped(mapping.file).open_image(i32::MAX).is_ok());
        let other = mapping.file.map(|file| FileId { inode: file.inode ^ 1, ..file });
        assert!(mapped(other).open_image(i32::MAX).is_err());
        assert!(mapped(None).open_image(i32::MAX).is_err());
    }

    #[test]
    fn executable_lines_are_read() {
        let maps = ProcessMaps::parse(TEXT);
        let all: Vec<_> = maps.iter().map(|mapping| (mapping.start, mapping.end, &*mapping.name)).collect();
        assert_eq!(
            all,
            [
                (0x3000, 0x6000, "/lib/a.so"),
                (0x7000, 0x8000, "/memfd:doublemapper (deleted)"),
                (0x9000, 0xa000, "")
            ]
        );
        assert_eq!(maps.at(0x2fff), None);
        assert_eq!(maps.at(0x3000).unwrap().file_offset, 0x2000);
        assert!(!maps.at(0x7800).unwrap().is_file());
    }

    #[test]
    fn a_new_mapping_replaces_the_part_that_it_covers() {
        let mut maps = ProcessMaps::parse(TEXT);
        maps.insert(Mapping::new(0x4000, 0x5000, 0, "/lib/b.so"));
        let all: Vec<_> =
            maps.iter().take(3).map(|mapping| (mapping.start, mapping.end, mapping.file_offset)).collect();
        assert_eq!(all, [(0x3000, 0x4000, 0x2000), (0x4000, 0x5000, 0), (0x5000, 0x6000, 0x4000)]);
    }
}
