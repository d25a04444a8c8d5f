//! The addresses of a graph's objects.

use crate::address::AddressCode;
use crate::large_vec::push;

/// The most objects of a run: finding an address takes up to that many look-ups.
const MOST_IN_RUN: u32 = 32;
/// Unless runs have this many objects on average, each object keeps its own code: runs would take a byte for
/// each.
const LEAST_AVERAGE: usize = 8;
/// Runs that are kept even for the smallest heap.
const FEW_RUNS: usize = 4096;

/// The address of each object. Most objects lie directly after the previous one, so that the first address of
/// a run and the sizes suffice: a quarter of a byte an object. If a heap has too many holes for that, each
/// object has four bytes of its own.
#[derive(Debug, Default)]
pub(crate) struct ObjectAddresses {
    codes: Codes,
    count: u32,
    /// The code after the last object; `None` if it has no address, or fills its chunk.
    behind: Option<AddressCode>,
}

/// The codes of objects, in their order.
#[derive(Debug)]
pub(crate) enum Codes {
    /// The code of each object.
    Each(Vec<AddressCode>),
    /// Runs, by rising numbers of their first objects.
    Runs(Vec<Run>),
}

/// Contiguous objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) code: AddressCode,
}

impl Default for Codes {
    fn default() -> Self {
        Self::Runs(Vec::new())
    }
}

impl ObjectAddresses {
    /// Adds the next object; there are at most 2³² − 1. `slots` returns the space that it or an earlier one
    /// takes, in units of its alignment.
    pub(crate) fn push(&mut self, code: AddressCode, slots: impl Fn(u32) -> u64) {
        let object = self.count;
        self.count = self.count.saturating_add(1);
        let is_next = self.behind == Some(code);
        self.behind = (code != AddressCode::NONE)
            .then(|| u64::from(code.0).checked_add(slots(object)))
            .flatten()
            .and_then(|behind| u32::try_from(behind).ok().map(AddressCode))
            // An object after one without any space has the same address.
            .filter(|behind| *behind > code && behind.shares_chunk(code));
        match &mut self.codes {
            Codes::Each(codes) => push(codes, code),
            Codes::Runs(runs) => {
                let fits = runs.last().is_some_and(|run| object.saturating_sub(run.first) < MOST_IN_RUN);
                if is_next && fits {
                    return;
                }
                push(runs, Run { first: object, code });
                if runs.len() > FEW_RUNS.max(self.count as usize / LEAST_AVERAGE) {
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
                let behind = runs.partition_point(|run| run.first <= object);
                let Some(run) = behind.checked_sub(1).and_then(|place| runs.get(place)) else {
                    return AddressCode::NONE;
                };
                (run.first..object).fold(run.code, |code, before| next(code, slots(before)))
            }
        }
    }

    /// Passes the code of every object to `each`, in order.
    pub(crate) fn each(&self, slots: impl Fn(u32) -> u64, mut each: impl FnMut(u32, AddressCode)) {
        match &self.codes {
            Codes::Each(codes) => (0..).zip(codes).for_each(|(object, code)| each(object, *code)),
            Codes::Runs(runs) => {
                let ends = runs.iter().skip(1).map(|run| run.first).chain([self.count]);
                for (run, end) in runs.iter().zip(ends) {
                    let mut code = run.code;
                    for object in run.first..end {
                        each(object, code);
                        code = next(code, slots(object));
                    }
                }
            }
        }
    }
}

/// The code after an object of this many slots. It has no meaning for the last object of a run.
#[allow(clippy::cast_possible_truncation, reason = "slots between two objects of a chunk are few")]
pub(crate) const fn next(code: AddressCode, slots: u64) -> AddressCode {
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
        let holes = |every: u32| -> Vec<u32> {
            (0..).zip(&dense).map(|(object, code)| code + object / every * 3).collect()
        };
        assert!(runs(&check(&holes(20))).is_some());
        assert_eq!(runs(&check(&holes(5))), None);
        let scattered: Vec<u32> = (0..5000_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
        assert_eq!(runs(&check(&scattered)), None);
        let mut unknown = dense[..5000].to_vec();
        unknown[100..200].fill(u32::MAX);
        check(&unknown);
        check(&[]);
        check(&[u32::MAX; 9]);
    }
}
