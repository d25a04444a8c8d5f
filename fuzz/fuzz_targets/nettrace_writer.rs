//! Any bytes as a recording, written again in V4 and in V6: what is written is whole, has as many events, and
//! needs no more memory than reading.

#![no_main]

use dipc_fuzz::Written;
use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;
use nettrace_writer::{Error, Version, transcode};

fuzz_target!(|input: &[u8]| {
    let bytes = input.get(4..).unwrap_or_default();
    for version in [Version::V4, Version::V6] {
        dipc_fuzz::bounded(bytes.len(), || check(bytes, version));
    }
});

/// What is written is read as it comes, so that only its reader and its writer need memory.
fn check(bytes: &[u8], version: Version) {
    let Some(events) = count(bytes) else { return };
    let mut written = Written::default();
    let reader = SliceReader::new(bytes).unwrap();
    match transcode(reader, version, |part| {
        written.add(part);
        Ok::<_, Error>(())
    }) {
        Ok(_) => assert_eq!(written.count(), events),
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
