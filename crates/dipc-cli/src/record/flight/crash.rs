//! Facts about a crash that the stream of the process does not contain.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dipc_client::{CrashFiles, KernelCore, PathPattern, RuntimeFiles, Target};

use crate::exit::Failure;
use crate::http::host_name;
use crate::record::flight::crash_core::{CrashCore, CrashDump, adopt, write_overview};
use crate::record::source::ChildEnd;
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::render::output_file::OutputFile;

/// The data missing from a snapshot of a crash.
pub(super) const MISSING: &str = "the events of its last 100 ms or so, and with them the exception that ended it: the runtime had not sent them";

/// The longest wait for the end of a program whose stream has ended: it may write a core dump.
const END: Duration = Duration::from_secs(10);
/// The longest wait for the end of a program that writes a core dump with heaps.
const CORE: Duration = Duration::from_secs(120);

/// The sources of facts about a crash, determined before it happens.
pub(super) struct CrashSources {
    pid: Option<u32>,
    child: Option<ChildEnd>,
    /// `None` if the environment of the process is not known.
    dumps: Option<RuntimeFiles>,
    /// `None` if the system does not say.
    kernel: Option<KernelCore>,
    has_own_root: bool,
    /// The core dump that was asked for.
    core: Option<CrashCore>,
}

/// The files of a core dump that was asked for.
#[derive(Debug, Default)]
struct CoreFiles {
    core: Option<PathBuf>,
    report: Option<PathBuf>,
    overview: Option<PathBuf>,
}

impl CrashSources {
    pub(super) fn new(target: &Target, child: Option<ChildEnd>, dump: Option<&CrashDump>) -> Self {
        let pid = target.pid();
        let CrashFiles { runtime, kernel, has_own_root, .. } = CrashFiles::of(target, &host_name());
        let is_told = runtime.as_ref().is_some_and(|files| files.core.is_some());
        let core = dump.and_then(|dump| CrashCore::prepare(pid, is_told, dump));
        Self { pid, child, dumps: runtime, kernel, has_own_root, core }
    }

    /// Writes the known facts about the crash to a file beside the snapshot. Returns the file's path.
    pub(super) fn write(&self, snapshot: &Path, reason: &str) -> Result<PathBuf, Failure> {
        let files = self.collect(snapshot);
        let mut file = OutputFile::create_new(&beside(snapshot, ".crash.txt"))?;
        let path = file.path().to_owned();
        let text = self.text(snapshot, reason, &files);
        file.write_all(text.as_bytes()).map_err(|error| file.failed("write", &error))?;
        file.store()?;
        Ok(path)
    }

    /// Gives the core dump that was asked for, and what belongs to it, names beside the snapshot. What fails
    /// is a warning: the rest is still written.
    fn collect(&self, snapshot: &Path) -> CoreFiles {
        let mut files = CoreFiles::default();
        let core_path = beside(snapshot, ".core");
        match &self.core {
            None => return files,
            Some(CrashCore::Runtime { has_our_names }) => {
                // The runtime ends once it is written.
                self.child.as_ref().and_then(|child| child.wait(CORE));
                let found = |pattern: Option<&PathPattern>| pattern.and_then(PathPattern::find);
                let dumps = self.dumps.as_ref();
                files.core = found(dumps.and_then(|dumps| dumps.core.as_ref()));
                files.report = found(dumps.and_then(|dumps| dumps.report.as_ref()));
                if *has_our_names {
                    files.core = files.core.map(|core| adopt(core, &core_path));
                    let report_path = beside(snapshot, ".crashreport.json");
                    files.report = files.report.map(|report| adopt(report, &report_path));
                }
            }
            #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
            Some(CrashCore::Watch(watch)) => match watch.finish(&core_path) {
                Ok(core) => files.core = core,
                Err(failure) => messages::warning(failure),
            },
        }
        match &files.core {
            None => messages::warning(
                "--dump-on: there is no core dump: the process was killed, or its runtime wrote none",
            ),
            Some(core) => {
                messages::note(format_args!("Core dump      : {}", core.display()));
                match write_overview(core, &beside(snapshot, ".overview.txt")) {
                    Ok(path) => files.overview = Some(path),
                    Err(failure) => messages::warning(failure),
                }
            }
        }
        files
    }

    fn text(&self, snapshot: &Path, reason: &str, files: &CoreFiles) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            // Writing into a `String` does not fail.
            let _ = writeln!(text, "{name:<15}: {}", escape_controls(value));
        };
        line("Snapshot", &snapshot.display().to_string());
        line("Reason", reason);
        line("Missing", MISSING);
        if let Some(pid) = self.pid {
            line("Process", &pid.to_string());
        }
        if let Some(child) = &self.child {
            let end = child.wait(END);
            line("Exit status", end.as_deref().unwrap_or("not known: it had not ended 10 s later"));
        }
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
            Some(RuntimeFiles { core: None, report: None }) => line(
                "Core dump",
                "none by the runtime; DOTNET_DbgEnableMiniDump=1 and DOTNET_EnableCrashReport=1 in its environment have it write them",
            ),
            Some(RuntimeFiles { core, report }) => {
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
        let errors = self.child.as_ref().map(ChildEnd::standard_error).unwrap_or_default();
        if !errors.is_empty() {
            text.push_str("\nThe end of its standard error:\n");
            for line in errors.lines() {
                let _ = writeln!(text, "{}", escape_controls(line));
            }
        }
        text
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

/// The path of a file of the bundle: the snapshot's, with an ending.
fn beside(snapshot: &Path, ending: &str) -> PathBuf {
    let mut name = snapshot.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    snapshot.with_file_name(name)
}
