mod parse;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The address of a diagnostic port.
///
/// Every kind can be named on every system; using a kind that the system lacks fails with
/// [`Error::Unsupported`](crate::Error::Unsupported).
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
