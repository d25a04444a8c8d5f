//! Artifacts as answers.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue, LOCATION};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::body::{AnswerBody, CancelOnDrop};
use super::problem::Problem;
use crate::artifact::{Artifact, ArtifactError, ArtifactSink};
use crate::operation::{Operations, RunningOperation};
use crate::process::Watched;

/// Maximum number of pieces that wait for the client, of at most 256 KB each.
const MAX_PIECES: usize = 8;
/// Maximum time for which a collection waits for its reader.
const SLOWEST: Duration = Duration::from_secs(30);
/// The stack of a collection's thread.
const STACK: usize = 1 << 20;

/// Collects an artifact, and answers with it as soon as it begins.
pub(super) async fn answer(
    operations: &Operations,
    runtime: &Handle,
    process: Arc<Watched>,
    artifact: Artifact,
    tags: BTreeSet<String>,
    base: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let operation = operations.begin(artifact.kind(), &process, tags, None)?;
    let (id, stop) = (operation.id, operation.stop.clone());
    let (pieces, received) = mpsc::channel(MAX_PIECES);
    let (begun, has_begun) = oneshot::channel();
    let media_type = artifact.media_type();
    let file_name = artifact.file_name(&process, SystemTime::now());
    let sink = HttpSink { runtime: runtime.clone(), pieces, begun: Some(begun), operation };
    let thread = thread::Builder::new().name(artifact.kind().name().to_owned()).stack_size(STACK);
    thread.spawn(move || collect(&artifact, &process, sink)).map_err(|error| {
        Problem::new(hyper::StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable", error.to_string())
    })?;
    // From here on the client's departure ends the collection.
    let cancelled = CancelOnDrop(stop);
    match has_begun.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => return Err(Problem::bad_request("the collection was abandoned")),
    }
    let mut response = Response::new(AnswerBody::Stream { pieces: received, _cancelled: cancelled });
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    let texts = [
        (LOCATION, format!("{base}/operations/{id}")),
        (CONTENT_DISPOSITION, format!("attachment; filename={file_name}")),
    ];
    for (name, text) in texts {
        headers.extend(HeaderValue::try_from(text).ok().map(|value| (name, value)));
    }
    Ok(response)
}

/// Runs a collection to its end.
fn collect(artifact: &Artifact, process: &Watched, mut sink: HttpSink) {
    let stop = sink.operation.stop.clone();
    let result = artifact.collect(process, &stop, &mut sink);
    let HttpSink { runtime, pieces, begun, operation } = sink;
    let ended = match &result {
        Ok(()) => Ok(None),
        Err(error) => Err(error.to_string()),
    };
    // Before the client knows, so that it can ask for the state afterwards.
    operation.end(ended);
    match (result, begun) {
        (Err(error), Some(begun)) => {
            // Sending fails if the client has left.
            let _ = begun.send(Err(error));
        }
        (Err(error), None) => {
            // Cuts the body, so that the client sees that it is not complete.
            let cut = io::Error::other(error.to_string());
            let _ = runtime.block_on(pieces.send_timeout(Err(cut), SLOWEST));
        }
        (Ok(()), _) => {}
    }
}

/// The body of an answer as the destination of an artifact.
struct HttpSink {
    runtime: Handle,
    pieces: mpsc::Sender<io::Result<Bytes>>,
    begun: Option<oneshot::Sender<Result<(), ArtifactError>>>,
    operation: RunningOperation,
}

impl ArtifactSink for HttpSink {
    fn begin(&mut self) -> io::Result<()> {
        self.operation.begun();
        let Some(begun) = self.begun.take() else { return Ok(()) };
        begun.send(Ok(())).map_err(|_| gone())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let piece = Ok(Bytes::copy_from_slice(bytes));
        self.runtime.block_on(self.pieces.send_timeout(piece, SLOWEST)).map_err(|error| match error {
            mpsc::error::SendTimeoutError::Closed(_) => gone(),
            mpsc::error::SendTimeoutError::Timeout(_) => {
                io::Error::new(io::ErrorKind::TimedOut, "the client has read nothing for 30 s")
            }
        })
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the client has left")
}
