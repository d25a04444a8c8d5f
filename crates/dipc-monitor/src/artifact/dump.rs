//! A core dump.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use dipc_client::{Dump, DumpType};
use jiff::Timestamp;

use super::{ArtifactError, ArtifactSink, begin, write};
use crate::process::Watched;
use crate::stop::StopSignal;

/// The bytes that are passed on at once.
const CHUNK: usize = 256 << 10;
/// The folder, among the files of the process.
const FOLDER: &str = "/tmp";

/// The process writes the dump into a temporary folder of its own: it may have other mounts and another user.
pub(super) fn collect(
    dump_type: DumpType,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let time = Timestamp::now().strftime("%Y%m%d_%H%M%S_%3f");
    let name = format!("dump_{time}_{}.dmp", process.number);
    let path = format!("{FOLDER}/{name}");
    let failed = |what: &str, error: &io::Error| ArtifactError::Failed(format!("{what} {path}: {error}"));
    let folder = Folder::open(process.facts.pid).map_err(|error| failed("open the folder of", &error))?;
    let result = process.target().dump(&Dump::new(path.clone()).with_dump_type(dump_type));
    let removed = RemovedFile { folder: &folder, name: &name };
    result?;
    let mut file = folder.open_file(&name).map_err(|error| failed("open", &error))?;
    begin(sink)?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = file.read(&mut buffer).map_err(|error| failed("read", &error))?;
        if count == 0 {
            drop(removed);
            return Ok(());
        }
        if stop.is_cancelled() {
            return Err(ArtifactError::Cancelled);
        }
        write(sink, buffer.get(..count).unwrap_or_default())?;
    }
}

/// A file that is removed when this is dropped: dumps fill disks.
struct RemovedFile<'f> {
    folder: &'f Folder,
    name: &'f str,
}

impl Drop for RemovedFile<'_> {
    fn drop(&mut self) {
        // There is none if the dump failed.
        let _ = self.folder.remove_file(self.name);
    }
}

/// The temporary folder of a process. No link leads out of what the process sees: it chooses what is there.
#[cfg(target_os = "linux")]
struct Folder(rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Folder {
    fn open(pid: u32) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

        let root = File::open(format!("/proc/{pid}/root"))?;
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let inside = Path::new(FOLDER).strip_prefix("/").unwrap_or(Path::new(FOLDER));
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(Self(openat2(root, inside, flags, Mode::empty(), resolve)?))
    }

    fn open_file(&self, name: &str) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};

        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, rustix::fs::AtFlags::empty())?)
    }
}

/// The temporary folder, which all processes share.
#[cfg(not(target_os = "linux"))]
struct Folder;

#[cfg(not(target_os = "linux"))]
#[allow(clippy::unused_self, reason = "as on Linux")]
impl Folder {
    #[allow(clippy::unnecessary_wraps, reason = "as on Linux")]
    fn open(_: u32) -> io::Result<Self> {
        Ok(Self)
    }

    fn open_file(&self, name: &str) -> io::Result<File> {
        dipc_client::dipc_transport::open_regular(&Path::new(FOLDER).join(name))
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(Path::new(FOLDER).join(name))
    }
}
