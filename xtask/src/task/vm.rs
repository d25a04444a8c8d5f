//! `cargo xtask vm`: programs in small virtual machines with other kernels, made from packages of Debian and
//! the files of this machine.
//!
//! A machine has a kernel, an initramfs (busybox, the kernel's modules for 9p, `xtask/vm/init.sh`) and, as
//! its root, the root of this machine, read-only. That of arm64 has a root of packages in its place, and the
//! workspace at `/workspace`. QEMU emulates the processor. Everything is kept in `target/vm`.

mod debian;
mod initramfs;
mod kernel;
mod machine;
mod modules;
mod processor;

use std::ffi::OsString;
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use self::debian::Packages;
use self::kernel::{Kernel, Source};
use self::machine::Machine;
use self::processor::Processor;
use crate::arguments::{ARM64_MACHINE, MACHINES, ROOTS, SELINUX, TRIALS, VmOptions};
use crate::task::steps::Steps;
use crate::task::toolchain::Toolchain;
use crate::task::{runtimes, setup, workspace};

/// The packages of all trials but the first.
const TRIAL_PACKAGES: [&str; 5] = ["apparmor", "busybox-static", "checkpolicy", "libseccomp2", "runc"];

/// The packages of a root with an old C library, in which .NET starts.
const OLD_ROOT_PACKAGES: [&str; 4] = ["libc6", "libgcc-s1", "libstdc++6", "zlib1g"];

/// Returns the origin of a machine's kernel.
fn source(machine: &str) -> Source<'_> {
    match machine.strip_prefix("debian-") {
        Some(series) => Source::Debian { series, processor: Processor::X86_64 },
        None if machine == ARM64_MACHINE => Source::Debian { series: "6.12", processor: Processor::Arm64 },
        None => Source::Built,
    }
}

pub(crate) fn run(options: &VmOptions) -> Result<()> {
    let folder = workspace::target()?.join("vm");
    // These folders are empty in a machine.
    for hidden in ["/tmp", "/run"] {
        ensure!(!folder.starts_with(hidden), "machines do not see {}, below {hidden}", folder.display());
    }
    let is_chosen = |name: &str| match &options.machines[..] {
        [] => name != ARM64_MACHINE,
        chosen => chosen.iter().any(|chosen| chosen == name),
    };
    let is_trial = options.command.is_empty();
    let is_own_trial = is_trial && options.trial != TRIALS[0];
    ensure!(!is_own_trial || !is_chosen(ARM64_MACHINE), "{ARM64_MACHINE} has no trial {}", options.trial);
    let runs_trial = is_trial && MACHINES.iter().any(|name| *name != ARM64_MACHINE && is_chosen(name));
    let command = if runs_trial { trial(&options.trial, &folder)? } else { options.command.clone() };
    let mut steps = Steps::new(options.require_all);
    for name in MACHINES.into_iter().filter(|name| is_chosen(name)) {
        let processor = if name == ARM64_MACHINE { Processor::Arm64 } else { Processor::X86_64 };
        match prepare(name, processor, &folder) {
            Ok(kernel) => {
                let has_selinux = is_trial && options.trial == SELINUX;
                let settings = &options.settings;
                let machine = Machine { name, kernel, processor, settings, has_selinux };
                steps.run(name, || {
                    let command = match processor {
                        Processor::Arm64 if is_trial => arm64_trial(&folder)?,
                        _ => command.clone(),
                    };
                    machine.run(&folder, &command, options.time)
                });
            }
            Err(error) => steps.not_run(name, &format!("{error:#}")),
        }
    }
    steps.finish()
}

/// Returns a machine's kernel, or an error that says what is missing.
fn prepare(machine: &str, processor: Processor, folder: &Path) -> Result<Kernel> {
    let missing = missing(&[processor.emulator()]);
    ensure!(missing.is_empty(), "QEMU is not installed (Debian: apt-get install {missing})");
    source(machine).prepare(folder)
}

