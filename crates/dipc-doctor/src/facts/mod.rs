//! The facts about a process, gathered without changing it. Judging them is left to the checks.

mod environment;
mod image;
mod mounts;
mod program;
mod runtime_search;
#[cfg(test)]
mod sample_program;
mod sampling;
mod status;
mod unix_sockets;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dipc_client::{Error, Hazard, ProcessInfo, ProcessView, Startup, Target, Timeouts};
use dipc_transport::{Endpoint, ProcessState, open_regular};

use self::status::with_inner_pid;
use crate::{TracingAccess, TracingObstacle};

pub(crate) use environment::Environment;
pub(crate) use image::RuntimeImage;
pub(crate) use runtime_search::RuntimeSearch;
pub(crate) use sampling::Sampling;
pub(crate) use status::{ProcStatus, pids};
pub(crate) use unix_sockets::UnixSocket;

/// The facts about a pid.
pub(crate) struct Facts {
    pub(crate) pid: u32,
    /// The effective user of this process.
    pub(crate) own_uid: Option<u32>,
    /// The folder for temporary files of this process.
    pub(crate) own_tmpdir: PathBuf,
    pub(crate) presence: Presence,
}

pub(crate) enum Presence {
    Here(Box<Process>),
    /// A thread of another process.
    Thread {
        of: u32,
    },
    /// A kernel thread, or a process that has ended and was not waited for: neither has memory.
    NoMemory {
        name: String,
        zombie: bool,
    },
    /// No such process. Processes in `inside` have that pid in their namespace.
    Absent {
        inside: Vec<u32>,
    },
    /// A process that the system does not show, with the file and the reason.
    Hidden(String),
}

/// The facts about a process that exists.
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) status: ProcStatus,
    pub(crate) start_key: Option<u64>,
    pub(crate) state: Option<ProcessState>,
    /// The environment at the start, or the reason why it cannot be read.
    pub(crate) environment: Result<Environment, String>,
    /// The loaded runtime, if any, or the reason why it cannot be read.
    pub(crate) image: Result<Option<RuntimeImage>, String>,
    /// True if its paths refer to other files than the paths of this process; `None` without permission.
    pub(crate) has_own_files: Option<bool>,
    /// True if the path of its socket's folder refers to another folder here, or to a missing one.
    pub(crate) has_own_tmpdir: bool,
    /// True if the folder of its socket exists; `None` without permission.
    pub(crate) tmpdir_exists: Option<bool>,
    /// The mount point of the read-only file system that contains this folder.
    pub(crate) read_only: Option<String>,
    /// The sockets of its network namespace that are bound to a path.
    pub(crate) sockets: Vec<UnixSocket>,
    /// Diagnostic sockets with its pid in the same folder and another start time.
    pub(crate) stale_sockets: usize,
    pub(crate) startup: Startup,
    pub(crate) createdump: Option<Hazard>,
    pub(crate) endpoint: Result<Endpoint, Arc<dipc_transport::Error>>,
    pub(crate) answer: Answer,
    /// Trials of the kernel's samples; `None` on systems without them.
    pub(crate) sampling: Option<Sampling>,
    /// The reason why its environment cannot be read; `None` if it can.
    pub(crate) tracing_obstacle: Option<TracingObstacle>,
    /// The architecture of its program (`e_machine`); `None` if it is not known.
    pub(crate) machine: Option<u16>,
}

/// The outcome of a ProcessInfo request.
pub(crate) enum Answer {
    NotAsked,
    Answered {
        info: Option<ProcessInfo>,
        after: Duration,
    },
    /// The runtime answered with an error.
    Refused {
        error: Arc<Error>,
        after: Duration,
    },
    Failed(Arc<Error>),
}

