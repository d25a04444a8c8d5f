//! The state of reading apart from events: everything that events refer to, losses and damage.

use alloc::borrow::Cow;

use crate::damage::Damages;
use crate::info::TraceInfo;
use crate::interned::InternedTable;
use crate::metadata::{MetadataSlot, MetadataTable};
use crate::raw::RowResolver;
use crate::thread::ThreadSlot;
use crate::thread_table::ThreadTable;
use crate::time::Ticks;

/// The lengths of the tables when an event was read: later rows do not apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableLengths {
    pub(crate) stacks: u32,
    pub(crate) labels: u32,
    pub(crate) metadata: u32,
    pub(crate) threads: u32,
}

/// The tables of ids that are valid between two sequence points.
#[derive(Debug, Default)]
pub(crate) struct Epoch {
    pub(crate) stacks: InternedTable,
    pub(crate) labels: InternedTable,
}

#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) info: Option<TraceInfo>,
    pub(crate) metadata: MetadataTable,
    pub(crate) threads: ThreadTable,
    pub(crate) epoch: Epoch,
    pub(crate) damages: Damages,
    pub(crate) truncated_at: Option<u64>,
}

impl RowResolver for Tables {
    type Thread = ThreadSlot;
    #[inline]
    fn metadata(&self, id: u32) -> MetadataSlot {
        self.metadata.slot(id)
    }
    #[inline]
    fn thread(&mut self, index: u64) -> ThreadSlot {
        self.threads.slot(index)
    }
    #[inline]
    fn captured(&mut self, thread: ThreadSlot, sequence: u32, time: Ticks) {
        self.threads.captured(thread, sequence, time);
    }
    #[inline]
    fn captured_all(&mut self, thread: ThreadSlot, sequence: u32, time: Ticks) {
        self.threads.note(thread, sequence, time);
    }
}

/// The resolver for reading events again: ids keep their meaning of that time, and nothing is counted twice.
pub(crate) struct SnapshotLookup<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) lengths: TableLengths,
}

impl RowResolver for SnapshotLookup<'_> {
    type Thread = ThreadSlot;
    #[inline]
    fn metadata(&self, id: u32) -> MetadataSlot {
        self.tables.metadata.slot_among(id, self.lengths.metadata)
    }
    #[inline]
    fn thread(&mut self, index: u64) -> ThreadSlot {
        self.tables.threads.slot_among(index, self.lengths.threads)
    }
    fn captured(&mut self, _: ThreadSlot, _: u32, _: Ticks) {}
    fn captured_all(&mut self, _: ThreadSlot, _: u32, _: Ticks) {}
}

impl Tables {
    /// Adds damage at an offset in the recording.
    pub(crate) fn damaged(&mut self, offset: u64, skipped: u64, what: impl Into<Cow<'static, str>>) {
        self.damages.add(offset, skipped, what);
    }

    pub(crate) fn lengths(&self) -> TableLengths {
        TableLengths {
            stacks: self.epoch.stacks.len(),
            labels: self.epoch.labels.len(),
            metadata: self.metadata.len(),
            threads: self.threads.len(),
        }
    }

    pub(crate) fn pointer_size(&self) -> u8 {
        self.info.as_ref().map_or(8, |info| info.pointer_size)
    }
}
