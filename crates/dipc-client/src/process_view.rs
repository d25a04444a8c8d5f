//! A process as seen by the kernel: threads, mapped files, paths as the process resolves them.

mod resolve;
mod thread_times;

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use linux_proc_stat::Status;

use crate::Hazard;
pub use thread_times::{ThreadTime, ThreadTimes, ThreadTimesReader};

/// Maximum number of bytes to read of a list of mapped files.
const MAPS_LIMIT: u64 = 64 << 20;

/// Maximum number of bytes to read of an environment.
const MAX_ENVIRONMENT_BYTES: u64 = 1 << 20;

/// The state of a runtime at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "it waits, runs, or is not known")]
pub enum Startup {
    /// Waits, or has only just begun to start.
    Suspended,
    /// Was resumed, or did not wait.
    Running,
    /// Not visible to this process: a system other than Linux, no permission, a NativeAOT program, .NET 7 or
    /// older.
    Unknown,
}

/// A thread as seen by the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelThread {
    /// The thread id as the process itself sees it: in the innermost pid namespace.
    pub id: u64,
    /// The name of the thread, at most 15 bytes. .NET passes on the names that programs give to threads, and
    /// names its own threads.
    pub name: String,
    /// The kernel's letter for its state: `R` for running or runnable, `S` for sleeping, `D` for waiting in
    /// the kernel without reacting to signals, `T` and `t` for stopped.
    pub state: char,
}

/// A process as seen by the kernel, without a connection to its runtime. Only Linux shows threads, mapped
/// files and roots; elsewhere, and without permission, the answers are errors, [`Startup::Unknown`] or
/// `None`.
///
/// ```
/// use dipc_client::ProcessView;
///
/// let view = ProcessView::of(std::process::id());
/// # #[cfg(target_os = "linux")]
/// for thread in view.threads()? {
///     println!("{thread:?}");
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ProcessView {
    /// The process's folder in `/proc`.
    folder: PathBuf,
}

impl ProcessView {
    /// Returns the view of a process. Nothing is read yet.
    pub fn of(pid: u32) -> Self {
        Self { folder: linux_proc_stat::process_folder(pid) }
    }

    /// Returns whether the runtime waits to be resumed, by the names of its threads.
    ///
    /// The thread of the diagnostic server exists while the runtime waits, the finalizer's only after it was
    /// resumed: seen on .NET 9 and 10. NativeAOT has neither name, and ProcessInfo shows no difference.
    pub fn startup(&self) -> Startup {
        let Ok(threads) = fs::read_dir(self.folder.join("task")) else { return Startup::Unknown };
        let mut startup = Startup::Unknown;
        for thread in threads.flatten() {
            match fs::read(thread.path().join("comm")) {
                Ok(name) if name.starts_with(b".NET Finalizer") => return Startup::Running,
                Ok(name) if name.starts_with(b".NET EventPipe") => startup = Startup::Suspended,
                _ => {}
            }
        }
        startup
    }

    /// Returns the threads of the process, in no particular order. Threads that end meanwhile are left out.
    ///
    /// # Errors
    /// If the system does not show them: not Linux, or no such process.
    pub fn threads(&self) -> io::Result<Vec<KernelThread>> {
        let tasks = fs::read_dir(self.folder.join("task"))?;
        let thread = |folder: PathBuf| {
            let status = linux_proc_stat::read(&folder.join("status")).ok()?;
            let status = Status::new(&status);
            Some(KernelThread {
                id: status.innermost_id()?.into(),
                name: String::from_utf8_lossy(status.name()?).into_owned(),
                state: status.state()?,
            })
        };
        Ok(tasks.flatten().filter_map(|task| thread(task.path())).collect())
    }

