//! Requests of a real web server of .NET 10, recorded by `--profile aspnet` and reported.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::program::{Recording, run};
use crate::runtime;
use crate::workload::Target;

/// Longer than the server takes to start on a loaded machine of two slow cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends a request and returns its status.
fn get(port: u16, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

#[test]
fn requests_of_a_server_of_net10_have_routes_statuses_and_times() {
    let Some(mut command) = runtime::mcp_server() else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    command
        .args(["--transport", "http", "--dangerously-disable-http-incoming-auth"])
        .args(["--outgoing-auth-strategy", "UseHostingEnvironmentIdentity"])
        .env("ASPNETCORE_URLS", format!("http://127.0.0.1:{port}"));
    let server = Target::start(command);
    let deadline = Instant::now() + PATIENCE;
    while get(port, "/").is_none() {
        assert!(Instant::now() < deadline, "the server does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }
    let recording = Recording::start(server.pid(), &["--profile", "aspnet"]);
    for _ in 0..10 {
        assert_eq!(get(port, "/"), Some(406));
        assert_eq!(get(port, "/nosuch"), Some(404));
    }
    let recorded = recording.interrupt();
    let file = recorded.file();
    let report = run(["report", file.to_str().unwrap(), "requests", "--slowest", "3", "--format", "json"]);
    let report = report.with_code(0).json();
    for (name, status) in [("GET /", "406"), ("GET /nosuch", "404")] {
        let rows = report["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
        assert_eq!((&row["count"], &row["errors"], &row["role"]), (&10.into(), &0.into(), &"server".into()));
        assert_eq!(row["statuses"], serde_json::json!([{"status": status, "count": 10}]));
        let total = row["latencies"]["total_ns"].as_u64().unwrap();
        let parts =
            ["on_thread_ns", "waiting_ns", "queued_ns"].map(|part| row["parts"][part].as_u64().unwrap());
        assert!(parts[0] > 0 && parts.iter().sum::<u64>() <= total, "{row}");
    }
    let slowest = report["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 3);
    assert!(slowest.iter().all(|span| span["end"] == "stopped"), "{slowest:?}");
}
