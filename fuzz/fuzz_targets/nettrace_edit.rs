//! Any bytes as a recording that is cut, redacted, kept in a ring and written in parts: what is written is
//! whole, and memory is bounded.

#![no_main]

use std::time::Instant;

use dipc_fuzz::Written;
use libfuzzer_sys::fuzz_target;
use nettrace::{Decoder, RelativeTime};
use nettrace_edit::{
    Criteria, Error, RedactionLetters, Redactor, Ring, RingCapacity, Rotation, SegmentStorage, Slice, copy,
};

fuzz_target!(|input: &[u8]| {
    let Some((flags, bytes)) = input.split_first_chunk::<4>() else { return };
    dipc_fuzz::bounded(bytes.len(), || slice(bytes, *flags));
    dipc_fuzz::bounded(bytes.len(), || keep(bytes, *flags));
});

/// Times in units of 10 ms, threads and texts by flags.
fn slice(bytes: &[u8], [from, length, choice, _]: [u8; 4]) {
    let at = |time: u32| Some(RelativeTime::from_nanos(i64::from(time) * 10_000_000));
    let criteria = Criteria::default()
        .with_from(at(from.into()).filter(|_| choice & 1 != 0))
        .with_to(at(u32::from(from) + u32::from(length)).filter(|_| choice & 2 != 0))
        .with_threads(if choice & 4 != 0 { vec![1, u64::from(length)] } else { Vec::new() });
    let mut slice =
        Slice::new(criteria).with_dropped_stacks(choice & 8 != 0).with_listed_names_only(choice & 16 != 0);
    if choice & 32 != 0 {
        let texts = ["paths", "urls", "*/*.*"].map(|text| text.parse().unwrap());
        slice = slice.with_redactor(Redactor::new(texts.into(), RedactionLetters::Same));
    }
    let mut out = Output::default();
    let Ok(copied) = copy(bytes, &mut out, &mut slice) else { return };
    assert!(copied.kept <= copied.read);
    assert_eq!(copied.written, out.0.count());
}

/// A ring and parts of some kilobytes.
fn keep(bytes: &[u8], [size, chunk, ..]: [u8; 4]) {
    let (mut decoder, now) = (Decoder::new(), Instant::now());
    let bytes_kept = (u64::from(size) + 1) << 10;
    let mut state: Option<(Ring, Rotation, Output)> = None;
    for chunk in bytes.chunks((usize::from(chunk) + 1) * 256) {
        decoder.feed(chunk);
        let Ok(Some(info)) = decoder.read_header() else { continue };
        if state.is_none() {
            let capacity = RingCapacity { time: None, bytes: bytes_kept };
            let Ok(ring) = Ring::new(capacity, SegmentStorage::Memory, info, now) else { return };
            let (mut rotation, mut out) = (Rotation::new(bytes_kept, info), Output::default());
            if rotation.begin(&[], &mut out).is_err() {
                return;
            }
            state = Some((ring, rotation, out));
        }
        let Some((ring, rotation, out)) = &mut state else { continue };
        ring.receive(now);
        while let Ok(Some(record)) = decoder.next_record() {
            if is_too_large(ring.add(&record)) || is_too_large(rotation.add(&record, out)) {
                return;
            }
        }
        if is_too_large(ring.turn_if_due(decoder.threads())) {
            return;
        }
        if rotation.is_full() {
            let threads = decoder.threads();
            if is_too_large(rotation.end(threads, None, out)) {
                return;
            }
            std::mem::take(out).0.count();
            if is_too_large(rotation.begin(threads, out)) {
                return;
            }
        }
    }
    let Some((mut ring, _, _)) = state else { return };
    let Ok(snapshot) = ring.snapshot(decoder.threads()) else { return };
    let mut out = Output::default();
    if let Ok(written) = snapshot.write(None, &mut out) {
        assert!(out.0.count() >= written.events);
    }
}

/// Returns true if something has no room in the version; no other error can occur in memory.
fn is_too_large<T>(outcome: Result<T, Error>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(Error::Write(
            nettrace_writer::Error::TooLarge { .. } | nettrace_writer::Error::TooMany { .. },
        )) => true,
        Err(error) => panic!("{error}"),
    }
}

/// A recording that is read as it comes.
#[derive(Default)]
struct Output(Written);

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
