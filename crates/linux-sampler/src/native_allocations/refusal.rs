//! The reasons for which native allocations cannot be recorded.

use std::fmt;
use std::io;

use crate::error::Error;
use crate::obstacle::has_filter;

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

/// Returns the error for a call that the kernel refused.
#[allow(clippy::needless_pass_by_value, reason = "it is passed by map_err")]
pub(super) fn refused(error: io::Error) -> Error {
    let obstacle = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) if has_filter() => AllocationObstacle::Seccomp,
        Some(libc::EPERM | libc::EACCES) => AllocationObstacle::NotPermitted,
        Some(libc::ENOSYS) => AllocationObstacle::NoProbes,
        _ => AllocationObstacle::Refused(error.to_string()),
    };
    Error::NativeAllocations(obstacle)
}
