//! The container and the pod of a process, by its control groups.

use std::io;

use crate::file::{process_folder, read};

/// The container and the pod of a process, as the names of its control groups have them.
///
/// ```
/// use linux_proc_stat::Container;
///
/// let id = "2fd2d3b7a46e5f2d1b9f6b1ce4e1a1d2b3c4d5e6f708192a3b4c5d6e7f809101";
/// let container = Container::of_groups(&format!("0::/system.slice/docker-{id}.scope\n"));
/// assert_eq!(container.id.as_deref(), Some(id));
/// assert_eq!(container.group, format!("/system.slice/docker-{id}.scope"));
/// assert_eq!(container.pod_uid, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Container {
    /// The path of the control group: of version 2, or the longest of version 1 where that is the root.
    pub group: String,
    /// The id of the container: 64 hexadecimal digits.
    pub id: Option<String>,
    /// The uid of the Kubernetes pod.
    pub pod_uid: Option<String>,
}

impl Container {
    /// Reads the control groups of a process.
    ///
    /// # Errors
    /// If `/proc` cannot be read, or the process has ended.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        Ok(Self::of_groups(&control_groups(pid)?))
    }

    /// Takes them from the text of `/proc/PID/cgroup`.
    pub fn of_groups(groups: &str) -> Self {
        Self { group: group(groups).to_owned(), id: container_id(groups), pod_uid: pod_uid(groups) }
    }
}

/// Returns the text of `/proc/PID/cgroup`: lines of `hierarchy:controllers:path`.
///
/// # Errors
/// If `/proc` cannot be read, or the process has ended.
pub fn control_groups(pid: u32) -> io::Result<String> {
    let groups = read(&process_folder(pid).join("cgroup"))?;
    Ok(String::from_utf8_lossy(&groups).into_owned())
}

/// Returns the path of the group that tells most: lines are `hierarchy:controllers:path`.
fn group(groups: &str) -> &str {
    let paths = || groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let longest = || paths().rev().max_by_key(|path| path.len());
    unified.filter(|path| *path != "/").or_else(longest).unwrap_or("")
}

/// The container in a list of control groups: the last part of a path that has 64 hexadecimal digits, as the
/// paths of Docker, containerd and CRI-O have.
fn container_id(groups: &str) -> Option<String> {
    let parts = groups.lines().flat_map(|line| line.rsplit('/'));
    parts.flat_map(|part| part.split(['-', ':', '.'])).find(|id| is_container_id(id)).map(ToOwned::to_owned)
}

fn is_container_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The pod in a list of control groups: `kubepods-burstable-pod0a1b…_….slice`, or
/// `kubepods/burstable/pod0a1b…-…`.
fn pod_uid(groups: &str) -> Option<String> {
    let mut parts = groups.lines().flat_map(|line| line.split('/'));
    parts.find_map(|part| {
        let (_, uid) = part.rsplit_once("pod")?;
        let uid = uid.strip_suffix(".slice").unwrap_or(uid).replace('_', "-").to_ascii_lowercase();
        is_uuid(&uid).then_some(uid)
    })
}

/// Returns true for five groups of 8, 4, 4, 4 and 12 hexadecimal digits, or for 32 of them.
fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_formed = lengths == [32] || lengths == [8, 4, 4, 4, 12];
    is_formed && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
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
        for (groups, container, pod) in rows {
            let found = Container::of_groups(&groups);
            assert_eq!(found.id.as_deref(), container, "{groups}");
            assert_eq!(found.pod_uid.as_deref(), pod, "{groups}");
        }
    }

    #[test]
    fn the_group_that_tells_most_is_taken() {
        let group = |groups: &str| Container::of_groups(groups).group;
        assert_eq!(group("4:memory:/shop/db\n3:cpuset:/\n0::/\n"), "/shop/db");
        assert_eq!(group("4:memory:/shop/db\n0::/shop.slice\n"), "/shop.slice");
        assert_eq!((group("0::/\n"), group("")), ("/".to_owned(), String::new()));
    }
}
