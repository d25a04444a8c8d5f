//! What has been read besides events: everything that events refer to, and what went wrong.

use alloc::borrow::Cow;
#[cfg(feature = "rayon")]
use alloc::vec::Vec;

use crate::block::event::References;
use crate::damage::Damages;
use crate::info::TraceInfo;
use crate::interned::InternedTable;
use crate::metadata::{MetadataSlot, MetadataTable};
use crate::thread::{ThreadSlot, ThreadTable};
use crate::time::Ticks;

/// How much had been defined when an event was read: whatever followed is none of its business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableLengths {
    pub(crate) stacks: u32,
    pub(crate) labels: u32,
    pub(crate) metadata: u32,
    pub(crate) threads: u32,
}

/// What is valid between two sequence points.
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
    /// Those before it that somebody may still ask for.
    #[cfg(feature = "rayon")]
    pub(crate) past: Vec<Epoch>,
    pub(crate) damages: Damages,
    pub(crate) truncated: Option<u64>,
}

impl References for Tables {
    #[inline]
    fn kind(&self, id: u32) -> MetadataSlot {
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

/// For reading events again: everything means what it meant then, and nothing is counted twice.
pub(crate) struct SnapshotLookup<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) lengths: TableLengths,
}

impl References for SnapshotLookup<'_> {
    #[inline]
    fn kind(&self, id: u32) -> MetadataSlot {
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
