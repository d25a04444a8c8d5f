//! An index of objects by address.

use crate::address::AddressCode;
use crate::object_addresses::{Codes, ObjectAddresses};

/// Maximum number of objects in a window.
const WINDOW: usize = 64;
/// Minimum average number of objects in windows; below it a permutation takes less memory.
const MIN_AVERAGE: usize = 8;

/// Finds objects by the codes of their addresses.
///
/// The runtime sends objects in the order of their addresses, one region after the other. So it suffices to
/// store the start of each run of at most 64: half a byte an object at most. Objects in any other order are
/// sorted by a permutation: four bytes each.
#[derive(Debug)]
pub(crate) struct ObjectIndex {
    /// In the order of their codes; no two overlap.
    windows: Vec<Window>,
    /// The objects in the order of their codes; empty if windows refer to the objects directly.
    sorted: Vec<u32>,
}

/// Consecutive objects with rising codes.
#[derive(Debug, Clone, Copy)]
struct Window {
    code: AddressCode,
    /// The first object; the number of the run if addresses are kept as runs.
    start: u32,
    /// The number of objects.
    length: u32,
}

/// Objects with the address of an earlier one, in rising order.
pub(crate) struct Repeated(pub(crate) Vec<u32>);

impl ObjectIndex {
    /// Builds an index of objects. Objects without an address are left out. `slots` returns the space that an
    /// object takes, in units of its alignment. Addresses that overlap make `addresses` keep each code.
    ///
    /// # Errors
    /// The objects that have the address of an earlier one.
    pub(crate) fn new(addresses: &mut ObjectAddresses, slots: impl Fn(u32) -> u64) -> Result<Self, Repeated> {
        if let Some(windows) = windows_of_runs(addresses, &slots) {
            return Ok(Self { windows, sorted: Vec::new() });
        }
        Self::of_each(addresses.keep_each(slots))
    }

    fn of_each(codes: &[AddressCode]) -> Result<Self, Repeated> {
        let most = codes.len() / MIN_AVERAGE;
        if let Some(mut windows) = windows(codes.iter().copied(), most.max(WINDOW)) {
            windows.sort_unstable_by_key(|window| window.code);
            let last = |window: &Window| {
                let end = window.start.saturating_add(window.length).saturating_sub(1);
                codes.get(end as usize).copied()
            };
            if windows.is_sorted_by(|a, b| last(a) < Some(b.code)) {
                return Ok(Self { windows, sorted: Vec::new() });
            }
        }
        let code = |object: u32| codes.get(object as usize).copied().unwrap_or(AddressCode::NONE);
        let all = u32::try_from(codes.len()).unwrap_or(u32::MAX);
        let mut sorted: Vec<u32> = (0..all).filter(|object| code(*object) != AddressCode::NONE).collect();
        sorted.sort_unstable_by_key(|object| (code(*object), *object));
        let pairs = sorted.iter().zip(sorted.iter().skip(1));
        let mut repeated: Vec<_> =
            pairs.filter(|(a, b)| code(**a) == code(**b)).map(|(_, later)| *later).collect();
        if !repeated.is_empty() {
            repeated.sort_unstable();
            return Err(Repeated(repeated));
        }
        let windows = windows(sorted.iter().map(|object| code(*object)), usize::MAX).unwrap_or_default();
        Ok(Self { windows, sorted })
    }

    /// Returns the indexed object with that code. `hint` is the place of the last answer, where it is looked
    /// up first: many references lead to the next objects.
    pub(crate) fn find(
        &self,
        addresses: &ObjectAddresses,
        slots: impl Fn(u32) -> u64,
        code: AddressCode,
        hint: &mut usize,
    ) -> Option<u32> {
        let starts_before = |place: usize| self.windows.get(place).is_some_and(|window| window.code <= code);
        let place = [*hint, hint.saturating_add(1)]
            .into_iter()
            .find(|place| starts_before(*place) && !starts_before(place.saturating_add(1)));
        let place = match place {
            Some(place) => place,
            None => self.windows.partition_point(|window| window.code <= code).checked_sub(1)?,
        };
        *hint = place;
        let window = self.windows.get(place)?;
        let codes = match addresses.codes() {
            Codes::Each(codes) => codes,
            Codes::Runs(runs) => {
                let mut objects = runs.objects(window.start as usize, addresses.count(), slots);
                let (object, at) = objects.find(|(_, at)| *at >= code)?;
                return (at == code).then_some(object);
            }
        };
        let end = window.start.saturating_add(window.length);
        let places = window.start as usize..end as usize;
        if self.sorted.is_empty() {
            let at = codes.get(places)?.binary_search(&code).ok()?;
            return window.start.checked_add(u32::try_from(at).ok()?);
        }
        let objects = self.sorted.get(places)?;
        let at = objects.binary_search_by_key(&Some(&code), |object| codes.get(*object as usize)).ok()?;
        objects.get(at).copied()
    }
}

