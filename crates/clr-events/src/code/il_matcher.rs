//! Records of code and their maps to IL, matched by thread.

use hashbrown::HashMap;
use nettrace::ThreadId;

use crate::code::il_maps::{IlMapId, IlMaps};
use crate::code::method_entry::Entry;
use crate::view::IlToNativeMap;

/// Maximum number of threads with a kept last record. When a recording has more, all are dropped.
const MAX_THREADS: usize = 1 << 16;

/// The last record of a thread that is about code. A map names its method, but not which of the method's
/// codes it describes; the same thread writes the code's record right before the map or, for unloads and in a
/// rundown, right after it.
#[derive(Debug)]
enum LastRecord {
    Code(Entry),
    Map(u64, IlMapId),
}

/// The maps of all methods, and the last record of each thread.
#[derive(Debug, Default)]
pub(crate) struct IlMatcher {
    maps: IlMaps,
    last_records: HashMap<(u64, ThreadId), LastRecord>,
}

impl IlMatcher {
    /// Takes the record of code that was loaded; its map may be the thread's next record.
    pub(crate) fn on_load(&mut self, thread: (u64, ThreadId), code: Entry) {
        self.set_last(thread, LastRecord::Code(code));
    }

    /// Takes the record of code that is unloaded or listed in a rundown, and returns the map if that was the
    /// thread's last record.
    pub(crate) fn on_unload(&mut self, thread: (u64, ThreadId), method: u64) -> IlMapId {
        match self.last_records.remove(&thread) {
            Some(LastRecord::Map(of, map)) if of == method => map,
            _ => IlMapId::NONE,
        }
    }

    /// Takes a map. Returns the code with its map if the code's load was the thread's last record.
    pub(crate) fn add(&mut self, thread: (u64, ThreadId), map: &IlToNativeMap<'_>) -> Option<Entry> {
        let id = self.maps.add(map);
        match self.last_records.remove(&thread) {
            Some(LastRecord::Code(code)) if code.method_id == map.method_id => Some(Entry { il: id, ..code }),
            _ => {
                self.set_last(thread, LastRecord::Map(map.method_id, id));
                None
            }
        }
    }

    fn set_last(&mut self, thread: (u64, ThreadId), record: LastRecord) {
        if self.last_records.len() >= MAX_THREADS {
            self.last_records.clear();
        }
        self.last_records.insert(thread, record);
    }

    /// The maps added so far.
    pub(crate) const fn maps(&self) -> &IlMaps {
        &self.maps
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        let record = size_of::<((u64, ThreadId), LastRecord)>().saturating_add(1);
        self.maps.bytes().saturating_add(self.last_records.capacity().saturating_mul(record))
    }
}
