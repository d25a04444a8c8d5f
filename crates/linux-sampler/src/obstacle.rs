//! The settings of the kernel that prevent sampling.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use linux_proc_stat::Status;

/// The highest level of `kernel.perf_event_paranoid` that permits users samples of user mode.
const PARANOID_FOR_USERS: i32 = 2;

/// The bits of the capabilities that permit sampling, in the kernel's numbers; `CAP_PERFMON` since Linux 5.8.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;

/// The setting that prevents sampling of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// `/proc/sys/kernel/perf_event_paranoid` has this value, and this process lacks `CAP_PERFMON`; at values
    /// above 2, which kernels of Debian and Ubuntu know, `CAP_SYS_ADMIN`.
    Paranoid(i32),
    /// The same for samples of whole processors or of a control group.
    ParanoidForMachine(i32),
    /// The process belongs to another user, and this one lacks `CAP_PERFMON` (before Linux 5.8:
    /// `CAP_SYS_PTRACE`).
    OtherUser,
    /// A seccomp filter, as in containers, rejects the call.
    Seccomp,
    /// The kernel does not have the call.
    NotBuilt,
    /// None of these is the obstacle.
    Unknown,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paranoid(level) if *level > PARANOID_FOR_USERS => write!(
                f,
                "kernel.perf_event_paranoid is {level}; CAP_SYS_ADMIN, as root has on the host, or a value of at most {PARANOID_FOR_USERS} permits it"
            ),
            Self::Paranoid(level) => write!(
                f,
                "kernel.perf_event_paranoid is {level}; CAP_PERFMON, root or a value of at most 1 permits it"
            ),
            Self::ParanoidForMachine(level) => write!(
                f,
                "kernel.perf_event_paranoid is {level}; CAP_PERFMON, root or a value of at most 0 permits it"
            ),
            Self::OtherUser => f.write_str("the process belongs to another user; CAP_PERFMON or root permits it"),
            Self::Seccomp => f.write_str(
                "a seccomp filter refuses the call, as containers have one; CAP_PERFMON or another profile of the container permits it",
            ),
            Self::NotBuilt => f.write_str("this kernel has no performance events"),
            Self::Unknown => f.write_str("the reason is not known"),
        }
    }
}

/// The reason for which the native allocations of a process cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocationObstacle {
    /// The kernel has no probes in programs: it is older than Linux 4.17, or was built without
    /// `CONFIG_UPROBE_EVENTS`.
    NoProbes,
    /// This process lacks `CAP_PERFMON` or `CAP_BPF`.
    NotPermitted,
    /// A seccomp filter, as in containers, rejects a call.
    Seccomp,
    /// No library of the process has `malloc` and `free` among its symbols.
    NoFunctions,
    /// The kernel refuses a program or a probe for another reason.
    Refused(String),
}

impl fmt::Display for AllocationObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProbes => f.write_str(
                "this kernel has no probes in programs (Linux 4.17 and later have them, with CONFIG_UPROBE_EVENTS)",
            ),
            Self::NotPermitted => {
                f.write_str("probes in programs need CAP_PERFMON and CAP_BPF (before Linux 5.8, CAP_SYS_ADMIN)")
            }
            Self::Seccomp => f.write_str("a seccomp filter refuses the call, as containers have one"),
            Self::NoFunctions => f.write_str(
                "no file that the process has mapped has malloc and free among its symbols: a program that is linked statically and stripped cannot be probed",
            ),
            Self::Refused(error) => write!(f, "the kernel refuses the probe: {error}"),
        }
    }
}

impl Obstacle {
    /// Returns the obstacle for the kernel's error from opening an event of `pid`.
    pub(crate) fn of(error: &io::Error, pid: Option<i32>) -> Self {
        let is_other_user =
            pid.and_then(user_of).is_some_and(|user| user != rustix::process::getuid().as_raw());
        let paranoid = paranoid_level();
        // A missing capability is reported by the level that asks for it.
        let level = paranoid.filter(|_| !has_capability(paranoid));
        Self::decide(error.raw_os_error().unwrap_or(0), has_filter(), level, is_other_user)
    }

