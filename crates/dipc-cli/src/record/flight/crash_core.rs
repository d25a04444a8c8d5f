//! The core dump of a crash: written by the runtime of a program that dipc starts, or by dipc, which traces a
//! running process.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use dipc_client::ProcessView;
use dipc_collect::staged::{folder_of, publish_first, publish_new};

use crate::exit::{Exit, Failure};
use crate::record::own_program;
use crate::render::output_file::{OutputFile, unused_names};
use crate::render::{messages, shell, units};

/// Maximum number of bytes of an overview to inspect.
const MAX_TEXT_SIZE: u64 = 1 << 20;
/// Maximum time for the overview of a core dump.
const OVERVIEW: Duration = Duration::from_secs(120);

/// The prefixes of the runtime's variables.
const PREFIXES: [&str; 2] = ["DOTNET_", "COMPlus_"];

/// The core dump that was asked for.
pub(super) enum CrashCore {
    /// The runtime writes it, as its environment says.
    Runtime {
        /// True if the variables were set by [`dump_variables`]: the files then get the names of the bundle.
        has_our_names: bool,
    },
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    Watch(watch::CoreWatch),
}

/// A core dump of a crash, as asked for.
#[derive(Debug)]
pub(crate) struct CrashDump {
    /// True if the program was started with the variables of [`dump_variables`].
    pub(crate) has_our_names: bool,
    /// The folder of the output.
    pub(crate) folder: PathBuf,
}

/// Returns variables that make a runtime write a core dump with heaps and a crash report when it crashes,
/// into the folder of an output; none if its environment already asks for one.
pub(crate) fn dump_variables(output: &Path) -> Result<Vec<(String, OsString)>, Failure> {
    let has_own = PREFIXES.iter().any(|prefix| {
        std::env::var_os(format!("{prefix}DbgEnableMiniDump")).is_some_and(|value| value == "1")
    });
    if has_own {
        return Ok(Vec::new());
    }
    let folder = std::path::absolute(folder_of(output)).map_err(|error| {
        Failure::new(Exit::Failed, format_args!("--dump-on: {}: {error}", output.display()))
    })?;
    // The runtime replaces what follows a '%'.
    let mut name = folder.to_string_lossy().replace('%', "%%");
    name.push_str("/crashed.%p.core");
    let variables = [
        ("DbgEnableMiniDump", "1"),
        ("DbgMiniDumpType", "2"),
        ("DbgMiniDumpName", &name),
        ("EnableCrashReport", "1"),
    ];
    Ok(variables.map(|(variable, value)| (format!("DOTNET_{variable}"), value.into())).to_vec())
}

impl CrashCore {
    /// Prepares the core dump of a process. A process that can be neither told nor traced gets no core dump,
    /// which a warning says. `is_told` if its environment asks for a core dump.
    pub(super) fn prepare(pid: Option<u32>, is_told: bool, dump: &CrashDump) -> Option<Self> {
        let Some(pid) = pid else {
            messages::warning("--dump-on: the process at this address has no process id here: no core dump");
            return None;
        };
        let view = ProcessView::of(pid);
        // A single file writes full dumps only, and the variables ask for one with heaps.
        let cannot = view.createdump_hazard().is_some() || dump.has_our_names && view.contains_coreclr();
        if is_told && !cannot {
            return Some(Self::Runtime { has_our_names: dump.has_our_names });
        }
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        match watch::CoreWatch::start(pid, &dump.folder) {
            Ok(watch) => {
                messages::note(format_args!("Core dump      : by dipc, which traces process {pid}"));
                return Some(Self::Watch(watch));
            }
            Err(failure) => messages::warning(failure),
        }
        messages::help(
            "start the program with dipc trace --dump-on crash -- COMMAND, or with DOTNET_DbgEnableMiniDump=1 in its environment",
        );
        None
    }
}

/// Gives a file that the runtime wrote the name of a bundle. Returns the name that it has then.
pub(super) fn adopt(file: PathBuf, name: &Path) -> PathBuf {
    publish_first(unused_names(name), |name| publish_new(&file, name)).unwrap_or(file)
}

