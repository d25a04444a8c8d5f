//! The files that a crash leaves: the dump and report of the runtime, and the core dump of the kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{ProcessView, Target, Timeouts};

/// Maximum wait for a process to report its environment.
const ANSWER: Duration = Duration::from_secs(1);

/// Maximum number of directory entries to inspect for a file with a partly known name.
const MAX_ENTRIES: usize = 100_000;

/// An unknown part of a path: no path contains it.
const UNKNOWN: char = '\0';

/// The files that a crash of a process leaves, determined before it happens.
///
/// ```no_run
/// use dipc_client::{CrashFiles, KernelCore, Target};
///
/// let files = CrashFiles::of(&Target::from_pid(4711)?, "");
/// match files.kernel {
///     Some(KernelCore::File(core)) => println!("the kernel writes {}", core.display().display()),
///     other => println!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct CrashFiles {
    /// The files of its runtime; `None` if its environment is not known.
    pub runtime: Option<RuntimeFiles>,
    /// The core dump of the kernel; `None` if the system does not say.
    pub kernel: Option<KernelCore>,
    /// True if the process has another root folder than this program: paths are as the process sees them.
    pub has_own_root: bool,
    /// The user of the process.
    pub uid: Option<u32>,
}

impl CrashFiles {
    /// Determines them for a process that runs. `host` is the name of this machine; empty if it is not known.
    pub fn of(target: &Target, host: &str) -> Self {
        let pid = target.pid();
        let environment = environment(target);
        let facts = ProcessFacts::of(pid, host);
        let runtime = environment.map(|variables| RuntimeFiles::new(&variables, &facts));
        let kernel = pid.and_then(|pid| {
            let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").ok()?;
            Some(KernelCore::new(&pattern, core_limit(pid).as_deref(), &facts))
        });
        Self { runtime, kernel, has_own_root: facts.has_own_root, uid: facts.uid }
    }
}

/// The facts about a process that names of core dumps have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct ProcessFacts {
    pid: Option<u32>,
    /// The pid in the innermost namespace of the process.
    namespace_pid: Option<u32>,
    /// The name of the first thread.
    name: Option<String>,
    executable: Option<PathBuf>,
    host: Option<String>,
    uid: Option<u32>,
    gid: Option<u32>,
    folder: Option<PathBuf>,
    /// True if the process has another root folder than this program.
    has_own_root: bool,
}

/// A path of which parts are known only after the crash, such as the time or the thread.
#[derive(Debug, PartialEq, Eq)]
pub struct PathPattern {
    folder: PathBuf,
    /// The last component, with [`UNKNOWN`] for the unknown parts.
    name: String,
}

/// The files that the runtime writes when it crashes, according to its environment.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeFiles {
    /// The core dump.
    pub core: Option<PathPattern>,
    /// The crash report, in JSON.
    pub report: Option<PathPattern>,
}

/// The core dump that the kernel writes.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core_pattern has no other forms")]
pub enum KernelCore {
    /// The limit of the process (`ulimit -c`) is 0.
    LimitedToZero,
    /// A program gets it on its standard input.
    Piped(String),
    /// A file.
    File(PathPattern),
}

impl RuntimeFiles {
    /// # Source
    /// `clrconfignative.h` and `PROCCreateCrashDumpIfEnabled` of dotnet/runtime; "Collect dumps on crash" of
    /// dotnet/docs.
    fn new(variables: &[String], facts: &ProcessFacts) -> Self {
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
        let name = name.unwrap_or_else(|| "/tmp/coredump.%p".to_owned());
        let expanded = |suffix: &str| {
            let text = expand(&format!("{name}{suffix}"), |specifier| match specifier {
                // createdump runs in the namespaces of the process.
                'p' | 'd' => facts.namespace_pid.or(facts.pid).map(|pid| pid.to_string()),
                'e' => facts.name.clone(),
                'h' => facts.host.clone(),
                _ => None,
            });
            PathPattern::new(&text, facts.folder.as_deref())
        };
        let only_report = is_set("EnableCrashReportOnly");
        let report = (only_report || is_set("EnableCrashReport")).then(|| expanded(".crashreport.json"));
        Self { core: (!only_report).then(|| expanded("")), report }
    }
}

