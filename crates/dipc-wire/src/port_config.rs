//! The configuration string of diagnostic ports: the value of the environment variable
//! `DOTNET_DiagnosticPorts`.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// The side that listens on a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PortKind {
    /// The tool listens, and the runtime connects to it.
    #[default]
    Connect,
    /// The runtime listens, in addition to its default port: only for a runtime built for a device, where
    /// ports are TCP. Others ignore such a port, and do not wait on it either (seen on .NET 9).
    Listen,
}

/// A port in `DOTNET_DiagnosticPorts`: `address[,suspend|nosuspend][,connect|listen]`.
///
/// | tag | meaning |
/// |---|---|
/// | `suspend` (default), `nosuspend` | whether the runtime waits at its start until it is resumed on this port |
/// | `connect` (default), `listen` | [`PortKind`] |
///
/// Tags are not case-sensitive, the first of a kind counts, and unknown tags are ignored.
///
/// ```
/// use dipc_wire::{PortConfig, PortKind};
///
/// // As `DOTNET_DiagnosticPorts` has it.
/// let port: PortConfig = "/run/app.port,nosuspend".parse()?;
/// assert_eq!((port.address(), port.suspend, port.kind), ("/run/app.port", false, PortKind::Connect));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "Diagnostic Ports"; `listen` as in the runtime.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PortConfig {
    address: String,
    /// True if the runtime waits at its start until it is resumed on this port.
    pub suspend: bool,
    /// The side that listens.
    pub kind: PortKind,
}

/// A reason why a string is not the configuration of a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParsePortError {
    /// The address is missing.
    #[error("a diagnostic port needs an address: the path of a socket, or the name of a pipe")]
    NoAddress,
    /// The address contains a character that would end it.
    #[error(
        "the address {address:?} of a diagnostic port contains {character:?}, where the runtime would cut it"
    )]
    Separator {
        /// The address.
        address: String,
        /// `,` or `;`.
        character: char,
    },
}

impl PortConfig {
    /// Returns a port that the runtime connects and waits on. The address is the path of a socket, or the
    /// name of a pipe without `\\.\pipe\`.
    pub fn new(address: impl Into<String>) -> Result<Self, ParsePortError> {
        let address = address.into();
        match address.chars().find(|character| matches!(character, ',' | ';')) {
            Some(character) => Err(ParsePortError::Separator { address, character }),
            None if address.is_empty() => Err(ParsePortError::NoAddress),
            None => Ok(Self { address, suspend: true, kind: PortKind::Connect }),
        }
    }

    /// Returns the path of the socket, or the name of the pipe.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Parses one port as runtimes do: the first part is the address, even if it looks like a tag.
impl FromStr for PortConfig {
    type Err = ParsePortError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(';') {
            return Err(ParsePortError::Separator { address: text.to_owned(), character: ';' });
        }
        let mut parts = text.split(',').filter(|part| !part.is_empty());
        let mut port = Self::new(parts.next().unwrap_or_default())?;
        let (mut suspend, mut kind) = (None, None);
        for tag in parts {
            if tag.eq_ignore_ascii_case("suspend") {
                suspend.get_or_insert(true);
            } else if tag.eq_ignore_ascii_case("nosuspend") {
                suspend.get_or_insert(false);
            } else if tag.eq_ignore_ascii_case("connect") {
                kind.get_or_insert(PortKind::Connect);
            } else if tag.eq_ignore_ascii_case("listen") {
                kind.get_or_insert(PortKind::Listen);
            }
        }
        port.suspend = suspend.unwrap_or(true);
        port.kind = kind.unwrap_or_default();
        Ok(port)
    }
}

/// Prints the port with the tags that differ from the defaults.
impl fmt::Display for PortConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)?;
        if !self.suspend {
            f.write_str(",nosuspend")?;
        }
        match self.kind {
            PortKind::Connect => Ok(()),
            PortKind::Listen => f.write_str(",listen"),
        }
    }
}

/// Parses the whole value of `DOTNET_DiagnosticPorts`: ports separated by `;`. Empty entries are skipped.
///
/// ```
/// let ports = dipc_wire::parse_port_configs("/run/a,listen;/run/b")?;
/// assert_eq!(ports.iter().map(|port| port.address()).collect::<Vec<_>>(), ["/run/a", "/run/b"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parse_port_configs(text: &str) -> Result<Vec<PortConfig>, ParsePortError> {
    let ports = text.split(';').filter(|port| !port.is_empty());
    ports.map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    fn port(address: &str, suspend: bool, kind: PortKind) -> PortConfig {
        PortConfig { suspend, kind, ..PortConfig::new(address).unwrap() }
    }

    #[test]
    fn ports_are_read_as_runtimes_read_them() {
        for (text, expected) in [
            ("/run/a.sock", port("/run/a.sock", true, PortKind::Connect)),
            ("/run/a.sock,nosuspend", port("/run/a.sock", false, PortKind::Connect)),
            ("a,NoSuspend,LISTEN", port("a", false, PortKind::Listen)),
            ("a,suspend,nosuspend,connect,listen", port("a", true, PortKind::Connect)),
            ("a,sideways", port("a", true, PortKind::Connect)),
            // The example of the protocol's text.
            ("nosuspend,connect", port("nosuspend", true, PortKind::Connect)),
            (",,a,,listen", port("a", true, PortKind::Listen)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn printed_ports_parse_to_the_same() {
        for suspend in [true, false] {
            for kind in [PortKind::Connect, PortKind::Listen] {
                let port = port("~/a b.sock", suspend, kind);
                assert_eq!(port.to_string().parse(), Ok(port));
            }
        }
    }

    #[test]
    fn a_list_is_read() {
        let ports = parse_port_configs(";a;b,nosuspend;;").unwrap();
        assert_eq!(ports, [port("a", true, PortKind::Connect), port("b", false, PortKind::Connect)]);
        assert_eq!(parse_port_configs(""), Ok(Vec::new()));
    }

    #[test]
    fn an_address_that_the_runtime_would_cut_is_refused() {
        assert_eq!(PortConfig::new(""), Err(ParsePortError::NoAddress));
        assert_eq!(",".parse::<PortConfig>(), Err(ParsePortError::NoAddress));
        for (address, character) in [("a,b", ','), ("a;b", ';')] {
            let error = ParsePortError::Separator { address: address.into(), character };
            assert_eq!(PortConfig::new(address), Err(error));
        }
        assert!("a;b".parse::<PortConfig>().is_err());
    }
}
