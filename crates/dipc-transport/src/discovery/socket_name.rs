use std::ffi::OsStr;
use std::fmt;

/// The file name of a runtime's socket: `dotnet-diagnostic-{pid}-{key}-socket`.
///
/// ```
/// use dipc_transport::SocketName;
///
/// let name = SocketName::parse("dotnet-diagnostic-4711-98765-socket".as_ref());
/// assert_eq!(name, Some(SocketName::new(4711, 98765)));
/// assert_eq!(SocketName::parse("dotnet-diagnostic-04711-98765-socket".as_ref()), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SocketName {
    /// The pid in the process's own pid namespace.
    pub pid: u32,
    /// The start time of the process, which distinguishes it from earlier ones with the same pid: clock ticks
    /// since boot on Linux, seconds since 1970 on macOS, 0 if the runtime could not determine it.
    pub key: u64,
}

impl SocketName {
    /// Returns the name of the socket of a process.
    pub const fn new(pid: u32, key: u64) -> Self {
        Self { pid, key }
    }

    /// Parses a file name; `None` if it is not that of a runtime's socket.
    pub fn parse(name: &OsStr) -> Option<Self> {
        let numbers = name.to_str()?.strip_prefix("dotnet-diagnostic-")?.strip_suffix("-socket")?;
        let (pid, key) = numbers.split_once('-')?;
        Some(Self { pid: decimal(pid)?, key: decimal(key)? })
    }
}

/// Parses a number as the runtime prints it, without a sign or leading zeros: each socket has one name.
fn decimal<N: std::str::FromStr + fmt::Display>(text: &str) -> Option<N> {
    let number = text.parse::<N>().ok()?;
    (number.to_string() == text).then_some(number)
}

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dotnet-diagnostic-{}-{}-socket", self.pid, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        let name = SocketName { pid: 4711, key: 98_765_432_101 };
        assert_eq!(name.to_string(), "dotnet-diagnostic-4711-98765432101-socket");
        assert_eq!(SocketName::parse(name.to_string().as_ref()), Some(name));
    }

    #[test]
    fn other_names_do_not_parse() {
        for name in [
            "dotnet-diagnostic-4711-socket",
            "dotnet-diagnostic-4711-12-socket.bak",
            "dotnet-diagnostic-+1-12-socket",
            "dotnet-diagnostic-01-12-socket",
            "dotnet-diagnostic-1--12-socket",
            "dotnet-diagnostic-1-2-3-socket",
            "dotnet-diagnostic-4294967296-12-socket",
            "dotnet-diagnostic-dsrouter-4711-12-socket",
            "clr-debug-pipe-4711-12-in",
            "",
        ] {
            assert_eq!(SocketName::parse(name.as_ref()), None, "{name}");
        }
    }
}
