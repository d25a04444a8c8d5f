//! Facts about a crash that the stream of the process does not contain.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dipc_client::Target;

use crate::exit::Failure;
use crate::process::info::timeouts;
use crate::record::source::ChildEnd;
use crate::render::escape::escape_controls;
use crate::render::output_file::OutputFile;

/// The data missing from a snapshot of a crash.
pub(super) const MISSING: &str = "the events of its last 100 ms or so, and with them the exception that ended it: the runtime had not sent them";

/// The longest wait for a process to report its environment.
const ANSWER: Duration = Duration::from_secs(1);
/// The longest wait for the end of a program whose stream has ended: it may write a core dump.
const END: Duration = Duration::from_secs(10);
/// The most bytes read of an environment.
#[cfg(target_os = "linux")]
const LONGEST_ENVIRONMENT: u64 = 1 << 20;

/// The sources of facts about a crash, determined before it happens.
#[derive(Debug)]
pub(super) struct CrashSources {
    pid: Option<u32>,
    child: Option<ChildEnd>,
    /// `None` if the environment of the process is not known.
    dumps: Option<DumpFiles>,
}

/// The files that the runtime writes when it crashes, according to its environment.
#[derive(Debug, Default, PartialEq, Eq)]
struct DumpFiles {
    core: Option<PathBuf>,
    report: Option<PathBuf>,
}

impl CrashSources {
    pub(super) fn new(target: &Target, child: Option<ChildEnd>) -> Self {
        let pid = target.pid();
        let environment = environment(target);
        let folder = pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok());
        let dumps = environment.map(|variables| DumpFiles::of(&variables, pid, folder.as_deref()));
        Self { pid, child, dumps }
    }

    /// Writes the known facts about the crash to a file beside the snapshot. Returns the file's path.
    pub(super) fn write(&self, snapshot: &Path, reason: &str) -> Result<PathBuf, Failure> {
        let mut name = snapshot.file_name().unwrap_or_default().to_owned();
        name.push(".crash.txt");
        let mut file = OutputFile::create_new(&snapshot.with_file_name(name))?;
        let path = file.path().to_owned();
        let text = self.text(snapshot, reason);
        file.write_all(text.as_bytes()).map_err(|error| file.failed("write", &error))?;
        file.store()?;
        Ok(path)
    }

    fn text(&self, snapshot: &Path, reason: &str) -> String {
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
        let file = |path: &Path| {
            let there = if path.exists() { "" } else { " (not there now)" };
            format!("{}{there}", path.display())
        };
        match &self.dumps {
            None => line("Core dump", "not known: the environment of the process could not be read"),
            Some(DumpFiles { core: None, report: None }) => line(
                "Core dump",
                "none by the runtime; DOTNET_DbgEnableMiniDump=1 and DOTNET_EnableCrashReport=1 in its environment have it write them",
            ),
            Some(DumpFiles { core, report }) => {
                if let Some(path) = core {
                    line("Core dump", &file(path));
                }
                if let Some(path) = report {
                    line("Crash report", &file(path));
                }
            }
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
}

impl DumpFiles {
    /// # Source
    /// `clrconfignative.h` and `PROCCreateCrashDumpIfEnabled` of dotnet/runtime; "Collect dumps on crash" of
    /// dotnet/docs.
    fn of(variables: &[String], pid: Option<u32>, folder: Option<&Path>) -> Self {
        let get = |name: &str| {
            let value = |variable: &str| {
                let (key, value) = variable.split_once('=')?;
                let key = key.strip_prefix("DOTNET_").or_else(|| key.strip_prefix("COMPlus_"))?;
                (key == name).then(|| value.to_owned())
            };
            variables.iter().find_map(|variable| value(variable))
        };
        let is_set = |name: &str| get(name).is_some_and(|value| value.trim() == "1");
        if !is_set("DbgEnableMiniDump") {
            return Self::default();
        }
        let name = get("DbgMiniDumpName").filter(|name| !name.is_empty());
        let mut name = name.unwrap_or_else(|| "/tmp/coredump.%p".to_owned());
        if let Some(pid) = pid {
            name = name.replace("%p", &pid.to_string()).replace("%d", &pid.to_string());
        }
        let core = folder.map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name));
        let only_report = is_set("EnableCrashReportOnly");
        let report = (only_report || is_set("EnableCrashReport")).then(|| {
            let mut report = core.clone().into_os_string();
            report.push(".crashreport.json");
            PathBuf::from(report)
        });
        Self { core: (!only_report).then_some(core), report }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_where_dumps_are() {
        let files = |variables: &[&str]| {
            let variables: Vec<_> = variables.iter().map(|text| (*text).to_owned()).collect();
            let DumpFiles { core, report } = DumpFiles::of(&variables, Some(7), Some("/app".as_ref()));
            let text =
                |path: Option<PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
            (text(core), text(report))
        };
        let pair = |core: &str, report: &str| (core.to_owned(), report.to_owned());
        assert_eq!(files(&["PATH=/bin", "DOTNET_DbgMiniDumpName=/x"]), pair("", ""));
        assert_eq!(files(&["COMPlus_DbgEnableMiniDump=1"]), pair("/tmp/coredump.7", ""));
        let named =
            ["DOTNET_DbgEnableMiniDump=1", "DOTNET_DbgMiniDumpName=core.%p", "DOTNET_EnableCrashReport=1"];
        assert_eq!(files(&named), pair("/app/core.7", "/app/core.7.crashreport.json"));
        let only = ["DOTNET_DbgEnableMiniDump=1", "DOTNET_EnableCrashReportOnly=1"];
        assert_eq!(files(&only), pair("", "/tmp/coredump.7.crashreport.json"));
    }
}
