//! Facts about a crash that the stream of the process does not contain.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dipc_client::{ProcessView, Target};

use crate::exit::Failure;
use crate::http::host_name;
use crate::process::info::timeouts;
use crate::record::flight::core_files::{KernelCore, PathPattern, ProcessFacts, RuntimeFiles};
use crate::record::flight::crash_core::{CrashCore, CrashDump, adopt, write_overview};
use crate::record::source::ChildEnd;
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::render::output_file::OutputFile;

/// The data missing from a snapshot of a crash.
pub(super) const MISSING: &str = "the events of its last 100 ms or so, and with them the exception that ended it: the runtime had not sent them";

/// The longest wait for a process to report its environment.
const ANSWER: Duration = Duration::from_secs(1);
/// The longest wait for the end of a program whose stream has ended: it may write a core dump.
const END: Duration = Duration::from_secs(10);
/// The longest wait for the end of a program that writes a core dump with heaps.
const CORE: Duration = Duration::from_secs(120);
/// The most bytes read of an environment.
#[cfg(target_os = "linux")]
const LONGEST_ENVIRONMENT: u64 = 1 << 20;

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
        let environment = environment(target);
        let facts = process_facts(pid);
        let dumps = environment.map(|variables| RuntimeFiles::new(&variables, &facts));
        let kernel = pid.and_then(|pid| {
            let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").ok()?;
            Some(KernelCore::new(&pattern, core_limit(pid).as_deref(), &facts))
        });
        let is_told = dumps.as_ref().is_some_and(|dumps| dumps.core.is_some());
        let core = dump.and_then(|dump| CrashCore::prepare(pid, is_told, dump));
        Self { pid, child, dumps, kernel, has_own_root: facts.has_own_root, core }
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

/// Reads the facts about a process that names of core dumps have. All are unknown if the system does not show
/// them.
fn process_facts(pid: Option<u32>) -> ProcessFacts {
    let host = Some(host_name()).filter(|name| !name.is_empty());
    let Some(pid) = pid else { return ProcessFacts { host, ..ProcessFacts::default() } };
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let name = std::fs::read_to_string(folder.join("comm")).ok();
    let facts = ProcessFacts {
        pid: Some(pid),
        namespace_pid: ProcessView::of(pid).own_id().and_then(|id| id.try_into().ok()),
        name: name.map(|name| name.trim_end_matches('\n').to_owned()),
        executable: std::fs::read_link(folder.join("exe")).ok(),
        host,
        folder: std::fs::read_link(folder.join("cwd")).ok(),
        ..ProcessFacts::default()
    };
    with_owner(facts, &folder)
}

#[cfg(unix)]
fn with_owner(mut facts: ProcessFacts, folder: &Path) -> ProcessFacts {
    use std::os::unix::fs::MetadataExt as _;

    if let Ok(folder) = std::fs::metadata(folder) {
        facts.uid = Some(folder.uid());
        facts.gid = Some(folder.gid());
    }
    let root = |path: &Path| std::fs::metadata(path).map(|root| (root.dev(), root.ino())).ok();
    let own = root(&folder.join("root"));
    facts.has_own_root = own.is_some() && own != root(Path::new("/"));
    facts
}

#[cfg(not(unix))]
fn with_owner(facts: ProcessFacts, _: &Path) -> ProcessFacts {
    facts
}

/// Returns the soft limit of the size of a core dump: a number of bytes, or `unlimited`.
fn core_limit(pid: u32) -> Option<String> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size"))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// Returns the environment that a process was started with.
fn environment(target: &Target) -> Option<Vec<String>> {
    #[cfg(target_os = "linux")]
    if let Some(pid) = target.pid()
        && let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ"))
    {
        let mut bytes = Vec::new();
        let read =
            std::io::Read::read_to_end(&mut std::io::Read::take(file, LONGEST_ENVIRONMENT), &mut bytes);
        if read.is_ok() && !bytes.is_empty() {
            let texts = bytes.split(|byte| *byte == 0);
            return Some(texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect());
        }
    }
    target.clone().with_timeouts(timeouts(ANSWER)).environment().ok()
}
