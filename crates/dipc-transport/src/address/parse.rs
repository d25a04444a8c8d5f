use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

use super::{Address, TcpAddress, TcpReach, pipe_name};
use crate::Error;

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
}

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
}

/// [`Address::parse`] of loopback addresses.
impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text, TcpReach::Loopback)
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
