//! Requests to receivers over HTTP.

use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::http::uri::InvalidUri;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The time limit for a request and its answer.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Maximum size of an answer to read, in bytes.
const MAX_ANSWER_SIZE: usize = 64 << 10;
/// Maximum part of an answer that is shown.
const SHOWN: usize = 200;

/// The address of a receiver of messages: a host and a port, or a Unix socket, and a path.
///
/// ```
/// use dipc_http::Endpoint;
///
/// let endpoint = Endpoint::parse("http://127.0.0.1:4318", "/v1/metrics")?;
/// assert_eq!(endpoint.to_string(), "http://127.0.0.1:4318/v1/metrics");
/// # Ok::<(), dipc_http::ParseEndpointError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Endpoint {
    server: ServerAddress,
    /// Host and port as given.
    authority: HeaderValue,
    path: Uri,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ServerAddress {
    Tcp {
        host: String,
        port: u16,
    },
    #[cfg(unix)]
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            ServerAddress::Tcp { host, .. } => {
                write!(f, "http://{}{}", self.authority.to_str().unwrap_or(host), self.path)
            }
            #[cfg(unix)]
            ServerAddress::Unix(socket) => write!(f, "unix:{} {}", socket.display(), self.path),
        }
    }
}

/// An error in the URL of a receiver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseEndpointError {
    /// It is not a URL, for this reason.
    #[error("{0}: http://HOST:PORT is expected")]
    Invalid(String),
    /// Its scheme is neither http nor https.
    #[error("http://HOST:PORT is expected")]
    Scheme,
    /// Its scheme is https.
    #[error("https is not supported")]
    Tls,
    /// The host is missing.
    #[error("a host is missing")]
    NoHost,
    /// It has a user or a password, which belong into the header `Authorization`.
    #[error("users and passwords belong into a header")]
    Credentials,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A temporary failure: the request may be sent again.
    #[error("{reason}")]
    Temporary {
        /// The reason, with text of the receiver.
        reason: String,
        /// The time that the receiver asks to wait for.
        wait: Option<Duration>,
    },
    /// A permanent failure: the receiver refuses the request.
    #[error("{reason}")]
    Refused {
        /// The reason, with text of the receiver.
        reason: String,
    },
}

impl Endpoint {
    /// Parses a URL. Without a path, it gets `default_path`, which is a valid one.
    ///
    /// # Errors
    /// [`ParseEndpointError`]
    pub fn parse(url: &str, default_path: &'static str) -> Result<Self, ParseEndpointError> {
        let uri: Uri =
            url.parse().map_err(|error: InvalidUri| ParseEndpointError::Invalid(error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(ParseEndpointError::Tls),
            _ => return Err(ParseEndpointError::Scheme),
        }
        let authority = uri.authority().ok_or(ParseEndpointError::NoHost)?;
        if authority.as_str().contains('@') {
            return Err(ParseEndpointError::Credentials);
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(80);
        let authority = HeaderValue::from_str(authority.as_str()).map_err(|_| ParseEndpointError::NoHost)?;
        let path = match uri.path_and_query() {
            Some(path) if path != "/" => path.clone().into(),
            _ => Uri::from_static(default_path),
        };
        Ok(Self { server: ServerAddress::Tcp { host, port }, authority, path })
    }

    /// The server that listens at a Unix socket, with a path and a query as in a URL.
    ///
    /// # Errors
    /// [`ParseEndpointError::Invalid`]
    #[cfg(unix)]
    pub fn of_socket(socket: impl Into<PathBuf>, path: &str) -> Result<Self, ParseEndpointError> {
        let path =
            path.parse().map_err(|error: InvalidUri| ParseEndpointError::Invalid(error.to_string()))?;
        let authority = HeaderValue::from_static("localhost");
        Ok(Self { server: ServerAddress::Unix(socket.into()), authority, path })
    }

    /// Sends a message by POST, and returns the receiver's answer: of at most 64 KiB, or else without its
    /// body. Both take ten seconds at most. To be awaited in a tokio runtime.
    ///
    /// # Errors
    /// [`RequestError`]
    pub async fn send(
        &self,
        content_type: &'static str,
        message: &[u8],
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<Bytes, RequestError> {
        let for_now =
            |reason: &dyn fmt::Display| RequestError::Temporary { reason: reason.to_string(), wait: None };
        let mut request = self.request(Method::POST, message.to_vec().into(), headers);
        request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
        match tokio::time::timeout(REQUEST_TIME, self.exchange(request, MAX_ANSWER_SIZE)).await {
            Ok(Ok(answer)) => answer.outcome(),
            Ok(Err(error)) => Err(for_now(&error)),
            Err(_) => Err(for_now(&format_args!("no answer within {} s", REQUEST_TIME.as_secs()))),
        }
    }

    /// Returns what a server has at the path, by GET: at most `max_bytes`. It takes ten seconds at most. To
    /// be awaited in a tokio runtime.
    ///
    /// # Errors
    /// [`RequestError`], also for a longer answer.
    pub async fn fetch(
        &self,
        headers: &[(HeaderName, HeaderValue)],
        max_bytes: usize,
    ) -> Result<Bytes, RequestError> {
        let for_now =
            |reason: &dyn fmt::Display| RequestError::Temporary { reason: reason.to_string(), wait: None };
        let request = self.request(Method::GET, Bytes::new(), headers);
        let answer = match tokio::time::timeout(REQUEST_TIME, self.exchange(request, max_bytes)).await {
            Ok(answer) => answer.map_err(|error| for_now(&error))?,
            Err(_) => return Err(for_now(&format_args!("no answer within {} s", REQUEST_TIME.as_secs()))),
        };
        if answer.is_cut && answer.status.is_success() {
            return Err(RequestError::Refused {
                reason: format!("the answer ended early, or has more than {max_bytes} bytes"),
            });
        }
        answer.outcome()
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        max_bytes: usize,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        match &self.server {
            ServerAddress::Tcp { host, port } => {
                exchange_over(TcpStream::connect((&**host, *port)).await?, request, max_bytes).await
            }
            #[cfg(unix)]
            ServerAddress::Unix(socket) => {
                exchange_over(tokio::net::UnixStream::connect(socket).await?, request, max_bytes).await
            }
        }
    }

    fn request(
        &self,
        method: Method,
        message: Bytes,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::from(message));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        let ours = [
            (HOST, self.authority.clone()),
            (USER_AGENT, HeaderValue::from_static(concat!("dipc/", env!("CARGO_PKG_VERSION")))),
            (CONNECTION, HeaderValue::from_static("close")),
        ];
        request.headers_mut().extend(ours);
        for (name, value) in headers {
            request.headers_mut().insert(name, value.clone());
        }
        request
    }
}

/// Sends a request, and reads the answer.
async fn exchange_over(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<Full<Bytes>>,
    max_bytes: usize,
) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(MAX_ANSWER_SIZE).handshake(TokioIo::new(stream)).await?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        // Needed answers are never longer.
        let body = Limited::new(body, max_bytes).collect().await;
        let is_cut = body.is_err();
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Ok::<_, hyper::Error>(Answer { status: head.status, headers: head.headers, body, is_cut })
    };
    let (answer, _) = tokio::join!(exchange, connection);
    Ok(answer?)
}