    /// Returns the obstacle for the kernel's error. The level is `None` if a capability permits sampling.
    fn decide(errno: i32, has_filter: bool, level: Option<i32>, is_other_user: bool) -> Self {
        match errno {
            libc::ENOSYS | libc::EPERM if has_filter => Self::Seccomp,
            libc::ENOSYS | libc::ENOENT => Self::NotBuilt,
            libc::EPERM | libc::EACCES => match level {
                // Before the kernel looks at the process.
                Some(level) if level > PARANOID_FOR_USERS => Self::Paranoid(level),
                _ if is_other_user => Self::OtherUser,
                Some(level) if level > 0 => Self::Paranoid(level),
                _ => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }
}

/// Returns true if this process has a capability that permits sampling at this level. They count in the
/// machine's own user namespace only.
pub(crate) fn has_capability(paranoid: Option<i32>) -> bool {
    let capabilities = own_status(|status| status.mask("CapEff")).unwrap_or(0);
    capabilities & sufficient(paranoid) != 0 && !in_user_namespace()
}

/// Returns the capabilities of which each permits sampling at this level.
fn sufficient(paranoid: Option<i32>) -> u64 {
    match paranoid {
        Some(level) if level > PARANOID_FOR_USERS => CAP_SYS_ADMIN,
        _ => CAP_SYS_ADMIN | CAP_PERFMON,
    }
}

/// Returns true if the users of this process are others outside, as in containers without root.
fn in_user_namespace() -> bool {
    // The machine's own namespace has all users, as they are.
    const ALL: [&str; 3] = ["0", "0", "4294967295"];
    let map = linux_proc_stat::read(Path::new("/proc/self/uid_map"));
    map.is_ok_and(|map| !String::from_utf8_lossy(&map).split_whitespace().eq(ALL))
}

/// Returns `kernel.perf_event_paranoid`: 2 permits an unprivileged user samples of user mode, 1 also of the
/// kernel, 0 also of whole processors, and 3, on some distributions, no samples.
pub fn paranoid_level() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// Returns true if a seccomp filter restricts this process.
pub(crate) fn has_filter() -> bool {
    own_status(|status| status.mask("Seccomp")) == Some(2)
}

/// Reads a field of this process's status.
pub(crate) fn own_status<T>(field: impl FnOnce(Status<'_>) -> Option<T>) -> Option<T> {
    field(Status::new(&linux_proc_stat::read(Path::new("/proc/self/status")).ok()?))
}

fn user_of(pid: i32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_obstacle_is_the_first_that_the_kernel_checks() {
        for (errno, has_filter, level, is_other_user, obstacle) in [
            (libc::EPERM, true, Some(3), false, Obstacle::Seccomp),
            // A filter refuses with EPERM, the kernel with EACCES.
            (libc::EACCES, true, Some(3), false, Obstacle::Paranoid(3)),
            // Being the user of the process would not help.
            (libc::EACCES, false, Some(3), true, Obstacle::Paranoid(3)),
            (libc::EACCES, false, Some(2), true, Obstacle::OtherUser),
            (libc::EACCES, false, Some(2), false, Obstacle::Paranoid(2)),
            (libc::EACCES, false, None, true, Obstacle::OtherUser),
            (libc::EACCES, false, None, false, Obstacle::Unknown),
            (libc::ENOSYS, false, None, false, Obstacle::NotBuilt),
        ] {
            let decided = Obstacle::decide(errno, has_filter, level, is_other_user);
            assert_eq!(decided, obstacle, "{errno} {has_filter} {level:?} {is_other_user}");
        }
        assert!(Obstacle::Paranoid(3).to_string().contains("CAP_SYS_ADMIN"));
        assert!(Obstacle::Paranoid(2).to_string().contains("CAP_PERFMON"));
    }

    #[test]
    fn perfmon_is_not_enough_above_level_2() {
        assert_eq!(sufficient(Some(3)), CAP_SYS_ADMIN);
        for level in [Some(2), Some(-1), None] {
            assert_eq!(sufficient(level), CAP_SYS_ADMIN | CAP_PERFMON);
        }
    }
}
