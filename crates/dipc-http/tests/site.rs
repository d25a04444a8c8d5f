//! A site as clients see it, with every byte.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use dipc_http::{Content, Site, SiteServer};

/// Longer than any answer takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// More than the buffers of a connection hold.
const LARGE: usize = 32 << 20;

struct Pages;

impl Site for Pages {
    const HINT: &'static str = "/page\n";

    fn has(&self, path: &str) -> bool {
        ["/page", "/large"].contains(&path)
    }

    fn content(&self, path: &str, accept: Option<&str>) -> Content {
        let body = if path == "/large" { vec![b'x'; LARGE] } else { accept.unwrap_or("any").into() };
        Content { body: body.into(), media_type: "text/plain", is_private: true }
    }
}

fn start() -> SiteServer {
    SiteServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), Pages).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    // A request that was not read to its end resets the connection after the answer.
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn get(address: SocketAddr, headers: &str) -> String {
    exchange(address, &format!("GET /page HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"))
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {answer:?}"))
}

#[test]
fn answers_get_and_head_at_its_paths() {
    let server = start();
    let answer = get(server.address(), "Accept: text/x\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\ntext/x"), "{answer}");
    for header in ["content-type: text/plain", "cache-control: no-store", "x-content-type-options: nosniff"] {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    let head = exchange(server.address(), "HEAD /page HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.contains("content-length: 3") && head.ends_with("\r\n\r\n"), "{head}");
    let post = exchange(server.address(), "POST /page HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(status(&post) == "405" && post.contains("allow: GET, HEAD"), "{post}");
    let other = exchange(server.address(), "GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(status(&other) == "404" && other.ends_with("/page\n"), "{other}");
    server.stop();
}

#[test]
fn refuses_names_of_web_pages() {
    let server = start();
    let answer = exchange(server.address(), "GET /page HTTP/1.1\r\nHost: attacker.example\r\n\r\n");
    assert_eq!(status(&answer), "421");
    server.stop();
}

#[test]
fn limits_the_heads_of_requests() {
    let server = start();
    let headers = |count| (0..count).map(|number| format!("X-{number}: y\r\n")).collect::<Vec<_>>().concat();
    // With the header Host.
    assert_eq!(status(&get(server.address(), &headers(63))), "200");
    assert_eq!(status(&get(server.address(), &headers(64))), "431");
    let long = |bytes| format!("X: {}\r\n", "y".repeat(bytes));
    assert_eq!(status(&get(server.address(), &long(15 << 10))), "200");
    assert_eq!(status(&get(server.address(), &long(17 << 10))), "431");
    server.stop();
}

#[test]
fn silent_connections_make_room_for_others() {
    let server = start();
    let mut silent: Vec<_> = (0..8).map(|_| connect(server.address())).collect();
    assert_eq!(status(&get(server.address(), "")), "200");
    // The oldest one was closed.
    let end = silent.remove(0).read(&mut [0]);
    assert!(matches!(end, Ok(0)) || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    server.stop();
}

#[test]
fn a_slow_reader_gets_its_answer_while_others_connect() {
    let server = start();
    let mut slow = connect(server.address());
    slow.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    slow.read_exact(&mut [0; 12]).unwrap();
    let silent: Vec<_> = (0..8).map(|_| connect(server.address())).collect();
    assert_eq!(status(&get(server.address(), "")), "200");
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(rest.len() > LARGE && rest.ends_with(b"xx"));
    drop(silent);
    server.stop();
}
