//! The settings of the kernel that prevent sampling.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use linux_proc_stat::Status;

use crate::access::Rights;

/// The highest level of `kernel.perf_event_paranoid` that permits users samples of user mode.
pub(crate) const PARANOID_FOR_USERS: i32 = 2;

/// The setting that prevents sampling of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// `/proc/sys/kernel/perf_event_paranoid` has this value, and this process lacks `CAP_PERFMON`; at values
    /// above 2, which kernels of Debian and Ubuntu know, `CAP_SYS_ADMIN`.
    Paranoid(i32),
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
        Self::decide(error.raw_os_error().unwrap_or(0), &Rights::of_self(), is_other_user)
    }

    fn decide(errno: i32, rights: &Rights, is_other_user: bool) -> Self {
        // A missing capability is reported by Rights for the level.
        let level = rights.paranoid.filter(|_| !rights.has_capability);
        match errno {
            libc::ENOSYS | libc::EPERM if rights.has_filter => Self::Seccomp,
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
        let rights = |paranoid, has_capability, has_filter| Rights {
            paranoid: Some(paranoid),
            has_capability,
            has_filter,
            has_kernel_names: false,
        };
        for (errno, rights, is_other_user, obstacle) in [
            (libc::EPERM, rights(3, false, true), false, Obstacle::Seccomp),
            // A filter refuses with EPERM, the kernel with EACCES.
            (libc::EACCES, rights(3, false, true), false, Obstacle::Paranoid(3)),
            // CAP_PERFMON would not help: it is the level that is to be lowered.
            (libc::EACCES, rights(3, false, false), true, Obstacle::Paranoid(3)),
            (libc::EACCES, rights(2, false, false), true, Obstacle::OtherUser),
            (libc::EACCES, rights(2, false, false), false, Obstacle::Paranoid(2)),
            (libc::EACCES, rights(3, true, false), true, Obstacle::OtherUser),
            (libc::EACCES, rights(2, true, false), false, Obstacle::Unknown),
            (libc::ENOSYS, rights(2, true, false), false, Obstacle::NotBuilt),
        ] {
            let decided = Obstacle::decide(errno, &rights, is_other_user);
            assert_eq!(decided, obstacle, "{errno} {rights:?} {is_other_user}");
        }
        assert!(Obstacle::Paranoid(3).to_string().contains("CAP_SYS_ADMIN"));
        assert!(Obstacle::Paranoid(2).to_string().contains("CAP_PERFMON"));
    }
}
