//! Files as the destination of artifacts: written next to their place, and renamed when they are complete.

mod catalog;
mod collection;
mod delivery;
mod job;
mod open_part;
mod part;
mod queue;
mod store_client;
mod uploads;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dipc_client::Uuid;
use dipc_client::dipc_transport::FolderBelow;
use dipc_collect::staged::{move_new, numbered, publish_first};

use crate::configuration::{DirectoryEgress, EgressProvider};

use catalog::path_of;
use open_part::OpenPart;
use part::{CompletePart, PartWriter};

pub(crate) use catalog::{Catalog, ListedFile, RecordingNote};
pub(crate) use queue::CompleteArtifact;
pub use queue::{EgressError, EgressQueue};
pub use store_client::StoreClient;

/// The bytes that are written at once.
const BUFFER: usize = 64 << 10;
/// Maximum number of artifacts of one name: further ones are refused.
const MAX_PER_NAME: u32 = 10_000;

/// A file that is being written. It is removed when this is dropped before [`publish`](Self::publish).
#[derive(Debug)]
pub(crate) struct PartFile {
    /// `None` once it is complete.
    writer: Option<PartWriter>,
    target: PathBuf,
    directory: PathBuf,
}

/// A complete file that could not be given its name.
#[derive(Debug)]
pub(crate) struct Unpublished {
    pub(crate) error: io::Error,
    /// The file, which the caller moves or removes; `None` if it could not be completed.
    pub(crate) file: Option<PathBuf>,
}

impl PartFile {
    /// Creates the file of an artifact, and the directories that are missing. If they cannot be written, now
    /// or later, the file is in the directory `spare` instead.
    ///
    /// # Errors
    /// If the name leads out of the directory, or the file system fails.
    pub(crate) fn create(egress: &DirectoryEgress, name: &str, spare: Option<&Path>) -> io::Result<Self> {
        let Some(target) = path_of(&egress.directory, name) else {
            let message = format!("{name:?} is not the name of a file below {}", egress.directory.display());
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, message));
        };
        let parent = target.parent().unwrap_or(&egress.directory);
        let parts = egress.intermediate.as_deref().unwrap_or(parent);
        let path = hidden(parts, &target);
        let open = || {
            let folder = open_parent(&egress.directory, &target)?;
            fs::create_dir_all(parts).map_err(|error| at(parts, &error))?;
            OpenPart::create(folder, parent, &path)
        };
        let writer = PartWriter::begin(&path, open, spare.map(|directory| hidden(directory, &target)))?;
        Ok(Self { writer: Some(writer), target, directory: egress.directory.clone() })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Ok(()),
        }
    }

    /// Gives the complete file its name, and returns its path. A file of the name is not replaced: the new
    /// one gets a number, as `name-2.nettrace`.
    pub(crate) fn publish(mut self) -> Result<PathBuf, Unpublished> {
        let Some(writer) = self.writer.take() else { return Ok(self.target.clone()) };
        let CompletePart { path, folder, failure } =
            writer.finish().map_err(|error| Unpublished { error, file: None })?;
        if let Some(error) = failure {
            return Err(Unpublished { error, file: Some(path) });
        }
        let failed = |error| Unpublished { error, file: Some(path.clone()) };
        let parent = self.target.parent().unwrap_or(&self.directory);
        let folder = folder.map_or_else(|| open_parent(&self.directory, &self.target), Ok).map_err(failed)?;
        let names = (1..=MAX_PER_NAME).map(|number| numbered(&self.target, "-", number));
        let published = publish_first(names, |target| {
            move_new(&held(&folder, parent, &path), &held(&folder, parent, target))
                .map_err(|error| at(target, &error))
        });
        published.map_err(failed)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.remove();
        }
    }
}

/// The directories of providers, by the names of these.
pub(crate) fn directories(providers: &BTreeMap<String, EgressProvider>) -> BTreeMap<String, PathBuf> {
    let directories = providers.iter().filter_map(|(name, provider)| match provider {
        EgressProvider::FileSystem(files) => Some((name.clone(), files.directory.clone())),
        _ => None,
    });
    directories.collect()
}

/// Adds the path to an error.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A unique name in a directory, for the parts of `target`.
fn hidden(directory: &Path, target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    directory.join(format!(".{name}.{}.part", Uuid::new_v4().simple()))
}

