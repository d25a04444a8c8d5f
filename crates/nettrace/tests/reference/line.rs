//! One event as the other reader writes it.

use nettrace::{Event, Metadata};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::{differences, text};

#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    provider: String,
    name: String,
    id: u32,
    version: u32,
    time_ms: f64,
    pid: u64,
    tid: i64,
    cpu: u32,
    level: u32,
    keywords: u64,
    opcode: u8,
    payload_len: usize,
    payload_sha256: String,
    activity: Option<String>,
    related: Option<String>,
    fields: serde_json::Map<String, serde_json::Value>,
}

macro_rules! same {
    ($what:literal, $ours:expr, $theirs:expr) => {
        let ours = $ours;
        if ours != $theirs {
            return Err(format!("{}: ours is {ours:?}, theirs {:?}", $what, $theirs));
        }
    };
}

impl Line {
    /// Nanoseconds since the recording's start.
    #[allow(clippy::cast_possible_truncation, reason = "recordings last less than 2^53 nanoseconds")]
    pub(crate) fn time_ns(&self) -> i64 {
        (self.time_ms * 1e6).round() as i64
    }

    /// Returns whether the event equals the line, apart from named differences.
    pub(crate) fn equals(&self, event: &Event<'_>) -> Result<(), String> {
        let metadata: &Metadata = event.metadata();
        same!("provider", metadata.provider(), self.provider);
        if !differences::is_dynamic_gc_event(event) {
            same!("id", event.id() & differences::ID_BITS, self.id);
        }
        same!("version", event.version(), self.version);
        same!("time", event.relative_time().as_nanos().max(differences::EARLIEST), self.time_ns());
        same!("process", event.process_id().unwrap_or(0), self.pid);
        if self.tid >= 0 && !differences::thread_is_unknown(event) {
            same!("thread", event.thread_id().0, self.tid.cast_unsigned());
        }
        if !differences::processor_is_of_another_thread(event) {
            same!("processor", event.processor().unwrap_or(0), self.cpu);
        }
        same!("level", event.level(), self.level);
        same!("keywords", event.keywords(), self.keywords);
        if !differences::opcode_comes_from_elsewhere(event) {
            same!("opcode", event.opcode().unwrap_or(0), self.opcode);
        }
        same!("payload length", event.payload().len(), self.payload_len);
        let digest = Sha256::digest(event.payload());
        let digest = u64::from_be_bytes(*digest.first_chunk().unwrap());
        same!("payload digest", format!("{digest:016x}"), self.payload_sha256);
        same!("activity", event.activity().map(|id| id.to_string()), self.activity);
        if !differences::related_activity_is_misread(event) {
            same!("related activity", event.related_activity().map(|id| id.to_string()), self.related);
        }
        if !differences::has_names_of_its_own(metadata.provider()) {
            if !differences::opcode_is_in_the_name(event) {
                same!("name", text::plain_name(metadata), self.name.replace('/', ""));
            }
            text::same_fields(event, &self.fields)?;
        }
        Ok(())
    }
}