/// Writes the overview of a core dump next to it. It runs as a separate program: analyzing a core dump of a
/// crash may fail in any way. Returns its path and its beginning.
pub(super) fn write_overview(core: &Path, path: &Path) -> Result<(PathBuf, String), Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Failed, format_args!("overview of {}: {why}", core.display()))
            .with_help(format_args!("dipc dump analyze {}", shell::path(core)))
    };
    let mut file = OutputFile::create_new(path)?;
    let output = file.file().ok_or_else(|| failed(&"the file is closed"))?;
    let output = output.try_clone().map_err(|error| failed(&error))?;
    let mut command = own_program::command().map_err(|error| failed(&error))?;
    command.args(["dump", "analyze"]).arg(core).stderr(Stdio::null()).stdout(output);
    match own_program::run(&mut command, OVERVIEW).map_err(|error| failed(&error))? {
        Some(status) if status.success() || status.code() == Some(6) => {}
        status => {
            file.discard();
            return Err(status.map_or_else(
                || failed(&format_args!("it took longer than {}", units::time(OVERVIEW))),
                |status| failed(&status),
            ));
        }
    }
    file.store()?;
    let mut text = Vec::new();
    let written =
        std::fs::File::open(file.path()).and_then(|file| file.take(MAX_TEXT_SIZE).read_to_end(&mut text));
    written.map_err(|error| failed(&error))?;
    Ok((file.path().to_owned(), String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) mod watch {
    use std::fs::{File, Permissions};
    use std::io;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::{self, Receiver};
    use std::thread;
    use std::time::{Duration, Instant};

    use clr_dump::TimeLimit;
    use dipc_collect::core::{self, CoreKind, CoreSettings};
    use dipc_collect::staged::{StagedFile, publish_first};
    use linux_sampler::{CrashWatch, WatchEnd};

    use crate::exit::{Exit, Failure};
    use crate::record::process_core::not_copied;
    use crate::render::output_file::unused_names;

    /// Maximum time for the core dump of a process that is about to end.
    const LIMIT: Duration = Duration::from_secs(60);
    /// Maximum wait for the threads of a process that is about to end.
    const STOP: Duration = Duration::from_secs(5);

    /// A thread that traces a process.
    pub(in crate::record::flight) struct CoreWatch {
        end: Receiver<Result<TracedEnd, Failure>>,
        /// The core dump that is not named yet, once the end was waited for.
        core: Result<Option<StagedFile>, Failure>,
    }

    /// The end of a traced process.
    struct TracedEnd {
        signal: Option<i32>,
        core: Option<StagedFile>,
    }

    impl CoreWatch {
        /// Begins to trace a process. Its core dump is written in `folder`, without a name.
        pub(super) fn start(pid: u32, folder: &Path) -> Result<Self, Failure> {
            let (attached, is_attached) = mpsc::channel();
            let (sender, end) = mpsc::channel();
            let folder = folder.to_owned();
            // The trace belongs to one thread, and ends with it.
            thread::spawn(move || match CrashWatch::attach(i32::try_from(pid).unwrap_or(i32::MAX)) {
                Ok(watch) => {
                    let _ = attached.send(Ok(()));
                    let _ = sender.send(dump(watch, pid, &folder));
                }
                Err(error) => {
                    let _ = attached.send(Err(error));
                }
            });
            let failed = |error: &dyn std::fmt::Display| {
                Failure::new(Exit::NotReachable, format_args!("--dump-on: process {pid}: {error}"))
            };
            match is_attached.recv() {
                Ok(Ok(())) => Ok(Self { end, core: Ok(None) }),
                Ok(Err(error)) => Err(failed(&error)),
                Err(error) => Err(failed(&error)),
            }
        }

        /// Waits for the end of the process and its core dump. Returns the signal that ended it, if one did.
        pub(in crate::record::flight) fn await_end(&mut self) -> Option<i32> {
            let end = self.end.recv_timeout(LIMIT + STOP).unwrap_or_else(|_| {
                Err(Failure::new(Exit::TimedOut, "--dump-on: the core dump is not finished"))
            });
            match end {
                Ok(TracedEnd { signal, core }) => {
                    self.core = Ok(core);
                    signal
                }
                Err(failure) => {
                    self.core = Err(failure);
                    None
                }
            }
        }

        /// Names the core dump, if any.
        pub(in crate::record::flight) fn name(&mut self, path: &Path) -> Result<Option<PathBuf>, Failure> {
            let Some(mut core) = std::mem::replace(&mut self.core, Ok(None))? else { return Ok(None) };
            let name = publish_first(unused_names(path), |name| core.name_new(name));
            name.map(Some).map_err(|error| failed(path, &error))
        }
    }

    fn failed(path: &Path, error: &io::Error) -> Failure {
        Failure::new(Exit::Failed, format_args!("--dump-on: {}: {error}", path.display()))
    }

    fn dump(watch: CrashWatch, pid: u32, folder: &Path) -> Result<TracedEnd, Failure> {
        let end = watch
            .wait(STOP)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("--dump-on: process {pid}: {error}")))?;
        let process = match end {
            WatchEnd::Crash(process) => process,
            WatchEnd::Ended { signal } => return Ok(TracedEnd { signal, core: None }),
            _ => return Ok(TracedEnd { signal: None, core: None }),
        };
        let signal = process.threads().iter().map(|thread| thread.signal).find(|signal| *signal != 0);
        let settings = CoreSettings::new(CoreKind::Heap, LIMIT);
        let (file, staged) = create(folder).map_err(|error| failed(folder, &error))?;
        let limit = TimeLimit { end: Instant::now() + LIMIT, duration: LIMIT };
        // Then the signal ends it.
        core::copy(pid, process, &settings, limit, &file).map_err(|error| not_copied(&error, LIMIT))?;
        Ok(TracedEnd { signal, core: Some(staged) })
    }

    /// Creates a file for its owner alone: a core dump has all that the process knows.
    fn create(folder: &Path) -> io::Result<(File, StagedFile)> {
        let (file, staged) = StagedFile::create(folder)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok((file, staged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_the_name_of_the_bundle_or_one_like_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a", "b"] {
            std::fs::write(at(name), name).unwrap();
        }
        assert_eq!(adopt(at("a"), &at("t.core")), at("t.core"));
        assert_eq!(adopt(at("b"), &at("t.core")), at("t_2.core"));
        assert_eq!(std::fs::read_to_string(at("t.core")).unwrap(), "a");
        assert_eq!(adopt(at("gone"), &at("x")), at("gone"));
    }

    #[test]
    fn requests_dumps_in_the_folder_of_the_output() {
        let variables = dump_variables("/a%b/trace.nettrace".as_ref()).unwrap();
        let name = variables.iter().find(|(name, _)| name == "DOTNET_DbgMiniDumpName").unwrap();
        assert_eq!(name.1, "/a%%b/crashed.%p.core");
    }
}
