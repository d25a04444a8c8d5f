//! The work of a handler for one process: its facts, and its core dump from the kernel's pipe.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use linux_proc_stat::{Container, Status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::staged::StagedFile;

/// The bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// A process that has crashed, and whose core dump the kernel writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CrashedProcess {
    /// The process, in the first namespace of pids.
    pub pid: u32,
    /// The thread that crashed.
    pub tid: u32,
    /// The number of the signal that ended it.
    pub signal: i32,
    /// The time of the crash, in seconds since 1970.
    pub time: u64,
    /// The name of the process.
    pub name: String,
    /// The file of its program, as the process sees its files.
    pub executable: Option<String>,
    /// Its user.
    pub uid: Option<u32>,
    /// The id of its container.
    pub container: Option<String>,
    /// The uid of its Kubernetes pod.
    pub pod: Option<String>,
    /// True if it has a runtime of .NET.
    pub is_dotnet: bool,
}

impl CrashedProcess {
    /// Reads the facts of a process from `/proc`, where the kernel keeps it while it waits for its handler.
    /// What is not there is unknown. The caller knows whether it has a runtime of .NET.
    pub fn read(pid: u32, tid: u32, signal: i32, time: u64, is_dotnet: bool) -> Self {
        let folder = linux_proc_stat::process_folder(pid);
        let status = linux_proc_stat::read(&folder.join("status")).unwrap_or_default();
        let status = Status::new(&status);
        let container = Container::of_process(pid).unwrap_or_default();
        Self {
            pid,
            tid,
            signal,
            time,
            name: status
                .name()
                .map_or_else(|| "unknown".to_owned(), |it| String::from_utf8_lossy(it).into_owned()),
            executable: fs::read_link(folder.join("exe"))
                .ok()
                .map(|path| path.to_string_lossy().into_owned()),
            uid: status.effective_user(),
            container: container.id,
            pod: container.pod_uid,
            is_dotnet,
        }
    }
}

/// The reason for which a core dump ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CutReason {
    /// The file has as many bytes as it may have.
    Size,
    /// The process has waited as long as it may.
    Time,
    /// The file system has no more room.
    NoSpace,
}

/// A core dump that was taken from the kernel, and has no name yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct TakenCore {
    /// The file.
    pub file: File,
    /// The way to its name.
    pub staged: StagedFile,
    /// The bytes of the core dump.
    pub core_bytes: u64,
    /// The reason for which it ends early.
    pub cut: Option<CutReason>,
}

/// The destination of a core dump, which counts its bytes.
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Copies a core dump from `input` into a file in `folder`, with gzip if it `compresses`, until the end, the
/// limit of bytes of the file, or the end of the time. What was copied by then stays.
///
/// # Errors
/// If the file cannot be created or the input not be read; a file system without room ends the core dump.
pub fn take(
    mut input: impl Read + AsFd,
    folder: &Path,
    compresses: bool,
    max_bytes: u64,
    max_wait: Duration,
) -> io::Result<TakenCore> {
    let end = Instant::now() + max_wait;
    let (file, staged) = StagedFile::create(folder)?;
    let permissions: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    file.set_permissions(permissions)?;
    let plain = Counted { file, bytes: 0 };
    let mut sink = if compresses {
        Sink::Compressed(Box::new(GzEncoder::new(plain, Compression::fast())))
    } else {
        Sink::Plain(plain)
    };
    let mut chunk = vec![0; CHUNK];
    let mut core_bytes = 0_u64;
    let cut = loop {
        if sink.bytes() >= max_bytes {
            break Some(CutReason::Size);
        }
        if !is_readable(input.as_fd(), end)? {
            break Some(CutReason::Time);
        }
        let count = match input.read(&mut chunk) {
            Ok(0) => break None,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let room = usize::try_from(max_bytes.saturating_sub(sink.bytes())).unwrap_or(usize::MAX);
        // Uncompressed, the limit is exact.
        let count = if compresses { count } else { count.min(room) };
        match sink.write(chunk.get(..count).unwrap_or_default()) {
            Ok(()) => core_bytes = core_bytes.saturating_add(count as u64),
            Err(error) if is_full(&error) => break Some(CutReason::NoSpace),
            Err(error) => return Err(error),
        }
    };
    let (file, is_complete) = sink.finish()?;
    let cut = cut.or((!is_complete).then_some(CutReason::NoSpace));
    Ok(TakenCore { file, staged, core_bytes, cut })
}

enum Sink {
    Plain(Counted),
    Compressed(Box<GzEncoder<Counted>>),
}

impl Sink {
    fn bytes(&self) -> u64 {
        match self {
            Self::Plain(sink) => sink.bytes,
            Self::Compressed(sink) => sink.get_ref().bytes,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.write_all(bytes),
            Self::Compressed(sink) => sink.write_all(bytes),
        }
    }

    /// Writes the end. Returns the file, and false if the end did not fit into the file system.
    fn finish(self) -> io::Result<(File, bool)> {
        let (file, result) = match self {
            Self::Plain(sink) => (sink.file, Ok(())),
            Self::Compressed(mut sink) => {
                let file = sink.get_ref().file.try_clone()?;
                (file, sink.try_finish())
            }
        };
        match result.and_then(|()| file.sync_all()) {
            Ok(()) => Ok((file, true)),
            Err(error) if is_full(&error) => Ok((file, false)),
            Err(error) => Err(error),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Waits until there is something to read, or the input has ended. Returns false at the end of the time.
fn is_readable(input: impl AsFd, end: Instant) -> io::Result<bool> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let mut wanted = [PollFd::new(&input, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut wanted, Some(&limit)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
