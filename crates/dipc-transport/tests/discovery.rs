//! Endpoints of real processes: this one, and idle children that a runtime could live in.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dipc_transport::{
    Deadline, Discovery, Error, Listener, SkipReason, SocketName, discover, find, start_key,
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

/// An idle process with a `TMPDIR` of its own.
struct Idle {
    child: Child,
    folder: TempDir,
}

impl Idle {
    fn start() -> Self {
        Self::run("cat".as_ref())
    }

    fn run(program: &OsStr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        command.arg("-").env("TMPDIR", folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Until it answers it may still be a copy of this process, with its name and environment.
        child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self { child, folder }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn key(&self) -> u64 {
        start_key(self.pid()).unwrap()
    }

    fn socket(&self, key: u64) -> PathBuf {
        self.folder.path().join(SocketName::new(self.pid(), key).to_string())
    }

    /// Returns its endpoint according to `discover`, which has to agree with `find`.
    fn discovered(&self) -> (Discovery, Option<PathBuf>) {
        let discovery = discover();
        let path = discovery.endpoints.iter().find(|endpoint| endpoint.pid == self.pid());
        let path = path.map(|endpoint| endpoint.path.clone());
        assert_eq!(find(self.pid()).ok().map(|endpoint| endpoint.path), path);
        (discovery, path)
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.end();
    }
}

fn reason<'a>(discovery: &'a Discovery, path: &Path) -> Option<&'a SkipReason> {
    discovery.skipped.iter().find(|skipped| skipped.path == path).map(|skipped| &skipped.reason)
}

#[test]
fn a_process_is_found_by_its_own_tmpdir() {
    let mut idle = Idle::start();
    let path = idle.socket(idle.key());
    let _listener = UnixListener::bind(&path).unwrap();
    let endpoint = find(idle.pid()).unwrap();
    assert_eq!((endpoint.pid, endpoint.namespace_pid, endpoint.key), (idle.pid(), idle.pid(), idle.key()));
    assert_eq!((endpoint.path.as_path(), endpoint.name.as_str()), (path.as_path(), "cat"));
    assert_eq!(endpoint.uid, Some(rustix::process::geteuid().as_raw()));
    let (discovery, found) = idle.discovered();
    assert_eq!(found.as_ref(), Some(&path));
    assert!(reason(&discovery, &path).is_none());

    // The listener is this test, not the process, so connecting has to be refused.
    let error = endpoint.connect(Deadline::after(PATIENCE)).unwrap_err();
    assert!(matches!(error, Error::PeerMismatch { .. }), "{error:?}");

    idle.end();
    let error = find(idle.pid()).unwrap_err();
    assert!(matches!(error, Error::NoSuchProcess { pid } if pid == idle.pid()), "{error:?}");
}

#[test]
fn this_process_is_found_and_reached() {
    let pid = std::process::id();
    let name = SocketName::new(pid, start_key(pid).unwrap());
    let mut listener = Listener::bind(std::env::temp_dir().join(name.to_string())).unwrap();
    let endpoint = find(pid).unwrap();
    let mut client = endpoint.connect(Deadline::after(PATIENCE)).unwrap();
    client.write_all(b"it is me", Deadline::after(PATIENCE)).unwrap();
    let mut server = listener.accept(Deadline::after(PATIENCE)).unwrap();
    assert_eq!(server.read(&mut [0; 16], Deadline::after(PATIENCE)).unwrap(), 8);
    assert!(discover().endpoints.contains(&endpoint));
}

#[test]
fn the_error_for_a_missing_socket_has_the_directory() {
    let idle = Idle::start();
    let error = find(idle.pid()).unwrap_err();
    assert!(
        matches!(&error, Error::NoEndpoint { directory, name, .. } if directory == idle.folder.path() && name == "cat"),
        "{error:?}"
    );
    assert!(error.to_string().contains(idle.folder.path().to_str().unwrap()), "{error}");
}

#[test]
fn a_socket_with_another_start_time_is_not_trusted() {
    let idle = Idle::start();
    let old = idle.socket(idle.key() - 1);
    let _listener = UnixListener::bind(&old).unwrap();
    assert!(matches!(find(idle.pid()).unwrap_err(), Error::NoEndpoint { .. }));
    let (discovery, found) = idle.discovered();
    assert_eq!(found, None);
    assert!(matches!(reason(&discovery, &old), Some(SkipReason::Stale)), "{:?}", discovery.skipped);
}

