//! Where the two readings differ, and why ours is the right one.
//!
//! Besides these: events of the same tick have another order. Ours follows the recording.

use nettrace::{DateTime, Event, Value};

/// The other reader keeps event ids as 16 bits.
pub(crate) const ID_BITS: u32 = 0xffff;

/// Netperf: the other reader takes the related activity from where newer versions have it, so that it shows
/// pieces of the payload or of a stack. In the bytes it is zero.
pub(crate) fn related_activity_is_misread(event: &Event<'_>) -> bool {
    event.sequence().is_none()
}

/// Providers with events that the other reader knows by heart: it shows names and values that are not in the
/// recording.
pub(crate) fn has_names_of_its_own(provider: &str) -> bool {
    provider.starts_with("Microsoft-Windows-DotNETRuntime")
        || provider == "Microsoft-DotNETCore-SampleProfiler"
        || provider == "System.Threading.Tasks.TplEventSource"
}

/// Opcodes that are not in the recording: for events that the other reader knows by heart, and for netperf
/// events, where it derives the opcode from the ending of the name.
pub(crate) fn opcode_comes_from_elsewhere(event: &Event<'_>) -> bool {
    has_names_of_its_own(event.provider()) || event.sequence().is_none()
}

/// V6 threads that say of themselves neither an operating system's number nor a process: the other reader
/// shows 0 or -1, ours the recording's own index. A line with -1 needs no more to be known by.
pub(crate) fn thread_is_unknown(event: &Event<'_>) -> bool {
    event.thread().is_some_and(|thread| thread.id().0 == thread.index() && thread.process_id().is_some())
}

/// V6: where another thread captured the event, the other reader shows that thread's processor. Ours shows
/// none, as both do before V6.
pub(crate) fn processor_is_of_another_thread(event: &Event<'_>) -> bool {
    event.processor().is_none() && event.capture_processor().is_some()
}

/// Event 39 of the runtime wraps events that the collector defines as it goes: the other reader unwraps those
/// that it knows and gives them numbers of its own.
pub(crate) fn is_dynamic_gc_event(event: &Event<'_>) -> bool {
    event.provider() == "Microsoft-Windows-DotNETRuntime" && event.id() == 39
}

/// The other reader shows events from before the recording's start as of its start.
pub(crate) const EARLIEST: i64 = 0;

/// Dates of V6 have sixteen bytes (`NetTraceFormat.md`); the other reader takes the first eight of them for a
/// date of V5, and what follows for the next field.
pub(crate) fn is_misread_date(value: &Value<'_>) -> bool {
    matches!(value, Value::DateTime(DateTime::SystemTime(_)))
}

/// Where a label gives an event another opcode than its kind has, the other reader appends that opcode to the
/// name.
pub(crate) fn opcode_is_in_the_name(event: &Event<'_>) -> bool {
    event.opcode() != event.metadata().opcode()
}

/// Streams that continue after their end, which the other reader ignores.
pub(crate) const AFTER_THE_END: &str = "bytes after the end of the stream";
