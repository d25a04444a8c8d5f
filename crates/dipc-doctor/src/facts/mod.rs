//! What can be found out about a process without changing it. Nothing is judged here.

mod environment;
mod image;
mod mounts;
mod status;
mod unix_sockets;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dipc_transport::{Endpoint, ProcessState};

use self::status::with_inner_pid;
use dipc_client::ProcessView;
use dipc_client::{Danger, Error, ProcessInfo, Startup, Target, Timeouts};

pub(super) use environment::Environment;
pub(super) use image::{Image, ImageKind, is_dotnet};
pub(super) use status::{Status, pids};
pub(super) use unix_sockets::UnixSocket;

/// All that is known of a pid.
pub(super) struct Facts {
    pub(super) pid: u32,
    /// Our own user.
    pub(super) our_uid: Option<u32>,
    /// Where we would look for sockets, were there only our own environment to go by.
    pub(super) our_tmpdir: PathBuf,
    pub(super) presence: Presence,
}

pub(super) enum Presence {
    Here(Box<Process>),
    /// It is a thread of another process.
    Thread {
        of: u32,
    },
    /// A thread of the kernel, or a process that has ended and was not waited for.
    NoMemory {
        name: String,
        zombie: bool,
    },
    /// No such process; these have that pid in their container.
    Absent {
        inside: Vec<u32>,
    },
    /// It cannot be said.
    Hidden(String),
}

/// A process that is there.
pub(super) struct Process {
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) start_key: Option<u64>,
    pub(super) state: Option<ProcessState>,
    /// Or why it cannot be read.
    pub(super) environment: Result<Environment, String>,
    /// The runtime in it, if there is one; or why that cannot be seen.
    pub(super) image: Result<Option<Image>, String>,
    /// Whether its paths mean other files than ours; unknown without the right to look.
    pub(super) has_own_files: Option<bool>,
    /// Whether the folder of its socket exists; unknown without the right to look.
    pub(super) tmpdir_exists: Option<bool>,
    /// The read-only file system that this folder is in.
    pub(super) read_only: Option<String>,
    /// The sockets of its network namespace that are bound to a path.
    pub(super) sockets: Vec<UnixSocket>,
    /// Diagnostic sockets of its pid in the same folder whose start time is another one.
    pub(super) leftovers: usize,
    pub(super) startup: Startup,
    pub(super) createdump: Option<Danger>,
    pub(super) endpoint: Result<Endpoint, dipc_transport::Error>,
    pub(super) answer: Answer,
}

/// What came of asking it.
pub(super) enum Answer {
    NotAsked,
    Answered { info: Option<ProcessInfo>, after: Duration },
    Failed(Error),
}

impl Facts {
    pub(super) fn gather(pid: u32, our_tmpdir: &Path, timeouts: Timeouts) -> Self {
        Self {
            pid,
            our_uid: Status::read_own().and_then(|status| status.uid),
            our_tmpdir: our_tmpdir.to_path_buf(),
            presence: Presence::of(pid, timeouts),
        }
    }
}

impl Presence {
    fn of(pid: u32, timeouts: Timeouts) -> Self {
        let status = match Status::read(pid) {
            Ok(status) => status,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let without_proc = Status::read_own().is_none().then(|| Status::without_proc(pid)).flatten();
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
    fn gather(pid: u32, status: Status, timeouts: Timeouts) -> Self {
        let view = ProcessView::of(pid);
        let environment = Environment::of(pid);
        let tmpdir = environment.as_ref().map_or_else(|_| "/tmp".into(), Environment::tmpdir);
        let endpoint = dipc_transport::find(pid);
        // Before we ask: afterwards our own connection would be among them.
        let sockets = unix_sockets::of(pid);
        let state = dipc_transport::process_state(pid).ok();
        let answer = endpoint.as_ref().map_or(Answer::NotAsked, |endpoint| Answer::of(endpoint, timeouts));
        Self {
            name: dipc_transport::process_name(pid).unwrap_or_else(|_| status.name.clone()),
            start_key: dipc_transport::start_key(pid).ok(),
            state,
            image: Image::of(pid),
            has_own_files: has_own_files(pid),
            tmpdir_exists: match view.metadata(&tmpdir) {
                Ok(metadata) => Some(metadata.is_dir()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Some(false),
                Err(_) => None,
            },
            read_only: mounts::read_only_above(pid, &tmpdir),
            leftovers: leftovers(&view, &tmpdir, &status, endpoint.as_ref().ok()),
            startup: view.startup(),
            createdump: view.createdump_hazard(),
            status,
            environment,
            sockets,
            endpoint,
            answer,
        }
    }

    /// Where its runtime puts its socket, as the process sees its files.
    pub(super) fn tmpdir(&self) -> PathBuf {
        self.environment.as_ref().map_or_else(|_| "/tmp".into(), Environment::tmpdir)
    }

    /// The socket that it should have, as the process sees its files.
    pub(super) fn expected_socket(&self) -> Option<PathBuf> {
        let name = dipc_transport::SocketName { pid: self.status.inner_pid, key: self.start_key? };
        Some(self.tmpdir().join(name.to_string()))
    }

    pub(super) fn has_answered(&self) -> bool {
        matches!(self.answer, Answer::Answered { .. })
    }

    /// What it says about itself.
    pub(super) fn info(&self) -> Option<&ProcessInfo> {
        match &self.answer {
            Answer::Answered { info, .. } => info.as_ref(),
            Answer::NotAsked | Answer::Failed(_) => None,
        }
    }

    /// The runtime in it, where that can be seen.
    pub(super) fn image(&self) -> Option<&Image> {
        self.image.as_ref().ok()?.as_ref()
    }

    /// The version of its runtime: as it says itself, else as its files do.
    pub(super) fn version(&self) -> Option<String> {
        let said =
            self.info().and_then(|info| info.clr_version.clone()).filter(|version| !version.is_empty());
        said.or_else(|| self.image()?.version.clone())
    }
}

impl Answer {
    fn of(endpoint: &Endpoint, timeouts: Timeouts) -> Self {
        let start = Instant::now();
        match Target::from_endpoint(endpoint).with_timeouts(timeouts).info() {
            Ok(info) => Self::Answered { info: Some(info), after: start.elapsed() },
            Err(Error::Unknown { .. } | Error::Refused { .. }) => {
                Self::Answered { info: None, after: start.elapsed() }
            }
            Err(error) => Self::Failed(error),
        }
    }
}

/// The mount namespace or the root differ.
fn has_own_files(pid: u32) -> Option<bool> {
    let of = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/{name}")).ok();
    let pid = pid.to_string();
    let namespaces = (of(&pid, "ns/mnt")?, of("self", "ns/mnt")?);
    let roots = (of(&pid, "root")?, of("self", "root")?);
    Some(namespaces.0 != namespaces.1 || roots.0 != roots.1)
}

fn leftovers(view: &ProcessView, tmpdir: &Path, status: &Status, endpoint: Option<&Endpoint>) -> usize {
    let Some(entries) = view.locate(tmpdir).ok().and_then(|path| fs::read_dir(path).ok()) else { return 0 };
    let names = entries.flatten().filter_map(|entry| dipc_transport::SocketName::parse(&entry.file_name()));
    let of_pid = names.filter(|name| name.pid == status.inner_pid).count();
    of_pid.saturating_sub(usize::from(endpoint.is_some()))
}
