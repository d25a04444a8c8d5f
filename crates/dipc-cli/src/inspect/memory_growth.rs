//! Growth of the memory of a process by its owners, and the files that it is read from.

use std::io::Read as _;
use std::path::Path;

use dipc_collect::memory::{MAX_SNAPSHOT_BYTES, MemoryGrowth, MemorySnapshot};

use crate::duration;
use crate::exit::{Exit, Failure};
use crate::render::units::{self, signed};

/// Minimum growth that the first line is about: some pages come and go.
const MIN_GROWTH: i64 = 1_000_000;
/// The number of bytes in which a file begins.
const BEGINNING: u64 = 64;

/// Returns the owner that grew most in a line, in bytes a minute if the times are known. It has untrusted
/// names.
pub(crate) fn first_line(growth: &MemoryGrowth) -> String {
    let bytes = |change: i64| units::bytes(change.unsigned_abs());
    let all = units::bytes(growth.total.after);
    let time = growth.elapsed.map(duration::display);
    let Some(of) = growth.largest().filter(|of| of.change() >= MIN_GROWTH) else {
        let time = time.map(|time| format!(" in {time}")).unwrap_or_default();
        let change = amount(growth.total.change());
        return format!("No owner grew by {} or more{time}: {change} in all, to {all}", bytes(MIN_GROWTH));
    };
    let change = bytes(of.change());
    let grown = match growth.per_minute(of.change()).zip(time) {
        Some((rate, time)) => format!("{} a minute: {change} in {time}", bytes(rate)),
        None => change,
    };
    format!("{} grew by {grown}, to {} of {all}", of.name, units::bytes(of.after))
}

/// Formats a difference in bytes.
pub(crate) fn amount(change: i64) -> String {
    signed(change.into(), units::bytes)
}

/// Returns true if a file begins like JSON. Pipes are not read.
pub(crate) fn is_json(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = dipc_transport::open_regular(path)
        .and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning))
        .is_ok();
    read && beginning.trim_ascii_start().starts_with(b"{")
}

/// Reads the JSON of `dipc memory` from a file.
pub(crate) fn read_snapshot(path: &Path) -> Result<MemorySnapshot, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Failed, format_args!("read: {}: {error}", path.display()))
            .with_help("dipc memory -p PID --format json > FILE writes a snapshot of memory")
    };
    let mut json = Vec::new();
    let file = dipc_transport::open_regular(path).map_err(|error| failed(&error))?;
    file.take(MAX_SNAPSHOT_BYTES + 1).read_to_end(&mut json).map_err(|error| failed(&error))?;
    if json.len() as u64 > MAX_SNAPSHOT_BYTES {
        let limit = units::bytes(MAX_SNAPSHOT_BYTES);
        return Err(failed(&format_args!("it is larger than {limit}, and so not a snapshot of memory")));
    }
    MemorySnapshot::parse(&json).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(time: &str, heap: u64, stacks: u64) -> MemorySnapshot {
        let total = heap.saturating_add(stacks);
        let json = format!(
            r#"{{"time_unix_ms": {time}, "rss_bytes": {total}, "unattributed_bytes": 0, "owners": [
            {{"owner": "native-heap", "name": "Native heap", "bytes": {heap}}},
            {{"owner": "thread-stacks", "name": "Thread\u001b stacks", "bytes": {stacks}}}]}}"#
        );
        MemorySnapshot::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_first_line_names_the_owner_that_grew_most() {
        let before = snapshot("1000", 10_000_000, 2_000_000);
        let line = |after: MemorySnapshot| first_line(&MemoryGrowth::between(&before, &after));
        assert_eq!(
            line(snapshot("31000", 16_000_000, 3_000_000)),
            "Native heap grew by 12.0 MB a minute: 6.00 MB in 30.0 s, to 16.0 MB of 19.0 MB"
        );
        assert_eq!(
            line(snapshot("null", 9_000_000, 5_000_000)),
            "Thread\u{1b} stacks grew by 3.00 MB, to 5.00 MB of 14.0 MB"
        );
        assert_eq!(
            line(snapshot("61000", 10_900_000, 1_000_000)),
            "No owner grew by 1.00 MB or more in 1 min 00 s: -100 KB in all, to 11.9 MB"
        );
        assert_eq!(
            line(snapshot("null", 10_000_000, 2_000_000)),
            "No owner grew by 1.00 MB or more: 0 B in all, to 12.0 MB"
        );
    }

    #[test]
    fn files_are_refused_with_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let other = file("other.json", b" \n{\"$schema\": \"x\"}");
        assert!(is_json(&other));
        let message = read_snapshot(&other).unwrap_err().message;
        let expected = "other.json: it is not the JSON of dipc memory: missing field `unattributed_bytes` at line 2 column 16";
        assert!(message.ends_with(expected), "{message}");
        let large = std::fs::File::create(folder.path().join("large")).unwrap();
        large.set_len(MAX_SNAPSHOT_BYTES + 1).unwrap();
        let message = read_snapshot(&folder.path().join("large")).unwrap_err().message;
        assert!(message.contains("larger than 67.1 MB"), "{message}");
        for path in [file("empty", b""), file("trace", b"Nettrace{"), folder.path().to_owned()] {
            assert!(!is_json(&path), "{}", path.display());
        }
        assert!(read_snapshot(folder.path()).is_err());
    }
}