#[test]
fn a_socket_without_a_start_time_is_found_unless_there_is_one_with_it() {
    let idle = Idle::start();
    let nameless = idle.socket(0);
    let _first = UnixListener::bind(&nameless).unwrap();
    assert_eq!(idle.discovered().1.as_ref(), Some(&nameless));
    assert_eq!(find(idle.pid()).unwrap().key, 0);
    let exact = idle.socket(idle.key());
    let _second = UnixListener::bind(&exact).unwrap();
    let (discovery, found) = idle.discovered();
    assert_eq!(found.as_ref(), Some(&exact));
    assert!(matches!(reason(&discovery, &nameless), Some(SkipReason::Stale)), "{:?}", discovery.skipped);
}

#[test]
fn a_file_or_a_link_is_not_a_socket() {
    let idle = Idle::start();
    let path = idle.socket(idle.key());
    std::fs::write(&path, "").unwrap();
    assert!(matches!(find(idle.pid()).unwrap_err(), Error::NotASocket { .. }));
    let (discovery, found) = idle.discovered();
    assert_eq!(found, None);
    assert!(matches!(reason(&discovery, &path), Some(SkipReason::NotASocket)));

    std::fs::remove_file(&path).unwrap();
    let elsewhere = idle.folder.path().join("elsewhere");
    let _listener = UnixListener::bind(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(matches!(find(idle.pid()).unwrap_err(), Error::NotASocket { .. }));
}

#[test]
fn a_socket_that_another_user_planted_is_not_trusted() {
    let idle = Idle::start();
    let path = idle.socket(idle.key());
    let _listener = UnixListener::bind(&path).unwrap();
    if chown(&path, Some(54_321), None).is_err() {
        eprintln!("NOT TESTED: only root can make a file of another user");
        return;
    }
    let error = find(idle.pid()).unwrap_err();
    assert!(matches!(error, Error::ForeignSocket { owner: 54_321, .. }), "{error:?}");
    let (discovery, found) = idle.discovered();
    assert_eq!(found, None);
    assert!(matches!(reason(&discovery, &path), Some(SkipReason::ForeignOwner { owner: 54_321, .. })));
}

#[test]
fn a_name_with_parentheses_and_spaces_does_not_hide_the_start_time() {
    let folder = tempfile::tempdir().unwrap();
    let cat = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("cat"))
        .find(|path| path.exists())
        .unwrap();
    // Longer than the part of a name that the kernel keeps, and truncated after a space.
    let program = folder.path().join("a) R 1 (b 2) 3 of many parts");
    std::os::unix::fs::symlink(cat, &program).unwrap();
    let idle = Idle::run(program.as_ref());
    let boot_ticks = idle.key();
    assert!(boot_ticks > 3, "{boot_ticks}");
    let _listener = UnixListener::bind(idle.socket(boot_ticks)).unwrap();
    assert_eq!(find(idle.pid()).unwrap().name, "a) R 1 (b 2) 3 of many parts");
    let arguments = dipc_transport::command_line(idle.pid()).unwrap();
    assert_eq!(arguments, [program.as_os_str(), OsStr::new("-")]);
}

#[test]
fn ten_thousand_stale_sockets_are_skipped() {
    let idle = Idle::start();
    for pid in 0..10_000 {
        std::fs::write(idle.folder.path().join(SocketName::new(5_000_000 + pid, 1).to_string()), "").unwrap();
    }
    let path = idle.socket(idle.key());
    let _listener = UnixListener::bind(&path).unwrap();
    let started = Instant::now();
    let (discovery, found) = idle.discovered();
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
    assert_eq!(found, Some(path));
    let stale =
        discovery.skipped.iter().filter(|skipped| skipped.path.starts_with(idle.folder.path())).count();
    assert_eq!(stale, 10_000);
}

#[test]
fn pids_without_a_process_are_errors() {
    // The second is larger than any pid.
    for pid in [0, u32::MAX] {
        assert!(matches!(find(pid).unwrap_err(), Error::NoSuchProcess { .. }), "{pid}");
    }
}
