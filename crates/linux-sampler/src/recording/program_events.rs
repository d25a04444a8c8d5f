//! Events that a program writes to tracepoints, as events of the recording.

use nettrace::{Metadata, Ticks};
use nettrace_writer::{Activities, Error, EventKind, EventKindId, OwnEvent};

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
        self.unwinder.user_stack(thread, &tracepoint.sample, &mut self.processes, &mut stack);
        let maps = self.processes.of(thread.pid);
        let is_compiled = |&frame: &u64| !is_native(maps, thread.pid, frame);
        stack.drain(..stack.iter().position(is_compiled).unwrap_or(0));
        self.note_frames(thread.pid, &stack);
        let index = self.thread(thread)?;
        let result = self.writer.write(&OwnEvent {
            kind: event.kind,
            time: Ticks(record.time_ns),
            thread: index,
            processor: Some(record.cpu),
            stack: &stack,
            activities: event.activities,
            payload: event.payload,
        });
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

#[cfg(test)]
mod tests {
    use nettrace::SliceReader;

    use super::*;
    use crate::config::SamplerConfig;
    use crate::maps::Processes;
    use crate::record::{CONTEXT_USER, RecordKind, Sample, SampleEvent, ThreadKey};

    #[test]
    fn native_frames_are_left_out_where_other_code_called_them() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let mut processes = Processes::new();
        let maps = processes.of(pid);
        let native = native_frames_are_left_out_where_other_code_called_them as *const () as u64;
        // Code outside images: the kernel's, in every process.
        let other = maps.iter().find(|mapping| &*mapping.name == "[vdso]").unwrap().start + 16;
        assert!(is_native(maps, pid, native) && !is_native(maps, pid, other));

        let (from_other, from_native) = ([native, other, native], [native, native]);
        let mut recording =
            RecordingWriter::new(0, 0, Some(pid), &SamplerConfig::of_process(pid), "test").unwrap();
        let kind = recording.define(&EventKind::new("Demo", 7, "Tick", &[])).unwrap();
        for stack in [&from_other[..], &from_native, &[]] {
            let chain: Vec<u8> =
                [CONTEXT_USER].iter().chain(stack).flat_map(|frame| frame.to_ne_bytes()).collect();
            let sample = Sample {
                event: SampleEvent::Tracepoint(0),
                ip: native,
                period: 1,
                chain: &chain,
                registers: None,
                stack: &[],
            };
            let event = TracepointEvent { tracepoint: 0, data: &[], sample };
            let thread = ThreadKey { pid, tid: pid };
            let record = Record { thread, time_ns: 5, cpu: 1, kind: RecordKind::Tracepoint(event) };
            let own = ProgramEvent { kind, activities: Activities::default(), payload: b"abc" };
            recording.program_event(&record, &event, &own).unwrap();
        }
        assert_eq!(recording.finish(9).unwrap().program_events, 3);
        let mut events = SliceReader::new(recording.bytes()).unwrap();
        let mut stacks = Vec::new();
        let mut take = |event: &nettrace::Event<'_>| {
            if event.metadata().provider() == "Demo" {
                assert_eq!((event.payload(), event.time().0), (&b"abc"[..], 5));
                stacks.push(event.stack().collect::<Vec<_>>());
            }
        };
        while let Some(event) = events.next().unwrap() {
            take(&event);
        }
        assert_eq!(stacks, [from_other[1..].to_vec(), from_native.to_vec(), Vec::new()]);
    }
}
