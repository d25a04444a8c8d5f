//! What has been read besides events: everything that events refer to, and what went wrong.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::damage::Damage;
use crate::info::TraceInfo;
use crate::interned::Interned;
use crate::metadata::MetadataTable;
use crate::thread::ThreadTable;

/// Damages beyond this many are counted and not listed: their number is the traced process's to choose.
const DAMAGES_LISTED: usize = 1024;

/// How many stacks and label lists are defined before an event: those that follow are none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Defined {
    pub(crate) stacks: u32,
    pub(crate) labels: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) info: Option<TraceInfo>,
    pub(crate) metadata: MetadataTable,
    pub(crate) threads: ThreadTable,
    pub(crate) stacks: Interned,
    pub(crate) labels: Interned,
    pub(crate) damage: Vec<Damage>,
    pub(crate) damages: u64,
    pub(crate) truncated: Option<u64>,
}

impl Tables {
    pub(crate) fn damaged(&mut self, offset: u64, skipped: u64, what: impl Into<Cow<'static, str>>) {
        self.damages = self.damages.saturating_add(1);
        if self.damage.len() < DAMAGES_LISTED {
            self.damage.push(Damage { offset, skipped, what: what.into() });
        }
    }

    pub(crate) fn defined(&self) -> Defined {
        Defined { stacks: self.stacks.len(), labels: self.labels.len() }
    }

    pub(crate) fn pointer_size(&self) -> u8 {
        self.info.as_ref().map_or(8, |info| info.pointer_size)
    }
}
