//! The list of recordings that the monitor keeps in directories, and their files.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dipc_collect::StopSignal;
use hyper::body::Bytes;
use hyper::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::body::{AnswerBody, CancelOnDrop};
use super::json;
use super::problem::Problem;
use super::service::Service;
use crate::artifact::page_of_recording;
use crate::egress::EgressQueue;
use crate::recordings::{self, Recording};

/// The bytes of a piece of an answer.
const PIECE: usize = 256 << 10;
/// The stack of a thread that reads a file.
const STACK: usize = 128 << 10;
/// The pieces that wait for the client.
const MAX_PIECES: usize = 4;
/// Maximum time in which a client reads nothing.
const SLOWEST: Duration = Duration::from_secs(30);
/// Maximum size of a recording to make a page of, in bytes.
const MAX_RECORDING_SIZE: u64 = 256 << 20;

/// A row of the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordingRow {
    id: String,
    name: String,
    kind: String,
    bytes: u64,
    modified: String,
    /// True if it has a page.
    has_page: bool,
    process: RecordedProcess,
    egress_provider_name: Option<String>,
    operation_id: Option<String>,
    rule: Option<String>,
}

#[derive(Serialize)]
struct RecordedProcess {
    pid: u32,
    /// Empty if it is not known.
    uid: String,
    name: String,
}

impl RecordingRow {
    fn of(recording: Recording) -> Self {
        let has_page = recording.is_nettrace() && recording.bytes <= MAX_RECORDING_SIZE;
        let note = recording.note;
        Self {
            id: recording.id,
            name: note.name,
            kind: note.kind,
            bytes: recording.bytes,
            modified: json::time(recording.modified),
            has_page,
            process: RecordedProcess { pid: note.pid, uid: note.uid, name: note.process_name },
            egress_provider_name: recording.provider,
            operation_id: note.operation,
            rule: note.rule,
        }
    }
}

impl Service {
    async fn recordings(&self) -> Result<Vec<Recording>, Problem> {
        let mut directories = self.queue.as_ref().map(EgressQueue::directories).unwrap_or_default();
        directories.extend(self.rules.iter().flat_map(|rules| rules.egress_directories()));
        let boxes = self.black_boxes.clone();
        let list = tokio::task::spawn_blocking(move || {
            recordings::list(&directories, boxes.as_ref().and_then(|boxes| boxes.directory()))
        });
        list.await.map_err(|error| failed(&error))
    }

    /// Answers with the list, newest first.
    pub(super) async fn list_recordings(&self) -> Result<Response<AnswerBody>, Problem> {
        let rows: Vec<_> = self.recordings().await?.into_iter().map(RecordingRow::of).collect();
        Ok(json::response(StatusCode::OK, &rows))
    }

    /// Answers with a file, or for clients that accept text/html with the page of a recording. The id is
    /// looked for in the list: it is never made into a path.
    pub(super) async fn recording(
        &self,
        id: &str,
        accept: Option<&str>,
    ) -> Result<Response<AnswerBody>, Problem> {
        let found = self.recordings().await?.into_iter().find(|recording| recording.id == id);
        let recording = found.ok_or_else(|| {
            let detail = "there is no such recording: /recordings lists them";
            Problem::new(StatusCode::NOT_FOUND, "Not Found", detail)
        })?;
        let file = recording.open().map_err(|error| failed(&error))?;
        let accepts_page = accept.is_some_and(|accept| accept.contains("text/html"));
        if accepts_page && recording.is_nettrace() {
            return self.page_of(recording, file).await;
        }
        let mut response = send(&self.runtime, file, recording.bytes);
        set_headers(&mut response, "application/octet-stream", &recording.file_name());
        Ok(response)
    }

    async fn page_of(&self, recording: Recording, file: File) -> Result<Response<AnswerBody>, Problem> {
        if recording.bytes > MAX_RECORDING_SIZE {
            let detail = "it is too large for a page: load it, and use dipc view";
            return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "Not Acceptable", detail));
        }
        let Ok(permit) = Arc::clone(&self.pages).try_acquire_owned() else {
            let detail = "the page of another recording is being made";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "Too Many Requests", detail));
        };
        let title = format!("{} ({})", recording.note.process_name, recording.note.pid);
        let page = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            page_of_recording(BufReader::with_capacity(PIECE, file.take(MAX_RECORDING_SIZE)), &title)
        });
        let page = page.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        let mut response = Response::new(AnswerBody::whole(page));
        let name = recording.file_name();
        let name = format!("{}.html", name.strip_suffix(".nettrace").unwrap_or(&name));
        set_headers(&mut response, "text/html; charset=utf-8", &name);
        Ok(response)
    }
}

pub(super) fn failed(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error", error.to_string())
}

pub(super) fn set_headers(response: &mut Response<AnswerBody>, media_type: &'static str, name: &str) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    let name = HeaderValue::try_from(format!("attachment; filename={name}"));
    headers.extend(name.ok().map(|value| (CONTENT_DISPOSITION, value)));
}

/// Sends the first bytes of a file as they are read.
pub(super) fn send(runtime: &Handle, file: File, bytes: u64) -> Response<AnswerBody> {
    let (pieces, received) = mpsc::channel(MAX_PIECES);
    let stop = StopSignal::new();
    let (of_thread, has_stopped) = (runtime.clone(), stop.clone());
    // A file that grows meanwhile is sent as it was listed. Without a thread the answer is cut.
    let thread = thread::Builder::new().name("recording".to_owned()).stack_size(STACK);
    let _ = thread.spawn(move || read(&of_thread, file.take(bytes), &pieces, &has_stopped));
    let mut response = Response::new(AnswerBody::Stream { pieces: received, _cancelled: CancelOnDrop(stop) });
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    response
}

/// Passes the pieces of a file on, until its end or the client's departure.
fn read(
    runtime: &Handle,
    mut file: io::Take<File>,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
    stop: &StopSignal,
) {
    let mut buffer = vec![0; PIECE];
    while !stop.is_stopped() {
        let piece = match file.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => Ok(Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_error = piece.is_err();
        if runtime.block_on(pieces.send_timeout(piece, SLOWEST)).is_err() || is_error {
            return;
        }
    }
}
