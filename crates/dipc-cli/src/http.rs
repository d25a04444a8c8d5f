//! Receivers of metrics and profiles over HTTP, as the command line has them.

use dipc_http::{Endpoint, ParseEndpointError};
use hyper::header::{HeaderName, HeaderValue};

/// Parses the URL of a receiver. Without a path, it gets `default_path`.
pub(crate) fn parse_endpoint(url: &str, default_path: &'static str) -> Result<Endpoint, String> {
    Endpoint::parse(url, default_path).map_err(|error| match error {
        ParseEndpointError::Tls => {
            "dipc has no TLS: push to a collector on this machine, http://127.0.0.1:PORT, which forwards what it receives".into()
        }
        ParseEndpointError::Credentials => "put passwords into --header 'Authorization=Basic …'".into(),
        error => error.to_string(),
    })
}

/// Parses a header given on the command line: `NAME=VALUE`.
pub(crate) fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once('=').ok_or("a header is NAME=VALUE")?;
    let name = name.trim().parse().map_err(|_| format!("'{name}' is not a valid header name"))?;
    // The value may be a password, so messages do not quote it.
    let mut value = HeaderValue::from_str(value.trim())
        .map_err(|_| "the value has characters that a header cannot have")?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Parses an attribute of a resource: `KEY=VALUE`.
pub(crate) fn parse_attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("an attribute is KEY=VALUE".to_owned()),
    }
}

/// The name of this machine; empty if it is unknown.
#[cfg(unix)]
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of this machine; empty if it is unknown.
#[cfg(not(unix))]
pub(crate) fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_with_tls_or_passwords_have_a_remedy() {
        for (url, part) in [("https://host", "no TLS"), ("http://me:secret@host", "--header")] {
            let error = parse_endpoint(url, "/").unwrap_err();
            assert!(error.contains(part) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
