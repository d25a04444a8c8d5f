//! Rows of reports by the name of a type.

use clr_events::csharp;
use hashbrown::HashMap;

/// Rows by the name of a type. At most `MOST` are distinguished: all others share the row `(others)`.
#[derive(Debug)]
pub(super) struct TypeTable<R, const MOST: usize>(HashMap<String, R>);

impl<R, const MOST: usize> Default for TypeTable<R, MOST> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<R, const MOST: usize> TypeTable<R, MOST> {
    /// Returns the row of a type, which is `new` if the type is.
    pub(super) fn row(&mut self, name: String, new: impl FnOnce(String) -> R) -> &mut R {
        let has_room = self.0.len() < MOST || self.0.contains_key(&name);
        let name = if has_room { name } else { "(others)".to_owned() };
        self.0.entry(name).or_insert_with_key(|name| new(name.clone()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rows, the heaviest first, and by name where they weigh the same.
    pub(super) fn heaviest_first(self, weight: impl Fn(&R) -> u64) -> Vec<R> {
        let mut rows: Vec<_> = self.0.into_iter().collect();
        rows.sort_by(|(one, a), (other, b)| weight(b).cmp(&weight(a)).then_with(|| one.cmp(other)));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// The C# name of a type, or its own name without one.
pub(crate) fn csharp_type(name: &str) -> String {
    csharp::type_name(name).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_above_the_limit_are_the_others() {
        let mut table = TypeTable::<(String, u64), 2>::default();
        for (name, weight) in [("a", 1), ("b", 5), ("c", 2), ("a", 1), ("d", 2)] {
            table.row(name.to_owned(), |name| (name, 0)).1 += weight;
        }
        let rows = table.heaviest_first(|(_, weight)| *weight);
        let expected = [("b", 5), ("(others)", 4), ("a", 2)];
        assert_eq!(rows, expected.map(|(name, weight)| (name.to_owned(), weight)));
    }
}
