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

use anyhow::{Result, ensure};

use self::debian::Packages;
use self::kernel::{Kernel, Source};
use self::machine::Machine;
use self::processor::Processor;
use crate::arguments::{ARM64_MACHINE, MACHINES, ROOTS, TRIALS, VmOptions};
use crate::task::steps::Steps;
use crate::task::{runtimes, setup, workspace};

/// The packages of the trials with containers.
const CONTAINER_PACKAGES: [&str; 3] = ["apparmor", "libseccomp2", "runc"];

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
    ensure!(!is_trial || !is_chosen(ARM64_MACHINE), "{ARM64_MACHINE} needs a program for arm64, after --");
    let command = if is_trial { trial(&options.trial, &folder)? } else { options.command.clone() };
    let mut steps = Steps::new(options.require_all);
    for name in MACHINES.into_iter().filter(|name| is_chosen(name)) {
        let processor = if name == ARM64_MACHINE { Processor::Arm64 } else { Processor::X86_64 };
        match prepare(name, processor, &folder) {
            Ok(kernel) => {
                let machine = Machine { name, kernel, processor, settings: &options.settings };
                steps.run(name, || machine.run(&folder, &command, options.time));
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
    workspace::execute(&mut workspace::cargo(["build", "-p", "dipc-cli"]))?;
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
        paths.push(unpacked(Packages::own(folder), &CONTAINER_PACKAGES)?);
    }
    if name == ROOTS {
        paths.push(unpacked(Packages::bullseye(folder)?, &OLD_ROOT_PACKAGES)?);
    }
    Ok(iter::once("sh".into()).chain(paths.into_iter().map(OsString::from)).collect())
}

/// Returns the folder with these packages of Debian, each unpacked in a folder of its name.
fn unpacked(packages: Packages, names: &[&str]) -> Result<PathBuf> {
    for name in names {
        packages.unpacked(name)?;
    }
    Ok(packages.into_folder())
}
