//! The runtimes, and the program that runs on each.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Net3_1,
    /// The workload as a single-file program.
    Net8_0,
    Net9_0,
    /// A single-file program, published without startup hooks.
    Net10_0,
    NativeAot9,
}

impl Runtime {
    pub(crate) const ALL: [Self; 5] =
        [Self::Net3_1, Self::Net8_0, Self::Net9_0, Self::Net10_0, Self::NativeAot9];

    /// The name of its folder, and of its lines in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Net3_1 => "3.1.23",
            Self::Net8_0 => "8.0.28",
            Self::Net9_0 => "9.0.1",
            Self::Net10_0 => "10.0.5",
            Self::NativeAot9 => "nativeaot-9",
        }
    }

    pub(crate) fn can_be_suspended(self) -> bool {
        self != Self::Net3_1
    }

    /// Returns true if it is set up; if not, that is reported.
    pub(crate) fn is_available(self) -> bool {
        if self == Self::NativeAot9 || self.folder().exists() {
            return true;
        }
        let required =
            std::env::var("DIPC_REQUIRE_RUNTIMES").is_ok_and(|it| !matches!(&*it, "" | "0" | "false"));
        let why = format!("{} is not there (cargo xtask runtimes sets it up)", self.folder().display());
        assert!(!required, "{why}");
        // Past the test harness's capture.
        let _ = writeln!(io::stderr(), "!!! NOT RUN the commands on .NET {}: {why}", self.name());
        false
    }

    pub(crate) fn folder(self) -> PathBuf {
        let folder = match std::env::var_os("DIPC_RUNTIMES") {
            Some(folder) => PathBuf::from(folder),
            None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("../runtimes"),
        };
        folder.join(self.name())
    }

    /// Its program's command line.
    pub(crate) fn program(self) -> Command {
        self.program_in(&self.folder())
    }

    /// The same command line if the runtime is elsewhere.
    pub(crate) fn program_in(self, folder: &Path) -> Command {
        let assembly = match self {
            Self::Net3_1 => "netstandard2.1",
            Self::Net9_0 => "net8.0",
            Self::Net8_0 => {
                let (published, assembly) = (folder.join("Sarif.Multitool"), "workload/net8.0/workload.dll");
                let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
                return Command::new(testdata::single_file_program(&published, assembly, &programs));
            }
            Self::Net10_0 => {
                let mut command = Command::new(folder.join("azmcp"));
                command.args(["server", "start"]);
                return command;
            }
            Self::NativeAot9 => return Command::new(native_workload()),
        };
        let mut command = Command::new(folder.join("dotnet"));
        command.arg(testdata().join("workload").join(assembly).join("workload.dll"));
        command
    }
}

pub(crate) fn testdata() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")).unwrap()
}

/// The workload compiled ahead of time, unpacked once.
fn native_workload() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("commands");
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("workload");
        testdata::install("workload/nativeaot/workload-9.xz", &program);
        program
    })
}
