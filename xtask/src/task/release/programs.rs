//! The programs of a release: static files for each platform.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Build;
use crate::task::cross::wine::Wine;
use crate::task::steps::Steps;
use crate::task::toolchain::{Toolchain, program};
use crate::task::workspace::{execute, on_all_processors};

/// Cargo's profile of released programs, and the name of its folder.
const PROFILE: &str = "dist";

/// A program of a release. Both are built of one source.
pub(super) struct Program {
    /// The name of its file, without `.exe`.
    pub(super) name: &'static str,
    /// Cargo's features.
    pub(super) features: &'static str,
    /// Maximum size, in bytes.
    largest: u64,
}

pub(super) const DIPC: Program = Program { name: "dipc", features: "", largest: 14 << 20 };
/// The program with the writer of tables.
pub(super) const FLEET: Program = Program { name: "dipc-fleet", features: "cloud", largest: 18 << 20 };
pub(super) const PROGRAMS: [Program; 2] = [DIPC, FLEET];

/// The targets that programs are released for.
pub(super) const TARGETS: [&str; 3] =
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-pc-windows-gnu"];

/// For each target: its name in the names of files, the prefix of its compiler's name, Debian's packages of
/// it, and Debian's architecture.
const DETAILS: [(&str, &str, &str, Option<&str>); 3] = [
    ("x86_64-linux", "x86_64-linux-gnu-", "gcc", Some("amd64")),
    ("aarch64-linux", "aarch64-linux-gnu-", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross", Some("arm64")),
    ("x86_64-windows", "x86_64-w64-mingw32-", "gcc-mingw-w64-x86-64-win32", None),
];

/// Returns the compilers of other systems, each with its Debian packages.
#[cfg(test)]
pub(crate) fn compilers() -> impl Iterator<Item = (String, &'static str)> {
    DETAILS.iter().skip(1).map(|(_, tools, packages, _)| (format!("{tools}gcc"), *packages))
}

/// A system that programs are released for.
pub(super) struct Platform {
    /// The name in the names of files.
    pub(super) name: &'static str,
    pub(super) target: &'static str,
    /// The prefix of the names of its compiler and of `strip`.
    tools: &'static str,
    /// Debian's package with these.
    tools_package: &'static str,
    /// Debian's name of the architecture, which containers use too.
    pub(super) architecture: Option<&'static str>,
    pub(super) toolchain: Toolchain,
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
impl Platform {
    /// Returns the platform of this machine.
    pub(super) fn native() -> Self {
        let [target, ..] = TARGETS;
        let [(name, tools, tools_package, architecture), ..] = DETAILS;
        let toolchain = Toolchain::for_target(target).unwrap();
        Self { name, target, tools, tools_package, architecture, toolchain }
    }
}

impl Platform {
    pub(super) fn is_windows(&self) -> bool {
        self.target.contains("windows")
    }

    /// Returns the name of a program's file.
    pub(super) fn file_name(&self, program: &Program) -> String {
        let extension = if self.is_windows() { ".exe" } else { "" };
        format!("{}{extension}", program.name)
    }

    /// Returns the command of a program of the compiler's package, such as `gcc`.
    pub(super) fn tool(&self, name: &str) -> Command {
        Command::new(format!("{}{name}", self.tools))
    }

    /// Returns true if this machine can run the program.
    pub(super) fn is_native(&self) -> bool {
        !self.is_windows() && self.target.starts_with(env::consts::ARCH) && cfg!(target_os = "linux")
    }

    /// Returns Cargo's target folder for the platform. Builds that share one wait for one another.
    fn target_folder(&self, build: &Build<'_>) -> PathBuf {
        build.target.join(self.name)
    }

    /// Returns a program as it was linked, with its symbols.
    pub(super) fn linked(&self, build: &Build<'_>, program: &Program) -> PathBuf {
        build.target.join("linked").join(self.name).join(self.file_name(program))
    }

    /// Returns a program as it is released, without symbols.
    pub(super) fn stripped(&self, build: &Build<'_>, program: &Program) -> PathBuf {
        build.target.join("stripped").join(self.name).join(self.file_name(program))
    }
}

/// Returns the platforms that this machine can build for; the others are reported as not run.
pub(super) fn available(steps: &mut Steps) -> Vec<Platform> {
    let mut platforms = Vec::new();
    for (target, (name, tools, tools_package, architecture)) in TARGETS.into_iter().zip(DETAILS) {
        let toolchain =
            program(&[&format!("{tools}gcc")], &format!("Debian: apt-get install {tools_package}"))
                .and_then(|_| Toolchain::install_for_target(target));
        match toolchain {
            Ok(toolchain) => {
                platforms.push(Platform { name, target, tools, tools_package, architecture, toolchain });
            }
            Err(missing) => steps.not_run(&format!("program for {name}"), &format!("{missing:#}")),
        }
    }
    platforms
}

/// Builds the programs of all platforms, as many at once as there are processors: linking, most of the time,
/// is the work of one.
pub(super) fn build_all(build: &Build<'_>, platforms: &[Platform]) -> Result<()> {
    on_all_processors(platforms, |platform| {
        self::build(build, platform).with_context(|| format!("program for {}", platform.name))
    })
}

/// Builds a platform's programs, and removes their symbols.
fn build(build: &Build<'_>, platform: &Platform) -> Result<()> {
    PROGRAMS.iter().try_for_each(|program| {
        link(build, platform, program)?;
        strip(build, platform, program)?;
        check(build, &platform.stripped(build, program), program.largest)
    })
}

fn link(build: &Build<'_>, platform: &Platform, program: &Program) -> Result<()> {
    let Platform { target, tools, .. } = platform;
    let mut cargo = platform.toolchain.command("build", target);
    cargo.current_dir(&build.sources).arg("--target-dir").arg(platform.target_folder(build));
    cargo.args(["--profile", PROFILE, "--locked", "--package", "dipc-cli", "--features", program.features]);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(build, platform)?);
    let underscored = target.replace('-', "_");
    // For libraries in C.
    cargo.env(format!("CC_{underscored}"), format!("{tools}gcc"));
    cargo.env(format!("AR_{underscored}"), format!("{tools}ar"));
    // Rust's own choice for this machine is LLD, which a linker that is named is not.
    if !platform.is_native() {
        cargo.env(format!("CARGO_TARGET_{}_LINKER", underscored.to_uppercase()), format!("{tools}gcc"));
    }
    // The symbols are needed for the table of sizes, and are removed afterwards.
    cargo.env("CARGO_PROFILE_DIST_STRIP", "none");
    cargo.env("SOURCE_DATE_EPOCH", build.release.time.to_string());
    execute(&mut cargo)?;
    // The next program is linked to the same place.
    let made = platform.target_folder(build).join(target).join(PROFILE).join(platform.file_name(&DIPC));
    let kept = platform.linked(build, program);
    fs::create_dir_all(kept.parent().context("a folder")?)?;
    fs::copy(&made, kept).with_context(|| made.display().to_string())?;
    Ok(())
}

fn strip(build: &Build<'_>, platform: &Platform, program: &Program) -> Result<()> {
    let stripped = platform.stripped(build, program);
    fs::create_dir_all(stripped.parent().context("a folder")?)?;
    let mut strip = platform.tool("strip");
    strip.env("SOURCE_DATE_EPOCH", build.release.time.to_string());
    execute(strip.arg("--strip-all").arg("-o").arg(stripped).arg(platform.linked(build, program)))
        .with_context(|| format!("Debian: apt-get install {}", platform.tools_package))
}

/// Returns the compiler's flags: static, and without names of this machine's folders.
fn flags(build: &Build<'_>, platform: &Platform) -> Result<OsString> {
    let mut flags = Vec::new();
    let mut rename = |folder: &Path, name: &str| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(folder);
        flag.push("=");
        flag.push(name);
        flags.push(flag);
    };
    rename(&cargo_home()?, "/cargo");
    if let Some(sources) = platform.toolchain.std_sources() {
        rename(&sources, "/rust");
    }
    // The last flag that fits a path applies.
    rename(&platform.target_folder(build), "/target");
    rename(&build.sources, "/dipc");
    flags.push("-Ctarget-feature=+crt-static".into());
    if platform.target == "x86_64-unknown-linux-gnu" && platform.is_native() {
        // Rust links with LLD here, which merges equal functions and packs the relocations of
        // position-independent programs: 0.6 MB.
        flags.push("-Clink-arg=-Wl,--icf=all".into());
        flags.push("-Clink-arg=-Wl,-z,pack-relative-relocs".into());
    }
    if platform.is_windows() {
        flags.push("-Clink-arg=-Wl,--no-insert-timestamp".into());
    }
    Ok(flags.join(std::ffi::OsStr::new("\u{1f}")))
}

