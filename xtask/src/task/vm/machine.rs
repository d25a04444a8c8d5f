//! One run of a machine.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::initramfs::Initramfs;
use super::kernel::Kernel;
use super::modules;
use super::processor::Processor;
use crate::arguments::VmSettings;
use crate::task::workspace::{self, at_lowest_priority};

/// The files in the folder that a machine writes to: what the program prints, and its exit code.
const OUTPUT: &str = "output";
const STATUS: &str = "status";
/// The folder of the workspace in a machine without the root of this one.
const WORKSPACE: &str = "/workspace";

/// A kernel with the settings that the first process makes.
pub(super) struct Machine<'a> {
    pub(super) name: &'static str,
    pub(super) kernel: Kernel,
    pub(super) processor: Processor,
    pub(super) settings: &'a VmSettings,
    /// SELinux in the place of AppArmor, without a policy.
    pub(super) has_selinux: bool,
}

impl Machine<'_> {
    /// Runs a command line to its end, and prints its output meanwhile.
    pub(super) fn run(&self, folder: &Path, command: &[OsString], limit: Duration) -> Result<()> {
        let run = folder.join("runs").join(self.name);
        let output = run.join("output");
        if run.exists() {
            fs::remove_dir_all(&run)?;
        }
        fs::create_dir_all(&output)?;
        let initramfs = run.join("initramfs.gz");
        fs::write(&initramfs, self.initramfs(folder, command)?)?;
        // It may not be created while the machine is mounting the folder.
        let printed = output.join(OUTPUT);
        File::create(&printed)?;
        let console = run.join("console.log");
        let (emulator, _) = self.processor.emulator();
        let mut qemu = Command::new(emulator);
        qemu.args(self.processor.board());
        qemu.args(["-accel", "tcg,thread=multi", "-cpu", self.processor.model(), "-smp", "2", "-m", "3000"]);
        qemu.args(["-nodefaults", "-display", "none", "-no-reboot"]);
        qemu.arg("-serial").arg(format!("file:{}", console.display()));
        qemu.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(&initramfs);
        let options = self.processor.kernel_options();
        let security = if self.has_selinux { " security=selinux" } else { "" };
        qemu.arg("-append").arg(format!("{options}{security} quiet panic=-1 rdinit=/init"));
        let mut share = |path: &Path, tag: &str, access: &str| {
            // Without `remap` files of different file systems have the same numbers, and mounts end
            // elsewhere.
            let path = path.display();
            let share =
                format!("local,path={path},mount_tag={tag},security_model=none,multidevs=remap{access}");
            qemu.arg("-virtfs").arg(share);
        };
        share(&self.processor.root(folder)?, "host", ",readonly=on");
        share(&output, "output", "");
        if self.processor == Processor::Arm64 {
            share(workspace::root(), "workspace", ",readonly=on");
        }
        let started = at_lowest_priority(&qemu).stdin(Stdio::null()).spawn().context(emulator)?;
        let mut started = Emulator(started);
        let mut printed = File::open(&printed)?;
        let ended = wait(&mut started.0, limit, || copy(&mut printed));
        copy(&mut printed)?;
        println!("files of the program, and the kernel's messages: {}", run.display());
        let Some(ended) = ended? else { bail!("stopped after {} s{}", limit.as_secs(), tail(&console)) };
        let Ok(status) = fs::read_to_string(output.join(STATUS)) else {
            bail!("the machine ended before the program ({ended}){}", tail(&console));
        };
        ensure!(status.trim() == "0", "the program's exit code is {}", status.trim());
        Ok(())
    }

    fn initramfs(&self, folder: &Path, command: &[OsString]) -> Result<Vec<u8>> {
        let mut archive = Initramfs::new();
        for folder in ["bin", "proc", "machine", "modules"] {
            archive.folder(folder);
        }
        let busybox = self.processor.packages(folder)?.busybox()?;
        archive.program("bin/busybox", &fs::read(busybox)?);
        let init = fs::read(workspace::root().join("xtask/vm/init.sh"))?;
        archive.program("init", &init);
        let shares_workspace = self.processor == Processor::Arm64;
        archive.file("settings", settings(self.settings, shares_workspace).as_bytes());
        let current = if shares_workspace { WORKSPACE.into() } else { std::env::current_dir()? };
        archive.file("command", script(&current, command)?.as_bytes());
        let modules = self.kernel.modules.as_deref().map(modules::needed).transpose()?.unwrap_or_default();
        // Each line ends, as `read` of the shell wants it.
        let order: String = modules.iter().flat_map(|(name, _)| [name.as_str(), "\n"]).collect();
        archive.file("modules/order", order.as_bytes());
        for (name, content) in &modules {
            archive.file(&format!("modules/{name}"), content);
        }
        archive.finish()
    }
}

