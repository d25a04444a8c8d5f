//! Facts about a crash that the stream of the process does not contain.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dipc_client::{CrashFiles, KernelCore, PathPattern, RuntimeFiles, Target};
use dipc_collect::CREATEDUMP_LIMIT;
use dipc_transport::ProcessState;

use crate::exit::Failure;
use crate::http::host_name;
use crate::inspect::crash_note::{add_cause, add_fact, crash_path};
use crate::record::flight::crash_cause::{Cause, OomKills, end_in_words, is_kill};
use crate::record::flight::crash_core::{CrashCore, CrashDump, adopt, write_overview};
use crate::record::notes;
use crate::record::source::{ChildEnd, EndStatus};
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::render::output_file::OutputFile;

/// The data missing from a recording of a crash.
const MISSING: &str = "the events of its last 100 ms or so: the runtime had not sent them";
/// The same, for a crash with an unknown cause.
const MISSING_WITH_CAUSE: &str = "the events of its last 100 ms or so, and with them the exception that may have ended it: the runtime had not sent them";

/// Maximum wait for the end of a program after the end of its stream: it may write a core dump.
const END: Duration = Duration::from_secs(10);
/// Maximum wait for the end of a program that writes a core dump with heaps.
const CORE: Duration = CREATEDUMP_LIMIT;

/// The sources of facts about a crash, determined before it happens.
pub(crate) struct CrashSources {
    pid: Option<u32>,
    child: Option<ChildEnd>,
    /// `None` if the environment of the process is unknown.
    dumps: Option<RuntimeFiles>,
    /// `None` if the system does not say.
    kernel: Option<KernelCore>,
    has_own_root: bool,
    /// The core dump that was asked for.
    core: Option<CrashCore>,
    oom_kills: OomKills,
    /// The end of the process, once it is known.
    status: Option<EndStatus>,
}

/// The written description of a crash.
pub(crate) struct Description {
    path: PathBuf,
    core: Option<PathBuf>,
    missing: &'static str,
}

impl Description {
    /// Prints the available and the missing parts.
    pub(crate) fn print(&self) {
        if let Some(core) = &self.core {
            messages::note(format_args!("Core dump      : {}", core.display()));
        }
        messages::note(format_args!("Facts          : {}", self.path.display()));
        messages::note(format_args!("Missing        : {}", self.missing));
    }
}

/// The files of a core dump that was asked for.
#[derive(Debug, Default)]
struct CoreFiles {
    core: Option<PathBuf>,
    report: Option<PathBuf>,
    overview: Option<PathBuf>,
    /// The cause of death by the core dump.
    cause: Option<Cause>,
}

impl CrashSources {
    pub(crate) fn new(target: &Target, child: Option<ChildEnd>, dump: Option<&CrashDump>) -> Self {
        let pid = target.pid();
        let CrashFiles { runtime, kernel, has_own_root, .. } = CrashFiles::of(target, &host_name());
        let is_told = runtime.as_ref().is_some_and(|files| files.core.is_some());
        let core = dump.and_then(|dump| CrashCore::prepare(pid, is_told, dump));
        let oom_kills = OomKills::of(pid);
        Self { pid, child, dumps: runtime, kernel, has_own_root, core, oom_kills, status: None }
    }

    /// Returns true if dipc started the process.
    pub(crate) const fn has_child(&self) -> bool {
        self.child.is_some()
    }

    /// Waits for the end of a process after the end of its stream, and returns it in words.
    pub(crate) fn await_end(&mut self) -> String {
        let dumps_itself = matches!(self.core, Some(CrashCore::Runtime { .. }));
        // The runtime ends once its dump is written.
        self.status = self.child.as_ref().and_then(|child| child.wait(if dumps_itself { CORE } else { END }));
        if let (None, true, Some(pid)) = (self.status, dumps_itself, self.pid)
            && let Ok(ProcessState::Dumping { createdump }) = dipc_transport::process_state(pid)
        {
            notes::warn_of_createdump(pid, createdump);
        }
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        if let Some(CrashCore::Watch(watch)) = &mut self.core {
            let signal = watch.await_end();
            self.status = self.status.or(signal.map(EndStatus::Signal));
        }
        let of_zombie = || self.pid.and_then(EndStatus::of_zombie);
        self.status = self.status.or_else(of_zombie);
        end_in_words(self.status, self.oom_kills.new_kills())
    }

    /// Prints how the process ended, and writes it to a file next to the recording, with the other known
    /// facts. `end` is the result of [`await_end`](Self::await_end), and `reason` the snapshot's reason.
    /// Fails if the file cannot be written.
    pub(crate) fn describe(
        &mut self,
        recording: &Path,
        end: &str,
        reason: Option<&str>,
    ) -> Result<Description, Failure> {
        let files = self.collect(recording);
        let errors = self.child.as_ref().map(ChildEnd::standard_error).unwrap_or_default();
        let cause = files.cause.clone().or_else(|| Cause::of_errors(&errors, end));
        let is_explained = cause.is_some() || is_kill(self.status);
        let cause = cause.unwrap_or_else(|| Cause { text: end.to_owned(), details: Vec::new() });
        messages::note(format_args!("Crash          : {}", cause.text));
        for line in &cause.details {
            messages::note(format_args!("                 {line}"));
        }
        let missing = if is_explained { MISSING } else { MISSING_WITH_CAUSE };
        let mut file = OutputFile::create_new(&crash_path(recording, ".crash.txt"))?;
        let path = file.path().to_owned();
        let mut text = String::new();
        add_cause(&mut text, &cause.text, &cause.details);
        self.add_facts(&mut text, (recording, reason, missing), &files);
        if !errors.is_empty() {
            text.push_str("\nThe end of its standard error:\n");
            for line in errors.lines() {
                text.push_str(&escape_controls(line));
                text.push('\n');
            }
        }
        file.write_all(text.as_bytes()).map_err(|error| file.failed("write", &error))?;
        file.store()?;
        Ok(Description { path, core: files.core, missing })
    }