fn cargo_home() -> Result<PathBuf> {
    let default = || env::home_dir().map(|home| home.join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(default).context("no home folder")
}

/// Checks a program's size, and that it names no folder of this machine.
fn check(build: &Build<'_>, file: &Path, largest: u64) -> Result<()> {
    let program = fs::read(file)?;
    let size = program.len() as u64;
    println!("{}: {size} bytes", file.display());
    ensure!(size <= largest, "{} has {size} bytes, more than {largest}", file.display());
    for folder in [&build.sources, &build.target, &cargo_home()?] {
        let name = folder.to_string_lossy();
        let found = program.windows(name.len()).any(|part| part == name.as_bytes());
        ensure!(!found, "{} contains the path {name}", file.display());
    }
    Ok(())
}

/// Runs the released program: here, in an emulator, or under Wine.
pub(super) fn try_out(steps: &mut Steps, build: &Build<'_>, platform: &Platform) {
    let name = format!("run of the program for {}", platform.name);
    let file = platform.stripped(build, &DIPC);
    if platform.is_windows() {
        return match Wine::prepare(platform.target) {
            Ok(wine) => steps.run(&name, || demonstrate(build, || wine.start(&file))),
            Err(missing) => steps.not_run(&name, &format!("{missing:#}")),
        };
    }
    if platform.is_native() {
        steps.run(&name, || demonstrate(build, || Command::new(&file)));
        let fleet = platform.stripped(build, &FLEET);
        return steps.run(&format!("export by dipc-fleet for {}", platform.name), || export(build, &fleet));
    }
    let emulator = format!("qemu-{}-static", platform.target.split('-').next().unwrap_or_default());
    match program(&[&emulator], "Debian: apt-get install qemu-user-static") {
        Ok(emulator) => steps.run(&name, || {
            read_recording(build, || {
                let mut command = Command::new(&emulator);
                command.arg(&file);
                command
            })
        }),
        Err(missing) => steps.not_run(&name, &format!("{missing:#}")),
    }
}

/// Checks the program's version, and has it record and read a simulated runtime.
fn demonstrate(build: &Build<'_>, start: impl Fn() -> Command) -> Result<()> {
    check_version(build, &start)?;
    let folder = tempfile::tempdir()?;
    execute(start().arg("demo").current_dir(folder.path()).env("TMPDIR", folder.path()))
}

/// Runs the program to write the tables of a recording.
pub(super) fn export(build: &Build<'_>, program: &Path) -> Result<()> {
    check_version(build, || Command::new(program))?;
    let folder = tempfile::tempdir()?;
    let recording = build.sources.join("testdata/traces/synth-v6.nettrace");
    execute(Command::new(program).arg("export").arg(recording).arg("--to").arg(folder.path()))?;
    ensure!(folder.path().join("recordings").is_dir(), "export wrote no table of recordings");
    Ok(())
}

/// Checks the program's version, and has it read a recording: an emulator of programs cannot start others, as
/// `demo` does.
fn read_recording(build: &Build<'_>, start: impl Fn() -> Command) -> Result<()> {
    check_version(build, &start)?;
    let recording = build.sources.join("testdata/traces/synth-v6.nettrace");
    let output = start().args(["events", "--format", "jsonl"]).arg(&recording).output()?;
    ensure!(output.status.success(), "events: {}", String::from_utf8_lossy(&output.stderr));
    let shown = String::from_utf8_lossy(&output.stdout).lines().count();
    let golden = fs::read_to_string(recording.with_extension("txt"))?;
    let count = golden.lines().find_map(|line| line.strip_prefix("events ")?.split(' ').next());
    let expected: usize = count.context("the golden has no number of events")?.parse()?;
    ensure!(shown == expected, "events: {shown} lines, expected {expected}");
    Ok(())
}

pub(super) fn check_version(build: &Build<'_>, start: impl Fn() -> Command) -> Result<()> {
    let output = start().arg("--version").output()?;
    let version = String::from_utf8_lossy(&output.stdout);
    let expected = format!("dipc {}", build.release.version);
    ensure!(version.trim() == expected, "--version: {:?}, expected {expected:?}", version.trim());
    Ok(())
}
