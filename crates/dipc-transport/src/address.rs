use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;

/// The address of a diagnostic port.
///
/// Every kind can be named on every system; using a kind that the system lacks fails with
/// [`Error::Unsupported`].
///
/// ```
/// use dipc_transport::Address;
///
/// // The value that a user gave for `--diagnostic-port`.
/// let port: Address = "/run/app.port".parse()?;
/// assert_eq!(port.to_string(), "/run/app.port");
/// assert!(matches!("localhost:9000".parse()?, Address::Tcp(_)));
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// A Unix domain socket. The path may be longer than a socket address holds (107 bytes on Linux).
    Unix(PathBuf),
    /// A named pipe of this Windows machine: its name after `\\.\pipe\`.
    Pipe(String),
    /// A TCP endpoint, such as `dotnet-dsrouter` or a forwarded port. Its peer is not known.
    Tcp(TcpAddress),
}

/// A TCP address: of this machine's loopback interface, unless another one was allowed explicitly.
///
/// The protocol has neither passwords nor encryption, and a client of a diagnostic port can make the process
/// run its code.
///
/// ```
/// use dipc_transport::{Error, TcpAddress};
///
/// let local = TcpAddress::loopback(([127, 0, 0, 1], 9000).into())?;
/// assert_eq!(local.socket_address().port(), 9000);
/// let refused = TcpAddress::loopback(([192, 0, 2, 1], 9000).into());
/// assert!(matches!(refused, Err(Error::NotLoopback { .. })));
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TcpAddress(SocketAddr);

/// The TCP addresses that [`Address::parse`] accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TcpReach {
    /// Addresses of this machine's loopback interface.
    #[default]
    Loopback,
    /// All addresses. For a flag that a user has to give.
    Anywhere,
}

impl TcpAddress {
    /// Returns an address of the loopback interface.
    ///
    /// # Errors
    /// [`Error::NotLoopback`] for any other.
    pub fn loopback(address: SocketAddr) -> Result<Self, Error> {
        // `to_canonical`: `::ffff:127.0.0.1` is 127.0.0.1.
        if address.ip().to_canonical().is_loopback() {
            Ok(Self(address))
        } else {
            Err(Error::NotLoopback { address })
        }
    }

    /// Returns any address, for users who allowed it.
    pub fn anywhere(address: SocketAddr) -> Self {
        Self(address)
    }

    /// Returns the address and port.
    pub fn socket_address(self) -> SocketAddr {
        self.0
    }
}

/// The prefix of all names of named pipes.
const PIPES: &str = r"\\.\pipe\";

impl Address {
    /// Parses an address in user notation: `127.0.0.1:9000`, `[::1]:9000` or `localhost:9000` is TCP,
    /// `\\.\pipe\name` is a named pipe, and anything else is a path (on Windows: the name of a pipe).
    /// `localhost` is the only name that is resolved. A socket with a file name that looks like a TCP address
    /// can be given as `./127.0.0.1:9000`.
    ///
    /// ```
    /// use dipc_transport::{Address, TcpReach};
    ///
    /// assert!(Address::parse("192.0.2.1:9000", TcpReach::Loopback).is_err());
    /// let allowed = Address::parse("192.0.2.1:9000", TcpReach::Anywhere)?;
    /// assert!(matches!(allowed, Address::Tcp(_)));
    /// # Ok::<(), dipc_transport::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotLoopback`] for a TCP address that `reach` does not allow.
    pub fn parse(text: &str, reach: TcpReach) -> Result<Self, Error> {
        let localhost = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        let localhost = localhost.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        if let Some(address) = localhost.or_else(|| text.parse().ok()) {
            return Ok(Self::Tcp(match reach {
                TcpReach::Loopback => TcpAddress::loopback(address)?,
                TcpReach::Anywhere => TcpAddress::anywhere(address),
            }));
        }
        Ok(match pipe_name(text) {
            Some(name) => Self::Pipe(name.to_owned()),
            None => Self::from(Path::new(text)),
        })
    }

    /// Returns the path of a Unix domain socket.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Pipe(_) | Self::Tcp(_) => None,
        }
    }
}

/// Returns the name after `\\.\pipe\`. For this prefix Windows ignores case and accepts both kinds of
/// slashes.
fn pipe_name(text: &str) -> Option<&str> {
    let (prefix, name) = text.split_at_checked(PIPES.len())?;
    prefix.replace('/', r"\").eq_ignore_ascii_case(PIPES).then_some(name)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Pipe(name) => write!(f, "{PIPES}{name}"),
            Self::Tcp(TcpAddress(address)) => address.fmt(f),
        }
    }
}

/// [`Address::parse`] of loopback addresses.
impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text, TcpReach::Loopback)
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::from(path.as_path())
    }
}

impl From<&Path> for Address {
    /// Converts a path. On Windows it names a pipe, with or without the prefix `\\.\pipe\`.
    fn from(path: &Path) -> Self {
        if cfg!(windows) {
            let text = path.to_string_lossy();
            Self::Pipe(pipe_name(&text).unwrap_or(&text).to_owned())
        } else {
            Self::Unix(path.to_path_buf())
        }
    }
}

impl From<&PathBuf> for Address {
    fn from(path: &PathBuf) -> Self {
        Self::from(path.as_path())
    }
}

impl From<&Address> for Address {
    fn from(address: &Address) -> Self {
        address.clone()
    }
}

impl From<TcpAddress> for Address {
    fn from(address: TcpAddress) -> Self {
        Self::Tcp(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Address {
        Address::Tcp(TcpAddress::loopback(text.parse().unwrap()).unwrap())
    }

    #[test]
    fn each_kind_of_address_has_its_form() {
        let cases = [
            ("127.0.0.1:9000", tcp("127.0.0.1:9000")),
            ("127.8.8.8:1", tcp("127.8.8.8:1")),
            ("[::1]:9000", tcp("[::1]:9000")),
            ("[::ffff:127.0.0.1]:9000", tcp("[::ffff:127.0.0.1]:9000")),
            ("localhost:9000", tcp("127.0.0.1:9000")),
            (r"\\.\pipe\dotnet-diagnostic-7", Address::Pipe("dotnet-diagnostic-7".into())),
            (r"//./PIPE/x\y", Address::Pipe(r"x\y".into())),
        ];
        for (text, address) in cases {
            assert_eq!(text.parse::<Address>().unwrap(), address, "{text}");
            assert_eq!(address.to_string().parse::<Address>().unwrap(), address, "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn everything_else_is_a_path() {
        for text in
            ["/run/app.port", "port", "./127.0.0.1:9000", "127.0.0.1", "host.example:80", "localhost:x", ""]
        {
            assert_eq!(text.parse::<Address>().unwrap(), Address::Unix(text.into()), "{text}");
            assert_eq!(Address::Unix(text.into()).to_string(), text);
        }
    }

    #[test]
    fn an_address_of_another_machine_has_to_be_allowed() {
        for text in ["0.0.0.0:9000", "10.0.0.1:9000", "[::]:1", "[::ffff:10.0.0.1]:1", "169.254.0.1:80"] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(matches!(error, Error::NotLoopback { .. }), "{text}: {error:?}");
            assert!(error.to_string().contains("loopback"), "{error}");
            let address = Address::parse(text, TcpReach::Anywhere).unwrap();
            assert_eq!(address, Address::Tcp(TcpAddress::anywhere(text.parse().unwrap())));
        }
    }
}
