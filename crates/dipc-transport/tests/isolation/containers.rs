//! Processes in another pid namespace, mount namespace or root.

use std::fs;

use dipc_transport::Endpoint;

use crate::is_root;
use crate::listener::{Conditions, Listener, assert_answers, endpoint_below};
use crate::patient;

#[test]
fn a_process_in_a_container_is_found_in_its_own_tmpdir_and_reached() {
    if !is_root() {
        return;
    }
    // A folder that is empty here; in the container it is a mount point.
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs none {}", folder.path().display());
    let conditions = Conditions { in_namespaces_after: Some(&mount), ..Conditions::default() };
    let Some(_listener) = Listener::start(folder.path(), &conditions) else { return };
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let (_, endpoint) = endpoint_below(folder.path().to_str().unwrap());
    let endpoint = endpoint.expect("the process in the container");
    assert_eq!(endpoint.namespace_pid, 1);
    assert_ne!(endpoint.pid, 1);
    assert!(endpoint.path.starts_with(format!("/proc/{}/root", endpoint.pid)), "{:?}", endpoint.path);
    let connection = endpoint.connect(patient()).unwrap();
    // The kernel translates the listener's pid to our namespace.
    assert_eq!(connection.peer().pid, Some(endpoint.pid));
    assert_answers(connection);
}

#[test]
fn links_in_a_container_are_resolved_in_its_root() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    // An absolute link, which from here would lead to another folder, with another socket in it.
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink(&inside, folder.path().join("tmp")).unwrap();
    let mount = format!("mount -t tmpfs none {root}/inside && mkdir {root}/inside/{0}", "d".repeat(60));
    let conditions = Conditions { in_namespaces_after: Some(&mount), ..Conditions::default() };
    let tmpdir = folder.path().join("tmp").join("d".repeat(60));
    let Some(_listener) = Listener::start(&tmpdir, &conditions) else { return };

    let (_, endpoint) = endpoint_below(tmpdir.to_str().unwrap());
    let endpoint = endpoint.expect("the process in the container");
    // From here the path is longer than a socket address.
    assert!(endpoint.path.as_os_str().len() > 107, "{:?}", endpoint.path);
    assert!(fs::metadata(&endpoint.path).is_err(), "followed from here it leads nowhere");
    assert_answers(endpoint.connect(patient()).unwrap());
}

#[test]
fn a_process_with_another_root_is_found_below_it() {
    if !is_root() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let tmpdir = root.path().file_name().unwrap();
    fs::create_dir(root.path().join(tmpdir)).unwrap();
    let inside = format!("/{}", tmpdir.display());
    let conditions = Conditions { root: Some(root.path()), ..Conditions::default() };
    let Some(listener) = Listener::start(&inside, &conditions) else { return };

    let (_, endpoint) = endpoint_below(&inside);
    let endpoint = endpoint.expect("the process with another root");
    assert_eq!((endpoint.pid, endpoint.namespace_pid), (listener.pid(), listener.pid()));
    assert!(endpoint.path.starts_with(format!("/proc/{}/root{inside}", endpoint.pid)), "{:?}", endpoint.path);
    assert_answers(endpoint.connect(patient()).unwrap());
}

/// Discovery looks at the pid namespace of a process only while a socket in its folder lacks a process.
#[test]
fn a_process_with_another_pid_is_found_in_a_folder_where_others_have_sockets() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plain = Conditions::default();
    let inner = Conditions { in_pid_namespace: true, ..Conditions::default() };
    let start = |conditions| Listener::start(folder.path(), conditions);
    let (Some(first), Some(_second), Some(third)) = (start(&plain), start(&inner), start(&plain)) else {
        return;
    };
    let discovery = dipc_transport::discover();
    let is_ours = |path: &std::path::Path| path.starts_with(folder.path());
    let found: Vec<_> = discovery.endpoints.iter().filter(|endpoint| is_ours(&endpoint.path)).collect();
    // Numbers of processes begin again at some time: which of them is examined first differs.
    let (inside, mut others): (Vec<&Endpoint>, Vec<&Endpoint>) =
        found.iter().copied().partition(|endpoint| endpoint.namespace_pid != endpoint.pid);
    let [inside] = inside.as_slice() else { panic!("{found:?}") };
    others.sort_by_key(|endpoint| endpoint.pid != first.pid());
    let others: Vec<_> = others.iter().map(|endpoint| endpoint.pid).collect();
    assert_eq!((inside.namespace_pid, others), (1, vec![first.pid(), third.pid()]), "{found:?}");
    assert_answers(inside.connect(patient()).unwrap());
    assert!(!discovery.skipped.iter().any(|skipped| is_ours(&skipped.path)), "{:?}", discovery.skipped);
}

/// Both processes have pid 1, and start times that often differ by a tick only.
#[test]
fn processes_with_the_same_pid_in_a_shared_folder_are_distinguished() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let conditions = Conditions { in_namespaces_after: Some("true"), ..Conditions::default() };
        // In different ticks of the clock, of which there are a hundred in a second.
        std::thread::sleep(std::time::Duration::from_millis(30));
        Listener::start(folder.path(), &conditions)
    };
    let (Some(_first), Some(_second)) = (start(), start()) else { return };
    let discovery = dipc_transport::discover();
    let name = folder.path().to_str().unwrap();
    let both: Vec<_> =
        discovery.endpoints.iter().filter(|it| it.path.display().to_string().contains(name)).collect();
    let [first, second] = both.as_slice() else { panic!("{both:?}") };
    assert_eq!((first.namespace_pid, second.namespace_pid), (1, 1));
    assert_ne!((first.pid, first.key), (second.pid, second.key));
    for endpoint in both {
        let connection = endpoint.connect(patient()).unwrap();
        assert_eq!(connection.peer().pid, Some(endpoint.pid));
        assert_answers(connection);
    }
    let ours = |path: &std::path::Path| path.display().to_string().contains(name);
    assert!(!discovery.skipped.iter().any(|skipped| ours(&skipped.path)), "{:?}", discovery.skipped);
}
