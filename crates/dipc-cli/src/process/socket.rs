//! A socket given as its folder or as a pattern, because images without a shell cannot expand patterns.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dipc_transport::{Address, Connection, Deadline, Error, PeerCheck};
use nettrace_edit::Glob;

use crate::exit::{Exit, Failure};

/// The pattern of the names of runtimes' sockets.
const RUNTIMES: &str = "dotnet-diagnostic-*-socket";

/// Maximum number of sockets to probe for a listener, and to name in a message.
const MAX_SOCKETS: usize = 16;

/// Time limit for probing several sockets.
const ANSWER: Duration = Duration::from_secs(1);

/// Returns the one socket that `path` stands for: the path itself, the runtime's socket in a folder, or the
/// socket with a file name that matches the pattern in the last part. If there are several, sockets without a
/// listener do not count: a killed program leaves its socket.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, Failure> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (folder, glob) = if path.is_dir() {
        (path, Glob::new(RUNTIMES))
    } else if name.contains('*') && path.symlink_metadata().is_err() {
        (path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new(".")), Glob::new(name))
    } else {
        return Ok(path.to_owned());
    };
    let (mut found, more) = sockets(folder, &glob).map_err(|error| {
        Failure::new(Exit::NotReachable, format_args!("find: {}: {error}", folder.display()))
    })?;
    if found.len() > 1 && more == 0 {
        let deadline = Deadline::after(ANSWER);
        let live: Vec<_> = found.iter().filter(|socket| has_listener(socket, deadline)).cloned().collect();
        if !live.is_empty() {
            found = live;
        }
    }
    match found.as_slice() {
        [socket] => Ok(socket.clone()),
        [] => Err(Failure::new(
            Exit::NotReachable,
            format_args!("find: {}: no socket of that name: {}", folder.display(), glob.text()),
        )
        .with_help("a runtime makes its socket as it starts, in the folder that its TMPDIR names")),
        sockets => {
            let names: Vec<_> = sockets.iter().map(|socket| socket.display().to_string()).collect();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(Failure::usage(format_args!(
                "find: {}: there are several: {}{more}",
                path.display(),
                names.join(", ")
            ))
            .with_help("name one of them"))
        }
    }
}

/// Returns the sockets of the folder that match, sorted, and how many there are beyond [`MAX_SOCKETS`].
fn sockets(folder: &Path, glob: &Glob) -> io::Result<(Vec<PathBuf>, usize)> {
    let mut found = Vec::new();
    let mut more = 0_usize;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(|name| glob.matches(name)) || !is_socket(&entry) {
            continue;
        }
        if found.len() < MAX_SOCKETS {
            found.push(entry.path());
        } else {
            more = more.saturating_add(1);
        }
    }
    found.sort();
    Ok((found, more))
}

#[cfg(unix)]
fn is_socket(entry: &fs::DirEntry) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    entry.file_type().is_ok_and(|kind| kind.is_socket())
}

#[cfg(not(unix))]
fn is_socket(entry: &fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file())
}

fn has_listener(socket: &Path, deadline: Deadline) -> bool {
    let connection = Connection::connect(&Address::from(socket), PeerCheck::Any, deadline);
    !matches!(connection, Err(Error::Stale { .. }))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn refusal(path: &Path) -> Failure {
        resolve(path).unwrap_err()
    }

    #[test]
    fn a_folder_and_a_pattern_stand_for_the_one_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("dotnet-diagnostic-1-123-socket");
        let _runtime = UnixListener::bind(&socket).unwrap();
        // Neither of these belongs to a runtime.
        let _port = UnixListener::bind(folder.path().join("dipc.sock")).unwrap();
        fs::write(folder.path().join("dotnet-diagnostic-2-123-socket"), "no socket").unwrap();
        for named in [folder.path().to_owned(), folder.path().join("dotnet-*-socket"), socket.clone()] {
            assert_eq!(resolve(&named).unwrap(), socket, "{}", named.display());
        }
        assert_eq!(resolve(&folder.path().join("*.sock")).unwrap(), folder.path().join("dipc.sock"));
    }

    #[test]
    fn of_several_sockets_the_one_with_a_listener_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let [left, live, other] =
            ["1-1", "1-2", "7-3"].map(|id| folder.path().join(format!("dotnet-diagnostic-{id}-socket")));
        drop(UnixListener::bind(&left).unwrap());
        let _runtime = UnixListener::bind(&live).unwrap();
        assert_eq!(resolve(folder.path()).unwrap(), live);
        let _second = UnixListener::bind(&other).unwrap();
        let failure = refusal(folder.path());
        assert_eq!(failure.exit, Exit::Usage);
        let expected = format!("there are several: {}, {}", live.display(), other.display());
        assert!(failure.message.ends_with(&expected), "{failure}");
    }

    #[test]
    fn names_in_a_message_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        for id in 0..MAX_SOCKETS + 3 {
            drop(UnixListener::bind(folder.path().join(format!("dotnet-diagnostic-{id}-1-socket"))).unwrap());
        }
        let failure = refusal(folder.path());
        assert!(failure.message.ends_with("-socket and 3 more"), "{failure}");
        assert_eq!(failure.message.matches("-socket").count(), MAX_SOCKETS);
    }

    #[test]
    fn nothing_that_matches_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let failure = refusal(&folder.path().join("dotnet-*-socket"));
        assert_eq!(failure.exit, Exit::NotReachable);
        assert!(failure.message.ends_with(": no socket of that name: dotnet-*-socket"), "{failure}");
        assert_eq!(refusal(Path::new("/nonexistent/*")).exit, Exit::NotReachable);
        // A name without a pattern is left to the connection, which reports a better error.
        assert_eq!(resolve(Path::new("/nonexistent/x")).unwrap(), Path::new("/nonexistent/x"));
    }
}
