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

/// Returns the exit code of a program; for one ended by a signal, the code that a shell would give it.
fn code(status: ExitStatus) -> Exit {
    match status.code() {
        Some(0) => Exit::Done,
        Some(code) => Exit::Program(u8::try_from(code).unwrap_or(1)),
        None => Exit::Failed,
    }
}
