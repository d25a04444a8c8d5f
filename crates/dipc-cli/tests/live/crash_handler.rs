//! `dipc crash-handler`: its settings of the kernel, in a folder like the kernel's, and core dumps as the
//! kernel gives them to it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::executable;
use crate::program::{Finished, Running, run};
use crate::runtime::Runtime;
use crate::workload::Workload;

/// A program that is installed as the handler of a folder like the kernel's.
struct Handler {
    folder: TempDir,
}

const SYSTEMD: &str = "|/usr/lib/systemd/systemd-coredump %P %u %g %s %t %c %h";

impl Handler {
    fn new(pattern: &str) -> Self {
        // The kernel's patterns are short, and so must be the paths.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        executable::copy(env!("CARGO_BIN_EXE_dipc"), folder.path().join("dipc"));
        fs::write(folder.path().join("core_pattern"), format!("{pattern}\n")).unwrap();
        fs::write(folder.path().join("core_pipe_limit"), "0\n").unwrap();
        Self { folder }
    }

    fn installed(arguments: &[&str]) -> Self {
        let handler = Self::new("core");
        let cores = handler.cores();
        let folder = ["install", "--folder", cores.to_str().unwrap()];
        let is_given = arguments.contains(&"--min-free");
        let free = if is_given { &[][..] } else { &["--min-free", "1MB"] };
        handler.run(&[&folder, free, arguments].concat()).with_code(0);
        handler
    }

