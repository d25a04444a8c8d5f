//! The control group of a process: its memory and processor time, with their limits.

use std::io;
use std::path::{Path, PathBuf};

use crate::file::{process_folder, read};
use crate::mount::Mount;

mod events;

pub use events::{MemoryEvents, Throttling};

/// Limits from here on mean unlimited: version 1 writes the largest multiple of a page for that.
const NO_LIMIT: u64 = 1 << 60;
/// Maximum number of groups between a process and the root to inspect.
const MAX_DEPTH: usize = 64;

/// The control groups of a process, of version 2, of version 1, or of both, as the reader's mounts show them.
///
/// ```
/// use linux_proc_stat::ControlGroup;
///
/// # #[cfg(target_os = "linux")]
/// # {
/// let group = ControlGroup::of_process(std::process::id())?;
/// if let Some((used, limit)) = group.memory().and_then(|memory| memory.limited) {
///     println!("{used} of {limit} bytes, {:?} killed", group.oom_kills());
/// }
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlGroup {
    memory: Option<Group>,
    cpu_usage: Option<Group>,
    cpu_limit: Option<Group>,
    /// The group of version 2, which may have no controllers.
    unified: Option<Group>,
}

/// The folder of a group, with its parents, up to the mounted one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    /// The number of folders from the mounted one to this one.
    depth: usize,
    is_version_2: bool,
}

/// A limit of memory, of a group or of one above it.
struct MemoryLimit<'g> {
    folder: &'g Path,
    used: u64,
    limit: u64,
}

/// A limit of processor time, of a group or of one above it.
struct CpuLimit<'g> {
    folder: &'g Path,
    limit: (u64, u64),
}

/// The memory of a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GroupMemory {
    /// The memory that cannot be taken back at once, in bytes: without inactive pages of files, as
    /// Kubernetes counts it.
    pub used: u64,
    /// The group with the smallest part left, which is this one or one above it: its memory and its limit.
    pub limited: Option<(u64, u64)>,
}

/// The processor time of a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GroupCpu {
    /// The time used since the group was created, in nanoseconds.
    pub used_ns: u64,
    /// The time that it may use, and the period in which it may, in microseconds: the smallest share of this
    /// group and those above it.
    pub limit: Option<(u64, u64)>,
}

impl ControlGroup {
    /// Finds the control groups of a process.
    ///
    /// # Errors
    /// If `/proc` cannot be read, or the process has ended.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        Self::of_folder(&process_folder(pid), Path::new("/proc"))
    }

    /// Finds the control groups of the process of a folder, by the mounts of the reader of `proc`.
    pub(crate) fn of_folder(process: &Path, proc: &Path) -> io::Result<Self> {
        let groups = read(&process.join("cgroup"))?;
        let mounts = read(&proc.join("self/mountinfo"))?;
        Ok(Self::resolve(&String::from_utf8_lossy(&groups), &String::from_utf8_lossy(&mounts)))
    }

    /// Finds the control groups of a process from its `/proc/PID/cgroup` and the reader's
    /// `/proc/self/mountinfo`. Groups that the reader's mounts do not show are left out.
    ///
    /// ```
    /// use linux_proc_stat::ControlGroup;
    ///
    /// // A process in a group that the reader's mounts do not show.
    /// let group = ControlGroup::resolve("0::/shop\n", "");
    /// assert_eq!((group.memory(), group.cpu()), (None, None));
    /// ```
    pub fn resolve(groups: &str, mounts: &str) -> Self {
        let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
        let lines = || groups.lines().filter_map(parse_group);
        let unified = || {
            let (_, path) = lines().find(|(list, _)| list.is_empty())?;
            let mut mounts = mounts.iter().filter(|mount| mount.kind == "cgroup2");
            mounts.find_map(|mount| Group::of_mount(mount, path, true))
        };
        let of = |controller: &str| {
            let has = |list: &str| list.split(',').any(|name| name == controller);
            let Some((_, path)) = lines().find(|(list, _)| has(list)) else { return unified() };
            let mut mounts = mounts.iter().filter(|mount| mount.kind == "cgroup" && has(mount.super_options));
            mounts.find_map(|mount| Group::of_mount(mount, path, false))
        };
        Self { memory: of("memory"), cpu_usage: of("cpuacct"), cpu_limit: of("cpu"), unified: unified() }
    }

    /// Reads the memory; `None` if the kernel does not count it for this group, as for the root.
    pub fn memory(&self) -> Option<GroupMemory> {
        let group = self.memory.as_ref()?;
        let limited = group.memory_limit().map(|limit| (limit.used, limit.limit));
        Some(GroupMemory { used: group.memory_used(&group.folder)?, limited })
    }

    /// Reads the number of its processes that the kernel has killed because memory ran out; `None` if the
    /// kernel does not count them.
    pub fn oom_kills(&self) -> Option<u64> {
        let group = self.memory.as_ref()?;
        let file = if group.is_version_2 { "memory.events" } else { "memory.oom_control" };
        field(&text(&group.folder, file)?, "oom_kill")
    }

    /// Reads the processor time; `None` if the kernel does not count it for this group.
    pub fn cpu(&self) -> Option<GroupCpu> {
        let group = self.cpu_usage.as_ref()?;
        let used_ns = if group.is_version_2 {
            field(&text(&group.folder, "cpu.stat")?, "usage_usec")?.saturating_mul(1000)
        } else {
            number(&group.folder, "cpuacct.usage")?
        };
        let limit = self.cpu_limit.as_ref().and_then(|group| Some(group.cpu_limit()?.limit));
        Some(GroupCpu { used_ns, limit })
    }
}