/// A process of QEMU, which is killed if this program returns before its end.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a child ends; `None` if it is still running after `limit`.
fn wait(
    child: &mut Child,
    limit: Duration,
    mut meanwhile: impl FnMut() -> Result<()>,
) -> Result<Option<ExitStatus>> {
    const POLL: Duration = Duration::from_millis(100);
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            return Ok(None);
        }
        meanwhile()?;
        thread::sleep(POLL);
    }
}

/// Copies the rest of a file to standard output.
fn copy(file: &mut File) -> Result<()> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut out = io::stdout().lock();
    out.write_all(&bytes)?;
    out.flush()?;
    Ok(())
}

/// Returns the last lines of the kernel's messages, for an error.
fn tail(console: &Path) -> String {
    const LINES: usize = 12;
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(LINES)).flat_map(|line| ["\n  ", line]).collect()
}

/// Returns the variables that `init.sh` reads.
fn settings(settings: &VmSettings, shares_workspace: bool) -> String {
    let paranoid = settings.perf_event_paranoid.map(|level| level.to_string()).unwrap_or_default();
    let workspace = if shares_workspace { "workspace" } else { "" };
    format!("CGROUP={}\nPERF_EVENT_PARANOID={paranoid}\nWORKSPACE={workspace}\n", settings.cgroup)
}

/// Returns a shell script that runs a command line in a folder.
fn script(folder: &Path, command: &[OsString]) -> Result<String> {
    let folder = folder.as_os_str().to_owned();
    let line = |words: &[OsString]| -> Result<String> {
        let words = words.iter().map(|word| Ok(quoted(word.to_str().context("arguments are UTF-8")?)));
        Ok(words.collect::<Result<Vec<_>>>()?.join(" "))
    };
    Ok(format!("cd {} && exec {}\n", line(&[folder])?, line(command)?))
}

/// Returns a word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_every_word_as_it_is() {
        let words = ["printf", "%s\n", "two words", "it's", "$HOME `id` \\ \"x\"", ""];
        let script = script(Path::new("/"), &words.map(OsString::from)).unwrap();
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), words[2..].join("\n") + "\n");
    }

    #[test]
    fn a_program_that_does_not_end_is_reported() {
        let mut child = Emulator(Command::new("sleep").arg("1000").spawn().unwrap());
        assert!(wait(&mut child.0, Duration::ZERO, || Ok(())).unwrap().is_none());
        let mut child = Emulator(Command::new("true").spawn().unwrap());
        let ended = wait(&mut child.0, Duration::from_secs(1000), || Ok(())).unwrap();
        assert!(ended.unwrap().success());
    }

    #[test]
    fn settings_are_variables_of_the_shell() {
        let settings_of =
            |level, shares| settings(&VmSettings { cgroup: "v1".into(), perf_event_paranoid: level }, shares);
        assert_eq!(settings_of(Some(-1), false), "CGROUP=v1\nPERF_EVENT_PARANOID=-1\nWORKSPACE=\n");
        assert_eq!(settings_of(None, true), "CGROUP=v1\nPERF_EVENT_PARANOID=\nWORKSPACE=workspace\n");
    }
}
