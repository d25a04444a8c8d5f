//! A connection, and its requests.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::limits::{ConnectionLimits, Lifetime};
use crate::stall_limit::StallLimit;

/// The time that a connection has for its request while others wait.
const SHORT_HEAD_TIME: Duration = Duration::from_millis(50);
/// Maximum size of a head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum number of headers.
const MAX_HEADERS: usize = 64;

/// A connection that was accepted. Clones share its state.
#[derive(Debug, Clone)]
pub struct Connection {
    head_time: Duration,
    lifetime: Lifetime,
    /// The time since which it is idle; `None` while a request is answered.
    idle_since: Arc<Mutex<Option<Instant>>>,
}

impl Connection {
    pub(crate) fn new(limits: &ConnectionLimits) -> Self {
        Self::idle_since(limits, Some(Instant::now()))
    }

    pub(crate) fn idle_since(limits: &ConnectionLimits, since: Option<Instant>) -> Self {
        let ConnectionLimits { head_time, lifetime, .. } = *limits;
        Self { head_time, lifetime, idle_since: Arc::new(Mutex::new(since)) }
    }

    /// Returns true if no request has arrived in time.
    pub(crate) fn is_silent(&self) -> bool {
        self.lock().is_some_and(|since| since.elapsed() >= SHORT_HEAD_TIME)
    }

    /// Notes a request, until the result is dropped.
    pub(crate) fn begin(&self) -> Answering {
        *self.lock() = None;
        Answering(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.idle_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the requests of the connection. An error of it, which affects no other connection, ends it.
    /// Heads of requests have at most 16 KiB and 64 headers.
    pub async fn serve<S, B, F>(self, stream: S, answer: impl Fn(Request<Incoming>) -> F)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        B: Body + Unpin + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
        F: Future<Output = Response<B>>,
    {
        let answer = service_fn(|request: Request<Incoming>| {
            let (answer, answering) = (answer(request), self.begin());
            async move {
                let response = answer.await;
                Ok::<_, Infallible>(response.map(|body| AnsweringBody { body, _answering: answering }))
            }
        });
        let mut server = http1::Builder::new();
        server
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_time)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS);
        match self.lifetime {
            Lifetime::OneRequest(limit) => {
                let connection = server.keep_alive(false).serve_connection(TokioIo::new(stream), answer);
                let _ = tokio::time::timeout(limit, connection).await;
            }
            Lifetime::KeptAlive(stall) => {
                let stream = TokioIo::new(StallLimit::new(stream, stall));
                let _ = server.serve_connection(stream, answer).await;
            }
        }
    }
}

/// A request that is answered.
#[derive(Debug)]
pub(crate) struct Answering(Connection);

impl Drop for Answering {
    fn drop(&mut self) {
        if let Lifetime::KeptAlive(_) = self.0.lifetime {
            *self.0.lock() = Some(Instant::now());
        }
    }
}

/// The body of an answer. The request lasts until it is sent.
struct AnsweringBody<B> {
    body: B,
    _answering: Answering,
}

impl<B: Body + Unpin> Body for AnsweringBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
