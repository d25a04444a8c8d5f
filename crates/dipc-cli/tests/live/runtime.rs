//! The real runtimes that the tests run on, and the treatment of missing ones.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A runtime that can run the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    /// Not one of [`ALL`](Self::ALL): what it answers is what the next version answers, but for its memory.
    NativeAot8,
    NativeAot9,
    Net3_1,
    /// Programs of single files, made from a published one.
    Net8_0,
    Net9_0,
}

impl Runtime {
    pub(crate) const ALL: [Self; 4] = [Self::NativeAot9, Self::Net3_1, Self::Net8_0, Self::Net9_0];

    /// What `Environment.Version` says there.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::NativeAot8 => "8.0.31",
            Self::NativeAot9 => "9.0.20",
            Self::Net3_1 => "3.1.23",
            Self::Net8_0 => "8.0.28",
            Self::Net9_0 => "9.0.1",
        }
    }

    /// The name of the workload's process: `dotnet` runs it, or it is a program of its own.
    pub(crate) fn process_name(self) -> &'static str {
        match self {
            Self::NativeAot8 | Self::NativeAot9 | Self::Net8_0 => "workload",
            Self::Net3_1 | Self::Net9_0 => "dotnet",
        }
    }

    /// The runtime by which a test is named.
    pub(crate) fn named(test: &str) -> Self {
        match test {
            "nativeaot_8" => Self::NativeAot8,
            "nativeaot_9" => Self::NativeAot9,
            "net_3_1" => Self::Net3_1,
            "net_8_0" => Self::Net8_0,
            "net_9_0" => Self::Net9_0,
            _ => panic!("no runtime {test}"),
        }
    }

    /// Returns true if the runtime's own counters are instruments of a Meter, too: from .NET 9 on.
    pub(crate) fn has_runtime_meter(self) -> bool {
        matches!(self, Self::NativeAot9 | Self::Net9_0)
    }

    /// The workload's command line under this runtime; none where the runtime is not set up, which is then
    /// said.
    pub(crate) fn workload(self) -> Option<Command> {
        match self {
            Self::NativeAot8 => {
                static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
                PROGRAM.get_or_init(|| unpack_native_workload("workload-8")).as_ref().map(Command::new)
            }
            Self::NativeAot9 => {
                static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
                PROGRAM.get_or_init(|| unpack_native_workload("workload-9")).as_ref().map(Command::new)
            }
            Self::Net3_1 => self.program("netstandard2.1/workload.dll"),
            Self::Net8_0 | Self::Net9_0 => self.program("net8.0/workload.dll"),
        }
    }

    /// The command line of a program in `testdata/workload` under this runtime, which is not NativeAOT.
    pub(crate) fn program(self, assembly: &str) -> Option<Command> {
        if self == Self::Net8_0 {
            return Some(single_file(&installed(self.version(), "Sarif.Multitool")?, assembly));
        }
        let mut command = Command::new(installed(self.version(), "dotnet")?);
        command.arg(testdata().join("workload").join(assembly));
        Some(command)
    }
}

/// The program of .NET 10.0.5.
pub(crate) fn mcp_server() -> Option<Command> {
    let mut command = Command::new(installed("10.0.5", "azmcp")?);
    command.args(["server", "start"]);
    Some(command)
}

/// The command line of a program in `testdata/workload` on .NET 10.0.5. Its framework is trimmed: most
/// programs do not find what they use.
pub(crate) fn program_of_10(assembly: &str) -> Option<Command> {
    Some(single_file(&installed("10.0.5", "azmcp")?, assembly))
}

/// The command line of a program in `testdata/workload` on .NET 8, with its PDB in the single file.
pub(crate) fn program_of_8_with_pdb(assembly: &str) -> Option<Command> {
    Some(with_pdb(&installed("8.0.28", "Sarif.Multitool")?, assembly))
}

/// The same on .NET 10.0.5.
pub(crate) fn program_of_10_with_pdb(assembly: &str) -> Option<Command> {
    Some(with_pdb(&installed("10.0.5", "azmcp")?, assembly))
}

/// A program with its PDB in the place of that of a single-file application.
fn with_pdb(application: &Path, assembly: &str) -> Command {
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    let assembly = format!("workload/{assembly}");
    Command::new(testdata::single_file_program_with_pdb(application, &assembly, &programs))
}

/// A program in the place of that of a single-file application.
fn single_file(application: &Path, assembly: &str) -> Command {
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    Command::new(testdata::single_file_program(application, &format!("workload/{assembly}"), &programs))
}

/// The client of SQL Server, System.Data.SqlClient 4.6.
pub(crate) fn sql_client() -> Option<PathBuf> {
    installed("sqlclient-4.6", "System.Data.SqlClient.dll")
}

pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The folder of a runtime that `cargo xtask runtimes` set up, and that has a `dotnet`.
pub(crate) fn installation(runtime: Runtime) -> Option<PathBuf> {
    installed(runtime.version(), "dotnet")?.parent().map(Path::to_path_buf)
}

/// A program of a runtime that `cargo xtask runtimes` set up.
fn installed(runtime: &str, program: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("DIPC_RUNTIMES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("../runtimes"),
    };
    let path = folder.join(runtime).join(program);
    if path.exists() {
        return Some(path);
    }
    not_run(&format!("{runtime} is not in {} (cargo xtask runtimes sets it up)", folder.display()));
    None
}

/// A workload that needs no .NET, unpacked once for all tests and test runs.
fn unpack_native_workload(name: &str) -> Option<PathBuf> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))) {
        not_run("the NativeAOT workload is for x86-64 Linux with glibc");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).unwrap();
    let program = folder.join(name).join("workload");
    fs::create_dir_all(program.parent()?).unwrap();
    testdata::install(&format!("workload/nativeaot/{name}.xz"), &program);
    Some(program)
}

/// Says that a test did not run, past the test harness's capture; where runtimes are required, that is a
/// failure.
pub(crate) fn not_run(why: &str) {
    let required = std::env::var("DIPC_REQUIRE_RUNTIMES").is_ok_and(|it| !matches!(&*it, "" | "0" | "false"));
    assert!(!required, "cannot run: {why}");
    say_not_run(why);
}

/// Says the same where it is not a runtime that is missing, but a right or a tool of the machine.
pub(crate) fn say_not_run(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(io::stderr(), "!!! NOT RUN {test}: {why}");
}

/// Makes a test of each runtime from each function, which takes a [`Runtime`].
macro_rules! on_each_runtime {
    ($($name:ident),+ $(,)?) => {
        $( crate::runtime::on_runtimes!($name: nativeaot_9, net_3_1, net_8_0, net_9_0); )+
    };
}
pub(crate) use on_each_runtime;

/// Makes a test of each of these runtimes from one function that takes a [`Runtime`].
macro_rules! on_runtimes {
    ($name:ident: $($runtime:ident),+ $(,)?) => {
        mod $name {
            use crate::runtime::Runtime;
            $(
                #[test]
                fn $runtime() {
                    super::$name(Runtime::named(stringify!($runtime)));
                }
            )+
        }
    };
}
pub(crate) use on_runtimes;
