//! A core dump.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use dipc_client::{Dump, DumpType, Error};
use dipc_collect::StopSignal;
use jiff::Timestamp;

use super::{ArtifactError, ArtifactSink, begin, write};
use crate::process::Watched;

/// The bytes that are passed on at once.
const CHUNK: usize = 256 << 10;
/// The folder, if none is configured.
const FOLDER: &str = "/tmp";

/// The process writes the dump into a folder that this program sees as well.
pub(super) fn collect(
    dump_type: DumpType,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    // Two dumps of one millisecond, of other monitors too, have two names.
    static DUMPS: AtomicU64 = AtomicU64::new(0);

    let time = Timestamp::now().strftime("%Y%m%d_%H%M%S_%3f");
    let number = DUMPS.fetch_add(1, Ordering::Relaxed);
    let name = format!("dump_{time}_{}_{number}.dmp", std::process::id());
    let path = process.dump_folder().unwrap_or(Path::new(FOLDER)).join(&name).display().to_string();
    let failed = |what: &str, error: &io::Error| ArtifactError::Failed(format!("{what} {path}: {error}"));
    let folder = Folder::of(process).map_err(|error| failed("open the folder of", &error))?;
    let result = process.target().dump(&Dump::new(path.clone()).with_dump_type(dump_type));
    let removed = RemovedFile { folder: &folder, name: &name };
    result.map_err(|error| match (&error, error.help()) {
        (Error::Refused { .. }, Some(help)) => ArtifactError::Failed(format!("{error}; {help}")),
        _ => error.into(),
    })?;
    let mut file = folder.open_file(&name).map_err(|error| match error.kind() {
        // The answer of a runtime that is still starting.
        io::ErrorKind::NotFound => ArtifactError::Failed(format!(
            "the runtime says that it wrote the dump, but {path} is not there: try again if the process is starting"
        )),
        _ => failed("open", &error),
    })?;
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

/// Creates a folder for the dumps of processes. They may run as another user: the folder has the mode of its
/// parent folder, to which they can write, and users cannot remove the files of others.
fn create_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        result => result?,
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

        let mode = folder.parent().map(fs::metadata).transpose()?.map_or(0o700, |parent| parent.mode());
        fs::set_permissions(folder, fs::Permissions::from_mode(mode & 0o777 | 0o1000))?;
    }
    Ok(())
}

/// A file that is removed when this is dropped: dumps fill disks.
struct RemovedFile<'f> {
    folder: &'f Folder,
    name: &'f str,
}

impl Drop for RemovedFile<'_> {
    fn drop(&mut self) {
        // The file is missing if the dump failed.
        let _ = self.folder.remove_file(self.name);
    }
}

/// The folder of the dumps of a process.
#[cfg(target_os = "linux")]
struct Folder(rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Folder {
    /// Opens the folder as the process sees it, if it is on this machine, and else the configured one as this
    /// program sees it.
    fn of(process: &Watched) -> io::Result<Self> {
        let configured = process.dump_folder();
        if let Some(folder) = configured {
            // The process may see another one, or create it itself.
            let _ = create_folder(folder);
        }
        let own = |folder: &Path| {
            use rustix::fs::{Mode, OFlags, open};

            let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
            Ok(Self(open(folder, flags, Mode::empty())?))
        };
        match (process.system_pid(), configured) {
            (Some(pid), folder) => {
                let folder = folder.unwrap_or(Path::new(FOLDER));
                let seen = Self::of_process(pid, folder);
                // Another process may have got the pid meanwhile.
                if process.system_pid() != Some(pid) {
                    return Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended"));
                }
                // Access through the process's root needs rights that a shared folder does not.
                seen.or_else(|error| configured.map_or(Err(error), own))
            }
            (None, Some(folder)) => own(folder),
            (None, None) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the process is not visible from here: set Storage:DumpTempFolder, or Storage:DefaultSharedPath, \
                 to a directory that it and the monitor share",
            )),
        }
    }

    /// Opens a folder of a process. Links cannot lead out of the process's view: the process chooses the
    /// content of the folder.
    fn of_process(pid: u32, folder: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        use rustix::io::Errno;

        /// The kernel gives up a path with `..` if anything on the system is renamed meanwhile.
        const ATTEMPTS: u32 = 16;
        let root = File::open(linux_proc_stat::process_folder(pid).join("root"))?;
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut open = (0..ATTEMPTS)
            .map(|_| openat2(&root, inside, flags, Mode::empty(), resolve))
            .skip_while(|found| matches!(found, Err(Errno::AGAIN)));
        Ok(Self(open.next().unwrap_or(Err(Errno::AGAIN))?))
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

/// The folder of the dumps, which all processes share.
#[cfg(not(target_os = "linux"))]
struct Folder(std::path::PathBuf);

#[cfg(not(target_os = "linux"))]
impl Folder {
    fn of(process: &Watched) -> io::Result<Self> {
        let Some(folder) = process.dump_folder() else { return Ok(Self(FOLDER.into())) };
        create_folder(folder)?;
        Ok(Self(folder.to_owned()))
    }

    fn open_file(&self, name: &str) -> io::Result<File> {
        dipc_client::dipc_transport::open_regular(&self.0.join(name))
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }
}