    /// Puts the requested core dump, and the files that belong to it, next to the recording. Failures are
    /// warnings: the rest is still written.
    fn collect(&mut self, recording: &Path) -> CoreFiles {
        let mut files = CoreFiles::default();
        let core_path = crash_path(recording, ".core");
        match &mut self.core {
            None => return files,
            Some(CrashCore::Runtime { has_our_names }) => {
                let found = |pattern: Option<&PathPattern>| pattern.and_then(PathPattern::find);
                let dumps = self.dumps.as_ref();
                files.core = found(dumps.and_then(|dumps| dumps.core.as_ref()));
                files.report = found(dumps.and_then(|dumps| dumps.report.as_ref()));
                if *has_our_names {
                    files.core = files.core.map(|core| adopt(core, &core_path));
                    let report_path = crash_path(recording, ".crashreport.json");
                    files.report = files.report.map(|report| adopt(report, &report_path));
                }
            }
            #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
            Some(CrashCore::Watch(watch)) => match watch.name(&core_path) {
                Ok(core) => files.core = core,
                Err(failure) => messages::warning(failure),
            },
        }
        let Some(core) = &files.core else {
            messages::warning(
                "--dump-on: there is no core dump: the process was killed, or its runtime wrote none",
            );
            return files;
        };
        match write_overview(core, &crash_path(recording, ".overview.txt")) {
            Ok((path, text)) => {
                files.overview = Some(path);
                files.cause = Cause::of_overview(&text);
            }
            Err(failure) => messages::warning(failure),
        }
        files
    }

    fn add_facts(
        &self,
        text: &mut String,
        (recording, reason, missing): (&Path, Option<&str>, &str),
        files: &CoreFiles,
    ) {
        let mut line = |name: &str, value: &str| add_fact(text, name, value);
        match reason {
            Some(_) if !recording.is_file() => line("Snapshot", "none: no event arrived before the end"),
            Some(reason) => {
                line("Snapshot", &recording.display().to_string());
                line("Reason", reason);
            }
            None => line("Recording", &recording.display().to_string()),
        }
        line("Missing", missing);
        if let Some(pid) = self.pid {
            line("Process", &pid.to_string());
        }
        match (self.status, &self.child) {
            (Some(status), _) => line("Exit status", &status.to_string()),
            (None, Some(_)) => line("Exit status", "not known: it had not ended 10 s later"),
            (None, None) => {}
        }
        line("Out of memory", &self.oom_kills.to_string());
        for (name, file) in
            [("Core dump", &files.core), ("Crash report", &files.report), ("Overview", &files.overview)]
        {
            if let Some(file) = file {
                line(name, &file.display().to_string());
            }
        }
        match &self.dumps {
            _ if files.core.is_some() => {}
            None => line("Core dump", "not known: the environment of the process could not be read"),
            Some(RuntimeFiles { core: None, report: None, .. }) => line(
                "Core dump",
                "none by the runtime; DOTNET_DbgEnableMiniDump=1 and DOTNET_EnableCrashReport=1 in its environment have it write them",
            ),
            Some(RuntimeFiles { core, report, .. }) => {
                if let Some(pattern) = core {
                    line("Core dump", &self.place(pattern));
                }
                if let Some(pattern) = report {
                    line("Crash report", &self.place(pattern));
                }
            }
        }
        match &self.kernel {
            None => {}
            Some(KernelCore::LimitedToZero) => {
                line(
                    "Kernel's core",
                    "none: ulimit -c is 0; ulimit -c unlimited before the program permits it",
                );
            }
            Some(KernelCore::Piped(program)) => {
                let command = if program.ends_with("systemd-coredump") {
                    let pid = self.pid.map_or_else(String::new, |pid| format!(" {pid}"));
                    format!(": coredumpctl info{pid}")
                } else {
                    String::new()
                };
                line(
                    "Kernel's core",
                    &format!("given to {program} (/proc/sys/kernel/core_pattern){command}"),
                );
            }
            Some(KernelCore::File(pattern)) => line("Kernel's core", &self.place(pattern)),
        }
    }

    /// Returns the path of a file, and whether it is there.
    fn place(&self, pattern: &PathPattern) -> String {
        let path = pattern.display();
        if self.has_own_root {
            return format!("{} in its container", path.display());
        }
        match pattern.find() {
            Some(found) => found.display().to_string(),
            None => format!("{} (not there now)", path.display()),
        }
    }
}
