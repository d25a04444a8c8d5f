//! The processes of a recording of many.

use std::path::PathBuf;

/// The processes that are sampled together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleScope {
    /// All processes of the machine.
    Machine,
    /// The processes of a control group, and of those below it.
    Group(GroupName),
    /// These processes.
    Processes(Vec<u32>),
}

/// A control group, by the path that the kernel shows for its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupName {
    /// The path, as `/proc/PID/cgroup` has it.
    pub path: String,
    /// The folders that may be the group's in the file system.
    pub folders: Vec<PathBuf>,
    /// The id of its container, if it was named by that.
    pub container: Option<String>,
}

/// The reason for which a group is not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// No process is in a container with this id.
    #[error("no process is in a container whose id begins with {0}")]
    NoContainer(String),
    /// The beginning of an id is that of several containers.
    #[error("{0} is the beginning of the ids of several containers: {1}")]
    ManyContainers(String, String),
    /// No process is in such a group.
    #[error("no process is in a control group {0}")]
    NoGroup(String),
}

/// The folder at which control groups are mounted.
const MOUNTS: &str = "/sys/fs/cgroup";
/// Minimum number of digits of a container's id: those that its tools show.
const MIN_DIGITS: usize = 6;

impl GroupName {
    /// Finds a group by the id of a container, or the beginning of one, by its folder below
    /// `/sys/fs/cgroup`, or by its path as `/proc/PID/cgroup` has it.
    ///
    /// # Errors
    /// If no process is in it.
    pub fn find(name: &str) -> Result<Self, GroupError> {
        let pids = linux_proc_stat::process_ids().unwrap_or_default();
        let all: Vec<String> =
            pids.iter().filter_map(|pid| linux_proc_stat::control_groups(*pid).ok()).collect();
        Self::find_among(name, &all)
    }

    /// The same among the texts of `/proc/PID/cgroup`.
    fn find_among(name: &str, groups: &[String]) -> Result<Self, GroupError> {
        if is_id(name) {
            return Self::of_container(name, groups);
        }
        let wanted = name.strip_prefix(MOUNTS).filter(|rest| rest.starts_with('/')).unwrap_or(name);
        let wanted = wanted.trim_end_matches('/');
        // Below the folder of all mounts, the first part can be that of a hierarchy.
        let inner = wanted.strip_prefix('/').and_then(|rest| rest.find('/')).map(|at| &wanted[at + 1..]);
        let inner = inner.filter(|_| name.starts_with(MOUNTS));
        let is_used = |path: &str| groups.iter().any(|text| is_in(text, path));
        let path = [Some(wanted), inner].into_iter().flatten().find(|path| path.len() > 1 && is_used(path));
        let path = path.ok_or_else(|| GroupError::NoGroup(name.to_owned()))?;
        Ok(Self::new(path, None))
    }

    fn of_container(id: &str, groups: &[String]) -> Result<Self, GroupError> {
        let id = id.to_ascii_lowercase();
        let mut found: Vec<(String, String)> = Vec::new();
        for text in groups {
            let container = linux_proc_stat::Container::of_groups(text);
            let Some(whole) = container.id.filter(|whole| whole.starts_with(&id)) else { continue };
            // The container's own group, of which it may have parts.
            let end = container.group.find(&whole).map_or(container.group.len(), |at| {
                let end = at + whole.len();
                container.group[end..].find('/').map_or(container.group.len(), |more| end + more)
            });
            if !found.iter().any(|(other, _)| *other == whole) {
                found.push((whole, container.group[..end].to_owned()));
            }
        }
        match &found[..] {
            [] => Err(GroupError::NoContainer(id)),
            [(whole, group)] => Ok(Self::new(group, Some(whole.clone()))),
            _ => {
                let ids: Vec<_> = found.iter().map(|(whole, _)| whole.get(..12).unwrap_or(whole)).collect();
                Err(GroupError::ManyContainers(id, ids.join(", ")))
            }
        }
    }

    fn new(path: &str, container: Option<String>) -> Self {
        let below = path.trim_start_matches('/');
        let folders = ["", "unified", "perf_event"].map(|part| PathBuf::from(MOUNTS).join(part).join(below));
        Self { path: path.to_owned(), folders: folders.into(), container }
    }

    /// The processes that are in the group, or in one below it, now.
    pub fn process_ids(&self) -> Vec<u32> {
        let pids = linux_proc_stat::process_ids().unwrap_or_default();
        let is_in_it =
            |pid: &u32| linux_proc_stat::control_groups(*pid).is_ok_and(|groups| self.has(&groups));
        pids.into_iter().filter(is_in_it).collect()
    }

    /// Returns true if the text of `/proc/PID/cgroup` has the group, or one below it.
    pub(super) fn has(&self, groups: &str) -> bool {
        is_in(groups, &self.path)
    }
}

/// Returns true for hexadecimal digits alone, as the id of a container has.
fn is_id(name: &str) -> bool {
    (MIN_DIGITS..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true if one of the paths in a list of control groups is `path`, or below it.
fn is_in(groups: &str, path: &str) -> bool {
    let mut paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.any(|own| own.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "2fd2d3b7a46e5f2d1b9f6b1ce4e1a1d2b3c4d5e6f708192a3b4c5d6e7f809101";

    #[test]
    fn groups_are_found_by_container_folder_and_path() {
        let other = ID.replace("2fd2d3b7", "2fd2d3b8");
        let groups = [
            format!("0::/kubepods.slice/crio-{ID}.scope/container\n"),
            format!("4:memory:/docker/{other}\n0::/\n"),
            "4:memory:/shop/db\n0::/\n".to_owned(),
            "0::/shop.slice/web.service\n".to_owned(),
        ];
        let find = |name: &str| GroupName::find_among(name, &groups);
        let found = find("2FD2D3B7a").unwrap();
        assert_eq!(found.path, format!("/kubepods.slice/crio-{ID}.scope"));
        assert_eq!(found.container.as_deref(), Some(ID));
        assert!(found.has(&groups[0]) && !found.has(&groups[1]));
        assert!(matches!(find("2fd2d3"), Err(GroupError::ManyContainers(..))));
        assert!(matches!(find("abcdef"), Err(GroupError::NoContainer(_))));
        assert_eq!(find("/sys/fs/cgroup/memory/shop/db/").unwrap().path, "/shop/db");
        assert_eq!(find("/sys/fs/cgroup/shop.slice").unwrap().path, "/shop.slice");
        assert_eq!(find("/shop").unwrap().path, "/shop");
        assert!(matches!(find("/sho"), Err(GroupError::NoGroup(_))));
        assert!(matches!(find("/"), Err(GroupError::NoGroup(_))));
        assert_eq!(find("/shop").unwrap().folders[1].to_str(), Some("/sys/fs/cgroup/unified/shop"));
    }
}
