//! The HTTP server, with dotnet-monitor's routes.

mod address;
mod body;
mod collect;
mod health;
mod json;
mod overview;
mod own_metrics;
mod page;
mod problem;
mod profile;
mod recordings;
mod route;
mod routes;
mod service;
mod settings;
#[cfg(feature = "tls")]
mod tls;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_http::{Connection, ConnectionLimits, Connections, Lifetime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::access::Tokens;
use crate::black_box::BlackBoxes;
use crate::continuous_profile::ContinuousProfile;
use crate::egress::EgressQueue;
use crate::filter::Filter;
use crate::metrics::Metrics;
use crate::monitor::Monitor;
use crate::operation::Operations;
use crate::otlp::OtlpExport;
use crate::rule_runner::Rules;

pub use address::{ListenAddress, ParseAddressError};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};

use page::Page;
use routes::Listener;
use service::Service;
use settings::Settings;

/// The limits of connections.
const LIMITS: ConnectionLimits = ConnectionLimits {
    max_connections: 128,
    head_time: Duration::from_secs(10),
    lifetime: Lifetime::KeptAlive(Duration::from_secs(30)),
};
/// Maximum number of threads that query processes.
const MAX_QUERY_THREADS: usize = 32;

/// The settings of a [`Server`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The addresses of all routes.
    pub addresses: Vec<ListenAddress>,
    /// The addresses at which only `/metrics` answers.
    pub metrics_addresses: Vec<ListenAddress>,
    /// The certificate of addresses with TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
    /// The tokens; without any, everyone who can connect may do everything.
    pub tokens: Tokens,
    /// True if an address that other machines can reach may go without tokens.
    pub is_open: bool,
    /// Filters of the process that requests without one are about.
    pub default_process: Vec<Filter>,
    /// The interval between values of `/livemetrics`; five seconds by default.
    pub counter_interval: Option<Duration>,
    /// True if artifacts are refused as answers, so that they go to egress providers alone.
    pub no_http_egress: bool,
    /// The version that `/info` states.
    pub version: String,
    /// The rules, if a configuration has any.
    pub rules: Option<Arc<Rules>>,
    /// The queue of artifacts for egress providers, if a configuration has any.
    pub queue: Option<EgressQueue>,
    /// The black boxes, if any. `/health` states their losses.
    pub black_boxes: Option<Arc<BlackBoxes>>,
    /// The export to a collector, if any. `/health` and `/metrics` state its losses.
    pub export: Option<Arc<OtlpExport>>,
    /// The samples of the machine over time, if any, which `/profile` answers from.
    pub profiles: Option<Arc<ContinuousProfile>>,
}

impl ServerConfig {
    /// With these [`addresses`](Self::addresses).
    #[must_use]
    pub fn with_addresses(self, addresses: Vec<ListenAddress>) -> Self {
        Self { addresses, ..self }
    }

    /// With these [`metrics_addresses`](Self::metrics_addresses).
    #[must_use]
    pub fn with_metrics_addresses(self, metrics_addresses: Vec<ListenAddress>) -> Self {
        Self { metrics_addresses, ..self }
    }

    /// With this [`tls`](Self::tls).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }

    /// With these [`tokens`](Self::tokens).
    #[must_use]
    pub fn with_tokens(self, tokens: Tokens) -> Self {
        Self { tokens, ..self }
    }

    /// With or without access for [everyone](Self::is_open).
    #[must_use]
    pub fn with_open_access(self, is_open: bool) -> Self {
        Self { is_open, ..self }
    }

    /// With these filters of the [default process](Self::default_process).
    #[must_use]
    pub fn with_default_process(self, default_process: Vec<Filter>) -> Self {
        Self { default_process, ..self }
    }

    /// With this [`counter_interval`](Self::counter_interval).
    #[must_use]
    pub fn with_counter_interval(self, counter_interval: Option<Duration>) -> Self {
        Self { counter_interval, ..self }
    }

    /// With artifacts [for egress providers alone](Self::no_http_egress), or not.
    #[must_use]
    pub fn with_no_http_egress(self, no_http_egress: bool) -> Self {
        Self { no_http_egress, ..self }
    }

    /// With this [`version`](Self::version).
    #[must_use]
    pub fn with_version(self, version: String) -> Self {
        Self { version, ..self }
    }

    /// With these [`rules`](Self::rules).
    #[must_use]
    pub fn with_rules(self, rules: Option<Arc<Rules>>) -> Self {
        Self { rules, ..self }
    }

    /// With this [`queue`](Self::queue).
    #[must_use]
    pub fn with_queue(self, queue: Option<EgressQueue>) -> Self {
        Self { queue, ..self }
    }

