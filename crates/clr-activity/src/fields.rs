//! The event fields that give a span its name, its pairing key and its outcome.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use nettrace::{Event, Value};

use crate::event_kind::{self, Format};

/// Maximum length of a kept string, in bytes.
pub(crate) const MAX_LENGTH: usize = 256;

/// Appends a value as text, in at most [`MAX_LENGTH`] bytes, without control characters.
pub(crate) fn push(text: &mut String, value: &Value<'_>) {
    match value {
        Value::String(value) => push_text(text, value.chars()),
        Value::Bool(value) => _ = write!(text, "{value}"),
        Value::I8(value) => _ = write!(text, "{value}"),
        Value::U8(value) => _ = write!(text, "{value}"),
        Value::I16(value) => _ = write!(text, "{value}"),
        Value::U16(value) => _ = write!(text, "{value}"),
        Value::I32(value) => _ = write!(text, "{value}"),
        Value::U32(value) => _ = write!(text, "{value}"),
        Value::I64(value) => _ = write!(text, "{value}"),
        Value::U64(value) | Value::Address(value) => _ = write!(text, "{value}"),
        Value::Guid(value) => _ = write!(text, "{value}"),
        _ => {}
    }
}

/// Appends a string in the same way.
fn push_text(text: &mut String, chars: impl Iterator<Item = char>) {
    let limit = text.len().saturating_add(MAX_LENGTH);
    for char in chars {
        if text.len() >= limit {
            text.push('…');
            break;
        }
        text.push(if char.is_control() { ' ' } else { char });
    }
}

/// Returns a value as text.
pub(crate) fn text(value: &Value<'_>) -> String {
    let mut text = String::new();
    push(&mut text, value);
    text
}

/// The value of a field as text; `None` if the event does not have that field.
pub(crate) fn field(event: &Event<'_>, name: &str) -> Option<String> {
    let mut fields = event.fields().flatten();
    fields.find(|(field, _)| *field == name).map(|(_, value)| text(&value))
}

/// Returns the name of a span, from the fields of its Start.
pub(crate) fn name(event: &Event<'_>, format: Format) -> String {
    let mut name = String::new();
    let of = |field_name| field(event, field_name).unwrap_or_default();
    match format {
        Format::Hosting | Format::Kestrel => {
            let _ = write!(name, "{} {}", of("method"), of("path"));
        }
        Format::Http => {
            let (scheme, host, port) = (of("scheme"), of("host"), of("port"));
            let _ = write!(name, "{scheme}://{host}");
            if !matches!((&*scheme, &*port), ("http", "80") | ("https", "443") | (_, "" | "0" | "-1")) {
                let _ = write!(name, ":{port}");
            }
            let path = of("pathAndQuery");
            name.push_str(path.split('?').next().unwrap_or_default());
        }
        Format::Resolution => name = of("hostNameOrAddress"),
        Format::Connect => name = socket_address(&of("address")),
        Format::Handshake => name = of("targetHost"),
        Format::Sql => {
            let _ = write!(name, "{} on {}", of("database"), of("dataSource"));
        }
        Format::Grpc(_) => name = of("method"),
        Format::Generic => {
            // An event with an explicit opcode need not be named as the start of a task.
            if event_kind::task(event.metadata()).is_empty() {
                push_text(&mut name, event.name().chars());
            }
            for (field, value) in event.fields().flatten() {
                if let Value::String(_) = value {
                    let gap = if name.is_empty() { "" } else { " " };
                    let _ = write!(name, "{gap}{field}=");
                    push(&mut name, &value);
                }
                if name.len() > MAX_LENGTH {
                    break;
                }
            }
        }
    }
    name
}

/// The fields that pair Start and Stop if their activities do not.
pub(crate) fn pairing_key(event: &Event<'_>, format: Format) -> Option<String> {
    match format {
        Format::Kestrel => field(event, "requestId"),
        Format::Sql => field(event, "objectId"),
        // The first field of both, if it is a number or its name indicates an id.
        Format::Generic => {
            let (name, value) = event.fields().next()?.ok()?;
            let is_key = match value {
                Value::String(_) => name.to_ascii_lowercase().ends_with("id"),
                Value::I32(_) | Value::U32(_) | Value::I64(_) | Value::U64(_) | Value::Guid(_) => true,
                _ => false,
            };
            is_key.then(|| format!("{name}={}", text(&value)))
        }
        _ => None,
    }
}

/// The outcome of a span, as far as an event states it.
#[derive(Debug, Default)]
pub(crate) struct SpanOutcome {
    pub(crate) status: Option<String>,
    pub(crate) is_error: bool,
    pub(crate) error: Option<String>,
}

