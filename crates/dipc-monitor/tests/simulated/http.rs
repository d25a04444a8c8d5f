//! A client that shows every byte: status, headers and body, and whether the body was cut.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
    /// True if the body has the end that its sender writes.
    pub(crate) is_whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends a request and returns its connection.
pub(crate) fn send(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}{headers}\r\n{body}"
    )
    .unwrap();
    stream
}

/// Reads the answer to its end.
pub(crate) fn receive(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A cut connection ends with an error after the received bytes.
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(&bytes)));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let rest = &bytes[end + 4..];
    let answer = Answer { status, head, body: Vec::new(), is_whole: false };
    if answer.header("transfer-encoding") == Some("chunked") {
        let (body, is_whole) = unchunk(rest);
        return Answer { body, is_whole, ..answer };
    }
    let length = answer.header("content-length").and_then(|length| length.parse().ok());
    Answer {
        body: rest.to_vec(),
        is_whole: length.is_none_or(|length: usize| length == rest.len()),
        ..answer
    }
}

fn unchunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        let rest = &bytes[end + 2..];
        if length == 0 {
            return (body, true);
        }
        if rest.len() < length + 2 {
            body.extend_from_slice(&rest[..length.min(rest.len())]);
            break;
        }
        body.extend_from_slice(&rest[..length]);
        bytes = &rest[length + 2..];
    }
    (body, false)
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    receive(send(address, "GET", path, "", ""))
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    receive(send(address, "POST", path, "Content-Type: application/json\r\n", body))
}
