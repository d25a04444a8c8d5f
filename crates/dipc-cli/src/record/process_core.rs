//! Core dumps that this program writes: the memory of a process, read from outside.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clr_dump::{
    CopiedCore, CopyLimits, CopySettings, CoreContent, ProcessMemory, Registers, ThreadNote, TimeLimit,
    copy_process, thread_pages,
};
use linux_sampler::{StoppedProcess, StoppedThread};

use crate::compression::OutputCompression;
use crate::duration;
use crate::exit::{Exit, Failure};
use crate::render::output_file::{NameOrigin, OutputFile, is_device};
use crate::render::{output, units};

/// Maximum wait for the threads of a process to stop.
const STOP: Duration = Duration::from_secs(2);

/// Bytes that are surely copied in a second: a process with more is taken to reach the limit of time.
const BYTES_PER_SECOND: u128 = 50 << 20;

/// The architecture of core dumps of this machine (`e_machine`).
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// The memory in a core dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoreKind {
    Full,
    Heap,
    Mini,
}

impl CoreKind {
    /// The name of the runtime's kind with such memory.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Full => "Full",
            Self::Heap => "WithHeap",
            Self::Mini => "Normal",
        }
    }
}

/// The settings of a core dump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoreSettings {
    pub(crate) kind: CoreKind,
    /// Maximum time for which the process is stopped.
    pub(crate) pause: Duration,
    /// Maximum number of bytes of memory to copy.
    pub(crate) most_bytes: Option<u64>,
    pub(crate) compression: OutputCompression,
}

/// A core dump that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenCore {
    /// The file; `None` for standard output.
    pub(crate) path: Option<PathBuf>,
    pub(crate) copied: CopiedCore,
    pub(crate) threads: usize,
    /// The time for which the process was stopped.
    pub(crate) paused: Duration,
}

impl WrittenCore {
    /// The copied amounts in words.
    pub(crate) fn amounts(&self) -> String {
        let CopiedCore { memory_bytes, copied_bytes, unreadable_bytes, .. } = self.copied;
        let mut text = format!(
            "{} of memory of {} threads, {} of it not zero",
            units::bytes(memory_bytes),
            self.threads,
            units::bytes(copied_bytes)
        );
        if unreadable_bytes > 0 {
            text.push_str("; the kernel refused ");
            text.push_str(&units::bytes(unreadable_bytes));
        }
        text
    }
}

/// The place of a core dump.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CorePlace<'a> {
    StandardOutput,
    File(&'a Path, NameOrigin),
}

/// Stops a process, copies its memory into a core dump, and lets it run on. It runs on even if this program
/// is killed.
pub(crate) fn write(pid: u32, settings: &CoreSettings, place: CorePlace<'_>) -> Result<WrittenCore, Failure> {
    let id = i32::try_from(pid).map_err(|_| no_process(pid))?;
    let mut output = Output::open(place, settings.compression)?;
    let limit = TimeLimit { end: Instant::now() + settings.pause, duration: settings.pause };
    let process = StoppedProcess::stop(id, STOP.min(settings.pause)).map_err(|error| {
        if limit.end <= Instant::now() {
            return Failure::new(
                Exit::TimedOut,
                format_args!(
                    "dump: process {pid}: its threads did not stop within --pause {}",
                    duration::display(settings.pause)
                ),
            )
            .with_help("it runs on; a longer --pause leaves time to stop the threads and to copy memory");
        }
        let failure = Failure::new(Exit::NotReachable, format_args!("dump: process {pid}: {error}"));
        failure.with_help(
            "this takes the permission to trace the process (be its user, or root), and no debugger that traces it",
        )
    })?;
    let copy = copy(pid, process, settings, limit, output.file()?)?;
    let path = output.finish(settings.compression)?;
    Ok(WrittenCore { path, copied: copy.copied, threads: copy.threads, paused: copy.paused })
}

/// A copy of a stopped process, which runs on.
pub(crate) struct ProcessCopy {
    pub(crate) copied: CopiedCore,
    pub(crate) threads: usize,
    /// The time for which the process was stopped.
    pub(crate) paused: Duration,
}

