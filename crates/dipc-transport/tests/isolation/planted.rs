//! Files that other processes can plant in a shared folder.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dipc_transport::{Endpoint, Error, SkipReason, SocketName, find, start_key};
use tempfile::TempDir;

use crate::listener::{Conditions, Listener, assert_answers, endpoint_below};
use crate::{is_root, patient};

const STRANGER: u32 = 54_321;

/// Creates a folder that all users may write to, as `/tmp` is.
fn shared_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    folder
}

/// Starts a process with a socket of its own in a folder.
fn honest() -> Option<(TempDir, Listener, Endpoint)> {
    let folder = shared_folder();
    let listener = Listener::start(folder.path(), &Conditions::default())?;
    let (_, endpoint) = endpoint_below(folder.path().to_str().unwrap());
    let endpoint = endpoint.unwrap();
    assert_answers(endpoint.connect(patient()).unwrap());
    Some((folder, listener, endpoint))
}

#[test]
fn another_process_that_listens_at_the_socket_is_reported_and_gets_nothing() {
    if !is_root() {
        return;
    }
    // The imitated process, without a socket.
    let folder = shared_folder();
    let mut victim = Command::new("cat").env("TMPDIR", folder.path()).stdin(Stdio::piped()).spawn().unwrap();
    let key = start_key(victim.id()).unwrap();
    let conditions =
        Conditions { user: Some(STRANGER), instead_of: Some((victim.id(), key)), ..Conditions::default() };
    let listener = Listener::start(folder.path(), &conditions);
    let error = find(victim.id()).unwrap_err();
    let (discovery, endpoint) = endpoint_below(folder.path().to_str().unwrap());
    // Even if it owns the file: the kernel knows the process that listens.
    let path = folder.path().join(SocketName::new(victim.id(), key).to_string());
    let given = std::os::unix::fs::chown(&path, Some(0), None).map(|()| find(victim.id()));
    let found_out = given.unwrap().map(|endpoint| endpoint.connect(patient()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let Some(listener) = listener else { return };

    assert!(matches!(error, Error::ForeignSocket { owner: STRANGER, uid: 0, .. }), "{error:?}");
    assert_eq!(endpoint, None);
    let foreign = |reason: &SkipReason| matches!(reason, SkipReason::ForeignOwner { owner: STRANGER, .. });
    assert!(discovery.skipped.iter().any(|skipped| foreign(&skipped.reason)), "{:?}", discovery.skipped);
    let error = found_out.unwrap().unwrap_err();
    assert!(
        matches!(&error, Error::PeerMismatch { found, .. }
        if found.pid == Some(listener.pid()) && found.uid == Some(STRANGER)),
        "{error:?}"
    );
    assert!(error.to_string().contains(&format!("process {} of user {STRANGER}", listener.pid())), "{error}");
}

#[test]
fn a_replaced_socket_is_refused() {
    let Some((folder, _listener, endpoint)) = honest() else { return };
    let aside = folder.path().join("aside");
    fs::rename(&endpoint.path, &aside).unwrap();
    let connect = || endpoint.connect(patient()).unwrap_err();
    assert!(matches!(connect(), Error::NoSocket { .. }), "{:?}", connect());
    // A link is refused even if it leads to the right socket.
    symlink(&aside, &endpoint.path).unwrap();
    assert!(matches!(connect(), Error::NotASocket { .. }), "{:?}", connect());
    fs::remove_file(&endpoint.path).unwrap();
    fs::write(&endpoint.path, "").unwrap();
    assert!(matches!(connect(), Error::NotASocket { .. }), "{:?}", connect());
    fs::remove_file(&endpoint.path).unwrap();
    let _other = UnixListener::bind(&endpoint.path).unwrap();
    assert!(matches!(connect(), Error::PeerMismatch { .. }), "{:?}", connect());
    fs::remove_file(&endpoint.path).unwrap();
    fs::rename(&aside, &endpoint.path).unwrap();
    assert_answers(endpoint.connect(patient()).unwrap());
}

/// Between checking a file and connecting to it there is time for a rename. The check of the peer accepts the
/// planted socket, since it is a second socket of the same process.
#[test]
fn a_path_that_changes_all_the_time_leads_to_the_checked_socket_only() {
    const TURNS: usize = 3000;
    let folder = shared_folder();
    let pid = std::process::id();
    let path = folder.path().join(SocketName::new(pid, start_key(pid).unwrap()).to_string());
    let honest = UnixListener::bind(&path).unwrap();
    let trap = UnixListener::bind(folder.path().join("trap")).unwrap();
    symlink("trap", folder.path().join("link")).unwrap();
    trap.set_nonblocking(true).unwrap();
    honest.set_nonblocking(true).unwrap();
    let uid = rustix::process::geteuid().as_raw();
    let check = dipc_transport::PeerCheck::Process { pid, uid };
    let stop = AtomicBool::new(false);
    let (mut reached, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (here, there) = (path.as_path(), folder.path().join("link"));
            let (cwd, exchange) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(cwd, here, cwd, &there, exchange).unwrap();
            }
        });
        let address = dipc_transport::Address::from(&path);
        for _ in 0..TURNS {
            match dipc_transport::Connection::connect(&address, check, patient()) {
                Ok(_) => reached += 1,
                Err(Error::NotASocket { .. }) => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
            while honest.accept().is_ok() {}
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(trap.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "the trap was connected to");
    eprintln!("{reached} reached the socket, {refused} met the link and were refused");
    assert_eq!(reached + refused, TURNS);
}

/// Starts a process with a chosen pid, as the kernel reuses pids.
fn process_with_pid(pid: u32, tmpdir: &TempDir) -> Option<std::process::Child> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).ok()?;
        let mut child =
            Command::new("cat").env("TMPDIR", tmpdir.path()).stdin(Stdio::piped()).spawn().unwrap();
        if child.id() == pid {
            // The kernel returns before the new program has its environment.
            while fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| environment.is_empty()) {
                std::thread::yield_now();
            }
            return Some(child);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    None
}

