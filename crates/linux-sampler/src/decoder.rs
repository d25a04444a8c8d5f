//! The records of the buffers, decoded and filtered, in time order.

use std::collections::HashSet;
use std::ops::Range;

use crate::record::{self, EventIds, EventSource, Record, RecordKind, SampleEvent};
use crate::thinning::Thinning;

/// Times and ranges of records within their bytes, in time order.
pub(crate) type RecordOrder = [(u64, Range<usize>)];

/// The bytes of records that were read and are not yet decoded, in time order.
#[derive(Debug, Default)]
pub struct RecordBatch {
    bytes: Vec<u8>,
    order: Vec<(u64, Range<usize>)>,
    read_ns: u64,
}

impl RecordBatch {
    /// Copies records that are in time order.
    pub(crate) fn copy(bytes: &[u8], order: &RecordOrder, read_ns: u64) -> Self {
        let mut copy = Self { read_ns, ..Self::default() };
        copy.bytes.reserve_exact(order.iter().map(|(_, place)| place.len()).sum());
        copy.order.reserve_exact(order.len());
        for (time, place) in order {
            let start = copy.bytes.len();
            copy.bytes.extend_from_slice(bytes.get(place.clone()).unwrap_or_default());
            copy.order.push((*time, start..copy.bytes.len()));
        }
        copy
    }

    /// The time at which the buffers were read, on the clock of the records; 0 for an empty batch that was
    /// not read. Batches that follow have no records before the time of the batch before this one.
    pub const fn read_ns(&self) -> u64 {
        self.read_ns
    }

    /// The number of bytes of its records.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// A decoder for the records of a sampler, which drops those outside of its scope. It has the thinning of
/// stacks, and so needs all batches in the order in which they were read.
#[derive(Debug)]
pub struct RecordDecoder {
    pub(crate) ids: EventIds,
    pub(crate) filter: Filter,
}

impl RecordDecoder {
    /// Decodes the records of a batch.
    pub fn records<'a>(&'a mut self, batch: &'a RecordBatch) -> Records<'a> {
        self.decode(&batch.bytes, &batch.order, batch.read_ns)
    }

    /// Decodes records that were read at `read_ns`.
    pub(crate) fn decode<'a>(
        &'a mut self,
        bytes: &'a [u8],
        order: &'a RecordOrder,
        read_ns: u64,
    ) -> Records<'a> {
        if let Some(thinning) = &mut self.filter.thinning {
            thinning.adjust(read_ns);
        }
        Records { bytes, places: order.iter(), decoder: self }
    }
}

/// A filter for the records of the scope.
#[derive(Debug)]
pub(crate) struct Filter {
    /// The processes, if running threads are sampled per processor.
    pub(crate) processes: Option<HashSet<i32>>,
    /// The processes with events of tracepoints and allocations, which are opened for all tasks; `None` for
    /// all.
    pub(crate) of_all_tasks: Option<HashSet<i32>>,
    pub(crate) children: bool,
    /// Threads that events were opened for. A thread that began meanwhile may have inherited other events as
    /// well.
    pub(crate) opened: HashSet<i32>,
    /// The thinning of stacks of switches; `None` if they are not recorded.
    pub(crate) thinning: Option<Thinning>,
    /// True if the stacks of switches have buffers of their own.
    pub(crate) stacks_apart: bool,
}

impl Filter {
    /// Returns the record if it is in the scope and not a duplicate. The stack of a switch can get another
    /// weight, or be dropped.
    fn apply<'a>(&mut self, mut record: Record<'a>, source: EventSource) -> Option<Record<'a>> {
        if !self.takes(&record, source) {
            return None;
        }
        let Some(thinning) = &mut self.thinning else { return Some(record) };
        let tid = record.thread.tid;
        match &mut record.kind {
            RecordKind::Sample(sample) if sample.event == SampleEvent::Switch => {
                sample.period = thinning.stack(tid)?;
            }
            RecordKind::SwitchOut { .. } => thinning.switch(tid),
            RecordKind::Ended { thread } => thinning.ended(thread.tid),
            RecordKind::Lost { count } if self.stacks_apart && source.event == SampleEvent::Switch => {
                record.kind = RecordKind::LostStacks { count: *count };
            }
            _ => {}
        }
        Some(record)
    }

    /// Returns true if a record is in the scope, and is not a duplicate.
    fn takes(&mut self, record: &Record<'_>, source: EventSource) -> bool {
        if let RecordKind::Tracepoint(_) | RecordKind::NativeAllocation(_) = record.kind {
            return self.of_all_tasks.as_ref().is_none_or(|pids| pids.contains(&record.thread.pid));
        }
        if let Some(processes) = &mut self.processes {
            match record.kind {
                RecordKind::Started { thread, parent }
                    if self.children && processes.contains(&parent.pid) =>
                {
                    processes.insert(thread.pid);
                }
                RecordKind::Sample(_) if source.thread.is_none() => {
                    return processes.contains(&record.thread.pid);
                }
                _ => {}
            }
        }
        let inherited_too = source.thread.is_some_and(|owner| owner != record.thread.tid)
            && self.opened.contains(&record.thread.tid);
        if let RecordKind::Ended { thread } = record.kind {
            self.opened.remove(&thread.tid);
            return true;
        }
        match record.kind {
            RecordKind::Sample(_) | RecordKind::SwitchIn | RecordKind::SwitchOut { .. } => !inherited_too,
            _ => true,
        }
    }
}

/// Records in the order of time. Dropping them early loses the rest.
#[derive(Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    places: std::slice::Iter<'a, (u64, Range<usize>)>,
    decoder: &'a mut RecordDecoder,
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let (_, place) = self.places.next()?;
            let bytes = self.bytes.get(place.clone())?;
            let Some((record, source)) = record::parse(bytes, &self.decoder.ids) else { continue };
            if let Some(record) = self.decoder.filter.apply(record, source) {
                return Some(record);
            }
        }
    }
}
