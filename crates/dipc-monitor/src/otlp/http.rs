//! The attributes that the semantic conventions have for HTTP, from the properties of .NET's requests.

use std::collections::BTreeMap;

use clr_activity::DiagnosticEvent;
use otlp_messages::trace::span::SpanKind;

/// The methods that the conventions name; others are `_OTHER`.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Adds the attributes of a request that ASP.NET Core serves, or that HttpClient sends, unless the
/// application has set them. Returns the kind of the span, if the event belongs to one.
pub(super) fn add_properties(
    event: &DiagnosticEvent,
    tags: &mut BTreeMap<String, String>,
) -> Option<SpanKind> {
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            tags.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
    };
    if let Some(method) = event.argument(&["Method"]) {
        let method = method.to_ascii_uppercase();
        if METHODS.contains(&&*method) {
            add("http.request.method", &method);
        } else {
            add("http.request.method", "_OTHER");
            add("http.request.method_original", &method);
        }
    }
    if let Some(status) = event.argument(&["StatusCode"]).and_then(status_number) {
        add("http.response.status_code", &status);
    }
    match &*event.source {
        "Microsoft.AspNetCore" => {
            let get = |key| event.argument(&[key]).unwrap_or_default();
            add("url.scheme", get("Scheme"));
            let path = format!("{}{}", get("PathBase"), get("Path"));
            add("url.path", &path);
            add("url.query", &redacted(get("QueryString").trim_start_matches('?')));
            let (host, port) = host_and_port(get("Host"));
            add("server.address", host);
            add("server.port", port);
            Some(SpanKind::Server)
        }
        "HttpHandlerDiagnosticListener" => {
            if let Some(url) = event.argument(&["RequestUri"]) {
                add("url.full", &redacted_url(url));
                if let Some((scheme, rest)) = url.split_once("://") {
                    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
                    let authority = authority.rsplit('@').next().unwrap_or_default();
                    let (host, port) = host_and_port(authority);
                    add("server.address", host);
                    let usual = if scheme == "https" { "443" } else { "80" };
                    add("server.port", if port.is_empty() { usual } else { port });
                }
            }
            Some(SpanKind::Client)
        }
        _ => None,
    }
}

/// The name of a span: the method and the route; `None` if it is not an HTTP span.
pub(super) fn name(tags: &BTreeMap<String, String>) -> Option<String> {
    let method = tags.get("http.request.method")?;
    let method = if method == "_OTHER" { "HTTP" } else { method };
    Some(match tags.get("http.route") {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    })
}

/// The error type that the status implies: servers fail from 500 on, clients from 400.
pub(super) fn error(tags: &BTreeMap<String, String>, is_server: bool) -> Option<String> {
    if let Some(error) = tags.get("error.type") {
        return Some(error.clone());
    }
    let status: u32 = tags.get("http.response.status_code")?.parse().ok()?;
    (status >= if is_server { 500 } else { 400 }).then(|| status.to_string())
}

/// Host and port of `host:port`; the port is empty if missing.
fn host_and_port(authority: &str) -> (&str, &str) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host.trim_matches(['[', ']']), port)
        }
        _ => (authority.trim_matches(['[', ']']), ""),
    }
}

/// Replaces the values of a query, which may be secret, as the instrumentation of .NET does.
fn redacted(query: &str) -> String {
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((key, _)) => format!("{key}=Redacted"),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("&")
}

/// Replaces the values of the query of a URL, and its user.
fn redacted_url(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, query)) => (url, format!("?{}", redacted(query.split('#').next().unwrap_or_default()))),
        None => (url, String::new()),
    };
    let Some((scheme, rest)) = url.split_once("://") else { return format!("{url}{query}") };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("REDACTED:REDACTED@{host}"),
        None => authority.to_owned(),
    };
    format!("{scheme}://{authority}{path}{query}")
}

/// The number of a status, which HttpClient's events have as a name of `HttpStatusCode`.
fn status_number(status: &str) -> Option<String> {
    if !status.is_empty() && status.bytes().all(|byte| byte.is_ascii_digit()) {
        return (status != "0").then(|| status.to_owned());
    }
    let found = STATUSES.iter().find(|(_, names)| names.contains(&status));
    found.map(|(number, _)| number.to_string())
}

