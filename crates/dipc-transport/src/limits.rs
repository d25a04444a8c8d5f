use std::io;

use crate::sys;

/// The limit of open descriptors (sockets among them) of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescriptorLimit {
    /// The limit before it was raised; `None` is unlimited.
    pub before: Option<u64>,
    /// The limit now; `None` is unlimited.
    pub now: Option<u64>,
}

/// The limit to set where the hard limit is unlimited: macOS refuses more.
const UNLIMITED: u64 = 10_240;

/// Raises the number of descriptors that this process may have open to the largest possible one (the hard limit of
/// `RLIMIT_NOFILE`), for thousands of connections. `None` where there is no such limit (Windows).
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
