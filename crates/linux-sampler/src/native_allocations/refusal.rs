//! The reasons for which native allocations cannot be recorded.

use std::io;

use crate::error::Error;
use crate::obstacle::{AllocationObstacle, has_filter};

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
