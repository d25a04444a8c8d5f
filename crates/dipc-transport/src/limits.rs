use std::io;
use std::process::Command;
use std::sync::OnceLock;

use crate::sys;

/// The limit on open descriptors (including sockets) of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescriptorLimit {
    /// The limit before it was raised for the first time; `None` is unlimited.
    pub before: Option<u64>,
    /// The limit now; `None` is unlimited.
    pub now: Option<u64>,
}

/// The value to set if the hard limit is unlimited: macOS refuses larger values.
const UNLIMITED: u64 = 10_240;

/// The limit before it was raised for the first time.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Returns the number of descriptors that this process may have open (the soft limit of `RLIMIT_NOFILE`);
/// `None` without a limit (Windows).
pub fn descriptor_limit() -> Option<u64> {
    sys::descriptor_limits().and_then(|(current, _)| current)
}

/// Raises the number of descriptors that this process may have open to the largest possible one (the hard
/// limit of `RLIMIT_NOFILE`), for thousands of connections. `None` without such a limit (Windows).
///
/// Children inherit it, and a child that uses `select` on descriptors above 1,023 fails:
/// [`restore_descriptor_limit`] starts children with the former limit.
///
/// ```
/// if let Some(limit) = dipc_transport::raise_descriptor_limit()? {
///     println!("up to {:?} connections, before {:?}", limit.now, limit.before);
///     assert_eq!(dipc_transport::descriptor_limit(), limit.now);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn raise_descriptor_limit() -> io::Result<Option<DescriptorLimit>> {
    let Some((current, maximum)) = sys::descriptor_limits() else { return Ok(None) };
    let wanted = maximum.unwrap_or(UNLIMITED);
    let now = match current {
        Some(current) if current < wanted => {
            sys::set_descriptor_limit(wanted, maximum)?;
            BEFORE.get_or_init(|| current);
            Some(wanted)
        }
        other => other,
    };
    let before = BEFORE.get().copied().or(current);
    Ok(Some(DescriptorLimit { before, now }))
}

/// Makes a child program start with the limit of descriptors that this process had before
/// [`raise_descriptor_limit`]. Does nothing if that has not raised it.
pub fn restore_descriptor_limit(command: &mut Command) {
    if let Some((before, (_, maximum))) = BEFORE.get().zip(sys::descriptor_limits()) {
        sys::limit_child_descriptors(command, *before, maximum);
    }
}
