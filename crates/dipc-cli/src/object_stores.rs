//! Uploads to object stores, and their errors.

use std::fs::File;
use std::io::{self, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
};
use object_store::path::Path as Name;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};

/// Files up to this size are sent in one request, larger ones in parts of this size. A part is held in memory
/// while it is sent.
const PART: usize = 8 << 20;

/// The number of retries of a request that fails temporarily.
const RETRIES: usize = 5;
/// The time during which a request is retried.
const RETRY_TIME: Duration = Duration::from_secs(60);

/// Maximum number of bytes of the answers to an operation: of a list, in parts of a thousand objects, or of
/// an object to read.
pub(crate) const MAX_ANSWERS: u64 = 64 << 20;

/// Returns how requests are retried.
pub(crate) fn retries() -> RetryConfig {
    RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIME, ..RetryConfig::default() }
}

/// Sets the ciphers of TLS. A process has one provider of them, which may be set already.
pub(crate) fn install_ciphers() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Sends a file, in parts if it is large. An object appears, complete, when all have arrived.
pub(crate) async fn send(
    store: &dyn ObjectStore,
    to: &Name,
    mut file: File,
    size: u64,
) -> object_store::Result<()> {
    if size <= PART as u64 {
        let bytes = read_part(&mut file)?;
        return store.put(to, PutPayload::from(bytes)).await.map(drop);
    }
    let mut upload = store.put_multipart(to).await?;
    let outcome = async {
        loop {
            let part = read_part(&mut file)?;
            if part.is_empty() {
                return upload.complete().await.map(drop);
            }
            upload.put_part(PutPayload::from(part)).await?;
        }
    }
    .await;
    if outcome.is_err() {
        // The parts sent take up space until the upload is aborted. The first error counts.
        let _ = upload.abort().await;
    }
    outcome
}

/// The client of stores, which bounds their answers: a server may answer without end, and `object_store`
/// keeps lists and errors in memory.
///
/// It sends the query of a request exactly as it was signed. `object_store` signs a space as `%20`, and sends
/// it as `+`. Amazon reads both as a space; some other servers check the signature against the received
/// query, and refuse to list any folder with a space in its name.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreConnector(Arc<AtomicU64>);

impl StoreConnector {
    /// Begins an operation with answers of at most [`MAX_ANSWERS`] bytes in all.
    pub(crate) fn begin(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct StoreHttpClient {
    client: HttpClient,
    /// The bytes that were answered in the operation.
    answered: Arc<AtomicU64>,
}

impl HttpConnector for StoreConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(StoreHttpClient { client, answered: Arc::clone(&self.0) }))
    }
}

impl StoreHttpClient {
    /// Returns the answer with a body that fails beyond the limit.
    fn bounded(&self, answer: HttpResponse) -> HttpResponse {
        let left = MAX_ANSWERS.saturating_sub(self.answered.load(Ordering::Relaxed));
        let answered = Arc::clone(&self.answered);
        answer.map(|body| {
            let counted = body.map_frame(move |frame| {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                answered.fetch_add(bytes, Ordering::Relaxed);
                frame
            });
            let body = Limited::new(counted, usize::try_from(left).unwrap_or(usize::MAX));
            HttpResponseBody::new(body.map_err(|error| match error.downcast::<HttpError>() {
                Ok(error) => *error,
                // Not a failure that passes.
                Err(_) => HttpError::new(
                    HttpErrorKind::Decode,
                    io::Error::other(format!("the store answers with more than {} MB", MAX_ANSWERS >> 20)),
                ),
            }))
        })
    }
}

impl HttpService for StoreHttpClient {
    fn call<'client, 'call>(
        &'client self,
        mut request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'call>>
    where
        'client: 'call,
        Self: 'call,
    {
        // A literal plus is `%2B` in a query.
        let text = request.uri().to_string();
        if let Some((address, query)) = text.split_once('?')
            && query.contains('+')
            && let Ok(uri) = format!("{address}?{}", query.replace('+', "%20")).parse()
        {
            *request.uri_mut() = uri;
        }
        Box::pin(async move { self.client.execute(request).await.map(|answer| self.bounded(answer)) })
    }
}

/// Reads the next part of a file; empty at its end.
fn read_part(file: &mut File) -> object_store::Result<Vec<u8>> {
    let mut part = Vec::new();
    let read = file.take(PART as u64).read_to_end(&mut part);
    read.map(|_| part)
        .map_err(|error| object_store::Error::Generic { store: "file", source: Box::new(error) })
}

/// The chain of an error's causes on one line, without causes already contained in another's text.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let element = |name: &str| Some(text.split_once(&format!("<{name}>"))?.1.split_once("</")?.0);
    match (text.split_once("<?xml"), element("Code"), element("Message")) {
        // Servers explain it in XML, with codes of their own.
        (Some((before, _)), Some(code), Some(message)) => {
            format!("{before}{code}: {}", message.trim_end_matches('.'))
        }
        _ => text,
    }
}
