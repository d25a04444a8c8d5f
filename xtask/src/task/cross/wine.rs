//! Windows programs under Wine, on Debian without a display.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::task::runtimes;
use crate::task::steps::Steps;
use crate::task::toolchain::{Toolchain, program};
use crate::task::workspace::execute;

/// A deadline for each operation, with room for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The source of a library that Wine 8 lacks and Rust's standard library uses for random numbers.
const BCRYPTPRIMITIVES: &str = "
__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *, unsigned long);
__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *bytes, unsigned long long count) {
  while (count) {
    unsigned long part = count > 0x10000000 ? 0x10000000 : (unsigned long)count;
    if (!SystemFunction036(bytes, part)) return 0;
    bytes += part;
    count -= part;
  }
  return 1;
}
";

/// Wine, with a folder of its own.
pub(crate) struct Wine {
    program: PathBuf,
    prefix: PathBuf,
    toolchain: Toolchain,
    target: &'static str,
}

pub(super) fn run(steps: &mut Steps, target: &'static str) {
    let wine = match Wine::prepare(target) {
        Ok(wine) => wine,
        Err(missing) => return steps.not_run("Windows programs under Wine", &format!("{missing:#}")),
    };
    steps.run("tests of dipc-transport under Wine", || {
        execute(wine.cargo("test").args(["-p", "dipc-transport"]))
    });
    steps.run("dipc demo under Wine", || wine.test_demo());
    match runtimes::windows_server() {
        Ok(server) => {
            steps.run("dipc on .NET 10 for Windows under Wine", || wine.test_dipc(&server));
            steps.run("a reversed port of .NET 10 for Windows under Wine", || wine.test_port(&server));
        }
        Err(error) => steps.not_run("dipc on .NET 10 for Windows", &format!("{error:#}")),
    }
}

impl Wine {
    /// Creates Wine's folder, with the missing library.
    pub(crate) fn prepare(target: &'static str) -> Result<Self> {
        let toolchain = Toolchain::for_target(target)?;
        let gcc = program(&["x86_64-w64-mingw32-gcc"], "Debian: apt-get install gcc-mingw-w64-x86-64-win32")?;
        // Debian's package installs no program in PATH.
        let program = program(&["wine64", "/usr/lib/wine/wine64"], "Debian: apt-get install wine64")?;
        let folder = Toolchain::target_folder()?;
        let wine = Self { program, prefix: folder.join("wine"), toolchain, target };
        let library = wine.prefix.join("drive_c/windows/system32/bcryptprimitives.dll");
        if !library.exists() {
            fs::create_dir_all(&wine.prefix)?;
            execute(wine.start("wineboot").arg("-i"))?;
            let source = folder.join("bcryptprimitives.c");
            fs::write(&source, BCRYPTPRIMITIVES)?;
            execute(
                Command::new(gcc).args(["-O2", "-shared", "-o"]).arg(library).arg(source).arg("-ladvapi32"),
            )?;
        }
        Ok(wine)
    }

    /// Returns the command that starts a Windows program.
    pub(crate) fn start(&self, windows_program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        self.set_up(&mut command);
        command.arg(windows_program);
        command
    }

    fn set_up(&self, command: &mut Command) {
        command.env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all");
        command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    }