    fn cores(&self) -> PathBuf {
        self.folder.path().join("cores")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let at = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(at("dipc"));
        command.arg("crash-handler").args(arguments);
        command.arg("--kernel").arg(self.folder.path()).arg("--settings").arg(at("settings.json"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        Running::start(self.command(arguments)).finish()
    }

    /// Starts the handler as the kernel does, for the process `pid`.
    fn taking(&self, pid: u32, time: &str) -> std::process::Child {
        let pid = pid.to_string();
        // The kernel's handlers have no environment to speak of.
        self.command(&["take", &pid, &pid, "6", time])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Gives a core dump to the handler.
    fn take(&self, core: &[u8], time: &str) {
        let mut child = self.taking(std::process::id(), time);
        // A handler that has enough does not read the rest.
        let _ = child.stdin.take().unwrap().write_all(core);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn setting(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap().trim_end().to_owned()
    }

    /// The names of the files in the folder of core dumps, by their endings.
    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(self.cores()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.to_str().unwrap().ends_with(ending));
        files.sort();
        files
    }

    fn facts(&self) -> Value {
        let [file] = &self.files(".json")[..] else { panic!("{:?}", self.files("")) };
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    }
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn another_handler_is_replaced_only_by_force_and_restored() {
    let handler = Handler::new(SYSTEMD);
    let cores = handler.cores();
    let install = ["install", "--folder", cores.to_str().unwrap()];
    let refused = handler.run(&install).with_code(1);
    refused.assert_error_names(&["systemd-coredump"]);
    assert!(refused.stderr.contains("help: --force"), "{}", refused.stderr);
    assert_eq!(handler.setting("core_pattern"), SYSTEMD);
    assert!(
        handler.run(&["status"]).with_code(0).text().contains("given to /usr/lib/systemd/systemd-coredump")
    );

    handler.run(&[&install[..], &["--force"]].concat()).with_code(0);
    let program = handler.folder.path().join("dipc");
    let settings = handler.folder.path().join("settings.json");
    let expected =
        format!("|{} crash-handler take --settings {} %P %I %s %t", program.display(), settings.display());
    assert_eq!(handler.setting("core_pattern"), expected);
    assert_eq!(handler.setting("core_pipe_limit"), "64");
    assert_eq!(fs::metadata(&cores).unwrap().permissions().mode() & 0o777, 0o700);
    // Other settings of its own need no force, and do not change what is restored.
    handler.run(&[&install[..], &["--keep", "3"]].concat()).with_code(0);
    assert!(handler.run(&[]).with_code(0).text().contains("the last 3"));

    handler.run(&["uninstall"]).with_code(0);
    assert_eq!(
        (handler.setting("core_pattern"), handler.setting("core_pipe_limit")),
        (SYSTEMD.into(), "0".into())
    );
    handler.run(&["uninstall"]).with_code(1).assert_error_names(&["systemd-coredump"]);
}

#[test]
fn a_program_that_others_can_replace_is_not_installed() {
    let handler = Handler::new("core");
    fs::set_permissions(handler.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let cores = handler.cores();
    let refused = handler.run(&["install", "--folder", cores.to_str().unwrap()]).with_code(1);
    refused.assert_error_names(&["can be changed by other users"]);
    assert!(refused.stderr.contains("/usr/local/bin"), "{}", refused.stderr);
    assert_eq!(handler.setting("core_pattern"), "core");
}

#[test]
fn a_core_dump_is_kept_with_its_facts_and_overview() {
    let handler = Handler::installed(&["--keep", "2"]);
    let core = testdata::bytes("cores/deadlock-10.core.xz");
    handler.take(&core, "1764500000");
    let [kept] = &handler.files(".gz")[..] else { panic!("{:?}", handler.files("")) };
    assert!(unpacked(kept) == core, "the core dump is another one");
    let facts = handler.facts();
    assert_eq!(facts["pid"], std::process::id());
    assert_eq!((&facts["signal"], &facts["time"]), (&6.into(), &1_764_500_000.into()));
    assert_eq!((&facts["core_bytes"], &facts["cut"]), (&core.len().into(), &Value::Null));
    let [overview] = &handler.files(".txt")[..] else { panic!("{:?}", handler.files("")) };
    let expected = run(["dump", "analyze", kept.to_str().unwrap()]).with_code(0).text();
    assert!(expected.contains("Deadlock"), "{expected}");
    assert_eq!(fs::read_to_string(overview).unwrap(), expected);
    for file in handler.files("") {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }

    // The oldest makes room, with all its files; others' files are not touched.
    fs::write(handler.cores().join("core.mine"), "").unwrap();
    for time in ["1764500001", "1764500002"] {
        handler.take(b"not a core dump", time);
    }
    let names: Vec<_> = handler.files("").iter().map(|file| file.display().to_string()).collect();
    assert!(!names.iter().any(|name| name.contains("1764500000")), "{names:?}");
    assert_eq!(names.len(), 7, "{names:?}");
    assert_eq!(handler.run(&["status"]).with_code(0).text().matches(".gz\n").count(), 2);
    let overview = fs::read_to_string(&handler.files(".txt")[0]).unwrap();
    assert!(overview.starts_with("error: "), "{overview}");
}

#[test]
fn limits_end_a_core_dump_and_not_the_handler() {
    // Random bytes are as large compressed.
    let mut core = vec![0; 4 << 20];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut core).unwrap();
    let handler = Handler::installed(&["--max-size", "1MB"]);
    handler.take(&core, "1764500000");
    assert_eq!(handler.facts()["cut"], "size");
    let kept = unpacked(&handler.files(".gz")[0]);
    assert!(kept.len() > 900_000 && kept.len() < 2_000_000 && core.starts_with(&kept), "{}", kept.len());

    // A kernel that never ends: the process waits for a second.
    let handler = Handler::installed(&["--max-wait", "1s"]);
    let mut child = handler.taking(std::process::id(), "1764500000");
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(b"begins").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    drop(pipe);
    assert_eq!((&handler.facts()["cut"], &handler.facts()["core_bytes"]), (&"time".into(), &6.into()));

    // Without room, the facts alone are kept.
    let handler = Handler::installed(&["--min-free", "900000000GB"]);
    handler.take(&core, "1764500000");
    assert_eq!(handler.facts()["cut"], "no-space");
    assert!(handler.files(".gz").is_empty());
}

#[test]
fn a_handler_that_is_killed_leaves_nothing() {
    let handler = Handler::installed(&[]);
    let mut child = handler.taking(std::process::id(), "1764500000");
    let mut pipe = child.stdin.take().unwrap();
    // More than a pipe holds: the handler has read from it.
    pipe.write_all(&vec![7; 1 << 20]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(handler.files("").is_empty(), "{:?}", handler.files(""));
}

#[test]
fn twenty_crashes_at_once_are_kept() {
    let handler = Handler::installed(&["--keep", "100"]);
    let core = testdata::bytes("cores/parked-mini.core.xz");
    std::thread::scope(|scope| {
        for number in 0..20 {
            let (handler, core) = (&handler, &core);
            scope.spawn(move || handler.take(core, &(1_764_500_000 + number).to_string()));
        }
    });
    for ending in [".gz", ".json", ".txt"] {
        assert_eq!(handler.files(ending).len(), 20, "{:?}", handler.files(""));
    }
    assert!(handler.files(".gz").iter().all(|file| unpacked(file) == core));
}

#[test]
fn copies_for_privacy_are_all_that_is_kept() {
    let handler = Handler::installed(&["--privacy"]);
    handler.take(&testdata::bytes("cores/shop-heap.core.xz"), "1764500000");
    let [kept] = &handler.files(".stripped")[..] else { panic!("{:?}", handler.files("")) };
    let exceptions = run(["dump", "analyze", kept.to_str().unwrap(), "threads"]).with_code(0);
    assert!(exceptions.text().lines().count() > 3, "{}", exceptions.text());
    assert_eq!(handler.files("").len(), 2, "{:?}", handler.files(""));
}

#[test]
fn other_processes_leave_nothing_with_dotnet_only() {
    let handler = Handler::installed(&["--dotnet-only"]);
    handler.take(b"a core dump of a test", "1764500000");
    assert!(handler.files("").is_empty(), "{:?}", handler.files(""));
    // A program that was compiled ahead of time, without a library of the runtime.
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let mut child = handler.taking(workload.pid(), "1764500000");
    child.stdin.take().unwrap().write_all(b"a core dump").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(handler.facts()["is_dotnet"], true);
}