/// The answer to a request.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// True if the body is longer than wanted, or ended early: then it is missing.
    is_cut: bool,
}

impl Answer {
    fn outcome(self) -> Result<Bytes, RequestError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let text: String = String::from_utf8_lossy(&self.body).chars().take(SHOWN).collect();
        let is_text = !text.chars().any(|character| character.is_control() && !character.is_whitespace());
        let text = if is_text { text.trim() } else { "" };
        let separator = if text.is_empty() { "" } else { ": " };
        let reason = format!("HTTP {}{separator}{text}", self.status);
        let wait = self.headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.trim().parse().ok());
        match self.status.as_u16() {
            429 | 502 | 503 | 504 => {
                Err(RequestError::Temporary { reason, wait: wait.map(Duration::from_secs) })
            }
            _ => Err(RequestError::Refused { reason }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_default_path_and_no_tls() {
        let shown = |url: &str| Endpoint::parse(url, "/v1/metrics").map(|endpoint| endpoint.to_string());
        assert_eq!(shown("http://127.0.0.1:4318").unwrap(), "http://127.0.0.1:4318/v1/metrics");
        assert_eq!(shown("http://[::1]:4318/").unwrap(), "http://[::1]:4318/v1/metrics");
        assert_eq!(shown("http://host/otlp/v1/metrics?a=b").unwrap(), "http://host/otlp/v1/metrics?a=b");
        let server = ServerAddress::Tcp { host: "::1".to_owned(), port: 4318 };
        assert_eq!(Endpoint::parse("http://[::1]:4318", "/").unwrap().server, server);
        let rows = [
            ("https://host", "https"),
            ("host:4318", "http://HOST:PORT"),
            ("grpc://host:4317", "http://HOST:PORT"),
            ("http://me:secret@host", "header"),
            ("", "http://HOST:PORT"),
        ];
        for (url, part) in rows {
            let error = shown(url).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("secret"), "{url}: {error}");
        }
    }

    #[test]
    fn answers_decide_about_retries() {
        let answer = |status: u16, wait: Option<&'static str>, body: &'static str| {
            let mut headers = HeaderMap::new();
            headers.extend(wait.map(|wait| (RETRY_AFTER, HeaderValue::from_static(wait))));
            Answer {
                status: StatusCode::from_u16(status).unwrap(),
                headers,
                body: body.into(),
                is_cut: false,
            }
            .outcome()
        };
        assert!(matches!(answer(200, None, "took it"), Ok(body) if body == "took it"));
        let Err(RequestError::Temporary { reason, wait }) = answer(503, Some("7"), "busy\n") else {
            panic!()
        };
        assert_eq!((&*reason, wait), ("HTTP 503 Service Unavailable: busy", Some(Duration::from_secs(7))));
        let Err(RequestError::Refused { reason }) = answer(400, None, "\u{1b}[31m") else { panic!() };
        assert_eq!(reason, "HTTP 400 Bad Request");
    }
}
