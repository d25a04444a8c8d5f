//! A web server of .NET 10.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::runtime;
use crate::workload::Target;

/// Longer than the server takes to start on a loaded machine of two slow cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that answers; it ends when this is dropped.
pub(crate) struct WebServer {
    process: Target,
    port: u16,
}

impl WebServer {
    /// Starts the server; `None` if it is not there.
    pub(crate) fn start() -> Option<Self> {
        let mut command = runtime::mcp_server()?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        command
            .args(["--transport", "http", "--dangerously-disable-http-incoming-auth"])
            .args(["--outgoing-auth-strategy", "UseHostingEnvironmentIdentity"])
            .env("ASPNETCORE_URLS", format!("http://127.0.0.1:{port}"))
            .env("OTEL_SERVICE_NAME", "shop")
            .env("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,service.version=1%20beta");
        let server = Self { process: Target::start(command), port };
        let deadline = Instant::now() + PATIENCE;
        while server.get("/").is_none() {
            assert!(Instant::now() < deadline, "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends the beginning of a request, and leaves it at that.
    pub(crate) fn begin(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    /// Sends a request and returns its status.
    pub(crate) fn get(&self, path: &str) -> Option<u16> {
        self.get_with(path, "")
    }

    /// The same with headers, each with the end of its line.
    pub(crate) fn get_with(&self, path: &str, headers: &str) -> Option<u16> {
        self.request("GET", path, headers, "")
    }

    /// Sends a request with a body and returns its status.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &str) -> Option<u16> {
        self.request("POST", path, &format!("Content-Length: {}\r\n{headers}", body.len()), body)
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> Option<u16> {
        let Self { port, .. } = self;
        let mut stream = TcpStream::connect(("127.0.0.1", *port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
    }
}
