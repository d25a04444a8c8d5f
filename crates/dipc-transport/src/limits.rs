use std::io;

use crate::sys;

/// How many descriptors (sockets among them) this process may have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescriptorLimit {
    /// The limit before it was raised; `None` is unlimited.
    pub before: Option<u64>,
    /// The limit now; `None` is unlimited.
    pub now: Option<u64>,
}

/// What is asked for where the system calls its hard limit unlimited: macOS refuses more.
const UNLIMITED: u64 = 10_240;

/// Raises the number of descriptors that this process may have open to what the system lets it have (the hard limit of
/// `RLIMIT_NOFILE`), for those who keep thousands of connections. `None` where there is no such limit (Windows).
///
/// Children inherit it; one that uses `select` on descriptors above 1,023 would fail, so a program that starts foreign
/// children raises it only if it has to.
pub fn raise_descriptor_limit() -> io::Result<Option<DescriptorLimit>> {
    let Some((before, maximum)) = sys::descriptor_limits() else { return Ok(None) };
    let wanted = maximum.unwrap_or(UNLIMITED);
    let now = match before {
        Some(current) if current < wanted => {
            sys::set_descriptor_limit(wanted, maximum)?;
            Some(wanted)
        }
        other => other,
    };
    Ok(Some(DescriptorLimit { before, now }))
}
