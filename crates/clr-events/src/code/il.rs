//! Maps from code to IL.

use alloc::vec::Vec;

use hashbrown::HashMap;
use nettrace::ThreadId;

use crate::code::method::Entry;
use crate::view::IlToNativeMap;

/// A map in [`IlMaps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IlMapId(u32);

impl IlMapId {
    /// No map.
    pub(crate) const NONE: Self = Self(0);
}

/// Code from here to the next point was made of IL from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    /// Bytes from the code's beginning.
    native: u32,
    il: u32,
}

/// IL offsets that are none.
///
/// # Source
/// `ICorDebugInfo::MappingTypes` of dotnet/runtime's `cordebuginfo.h`.
const NO_MAPPING: u32 = u32::MAX;
const PROLOG: u32 = u32::MAX - 1;
const EPILOG: u32 = u32::MAX - 2;

/// The number of threads whose last record is kept. When a recording has more, all are dropped.
const MAX_THREADS: usize = 1 << 16;

/// The last record of a thread that is about code. A map names its method, not its code, of which a method may have several;
/// but the same thread writes the code's record right before the map, or, for unloads and in a rundown, right behind it.
#[derive(Debug)]
enum LastRecord {
    Code(Entry),
    Map(u64, IlMapId),
}

/// The maps of all methods.
#[derive(Debug, Default)]
pub(crate) struct IlMaps {
    points: Vec<Point>,
    /// The end index of each map's points; they begin at the end of the map before it.
    ends: Vec<u32>,
    last_records: HashMap<(u64, ThreadId), LastRecord>,
    /// The map at hand.
    scratch: Vec<Point>,
}

impl IlMaps {
    /// Takes the record of code that was loaded; the map of it may be the thread's next record.
    pub(crate) fn on_load(&mut self, thread: (u64, ThreadId), code: Entry) {
        self.set_last(thread, LastRecord::Code(code));
    }

    /// Takes the record of code that is unloaded or listed in a rundown, and returns the map if that was the thread's last record.
    pub(crate) fn on_unload(&mut self, thread: (u64, ThreadId), method: u64) -> IlMapId {
        match self.last_records.remove(&thread) {
            Some(LastRecord::Map(of, map)) if of == method => map,
            _ => IlMapId::NONE,
        }
    }

    /// Takes a map. Returns the code with its map if the code's load was the thread's last record.
    pub(crate) fn add(&mut self, thread: (u64, ThreadId), map: &IlToNativeMap<'_>) -> Option<Entry> {
        let id = self.keep(map);
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

    fn keep(&mut self, map: &IlToNativeMap<'_>) -> IlMapId {
        let Self { points, ends, scratch, .. } = self;
        scratch.clear();
        let pairs = map.il_offsets.zip(map.native_offsets);
        // What has no IL, or ends the method, belongs to what is before it.
        let is_il = |il: u32| !matches!(il, NO_MAPPING | PROLOG | EPILOG);
        scratch.extend(pairs.clone().filter(|(il, _)| is_il(*il)).map(|(il, native)| Point { native, il }));
        // Of points at one place, the last one is that of the code there; those before it are empty.
        scratch.sort_unstable();
        // What goes before the first statement, of the method or of a handler in it, belongs to that.
        for (_, native) in pairs.filter(|(il, _)| *il == PROLOG) {
            let behind = scratch.partition_point(|point| point.native < native);
            if let Some(first) = scratch.get_mut(behind) {
                first.native = native;
            }
        }
        let mut before = None;
        let is_news = |point: &Point| before.replace(point.il) != Some(point.il);
        let first = points.len();
        points.extend(scratch.iter().copied().filter(is_news));
        let end = u32::try_from(points.len()).ok();
        let number = ends.len().checked_add(1).and_then(|number| u32::try_from(number).ok());
        let (Some(end), Some(number)) = (end, number) else {
            points.truncate(first);
            return IlMapId::NONE;
        };
        ends.push(end);
        IlMapId(number)
    }

    /// Returns the IL offset of the code at an offset; `None` if there is no map, or an empty one.
    pub(crate) fn find(&self, map: IlMapId, native: u32) -> Option<u32> {
        let index = usize::try_from(map.0).ok()?.checked_sub(1)?;
        let end = usize::try_from(*self.ends.get(index)?).ok()?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let points = self.points.get(usize::try_from(start).ok()?..end)?;
        let behind = points.partition_point(|point| point.native <= native);
        points.get(behind.saturating_sub(1)).map(|point| point.il)
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        let record = size_of::<((u64, ThreadId), LastRecord)>().saturating_add(1);
        [
            self.points.capacity().saturating_mul(size_of::<Point>()),
            self.ends.capacity().saturating_mul(size_of::<u32>()),
            self.last_records.capacity().saturating_mul(record),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}
