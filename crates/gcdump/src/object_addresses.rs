//! The addresses of a graph's objects.

use crate::address::AddressCode;
use crate::large_vec::push;

/// Maximum number of objects of a run: finding an address takes up to that many look-ups.
const MAX_RUN_LENGTH: u32 = 32;
/// Minimum average number of objects in runs; below it each object keeps its own code, as runs would take a
/// byte for each.
const MIN_AVERAGE: usize = 8;
/// Runs that are kept even for the smallest heap.
const FEW_RUNS: usize = 4096;

/// The address of each object. Most objects lie directly after the previous one, or after a small hole, so
/// that the first address of a run, the sizes of objects, and a byte for each hole suffice: half a byte an
/// object and a byte a hole. If a heap has too many large holes for that, each object has four bytes of its
/// own.
#[derive(Debug, Default)]
pub(crate) struct ObjectAddresses {
    codes: Codes,
    count: u32,
    /// The code after the last object; `None` if the object does not have an address, or fills its chunk.
    behind: Option<AddressCode>,
}

/// The codes of objects, in their order.
#[derive(Debug)]
pub(crate) enum Codes {
    /// The code of each object.
    Each(Vec<AddressCode>),
    /// Runs of objects.
    Runs(Runs),
}

/// A run of objects in one chunk, each directly after the previous one or after a small hole.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// By rising numbers of their first objects.
    runs: Vec<Run>,
    /// The slots of all holes in runs.
    holes: Vec<u8>,
}

/// At most 32 objects.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u32,
    code: AddressCode,
    /// The index of the first hole.
    holes: u32,
    /// A bit for each object that has a hole before it, beginning with the lowest.
    has_hole: u32,
}

impl Default for Codes {
    fn default() -> Self {
        Self::Runs(Runs::default())
    }
}

impl ObjectAddresses {
    /// Adds the next object; there are at most 2³² − 1. `slots` returns the space that it or an earlier one
    /// takes, in units of its alignment.
    pub(crate) fn push(&mut self, code: AddressCode, slots: impl Fn(u32) -> u64) {
        let object = self.count;
        self.count = self.count.saturating_add(1);
        let hole = self.behind.filter(|behind| *behind <= code && behind.shares_chunk(code));
        let hole = hole.and_then(|behind| u8::try_from(code.0.saturating_sub(behind.0)).ok());
        self.behind = (code != AddressCode::NONE)
            .then(|| u64::from(code.0).checked_add(slots(object)))
            .flatten()
            .and_then(|behind| u32::try_from(behind).ok().map(AddressCode))
            // An object after one without any space has the same address.
            .filter(|behind| *behind > code && behind.shares_chunk(code));
        match &mut self.codes {
            Codes::Each(codes) => push(codes, code),
            Codes::Runs(runs) => {
                runs.push(object, code, hole);
                if runs.runs.len() > FEW_RUNS.max(self.count as usize / MIN_AVERAGE) {
                    self.keep_each(slots);
                }
            }
        }
    }

    /// Stores the code of each object, and returns all.
    pub(crate) fn keep_each(&mut self, slots: impl Fn(u32) -> u64) -> &[AddressCode] {
        if let Codes::Runs(_) = &self.codes {
            let mut codes = Vec::with_capacity(self.count as usize);
            self.each(slots, |_, code| codes.push(code));
            self.codes = Codes::Each(codes);
        }
        match &self.codes {
            Codes::Each(codes) => codes,
            Codes::Runs(_) => &[],
        }
    }

    /// The number of objects.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// The codes in their current representation.
    pub(crate) const fn codes(&self) -> &Codes {
        &self.codes
    }

    /// Returns the code of an object.
    pub(crate) fn code(&self, object: u32, slots: impl Fn(u32) -> u64) -> AddressCode {
        match &self.codes {
            Codes::Each(codes) => codes.get(object as usize).copied().unwrap_or(AddressCode::NONE),
            Codes::Runs(runs) => {
                let behind = runs.runs.partition_point(|run| run.first <= object);
                let objects = behind.checked_sub(1).map(|place| runs.objects(place, self.count, &slots));
                let found = objects.and_then(|mut objects| objects.find(|(number, _)| *number == object));
                found.map_or(AddressCode::NONE, |(_, code)| code)
            }
        }
    }

