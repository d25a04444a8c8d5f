//! The record of an event about a range of a method's code.

use nettrace::{Ticks, Utf16};

use crate::code::il_maps::IlMapId;
use crate::code::method_entry::Entry;
use crate::code::string_table::{StringId, StringTable};
use crate::enums::MethodFlags;
use crate::view::{ClrEvent, MethodCode, MethodRange};

/// The record of one event about a method's code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodRecord<'a> {
    pub(crate) kind: RecordKind,
    pub(crate) method_id: u64,
    pub(crate) module_id: u64,
    start: u64,
    size: u32,
    token: u32,
    flags: MethodFlags,
    /// Namespace, name, signature, if the event has them.
    texts: Option<[Utf16<'a>; 3]>,
}

/// The kind of a method record: load, unload or rundown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Load,
    Unload,
    /// The method was loaded when the session began.
    DcStart,
    /// The method was loaded when the session ended.
    DcStop,
}

impl RecordKind {
    /// Returns true if the session caused the record, not a load or unload.
    pub(crate) const fn is_rundown(self) -> bool {
        matches!(self, Self::DcStart | Self::DcStop)
    }

    /// Returns true if runtimes write the IL map after the record instead of before it.
    pub(crate) const fn is_before_il(self) -> bool {
        matches!(self, Self::Load | Self::DcStart)
    }

    /// Returns the known lifetime of code with a record at `time`.
    const fn span(self, time: Ticks) -> (Ticks, Ticks) {
        let (always, forever) = (Ticks(0), Ticks(u64::MAX));
        match self {
            Self::Load => (time, forever),
            Self::Unload => (always, time),
            Self::DcStart | Self::DcStop => (always, forever),
        }
    }
}

impl<'a> MethodRecord<'a> {
    /// Returns the record in an event; `None` if the event is not about code.
    pub(crate) fn by(view: &ClrEvent<'a>) -> Option<Self> {
        Some(match view {
            ClrEvent::MethodLoadVerbose(method) => Self::named(method, RecordKind::Load),
            ClrEvent::MethodUnloadVerbose(method) => Self::named(method, RecordKind::Unload),
            ClrEvent::MethodDcStartVerbose(method) => Self::named(method, RecordKind::DcStart),
            ClrEvent::MethodDcStopVerbose(method) => Self::named(method, RecordKind::DcStop),
            ClrEvent::MethodLoad(range) => Self::unnamed(range, RecordKind::Load),
            ClrEvent::MethodUnload(range) => Self::unnamed(range, RecordKind::Unload),
            ClrEvent::MethodDcStart(range) => Self::unnamed(range, RecordKind::DcStart),
            ClrEvent::MethodDcStop(range) => Self::unnamed(range, RecordKind::DcStop),
            _ => return None,
        })
    }

    const fn named(method: &MethodCode<'a>, kind: RecordKind) -> Self {
        Self {
            kind,
            method_id: method.method_id,
            module_id: method.module_id,
            start: method.method_start_address,
            size: method.method_size,
            token: method.method_token,
            flags: method.method_flags,
            texts: Some([method.method_namespace, method.method_name, method.method_signature]),
        }
    }

    const fn unnamed(range: &MethodRange, kind: RecordKind) -> Self {
        Self {
            kind,
            method_id: range.method_id,
            module_id: range.module_id,
            start: range.method_start_address,
            size: range.method_size,
            token: range.method_token,
            flags: range.method_flags,
            texts: None,
        }
    }

    /// Returns the entry to keep; `module` is the index of the module.
    pub(crate) fn entry(&self, time: Ticks, module: u32, texts: &mut StringTable) -> Entry {
        let names = self.texts.map(|names| names.map(|text| texts.add_utf16(text)));
        let [namespace, name, signature] = names.unwrap_or([StringId::EMPTY; 3]);
        let (from, to) = self.kind.span(time);
        Entry {
            start: self.start,
            method_id: self.method_id,
            from,
            to,
            size: self.size,
            module,
            namespace,
            name,
            signature,
            token: self.token,
            flags: self.flags,
            il: IlMapId::NONE,
        }
    }
}