impl KernelCore {
    /// # Source
    /// core(5). `limit` is the soft limit of `Max core file size` in `/proc/PID/limits`.
    fn new(pattern: &str, limit: Option<&str>, facts: &ProcessFacts) -> Self {
        let pattern = pattern.trim_end_matches('\n');
        if let Some(program) = pattern.strip_prefix('|') {
            let program = program.split_whitespace().next().unwrap_or_default();
            return Self::Piped(program.to_owned());
        }
        if limit == Some("0") {
            return Self::LimitedToZero;
        }
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let text = expand(pattern, |specifier| match specifier {
            'p' => number(facts.namespace_pid.or(facts.pid)),
            'P' => number(facts.pid),
            'u' => number(facts.uid),
            'g' => number(facts.gid),
            'h' => facts.host.clone(),
            'E' => facts.executable.as_ref().map(|path| path.display().to_string().replace('/', "!")),
            'c' => limit.map(|limit| match limit {
                "unlimited" => u64::MAX.to_string(),
                limit => limit.to_owned(),
            }),
            // The thread that crashes and its name, the signal and the time are known afterwards.
            _ => None,
        });
        Self::File(PathPattern::new(&text, facts.folder.as_deref()))
    }
}

impl PathPattern {
    fn new(text: &str, folder: Option<&Path>) -> Self {
        let (before, name) = match text.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some(parts) => parts,
            None => ("", text),
        };
        // A folder with unknown parts in its name is shown as it is, and is not searched.
        let before = before.replace(UNKNOWN, "*");
        let folder = folder.map_or_else(|| PathBuf::from(&before), |folder| folder.join(&before));
        Self { folder, name: name.to_owned() }
    }

    /// Returns the path, with `*` for the unknown parts.
    pub fn display(&self) -> PathBuf {
        self.folder.join(self.name.replace(UNKNOWN, "*"))
    }

    /// Finds the newest file of this pattern, as this program sees it.
    pub fn find(&self) -> Option<PathBuf> {
        if !self.name.contains(UNKNOWN) {
            return Some(self.folder.join(&self.name)).filter(|path| path.exists());
        }
        let entries = fs::read_dir(&self.folder).ok()?.take(MAX_ENTRIES).flatten();
        let matching = entries.filter(|entry| self.matches(&entry.file_name().to_string_lossy()));
        let newest = matching.max_by_key(|entry| entry.metadata().and_then(|it| it.modified()).ok());
        newest.map(|entry| entry.path())
    }

    fn matches(&self, name: &str) -> bool {
        let pieces: Vec<_> = self.name.split(UNKNOWN).collect();
        let [first, middle @ .., last] = &*pieces else { return false };
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        for piece in middle {
            match rest.split_once(piece) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl ProcessFacts {
    /// Reads the facts. All are unknown if the system does not show them.
    fn of(pid: Option<u32>, host: &str) -> Self {
        let host = Some(host.to_owned()).filter(|name| !name.is_empty());
        let Some(pid) = pid else { return Self { host, ..Self::default() } };
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let name = fs::read_to_string(folder.join("comm")).ok();
        let facts = Self {
            pid: Some(pid),
            namespace_pid: ProcessView::of(pid).own_id().and_then(|id| id.try_into().ok()),
            name: name.map(|name| name.trim_end_matches('\n').to_owned()),
            executable: fs::read_link(folder.join("exe")).ok(),
            host,
            folder: fs::read_link(folder.join("cwd")).ok(),
            ..Self::default()
        };
        facts.with_owner(&folder)
    }

    #[cfg(unix)]
    fn with_owner(mut self, folder: &Path) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        if let Ok(folder) = fs::metadata(folder) {
            self.uid = Some(folder.uid());
            self.gid = Some(folder.gid());
        }
        let root = |path: &Path| fs::metadata(path).map(|root| (root.dev(), root.ino())).ok();
        let own = root(&folder.join("root"));
        self.has_own_root = own.is_some() && own != root(Path::new("/"));
        self
    }

    #[cfg(not(unix))]
    fn with_owner(self, _: &Path) -> Self {
        self
    }
}

/// Returns the soft limit of the size of a core dump: a number of bytes, or `unlimited`.
fn core_limit(pid: u32) -> Option<String> {
    let limits = linux_proc_stat::read(&linux_proc_stat::process_folder(pid).join("limits")).ok()?;
    linux_proc_stat::Limits::new(&limits).soft("Max core file size").map(str::to_owned)
}

/// Returns the environment that a process was started with, or states itself.
fn environment(target: &Target) -> Option<Vec<String>> {
    let of_system = target.pid().and_then(|pid| ProcessView::of(pid).environment().ok());
    let of_system = of_system.filter(|variables| !variables.is_empty());
    of_system.or_else(|| target.clone().with_timeouts(Timeouts::each(ANSWER)).environment().ok())
}

/// Inserts the values of the specifiers (`%p` and the like) in a pattern, and [`UNKNOWN`] for those without
/// one.
fn expand(pattern: &str, value: impl Fn(char) -> Option<String>) -> String {
    let mut text = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => match characters.next() {
                Some('%') => text.push('%'),
                Some(specifier) => text.push_str(&value(specifier).unwrap_or_else(|| UNKNOWN.into())),
                // core(5): a single % at the end is dropped.
                None => {}
            },
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> ProcessFacts {
        ProcessFacts {
            pid: Some(4711),
            namespace_pid: Some(7),
            name: Some("dotnet".into()),
            executable: Some("/usr/bin/dotnet".into()),
            host: Some("node".into()),
            uid: Some(1000),
            gid: Some(100),
            folder: Some("/app".into()),
            has_own_root: false,
        }
    }

    #[test]
    fn the_environment_says_where_dumps_are() {
        let files = |variables: &[&str]| {
            let variables: Vec<_> = variables.iter().map(|text| (*text).to_owned()).collect();
            let RuntimeFiles { core, report } = RuntimeFiles::new(&variables, &facts());
            let text = |path: Option<PathPattern>| {
                path.map(|path| path.display().display().to_string()).unwrap_or_default()
            };
            (text(core), text(report))
        };
        let pair = |core: &str, report: &str| (core.to_owned(), report.to_owned());
        assert_eq!(files(&["PATH=/bin", "DOTNET_DbgMiniDumpName=/x"]), pair("", ""));
        // createdump has the pid in the container.
        assert_eq!(files(&["COMPlus_DbgEnableMiniDump=1"]), pair("/tmp/coredump.7", ""));
        let named = [
            "DOTNET_DbgEnableMiniDump=1",
            "DOTNET_DbgMiniDumpName=%e-%h/core.%p.%t%%",
            "DOTNET_EnableCrashReport=1",
        ];
        assert_eq!(
            files(&named),
            pair("/app/dotnet-node/core.7.*%", "/app/dotnet-node/core.7.*%.crashreport.json")
        );
        let only = ["DOTNET_DbgEnableMiniDump=1", "DOTNET_EnableCrashReportOnly=1"];
        assert_eq!(files(&only), pair("", "/tmp/coredump.7.crashreport.json"));
    }

    #[test]
    fn the_kernels_pattern_says_where_its_core_is() {
        let core = |pattern: &str, limit: &str| KernelCore::new(pattern, Some(limit), &facts());
        assert_eq!(core("core\n", "0"), KernelCore::LimitedToZero);
        // A program gets cores of any limit except 1.
        let piped = "|/usr/lib/systemd/systemd-coredump %P %u";
        assert_eq!(core(piped, "0"), KernelCore::Piped("/usr/lib/systemd/systemd-coredump".into()));
        let shown = |pattern: &str| match core(pattern, "unlimited") {
            KernelCore::File(pattern) => pattern.display().display().to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(shown("core"), "/app/core");
        assert_eq!(shown("/var/core.%P.%p.%u.%g.%h"), "/var/core.4711.7.1000.100.node");
        assert_eq!(shown("%E.%c%"), "/app/!usr!bin!dotnet.18446744073709551615");
        assert_eq!(shown("/core.%e.%s.%t.%i"), "/core.*.*.*.*");
        assert_eq!(shown("/%t/core.%P"), "/*/core.4711");
    }

    #[test]
    fn the_newest_file_of_a_pattern_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let pattern = |pattern: &str| {
            PathPattern::new(&expand(&path(pattern).display().to_string(), |_| None), None).find()
        };
        for (name, seconds) in [("core.7.100", 100), ("core.7.300", 300), ("core.7.200.json", 900)] {
            let file = fs::File::create(path(name)).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        }
        assert_eq!(pattern("core.7.%t"), Some(path("core.7.200.json")));
        assert_eq!(pattern("core.7.%t00"), Some(path("core.7.300")));
        assert_eq!(pattern("core.%p.%t.json"), Some(path("core.7.200.json")));
        assert_eq!(pattern("core.8.%t"), None);
        assert_eq!(pattern("core.7.100"), Some(path("core.7.100")));
    }
}
