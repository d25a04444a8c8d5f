//! Any bytes as a recording, written again in V4 and in V6: what is written is whole, has as many events, and needs no more memory than reading.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;
use nettrace_writer::{Error, Version, transcode};

fuzz_target!(|input: &[u8]| {
    let bytes = input.get(4..).unwrap_or_default();
    for version in [Version::V4, Version::V6] {
        check(bytes, version);
    }
});

fn check(bytes: &[u8], version: Version) {
    let Some(events) = count(bytes) else { return };
    let mut out = Vec::new();
    let reader = SliceReader::new(bytes).unwrap();
    match transcode(reader, version, |part| {
        out.extend_from_slice(part);
        Ok::<_, Error>(())
    }) {
        Ok(_) => assert_eq!(count(&out), Some(events)),
        // A thing that the version has no room for.
        Err(Error::TooLarge { .. } | Error::Read(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Returns the number of events of a recording; `None` if the bytes are none.
fn count(bytes: &[u8]) -> Option<u64> {
    let mut events = SliceReader::new(bytes).ok()?;
    events.info()?;
    let mut count = 0;
    while events.next().ok()?.is_some() {
        count += 1;
    }
    Some(count)
}
