//! `cargo xtask runtimes`: real .NET runtimes on a machine that has none, from packages of ordinary registries.
//!
//! Each runtime is one folder under `target/runtimes`, built beside its place and renamed into it, so that what is there is
//! whole. A stamp in it tells the recipe that made it: a changed recipe rebuilds.

mod layout;
pub(crate) mod package;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::workspace;

/// Names the folder of the runtimes, for the live tests and for us.
pub(crate) const FOLDER: &str = "DIPC_RUNTIMES";
/// Makes a runtime that is not there an error.
pub(crate) const REQUIRE_RUNTIMES: &str = "DIPC_REQUIRE_RUNTIMES";

const STAMP: &str = ".recipe";

#[derive(Args)]
pub(crate) struct Options {
    /// Where to set them up [default: runtimes in cargo's target folder]
    #[arg(long, env = FOLDER)]
    dir: Option<PathBuf>,
    /// A folder of already downloaded packages to look in first (their checksums are checked all the same)
    #[arg(long)]
    packages: Option<PathBuf>,
}

/// A runtime that the live tests run on.
pub(crate) struct Runtime {
    /// Its version, and the name of its folder.
    pub(crate) name: &'static str,
    /// Changes when what the recipe makes changes.
    recipe: &'static str,
    build: fn(&layout::Sources<'_>, &Path) -> Result<()>,
}

/// In the order of setting up: 9.0.1 takes its `dotnet` from the package of 3.1.23.
static RUNTIMES: [Runtime; 4] = [
    Runtime { name: "nativeaot-9", recipe: "1", build: layout::native_aot },
    Runtime { name: "3.1.23", recipe: "1", build: layout::net3_1 },
    Runtime { name: "9.0.1", recipe: "2", build: layout::net9_0 },
    Runtime { name: "10.0.5", recipe: "1", build: layout::net10_0 },
];

/// For Wine, and so not among those that every test run sets up.
static WINDOWS: Runtime = Runtime { name: "10.0.9-windows", recipe: "1", build: layout::net10_0_windows };

/// What became of one runtime.
pub(crate) struct Setup {
    pub(crate) runtime: &'static Runtime,
    pub(crate) place: Result<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = folder(options.dir.as_deref())?;
    let setups = set_up_all(&folder, options.packages.as_deref());
    let mut missing = 0;
    for setup in &setups {
        match &setup.place {
            Ok(place) => println!("{:<12} {}", setup.runtime.name, place.display()),
            Err(error) => {
                missing += 1;
                println!("{:<12} MISSING: {error:#}", setup.runtime.name);
            }
        }
    }
    if missing > 0 {
        bail!("{missing} of {} runtimes could not be set up", setups.len());
    }
    Ok(())
}

/// Where the runtimes are: as said, else as the environment says, else in cargo's target folder.
pub(crate) fn folder(chosen: Option<&Path>) -> Result<PathBuf> {
    let folder = match (chosen, std::env::var_os(FOLDER)) {
        (Some(chosen), _) => chosen.to_owned(),
        (None, Some(named)) => PathBuf::from(named),
        (None, None) => workspace::target()?.join("runtimes"),
    };
    std::path::absolute(folder).context("the folder of the runtimes")
}

/// Sets up what is not there yet; one that fails does not keep the others from being set up.
pub(crate) fn set_up_all(folder: &Path, packages: Option<&Path>) -> Vec<Setup> {
    RUNTIMES.iter().map(|runtime| Setup { runtime, place: set_up(runtime, folder, packages) }).collect()
}

/// The server program of .NET 10 for Windows.
pub(crate) fn windows_server() -> Result<PathBuf> {
    Ok(set_up(&WINDOWS, &folder(None)?, None)?.join("azmcp.exe"))
}

fn set_up(runtime: &Runtime, folder: &Path, packages: Option<&Path>) -> Result<PathBuf> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))) {
        bail!("the packaged runtimes are for x86-64 Linux with glibc");
    }
    let place = folder.join(runtime.name);
    if fs::read_to_string(place.join(STAMP)).is_ok_and(|recipe| recipe == runtime.recipe) {
        return Ok(place);
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let building = tempfile::Builder::new().prefix(".building-").tempdir_in(folder)?;
    let layout = building.path().join(runtime.name);
    fs::create_dir(&layout)?;
    let sources = layout::Sources { downloads: &folder.join("packages"), given: packages };
    (runtime.build)(&sources, &layout)?;
    fs::write(layout.join(STAMP), runtime.recipe)?;
    if place.exists() {
        // An older recipe's. Whoever runs from it keeps the files it has open.
        fs::rename(&place, building.path().join("old"))?;
    }
    fs::rename(&layout, &place).with_context(|| place.display().to_string())?;
    Ok(place)
}