    /// Returns a reader of the threads' processor time. Nothing is read yet.
    ///
    /// ```
    /// use dipc_client::ProcessView;
    ///
    /// let mut reader = ProcessView::of(std::process::id()).thread_times();
    /// # #[cfg(target_os = "linux")]
    /// # {
    /// let first = reader.read()?;
    /// assert!(first.count > 0 && first.changed.len() == first.count);
    /// // Later rounds have the threads that ran meanwhile.
    /// for thread in reader.read()?.changed {
    ///     println!("{} {}: {} ns", thread.id, thread.name, thread.ran);
    /// }
    /// # }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread_times(&self) -> ThreadTimesReader {
        ThreadTimesReader::new(self.folder.clone())
    }

    /// Returns the process's number in its own view: in the innermost pid namespace.
    pub fn own_id(&self) -> Option<u64> {
        Status::new(&linux_proc_stat::read(&self.folder.join("status")).ok()?).innermost_id().map(u64::from)
    }

    /// Returns whether a signal (SIGSTOP, Ctrl-Z) keeps the process stopped, so that it answers no command.
    ///
    /// A stopped process is checked twice, with the interval `apart`: tools that limit processor time stop
    /// and continue a process many times a second, which shows in the number of switches of its first thread.
    pub(crate) fn stays_stopped(&self, apart: Duration) -> bool {
        let Some(first) = self.stopped_after_switches() else { return false };
        thread::sleep(apart);
        self.stopped_after_switches() == Some(first)
    }

    /// The context switches of the first thread, if the process is stopped.
    fn stopped_after_switches(&self) -> Option<Vec<u64>> {
        let status = linux_proc_stat::read(&self.folder.join("status")).ok()?;
        let status = Status::new(&status);
        if status.state()? != 'T' {
            return None;
        }
        let switches = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
        Some(switches.into_iter().filter_map(|name| status.field(name)?.parse().ok()).collect())
    }

    /// Returns the path of the program that the process runs, as reported by the kernel.
    pub fn executable(&self) -> io::Result<PathBuf> {
        fs::read_link(self.folder.join("exe"))
    }

    /// Returns the environment that the process was started with, as `NAME=value`: its first mebibyte.
    ///
    /// # Errors
    /// If the process does not exist, or is another user's.
    pub fn environment(&self) -> io::Result<Vec<String>> {
        let mut bytes = Vec::new();
        File::open(self.folder.join("environ"))?.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut bytes)?;
        let variables = bytes.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
        Ok(variables.map(|variable| String::from_utf8_lossy(variable).into_owned()).collect())
    }

    /// Returns true if the process shows signs of CoreCLR: its library, or the names of its threads, which
    /// single-file programs have, too. NativeAOT has neither.
    pub(crate) fn runs_coreclr(&self) -> bool {
        self.mapped("libcoreclr.so").is_some() || self.has_coreclr_threads()
    }

    /// Returns whether the program contains CoreCLR, as a single file does. False if the list of mapped files
    /// cannot be read.
    pub fn contains_coreclr(&self) -> bool {
        let mut has_library = false;
        let read = self.for_each_mapped_file(|path| {
            has_library |= path.file_name().is_some_and(|name| name == "libcoreclr.so");
        });
        read.is_ok() && !has_library && self.has_coreclr_threads()
    }

    fn has_coreclr_threads(&self) -> bool {
        let Ok(threads) = fs::read_dir(self.folder.join("task")) else { return false };
        let mut names = threads.flatten().filter_map(|thread| fs::read(thread.path().join("comm")).ok());
        names.any(|name| name.starts_with(b".NET EventPipe") || name.starts_with(b".NET Finalizer"))
    }

    /// Returns the path by which this process reaches the file at `path` in the viewed process.
    pub fn locate(&self, path: &Path) -> io::Result<PathBuf> {
        resolve::resolve(&self.folder.join("root"), &self.folder.join("cwd"), path)
    }

    /// Returns the metadata of the file at `path` in the viewed process.
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs::metadata(self.locate(path)?)
    }

    /// Returns the reason why the runtime could not start its `createdump`; `None` if none is found.
    /// Single-file programs do not have the library `libcoreclr.so` and start `createdump` in another way.
    pub fn createdump_hazard(&self) -> Option<Hazard> {
        let path = self.mapped("libcoreclr.so")?.with_file_name("createdump");
        let problem = match self.metadata(&path) {
            Ok(metadata) if !metadata.is_file() => "it is not a file",
            Ok(metadata) if !is_executable(&metadata) => "it is not executable",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "it does not exist",
            Ok(_) | Err(_) => return None,
        };
        Some(Hazard::NoCreateDump { path, problem })
    }

    /// Returns the path of a mapped file with that name, as the process sees it.
    fn mapped(&self, name: &str) -> Option<PathBuf> {
        let mut found = None;
        self.for_each_mapped_file(|path| {
            if found.is_none() && path.file_name().is_some_and(|it| it == name) {
                found = Some(path.to_path_buf());
            }
        })
        .ok()?;
        found
    }

    /// Calls `visit` with the path of every mapped file, as the process sees it; a file may be passed several
    /// times.
    pub fn for_each_mapped_file(&self, mut visit: impl FnMut(&Path)) -> io::Result<()> {
        let maps = BufReader::new(File::open(self.folder.join("maps"))?.take(MAPS_LIMIT));
        for line in maps.split(b'\n') {
            let line = line?;
            // Names that are not UTF-8 are skipped: the files of a runtime have UTF-8 names.
            let Ok(line) = std::str::from_utf8(&line) else { continue };
            if let Some(path) = line.find('/').and_then(|start| line.get(start..)) {
                visit(Path::new(path.strip_suffix(" (deleted)").unwrap_or(path)));
            }
        }
        Ok(())
    }
}

/// Returns true if every user may run it.
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
