//! Native allocations as events.

use nettrace::Ticks;
use nettrace_writer::Error;

use super::RecordingWriter;
use super::events::{number, text};
use crate::native_allocations::AllocationCounts;
use crate::record::{AllocationChange, AllocationRecord, Record};

impl RecordingWriter {
    pub(super) fn native_allocation(
        &mut self,
        record: &Record<'_>,
        allocation: &AllocationRecord<'_>,
    ) -> Result<(), Error> {
        let thread = record.thread;
        if thread.pid <= 0 {
            return Ok(());
        }
        self.process(thread.pid, record.time_ns, false)?;
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        self.payload.clear();
        let kind = match allocation.change {
            AllocationChange::Allocated { size, function } => {
                self.counts.native_allocations = self.counts.native_allocations.saturating_add(1);
                self.unwinder.user_stack(thread, &allocation.sample, &mut self.processes, &mut stack);
                self.note_frames(thread.pid, &stack);
                number(&mut self.payload, size.max(self.allocation_interval));
                number(&mut self.payload, size);
                number(&mut self.payload, allocation.address);
                text(&mut self.payload, function.as_bytes());
                self.kinds.allocated
            }
            AllocationChange::Freed { size } => {
                number(&mut self.payload, allocation.address);
                number(&mut self.payload, size);
                self.kinds.freed
            }
        };
        let index = self.thread(thread)?;
        let time = Ticks(record.time_ns);
        let result = self.writer.event(kind, time, index, Some(record.cpu), &stack, &self.payload);
        self.stack = stack;
        result
    }

    /// Adds the counts of native allocations at the end of their probes.
    ///
    /// # Errors
    /// As [`EventWriter::event`](nettrace_writer::EventWriter::event).
    pub fn native_allocations_end(&mut self, pid: i32, counts: &AllocationCounts) -> Result<(), Error> {
        let time = self.last_ns;
        let numbers = [
            counts.interval.into(),
            counts.hits,
            counts.cost_ns,
            counts.cpu_ns,
            counts.duration_ns,
            counts.lost_allocations,
            counts.lost_frees,
            counts.left_out,
            counts.stopped_ns.is_some().into(),
        ];
        let mut payload = Vec::new();
        for value in numbers {
            number(&mut payload, value);
        }
        self.process(pid, time, false)?;
        self.system_event(pid, time, self.kinds.probes_end, &payload)
    }
}
