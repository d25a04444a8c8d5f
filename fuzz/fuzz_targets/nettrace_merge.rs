//! Any bytes as two recordings, merged: the first is all of them, the second the part before an offset that the first four bytes choose. What is
//! written is whole, and has every event once, or twice where the second is no part of the first.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;
use nettrace_writer::{Error, MergerOptions, merge};

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first_chunk::<4>() else { return };
    let cut = u32::from_le_bytes(*choice) as usize % (bytes.len() + 1);
    let recordings: Vec<_> =
        [bytes, &bytes[..cut]].into_iter().filter(|bytes| count(bytes).is_some()).collect();
    let readers = recordings.iter().map(|bytes| SliceReader::new(bytes).unwrap()).collect();
    let mut out = Vec::new();
    match merge(readers, MergerOptions::default(), |part| {
        out.extend_from_slice(part);
        Ok::<_, Error>(())
    }) {
        Ok((_, merger)) => {
            let counts: Vec<_> = (0..recordings.len()).map(|index| merger.events(index)).collect();
            for (bytes, (written, repeated)) in recordings.iter().zip(&counts) {
                assert_eq!(count(bytes), Some(written + repeated));
            }
            assert_eq!(count(&out), Some(counts.iter().map(|(written, _)| written).sum()));
        }
        // A thing that the version has no room for.
        Err(Error::TooLarge { .. } | Error::PointerSizes { .. } | Error::Read(_)) => {}
        Err(error) => panic!("{error}"),
    }
});

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
