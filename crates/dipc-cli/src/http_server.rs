//! An HTTP server of a few paths, for this machine unless its caller listens elsewhere.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_monitor::is_local_host;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

/// Maximum number of concurrent connections. A further one replaces the oldest that has not sent its request,
/// or else waits for one to end.
const MAX_CONNECTIONS: u32 = 8;
/// The time that a connection has for its request while others wait.
const SHORT_HEAD_TIME: Duration = Duration::from_millis(50);
/// The time between checks for a free place.
const TICK: Duration = Duration::from_millis(10);
/// The time for a request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// The time for a whole connection, which has one request.
const CONNECTION_TIME: Duration = Duration::from_secs(20);
/// Maximum size of a head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum number of headers.
const MAX_HEADERS: usize = 64;
/// The wait after a failed accept: there may be too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The time limit for running answers when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The answers of a server to GET.
pub(crate) trait Site: Send + Sync + 'static {
    /// The answer for a path that the site does not have.
    const HINT: &'static str;

    /// Returns true if the site has a path.
    fn has(&self, path: &str) -> bool;

    /// Returns the content at a path that it has, in a form that the header `Accept` permits.
    fn content(&self, path: &str, accept: Option<&str>) -> Content;
}

/// The content of an answer.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) body: Bytes,
    pub(crate) media_type: &'static str,
    /// True if browsers are told to keep no copy and to tell other sites nothing.
    pub(crate) is_private: bool,
}

/// A server in a thread of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Serves a site.
    pub(crate) fn start(listener: std::net::TcpListener, site: impl Site) -> io::Result<Self> {
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
                let free = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
                tokio::select! {
                    () = accept(listener, site, &free) => {}
                    _ = stopped => {}
                }
                let _ = tokio::time::timeout(LAST_ANSWERS, free.acquire_many(MAX_CONNECTIONS)).await;
            });
        })?;
        Ok(Self { address, stop, thread })
    }

    /// Stops the server; running answers have a second to finish.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Accepts connections forever.
async fn accept<S: Site>(listener: TcpListener, site: Arc<SiteService<S>>, free: &Arc<Semaphore>) {
    let mut connections = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        make_room(&mut connections).await;
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(free).acquire_owned().await else { return };
        let (site, has_asked) = (Arc::clone(&site), Arc::new(AtomicBool::new(false)));
        let task = tokio::spawn({
            let has_asked = Arc::clone(&has_asked);
            async move {
                let _ = tokio::time::timeout(CONNECTION_TIME, serve(stream, site, &has_asked)).await;
                drop(permit);
            }
        });
        connections.push_back(Connection { since: Instant::now(), has_asked, task });
    }
}

/// A connection that was accepted.
struct Connection {
    since: Instant,
    /// True once the connection's request has arrived.
    has_asked: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

/// Waits until there is room for another connection; `connections` are ordered by age.
async fn make_room(connections: &mut VecDeque<Connection>) {
    loop {
        connections.retain(|connection| !connection.task.is_finished());
        if connections.len() < MAX_CONNECTIONS as usize {
            return;
        }
        let silent = connections.iter().position(|connection| {
            !connection.has_asked.load(Ordering::Relaxed) && connection.since.elapsed() >= SHORT_HEAD_TIME
        });
        match silent.and_then(|silent| connections.remove(silent)) {
            Some(connection) => connection.task.abort(),
            None => tokio::time::sleep(TICK).await,
        }
    }
}

/// Answers the request of a connection. An error of the connection affects no other.
async fn serve<S: Site>(stream: TcpStream, site: Arc<SiteService<S>>, has_asked: &AtomicBool) {
    let answer = service_fn(|request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let response = site.answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
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
