//! Addresses to listen at.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen at: `http://127.0.0.1:52323`, `http://localhost:52323`, `http://+:52323` (all
/// interfaces), the same with `https`, or `unix:PATH`.
///
/// ```
/// use dipc_monitor::ListenAddress;
///
/// let address: ListenAddress = "http://localhost:52323".parse()?;
/// assert!(address.is_local() && !address.is_tls());
/// let all: ListenAddress = "https://+:52323".parse()?;
/// assert!(!all.is_local() && all.is_tls());
/// # Ok::<(), dipc_monitor::ParseAddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A TCP address with TLS.
    Tls(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// A text is not an address to listen at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseAddressError {
    /// The address is not of a known form.
    #[error(
        "'{0}' is not an address: use http://127.0.0.1:PORT, http://localhost:PORT, http://+:PORT or unix:PATH"
    )]
    Form(String),
}

impl ListenAddress {
    /// Returns true if it has TLS.
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Returns true if only this machine can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) | Self::Tls(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl FromStr for ListenAddress {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let form = || ParseAddressError::Form(text.to_owned());
        let unix = text.strip_prefix("unix://").or_else(|| text.strip_prefix("http://unix:"));
        if let Some(path) = unix.or_else(|| text.strip_prefix("unix:")) {
            return if path.is_empty() { Err(form()) } else { Ok(Self::Unix(path.into())) };
        }
        let (authority, is_tls) = match text.strip_prefix("https://") {
            Some(authority) => (authority, true),
            None => (text.strip_prefix("http://").unwrap_or(text), false),
        };
        let authority = authority.trim_end_matches('/');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && !port.ends_with(']') => {
                (host, port.parse().map_err(|_| form())?)
            }
            _ => (authority, if is_tls { 443 } else { 80 }),
        };
        let ip = match host {
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            "+" | "*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            host => host.trim_matches(['[', ']']).parse().map_err(|_| form())?,
        };
        let address = SocketAddr::new(ip, port);
        Ok(if is_tls { Self::Tls(address) } else { Self::Tcp(address) })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Tls(address) => write!(f, "https://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_match_dotnet_monitor() {
        let rows = [
            ("http://localhost:52323", "http://127.0.0.1:52323", true),
            ("http://127.0.0.1:0/", "http://127.0.0.1:0", true),
            ("http://[::1]:52325", "http://[::1]:52325", true),
            ("https://localhost:52323", "https://127.0.0.1:52323", true),
            ("https://+", "https://[::]:443", false),
            ("http://+:52325", "http://[::]:52325", false),
            ("http://*:80", "http://[::]:80", false),
            ("10.0.0.1:80", "http://10.0.0.1:80", false),
            ("unix:/run/m.sock", "unix:/run/m.sock", true),
            ("http://unix:/run/m.sock", "unix:/run/m.sock", true),
        ];
        for (text, shown, is_local) in rows {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.is_local()), (shown, is_local));
        }
        for text in ["https://example.com", "http://example.com:80", "http://localhost:x", "", "unix:"] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }
}
