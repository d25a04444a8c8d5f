//! Events that a program writes to tracepoints, as events of the recording.

use nettrace::{Metadata, Ticks};
use nettrace_writer::{Activities, Error, EventKind, EventKindId};

use super::RecordingWriter;
use crate::maps::{Mapping, ProcessMaps};
use crate::record::{Record, TracepointEvent};

/// An event of a [tracepoint](TracepointEvent), as its program describes it.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "the parts of an event that its program writes")]
pub struct ProgramEvent<'a> {
    /// The kind of event.
    pub kind: EventKindId,
    /// The activities of the event.
    pub activities: Activities,
    /// The payload.
    pub payload: &'a [u8],
}

impl RecordingWriter {
    /// Defines a kind of event, by a description of V5: see [`EventWriter::define_as`].
    ///
    /// [`EventWriter::define_as`]: nettrace_writer::EventWriter::define_as
    ///
    /// # Errors
    /// As [`EventWriter::define`](nettrace_writer::EventWriter::define).
    pub fn define_as(&mut self, kind: &Metadata) -> Result<EventKindId, Error> {
        self.writer.define_as(kind)
    }

    /// Defines a kind of event.
    ///
    /// # Errors
    /// As [`EventWriter::define`](nettrace_writer::EventWriter::define).
    pub fn define(&mut self, kind: &EventKind<'_>) -> Result<EventKindId, Error> {
        self.writer.define(kind)
    }

    /// Adds an event of a tracepoint, with the program's stack. Where code that was compiled at run time
    /// called native code to write the event, the frames of the latter are left out.
    ///
    /// # Errors
    /// As [`EventWriter::event`](nettrace_writer::EventWriter::event).
    pub fn program_event(
        &mut self,
        record: &Record<'_>,
        tracepoint: &TracepointEvent<'_>,
        event: &ProgramEvent<'_>,
    ) -> Result<(), Error> {
        let thread = record.thread;
        if thread.pid <= 0 {
            return Ok(());
        }
        self.last_ns = self.last_ns.max(record.time_ns);
        self.counts.program_events = self.counts.program_events.saturating_add(1);
        self.process(thread.pid, record.time_ns, false)?;
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.extend(tracepoint.user_frames());
        let maps = self.processes.of(thread.pid);
        let is_compiled = |&frame: &u64| !is_native(maps, thread.pid, frame);
        stack.drain(..stack.iter().position(is_compiled).unwrap_or(0));
        self.note_frames(thread.pid, &stack);
        let index = self.thread(thread)?;
        let time = Ticks(record.time_ns);
        let result = self.writer.event_of(
            event.activities,
            event.kind,
            time,
            index,
            Some(record.cpu),
            &stack,
            event.payload,
        );
        self.stack = stack;
        result
    }
}

/// Returns true if an address is in the code of a native image. Images of managed code are not, even inside
/// of a native one.
fn is_native(maps: &ProcessMaps, pid: i32, address: u64) -> bool {
    let native = |mapping: &Mapping| mapping.address_in(mapping.image(pid)?, address);
    maps.at(address).and_then(native).is_some()
}
