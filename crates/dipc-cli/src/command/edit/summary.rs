//! The result of an edit, for programs.

use std::collections::BTreeMap;
use std::path::Path;

use nettrace::{Events, RelativeTime, Source};
use nettrace_edit::Redactor;
use nettrace_writer::Version;
use serde::Serialize;

/// The recordings that were written, and the state of the one that was read.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    parts: Vec<Part>,
    /// The requests that were cut out; `None` without `--request`.
    pub(super) requests: Option<usize>,
    /// The fields whose texts were replaced, in all parts.
    redacted: Vec<RedactedField>,
    /// Events that may have such texts in undescribed fields, which are kept unchanged.
    not_described: Vec<NotDescribed>,
    /// The offset at which the recording was cut.
    truncated_at: Option<u64>,
    damage_count: u64,
}

/// A recording that was written.
#[derive(Debug, Serialize)]
struct Part {
    file: String,
    /// The version of the format.
    version: u32,
    /// Beginning and end, in the time of the recording that was read.
    from_ns: Option<i64>,
    to_ns: Option<i64>,
    /// The number of events read.
    read: u64,
    /// The number of events written.
    kept: u64,
    /// The number of events left out.
    cut: u64,
    bytes: u64,
    /// Blocks skipped by their headers. Their events do not count in `read`.
    skipped_blocks: u64,
    skipped_bytes: u64,
}

#[derive(Debug, Serialize)]
struct RedactedField {
    field: String,
    texts: u64,
}

#[derive(Debug, Serialize)]
struct NotDescribed {
    event: String,
    payloads: u64,
}

/// The numbers of a recording that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) version: Version,
    pub(super) read: u64,
    pub(super) kept: u64,
    pub(super) bytes: u64,
}

impl Summary {
    /// Adds a recording that was written from `events`.
    pub(super) fn add<S: Source>(
        &mut self,
        file: &Path,
        (from, to): (Option<RelativeTime>, Option<RelativeTime>),
        written: Written,
        events: &Events<S>,
    ) {
        self.parts.push(Part {
            file: file.display().to_string(),
            version: if written.version == Version::V6 { 6 } else { 4 },
            from_ns: from.map(RelativeTime::as_nanos),
            to_ns: to.map(RelativeTime::as_nanos),
            read: written.read,
            kept: written.kept,
            cut: written.read.saturating_sub(written.kept),
            bytes: written.bytes,
            skipped_blocks: events.skipped_blocks(),
            skipped_bytes: events.skipped_bytes(),
        });
        self.truncated_at = events.truncated_at();
        self.damage_count = events.damage_count();
    }

    /// Adds the texts that were replaced in a part.
    pub(super) fn add_redactions(&mut self, redactor: &Redactor) {
        let mut fields: BTreeMap<_, _> = self.redacted.drain(..).map(|row| (row.field, row.texts)).collect();
        add_counts(&mut fields, redactor.replaced());
        self.redacted = fields.into_iter().map(|(field, texts)| RedactedField { field, texts }).collect();
        let mut events: BTreeMap<_, _> =
            self.not_described.drain(..).map(|row| (row.event, row.payloads)).collect();
        add_counts(&mut events, redactor.unread());
        self.not_described =
            events.into_iter().map(|(event, payloads)| NotDescribed { event, payloads }).collect();
    }
}

fn add_counts(counts: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, number) in more {
        let count = counts.entry(name.clone()).or_default();
        *count = count.saturating_add(*number);
    }
}
