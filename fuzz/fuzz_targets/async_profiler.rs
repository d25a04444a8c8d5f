//! Any bytes as buffers of the asynchronous profiler: each with a header of its own or, so that mutations get
//! behind it, with one that fits.

#![no_main]

use clr_activity::{AsyncBuffer, AsyncEventKind, AsyncLayout, AsyncStacksBuilder};
use libfuzzer_sys::fuzz_target;
use nettrace::Ticks;

/// The payload of an event with a buffer of these events.
fn payload(thread: u8, start: u8, events: &[u8]) -> Vec<u8> {
    let size = u32::try_from(37 + events.len()).expect("a small input");
    let mut payload = size.to_le_bytes().to_vec();
    payload.push(1);
    payload.extend(size.to_le_bytes());
    payload.extend(3u32.to_le_bytes());
    payload.extend(u64::from(thread % 4).to_le_bytes());
    payload.extend(1u32.to_le_bytes());
    payload.extend(u64::from(start).to_le_bytes());
    payload.extend([0; 8]);
    payload.extend(events);
    payload
}

fuzz_target!(|input: &[u8]| {
    let mut builder = AsyncStacksBuilder::default();
    let mut layout = AsyncLayout::default();
    let (mut rest, mut frames) = (input, 0);
    while let [kind, length, thread, start, bytes @ ..] = rest {
        let (events, after) = bytes.split_at(bytes.len().min(usize::from(*length) * 4));
        rest = after;
        let payload = if kind % 8 == 0 { events.to_vec() } else { payload(*thread, *start, events) };
        builder.add_payload(Some(u64::from(kind % 2)), &payload);
        let Ok(buffer) = AsyncBuffer::parse(&payload) else { continue };
        let (mut taken, mut has_failed) = (0, false);
        for event in buffer.events(&mut layout) {
            assert!(!has_failed, "an error is the last item");
            let Ok(event) = event else {
                has_failed = true;
                continue;
            };
            taken += 2;
            if let AsyncEventKind::ResumedCallstack(stack) | AsyncEventKind::AppendedCallstack(stack) =
                event.kind
            {
                assert_eq!(stack.frames().len(), stack.len());
                frames += stack.len();
            }
        }
        assert!(taken <= payload.len(), "an event has at least two bytes");
    }
    let stacks = builder.finish();
    for thread in 0..4 {
        for time in (0..600).step_by(7) {
            let Some((methods, _)) = stacks.at(Some(0), thread, Ticks(time)) else { continue };
            assert!(stacks.methods(methods).count() <= frames);
        }
    }
});