/// Opens the directory of an artifact, and creates missing parts of it. Links below the directory of the
/// provider, which others may have put in place, are not followed: while it is open, it is that directory.
fn open_parent(directory: &Path, artifact: &Path) -> io::Result<FolderBelow> {
    let parent = artifact.parent().unwrap_or(directory);
    fs::create_dir_all(directory).map_err(|error| at(directory, &error))?;
    let below = parent.strip_prefix(directory).unwrap_or(Path::new(""));
    FolderBelow::create(directory, below).map_err(|error| at(parent, &error))
}

/// Returns the path of a file of the directory `parent` by the open `folder`; that of another one as it is.
fn held(folder: &FolderBelow, parent: &Path, path: &Path) -> PathBuf {
    match path.file_name() {
        Some(name) if path.parent() == Some(parent) => folder.join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_have_their_name_when_they_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("new/artifacts");
        let egress = DirectoryEgress { directory: directory.clone(), ..DirectoryEgress::default() };
        let mut part = PartFile::create(&egress, "a.nettrace", None).unwrap();
        part.write(b"one").unwrap();
        assert!(names(&directory).iter().all(|name| name.starts_with(".a.nettrace.")));
        let path = part.publish().unwrap();
        assert_eq!(
            (path, fs::read(directory.join("a.nettrace")).unwrap()),
            (directory.join("a.nettrace"), b"one".to_vec())
        );
        // A second file of that name does not replace the first.
        let mut part = PartFile::create(&egress, "a.nettrace", None).unwrap();
        part.write(b"two").unwrap();
        assert_eq!(part.publish().unwrap(), directory.join("a-2.nettrace"));
        assert_eq!(fs::read(directory.join("a.nettrace")).unwrap(), b"one");
        // An abandoned file is removed.
        drop(PartFile::create(&egress, "b", None).unwrap());
        assert_eq!(names(&directory), ["a-2.nettrace", "a.nettrace"]);
    }

    #[test]
    fn parts_can_be_in_another_directory() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, parts) = (folder.path().join("done"), folder.path().join("parts"));
        let egress = DirectoryEgress {
            directory: directory.clone(),
            intermediate: Some(parts.clone()),
            ..DirectoryEgress::default()
        };
        let mut part = PartFile::create(&egress, "sub/a", None).unwrap();
        part.write(b"x").unwrap();
        assert_eq!(names(&parts).len(), 1);
        assert_eq!(part.publish().unwrap(), directory.join("sub/a"));
        assert!(names(&parts).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out_of_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, other) = (folder.path().join("a"), folder.path().join("other"));
        fs::create_dir_all(directory.join("own")).unwrap();
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, directory.join("own/link")).unwrap();
        let egress = DirectoryEgress { directory: directory.clone(), ..DirectoryEgress::default() };
        for name in ["own/link/x", "own/link/sub/x"] {
            let error = PartFile::create(&egress, name, None).unwrap_err().to_string();
            assert!(error.contains("own/link") && error.contains("is a link"), "{error}");
        }
        assert!(names(&other).is_empty());
        let path = PartFile::create(&egress, "own/new/x", None).unwrap().publish().unwrap();
        assert_eq!(path, directory.join("own/new/x"));
    }

    /// Others may write to the directories of artifacts.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_part_is_removed_and_published_in_the_directory_that_it_was_created_in() {
        for publishes in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            fs::create_dir(at("other")).unwrap();
            let egress = DirectoryEgress { directory: at("egress"), ..DirectoryEgress::default() };
            let part = PartFile::create(&egress, "sub/a", None).unwrap();
            fs::rename(at("egress/sub"), at("moved")).unwrap();
            std::os::unix::fs::symlink(at("other"), at("egress/sub")).unwrap();
            let [name] = &names(&at("moved"))[..] else { panic!("{:?}", names(&at("moved"))) };
            fs::write(at("other").join(name), "theirs").unwrap();
            if publishes {
                part.publish().unwrap();
            } else {
                drop(part);
            }
            assert_eq!(names(&at("moved")), if publishes { &["a"][..] } else { &[] });
            assert_eq!(names(&at("other")), [name.as_str()]);
        }
    }

    #[test]
    fn names_do_not_lead_out_of_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let egress = DirectoryEgress { directory: folder.path().join("a"), ..DirectoryEgress::default() };
        for name in ["../x", "/x", "a/../../x", "", ".", "..", &"x".repeat(201)] {
            let error = PartFile::create(&egress, name, None).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidFilename, "{name}");
        }
        assert!(names(folder.path()).is_empty());
    }
}