/// Runs of contiguous objects; `None` if some overlap, or the address of each is kept.
fn windows_of_runs(addresses: &ObjectAddresses, slots: impl Fn(u32) -> u64) -> Option<Vec<Window>> {
    let Codes::Runs(runs) = addresses.codes() else { return None };
    let objects = |run: u32| runs.objects(run as usize, addresses.count(), &slots);
    let windows = (0_u32..).take(runs.len()).filter_map(|start| {
        let (_, code) = objects(start).next()?;
        let length = u32::try_from(objects(start).size_hint().0).ok()?;
        (code != AddressCode::NONE).then_some(Window { code, start, length })
    });
    let mut windows: Vec<_> = windows.collect();
    windows.sort_unstable_by_key(|window| window.code);
    let last = |window: &Window| objects(window.start).last().map(|(_, code)| code);
    windows.is_sorted_by(|a, b| last(a) < Some(b.code)).then_some(windows)
}

/// Runs of rising codes in one chunk each; `None` if there are more than `most`.
fn windows(codes: impl Iterator<Item = AddressCode>, most: usize) -> Option<Vec<Window>> {
    let mut windows: Vec<Window> = Vec::new();
    let mut previous = AddressCode::NONE;
    for (place, code) in (0_u32..).zip(codes) {
        let is_next = previous != AddressCode::NONE && code.shares_chunk(previous) && previous < code;
        let is_next = is_next && windows.last().is_some_and(|window| (window.length as usize) < WINDOW);
        if let Some(window) = windows.last_mut().filter(|_| is_next) {
            window.length = window.length.saturating_add(1);
        } else if code != AddressCode::NONE {
            if windows.len() >= most {
                return None;
            }
            windows.push(Window { code, start: place, length: 1 });
        }
        previous = code;
    }
    Some(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The space of each object.
    const SLOTS: u64 = 4;

    fn addresses(codes: &[u32]) -> ObjectAddresses {
        let mut addresses = ObjectAddresses::default();
        for code in codes {
            addresses.push(AddressCode(*code), |_| SLOTS);
        }
        addresses
    }

    fn check(codes: &[u32]) -> ObjectAddresses {
        let mut addresses = addresses(codes);
        let index = ObjectIndex::new(&mut addresses, |_| SLOTS).unwrap_or_else(|_| panic!("repeated"));
        let mut hint = 0;
        let mut find = |code: u32| index.find(&addresses, |_| SLOTS, AddressCode(code), &mut hint);
        for (object, code) in (0..).zip(codes) {
            let expected = (*code != u32::MAX).then_some(object);
            assert_eq!(find(*code), expected, "{code:?}");
            if code & 1 == 0 {
                assert_eq!(find(code | 1), None);
            }
        }
        addresses
    }

    #[test]
    fn objects_are_found_in_any_order() {
        let dense: Vec<u32> = (0..100_000).map(|n| n * 4).collect();
        assert!(matches!(check(&dense).codes(), Codes::Runs(_)));
        let two: Vec<u32> = dense.iter().map(|code| code + 800_000).chain(dense.iter().copied()).collect();
        assert!(matches!(check(&two).codes(), Codes::Runs(_)));
        let rising: Vec<u32> = (0..100_000).map(|n| n * 6).collect();
        check(&rising);
        check(&rising.iter().rev().copied().collect::<Vec<_>>());
        let regions: Vec<u32> =
            (5..10).chain(0..5).flat_map(|r| (0..9000).map(move |n| r * 90_000 + n * 4)).collect();
        check(&regions);
        let scattered: Vec<u32> = (0..50_000_u32).map(|n| n.wrapping_mul(2_654_435_761) & !1).collect();
        check(&scattered);
        check(&[]);
        check(&[u32::MAX, 4, u32::MAX, 2, u32::MAX]);
        // Two runs that are interleaved.
        check(&[0, 8, 16, 24, 4, 12, 20]);
    }

    #[test]
    fn the_later_ones_of_an_address_are_repeated() {
        let mut addresses = addresses(&[4, 8, 12, 8, 4, 4, 2]);
        let Err(Repeated(repeated)) = ObjectIndex::new(&mut addresses, |_| SLOTS) else { panic!() };
        assert_eq!(repeated, [3, 4, 5]);
    }
}
