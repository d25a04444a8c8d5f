use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;

/// Where a diagnostic port is reached.
///
/// Every kind can be named on every system; one that the system does not have is refused with
/// [`Error::Unsupported`] when it is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// A Unix domain socket. The path may be longer than a socket address holds (107 bytes on Linux).
    Unix(PathBuf),
    /// A named pipe of this Windows machine: what follows `\\.\pipe\` in its name.
    Pipe(String),
    /// A TCP endpoint, as `dotnet-dsrouter` and forwarded ports have it. Nothing tells who is on the other side.
    Tcp(TcpAddress),
}

/// A TCP address that may be used: one of this machine's own loopback interface, unless somebody said otherwise.
///
/// The protocol has neither passwords nor encryption, and whoever reaches a diagnostic port can make the process run
/// his code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TcpAddress(SocketAddr);

/// Which TCP addresses [`Address::parse`] accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TcpReach {
    /// Those of this machine's loopback interface.
    #[default]
    Loopback,
    /// All. For a flag that a user has to give.
    Anywhere,
}

impl TcpAddress {
    /// An address of the loopback interface.
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

    /// Any address, for those who asked for it.
    pub fn anywhere(address: SocketAddr) -> Self {
        Self(address)
    }

    /// The address and port.
    pub fn socket_address(self) -> SocketAddr {
        self.0
    }
}

/// What the names of all named pipes of a machine begin with.
const PIPES: &str = r"\\.\pipe\";

impl Address {
    /// Reads an address as users write it: `127.0.0.1:9000`, `[::1]:9000` or `localhost:9000` is TCP, `\\.\pipe\name`
    /// is a named pipe, and anything else is a path (on Windows: the name of a pipe). No name but `localhost` is looked
    /// up. A socket whose file name looks like a TCP address can be given as `./127.0.0.1:9000`.
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

    /// The path of a Unix domain socket.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Pipe(_) | Self::Tcp(_) => None,
        }
    }
}

/// The part behind `\\.\pipe\`, in which Windows takes no notice of case, and takes slashes of both kinds.
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
    /// On Windows the path names a pipe, with or without what the names of all pipes begin with.
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
    fn each_kind_is_told_by_its_form() {
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
    fn an_address_of_another_machine_has_to_be_asked_for() {
        for text in ["0.0.0.0:9000", "10.0.0.1:9000", "[::]:1", "[::ffff:10.0.0.1]:1", "169.254.0.1:80"] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(matches!(error, Error::NotLoopback { .. }), "{text}: {error:?}");
            assert!(error.to_string().contains("loopback"), "{error}");
            let address = Address::parse(text, TcpReach::Anywhere).unwrap();
            assert_eq!(address, Address::Tcp(TcpAddress::anywhere(text.parse().unwrap())));
        }
    }
}
