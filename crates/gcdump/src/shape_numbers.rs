//! The numbers of the shapes of a graph's objects.

use std::ops::Range;

use crate::large_vec::push;

/// The number of the shape of each object: two bytes each, or four if a heap has more than 65,536 shapes.
#[derive(Debug)]
pub(crate) enum ShapeNumbers {
    Short(Vec<u16>),
    Long(Vec<u32>),
}

impl Default for ShapeNumbers {
    fn default() -> Self {
        Self::Short(Vec::new())
    }
}

impl ShapeNumbers {
    pub(crate) fn push(&mut self, number: u32) {
        if let Self::Short(numbers) = self {
            match u16::try_from(number) {
                Ok(number) => return push(numbers, number),
                Err(_) => self.widen(),
            }
        }
        if let Self::Long(numbers) = self {
            push(numbers, number);
        }
    }

    /// Replaces the number of an object.
    pub(crate) fn set(&mut self, object: u32, number: u32) {
        if let Self::Short(numbers) = self {
            match (u16::try_from(number), numbers.get_mut(object as usize)) {
                (Ok(number), Some(of)) => *of = number,
                (Ok(_), None) => {}
                (Err(_), _) => self.widen(),
            }
        }
        if let Self::Long(numbers) = self
            && let Some(of) = numbers.get_mut(object as usize)
        {
            *of = number;
        }
    }

    fn widen(&mut self) {
        if let Self::Short(numbers) = self {
            *self = Self::Long(numbers.iter().map(|number| u32::from(*number)).collect());
        }
    }

    /// The number of objects.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Short(numbers) => numbers.len(),
            Self::Long(numbers) => numbers.len(),
        }
    }

    pub(crate) fn get(&self, object: u32) -> Option<u32> {
        match self {
            Self::Short(numbers) => numbers.get(object as usize).map(|number| u32::from(*number)),
            Self::Long(numbers) => numbers.get(object as usize).copied(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let (short, long) = match self {
            Self::Short(numbers) => (numbers.as_slice(), &[][..]),
            Self::Long(numbers) => (&[][..], numbers.as_slice()),
        };
        short.iter().map(|number| u32::from(*number)).chain(long.iter().copied())
    }

    /// Adds up the values of the shapes of some objects.
    pub(crate) fn sum(&self, objects: Range<u32>, value: impl Fn(u32) -> u32) -> u32 {
        let objects = objects.start as usize..objects.end as usize;
        let add = |sum: u32, number| sum.saturating_add(value(number));
        match self {
            Self::Short(numbers) => {
                numbers.get(objects).unwrap_or_default().iter().map(|number| u32::from(*number)).fold(0, add)
            }
            Self::Long(numbers) => numbers.get(objects).unwrap_or_default().iter().copied().fold(0, add),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(all: &[u32]) -> ShapeNumbers {
        let mut numbers = ShapeNumbers::default();
        for number in all {
            numbers.push(*number);
        }
        numbers
    }

    #[test]
    fn numbers_are_kept_whatever_their_width() {
        for all in [vec![], vec![0, 65_535, 7], vec![0, 65_535, 65_536, 3, u32::MAX]] {
            let mut numbers = numbers(&all);
            assert_eq!(numbers.iter().collect::<Vec<_>>(), all);
            assert_eq!(
                (numbers.len(), numbers.get(2), numbers.get(9)),
                (all.len(), all.get(2).copied(), None)
            );
            assert_eq!(
                numbers.sum(1..3, |number| number % 100),
                all.get(1..3).map_or(0, |all| all[0] % 100 + all[1] % 100)
            );
            numbers.set(9, 1);
            for number in [5, 70_000] {
                numbers.set(0, number);
                assert_eq!(numbers.get(0), all.first().map(|_| number));
                assert_eq!(numbers.iter().skip(1).collect::<Vec<_>>(), all.get(1..).unwrap_or_default());
            }
        }
    }
}
