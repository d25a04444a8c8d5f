//! The part of a report that is compared with another one's.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::names::owner_name;
use super::reading::MemoryReading;
use super::report::unix_ms;

/// Maximum size of a file with a report: it lists a thousand parts of each owner at most.
pub const MAX_SNAPSHOT_BYTES: u64 = 64 << 20;
/// Maximum number of owners of a report that is read: there are twenty.
const MAX_OWNERS: usize = 1000;
/// Maximum length of a name that is read, in bytes.
const MAX_NAME: usize = 200;

/// The memory of a process or a core dump at a time, by owner. Its JSON is a part of
/// [`MemoryReport`](super::MemoryReport)'s.
///
/// ```
/// use dipc_collect::memory::MemorySnapshot;
///
/// let json = br#"{"time_unix_ms": 1764450000000, "rss_bytes": 4096, "unattributed_bytes": 0,
///     "owners": [{"owner": "native-heap", "bytes": 4096}]}"#;
/// let snapshot = MemorySnapshot::parse(json)?;
/// assert_eq!((snapshot.total(), snapshot.owners[0].name()), (4096, "native-heap"));
/// let error = MemorySnapshot::parse(b"{}").unwrap_err();
/// assert!(error.to_string().contains("missing field"), "{error}");
/// # Ok::<(), dipc_collect::memory::SnapshotError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemorySnapshot {
    /// Milliseconds since 1970; `None` if it was not stated.
    #[serde(default)]
    pub time_unix_ms: Option<u64>,
    /// The process; `None` for a core dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// Resident bytes; `None` for a core dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// Bytes in a core dump; `None` for a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dump_bytes: Option<u64>,
    /// Bytes without a known owner.
    pub unattributed_bytes: u64,
    /// The owners.
    pub owners: Vec<OwnerSnapshot>,
}

/// The memory of an owner at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OwnerSnapshot {
    /// The owner, as [`MemoryOwner::id`](clr_dump::MemoryOwner::id).
    pub owner: String,
    /// The name for people; `None` if it was not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Resident bytes, or bytes in the dump.
    pub bytes: u64,
}

/// The reason why a file is not a snapshot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The text is not JSON, or not that of a report.
    #[error("it is not the JSON of dipc memory: {0}")]
    Json(String),
    /// There are too many owners.
    #[error("it has {0} owners: {MAX_OWNERS} is the limit")]
    TooManyOwners(usize),
    /// A name is too long.
    #[error("the name of owner {0} has more than {MAX_NAME} bytes")]
    LongName(usize),
    /// An owner is listed twice.
    #[error("owner {0} is listed twice")]
    Repeated(usize),
}

impl MemorySnapshot {
    /// The snapshot of a reading.
    pub fn of(reading: &MemoryReading) -> Self {
        let account = &reading.account;
        let total = account.total.resident;
        let owner = |owned: &clr_dump::OwnedMemory| OwnerSnapshot {
            owner: owned.owner.id().to_owned(),
            name: Some(owner_name(owned.owner, reading)),
            bytes: owned.sizes.resident,
        };
        Self {
            time_unix_ms: unix_ms(reading.time),
            process_id: reading.pid,
            rss_bytes: (!reading.is_dump()).then_some(total),
            dump_bytes: reading.is_dump().then_some(total),
            unattributed_bytes: account.unattributed(),
            owners: account.owners.iter().map(owner).collect(),
        }
    }

    /// Reads the JSON of a report, or of a snapshot. The caller bounds its length by [`MAX_SNAPSHOT_BYTES`].
    ///
    /// # Errors
    /// If it is not such JSON, with the line and the column; if it has too many owners, or one twice.
    pub fn parse(json: &[u8]) -> Result<Self, SnapshotError> {
        let parsed = serde_json::from_slice(json);
        let snapshot: Self = parsed.map_err(|error| SnapshotError::Json(error.to_string()))?;
        if snapshot.owners.len() > MAX_OWNERS {
            return Err(SnapshotError::TooManyOwners(snapshot.owners.len()));
        }
        let mut known = BTreeSet::new();
        for (number, owned) in (1..).zip(&snapshot.owners) {
            if owned.owner.len() > MAX_NAME || owned.name.as_ref().is_some_and(|name| name.len() > MAX_NAME) {
                return Err(SnapshotError::LongName(number));
            }
            if !known.insert(&*owned.owner) {
                return Err(SnapshotError::Repeated(number));
            }
        }
        Ok(snapshot)
    }

    /// All bytes: resident, or in the dump.
    pub fn total(&self) -> u64 {
        let sum = || self.owners.iter().map(|owned| owned.bytes).fold(0, u64::saturating_add);
        self.rss_bytes.or(self.dump_bytes).unwrap_or_else(sum)
    }
}

impl OwnerSnapshot {
    /// The name for people.
    pub fn name(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> String {
        MemorySnapshot::parse(json.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn snapshots_are_read_again() {
        let json = r#"{"process_id": 7, "rss_bytes": 12288, "dump_bytes": null, "answer": "x", "unattributed_bytes": 4096,
            "owners": [{"owner": "unknown", "name": "Not known", "bytes": 4096, "parts": [{"name": null}]},
                       {"owner": "gc-tables", "bytes": 8192}]}"#;
        let snapshot = MemorySnapshot::parse(json.as_bytes()).unwrap();
        assert_eq!((snapshot.time_unix_ms, snapshot.process_id, snapshot.total()), (None, Some(7), 12288));
        let names: Vec<_> = snapshot.owners.iter().map(OwnerSnapshot::name).collect();
        assert_eq!(names, ["Not known", "gc-tables"]);
        let again = serde_json::to_vec(&snapshot).unwrap();
        assert_eq!(MemorySnapshot::parse(&again).unwrap(), snapshot);
    }

    #[test]
    fn other_files_are_refused_with_the_place() {
        let json = "it is not the JSON of dipc memory: ";
        for (text, message) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{\"unattributed_bytes\": 0}", "missing field `owners` at line 1 column 25"),
            ("{\n\"owners\": 7", "invalid type: integer `7`, expected a sequence at line 2 column 11"),
            (
                "{\"unattributed_bytes\": -1, \"owners\": []}",
                "invalid value: integer `-1`, expected u64 at line 1 column 25",
            ),
            ("{\"unattributed_bytes\": 1e999}", "number out of range at line 1 column 28"),
        ] {
            assert_eq!(error(text), format!("{json}{message}"), "{text}");
        }
        let owners =
            |owners: &[String]| format!("{{\"unattributed_bytes\": 0, \"owners\": [{}]}}", owners.join(","));
        let owner = |name: &str| format!("{{\"owner\": \"{name}\", \"bytes\": {}}}", u64::MAX);
        assert_eq!(error(&owners(&[owner("a"), owner("b"), owner("a")])), "owner 3 is listed twice");
        assert_eq!(
            error(&owners(&[owner("a"), owner(&"n".repeat(201))])),
            "the name of owner 2 has more than 200 bytes"
        );
        let many: Vec<_> = (0..1001).map(|number| owner(&number.to_string())).collect();
        assert_eq!(error(&owners(&many)), "it has 1001 owners: 1000 is the limit");
        // The sum of what is listed saturates.
        let most = MemorySnapshot::parse(owners(&many[..1000]).as_bytes()).unwrap();
        assert_eq!(most.total(), u64::MAX);
        // Nesting takes no stack.
        error(&"[".repeat(1 << 20));
        error(&format!("{{\"parts\": {}", "[".repeat(1 << 20)));
    }
}