/// Returns the packages of the tools that are not installed.
fn missing(tools: &[(&str, &'static str)]) -> String {
    let missing = tools.iter().filter(|(program, _)| !setup::is_present(program));
    missing.map(|(_, package)| *package).collect::<Vec<_>>().join(" ")
}

/// Returns the programs that machines need, each with its Debian package.
#[cfg(test)]
pub(crate) fn tools() -> impl Iterator<Item = (&'static str, &'static str)> {
    let emulators = [Processor::X86_64, Processor::Arm64].map(Processor::emulator);
    kernel::TOOLS.into_iter().chain(emulators)
}

/// Returns the command line of a trial, after building `dipc` and whatever else the trial needs.
fn trial(name: &str, folder: &Path) -> Result<Vec<OsString>> {
    // Programs for other roots are static, as those of a release are.
    let linking: &[&str] = if name == ROOTS { &["--", "-Ctarget-feature=+crt-static"] } else { &[] };
    let build = ["rustc", "-p", "dipc-cli", "--bin", "dipc"];
    workspace::execute(&mut workspace::cargo(build.iter().chain(linking).copied()))?;
    let target = workspace::target()?;
    let runtimes_folder = runtimes::folder(None)?;
    let setups = runtimes::set_up_all(&runtimes_folder, None);
    for setup in &setups {
        // The script reports a runtime that is not there.
        if let Err(error) = &setup.path {
            println!("not set up: .NET {}: {error:#}", setup.runtime.name);
        }
    }
    let script = if name == TRIALS[0] { "trial" } else { name };
    let script = workspace::root().join(format!("xtask/vm/{script}.sh"));
    let workloads = workspace::root().join("testdata/workload");
    let mut paths = vec![script, target.join("debug/dipc"), runtimes_folder, workloads];
    if name == TRIALS[0] {
        let example = ["build", "-p", "dipc-client", "--all-features", "--example", "user_events"];
        workspace::execute(&mut workspace::cargo(example))?;
        paths.push(target.join("debug/examples/user_events"));
    } else {
        paths.push(unpacked(Packages::own(folder), &TRIAL_PACKAGES)?);
    }
    if name == ROOTS {
        paths.push(unpacked(Packages::bullseye(folder)?, &OLD_ROOT_PACKAGES)?);
        paths.push(folder.join("glibc"));
        match runtimes::musl_library() {
            Ok(library) => paths.push(library),
            // The script reports that it was not given.
            Err(error) => println!("not set up: {error:#}"),
        }
    }
    Ok(iter::once("sh".into()).chain(paths.into_iter().map(OsString::from)).collect())
}

/// Returns the command line of the trial of arm64, after building `dipc` as it is released there. Paths are
/// those in the machine.
fn arm64_trial(folder: &Path) -> Result<Vec<OsString>> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    const LINKER: (&str, &str) = ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross");
    let missing = missing(&[LINKER]);
    ensure!(missing.is_empty(), "dipc for arm64 needs a linker (Debian: apt-get install {missing})");
    let target = workspace::target()?.join("arm64");
    let mut build = Toolchain::install_for_target(TARGET)?.command("build", TARGET);
    build.arg("--target-dir").arg(&target).args(["-p", "dipc-cli"]);
    build.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER.0);
    build.env("RUSTFLAGS", "-Ctarget-feature=+crt-static");
    workspace::execute(&mut build)?;
    let server = runtimes::arm64_server(&folder.join("runtimes"))?;
    // Programs of known content in the place of the server's.
    let own = |assembly: &str| testdata::single_file_program(&server, assembly, &folder.join("programs"));
    let (deadlock, awaits) = (own("workload/deadlock/deadlock10.dll"), own("workload/awaits/awaits10.dll"));
    let rooted = own("workload/rooted/rooted10.dll");
    let script = workspace::root().join("xtask/vm/arm64.sh");
    let dipc = target.join(TARGET).join("debug/dipc");
    let inside = |path: PathBuf| {
        let path = path.strip_prefix(workspace::root());
        path.map(|path| path.as_os_str().to_owned()).context("arm64 sees the workspace alone")
    };
    let paths = [script, dipc, server, deadlock, awaits, rooted].map(inside);
    iter::once(Ok("sh".into())).chain(paths).collect()
}

/// Returns the folder with these packages of Debian, each unpacked in a folder of its name.
fn unpacked(packages: Packages, names: &[&str]) -> Result<PathBuf> {
    for name in names {
        packages.unpacked(name)?;
    }
    Ok(packages.into_folder())
}
