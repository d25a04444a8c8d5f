//! The container and the pod of a process, from its control group.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use dipc_client::Uuid;

/// Maximum number of bytes of a file of the system to read.
const MAX_BYTES: u64 = 64 << 10;

/// The container and the pod of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Container {
    /// The id of the container.
    pub(crate) id: Option<String>,
    /// The uid of the Kubernetes pod.
    pub(crate) pod_uid: Option<String>,
}

impl Container {
    /// Reads the control group of a process; empty on systems without `/proc`.
    pub(crate) fn of_process(pid: u32) -> Self {
        let cgroup = read(Path::new(&format!("/proc/{pid}/cgroup")));
        Self { id: container_id(&cgroup), pod_uid: pod_uid(&cgroup) }
    }
}

fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    // A missing file counts as empty.
    if let Ok(file) = File::open(path) {
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The container in a list of control groups: the last part of a path that has 64 hexadecimal digits, as the
/// paths of Docker, containerd and CRI-O have.
fn container_id(cgroup: &str) -> Option<String> {
    let parts = cgroup.lines().flat_map(|line| line.rsplit('/'));
    parts.flat_map(|part| part.split(['-', ':', '.'])).find(|id| is_container_id(id)).map(ToOwned::to_owned)
}

fn is_container_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The pod in a list of control groups: `kubepods-burstable-pod0a1b…_….slice`, or
/// `kubepods/burstable/pod0a1b…-…`.
fn pod_uid(cgroup: &str) -> Option<String> {
    let mut parts = cgroup.lines().flat_map(|line| line.split('/'));
    parts.find_map(|part| {
        let (_, uid) = part.rsplit_once("pod")?;
        let uid = uid.strip_suffix(".slice").unwrap_or(uid).replace('_', "-");
        Uuid::try_parse(&uid).ok().map(|uid| uid.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_identify_containers_and_pods() {
        let id = "2fd2d3b7a46e5f2d1b9f6b1ce4e1a1d2b3c4d5e6f708192a3b4c5d6e7f809101";
        let uid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
        let slice = uid.replace('-', "_");
        let rows = [
            (format!("0::/system.slice/docker-{id}.scope\n"), Some(id), None),
            (format!("12:pids:/docker/{id}\n1:name=systemd:/docker/{id}\n"), Some(id), None),
            (
                format!(
                    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-{id}.scope\n"
                ),
                Some(id),
                Some(uid),
            ),
            (format!("0::/kubepods/besteffort/pod{uid}/{id}\n"), Some(id), Some(uid)),
            (
                format!("0::/kubepods.slice/kubepods-pod{slice}.slice/crio-{id}.scope/container\n"),
                Some(id),
                Some(uid),
            ),
            ("0::/user.slice/user-1000.slice/session-2.scope\n".to_owned(), None, None),
            (String::new(), None, None),
        ];
        for (cgroup, container, pod) in rows {
            assert_eq!(container_id(&cgroup).as_deref(), container, "{cgroup}");
            assert_eq!(pod_uid(&cgroup).as_deref(), pod, "{cgroup}");
        }
    }
}
