//! The open files of a process.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::Files;
use super::sockets::Sockets;

/// Maximum number of descriptors of which the kinds are read.
const MAX_LINKS: u64 = 100_000;

/// Maximum number of different files to count.
const MAX_FILES: usize = 4096;
/// Maximum number of files in [`Descriptors::most_open`].
const MAX_MOST_OPEN: usize = 5;

/// The open files of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Descriptors {
    /// The number of descriptors.
    pub count: u64,
    /// The number that it may have (`Max open files`, the soft limit); `None` if unlimited or unknown.
    pub limit: Option<u64>,
    /// The numbers by kind. Together they are less than the count if there are more than 100,000, or if some
    /// were closed during the reading.
    pub kinds: BTreeMap<DescriptorKind, u64>,
    /// The files of the kind [`DescriptorKind::File`] that are open more than once, at most five, and how
    /// often: the most frequent first. Of more than 4,096 different files, only the first are counted.
    pub most_open: Vec<(PathBuf, u64)>,
    /// The sockets of the kind [`DescriptorKind::Socket`] by state; `None` if there are none, or if the
    /// tables of the network cannot be read.
    pub sockets: Option<Sockets>,
}

/// The kind of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum DescriptorKind {
    /// A file or folder.
    File,
    /// A file in `/dev`, such as a terminal.
    Device,
    /// A socket.
    Socket,
    /// A pipe without a name.
    Pipe,
    /// An `eventfd`.
    EventFd,
    /// An `epoll` instance.
    Epoll,
    /// An `inotify` instance: a `FileSystemWatcher` of .NET.
    Inotify,
    /// A timer.
    Timer,
    /// A `memfd`.
    MemoryFile,
    /// Any other, such as `io_uring` and `perf_event`.
    Other,
}

impl DescriptorKind {
    /// Returns the plural for people, such as `sockets`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "files",
            Self::Device => "devices",
            Self::Socket => "sockets",
            Self::Pipe => "pipes",
            Self::EventFd => "eventfds",
            Self::Epoll => "epoll instances",
            Self::Inotify => "inotify instances",
            Self::Timer => "timers",
            Self::MemoryFile => "memory files",
            Self::Other => "others",
        }
    }

    /// Returns the kind by the target of the link, as the kernel writes it.
    fn of(target: &Path) -> Self {
        let Some(target) = target.to_str() else { return Self::File };
        match target.split_once(':') {
            Some(("socket", _)) => Self::Socket,
            Some(("pipe", _)) => Self::Pipe,
            Some(("/memfd", _)) => Self::MemoryFile,
            Some(("anon_inode", name)) => match name.trim_matches(['[', ']']) {
                "eventfd" => Self::EventFd,
                "eventpoll" => Self::Epoll,
                "inotify" => Self::Inotify,
                "timerfd" => Self::Timer,
                _ => Self::Other,
            },
            _ if target.starts_with("/dev/") && !target.starts_with("/dev/shm/") => Self::Device,
            _ if target.starts_with('/') => Self::File,
            _ => Self::Other,
        }
    }
}

impl Descriptors {
    pub(super) fn read(folder: &Path, limit: Option<u64>, files: &mut Files) -> Option<Self> {
        let links = folder.join("fd");
        let entries = files.kept(&links, fs::read_dir(&links))?;
        let mut descriptors = Self { limit, ..Self::default() };
        let mut inodes = HashSet::new();
        let mut open = HashMap::new();
        for entry in entries {
            let Ok(entry) = entry else { break };
            descriptors.count = descriptors.count.saturating_add(1);
            if descriptors.count > MAX_LINKS || files.is_late() {
                continue;
            }
            // A link that cannot be read has been closed.
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let kind = DescriptorKind::of(&target);
            let number = descriptors.kinds.entry(kind).or_default();
            *number = number.saturating_add(1);
            inodes.extend(socket_inode(&target));
            if kind == DescriptorKind::File && (open.len() < MAX_FILES || open.contains_key(&target)) {
                let number: &mut u64 = open.entry(target).or_default();
                *number = number.saturating_add(1);
            }
        }
        descriptors.most_open = most_open(open);
        if !inodes.is_empty() {
            descriptors.sockets = Sockets::read(&folder.join("net"), &inodes, files);
        }
        Some(descriptors)
    }
}

fn most_open(open: HashMap<PathBuf, u64>) -> Vec<(PathBuf, u64)> {
    let mut open: Vec<_> = open.into_iter().filter(|&(_, number)| number > 1).collect();
    open.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    open.truncate(MAX_MOST_OPEN);
    open
}

/// Returns the number of `socket:[NUMBER]`.
fn socket_inode(target: &Path) -> Option<u64> {
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_that_the_kernel_writes() {
        for (target, kind) in [
            ("socket:[17]", DescriptorKind::Socket),
            ("pipe:[17]", DescriptorKind::Pipe),
            ("anon_inode:[eventfd]", DescriptorKind::EventFd),
            ("anon_inode:[eventpoll]", DescriptorKind::Epoll),
            ("anon_inode:inotify", DescriptorKind::Inotify),
            ("anon_inode:[timerfd]", DescriptorKind::Timer),
            ("anon_inode:[perf_event]", DescriptorKind::Other),
            ("/memfd:doublemapper (deleted)", DescriptorKind::MemoryFile),
            ("/dev/pts/3", DescriptorKind::Device),
            ("/dev/shm/a", DescriptorKind::File),
            ("/tmp/socket:[3]", DescriptorKind::File),
            ("/tmp/a (deleted)", DescriptorKind::File),
            ("net:[4026531840]", DescriptorKind::Other),
            ("", DescriptorKind::Other),
        ] {
            assert_eq!(DescriptorKind::of(Path::new(target)), kind, "{target}");
        }
        assert_eq!(socket_inode(Path::new("socket:[17]")), Some(17));
        for target in ["socket:[]", "socket:[17", "socket:[x]", "pipe:[17]", "socket:[99999999999999999999]"]
        {
            assert_eq!(socket_inode(Path::new(target)), None, "{target}");
        }
    }
}
