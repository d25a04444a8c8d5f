//! Core dumps of running processes: the memory of a process, read from outside.
//!
//! The process is stopped, its memory is copied into a core dump that debuggers read, and it runs on, even if
//! this program is killed meanwhile. Linux on x86-64 and aarch64.

use std::collections::BTreeSet;
use std::fs::File;
use std::time::{Duration, Instant};

use clr_dump::{
    CopiedCore, CopyLimits, CopySettings, CoreContent, ProcessMemory, Processor, Registers, ThreadNote,
    TimeLimit, copy_process, thread_pages,
};
use linux_proc_stat::Status;
use linux_sampler::{StoppedProcess, StoppedThread};

/// Maximum wait for the threads of a process to stop.
const STOP: Duration = Duration::from_secs(2);

/// Bytes that are surely copied in a second: a process with more is taken to reach the limit of time.
const BYTES_PER_SECOND: u128 = 50 << 20;

/// The architecture of core dumps of this machine (`e_machine`).
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// The memory in a core dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the runtime's kinds, without triage")]
pub enum CoreKind {
    /// All memory.
    Full,
    /// The memory without the code of files.
    Heap,
    /// The memory that the views of threads, stacks, exceptions and modules need.
    Mini,
}

impl CoreKind {
    /// The name of the runtime's kind with such memory.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "Full",
            Self::Heap => "WithHeap",
            Self::Mini => "Normal",
        }
    }
}

/// The settings of a core dump.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CoreSettings {
    /// The memory to copy.
    pub kind: CoreKind,
    /// Maximum time for which the process is stopped.
    pub pause: Duration,
    /// Maximum number of bytes of memory to copy.
    pub max_bytes: Option<u64>,
}

impl CoreSettings {
    /// Creates the settings of a copy for which the process is stopped for at most `pause`, without a limit
    /// on bytes.
    pub const fn new(kind: CoreKind, pause: Duration) -> Self {
        Self { kind, pause, max_bytes: None }
    }

    /// With at most this many bytes of memory.
    #[must_use]
    pub const fn with_max_bytes(self, max_bytes: Option<u64>) -> Self {
        Self { max_bytes, ..self }
    }
}

/// The copy of a process, which runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessCopy {
    /// The amounts of memory.
    pub copied: CopiedCore,
    /// The number of threads.
    pub threads: usize,
    /// The time for which the process was stopped.
    pub paused: Duration,
}

/// An error of copying a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoreError {
    /// No process has this id.
    #[error("process {pid}: it does not exist")]
    NoProcess {
        /// The id.
        pid: u32,
    },
    /// The threads of the process did not stop within its pause.
    #[error("process {pid}: its threads did not stop in time")]
    NotStopped {
        /// The process.
        pid: u32,
    },
    /// The process cannot be traced.
    #[error("process {pid}: {error}")]
    Trace {
        /// The process.
        pid: u32,
        /// The reason.
        error: linux_sampler::Error,
    },
    /// The memory cannot be read, or the file not be written.
    #[error("process {pid}: {error}")]
    Copy {
        /// The process.
        pid: u32,
        /// The reason.
        error: clr_dump::Error,
    },
}

/// Stops a process, copies its memory into `file`, and lets it run on.
///
/// # Errors
/// [`CoreError`]
pub fn write(pid: u32, settings: &CoreSettings, file: &File) -> Result<ProcessCopy, CoreError> {
    let id = i32::try_from(pid).map_err(|_| CoreError::NoProcess { pid })?;
    let limit = TimeLimit { end: Instant::now() + settings.pause, duration: settings.pause };
    let process = StoppedProcess::stop(id, STOP.min(settings.pause)).map_err(|error| {
        if limit.end <= Instant::now() {
            CoreError::NotStopped { pid }
        } else {
            CoreError::Trace { pid, error }
        }
    })?;
    copy(pid, process, settings, limit, file)
}

/// Copies the memory of a stopped process into `file`, and lets it run on. `limit` is the end of its pause.
///
/// # Errors
/// [`CoreError::Copy`]
pub fn copy(
    pid: u32,
    process: StoppedProcess,
    settings: &CoreSettings,
    limit: TimeLimit,
    file: &File,
) -> Result<ProcessCopy, CoreError> {
    let failed = |error| CoreError::Copy { pid, error };
    let memory = ProcessMemory::open(pid).map_err(failed)?;
    // The thread that received the signal is first: debuggers show it.
    let mut threads: Vec<&StoppedThread> = process.threads().iter().collect();
    threads.sort_by_key(|thread| (thread.signal == 0, thread.tid));
    let registers: Vec<(u64, Option<Registers>)> = threads
        .iter()
        .map(|thread| {
            let registers = Processor::of_this_machine()
                .and_then(|processor| Registers::of_user(processor, &thread.registers));
            (thread.tid.unsigned_abs().into(), registers)
        })
        .collect();
    let stack_pointers: Vec<u64> =
        registers.iter().filter_map(|(_, registers)| Some((*registers)?.sp)).collect();
    let notes: Vec<ThreadNote> = threads.iter().map(|thread| note(thread)).collect();
    let first_pages = if settings.kind == CoreKind::Mini || is_limited(pid, settings) {
        // The rest of the time is for copying.
        let end = limit.end.checked_sub(limit.duration / 4).unwrap_or(limit.end);
        thread_pages(&memory, &memory.files().map_err(failed)?, &registers, end)
    } else {
        BTreeSet::new()
    };
    let content = match settings.kind {
        CoreKind::Full => CoreContent::Full,
        CoreKind::Heap => CoreContent::Heap,
        CoreKind::Mini => CoreContent::Pages(&first_pages),
    };
    let copying = CopySettings {
        machine: MACHINE,
        threads: &notes,
        stack_pointers: &stack_pointers,
        content,
        first_pages: &first_pages,
        limits: CopyLimits { bytes: settings.max_bytes, time: Some(limit) },
    };
    let (count, mut paused) = (threads.len(), Duration::ZERO);
    let copied = copy_process(&memory, &copying, file, || paused = process.resume()).map_err(failed)?;
    Ok(ProcessCopy { copied, threads: count, paused })
}

/// Returns true if a limit can leave out memory: what an analysis reads is then copied first.
fn is_limited(pid: u32, settings: &CoreSettings) -> bool {
    let status = linux_proc_stat::read(&linux_proc_stat::process_folder(pid).join("status"));
    let resident = status.ok().and_then(|status| Status::new(&status).resident_bytes()).unwrap_or(u64::MAX);
    let in_time = settings.pause.as_millis().saturating_mul(BYTES_PER_SECOND) / 1000;
    settings.max_bytes.is_some_and(|most| resident > most) || u128::from(resident) > in_time
}

fn note(thread: &StoppedThread) -> ThreadNote {
    ThreadNote {
        tid: thread.tid.unsigned_abs(),
        signal: u16::try_from(thread.signal).unwrap_or_default(),
        signal_info: thread.signal_info,
        registers: thread.registers.clone(),
        floating_registers: thread.floating_registers.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_missing_process() {
        let settings = CoreSettings::new(CoreKind::Full, Duration::from_secs(60));
        let file = tempfile::tempfile().unwrap();
        assert!(matches!(write(u32::MAX, &settings, &file), Err(CoreError::NoProcess { .. })));
        assert!(matches!(write(0x7fff_fff0, &settings, &file), Err(CoreError::Trace { .. })));
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
