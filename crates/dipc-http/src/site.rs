//! An HTTP server of a few paths, for this machine unless its caller listens elsewhere.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::connections::Connections;
use crate::host::is_local_host;
use crate::limits::{ConnectionLimits, Lifetime};

/// The limits of connections.
const LIMITS: ConnectionLimits = ConnectionLimits {
    max_connections: 8,
    head_time: Duration::from_secs(5),
    lifetime: Lifetime::OneRequest(Duration::from_secs(20)),
};
/// The time limit for running answers when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The answers of a server to GET.
pub trait Site: Send + Sync + 'static {
    /// The answer for a path that the site does not have.
    const HINT: &'static str;

    /// Returns true if the site has a path.
    fn has(&self, path: &str) -> bool;

    /// Returns the content at a path that it has, in a form that the header `Accept` permits.
    fn content(&self, path: &str, accept: Option<&str>) -> Content;
}

/// The content of an answer.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "made by sites, which decide on each field")]
pub struct Content {
    /// The bytes.
    pub body: Bytes,
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// True if browsers are told to keep no copy and to tell other sites nothing.
    pub is_private: bool,
}

/// A server of a [`Site`] in a thread of its own, with at most eight connections.
#[derive(Debug)]
pub struct SiteServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl SiteServer {
    /// Serves a site.
    ///
    /// # Errors
    /// If the thread or its runtime cannot be started.
    pub fn start(listener: std::net::TcpListener, site: impl Site) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let site = Arc::new(SiteService { site, is_local: address.ip().is_loopback() });
        let thread = thread::Builder::new().name("http".to_owned()).spawn(move || {
            runtime.block_on(async {
                let connections = Connections::new(LIMITS);
                let accepting = connections.accept(&listener, |stream, connection| {
                    let site = Arc::clone(&site);
                    connection.serve(stream, move |request| std::future::ready(site.answer(&request)))
                });
                tokio::select! {
                    () = accepting => {}
                    _ = stopped => {}
                }
                let _ = tokio::time::timeout(LAST_ANSWERS, connections.finish()).await;
            });
        })?;
        Ok(Self { address, stop, thread })
    }

    /// The address that it listens at, with the port that the system chose.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server; running answers have a second to finish.
    pub fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// A site, and who can reach it.
struct SiteService<S> {
    site: S,
    /// True if only this machine can connect.
    is_local: bool,
}

impl<S: Site> SiteService<S> {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let header = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        // A web page can have its own name resolve to this machine, and could then read the answer.
        if self.is_local && header(HOST).is_some_and(|host| !is_local_host(host)) {
            return plain(StatusCode::MISDIRECTED_REQUEST, "the Host is neither localhost nor an address\n");
        }
        let path = request.uri().path();
        if !self.site.has(path) {
            return plain(StatusCode::NOT_FOUND, S::HINT);
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "GET\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let Content { body, media_type, is_private } = self.site.content(path, header(ACCEPT));
        let mut response = Response::new(Full::from(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        if is_private {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        response
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
