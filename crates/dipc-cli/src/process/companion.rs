//! Programs that work with this one, if they are installed.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use crate::exit::{Exit, Failure, Outcome};

/// Returns the path of a program: in this program's folder, else in a folder of `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned()));
    let folders = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&folders).filter(|folder| folder.is_absolute());
    beside.into_iter().chain(in_path).map(|folder| folder.join(&file)).find(|path| path.is_file())
}

/// Runs a program with these arguments and with this program's input and output. Returns its exit code;
/// `None` if it is not installed.
pub(crate) fn run(
    name: &str,
    arguments: impl IntoIterator<Item = impl Into<OsString> + AsRef<OsStr>>,
) -> Option<Outcome> {
    let path = find(name)?;
    let status = Command::new(&path).args(arguments).status();
    Some(
        status
            .map(code)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("start: {}: {error}", path.display()))),
    )
}

/// Runs dipc-fleet, the same program with more features, with this program's arguments; a failure if it is
/// not installed, which names the command and `what` it lacks here.
#[cfg(not(all(feature = "export", feature = "mcp")))]
pub(crate) fn run_fleet(command: &str, what: &str) -> Outcome {
    run("dipc-fleet", env::args_os().skip(1)).unwrap_or_else(|| {
        let help = format!(
            "put dipc-fleet next to it or into a folder of PATH: install.sh --fleet, {}or cargo install dipc-cli \
             --features cloud",
            archive()
        );
        Err(Failure::new(Exit::Failed, format_args!("{command}: this program was built without {what}"))
            .with_help(help))
    })
}

/// Names the release archive with dipc-fleet, on systems that have one.
#[cfg(not(all(feature = "export", feature = "mcp")))]
fn archive() -> String {
    use std::env::consts::{ARCH, OS};

    if !cfg!(any(target_os = "linux", windows)) {
        return String::new();
    }
    format!("dipc-fleet-{}-{ARCH}-{OS} of the release, ", env!("CARGO_PKG_VERSION"))
}

/// Returns the exit code of a program; for one ended by a signal, the code that a shell would give it.
fn code(status: ExitStatus) -> Exit {
    match status.code() {
        Some(0) => Exit::Done,
        Some(code) => Exit::Program(u8::try_from(code).unwrap_or(1)),
        None => Exit::Failed,
    }
}