    /// With these [`black_boxes`](Self::black_boxes).
    #[must_use]
    pub fn with_black_boxes(self, black_boxes: Option<Arc<BlackBoxes>>) -> Self {
        Self { black_boxes, ..self }
    }

    /// With this [`export`](Self::export).
    #[must_use]
    pub fn with_export(self, export: Option<Arc<OtlpExport>>) -> Self {
        Self { export, ..self }
    }

    /// With these [`profiles`](Self::profiles).
    #[must_use]
    pub fn with_profiles(self, profiles: Option<Arc<ContinuousProfile>>) -> Self {
        Self { profiles, ..self }
    }
}

/// An error of starting a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Other machines could connect without a token.
    #[error("{0}: other machines could connect, and there are no tokens")]
    Open(ListenAddress),
    /// An address has TLS, and the certificate is missing, or the crate was built without the feature `tls`.
    #[error("{0}: there is no certificate for TLS")]
    NoCertificate(ListenAddress),
    /// An address cannot be listened at.
    #[error("{address}: {error}")]
    Bind {
        /// The address.
        address: ListenAddress,
        /// The reason.
        error: io::Error,
    },
    /// The server's thread or its runtime cannot be started.
    #[error("start the server: {0}")]
    Start(io::Error),
}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        Self::Start(error)
    }
}

/// A running server. It stops when this is dropped.
///
/// ```no_run
/// use dipc_monitor::{Monitor, MonitorConfig, Operations, Server, ServerConfig};
/// use std::sync::Arc;
///
/// let monitor = Arc::new(Monitor::start(MonitorConfig::default(), Vec::new())?);
/// let config = ServerConfig::default().with_addresses(vec!["http://127.0.0.1:52323".parse()?]);
/// let server = Server::start(config, monitor, None, Operations::default())?;
/// std::thread::park();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    addresses: Vec<ListenAddress>,
    metrics_addresses: Vec<ListenAddress>,
    operations: Operations,
    settings: Settings,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    /// If an address cannot be listened at, or is open without tokens.
    pub fn start(
        config: ServerConfig,
        monitor: Arc<Monitor>,
        metrics: Option<Arc<Metrics>>,
        operations: Operations,
    ) -> Result<Self, ServerError> {
        let all = config.addresses.iter().chain(&config.metrics_addresses);
        if config.tokens.is_empty()
            && !config.is_open
            && let Some(address) = all.clone().find(|address| !address.is_local())
        {
            return Err(ServerError::Open(address.clone()));
        }
        #[cfg(feature = "tls")]
        let has_certificate = config.tls.is_some();
        #[cfg(not(feature = "tls"))]
        let has_certificate = false;
        if !has_certificate && let Some(address) = all.clone().find(|it| it.is_tls()) {
            return Err(ServerError::NoCertificate(address.clone()));
        }
        #[cfg(feature = "tls")]
        let tls = config.tls;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_QUERY_THREADS)
            .build()?;
        let listeners = {
            let _context = runtime.enter();
            let bind = |is_metrics: bool| {
                move |address: &ListenAddress| {
                    Bound::new(address, is_metrics)
                        .map_err(|error| ServerError::Bind { address: address.clone(), error })
                }
            };
            let all = config.addresses.iter().map(bind(false));
            let all = all.chain(config.metrics_addresses.iter().map(bind(true)));
            all.collect::<Result<Vec<_>, _>>()?
        };
        let addresses_of = |is_metrics| {
            let bound = listeners.iter().filter(move |bound| bound.is_metrics == is_metrics);
            bound.map(|bound| bound.address.clone()).collect()
        };
        let (addresses, metrics_addresses) = (addresses_of(false), addresses_of(true));
        let settings = Settings::new(config.default_process, config.counter_interval);
        let service = Arc::new(Service {
            monitor,
            metrics,
            operations: operations.clone(),
            tokens: config.tokens,
            settings: settings.clone(),
            no_http_egress: config.no_http_egress,
            version: config.version,
            rules: config.rules,
            queue: config.queue,
            black_boxes: config.black_boxes,
            export: config.export,
            profiles: config.profiles,
            start: Instant::now(),
            runtime: runtime.handle().clone(),
            page: Page::new(),
            pages: Arc::new(Semaphore::new(1)),
        });
        let (stop, stopped) = watch::channel(false);
        let thread = thread::Builder::new().name("http".to_owned()).spawn(move || {
            let context = Context {
                service,
                #[cfg(feature = "tls")]
                tls,
                connections: Connections::new(LIMITS),
            };
            runtime.block_on(serve_all(listeners, context, stopped));
            // Requests that still wait for a process end at their time limits.
            runtime.shutdown_background();
        })?;
        Ok(Self { addresses, metrics_addresses, operations, settings, stop, thread: Some(thread) })
    }

    /// The addresses of all routes, with the ports that the system chose.
    pub fn addresses(&self) -> &[ListenAddress] {
        &self.addresses
    }

    /// Sets the filters of the process that later requests without one are about.
    pub fn set_default_process(&self, filters: Vec<Filter>) {
        self.settings.lock().default_process = filters;
    }

    /// Sets the interval between values of `/livemetrics`, for later requests.
    pub fn set_counter_interval(&self, interval: Duration) {
        self.settings.lock().counter_interval = interval;
    }

    /// The addresses of `/metrics` alone.
    pub fn metrics_addresses(&self) -> &[ListenAddress] {
        &self.metrics_addresses
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.operations.cancel_all();
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was already printed.
            let _ = thread.join();
        }
    }
}

