//! The addresses of a graph's objects.

use crate::address::AddressCode;

/// The most objects of a run: to find an address takes as many look-ups.
const MOST_IN_RUN: u32 = 64;
/// Unless runs have so many objects on average, each object keeps its own code: runs would take half a byte for each.
const LEAST_AVERAGE: usize = 16;

/// The address of each object. Most objects lie directly behind the one before, so that the first of a run and the sizes do: an eighth of a
/// byte an object. Where a heap has too many holes for that, each has its own four bytes.
#[derive(Debug)]
pub(crate) enum ObjectAddresses {
    /// The code of each object.
    Each(Vec<AddressCode>),
    /// Runs, by rising numbers of their first objects.
    Runs(Vec<Run>),
}

/// Objects that lie one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    first: u32,
    code: AddressCode,
}

impl ObjectAddresses {
    /// Keeps addresses. `slots` returns the room that an object takes, in units of its alignment.
    pub(crate) fn new(codes: Vec<AddressCode>, slots: impl Fn(u32) -> u64) -> Self {
        let most = codes.len() / LEAST_AVERAGE;
        let mut runs: Vec<Run> = Vec::new();
        let mut previous = AddressCode::NONE;
        for (object, code) in (0_u32..).zip(&codes) {
            let is_next = runs.last().is_some_and(|run| object.saturating_sub(run.first) < MOST_IN_RUN)
                && code.shares_chunk(previous)
                && *code != AddressCode::NONE
                && u64::from(previous.0).checked_add(slots(object.saturating_sub(1))) == Some(code.0.into());
            if !is_next {
                if runs.len() >= most {
                    return Self::Each(codes);
                }
                runs.push(Run { first: object, code: *code });
            }
            previous = *code;
        }
        runs.shrink_to_fit();
        Self::Runs(runs)
    }

    /// Returns the code of an object.
    pub(crate) fn code(&self, object: u32, slots: impl Fn(u32) -> u64) -> AddressCode {
        match self {
            Self::Each(codes) => codes.get(object as usize).copied().unwrap_or(AddressCode::NONE),
            Self::Runs(runs) => {
                let behind = runs.partition_point(|run| run.first <= object);
                let Some(run) = behind.checked_sub(1).and_then(|place| runs.get(place)) else {
                    return AddressCode::NONE;
                };
                (run.first..object).fold(run.code, |code, before| next(code, slots(before)))
            }
        }
    }

    /// Hands over the code of every object, in order.
    pub(crate) fn each(
        &self,
        count: u32,
        slots: impl Fn(u32) -> u64,
        mut each: impl FnMut(u32, AddressCode),
    ) {
        match self {
            Self::Each(codes) => (0..count).zip(codes).for_each(|(object, code)| each(object, *code)),
            Self::Runs(runs) => {
                let ends = runs.iter().skip(1).map(|run| run.first).chain([count]);
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

/// The code behind an object of so many slots. Of the last of a run it means nothing.
#[allow(clippy::cast_possible_truncation, reason = "slots between two objects of a chunk are few")]
const fn next(code: AddressCode, slots: u64) -> AddressCode {
    AddressCode(code.0.wrapping_add(slots as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks both ways to the codes. Each object takes its number's last three bits and one.
    fn check(codes: &[u32]) -> ObjectAddresses {
        let slots = |object: u32| u64::from(object % 8 + 1);
        let codes: Vec<_> = codes.iter().map(|code| AddressCode(*code)).collect();
        let addresses = ObjectAddresses::new(codes.clone(), slots);
        let mut all = Vec::new();
        addresses.each(u32::try_from(codes.len()).unwrap(), slots, |object, code| {
            assert_eq!((object as usize, addresses.code(object, slots)), (all.len(), code));
            all.push(code);
        });
        assert_eq!(all, codes);
        addresses
    }

    #[test]
    fn addresses_are_kept_with_holes_and_without() {
        let dense: Vec<u32> = (0..5000_u32)
            .scan(0, |at, object| {
                let code = *at;
                *at += object % 8 + 1;
                Some(code)
            })
            .collect();
        assert!(matches!(check(&dense), ObjectAddresses::Runs(runs) if runs.len() < 100));
        let holes: Vec<u32> =
            dense.iter().enumerate().map(|(n, code)| code + u32::try_from(n).unwrap() / 20 * 3).collect();
        assert!(matches!(check(&holes), ObjectAddresses::Runs(_)));
        let scattered: Vec<u32> = (0..5000_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
        assert!(matches!(check(&scattered), ObjectAddresses::Each(_)));
        let mut unknown = dense.clone();
        unknown[100..200].fill(u32::MAX);
        check(&unknown);
        check(&[]);
        check(&[u32::MAX; 9]);
    }
}