    /// Passes the code of every object to `each`, in order.
    pub(crate) fn each(&self, slots: impl Fn(u32) -> u64, mut each: impl FnMut(u32, AddressCode)) {
        match &self.codes {
            Codes::Each(codes) => (0..).zip(codes).for_each(|(object, code)| each(object, *code)),
            Codes::Runs(runs) => {
                for place in 0..runs.len() {
                    for (object, code) in runs.objects(place, self.count, &slots) {
                        each(object, code);
                    }
                }
            }
        }
    }
}

impl Runs {
    /// The number of runs.
    pub(crate) const fn len(&self) -> usize {
        self.runs.len()
    }

    /// Adds the next object. `hole` is the space before it, if it can belong to the run of the previous one.
    fn push(&mut self, object: u32, code: AddressCode, hole: Option<u8>) {
        if let (Some(run), Some(hole)) = (self.runs.last_mut(), hole) {
            let place = object.saturating_sub(run.first);
            if place < MAX_RUN_LENGTH {
                if hole > 0 {
                    run.has_hole |= 1_u32.wrapping_shl(place);
                    push(&mut self.holes, hole);
                }
                return;
            }
        }
        // The number of holes never exceeds the number of objects.
        let holes = u32::try_from(self.holes.len()).unwrap_or(u32::MAX);
        push(&mut self.runs, Run { first: object, code, holes, has_hole: 0 });
    }

    /// Returns the objects of a run, with their codes. `count` is the number of objects of all runs.
    pub(crate) fn objects(
        &self,
        place: usize,
        count: u32,
        slots: impl Fn(u32) -> u64,
    ) -> impl Iterator<Item = (u32, AddressCode)> {
        const NONE: Run = Run { first: 0, code: AddressCode::NONE, holes: 0, has_hole: 0 };
        let run = self.runs.get(place).copied();
        let next_run = place.checked_add(1).and_then(|place| self.runs.get(place));
        let end = run.map_or(0, |_| next_run.map_or(count, |run| run.first));
        let Run { first, code, holes, mut has_hole } = run.unwrap_or(NONE);
        let mut holes = self.holes.get(holes as usize..).unwrap_or_default().iter();
        let mut behind = code;
        (first..end).map(move |object| {
            let hole = if has_hole & 1 == 1 { holes.next().copied().unwrap_or_default() } else { 0 };
            has_hole >>= 1;
            let code = next(behind, hole.into());
            behind = next(code, slots(object));
            (object, code)
        })
    }
}

/// The code after an object or a hole of this many slots. It is meaningless for the last object of a run.
#[allow(clippy::cast_possible_truncation, reason = "slots between two objects of a chunk are few")]
const fn next(code: AddressCode, slots: u64) -> AddressCode {
    AddressCode(code.0.wrapping_add(slots as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks both representations of the codes. Each object takes its number's last three bits and one.
    fn check(codes: &[u32]) -> ObjectAddresses {
        let slots = |object: u32| u64::from(object % 8 + 1);
        let codes: Vec<_> = codes.iter().map(|code| AddressCode(*code)).collect();
        let mut addresses = ObjectAddresses::default();
        for code in &codes {
            addresses.push(*code, slots);
        }
        let mut all = Vec::new();
        addresses.each(slots, |object, code| {
            assert_eq!((object as usize, addresses.code(object, slots)), (all.len(), code));
            all.push(code);
        });
        assert_eq!(all, codes);
        addresses
    }

    fn runs(addresses: &ObjectAddresses) -> Option<usize> {
        match &addresses.codes {
            Codes::Runs(runs) => Some(runs.len()),
            Codes::Each(_) => None,
        }
    }

    #[test]
    fn addresses_are_kept_with_holes_and_without() {
        let dense: Vec<u32> = (0..500_000_u32)
            .scan(0, |at, object| {
                let code = *at;
                *at += object % 8 + 1;
                Some(code)
            })
            .collect();
        assert!(runs(&check(&dense)).unwrap() < 20_000);
        let holes = |every: u32, slots: u32| -> Vec<u32> {
            (0..).zip(&dense).map(|(object, code)| code + object / every * slots).collect()
        };
        for slots in [1, 3, 200, 255] {
            assert!(runs(&check(&holes(1, slots))).unwrap() < 40_000, "{slots}");
        }
        assert!(runs(&check(&holes(20, 256))).is_some());
        assert_eq!(runs(&check(&holes(5, 256))), None);
        let scattered: Vec<u32> = (0..5000_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
        assert_eq!(runs(&check(&scattered)), None);
        let mut unknown = dense[..5000].to_vec();
        unknown[100..200].fill(u32::MAX);
        check(&unknown);
        check(&[]);
        check(&[u32::MAX; 9]);
    }
}