/// A socket that listens.
struct Bound {
    address: ListenAddress,
    is_metrics: bool,
    socket: Socket,
}

enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener, #[allow(dead_code, reason = "removes the file")] RemovedSocket),
}

/// The file of a socket, which is removed when this is dropped.
#[cfg(unix)]
struct RemovedSocket(std::path::PathBuf);

#[cfg(unix)]
impl Drop for RemovedSocket {
    fn drop(&mut self) {
        // Another server may have replaced it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Bound {
    fn new(bound: &ListenAddress, is_metrics: bool) -> io::Result<Self> {
        match bound {
            ListenAddress::Tcp(address) | ListenAddress::Tls(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                let address =
                    if bound.is_tls() { ListenAddress::Tls(address) } else { ListenAddress::Tcp(address) };
                Ok(Self { address, is_metrics, socket: Socket::Tcp(TcpListener::from_std(listener)?) })
            }
            #[cfg(unix)]
            ListenAddress::Unix(path) => {
                let socket = Socket::Unix(bind_unix(path)?, RemovedSocket(path.clone()));
                Ok(Self { address: bound.clone(), is_metrics, socket })
            }
            #[cfg(not(unix))]
            ListenAddress::Unix(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no Unix sockets"))
            }
        }
    }
}

/// Binds a socket that only this user can connect to. A socket left over by a server is replaced.
#[cfg(unix)]
fn bind_unix(path: &std::path::Path) -> io::Result<tokio::net::UnixListener> {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};

    use dipc_collect::staged::publish_new;

    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    // Bound under another name, so that clients cannot connect before the permissions are set.
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{}", std::process::id()));
    let hidden = std::path::PathBuf::from(hidden);
    let listener = std::os::unix::net::UnixListener::bind(&hidden)?;
    let placed = std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| publish_new(&hidden, path));
    placed.inspect_err(|_| {
        let _ = std::fs::remove_file(&hidden);
    })?;
    listener.set_nonblocking(true)?;
    tokio::net::UnixListener::from_std(listener)
}

/// The state that all connections share.
#[derive(Clone)]
struct Context {
    service: Arc<Service>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    connections: Connections,
}

/// Accepts connections at all sockets until the server is stopped.
async fn serve_all(listeners: Vec<Bound>, context: Context, mut stopped: watch::Receiver<bool>) {
    let mut tasks = tokio::task::JoinSet::new();
    for bound in listeners {
        tasks.spawn(accept(bound, context.clone()));
    }
    // An error means that the server was dropped.
    let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
    tasks.abort_all();
}

async fn accept(bound: Bound, context: Context) {
    let listener = Listener {
        is_metrics: bound.is_metrics,
        is_loopback: bound.address.is_local() && !matches!(bound.address, ListenAddress::Unix(_)),
        is_tls: bound.address.is_tls(),
    };
    let connections = context.connections.clone();
    match &bound.socket {
        Socket::Tcp(socket) => {
            let serve = |stream, connection| serve_tcp(stream, context.clone(), listener, connection);
            connections.accept(socket, serve).await;
        }
        #[cfg(unix)]
        Socket::Unix(socket, _) => {
            let serve =
                |stream, connection| serve(stream, Arc::clone(&context.service), listener, connection);
            connections.accept(socket, serve).await;
        }
    }
}

/// Answers the requests of a TCP connection, after its handshake if the address has TLS.
async fn serve_tcp(stream: TcpStream, context: Context, listener: Listener, connection: Connection) {
    #[cfg(feature = "tls")]
    if listener.is_tls {
        let Some(tls) = &context.tls else { return };
        if let Some(stream) = tls.accept(stream).await {
            serve(stream, context.service, listener, connection).await;
        }
        return;
    }
    serve(stream, context.service, listener, connection).await;
}

/// Answers the requests of a connection.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: Arc<Service>,
    listener: Listener,
    connection: Connection,
) {
    connection.serve(stream, move |request| Arc::clone(&service).answer(request, listener)).await;
}