/// A share, as parts of 2⁶⁴.
fn share((part, whole): (u64, u64)) -> u128 {
    (u128::from(part) << 64).checked_div(u128::from(whole)).unwrap_or(u128::MAX)
}

/// Splits `4:memory:/path` into its controllers and its path. Version 2 does not list controllers.
fn parse_group(line: &str) -> Option<(&str, &str)> {
    line.split_once(':')?.1.split_once(':')
}

impl Group {
    /// Returns a group of the hierarchy of a mount; `None` if it is not below the mounted one.
    fn of_mount(mount: &Mount<'_>, path: &str, is_version_2: bool) -> Option<Self> {
        let below = if mount.root == "/" { path } else { path.strip_prefix(&*mount.root)? };
        let names: Vec<&str> = below.split('/').filter(|name| !name.is_empty()).collect();
        // A name of its own, not a longer one, and none outside the reader's namespace.
        if !(below.is_empty() || below.starts_with('/')) || names.contains(&"..") || names.len() > MAX_DEPTH {
            return None;
        }
        let mut folder = PathBuf::from(&mount.point);
        folder.extend(&names);
        Some(Self { folder, depth: names.len(), is_version_2 })
    }

    /// Returns the memory that a group of this hierarchy cannot give back at once, in bytes.
    fn memory_used(&self, folder: &Path) -> Option<u64> {
        let (current, inactive) = if self.is_version_2 {
            ("memory.current", "inactive_file")
        } else {
            ("memory.usage_in_bytes", "total_inactive_file")
        };
        let cache = field(&text(folder, "memory.stat")?, inactive).unwrap_or(0);
        Some(number(folder, current)?.saturating_sub(cache))
    }

    /// Returns the limit of memory with the smallest part left.
    fn memory_limit(&self) -> Option<MemoryLimit<'_>> {
        let file = if self.is_version_2 { "memory.max" } else { "memory.limit_in_bytes" };
        let limits = self.folders().filter_map(|folder| {
            let limit = number(folder, file).filter(|limit| (1..NO_LIMIT).contains(limit))?;
            Some(MemoryLimit { folder, used: self.memory_used(folder)?, limit })
        });
        limits.reduce(|one, other| {
            if share((other.used, other.limit)) > share((one.used, one.limit)) { other } else { one }
        })
    }

    /// Returns the smallest limit of processor time.
    fn cpu_limit(&self) -> Option<CpuLimit<'_>> {
        let limits = self.folders().filter_map(|folder| {
            let (quota, period) = if self.is_version_2 {
                let text = text(folder, "cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.parse().ok()?, period.parse().ok()?)
            } else {
                // Without a limit it is -1.
                (number(folder, "cpu.cfs_quota_us")?, number(folder, "cpu.cfs_period_us")?)
            };
            (quota > 0 && period > 0).then_some(CpuLimit { folder, limit: (quota, period) })
        });
        limits.reduce(|one, other| if share(other.limit) < share(one.limit) { other } else { one })
    }

    /// The folder, and its parents up to the mounted one.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folder.ancestors().take(self.depth.saturating_add(1))
    }
}