    fn cargo(&self, subcommand: &str) -> Command {
        let mut command = self.toolchain.cargo(subcommand, self.target);
        self.set_up(&mut command);
        command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &self.program);
        command
    }

    fn built(&self, path: &str) -> Result<PathBuf> {
        Ok(Toolchain::target_folder()?.join(self.target).join("debug").join(path))
    }

    /// Tests that `dipc demo` finds and records the runtime that it simulates.
    fn test_demo(&self) -> Result<()> {
        execute(self.cargo("build").args(["-p", "dipc-cli"]))?;
        let output = self.dipc(&self.built("dipc.exe")?, &["demo"])?;
        ensure!(output.contains("Events     "), "dipc demo: {output}");
        Ok(())
    }

    /// Tests `dipc` with a runtime: discovery, information, environment, a recording and its statistics.
    fn test_dipc(&self, server: &Path) -> Result<()> {
        execute(self.cargo("build").args(["-p", "dipc-cli"]))?;
        let dipc = self.built("dipc.exe")?;
        let _server = ChildGuard::start(self.start(server).args(SERVER_ARGUMENTS))?;
        let pid = self.find(&dipc)?;
        let pid = pid.as_str();
        let info = self.dipc(&dipc, &["info", "-p", pid])?;
        ensure!(info.contains("Windows") && info.contains("10.0"), "dipc info: {info}");
        let environment = self.dipc(&dipc, &["env", "-p", pid])?;
        ensure!(environment.contains("WINEPREFIX="), "dipc env: {environment}");
        let recording = Toolchain::target_folder()?.join("wine.nettrace");
        let path = recording.to_string_lossy();
        self.dipc(&dipc, &["trace", "-p", pid, "--duration", "2s", "--output", &path])?;
        let stat = self.dipc(&dipc, &["stat", &path])?;
        ensure!(stat.contains("Microsoft-Windows-DotNETRuntimeRundown"), "dipc stat: {stat}");
        let summary = stat.split("\n\n").next().unwrap_or_default();
        println!("{info}\n{summary}");
        Ok(())
    }

    /// Returns the pid of the only runtime, as soon as it is listed.
    fn find(&self, dipc: &Path) -> Result<String> {
        let started = Instant::now();
        loop {
            let listing = self.dipc(dipc, &["ps", "--format", "json"])?;
            let listing: serde_json::Value = serde_json::from_str(&listing).context(listing.clone())?;
            if let Some(pid) = listing[0]["pid"].as_u64() {
                ensure!(listing[0]["error"].is_null(), "dipc ps: {listing}");
                return Ok(pid.to_string());
            }
            ensure!(started.elapsed() < TIMEOUT, "dipc ps shows no runtime after {TIMEOUT:?}");
            thread::sleep(Duration::from_millis(500));
        }
    }

    fn dipc(&self, dipc: &Path, arguments: &[&str]) -> Result<String> {
        let output = self.start(dipc).args(arguments).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "dipc {}: {}", arguments.join(" "), output.status);
        Ok(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
    }

    /// Tests that a suspended runtime connects to a port and advertises itself.
    fn test_port(&self, server: &Path) -> Result<()> {
        const NAME: &str = "dipc-xtask-port";
        execute(self.cargo("build").args(["-p", "dipc-transport", "--examples"]))?;
        let port = ChildGuard::start(self.start(self.built("examples/port.exe")?).arg(NAME))?;
        println!("{}", port.line_with("listening")?);
        let runtime =
            ChildGuard::start(self.start(server).args(SERVER_ARGUMENTS).env("DOTNET_DiagnosticPorts", NAME))?;
        println!("{}", port.line_with("accepted")?);
        println!("{}", port.line_with("ADVR_V1")?);
        drop(runtime);
        println!("{}", port.line_with("closed")?);
        Ok(())
    }
}

/// The arguments with which the server program runs until its standard input is closed.
const SERVER_ARGUMENTS: [&str; 2] = ["server", "start"];

/// A child process, killed when dropped, with the lines of its standard output.
struct ChildGuard {
    child: Child,
    lines: Receiver<String>,
}

impl ChildGuard {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = BufReader::new(child.stdout.take().context("standard output")?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Ok(Self { child, lines })
    }

    fn line_with(&self, text: &str) -> Result<String> {
        let started = Instant::now();
        while let Some(left) = TIMEOUT.checked_sub(started.elapsed()) {
            let line = self.lines.recv_timeout(left).with_context(|| format!("no line with '{text}'"))?;
            if line.contains(text) {
                return Ok(line);
            }
        }
        bail!("no line with '{text}' in {TIMEOUT:?}")
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
