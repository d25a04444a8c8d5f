//! Processes to attach to, real and simulated, each with a `TMPDIR` of its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// After this something hangs. No test waits that long for anything that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program of a runtime that `cargo xtask runtimes` set up; none where it is not, which is then said.
pub(crate) fn installed(runtime: &str, program: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("DIPC_RUNTIMES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("../runtimes"),
    };
    let path = folder.join(runtime).join(program);
    if !path.exists() {
        println!("not run: .NET {runtime} is not in {}", folder.display());
    }
    path.exists().then_some(path)
}

/// The workload under a real runtime. Killed when dropped.
pub(crate) struct Real {
    child: Child,
    folder: TempDir,
}

impl Real {
    pub(crate) fn start(version: &str) -> Option<Self> {
        let (runtime, assembly) = match version {
            "3.1" => ("3.1.23", "netstandard2.1"),
            _ => ("9.0.1", "net8.0"),
        };
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(installed(runtime, "dotnet")?)
            .arg(crate::testdata().join("workload").join(assembly).join("workload.dll"))
            .env("TMPDIR", folder.path())
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            // It ends when its input does.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let real = Self { child, folder };
        let deadline = Instant::now() + PATIENCE;
        while !real.has_socket() {
            assert!(Instant::now() < deadline, "no socket of .NET {version}");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(real)
    }

    /// Returns true if a process listens on it, which happens after its file appears.
    fn has_socket(&self) -> bool {
        let files = fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().path());
        let is_socket = |path: &PathBuf| path.to_string_lossy().contains("dotnet-diagnostic-");
        files.filter(is_socket).any(|path| UnixStream::connect(path).is_ok())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `dipc sim`, ready. It must end well when this is dropped.
pub(crate) struct Simulated {
    child: Child,
    folder: TempDir,
}

impl Simulated {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_dipc"))
            .arg("sim")
            .args(arguments)
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("ready {} ", child.id())), "{line}");
        Self { child, folder }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What `dipc trace` makes of it.
    pub(crate) fn record(&self, arguments: &[&str]) {
        let output = Command::new(env!("CARGO_BIN_EXE_dipc"))
            .args(["trace", "-q", "-p", &self.pid().to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.child.stdin = None;
        let status = self.child.wait().unwrap();
        if !std::thread::panicking() {
            assert!(status.success(), "{status}");
            let left = fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().file_name());
            let left: Vec<_> =
                left.filter(|name| name.to_string_lossy().starts_with("dotnet-diagnostic-")).collect();
            let own = format!("dotnet-diagnostic-{}-", self.pid());
            assert!(
                !left.iter().any(|name| name.to_string_lossy().starts_with(&own)),
                "{left:?} stay behind"
            );
        }
    }
}
