//! The kinds of events to bring into time order.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::metadata::{Metadata, MetadataSlot};

/// A choice of kinds of events. Each is decided once.
pub(super) struct KindChoice {
    is_wanted: Box<dyn Fn(&Metadata) -> bool + Send + Sync>,
    /// By the slot of the metadata.
    wanted: Vec<bool>,
}

impl KindChoice {
    pub(super) fn new(is_wanted: impl Fn(&Metadata) -> bool + Send + Sync + 'static) -> Self {
        Self { is_wanted: Box::new(is_wanted), wanted: Vec::new() }
    }

    /// Decides the kinds that are new in a recording's table, whose rows never change.
    #[inline]
    pub(super) fn update(&mut self, rows: &[Metadata]) {
        if let Some(new) = rows.get(self.wanted.len()..) {
            self.wanted.extend(new.iter().map(&self.is_wanted));
        }
    }

    /// Whether events of the kind are wanted.
    #[inline]
    pub(super) fn contains(&self, slot: MetadataSlot) -> bool {
        self.wanted.get(slot.0 as usize).is_some_and(|is_wanted| *is_wanted)
    }
}

impl fmt::Debug for KindChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindChoice").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}