/// The names of `HttpStatusCode`.
///
/// # Source
/// `HttpStatusCode.cs` of dotnet/runtime.
const STATUSES: [(u16, &[&str]); 61] = [
    (100, &["Continue"]),
    (101, &["SwitchingProtocols"]),
    (102, &["Processing"]),
    (103, &["EarlyHints"]),
    (200, &["OK"]),
    (201, &["Created"]),
    (202, &["Accepted"]),
    (203, &["NonAuthoritativeInformation"]),
    (204, &["NoContent"]),
    (205, &["ResetContent"]),
    (206, &["PartialContent"]),
    (207, &["MultiStatus"]),
    (208, &["AlreadyReported"]),
    (226, &["IMUsed"]),
    (300, &["MultipleChoices", "Ambiguous"]),
    (301, &["MovedPermanently", "Moved"]),
    (302, &["Found", "Redirect"]),
    (303, &["SeeOther", "RedirectMethod"]),
    (304, &["NotModified"]),
    (305, &["UseProxy"]),
    (306, &["Unused"]),
    (307, &["TemporaryRedirect", "RedirectKeepVerb"]),
    (308, &["PermanentRedirect"]),
    (400, &["BadRequest"]),
    (401, &["Unauthorized"]),
    (402, &["PaymentRequired"]),
    (403, &["Forbidden"]),
    (404, &["NotFound"]),
    (405, &["MethodNotAllowed"]),
    (406, &["NotAcceptable"]),
    (407, &["ProxyAuthenticationRequired"]),
    (408, &["RequestTimeout"]),
    (409, &["Conflict"]),
    (410, &["Gone"]),
    (411, &["LengthRequired"]),
    (412, &["PreconditionFailed"]),
    (413, &["RequestEntityTooLarge"]),
    (414, &["RequestUriTooLong"]),
    (415, &["UnsupportedMediaType"]),
    (416, &["RequestedRangeNotSatisfiable"]),
    (417, &["ExpectationFailed"]),
    (421, &["MisdirectedRequest"]),
    (422, &["UnprocessableEntity", "UnprocessableContent"]),
    (423, &["Locked"]),
    (424, &["FailedDependency"]),
    (426, &["UpgradeRequired"]),
    (428, &["PreconditionRequired"]),
    (429, &["TooManyRequests"]),
    (431, &["RequestHeaderFieldsTooLarge"]),
    (451, &["UnavailableForLegalReasons"]),
    (500, &["InternalServerError"]),
    (501, &["NotImplemented"]),
    (502, &["BadGateway"]),
    (503, &["ServiceUnavailable"]),
    (504, &["GatewayTimeout"]),
    (505, &["HttpVersionNotSupported"]),
    (506, &["VariantAlsoNegotiates"]),
    (507, &["InsufficientStorage"]),
    (508, &["LoopDetected"]),
    (510, &["NotExtended"]),
    (511, &["NetworkAuthenticationRequired"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lose_their_secrets() {
        let rows = [
            ("https://host/a?key=secret&flag#part", "https://host/a?key=Redacted&flag"),
            ("http://me:word@host:8080/a", "http://REDACTED:REDACTED@host:8080/a"),
            ("http://[::1]/", "http://[::1]/"),
            ("/relative?a=b", "/relative?a=Redacted"),
        ];
        for (url, expected) in rows {
            assert_eq!(redacted_url(url), expected);
        }
        assert_eq!(host_and_port("[::1]:80"), ("::1", "80"));
        assert_eq!(host_and_port("host"), ("host", ""));
    }

    #[test]
    fn statuses_are_numbers() {
        let rows =
            [("200", Some("200")), ("OK", Some("200")), ("Redirect", Some("302")), ("0", None), ("x", None)];
        for (status, expected) in rows {
            assert_eq!(status_number(status).as_deref(), expected, "{status}");
        }
        assert!(STATUSES.is_sorted_by_key(|(number, _)| *number));
    }

    #[test]
    fn names_are_of_few_values() {
        let tags = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let get = ("http.request.method", "GET");
        assert_eq!(name(&tags(&[get, ("http.route", "/a/{id}")])).as_deref(), Some("GET /a/{id}"));
        assert_eq!(name(&tags(&[get, ("url.path", "/a/7")])).as_deref(), Some("GET"));
        assert_eq!(name(&tags(&[("http.request.method", "_OTHER")])).as_deref(), Some("HTTP"));
        assert_eq!(name(&tags(&[])), None);
        let missing = tags(&[("http.response.status_code", "404")]);
        assert_eq!((error(&missing, true), error(&missing, false)), (None, Some("404".to_owned())));
    }
}
