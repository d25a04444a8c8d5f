//! `dipc view`: the page of a recording over HTTP, to who has its address.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::page_data::page_data;
use crate::program::{Running, dipc, run};

/// Sends a request, and returns status, head and body.
fn ask(address: SocketAddr, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

/// A port that nothing listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn the_page_is_served_to_its_address_alone_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("web.nettrace");
    testdata::write("reference/net9-web.nettrace.xz", &recording);
    let (port, out) = (free_port(), tempfile::NamedTempFile::new().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.current_dir(folder.path()).args(["view", "web.nettrace", "--port", &port.to_string()]);
    command.stdin(Stdio::null()).stdout(out.reopen().unwrap()).stderr(Stdio::piped());
    let view = Running::start(command);
    let deadline = Instant::now() + Duration::from_secs(120);
    let url = loop {
        let text = std::fs::read_to_string(out.path()).unwrap();
        if let Some(line) = text.strip_suffix('\n') {
            break line.to_owned();
        }
        assert!(Instant::now() < deadline, "no address");
        std::thread::sleep(Duration::from_millis(20));
    };
    let path = url.strip_prefix(&format!("http://127.0.0.1:{port}")).unwrap_or_else(|| panic!("{url}"));
    assert!(path.len() > 40, "{path}: it can be guessed");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let get = |path: &str, host: &str| ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let local = format!("127.0.0.1:{port}");

    let (status, head, page) = get(path, &local);
    assert_eq!(status, 200, "{head}");
    for header in ["content-type: text/html", "cache-control: no-store", "referrer-policy: no-referrer"] {
        assert!(head.contains(header), "{header}: {head}");
    }
    // The same data as the page in a file, which has room for it all, too.
    let written = run(["convert", recording.to_str().unwrap(), "-f", "html", "-o", "-"]).with_code(0).text();
    assert_eq!(page_data(&page), page_data(&written));
    for (path, host, expected) in [
        ("/", local.as_str(), 404),
        ("/web.nettrace", &local, 404),
        (&path[..path.len() - 2], &local, 404),
        (path, "attacker.example", 421),
    ] {
        let (status, _, body) = get(path, host);
        assert_eq!(status, expected, "{path} {host}");
        assert!(!body.contains("<html"), "{path} {host}");
    }
    let (status, ..) =
        ask(address, &format!("POST {path} HTTP/1.1\r\nHost: {local}\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(status, 405);
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "nothing is written");
    view.signal(Signal::INT);
    let ended = view.finish().with_code(0);
    assert!(ended.stderr.contains("until Ctrl-C"), "{}", ended.stderr);
}

#[test]
fn a_used_port_and_a_missing_file_are_errors() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    run(["view", "/nonexistent.nettrace", "--port", &port]).with_code(1).assert_error_names(&[&port]);
    let missing = Running::start(dipc(["view", "/nonexistent.nettrace"])).finish();
    assert_ne!(missing.code, Some(0));
    missing.assert_error_names(&["/nonexistent.nettrace"]);
}