/// Copies the memory of a stopped process, and lets it run on.
pub(crate) fn copy(
    pid: u32,
    process: StoppedProcess,
    settings: &CoreSettings,
    limit: TimeLimit,
    file: &File,
) -> Result<ProcessCopy, Failure> {
    let failed =
        |error: clr_dump::Error| Failure::new(Exit::Failed, format_args!("dump: process {pid}: {error}"));
    let memory = ProcessMemory::open(pid).map_err(failed)?;
    // The thread that received the signal is first: debuggers show it.
    let mut threads: Vec<&StoppedThread> = process.threads().iter().collect();
    threads.sort_by_key(|thread| (thread.signal == 0, thread.tid));
    let registers: Vec<(u64, Option<Registers>)> = threads
        .iter()
        .map(|thread| {
            let registers = Registers::of_user(&thread.registers);
            (thread.tid.unsigned_abs().into(), registers.filter(|_| cfg!(target_arch = "x86_64")))
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
        limits: CopyLimits { bytes: settings.most_bytes, time: Some(limit) },
    };
    let (count, mut paused) = (threads.len(), Duration::ZERO);
    let copied = copy_process(&memory, &copying, file, || paused = process.resume()).map_err(failed)?;
    Ok(ProcessCopy { copied, threads: count, paused })
}

/// Returns true if a limit can leave out memory: what an analysis reads is then copied first.
fn is_limited(pid: u32, settings: &CoreSettings) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    let kilobytes = resident.and_then(|number| number.parse::<u64>().ok());
    let resident = kilobytes.map_or(u64::MAX, |kilobytes| kilobytes.saturating_mul(1024));
    let in_time = settings.pause.as_millis().saturating_mul(BYTES_PER_SECOND) / 1000;
    settings.most_bytes.is_some_and(|most| resident > most) || u128::from(resident) > in_time
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

fn no_process(pid: u32) -> Failure {
    Failure::new(Exit::NotReachable, format_args!("dump: process {pid}: it does not exist"))
}

/// The destination of a core dump. What cannot be written at any place, such as a pipe, gets a copy of an
/// unnamed file once the process runs on.
pub(crate) struct Output {
    named: Option<OutputFile>,
    spool: Option<File>,
}

impl Output {
    pub(crate) fn open(place: CorePlace<'_>, compression: OutputCompression) -> Result<Self, Failure> {
        let (named, is_direct) = match place {
            CorePlace::StandardOutput => {
                output::refuse_terminal("a core dump")?;
                (None, false)
            }
            CorePlace::File(path, origin) => {
                let is_direct = compression == OutputCompression::None && !is_device(path);
                let mut file = OutputFile::beside(path, origin)?;
                file.begin()?;
                // A core dump has all that the process knows.
                if let Some(written) = file.file().filter(|_| !is_device(path)) {
                    let owner_only = std::fs::Permissions::from_mode(0o600);
                    written.set_permissions(owner_only).map_err(|error| file.failed("protect", &error))?;
                }
                (Some(file), is_direct)
            }
        };
        let spool = (!is_direct).then(tempfile::tempfile).transpose().map_err(|error| {
            let folder = std::env::temp_dir();
            Failure::new(Exit::Failed, format_args!("dump: {}: {error}", folder.display()))
                .with_help("the dump is collected there first: TMPDIR names another folder")
        })?;
        Ok(Self { named, spool })
    }

    /// The file to write into, at any offset.
    pub(crate) fn file(&mut self) -> Result<&File, Failure> {
        let named = self.named.as_ref().and_then(OutputFile::file);
        let file = self.spool.as_ref().or(named);
        file.ok_or_else(|| Failure::new(Exit::Failed, "dump: the output is closed"))
    }

    /// Writes the copy, and gives the file its name.
    pub(crate) fn finish(self, compression: OutputCompression) -> Result<Option<PathBuf>, Failure> {
        let Self { mut named, spool } = self;
        if let Some(mut spool) = spool {
            spool.seek(SeekFrom::Start(0)).map_err(|error| output::failed(&error))?;
            if let Some(file) = &mut named {
                let copied = compression.copy(spool, &mut *file);
                copied.map_err(|error| file.failed("write", &error))?;
            } else {
                let copied = compression.copy(spool, output::stream());
                copied.map_err(|error| output::failed(&error))?;
            }
        }
        let Some(mut file) = named else { return Ok(None) };
        file.close()?;
        Ok(Some(file.path().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_missing_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("core");
        let settings = CoreSettings {
            kind: CoreKind::Full,
            pause: Duration::from_secs(1),
            most_bytes: None,
            compression: OutputCompression::None,
        };
        for pid in [u32::MAX, 0x7fff_fff0] {
            let failure = write(pid, &settings, CorePlace::File(&path, NameOrigin::User)).unwrap_err();
            assert_eq!(failure.exit, Exit::NotReachable);
            assert!(!path.exists());
        }
    }
}