/// Returns the outcome in the fields of a Stop.
pub(crate) fn outcome(event: &Event<'_>, format: Format) -> SpanOutcome {
    let mut outcome = SpanOutcome::default();
    match format {
        // Version 1 of the event; -1 if no response was received.
        Format::Http => {
            let status = field(event, "statusCode").filter(|status| status != "-1" && status != "0");
            outcome.is_error = status.as_deref().is_some_and(|status| is_error_status(status, 400));
            outcome.status = status;
        }
        Format::Handshake if field(event, "protocol").as_deref() == Some("0") => outcome.is_error = true,
        // The first bit is success, the second the presence of a number.
        Format::Sql => {
            let state = field(event, "compositeState").and_then(|state| state.parse().ok()).unwrap_or(1u32);
            outcome.is_error = state & 1 == 0;
            if state & 2 != 0 {
                outcome.status = field(event, "sqlExceptionNumber");
            }
        }
        _ => {}
    }
    outcome
}

/// The text of a failure event.
pub(crate) fn failure(event: &Event<'_>) -> SpanOutcome {
    let mut outcome = SpanOutcome { is_error: true, ..SpanOutcome::default() };
    for (field, value) in event.fields().flatten() {
        match field {
            "exceptionMessage" | "exception" => outcome.error = Some(text(&value)),
            "statusCode" => outcome.status = Some(text(&value)),
            _ => {}
        }
    }
    outcome.error = outcome.error.filter(|error| !error.is_empty());
    outcome
}

/// Returns true if an HTTP status is an error: a number of at least `least`, or a name of .NET's
/// `HttpStatusCode`.
pub(crate) fn is_error_status(status: &str, least: u32) -> bool {
    if let Ok(number) = status.parse::<u32>() {
        return number >= least;
    }
    let is_server_error = matches!(
        status,
        "InternalServerError"
            | "NotImplemented"
            | "BadGateway"
            | "ServiceUnavailable"
            | "GatewayTimeout"
            | "HttpVersionNotSupported"
            | "VariantAlsoNegotiates"
            | "InsufficientStorage"
            | "LoopDetected"
            | "NotExtended"
            | "NetworkAuthenticationRequired"
    );
    let is_success = matches!(
        status,
        "Continue"
            | "SwitchingProtocols"
            | "Processing"
            | "EarlyHints"
            | "OK"
            | "Created"
            | "Accepted"
            | "NonAuthoritativeInformation"
            | "NoContent"
            | "ResetContent"
            | "PartialContent"
            | "MultiStatus"
            | "AlreadyReported"
            | "IMUsed"
            | "Ambiguous"
            | "MultipleChoices"
            | "Moved"
            | "MovedPermanently"
            | "Found"
            | "Redirect"
            | "RedirectMethod"
            | "SeeOther"
            | "NotModified"
            | "UseProxy"
            | "Unused"
            | "TemporaryRedirect"
            | "RedirectKeepVerb"
            | "PermanentRedirect"
    );
    if least >= 500 { is_server_error } else { !is_success }
}

/// Formats an address in the usual notation: .NET prints an IPv4 address as
/// `InterNetwork:16:{31,144,127,0,0,1,…}`, with the port first; `InterNetworkV6:28:{…}` has four bytes
/// between the port and the address.
fn socket_address(text: &str) -> String {
    let parsed = || {
        let (family, rest) = text.split_once(':')?;
        let list = rest.split_once('{')?.1.strip_suffix('}')?;
        let bytes: Vec<u8> = list.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        let port = u16::from_be_bytes(*bytes.first_chunk()?);
        let address = match family {
            "InterNetwork" => IpAddr::from(*bytes.get(2..)?.first_chunk::<4>()?),
            "InterNetworkV6" => IpAddr::from(*bytes.get(6..)?.first_chunk::<16>()?),
            _ => return None,
        };
        Some(SocketAddr::new(address.to_canonical(), port).to_string())
    };
    parsed().unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_people_write_them() {
        assert_eq!(socket_address("InterNetwork:16:{58,233,127,0,0,1,0,0,0,0,0,0,0,0}"), "127.0.0.1:15081");
        let mapped = "InterNetworkV6:28:{0,80,0,0,0,0,0,0,0,0,0,0,0,0,0,0,255,255,127,0,0,1,0,0,0,0}";
        assert_eq!(socket_address(mapped), "127.0.0.1:80");
        let plain = "InterNetworkV6:28:{0,80,0,0,0,0,32,1,13,184,0,0,0,0,0,0,0,0,0,0,0,1,0,0,0,0}";
        assert_eq!(socket_address(plain), "[2001:db8::1]:80");
        for other in ["", "InterNetwork:16:{58,233}", "InterNetwork:16:{1,2,300,4,5,6}", "/tmp/socket"] {
            assert_eq!(socket_address(other), other);
        }
    }

    #[test]
    fn statuses_are_numbers_or_names() {
        for (status, client, server) in [
            ("200", false, false),
            ("404", true, false),
            ("500", true, true),
            ("OK", false, false),
            ("Found", false, false),
            ("NotFound", true, false),
            ("BadGateway", true, true),
        ] {
            assert_eq!(
                (is_error_status(status, 400), is_error_status(status, 500)),
                (client, server),
                "{status}"
            );
        }
    }
}
