//! Any bytes as two recordings, merged: the first is all of them, the second the part before an offset that
//! the first four bytes choose. What is written is whole, and has every event once, or twice where the second
//! is no part of the first.

#![no_main]

use dipc_fuzz::Written;
use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;
use nettrace_writer::{Error, MergerOptions, merge};

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first_chunk::<4>() else { return };
    let cut = u32::from_le_bytes(*choice) as usize % (bytes.len() + 1);
    let recordings: Vec<_> =
        [bytes, &bytes[..cut]].into_iter().filter(|bytes| count(bytes).is_some()).collect();
    dipc_fuzz::bounded(bytes.len() + cut, || check(&recordings));
});

/// What is written is read as it comes, so that only its reader, the merger and the readers of the recordings
/// need memory.
fn check(recordings: &[&[u8]]) {
    let readers = recordings.iter().map(|bytes| SliceReader::new(bytes).unwrap()).collect();
    let mut out = Written::default();
    match merge(readers, MergerOptions::default(), |part| {
        out.add(part);
        Ok::<_, Error>(())
    }) {
        Ok((_, merger)) => {
            let counts: Vec<_> = (0..recordings.len()).map(|index| merger.events(index)).collect();
            for (bytes, (written, repeated)) in recordings.iter().zip(&counts) {
                assert_eq!(count(bytes), Some(written + repeated));
            }
            assert_eq!(out.count(), counts.iter().map(|(written, _)| written).sum::<u64>());
        }
        // A thing that the version has no room for.
        Err(Error::TooLarge { .. } | Error::PointerSizes { .. } | Error::Read(_)) => {}
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
