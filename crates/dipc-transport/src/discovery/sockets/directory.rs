use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::SocketName;
use crate::sys::SocketLocation;

/// The directories of the sockets of processes. Each is listed once, whichever path it is reached by.
#[derive(Default)]
pub(super) struct Directories {
    by_identity: HashMap<Identity, SocketDirectory>,
    /// The directories that many processes reach by the same path.
    by_path: HashMap<PathBuf, Identity>,
    nameless: SocketDirectory,
}

/// Device and inode.
type Identity = (u64, u64);

/// The names of the sockets in a directory.
#[derive(Default)]
pub(super) struct SocketDirectory {
    path: PathBuf,
    listing: Listing,
    claimed: HashSet<SocketName>,
    /// The number of listed names that no process has claimed.
    unclaimed: usize,
}

#[derive(Default)]
enum Listing {
    /// No such directory exists.
    #[default]
    Absent,
    Names(HashMap<u32, Vec<u64>>),
    /// The directory exists; perhaps names in it can still be opened.
    Unreadable(Option<io::Error>),
}

impl Directories {
    /// Lists a directory.
    pub(super) fn open(&mut self, location: &SocketLocation) -> &mut SocketDirectory {
        let known = location.is_shared.then(|| self.by_path.get(&location.directory).copied()).flatten();
        let reached = location.listing_path();
        let found = known.map_or_else(|| identity(&reached), Ok);
        match found {
            Ok(identity) => {
                if location.is_shared && known.is_none() {
                    self.by_path.insert(location.directory.clone(), identity);
                }
                let list = || SocketDirectory::list(&reached, &location.directory);
                self.by_identity.entry(identity).or_insert_with(list)
            }
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
        let unclaimed = match &listing {
            Listing::Names(names) => names.values().map(Vec::len).sum(),
            Listing::Absent | Listing::Unreadable(_) => 0,
        };
        Self { path: path.to_path_buf(), listing, claimed: HashSet::new(), unclaimed }
    }

    /// Returns whether the directory may have a socket of the process.
    pub(super) fn may_hold(&self, namespace_pid: u32) -> bool {
        match &self.listing {
            Listing::Absent => false,
            Listing::Names(names) => names.contains_key(&namespace_pid),
            Listing::Unreadable(_) => true,
        }
    }

    /// Returns whether the directory has a socket that no process has claimed.
    pub(super) fn has_unclaimed(&self) -> bool {
        self.unclaimed > 0
    }

    /// Records that a socket belongs to a process.
    pub(super) fn claim(&mut self, name: SocketName) {
        let Listing::Names(names) = &self.listing else { return };
        let is_listed = names.get(&name.pid).is_some_and(|keys| keys.contains(&name.key));
        if self.claimed.insert(name) && is_listed {
            self.unclaimed = self.unclaimed.saturating_sub(1);
        }
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

fn identity(directory: &Path) -> io::Result<Identity> {
    fs::metadata(directory).map(|metadata| (metadata.dev(), metadata.ino()))
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