fn text(folder: &Path, name: &str) -> Option<String> {
    String::from_utf8(read(&folder.join(name)).ok()?).ok()
}

/// The number that is the whole file.
fn number(folder: &Path, name: &str) -> Option<u64> {
    text(folder, name)?.trim().parse().ok()
}

/// The value of a line `NAME VALUE`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::TestTree;

    #[test]
    fn version_2_has_the_nearest_limit() {
        let tree = TestTree::new(
            "v2",
            &[
                ("pod/memory.current", "900\n"),
                ("pod/memory.max", "1000\n"),
                ("pod/memory.stat", "anon 5\ninactive_file 100\n"),
                ("pod/cpu.max", "50000 100000\n"),
                ("pod/app/memory.current", "600\n"),
                ("pod/app/memory.max", "max\n"),
                ("pod/app/memory.stat", "inactive_file_of_more 7\ninactive_file 50\n"),
                ("pod/app/cpu.stat", "usage_usec 1500\nuser_usec 1000\n"),
                ("pod/app/cpu.max", "200000 100000\n"),
                ("pod/app/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n"),
            ],
        );
        let group = tree.group("0::/pod/app\n", &[("/", "", "cgroup2", "rw")]);
        assert_eq!(group.memory(), Some(GroupMemory { used: 550, limited: Some((800, 1000)) }));
        assert_eq!(group.oom_kills(), Some(2));
        assert_eq!(group.cpu(), Some(GroupCpu { used_ns: 1_500_000, limit: Some((50_000, 100_000)) }));
        // The root of the machine does not have such files.
        let root = tree.group("0::/\n", &[("/", "", "cgroup2", "rw")]);
        assert_eq!((root.memory(), root.cpu()), (None, None));
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller() {
        let tree = TestTree::new(
            "v1",
            &[
                ("memory/app/memory.usage_in_bytes", "600\n"),
                ("memory/app/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/app/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n"),
                ("memory/app/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
                ("cpu/app/cpu.cfs_quota_us", "-1\n"),
                ("cpu/app/cpu.cfs_period_us", "100000\n"),
                ("cpuacct/app/cpuacct.usage", "42\n"),
            ],
        );
        let mounts = [
            ("/", "cpu", "cgroup", "rw,cpu"),
            ("/", "cpuacct", "cgroup", "rw,cpuacct"),
            // In a container, the mounted group is its own.
            ("/docker/x", "memory", "cgroup", "rw,memory"),
            ("/", "unified", "cgroup2", "rw"),
        ];
        let groups = "4:memory:/docker/x/app\n2:cpuacct:/app\n1:cpu:/app\n0::/\n";
        let group = tree.group(groups, &mounts);
        assert_eq!(group.memory(), Some(GroupMemory { used: 500, limited: None }));
        assert_eq!(group.oom_kills(), Some(1));
        assert_eq!(group.cpu(), Some(GroupCpu { used_ns: 42, limit: None }));
        // Another container, which the mount does not show.
        let other = tree.group("4:memory:/docker/xy/app\n", &mounts);
        assert_eq!((other.memory(), other.cpu()), (None, None));
    }

    #[test]
    fn groups_outside_the_namespace_are_not_looked_for() {
        for path in ["/../other", "/a/../../b"] {
            let group = ControlGroup::resolve(&format!("0::{path}\n"), "1 1 0:1 / / rw - cgroup2 cgroup2 rw");
            assert_eq!(group, ControlGroup::default(), "{path}");
        }
        for text in ["", "x", "0:", "::", "0::", "9:memory"] {
            ControlGroup::resolve(text, "32 31 0:29 / /x\n\n - \n1 2 3 4 5 - cgroup2 x");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_of_this_machine_has_a_group() {
        let group = ControlGroup::of_process(std::process::id()).unwrap();
        // If the kernel counts both, they are not zero.
        assert!(group.memory().is_none_or(|memory| memory.used > 0));
        assert!(group.cpu().is_none_or(|cpu| cpu.used_ns > 0));
    }
}
