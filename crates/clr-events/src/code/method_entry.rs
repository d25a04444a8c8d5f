//! Stretches of code of methods, as they are kept.

use nettrace::Ticks;

use crate::code::il_maps::IlMapId;
use crate::code::ranges::Span;
use crate::code::string_table::StringId;
use crate::enums::MethodFlags;

/// One stretch of a method's code, as it is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) method_id: u64,
    pub(crate) from: Ticks,
    pub(crate) to: Ticks,
    pub(crate) size: u32,
    /// Index in the process's table of modules.
    pub(crate) module: u32,
    pub(crate) namespace: StringId,
    pub(crate) name: StringId,
    pub(crate) signature: StringId,
    pub(crate) token: u32,
    pub(crate) flags: MethodFlags,
    /// The method's map to IL.
    pub(crate) il: IlMapId,
}

impl Entry {
    /// From an event without names.
    pub(crate) fn is_unnamed(&self) -> bool {
        (self.namespace, self.name, self.signature) == (StringId::EMPTY, StringId::EMPTY, StringId::EMPTY)
    }
}

impl Span for Entry {
    #[inline]
    fn start(&self) -> u64 {
        self.start
    }
    #[inline]
    fn last(&self) -> u64 {
        self.start.saturating_add(u64::from(self.size.saturating_sub(1)))
    }
    #[inline]
    fn from(&self) -> Ticks {
        self.from
    }
    #[inline]
    fn to(&self) -> Ticks {
        self.to
    }
    fn order(&self) -> (u64, u64) {
        (self.method_id, self.size.into())
    }
    fn merge_with(&mut self, other: &Self) -> bool {
        let same_name = self.is_unnamed()
            || other.is_unnamed()
            || (self.namespace, self.name, self.signature) == (other.namespace, other.name, other.signature);
        // A load, an unload and a rundown of one stretch of code overlap; loads one after the other do not.
        let overlap = self.from <= other.to && other.from <= self.to;
        let both_loaded = self.from.0 != 0 && other.from.0 != 0 && self.from != other.from;
        if self.order() != other.order() || !same_name || !overlap || both_loaded {
            return false;
        }
        if self.is_unnamed() {
            (self.namespace, self.name, self.signature) = (other.namespace, other.name, other.signature);
        }
        if self.il == IlMapId::NONE {
            self.il = other.il;
        }
        self.from = self.from.max(other.from);
        self.to = self.to.min(other.to);
        true
    }
}
