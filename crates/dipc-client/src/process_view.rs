//! What can be seen of a target's process from outside: its threads, its libraries, its files. Only Linux shows them;
//! elsewhere, and without the right to look, nothing is known.

mod resolve;

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use crate::Danger;

/// The most that is read of a list of mapped files.
const MAPS_LIMIT: u64 = 64 << 20;

/// Whether a runtime waits at its start for somebody to resume it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Startup {
    /// It waits.
    Suspended,
    /// It was resumed, or did not wait.
    Running,
    /// That cannot be seen from here: another system than Linux, no right to look, a NativeAOT program, .NET 7 or older.
    Unseen,
}

/// A process as the kernel shows it.
#[derive(Debug, Clone)]
pub(crate) struct ProcessView {
    /// Its folder of `/proc`.
    folder: PathBuf,
}

impl ProcessView {
    pub(crate) fn of(pid: u32) -> Self {
        Self { folder: format!("/proc/{pid}").into() }
    }

    /// Of the threads that a runtime names, that of the diagnostic server is there while it waits, that for finalizers only
    /// after it was resumed: so seen on .NET 9 and 10. NativeAOT names neither; ProcessInfo shows no difference.
    pub(crate) fn startup(&self) -> Startup {
        let Ok(threads) = fs::read_dir(self.folder.join("task")) else { return Startup::Unseen };
        let mut startup = Startup::Unseen;
        for thread in threads.flatten() {
            match fs::read(thread.path().join("comm")) {
                Ok(name) if name.starts_with(b".NET Finalizer") => return Startup::Running,
                Ok(name) if name.starts_with(b".NET EventPipe") => startup = Startup::Suspended,
                _ => {}
            }
        }
        startup
    }

    /// The file that the process means by `path`, as it is reached from here.
    pub(crate) fn locate(&self, path: &Path) -> io::Result<PathBuf> {
        resolve::resolve(&self.folder.join("root"), &self.folder.join("cwd"), path)
    }

    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs::metadata(self.locate(path)?)
    }

    /// What keeps the runtime from starting its `createdump`; `None` if nothing is seen that does. Single-file programs
    /// have no library `libcoreclr.so` and another way.
    pub(crate) fn createdump_problem(&self) -> Option<Danger> {
        let path = self.mapped("libcoreclr.so")?.with_file_name("createdump");
        let problem = match self.metadata(&path) {
            Ok(metadata) if !metadata.is_file() => "it is not a file",
            Ok(metadata) if !is_executable(&metadata) => "it is not executable",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "it does not exist",
            Ok(_) | Err(_) => return None,
        };
        Some(Danger::NoCreateDump { path, problem })
    }

    /// The path of a mapped file with that name, as the process has it.
    fn mapped(&self, name: &str) -> Option<PathBuf> {
        let mut found = None;
        self.for_each_mapped(|path| {
            if found.is_none() && path.file_name().is_some_and(|it| it == name) {
                found = Some(path.to_path_buf());
            }
        })
        .ok()?;
        found
    }

    /// Shows the path of every mapped file, as the process has it, once or more.
    pub(crate) fn for_each_mapped(&self, mut show: impl FnMut(&Path)) -> io::Result<()> {
        let maps = BufReader::new(File::open(self.folder.join("maps"))?.take(MAPS_LIMIT));
        for line in maps.split(b'\n') {
            let line = line?;
            // A name that is no text is none that is looked for.
            let Ok(line) = std::str::from_utf8(&line) else { continue };
            if let Some(path) = line.find('/').and_then(|start| line.get(start..)) {
                show(Path::new(path.strip_suffix(" (deleted)").unwrap_or(path)));
            }
        }
        Ok(())
    }
}

/// Whether anybody may run it.
#[cfg(unix)]
fn is_executable(file: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests;
