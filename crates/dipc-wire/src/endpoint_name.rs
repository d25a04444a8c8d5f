//! The names of the sockets and pipes of runtimes.

use core::fmt;
use core::str::FromStr;

const PREFIX: &str = "dotnet-diagnostic-";
const ROUTER: &str = "dsrouter-";
const SUFFIX: &str = "-socket";

/// The name of a diagnostic endpoint: of a socket in the directory for temporary files, or of a pipe under
/// `\\.\pipe\`.
///
/// | name | what |
/// |---|---|
/// | `dotnet-diagnostic-{pid}-{key}-socket` | a runtime's socket, on Unix |
/// | `dotnet-diagnostic-{pid}` | a runtime's pipe, on Windows |
/// | `dotnet-diagnostic-dsrouter-{pid}-{key}-socket`, `dotnet-diagnostic-dsrouter-{pid}` | an endpoint of `dotnet-dsrouter`, which forwards to a runtime on a device |
///
/// ```
/// use dipc_wire::EndpointName;
///
/// let name: EndpointName = "dotnet-diagnostic-4711-98765-socket".parse()?;
/// assert_eq!((name.pid, name.key), (4711, Some(98765)));
/// assert_eq!(EndpointName::socket(4711, 98765).to_string(), "dotnet-diagnostic-4711-98765-socket");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "Naming and Location Conventions"; dotnet-dsrouter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct EndpointName {
    /// The process id, in the process's own pid namespace.
    pub pid: u32,
    /// The start time of the process, in the name of a socket: on Linux in clock ticks since boot, on macOS
    /// and FreeBSD in seconds since 1970, 0 if the runtime could not determine it. `None` for the name of a
    /// pipe.
    pub key: Option<u64>,
    /// True if it is an endpoint of `dotnet-dsrouter`.
    pub router: bool,
}

/// The error for a string that is not the name of a diagnostic endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a diagnostic endpoint, such as dotnet-diagnostic-4711-98765-socket")]
#[non_exhaustive]
pub struct ParseEndpointNameError;

impl EndpointName {
    /// Returns the name of a socket.
    pub const fn socket(pid: u32, key: u64) -> Self {
        Self { pid, key: Some(key), router: false }
    }

    /// Returns the name of a pipe.
    pub const fn pipe(pid: u32) -> Self {
        Self { pid, key: None, router: false }
    }
}

impl fmt::Display for EndpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let router = if self.router { ROUTER } else { "" };
        write!(f, "{PREFIX}{router}{}", self.pid)?;
        match self.key {
            Some(key) => write!(f, "-{key}{SUFFIX}"),
            None => Ok(()),
        }
    }
}

/// Parses a name without its directory. Numbers must not have a sign or leading zeros.
impl FromStr for EndpointName {
    type Err = ParseEndpointNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let rest = name.strip_prefix(PREFIX).ok_or(ParseEndpointNameError)?;
        let (router, rest) = match rest.strip_prefix(ROUTER) {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (pid, key) = match rest.strip_suffix(SUFFIX).and_then(|rest| rest.split_once('-')) {
            Some((pid, key)) => (pid, Some(number(key)?)),
            None => (rest, None),
        };
        Ok(Self { pid: number(pid)?, key, router })
    }
}

fn number<T: FromStr>(digits: &str) -> Result<T, ParseEndpointNameError> {
    let plain =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if plain { digits.parse().map_err(|_| ParseEndpointNameError) } else { Err(ParseEndpointNameError) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn names_are_read_and_printed() {
        let name = |pid, key, router| EndpointName { pid, key, router };
        for (text, expected) in [
            ("dotnet-diagnostic-4711-98765432101-socket", name(4711, Some(98_765_432_101), false)),
            ("dotnet-diagnostic-1-0-socket", name(1, Some(0), false)),
            ("dotnet-diagnostic-4294967295", name(u32::MAX, None, false)),
            ("dotnet-diagnostic-dsrouter-7-8-socket", name(7, Some(8), true)),
            ("dotnet-diagnostic-dsrouter-7", name(7, None, true)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_not_names() {
        for text in [
            "",
            "dotnet-diagnostic-",
            "dotnet-diagnostic-socket",
            "dotnet-diagnostic-1-socket",
            "dotnet-diagnostic-1--socket",
            "dotnet-diagnostic-1-2",
            "dotnet-diagnostic-1-2-socket~",
            "dotnet-diagnostic-01-2-socket",
            "dotnet-diagnostic-+1-2-socket",
            "dotnet-diagnostic-1-18446744073709551616-socket",
            "dotnet-diagnostic-4294967296",
            "DOTNET-diagnostic-1",
            "clr-debug-pipe-1-2-in",
        ] {
            assert_eq!(text.parse::<EndpointName>(), Err(ParseEndpointNameError), "{text}");
        }
    }
}
