//! Events of the runtime's asynchronous profiler: which `async` methods wait for the code that a thread runs.
//!
//! .NET 11 has an EventSource for it. Its only event carries a buffer of many small events of one thread. The
//! layout is read as published; a runtime that writes it has not been available yet.
//!
//! # Source
//! `AsyncProfiler.cs` and `AsyncProfilerEventSource.cs` of dotnet/runtime, and
//! `AsyncProfilerTraceEventParser.cs` of microsoft/perfview, of July 2026.

mod buffer;
mod callstack;
mod cursor;
mod error;
mod event;
mod layout;
mod stacks;
#[cfg(test)]
mod written;

use nettrace::Metadata;

pub use buffer::{AsyncBuffer, AsyncEvents};
pub use callstack::{AsyncCallstack, AsyncFrame, AsyncModel};
pub use error::AsyncBufferError;
pub use event::{AsyncEvent, AsyncEventKind};
pub use layout::AsyncLayout;
pub use stacks::{AsyncStacks, AsyncStacksBuilder};

/// The name of the EventSource.
pub const ASYNC_PROFILER: &str = "System.Runtime.CompilerServices.AsyncProfilerEventSource";

/// The id of the event with a buffer.
const ASYNC_EVENTS: u32 = 1;

/// Returns true if events of this kind carry an [`AsyncBuffer`].
pub fn has_async_buffer(metadata: &Metadata) -> bool {
    metadata.event_id() == ASYNC_EVENTS && metadata.provider() == ASYNC_PROFILER
}

#[cfg(test)]
mod tests {
    use nettrace::Ticks;

    use super::written::{Buffer, METADATA, number};
    use super::*;

    fn events(payload: &[u8]) -> Result<Vec<String>, AsyncBufferError> {
        let mut layout = AsyncLayout::default();
        let events = AsyncBuffer::parse(payload)?.events(&mut layout);
        events.map(|event| event.map(|event| format!("{} {:?}", event.time.0, event.kind))).collect()
    }

    #[test]
    fn each_event_has_its_fields_and_its_time() {
        let trace = [0xAB; 16];
        let buffer = Buffer::new(0x1_0000_0001, 1000)
            .event(11, 5, &[number(0x80), number(3)].concat())
            .event(2, 300, &number(u64::MAX))
            .event(3, 0, &[])
            .event(15, 1, &number(42))
            .event(23, 1, &[number(7), number(8)].concat())
            .event(24, 1, &trace)
            .event(21, 1, &[]);
        let payload = buffer.payload();
        let header = AsyncBuffer::parse(&payload).unwrap();
        assert_eq!((header.thread, header.thread_context, header.event_count), (0x1_0000_0001, 3, 7));
        assert_eq!((header.start, header.end), (Ticks(1000), Ticks(1309)));
        assert_eq!(
            events(&payload).unwrap(),
            [
                "1005 ContextCreated { parent: 128, dispatcher: 3 }".to_owned(),
                format!("1305 ContextResumed {{ dispatcher: {} }}", u64::MAX),
                "1305 ContextSuspended".to_owned(),
                "1306 ExceptionUnwound { frames: 42 }".to_owned(),
                "1307 ClockSync { ticks: 7, file_time: 8 }".to_owned(),
                format!("1308 TraceId({trace:?})"),
                "1309 WrapperIndexReset".to_owned(),
            ]
        );
    }