#[test]
fn the_socket_of_an_ended_process_is_not_that_of_a_new_one_with_its_pid() {
    if !is_root() {
        return;
    }
    let Some((folder, mut listener, endpoint)) = honest() else { return };
    listener.end();
    assert!(matches!(find(endpoint.pid).unwrap_err(), Error::NoSuchProcess { .. }));
    // The start time is in ticks of a hundredth of a second.
    std::thread::sleep(Duration::from_millis(30));
    let Some(mut successor) = process_with_pid(endpoint.pid, &folder) else {
        return crate::not_run("the kernel does not let us choose a pid");
    };
    let found = find(endpoint.pid);
    let (discovery, again) = endpoint_below(folder.path().to_str().unwrap());
    let connected = endpoint.connect(patient());
    successor.kill().unwrap();
    successor.wait().unwrap();
    assert!(matches!(found.unwrap_err(), Error::NoEndpoint { .. }));
    assert_eq!(again, None);
    let stale =
        |path: &PathBuf, reason: &SkipReason| *path == endpoint.path && matches!(reason, SkipReason::Stale);
    assert!(
        discovery.skipped.iter().any(|skipped| stale(&skipped.path, &skipped.reason)),
        "{}: {:?}",
        endpoint.path.display(),
        discovery.skipped
    );
    assert!(matches!(connected.unwrap_err(), Error::Stale { .. }));
}

/// With an empty umask, and watched while it is bound.
#[test]
fn a_socket_is_never_open_to_others_not_even_while_it_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    let looks = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut modes = std::collections::BTreeSet::new();
            while !stop.load(Ordering::Relaxed) {
                if let Ok(file) = fs::symlink_metadata(&path) {
                    modes.insert(file.permissions().mode() & 0o7777);
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            }
            modes
        });
        while looks.load(Ordering::Relaxed) < 1000 {
            drop(dipc_transport::Listener::bind(&path).unwrap());
        }
        stop.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    rustix::process::umask(umask);
    assert!(seen.iter().eq([&0o600]), "{seen:?}");
    let _listener = dipc_transport::Listener::bind(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
}