impl Facts {
    pub(crate) fn gather(pid: u32, own_tmpdir: &Path, timeouts: Timeouts) -> Self {
        Self {
            pid,
            own_uid: ProcStatus::read_own().and_then(|status| status.uid),
            own_tmpdir: own_tmpdir.to_path_buf(),
            presence: Presence::of(pid, timeouts),
        }
    }
}

impl Presence {
    fn of(pid: u32, timeouts: Timeouts) -> Self {
        let status = match ProcStatus::read(pid) {
            Ok(status) => status,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let without_proc =
                    ProcStatus::read_own().is_none().then(|| ProcStatus::without_proc(pid)).flatten();
                match without_proc {
                    Some(status) => status,
                    None => return Self::Absent { inside: with_inner_pid(pid) },
                }
            }
            Err(error) => return Self::Hidden(format!("/proc/{pid}/status: {error}")),
        };
        if status.process != pid {
            return Self::Thread { of: status.process };
        }
        if !status.has_memory {
            return Self::NoMemory { zombie: status.is_zombie, name: status.name };
        }
        Self::Here(Box::new(Process::gather(pid, status, timeouts)))
    }
}

impl Process {
    fn gather(pid: u32, status: ProcStatus, timeouts: Timeouts) -> Self {
        let view = ProcessView::of(pid);
        let environment = Environment::read(pid);
        let tmpdir = environment.as_ref().map_or_else(|_| "/tmp".into(), Environment::tmpdir);
        let endpoint = dipc_transport::find(pid).map_err(Arc::new);
        // Read before the request, to exclude the request's own connection.
        let sockets = unix_sockets::read(pid);
        let before = dipc_transport::process_state(pid).ok();
        let answer = endpoint.as_ref().map_or(Answer::NotAsked, |endpoint| Answer::of(endpoint, timeouts));
        let state = match answer {
            // The process may have been stopped meanwhile; a signal also takes a moment until all threads
            // have stopped.
            Answer::Failed(_) if !before.as_ref().is_some_and(ProcessState::is_unresponsive) => {
                dipc_transport::process_state(pid).ok()
            }
            _ => before,
        };
        let start_key = dipc_transport::start_key(pid).ok();
        let has_own_files = has_own_files(pid);
        let metadata = view.metadata(&tmpdir);
        Self {
            name: dipc_transport::process_name(pid).unwrap_or_else(|_| status.name.clone()),
            start_key,
            state,
            image: RuntimeImage::read(pid),
            has_own_files,
            has_own_tmpdir: has_own_files == Some(true)
                && !metadata.as_ref().is_ok_and(|metadata| is_file_here(metadata, &tmpdir)),
            tmpdir_exists: match metadata {
                Ok(metadata) => Some(metadata.is_dir()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Some(false),
                Err(_) => None,
            },
            read_only: mounts::read_only_above(pid, &tmpdir),
            stale_sockets: stale_sockets(&view, &tmpdir, &status, start_key),
            startup: view.startup(),
            createdump: view.createdump_hazard(),
            sampling: Sampling::try_on(pid),
            tracing_obstacle: environment
                .as_ref()
                .err()
                .map(|_| TracingObstacle::of(pid, TracingAccess::Read)),
            machine: open_regular(Path::new(&format!("/proc/{pid}/exe"))).ok().and_then(program::machine),
            status,
            environment,
            sockets,
            endpoint,
            answer,
        }
    }

    /// Returns the folder in which its runtime creates its socket, as the process sees its files.
    pub(crate) fn tmpdir(&self) -> PathBuf {
        self.environment.as_ref().map_or_else(|_| "/tmp".into(), Environment::tmpdir)
    }

    /// Returns the path of the socket that it should have, as the process sees its files.
    pub(crate) fn expected_socket(&self) -> Option<PathBuf> {
        let name = dipc_transport::SocketName::new(self.status.inner_pid, self.start_key?);
        Some(self.tmpdir().join(name.to_string()))
    }

    pub(crate) fn has_answered(&self) -> bool {
        matches!(self.answer, Answer::Answered { .. } | Answer::Refused { .. })
    }

    /// Returns its answer to ProcessInfo.
    pub(crate) fn info(&self) -> Option<&ProcessInfo> {
        match &self.answer {
            Answer::Answered { info, .. } => info.as_ref(),
            Answer::NotAsked | Answer::Refused { .. } | Answer::Failed(_) => None,
        }
    }

    /// Returns the loaded runtime, if it can be read.
    pub(crate) fn image(&self) -> Option<&RuntimeImage> {
        self.image.as_ref().ok()?.as_ref()
    }

    /// Returns the version of its runtime: the reported one, otherwise the one in its files.
    pub(crate) fn version(&self) -> Option<String> {
        let reported =
            self.info().and_then(|info| info.clr_version.clone()).filter(|version| !version.is_empty());
        reported.or_else(|| self.image()?.version.clone())
    }

    /// Returns the first number of that version.
    pub(crate) fn major_version(&self) -> Option<u32> {
        self.version()?.split(['.', '-', '+']).next()?.parse().ok()
    }
}

impl Answer {
    fn of(endpoint: &Endpoint, timeouts: Timeouts) -> Self {
        let start = Instant::now();
        match Target::from_endpoint(endpoint).with_timeouts(timeouts).info() {
            Ok(info) => Self::Answered { info: Some(info), after: start.elapsed() },
            Err(Error::UnknownCommand { .. }) => Self::Answered { info: None, after: start.elapsed() },
            Err(error) if error.is_answer() => {
                Self::Refused { error: Arc::new(error), after: start.elapsed() }
            }
            Err(error) => Self::Failed(Arc::new(error)),
        }
    }
}

/// Returns true if a process differs from this process in its mount namespace or root.
fn has_own_files(pid: u32) -> Option<bool> {
    let of = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/{name}")).ok();
    let pid = pid.to_string();
    let namespaces = (of(&pid, "ns/mnt")?, of("self", "ns/mnt")?);
    let roots = (of(&pid, "root")?, of("self", "root")?);
    Some(namespaces.0 != namespaces.1 || roots.0 != roots.1)
}

/// Returns true if a path refers to this file or folder here.
fn is_file_here(metadata: &fs::Metadata, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(path).is_ok_and(|here| (here.dev(), here.ino()) == (metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = (metadata, path);
        false
    }
}

/// Counts the sockets with its pid in its folder and another start time; none if its own start time is not
/// known.
fn stale_sockets(view: &ProcessView, tmpdir: &Path, status: &ProcStatus, start_key: Option<u64>) -> usize {
    let Some(start_key) = start_key else { return 0 };
    let Some(entries) = view.locate(tmpdir).ok().and_then(|path| fs::read_dir(path).ok()) else { return 0 };
    let names = entries.flatten().filter_map(|entry| dipc_transport::SocketName::parse(&entry.file_name()));
    names.filter(|name| name.pid == status.inner_pid && name.key != start_key).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `find` may report that the socket itself was made by another process, or is not a socket: that does
    /// not make it stale.
    #[test]
    fn sockets_of_another_start_time_are_stale() {
        let pid = std::process::id();
        let folder = std::env::temp_dir().join(format!("dipc-doctor-stale-{pid}"));
        fs::create_dir_all(&folder).unwrap();
        for (of, key) in [(pid, 7), (pid, 8), (pid + 1, 9)] {
            fs::write(folder.join(dipc_transport::SocketName::new(of, key).to_string()), "").unwrap();
        }
        let status = ProcStatus {
            name: "app".into(),
            process: pid,
            uid: None,
            inner_pid: pid,
            has_memory: true,
            is_zombie: false,
        };
        let view = ProcessView::of(pid);
        let counts = [Some(7), Some(1), None].map(|key| stale_sockets(&view, &folder, &status, key));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(counts, [1, 2, 0]);
    }
}
