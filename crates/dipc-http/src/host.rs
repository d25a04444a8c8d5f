//! The check of the `Host` header.

use std::net::IpAddr;

/// Returns true if a `Host` header names localhost or an address. A web page can have its own name resolve to
/// this machine, and could then read the answers.
///
/// ```
/// use dipc_http::is_local_host;
///
/// // The header `Host` of a request: another name may be an attacking web page's.
/// assert!(is_local_host("localhost:52323") && is_local_host("[::1]:52323"));
/// assert!(!is_local_host("attacker.example"));
/// ```
pub fn is_local_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    address.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_local_if_it_is_an_address_or_localhost() {
        for host in ["localhost", "LocalHost:9464", "127.0.0.1:9464", "[::1]:9464", "[::1]", "10.0.0.1"] {
            assert!(is_local_host(host), "{host}");
        }
        for host in ["attacker.example", "attacker.example:9464", "localhost.attacker.example", "", ":80"] {
            assert!(!is_local_host(host), "{host}");
        }
    }
}