    #[test]
    fn methods_are_differences_and_may_go_back() {
        let buffer = Buffer::new(1, 0)
            .runtime_callstack(7, 1, 9, &[0x7FFE_1234_5678, 0x7FFE_1234_5778, 0x7FFE_1234_5600])
            .state_machine_callstack(16, 1, 9, &[u64::MAX, 0, 1 << 63])
            .event(8, 1, &[0, 4, 0, 9]);
        let payload = buffer.payload();
        let mut layout = AsyncLayout::default();
        let read = AsyncBuffer::parse(&payload).unwrap();
        let callstacks: Vec<_> = read
            .events(&mut layout)
            .map(|event| match event.unwrap().kind {
                AsyncEventKind::ResumedCallstack(it) | AsyncEventKind::SuspendedCallstack(it) => it,
                other => panic!("{other:?}"),
            })
            .collect();
        let methods = |at: usize| callstacks[at].frames().iter().map(|it| it.method).collect::<Vec<_>>();
        assert_eq!(methods(0), [0x7FFE_1234_5678, 0x7FFE_1234_5778, 0x7FFE_1234_5600]);
        assert_eq!(methods(1), [u64::MAX, 0, 1 << 63]);
        assert_eq!(callstacks[0].frames()[1].state, None);
        // The states that are written are 0, -1, 2.
        let states: Vec<_> = callstacks[1].frames().iter().map(|it| it.state).collect();
        assert_eq!(states, [Some(0), Some(-1), Some(2)]);
        // An earlier callstack of the same operation.
        assert!(callstacks[2].is_empty() && callstacks[2].frames().is_empty());
        assert_eq!((callstacks[2].continuation_index, callstacks[2].dispatcher), (4, 9));
    }

    #[test]
    fn unknown_events_and_fields_are_skipped_by_their_lengths() {
        // Event 40 has a length of two bytes by the runtime's list, and event 3 has fields.
        let metadata = [METADATA.strip_suffix(&[0]).unwrap(), &[2, 40, 1, 2, 3, 9, 1]].concat();
        let buffer = Buffer::new(1, 0)
            .event(22, 0, &metadata)
            .wide_event(40, 1, &[1; 300])
            .byte_event(3, 1, &[7, 7])
            .event(12, 1, &[5, 1, 2, 3]);
        let seen = events(&buffer.payload()).unwrap();
        assert!(seen[1].starts_with("1 Unknown([1, 1"), "{}", seen[1]);
        assert_eq!(seen[2..], ["2 ContextSuspended", "3 ContextResumed { dispatcher: 5 }"]);
    }

    #[test]
    fn errors_state_the_place() {
        assert_eq!(AsyncBuffer::parse(&[1, 0]).unwrap_err(), AsyncBufferError::Truncated { offset: 0 });
        let mut other = Buffer::new(1, 0).payload();
        other[4] = 2;
        assert_eq!(AsyncBuffer::parse(&other).unwrap_err(), AsyncBufferError::Version(2));
        let unknown = Buffer::new(1, 0).event(3, 0, &[]).event(200, 0, &[]);
        let error = events(&unknown.payload()).unwrap_err();
        assert_eq!(error, AsyncBufferError::UnknownEvent { id: 200, offset: 39 });
        // Longer than the buffer; fields longer than the event; a number of 65 bits.
        let long = Buffer::new(1, 0).raw(&[11, 0, 9, 1]);
        assert_eq!(events(&long.payload()).unwrap_err(), AsyncBufferError::Truncated { offset: 40 });
        let short = Buffer::new(1, 0).raw(&[11, 0, 1, 1, 1]);
        assert_eq!(events(&short.payload()).unwrap_err(), AsyncBufferError::Truncated { offset: 41 });
        let wide = Buffer::new(1, 0).raw(&[3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2]);
        assert_eq!(events(&wide.payload()).unwrap_err(), AsyncBufferError::Number { offset: 38 });
    }

    #[test]
    fn a_buffer_that_is_cut_anywhere_is_an_error_or_has_fewer_events() {
        let buffer = Buffer::new(1, 0)
            .event(22, 0, METADATA)
            .runtime_callstack(6, 1, 9, &[0x10_0000, 0x20_0000])
            .state_machine_callstack(16, 1, 9, &[5, 6]);
        let whole = buffer.payload();
        let count = events(&whole).unwrap().len();
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            if let Ok(stated) = u32::try_from(length.saturating_sub(4)) {
                cut.splice(..length.min(4), stated.to_le_bytes().into_iter().take(length.min(4)));
            }
            assert!(events(&cut).map_or(true, |events| events.len() < count), "{length}");
        }
    }
}
