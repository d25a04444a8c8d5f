//! Any bytes as a recording whose payloads are replaced: all else of an event is as it was, and a recording
//! that is written of them has them.

#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use nettrace::{Decoder, Event, EventBuffer, Format, Record, SliceReader};
use nettrace_writer::{Error, Transcoder, Version};

fuzz_target!(|input: &[u8]| {
    let Some((&[flags, length, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    dipc_fuzz::bounded(bytes.len(), || check_events(bytes, length));
    for version in [Version::V4, Version::V6] {
        dipc_fuzz::bounded(bytes.len(), || check_recording(bytes, version, flags));
    }
});

/// Checks events with another payload.
fn check_events(bytes: &[u8], length: u8) {
    let Ok(mut events) = SliceReader::new(bytes) else { return };
    let (mut buffer, mut again) = (EventBuffer::default(), EventBuffer::default());
    let other: Vec<u8> = (0..length).collect();
    let _ = events.for_each(|event| {
        let same = event.with_payload(event.payload(), &mut buffer);
        assert_eq!(properties(&same), properties(&event));
        assert_eq!(same.payload(), event.payload());
        let fields = |event: &Event<'_>| format!("{:?}", event.fields().collect::<Vec<_>>());
        assert_eq!(fields(&same), fields(&event));
        let replaced = same.with_payload(&other, &mut again);
        assert_eq!(properties(&replaced), properties(&event));
        assert_eq!(replaced.payload(), other);
        // Fields are read of what is there.
        replaced.fields().for_each(drop);
    });
}

/// What an event says beside its payload.
fn properties(event: &Event<'_>) -> impl PartialEq + std::fmt::Debug {
    (
        (event.offset(), event.time(), event.id(), event.version(), event.level(), event.keywords()),
        (event.thread_id(), event.capture_thread_id(), event.process_id(), event.processor()),
        (event.activity(), event.related_activity(), event.labels().count(), event.sequence()),
        (event.stack().collect::<Vec<_>>(), event.is_sorted(), event.metadata_index()),
    )
}

/// An event as it has to be in the new recording: its time, its payload, and the length of its stack.
type Written = (u64, Vec<u8>, usize);

/// Checks a recording in which some events are removed, and others have another payload.
fn check_recording(bytes: &[u8], version: Version, flags: u8) {
    let Ok(mut events) = SliceReader::new(bytes) else { return };
    // Those have no sequence points, which the caller would have to write.
    let Some(info) = events.info().filter(|info| info.format != Format::Netperf).cloned() else { return };
    let Ok(mut transcoder) = Transcoder::new(version, &info) else { return };
    let (mut expected, mut payload) = (Vec::<Written>::new(), Vec::new());
    let mut number = 0usize;
    let mut write = |record: &Record<'_>| {
        let Record::Event(event) = record else { return transcoder.write(record) };
        number += 1;
        payload.clear();
        let time = event.time().0;
        match (number + usize::from(flags)) % 5 {
            0 => {
                transcoder.remove(event);
                return Ok(());
            }
            1 => {
                transcoder.event(event)?;
                expected.push((time, event.payload().to_vec(), event.stack().len()));
            }
            choice => {
                payload.extend(event.payload().iter().rev().skip(choice - 2));
                let with_stack = choice != 3;
                transcoder.event_with(event, &payload, with_stack)?;
                expected.push((time, payload.clone(), if with_stack { event.stack().len() } else { 0 }));
            }
        }
        Ok::<_, Error>(())
    };
    let mut written = Ok(());
    let read = events.try_for_each_record(&mut |record| {
        written = write(record);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let result = read.map_err(Error::from).and(written);
    match result.and_then(|()| transcoder.finish(events.threads())) {
        Ok(()) => {}
        // A thing that the version has no room for.
        Err(Error::TooLarge { .. } | Error::Read(_)) => return,
        Err(error) => panic!("{error}"),
    }
    let mut decoder = Decoder::new();
    decoder.feed(transcoder.bytes());
    decoder.end_of_input();
    let mut expected = expected.into_iter();
    decoder
        .for_each(|event| {
            let found = (event.time().0, event.payload().to_vec(), event.stack().len());
            assert_eq!(Some(found), expected.next());
        })
        .expect("what is written can be read");
    assert_eq!(expected.next(), None);
    assert_eq!((decoder.damage(), decoder.truncated_at()), (&[][..], None));
}
