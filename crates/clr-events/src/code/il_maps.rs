//! Maps from code to IL.

use alloc::vec::Vec;

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

/// Special values in place of IL offsets.
///
/// # Source
/// `ICorDebugInfo::MappingTypes` of dotnet/runtime's `cordebuginfo.h`.
const NO_MAPPING: u32 = u32::MAX;
const PROLOG: u32 = u32::MAX - 1;
const EPILOG: u32 = u32::MAX - 2;

/// The maps of all methods.
#[derive(Debug, Default)]
pub(crate) struct IlMaps {
    points: Vec<Point>,
    /// The end index of each map's points; they begin at the end of the map before it.
    ends: Vec<u32>,
    /// The map at hand.
    scratch: Vec<Point>,
}

impl IlMaps {
    /// Adds a map; [`IlMapId::NONE`] if there are too many.
    pub(crate) fn add(&mut self, map: &IlToNativeMap<'_>) -> IlMapId {
        let Self { points, ends, scratch, .. } = self;
        scratch.clear();
        let pairs = map.il_offsets.zip(map.native_offsets);
        // Code without IL, or that ends the method, belongs to the code before it.
        let is_il = |il: u32| !matches!(il, NO_MAPPING | PROLOG | EPILOG);
        scratch.extend(pairs.clone().filter(|(il, _)| is_il(*il)).map(|(il, native)| Point { native, il }));
        // The last of several points at one address describes the code there; the earlier ones are empty.
        scratch.sort_unstable();
        // Code before the first statement of the method, or of a handler in it, belongs to that statement.
        for (_, native) in pairs.filter(|(il, _)| *il == PROLOG) {
            let next = scratch.partition_point(|point| point.native < native);
            if let Some(first) = scratch.get_mut(next) {
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

    /// Returns the IL offset of the code at an offset; `None` without a map, or with an empty one.
    pub(crate) fn find(&self, map: IlMapId, native: u32) -> Option<u32> {
        let index = usize::try_from(map.0).ok()?.checked_sub(1)?;
        let end = usize::try_from(*self.ends.get(index)?).ok()?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let points = self.points.get(usize::try_from(start).ok()?..end)?;
        let next = points.partition_point(|point| point.native <= native);
        points.get(next.saturating_sub(1)).map(|point| point.il)
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        [
            self.points.capacity().saturating_mul(size_of::<Point>()),
            self.ends.capacity().saturating_mul(size_of::<u32>()),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}
