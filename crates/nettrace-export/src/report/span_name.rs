//! The names of requests and calls in rows: the parts that differ between those of the same kind are
//! replaced.

use std::borrow::Cow;

use clr_activity::{Span, SpanEvent, SpanRole};
use nettrace::Event;

/// Returns the name of the row that a span belongs to.
pub(crate) fn row_name<'s>(span: &Span<'s>) -> Cow<'s, str> {
    if has_path(span.role, span.provider) { path_template(span.name) } else { Cow::Borrowed(span.name) }
}

/// Returns the name of the row of the call that an event begins; `None` for other events.
pub(crate) fn call_name(event: &Event<'_>) -> Option<String> {
    let span = SpanEvent::of(event.metadata()).filter(|span| span.role() == SpanRole::Outgoing)?;
    let name = span.name(event)?;
    let is_path = has_path(SpanRole::Outgoing, event.provider());
    Some(if is_path { path_template(&name).into_owned() } else { name })
}

/// Returns true if the names of spans are paths of HTTP.
fn has_path(role: SpanRole, provider: &str) -> bool {
    match role {
        SpanRole::Server => true,
        SpanRole::Outgoing => matches!(provider, "System.Net.Http" | "HttpHandlerDiagnosticListener"),
        _ => false,
    }
}

/// Returns the name of a request or call without its query, with `{n}`, `{guid}` and `{hex}` for numbers,
/// GUIDs and other hexadecimal numbers among the segments of its path: `http://host/hello/{n}` of
/// `http://host/hello/17`. A name with a brace has its route already.
fn path_template(name: &str) -> Cow<'_, str> {
    let start = path_start(name);
    let Some((before, path)) = start.and_then(|start| name.split_at_checked(start)) else {
        return Cow::Borrowed(name);
    };
    if path.contains('{') {
        return Cow::Borrowed(name);
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segments: Vec<_> = path.split('/').map(segment_template).collect();
    if segments.iter().all(|segment| matches!(segment, Cow::Borrowed(_))) {
        return Cow::Borrowed(name.get(..before.len() + path.len()).unwrap_or(name));
    }
    Cow::Owned(format!("{before}{}", segments.join("/")))
}

/// Returns where the path begins in `http://host:port/path`, `GET http://host/path` or `GET /path`. The host
/// stays: it may be a number.
pub(super) fn path_start(name: &str) -> Option<usize> {
    let host = name.find("://").map_or(0, |scheme| scheme + 3);
    Some(host + name.get(host..)?.find('/')?)
}

fn segment_template(segment: &str) -> Cow<'_, str> {
    // The type of a file is not part of its number.
    let extension = segment.rfind('.').filter(|dot| {
        let extension = segment.get(dot + 1..).unwrap_or_default();
        extension.starts_with(|c: char| c.is_ascii_alphabetic()) && extension.len() <= 5
    });
    let (stem, extension) = segment.split_at(extension.unwrap_or(segment.len()));
    match placeholder(stem) {
        Some(placeholder) => Cow::Owned(format!("{placeholder}{extension}")),
        None => Cow::Borrowed(segment),
    }
}

/// Returns the replacement of a string that may differ from call to call.
fn placeholder(text: &str) -> Option<&'static str> {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let number = text.strip_prefix('-').unwrap_or(text);
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some("{n}");
    }
    let groups = text.trim_start_matches("%7B").trim_end_matches("%7D").split('-');
    if groups.clone().map(str::len).eq([8, 4, 4, 4, 12]) && groups.clone().all(is_hex) {
        return Some("{guid}");
    }
    // Shorter ones may be words, such as `decade`.
    (text.len() >= 8 && is_hex(text) && has_digit).then_some("{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_guids_and_hexadecimal_numbers_are_replaced() {
        for (name, template) in [
            ("http://localhost:5000/hello/17", "http://localhost:5000/hello/{n}"),
            (
                "https://10.0.0.7/v1/orders/4711/lines/3?expand=all",
                "https://10.0.0.7/v1/orders/{n}/lines/{n}",
            ),
            ("GET /items/1.json", "GET /items/{n}.json"),
            ("GET https://shop/7/", "GET https://shop/{n}/"),
            ("POST /users/00e49d44-eba0-45b6-a0a7-2c16a5f4e3ae/cart", "POST /users/{guid}/cart"),
            ("GET /blobs/9f86d081884c7d65", "GET /blobs/{hex}"),
            ("GET /search?q=1", "GET /search"),
            ("GET /2024/05", "GET /{n}/{n}"),
        ] {
            assert_eq!(path_template(name), template, "{name}");
        }
    }

    #[test]
    fn names_without_such_segments_stay() {
        for name in [
            "",
            "GET /",
            "http://127.0.0.1:5000",
            "http://4711.example/index.html",
            "GET /hello/{n}/17",
            "GET /decade/facade/deadbeef",
            "GET /v1/x-17/3rd/1.2.3",
            "App.Controllers.Home.Index (App)",
        ] {
            assert!(matches!(path_template(name), Cow::Borrowed(it) if it == name), "{name}");
        }
    }
}
