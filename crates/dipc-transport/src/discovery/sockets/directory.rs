use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::SocketName;

/// The directories of the sockets of processes. Each is listed once, whichever path it is reached by.
#[derive(Default)]
pub(super) struct Directories {
    by_identity: HashMap<(u64, u64), SocketDirectory>,
    nameless: SocketDirectory,
}

/// The names of the sockets in a directory.
#[derive(Default)]
pub(super) struct SocketDirectory {
    path: PathBuf,
    listing: Listing,
    claimed: HashSet<SocketName>,
}

#[derive(Default)]
enum Listing {
    /// No such directory exists.
    #[default]
    Absent,
    Names(HashMap<u32, Vec<u64>>),
    /// It exists; perhaps names in it can still be opened.
    Unreadable(Option<io::Error>),
}

impl Directories {
    /// Lists a directory. `reached` is the path to read it by, `path` the one to report.
    pub(super) fn open(&mut self, reached: &Path, path: &Path) -> &mut SocketDirectory {
        match fs::metadata(reached) {
            Ok(metadata) => self
                .by_identity
                .entry((metadata.dev(), metadata.ino()))
                .or_insert_with(|| SocketDirectory::list(reached, path)),
            Err(error) => {
                // Opening the socket itself returns the reason.
                let absent = error.kind() == io::ErrorKind::NotFound;
                self.nameless.listing = if absent { Listing::Absent } else { Listing::Unreadable(None) };
                &mut self.nameless
            }
        }
    }

    /// Takes the directories that could not be listed, with the reasons.
    pub(super) fn take_unreadable(&mut self) -> Vec<(PathBuf, io::Error)> {
        let directories = self.by_identity.values_mut();
        let mut unreadable: Vec<_> = directories
            .filter_map(|directory| match &mut directory.listing {
                Listing::Unreadable(error) => error.take().map(|error| (directory.path.clone(), error)),
                Listing::Absent | Listing::Names(_) => None,
            })
            .collect();
        unreadable.sort_by(|(left, _), (right, _)| left.cmp(right));
        unreadable
    }

    /// Returns the sockets without a process, by directory, pid and key.
    pub(super) fn unclaimed(&self) -> Vec<PathBuf> {
        let mut directories: Vec<_> = self.by_identity.values().collect();
        directories.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        directories.into_iter().flat_map(SocketDirectory::unclaimed).collect()
    }
}

impl SocketDirectory {
    fn list(reached: &Path, path: &Path) -> Self {
        let listing = match names(reached) {
            Ok(names) => Listing::Names(names),
            Err(error) => Listing::Unreadable(Some(error)),
        };
        Self { path: path.to_path_buf(), listing, claimed: HashSet::new() }
    }

    /// Returns whether the directory may have a socket of the process.
    pub(super) fn may_hold(&self, namespace_pid: u32) -> bool {
        match &self.listing {
            Listing::Absent => false,
            Listing::Names(names) => names.contains_key(&namespace_pid),
            Listing::Unreadable(_) => true,
        }
    }

    /// Records that a socket belongs to a process.
    pub(super) fn claim(&mut self, name: SocketName) {
        self.claimed.insert(name);
    }

    fn unclaimed(&self) -> Vec<PathBuf> {
        let Listing::Names(names) = &self.listing else { return Vec::new() };
        let all = names.iter().flat_map(|(&pid, keys)| keys.iter().map(move |&key| SocketName { pid, key }));
        let mut unclaimed: Vec<_> = all.filter(|name| !self.claimed.contains(name)).collect();
        // There may be thousands, and numbers are compared faster than paths.
        unclaimed.sort_unstable_by_key(|name| (name.pid, name.key));
        unclaimed.into_iter().map(|name| self.path.join(name.to_string())).collect()
    }
}

fn names(directory: &Path) -> io::Result<HashMap<u32, Vec<u64>>> {
    let mut names: HashMap<u32, Vec<u64>> = HashMap::new();
    for entry in fs::read_dir(directory)? {
        if let Some(name) = SocketName::parse(&entry?.file_name()) {
            names.entry(name.pid).or_default().push(name.key);
        }
    }
    Ok(names)
}
